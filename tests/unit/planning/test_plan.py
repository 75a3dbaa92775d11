"""One plan for counts, tables and curves: the same ways to look at it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

import isotone as iso
from isotone.curves import PrivateIsotonicRegression
from isotone.curves.plan import plan as curve_plan
from isotone.planning import Plan


def plans() -> list[Plan[Any]]:
    P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    return [
        iso.Counts(P, max_size=2).plan(epsilon=1),
        iso.Table("c", range(100), upper=5).plan(epsilon=1),
        curve_plan(PrivateIsotonicRegression(1, y_range=(0, 1)), 200, methods=["additive", "bins"]),
    ]


@pytest.fixture(scope="module", params=range(3), ids=["counts", "tables", "curves"])
def made(request: pytest.FixtureRequest) -> Plan[Any]:
    return plans()[request.param]


def test_text_terminal_and_notebook_show_the_same_cells(made: Plan[Any]) -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(made)
    for shown in (str(made), console.export_text(), made._repr_html_()):
        assert made.title in shown
        for row in made:
            assert row.name in shown
            assert row.note in shown
            for column in row.columns:
                assert column.heading in shown
                assert column.written(getattr(row, column.name)) in shown


def test_numbers_stand_below_their_headings(made: Plan[Any]) -> None:
    _, heading, *lines = str(made).splitlines()
    assert heading.startswith("mechanism ")
    for column in made.rows[0].columns:
        end = heading.index(column.heading) + len(column.heading)
        for row, line in zip(made, lines[: len(made.rows)], strict=True):  # a remark may follow
            written = column.written(getattr(row, column.name))
            assert line[:end].endswith(written)


def test_names_are_escaped_in_a_notebook(made: Plan[Any]) -> None:
    from dataclasses import replace

    odd = replace(made, rows=(replace(made.rows[0], name="<script>"),))
    assert "<script>" not in odd._repr_html_()
    assert "&lt;script&gt;" in odd._repr_html_()


def test_plain_values_are_json_with_one_row_for_each_mechanism(made: Plan[Any]) -> None:
    plain = json.loads(json.dumps(made.plain(), allow_nan=False))
    assert plain["best"] == made.rows[0].name
    assert [row["mechanism"] for row in plain["rows"]] == [row.name for row in made]
    for written, row in zip(plain["rows"], made, strict=True):
        assert set(written) == {"mechanism", "note", *(column.name for column in row.columns)}
        for column in row.columns:
            assert written[column.name] == float(getattr(row, column.name))


def test_it_draws_on_the_axes_given(made: Plan[Any]) -> None:
    ax = made.plot()
    assert made.plot(ax=ax) is ax
    assert ax.get_title(loc="left") + ax.get_title() != ""


def test_rows_are_found_by_name_and_the_best_is_a_mechanism(made: Plan[Any]) -> None:
    assert len(made) == len(made.rows)
    assert made[made.rows[-1].name] is made.rows[-1]
    with pytest.raises(iso.InputError, match="It has: "):
        made["none"]
    assert type(made.best) is type(made.rows[0].mechanism)
    assert hasattr(made.best, "release") or hasattr(made.best, "fit")
