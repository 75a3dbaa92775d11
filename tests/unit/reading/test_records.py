"""Records on every engine are those that plain Python makes, and large orders and lists of groups are no obstacle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.backends import BACKENDS, every_backend
from tests.support.effort import effort
from tests.support.posets import all_labelled_orders
from tests.support.record_rules import SALT, counts_by_hand

from isotone.order import Poset
from isotone.order.poset import closing_stages
from isotone.reading import operations as native
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records

GROUPS = ("b", "it's", "a\\n")


@st.composite
def orders(draw: Any) -> Poset:
    n = draw(st.integers(1, 5))
    if n < 5:
        order = draw(st.sampled_from(all_labelled_orders(n)))
        return Poset([f"e{i}" for i in range(n)], [(f"e{i}", f"e{j}") for i, j in sorted(order)])
    below = draw(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda p: p[0] < p[1])))
    return Poset([f"e{i}" for i in range(5)], [(f"e{i}", f"e{j}") for i, j in sorted(below)])


@st.composite
def cases(draw: Any) -> tuple[Poset, list[dict[str, Any]], dict[str, Any]]:
    P = draw(orders())
    unit = draw(st.sampled_from(["person", "person", None]))
    options = {
        "unit": unit,
        "contributions": draw(st.integers(1, 3)) if unit else 1,
        "on_violation": draw(st.sampled_from(["close", "drop"])),
        "max_size": draw(st.none() | st.integers(1, 4)),
        "groups": draw(st.none() | st.just(GROUPS)),
    }
    row = {
        "person": st.sampled_from(["p1", "p2", "é", "p:1", None]),
        "group": st.sampled_from([*GROUPS, "else", None]),
        **{str(x): st.booleans() for x in P.elements},
    }
    rows = draw(st.lists(st.fixed_dictionaries(row), min_size=1, max_size=14))
    return P, rows, options


def counted(data: Any, P: Poset, *, groups: Any = None, **options: Any) -> list[list[int]]:
    rules = RecordRules(**options)
    source, listed = RecordSource(data), Groups((("group", groups),)) if groups else None
    counts, records = count_records(source, source.open(P, rules, listed), P, rules, listed, salt=SALT)
    return np.column_stack((counts, records)).tolist()


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(("person", "group"), "string"))


@every_backend
def test_records_are_those_that_plain_python_makes(backend, tmp_path, request):
    """Sources are opened in their own ways, and counted in one: many examples of one, and a few of each other."""
    name = request.node.callspec.id
    few = 4 if name == "spark" else effort(3, 60)

    @settings(
        max_examples=effort(25, 60) if name == "duckdb" else few,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(cases())
    def agree(case: tuple[Poset, list[dict[str, Any]], dict[str, Any]]) -> None:
        P, rows, options = case
        folder = Path(tmp_path, str(np.random.default_rng().integers(1 << 60)))
        folder.mkdir()
        assert counted(backend(table(rows), folder), P, **options) == counts_by_hand(rows, P, **options)

    agree()


@pytest.mark.parametrize(("engine", "rule"), [("duckdb", "close"), ("polars-lazy", "drop")])
def test_a_chain_of_300_elements_is_no_obstacle(engine, rule, tmp_path):
    P = Poset.chain([f"e{i}" for i in range(300)])
    rows = pd.DataFrame(np.eye(300, dtype=bool)[[0, 299, 150]], columns=[f"e{i}" for i in range(300)])
    options = {"on_violation": rule, "max_size": 200 if rule == "close" else None, "unit": None}
    expected = counts_by_hand(rows.to_dict("records"), P, **options)  # pyright: ignore[reportArgumentType]
    assert counted(BACKENDS[engine](rows, tmp_path), P, **options) == expected


def test_batches_of_arrow_are_closed_as_plain_python_closes():
    rng = np.random.default_rng(5)
    names = [f"e{i}" for i in range(40)]
    for P in (Poset.chain(names), Poset(names, [(names[i], names[rng.integers(i)]) for i in range(1, 40)])):
        answers = rng.random((50, 40)) < 0.1
        rows = pd.DataFrame(answers, columns=names).assign(other="kept")
        stages = [
            {names[x]: [names[w] for w in below] for x, below in stage.items()} for stage in closing_stages(P)
        ]
        (closed,) = native._joining(stages)([pa.RecordBatch.from_pandas(rows)])
        expected = counts_by_hand(rows.to_dict("records"), P, on_violation="close", unit=None)  # pyright: ignore[reportArgumentType]
        assert [sum(closed[str(x)].to_pylist()) for x in P.elements] == expected[0][:-1]
        assert closed["other"].to_pylist() == ["kept"] * 50


@pytest.mark.services
@pytest.mark.parametrize("python", [True, False])
def test_spark_closes_large_orders_with_and_without_python_workers(python, tmp_path, monkeypatch):
    called: list[bool] = []
    monkeypatch.setattr(native, "_runs_python", lambda session: called.append(python) or python)
    names = [f"e{i}" for i in range(100)]
    P = Poset.chain(names)
    rows = pd.DataFrame(np.eye(100, dtype=bool)[[0, 99, 50]], columns=names).assign(group=["x", "y", "x"])
    found = counted(BACKENDS["spark"](rows, tmp_path), P, groups=("x", "y"), unit=None)
    expected = counts_by_hand(rows.to_dict("records"), P, groups=("x", "y"), unit=None)  # pyright: ignore[reportArgumentType]
    assert found == expected
    assert called == [python]


@pytest.mark.parametrize("engine", ["pandas", "duckdb", "polars-lazy", "ibis", "csv"])
def test_ten_thousand_public_groups_are_counted(engine, tmp_path):
    names = tuple(f"town {i}" for i in range(10_000))
    rows = pd.DataFrame({"a": True, "group": [*names[::-1][:30], "nowhere", None]})
    found = np.array(counted(BACKENDS[engine](rows, tmp_path), Poset(["a"]), groups=names))
    assert found.shape == (10_000, 2)
    assert found[-30:].tolist() == [[1, 1]] * 30
    assert found[:-30].sum() == 0


def test_a_unit_in_several_groups_counts_in_the_first_of_the_public_list():
    rows = pl.DataFrame({"a": [True] * 3, "group": ["x", "y", "z"], "u": [1, 1, 1]})
    for listed in (("x", "y", "z"), ("z", "x", "y"), ("y", "unheard of")):
        found = counted(rows, Poset(["a"]), groups=listed, unit="u")
        assert found == [[1, 1]] + [[0, 0]] * (len(listed) - 1)


def test_rows_that_differ_in_the_group_alone_are_chosen_alike_by_every_engine(tmp_path):
    """The group is part of what a row says: otherwise the engine would decide in which group a unit counts."""
    rows = [{"person": f"p{i}", "group": GROUPS[j], "a": True} for i in range(40) for j in range(3)]
    options: dict[str, Any] = {"unit": "person", "contributions": 2, "groups": GROUPS}
    expected = counts_by_hand(rows, Poset(["a"]), **options)
    for engine in ("pandas", "polars-lazy", "ibis", "duckdb"):
        for order in (rows, rows[::-1]):
            assert counted(BACKENDS[engine](table(order), tmp_path), Poset(["a"]), **options) == expected
