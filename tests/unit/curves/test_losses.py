from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.curves.losses import Absolute, Huber, Logistic, Loss, Pinball, Squared, parse_loss
from isotone.curves.problem import FINE
from isotone.errors import InputError

ONE = Fraction(1)
LOSSES: list[Any] = [
    Squared(),
    Absolute(),
    Huber(Fraction(1, 4)),
    Huber(),
    Huber(Fraction(3)),
    Pinball(Fraction(9, 10)),
    Logistic(),
    Logistic(Fraction(1, 4)),
]


def predictions(loss: Any, values: int) -> np.ndarray:
    low, high = loss.values((Fraction(0), ONE))
    return np.linspace(float(low), float(high), values + 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_integer_slopes_are_proportional_to_the_derivative(loss: Any) -> None:
    levels = np.array([0, FINE // 4, FINE // 3, FINE], dtype=np.int64)
    for value in (FINE // 8, FINE // 2, FINE * 3 // 4):
        p = predictions(loss, FINE)[value]
        step = 1e-7
        y = levels / FINE
        derivative = (loss.evaluate(p + step, y) - loss.evaluate(p - step, y)) / (2 * step)
        integers = loss.slopes(FINE, ONE).at(value, levels)
        scale = derivative[-1] / integers[-1]
        assert scale > 0
        np.testing.assert_allclose(integers * scale, derivative, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bound_on_slopes_holds_for_every_level_and_is_attained(loss: Any) -> None:
    levels = np.arange(0, FINE + 1, 64, dtype=np.int64)
    for value in (1, FINE // 4, FINE // 2, FINE - 1):
        rule = loss.slopes(FINE, ONE)
        assert np.abs(rule.at(value, levels)).max() == rule.bound(value, FINE)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("levels", "values"), [(16, 16), (64, 8), (8, 64), (1024, 1024)])
def test_tables_are_exactly_convex_and_close_to_the_loss(loss: Any, levels: int, values: int) -> None:
    table = loss.table(levels, values, ONE)
    assert np.diff(table, 2, axis=1).min() >= 0
    y = np.arange(levels + 1)[:, None] / levels
    truth = loss.evaluate(predictions(loss, values)[None, :], y)
    ours = table * loss.unit(levels, values, ONE)
    # a loss may differ by a constant for each y, which no choice can see
    difference = (ours - ours[:, :1]) - (truth - truth[:, :1])
    rounded_delta = 0.1 if isinstance(loss, Huber) else 0.0
    assert np.abs(difference).max() <= 1e-3 + rounded_delta * (values < 1024)


@pytest.mark.parametrize("loss", LOSSES)
def test_turning_the_values_around_turns_the_loss_around(loss: Any) -> None:
    table = loss.table(16, 16, ONE)
    turned = loss.flipped().table(16, 16, ONE)[::-1, ::-1]
    np.testing.assert_array_equal(table - table[:, :1], turned - turned[:, :1])


def test_loss_names_are_read_in_every_form() -> None:
    assert parse_loss("squared") == Squared()
    assert parse_loss(("pinball", 0.25)) == parse_loss("pinball(1/4)") == Pinball(Fraction(1, 4))
    assert parse_loss("huber(0.5)") == Huber(Fraction(1, 2))
    assert parse_loss(("logistic", "1/8")) == Logistic(Fraction(1, 8))
    for loss in LOSSES:
        assert parse_loss(loss) == loss


@pytest.mark.parametrize(
    "spec",
    [
        "cubic",
        "pinball",
        ("pinball", 1),
        ("pinball", "1/3000"),
        ("huber", 0),
        ("logistic", 0),
        ("logistic", 0.5),
        3,
        None,
    ],
)
def test_unusable_losses_are_refused(spec: Any) -> None:
    with pytest.raises(InputError):
        parse_loss(spec)


def test_logistic_loss_needs_labels() -> None:
    with pytest.raises(InputError, match=r"y_range=\(0, 1\)"):
        Logistic().values((Fraction(0), Fraction(2)))


def test_a_huber_loss_wider_than_the_range_of_y_is_the_squared_loss() -> None:
    """However wide: no number in it may outgrow 64 bits."""
    for delta in (ONE, Fraction(10) ** 40):
        wide = Huber(delta)
        np.testing.assert_array_equal(wide.table(64, 16, ONE), Squared().table(64, 16, ONE))
        levels = np.arange(0, FINE + 1, 1024, dtype=np.int64)
        np.testing.assert_array_equal(
            wide.slopes(FINE, ONE).at(FINE // 3, levels), Squared().slopes(FINE, ONE).at(FINE // 3, levels)
        )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_loss_on_the_unit_interval_is_the_loss_itself_times_a_power_of_the_width(loss: Loss) -> None:
    width = Fraction(1) if isinstance(loss, Logistic) else Fraction(7)  # whose y are labels
    y, prediction = np.array([0.1, 0.5, 0.9]), np.array([0.6, 0.55, 0.2])
    if isinstance(loss, Huber) and loss.delta is None:
        loss = Huber(width / 10)
    wide = loss.evaluate(prediction * float(width), y * float(width))
    unit = loss.on_unit(width).evaluate(prediction, y)
    np.testing.assert_allclose(wide, unit * float(width) ** loss.degree)
