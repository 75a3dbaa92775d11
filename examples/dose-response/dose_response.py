"""A private dose–response curve with a band that holds, and the dose at which half respond.

Twelve doses were given to simulated patients, one each. The response rises with the dose, so the curve is isotonic. Run it
with ``python examples/dose-response/dose_response.py``.

Everything printed comes from the released curve and its noisy sums: it may be published.
"""

from __future__ import annotations

import numpy as np

from isotone import Guarantee
from isotone.curves import PrivateIsotonicRegression

DOSES = (0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96)


def main() -> dict[str, float]:
    rng = np.random.default_rng(4)
    dose = rng.choice(DOSES, 6_000)
    chance = 0.08 + 0.8 * dose**2 / (14**2 + dose**2)
    responded = rng.random(6_000) < chance

    # the doses are public, so they are the grid; one record for each patient, who is what is protected
    model = PrivateIsotonicRegression(
        Guarantee.pure(1, unit="patient"), (0, 96), x_grid=DOSES, y_values=(0, 1), public_n=6_000
    ).fit(dose, responded)
    value = model.predict(DOSES)
    low, high = model.band(DOSES, confidence=0.95)
    print("dose  response  at least  at most")
    for row in zip(DOSES, value, low, high, strict=True):
        print("{:4d}  {:8.2f}  {:8.2f}  {:7.2f}".format(*row))

    # the band holds at all doses at once, so it also brackets the first dose at which half respond
    surely = min((d for d, end in zip(DOSES, low, strict=True) if end >= 0.5), default=float("inf"))
    possibly = min((d for d, end in zip(DOSES, high, strict=True) if end >= 0.5), default=float("inf"))
    print(f"Half respond from a dose between {possibly:g} and {surely:g} on, with 95 % confidence.")
    print(f"guaranteed: {model.guarantee_}")
    return {"surely": surely, "possibly": possibly}


if __name__ == "__main__":
    main()
