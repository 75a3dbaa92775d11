"""OpenDP and isotone on one data set and one budget: OpenDP's mean age, isotone's counts over a survey's skip logic.

Run it with ``python examples/opendp/one_budget.py``; it needs ``pip install '.[opendp]'``.
"""

# OpenDP re-exports its names from the prelude without declaring them.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import opendp.prelude as dp

from isotone.interop import opendp as bridge
from isotone.order import Poset

SURVEY = Path(__file__).resolve().parent.parent / "health-survey" / "adults.csv"
P = Poset.from_mapping(
    {
        "hypertension_two_visits": "hypertension",
        "hypertension_this_year": "hypertension_two_visits",
        "hypertension_medication": "hypertension",
    }
)
ADULTS = 29_482  # published with the survey, so public


def main() -> list[float]:
    dp.enable_features("contrib", "honest-but-curious")
    bridge.register()
    # The survey has no ages: give everybody one, for the sake of a mean.
    database = duckdb.connect()
    database.execute(f"CREATE TABLE adults AS SELECT *, 18 + hash(person) % 68 AS age FROM '{SURVEY}'")
    adults: Any = database.table("adults")
    context: Any = dp.Context.compositor(
        data=adults,
        domain=bridge.table_domain(),
        privacy_unit=dp.unit_of(contributions=1),  # one row each
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_by_weights=[3, 1],  # three quarters for the counts, one for the mean
    )
    counts = context.query().isotone_counts(P).release()
    ages = context.query().isotone_column("age").impute_constant(50.0).clamp((18.0, 99.0))
    mean = ages.resize(ADULTS, 50.0).mean().laplace().release()
    for name, count in zip(P.elements, counts.tolist(), strict=True):
        print(f"{name:<26}{count:>8,}")
    print(f"{'mean age':<26}{mean:>8.2f}")
    print(f"spent: ε = {' + '.join(f'{loss:g}' for loss in context.current_privacy_loss())}")
    return [*counts.tolist(), mean]


if __name__ == "__main__":
    main()
