"""Pictures as SVG text: well formed whatever the names are, inside their frames, and true to the numbers."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.order import Poset
from isotone.order.drawing import hasse_svg
from isotone.svg import (
    LogAxis,
    NestedRow,
    bars,
    cumulative,
    curve,
    distribution,
    nested_dots,
    text_width,
    ticks,
    wrapped,
)

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '<script>alert("x")</script>&\'\x00\x1b\ud800 '
NUMBERS = st.floats(-1e12, 1e12)


def parsed(picture: str) -> ElementTree.Element:
    """The picture, which must be well formed and encode."""
    return ElementTree.fromstring(picture.encode())


def rectangles(root: ElementTree.Element) -> np.ndarray:
    sides = ("x", "y", "width", "height")
    return np.array([[float(r.attrib[side]) for side in sides] for r in root.iter(f"{SVG}rect")])


def points(line: ElementTree.Element) -> np.ndarray:
    return np.array([[float(at) for at in pair.split(",")] for pair in line.attrib["points"].split()])


def assert_inside(root: ElementTree.Element) -> None:
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    x, y, w, h = rectangles(root).reshape(-1, 4).T
    corners = [np.column_stack((x, y)), np.column_stack((x + w, y + h))]
    corners += [points(line) for line in root.iter(f"{SVG}polyline")]
    found = np.concatenate(corners)
    assert found.min() >= -0.02
    assert (found <= [width + 0.02, height + 0.02]).all()


@pytest.mark.parametrize(
    "picture",
    [
        hasse_svg(Poset([EVIL, "b"], [(EVIL, "b")]), values=[EVIL, 2], labels={"b": EVIL}, title=EVIL),
        bars([EVIL, "b"], [3, 4], [2, 3], [4, 5], EVIL),
        distribution([0, 1, 2], [0.5, 0.5], [0.4, 0.6], (EVIL, EVIL)),
        curve([0, 1], [0, 1], (0, 1), (EVIL, EVIL)),
        cumulative([0, 1, 90], [0.5, 0.9, 1.0], [0.4, 0.8, 1.0], (EVIL, EVIL), EVIL),
        nested_dots([NestedRow(EVIL, 3, 3.0, 2.0, 4.0)], EVIL),
    ],
)
def test_names_are_escaped(picture: str) -> None:
    root = parsed(picture)
    assert root.tag == f"{SVG}svg"
    assert "script" not in {node.tag.removeprefix(SVG) for node in root.iter()}
    assert "<script" not in picture
    assert "&lt;script" in picture


def test_a_diagram_has_every_name_and_value_in_boxes_apart() -> None:
    P = Poset("abcdef", [("a", "c"), ("b", "c"), ("b", "d"), ("e", "f"), ("a", "f")])
    root = parsed(hasse_svg(P, values={x: f"{k}0\n({k}\xa0to\xa0{k}9)" for k, x in enumerate("abcdef")}))
    said = [node.text for node in root.iter(f"{SVG}text")]
    assert said == [line for k, x in enumerate("abcdef") for line in (x, f"{k}0", f"({k}\xa0to\xa0{k}9)")]
    x, y, width, height = rectangles(root).T
    for i in range(6):
        for j in range(i):
            apart = x[i] + width[i] <= x[j] or x[j] + width[j] <= x[i]
            assert apart or y[i] + height[i] <= y[j] or y[j] + height[j] <= y[i]
    for lower, upper in P.covers:
        i, j = P.index(lower), P.index(upper)
        assert y[j] + height[j] < y[i]  # greater is higher; y runs downward
    assert len(list(root.iter(f"{SVG}path"))) == len(P.covers)
    assert_inside(root)


def test_lines_of_a_diagram_join_the_boxes_of_its_covers() -> None:
    P = Poset("abcd", [("a", "b"), ("b", "c"), ("d", "c")])  # the line from d to c passes a level
    root = parsed(hasse_svg(P))
    x, y, width, height = rectangles(root).T
    for (lower, upper), path in zip(P.covers, root.iter(f"{SVG}path"), strict=True):
        words = path.attrib["d"].replace("M", " ").replace("L", " ").replace("C", " ").split()
        ends = np.array(words, float).reshape(-1, 2)[[0, -1]]
        i, j = P.index(lower), P.index(upper)
        assert ends[0] == pytest.approx([x[i] + width[i] / 2, y[i]], abs=0.05)
        assert ends[1] == pytest.approx([x[j] + width[j] / 2, y[j] + height[j]], abs=0.05)


@given(st.lists(st.tuples(NUMBERS, st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=25))
def test_bars_are_as_long_as_their_values(rows: list[tuple[float, float, float]]) -> None:
    values = [value for value, _, _ in rows]
    lows, highs = [v - below for v, below, _ in rows], [v + above for v, _, above in rows]
    root = parsed(bars([str(k) for k in range(len(rows))], values, lows, highs, "count"))
    assert_inside(root)
    longest = max(range(len(rows)), key=lambda k: abs(values[k]))
    lengths = rectangles(root)[:, 2]
    if values[longest]:
        wanted = np.abs(np.array(values) / values[longest]) * lengths[longest]
        assert lengths == pytest.approx(wanted, abs=0.03)


@given(NUMBERS, st.floats(0, 1e12), st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_a_curve_passes_through_its_points(low: float, span: float, shares: list[float]) -> None:
    high = low + span
    ys = [low + share * (high - low) for share in sorted(shares)]
    root = parsed(curve(list(range(len(ys))), ys, (low, high), ("x", "y")))
    assert_inside(root)
    drawn = points(list(root.iter(f"{SVG}polyline"))[-1])
    assert len(drawn) == len(ys)
    assert (np.diff(drawn[:, 1]) <= 0.011).all()


def test_between_periods_stands_no_number() -> None:
    """Half a period is none."""
    for ends, expected in (
        ((2, 3), ["2", "3"]),
        ((1, 7), ["1", "2", "3", "4", "5", "6", "7"]),
        ((1, 1), ["1"]),
    ):
        root = parsed(curve(ends, (0.0, 100.0), (0, 100), ("period", "y"), whole=True))
        shown = [node.text or "" for node in root.iter(f"{SVG}text")]
        assert [words for words in shown if len(words) == 1 and words not in ("0", "y")] == expected


def test_a_distribution_has_a_bar_for_each_share_and_a_stair_for_each_line() -> None:
    root = parsed(distribution([-0.5, 0.5, 1.5], [0.25, 0.75], [0.5, 0.5], ("table", "private")))
    assert_inside(root)
    bars_drawn = rectangles(root)[:2]
    assert bars_drawn[1, 3] == pytest.approx(3 * bars_drawn[0, 3], abs=0.03)
    stair = next(points(line) for line in root.iter(f"{SVG}polyline") if len(points(line)) == 4)
    assert np.ptp(stair[:, 1]) == 0
    assert bars_drawn[:, 1].min() < stair[0, 1] < bars_drawn[:, 1].max()


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e6), st.integers(0, 20)), min_size=1, max_size=40)
)
def test_nested_dots_lie_on_their_intervals_below_each_other(rows: list[tuple[float, float, int]]) -> None:
    made = [
        NestedRow(f"name {k}", depth, v, max(v - wide, 0.0), max(v + wide, 0.0))
        for k, (v, wide, depth) in enumerate(rows)
    ]
    root = parsed(nested_dots(made, "count"))
    assert_inside(root)
    at = np.array([[float(c.attrib[key]) for key in ("cx", "cy")] for c in root.iter(f"{SVG}circle")])
    assert (np.diff(at[:, 1]) > 15).all()
    lines = [points(line) for line in root.iter(f"{SVG}polyline")][-len(rows) :]
    for (x, y), ends, row in zip(at, lines, made, strict=True):
        assert ends[:, 1] == pytest.approx([y, y])
        assert x <= ends[1, 0] + 0.02
        assert row.value < 0 or ends[0, 0] - 0.02 <= x


def test_a_large_count_and_many_small_ones_share_a_logarithmic_axis() -> None:
    few = [NestedRow("all", 0, 5000, 4990, 5010), *(NestedRow(f"{k}", 1, k, k / 2, 2 * k) for k in (2, 4, 8))]
    assert "logarithmic" in nested_dots(few, "count")
    assert "logarithmic" not in nested_dots(few[1:], "count")
    axis = LogAxis(999.0, 0.0, 300.0)
    assert [axis.at(x) for x in (-5, 0, 9, 99, 999, 5000)] == pytest.approx([0, 0, 100, 200, 300, 300])
    assert axis.marks == [0, 1, 10, 100]


def test_a_cumulative_picture_climbs_at_each_count() -> None:
    root = parsed(cumulative([0, 9, 99], [0.25, 0.5, 1.0], [0.5, 0.5, 1.0], ("table", "private"), "share"))
    assert_inside(root)
    stair = next(points(line) for line in root.iter(f"{SVG}polyline") if len(points(line)) == 6)
    heights = (stair[0, 1] - stair[:, 1]) / (stair[0, 1] - stair[-1, 1])
    assert heights == pytest.approx([0, 0, 1 / 3, 1 / 3, 1, 1], abs=1e-3)
    assert (stair[1, 0] - stair[0, 0]) * 2 == pytest.approx(stair[3, 0] - stair[0, 0], abs=0.05)


@given(st.text(max_size=80), st.floats(3, 30), st.integers(1, 4))
def test_labels_are_broken_at_words(line: str, ems: float, most: int) -> None:
    found = wrapped(line, ems, most)
    assert 1 <= len(found) <= most
    assert all(text_width(part) <= ems + 1 for part in found)
    if not any(part.endswith("…") for part in found):
        assert " ".join(found) == " ".join(line.split())


@given(NUMBERS, st.floats(1e-3, 1e12))
def test_ticks_are_round_and_within(low: float, span: float) -> None:
    high = low + max(span, abs(low) * 1e-8)
    found = ticks(low, high)
    assert 2 <= len(found) <= 8
    assert low - 1e-6 * (high - low) <= found[0] <= found[-1] <= high + 1e-6 * (high - low)


def test_wide_letters_are_taken_for_wide() -> None:
    assert text_width("漢字") > text_width("ab") > text_width("il")
    assert text_width("e\u0301") == text_width("e")
    assert text_width("") == 0
