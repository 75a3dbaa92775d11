"""A private survival curve from current-status data, with a band that holds at all times at once.

Every simulated patient is examined once, and it is noted whether the event has happened by then. How often it has rises with the
time of the examination, so one minus the isotonic curve is the survival curve. Run it with
``python examples/survival/current_status.py``. Everything printed comes from the released curve and its noisy sums.
"""

from __future__ import annotations

import numpy as np

from isotone import Guarantee
from isotone.curves import PrivateIsotonicRegression


def main() -> dict[str, float]:
    rng = np.random.default_rng(7)
    examined = rng.uniform(0, 10, 20_000)
    event = rng.weibull(1.5, 20_000) * 6 <= examined

    model = PrivateIsotonicRegression(Guarantee.pure(1, unit="patient"), (0, 10), y_values=(0, 1)).fit(
        examined, event
    )
    years = np.arange(1, 10)
    happened = model.predict(years)
    low, high = model.band(years, confidence=0.95)
    print("year  survival  at least  at most")
    for row in zip(years, 1 - happened, 1 - high, 1 - low, strict=True):
        print("{:4d}  {:8.2f}  {:8.2f}  {:7.2f}".format(*row))
    print(f"guaranteed: {model.guarantee_}")
    return {"five years": float(1 - happened[4])}


if __name__ == "__main__":
    main()
