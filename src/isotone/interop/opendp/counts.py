"""Counts over an order as an OpenDP measurement. It takes rows and returns noisy counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from opendp.measurements import make_user_measurement

from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.errors import InputError
from isotone.interop.opendp.columns import InputMetric, measure_and_map, require_rows
from isotone.mechanism import HasTotal
from isotone.privacy.guarantee import Guarantee
from isotone.reading.questions import Answers
from isotone.reading.records import RecordRules, RecordSource, count_records

__all__ = ["counts_measurement", "make_counts"]


def make_counts(
    input_domain: Any,
    input_metric: Any,
    mechanism: AdditiveMechanism,
    *,
    element: str | None = None,
    columns: Mapping[Any, str] | None = None,
    answers: Answers | None = None,
    on_violation: Literal["close", "drop"] = "close",
    total: bool = False,
) -> Any:
    """Any mechanism of ``isotone.counts`` as a measurement on the rows of a table.

    Rows become records as in :func:`isotone.release_counts`: combined by unit if the metric has an identifier,
    read as yes or no, closed upward (or dropped), cut to the mechanism's ``max_size``, and counted. All of that
    looks at one unit at a time, so d units move the counts by d records, and the map is that of ``maps.py``.

    Guarantee: that of ``mechanism``, for one unit of the metric; its neighbours must be those of the metric.
    The output is an integer array in the order of ``P.elements``; with ``total``, where the mechanism has it, a pair of that
    and the noisy number of records.
    An example is in docs/how-to/opendp.md.
    """
    if isinstance(mechanism, FixedRootMechanism):
        raise InputError(
            "No metric says that a public number of records is kept. Release with release_counts."
        )
    mechanism.release(np.zeros(len(mechanism.P), dtype=np.int64))  # refuses here what could never be drawn
    release = _with_total(mechanism) if total else lambda counts, _: mechanism.release(counts)
    source, said = RecordSource(None, element, dict(columns or {})), answers or Answers()
    spaces = input_domain, input_metric
    return counts_measurement(*spaces, mechanism, mechanism.guarantee, release, source, said, on_violation)


def _with_total(mechanism: Any) -> Callable[[NDArray[np.int64], int], Any]:
    if not (isinstance(mechanism, HasTotal) and mechanism.has_total):
        raise InputError(
            f"{type(mechanism).__name__} does not give the number of records for free. Leave out total=True."
        )
    return mechanism.release_with_total


def counts_measurement(
    input_domain: Any,
    input_metric: Any,
    like: AdditiveMechanism,
    guarantee: Guarantee,
    release: Callable[[NDArray[np.int64], int], Any],
    source: RecordSource,
    answers: Answers,
    on_violation: Literal["close", "drop"],
) -> Any:
    """A measurement that counts rows and releases the counts by a mechanism ``like`` this, with this guarantee."""
    require_rows(input_domain)
    P, contributions, max_size = like.P, like.contributions, like.max_size
    adjacency = InputMetric.of(input_metric)
    adjacency.check(guarantee, contributions)
    rules = RecordRules(adjacency.unit, contributions, on_violation, max_size, answers)
    if source.element is not None and adjacency.unit is None:
        raise InputError(
            "Long data (element=) belongs to units: take a metric with an identifier, dp.symmetric_id_distance(...)."
        )

    def measure(data: Any) -> Any:
        here = RecordSource(data, source.element, source.columns)
        counts, records = count_records(here, here.open(P, rules, None), P, rules)
        return release(counts[0], int(records[0]))

    measure_of_loss, privacy_map = measure_and_map(guarantee)
    return make_user_measurement(input_domain, input_metric, measure_of_loss, measure, privacy_map)
