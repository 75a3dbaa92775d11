"""Hasse diagrams: nothing overlaps, greater is higher, forests do not cross, text is what was asked for."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch
from tests.support.posets import all_posets

from isotone.errors import InputError, OrderError
from isotone.order import Poset
from isotone.order.drawing import JOINED, hasse_svg
from isotone.order.layout import arrange, place

mpl.use("Agg")

SMALL = [P for n in range(1, 6) for P in all_posets(n)]
SURVEY = Poset.from_mapping(
    {
        "Were you ever told that you had hypertension?": None,
        "Were you told on two or more different visits?": "Were you ever told that you had hypertension?",
        "Have you had it during the past 12 months?": "Were you told on two or more different visits?",
        "Are you now taking medication prescribed for it?": "Were you ever told that you had hypertension?",
        "Were you ever told that you had asthma?": None,
        "Do you still have asthma?": "Were you ever told that you had asthma?",
    }
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def boxes(ax):
    """The rectangles (x0, y0, x1, y1) of the elements, in the order of the elements."""
    patches = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    return np.array(
        [[p.get_x(), p.get_y(), p.get_x() + p.get_width(), p.get_y() + p.get_height()] for p in patches]
    )


def overlapping(rectangles):
    lower, upper = rectangles[:, None, :2], rectangles[:, None, 2:]
    both = (lower < upper.swapaxes(0, 1)).all(axis=2) & (lower.swapaxes(0, 1) < upper).all(axis=2)
    return (both & ~np.eye(len(rectangles), dtype=bool)).any()


def crossings(diagram):
    seat = {point: k for row in diagram.levels for k, point in enumerate(row)}
    level = {point: height for height, row in enumerate(diagram.levels) for point in row}
    return sum(
        (seat[a] - seat[c]) * (seat[b] - seat[d]) < 0
        for a, b in diagram.segments
        for c, d in diagram.segments
        if level[a] == level[c]
    )


@pytest.mark.parametrize("direction", ["up", "left"])
def test_greater_elements_are_above_or_to_the_left_and_boxes_do_not_overlap(direction):
    for P in [*SMALL[::5], SURVEY]:
        ax = P.plot(direction=direction)
        rectangles = boxes(ax)
        assert len(rectangles) == len(P)
        assert not overlapping(rectangles)
        for lower, upper in P.cover_pairs:
            if direction == "up":
                assert rectangles[upper, 1] > rectangles[lower, 3]
            else:
                assert rectangles[upper, 2] < rectangles[lower, 0]
        plt.close("all")


@pytest.mark.parametrize("P", SMALL, ids=repr)
def test_elements_of_one_height_share_a_level_and_lines_keep_clear_of_other_elements(P):
    sizes = np.column_stack((np.linspace(2, 5, len(P)), np.linspace(3, 1, len(P))))
    for diagram in arrange(P):
        placed = place(diagram, sizes, gap=1.0, level_gap=2.0)
        elements = list(placed.elements)
        level = P.levels[elements]
        for height in np.unique(level):
            assert np.ptp(placed.centres[level == height, 1]) == pytest.approx(0)
        corners = np.column_stack(
            (placed.centres - sizes[elements] / 2, placed.centres + sizes[elements] / 2)
        )
        assert not overlapping(corners)
        assert corners[:, :2].min() >= -1e-9
        assert corners[:, 2].max() <= placed.across + 1e-9
        assert corners[:, 3].max() <= placed.along + 1e-9
        for route in placed.routes:
            inside = corners[:, None, :2] + 1e-9 < route, route < corners[:, None, 2:] - 1e-9
            assert not (inside[0] & inside[1]).all(axis=2).any()


def test_lines_of_forests_do_not_cross_however_the_elements_are_listed():
    rng = np.random.default_rng(3)
    for _ in range(20):
        names = rng.permutation(25).tolist()
        parents = {names[k]: names[rng.integers(k)] for k in range(1, 25)}
        diagrams = arrange(Poset(range(25), list(parents.items())))
        assert sum(crossings(diagram) for diagram in diagrams) == 0


def test_sorting_the_levels_removes_most_crossings():
    rng = np.random.default_rng(4)
    before = after = 0
    for _ in range(10):
        P = Poset(range(30), [(i, j) for i in range(15) for j in range(15, 30) if (j - i * 7) % 15 < 2])
        Q = P.induced(rng.permutation(30).tolist()).rename(dict(enumerate(rng.permutation(30).tolist())))
        listed = Poset(range(30), Q.covers)
        seats = listed.cover_pairs
        before += sum((a - c) * (b - d) < 0 for a, b in seats for c, d in seats)
        after += sum(crossings(diagram) for diagram in arrange(listed))
    assert after < before / 5


def test_names_are_wrapped_and_shown_in_full():
    ax = SURVEY.plot()
    shown = {" ".join(text.get_text().split()) for text in ax.texts}
    assert set(SURVEY.elements) <= shown
    assert max(len(line) for text in ax.texts for line in text.get_text().splitlines()) < 49


def test_text_fits_into_its_box():
    ax = SURVEY.plot(values=[1234567, 0.25, "218 ± 12", "", -3, 12345.678])
    ax.figure.canvas.draw()
    rectangles = ax.transData.transform(boxes(ax).reshape(-1, 2)).reshape(-1, 4)
    for text in ax.texts:
        if text.get_text():
            extent = text.get_window_extent()
            x, y = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
            own = rectangles[
                (rectangles[:, 0] <= x)
                & (x <= rectangles[:, 2])
                & (rectangles[:, 1] <= y)
                & (y <= rectangles[:, 3])
            ]
            assert len(own) == 1
            assert own[0, 0] <= extent.x0 <= extent.x1 <= own[0, 2]
            assert own[0, 1] <= extent.y0 <= extent.y1 <= own[0, 3]


def test_labels_and_values_are_shown():
    P = Poset(["hyp", "meds"], [("meds", "hyp")])
    texts = [
        text.get_text()
        for text in P.plot(labels={"hyp": "High\nblood $pressure$"}, values={"meds": 8736}).texts
    ]
    assert texts == ["High\nblood $pressure$", "", "meds", "8,736"]
    assert [text.get_text() for text in P.plot(values=[1, np.float64(0.123456)]).texts[1::2]] == [
        "1",
        "0.1235",
    ]


def test_a_given_axis_is_used_and_filled_but_not_exceeded():
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    assert SURVEY.plot(right) is right
    assert not left.patches
    rectangles = boxes(right)
    (x0, x1), (y0, y1) = right.get_xlim(), right.get_ylim()
    assert x0 <= rectangles[:, 0].min()
    assert rectangles[:, 2].max() <= x1
    assert y0 <= rectangles[:, 1].min()
    assert rectangles[:, 3].max() <= y1
    assert len(figure.axes) == 2


def test_an_antichain_is_a_grid_and_not_a_line():
    rectangles = boxes(Poset.antichain([f"question {k}" for k in range(30)]).plot())
    assert not overlapping(rectangles)
    width, height = (
        rectangles[:, 2].max() - rectangles[:, 0].min(),
        rectangles[:, 3].max() - rectangles[:, 1].min(),
    )
    assert 0.5 < width / height < 4


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"direction": "down"}, InputError),
        ({"values": [1]}, InputError),
        ({"values": {"hpy": 1}}, OrderError),
        ({"labels": {"hpy": "High"}}, OrderError),
    ],
)
def test_what_does_not_fit_the_order_is_refused(options, error):
    with pytest.raises(error, match=r"'up', 'left'|one entry per element|Did you mean 'hyp'"):
        Poset(["hyp", "meds"]).plot(**options)


def test_options_of_a_choice_are_joined_by_a_line():
    """Dashed where there may be none, solid where there is exactly one; a lone option needs no line."""
    parents = {"a": "q", "b": "q", "c": "q", "x": "r", "y": "r", "alone": "s"}
    P = Poset.from_mapping(parents, children={"q": "partition", "r": "exclusive", "s": "exclusive"})
    svg = hasse_svg(P)
    solid, dashed = (svg.count(words) for words in JOINED.values())
    assert (solid, dashed) == (1, 1)
    assert svg.count("stroke-dasharray") == 1
    for direction in ("up", "left"):
        lines = P.plot(direction=direction).lines
        assert sorted((line.get_linestyle(), len(np.asarray(line.get_xdata()))) for line in lines) == [
            ("-", 3),
            ("--", 2),
        ]
    assert not P.forget_choices().plot().lines
    assert "at most one" not in hasse_svg(P.forget_choices())
