"""The table of a report: nested as the order is, sorted by style alone, labels where people read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
from tests.support import flat

import isotone as iso
from isotone.order.layout import nested_order
from isotone.release.report import numbers_table

ORDER = iso.Poset(["year", "flu", "hyp", "meds", "both"], [("year", "hyp"), ("meds", "hyp"), ("both", "meds"), ("both", "flu")])  # fmt: skip


def table(tmp_path: Path, **options: object) -> str:
    data = pd.DataFrame({x: ["1", "0"] for x in ORDER.elements})
    data["g"] = ["n", "s"]
    ledger = iso.Ledger(tmp_path / "l.ledger", epsilon=9)
    questions = [iso.Question("meds", label="Takes <b>medication</b>?")]
    made = flat.counts(data, ORDER, epsilon=1, ledger=ledger, questions=questions, **options)  # type: ignore[arg-type]
    return numbers_table(made)


def test_every_element_stands_once_below_the_first_that_it_implies() -> None:
    found = [(ORDER.elements[x], depth) for x, depth in nested_order(ORDER)]
    assert found == [("flu", 0), ("both", 1), ("hyp", 0), ("year", 1), ("meds", 1)]
    for chain in (iso.Poset.chain(range(5)), iso.Poset.antichain(range(5))):
        assert sorted(x for x, _ in nested_order(chain)) == list(range(5))


def test_rows_follow_the_outline_in_each_group(tmp_path: Path) -> None:
    page = table(tmp_path, by="g", groups=["n", "s"])
    rows = re.findall(r"<tr role=row style.*?</tr>", page)
    names = [re.findall(r"<td[^>]*>(.*?)</td>", row)[:2] for row in rows]
    labels = ["flu", "both", "hyp", "year", "Takes &lt;b&gt;medication&lt;/b&gt;?<small>meds</small>"]
    assert names == [[group, label] for group in "ns" for label in labels]
    assert [re.findall(r"--d:(\d)", row) for row in rows[:5]] == [[], ["1"], [], ["1"], ["1"]]


def test_ranks_sort_by_value_and_by_name_without_a_script(tmp_path: Path) -> None:
    page = table(tmp_path)
    rows = re.findall(r"--v:(\d+);--n:(\d+)\">(.*?)</tr>", page)
    values = [
        (int(v), int(re.findall(r"<td[^>]*>(.*?)</td>", cells)[1].replace(",", ""))) for v, _, cells in rows
    ]
    by_value = [value for _, value in sorted(values)]
    assert by_value == sorted(by_value, reverse=True)
    assert sorted(int(v) for v, _, _ in rows) == list(range(5))
    names = sorted((int(n), re.findall(r"<td[^>]*>(.*?)</td>", cells)[0]) for _, n, cells in rows)
    assert [name.split("&")[0].lower() for _, name in names] == ["both", "flu", "hyp", "takes ", "year"]
    assert page.count('type="radio"') == 3
    assert "<script" not in page
    assert "onclick" not in page


def test_a_long_curve_shows_21_rows_and_folds_the_whole(tmp_path: Path) -> None:
    data = pd.DataFrame({"age": ["1", "2"], "sick": ["0", "1"]})
    ledger = iso.Ledger(tmp_path / "l.ledger", epsilon=9)
    made = flat.curve(data, x="age", y="sick", bounds=(0, 100), y_range=(0, 1), epsilon=1, ledger=ledger)
    for rows, lengths in ((42, [42]), (43, [21, 43]), (170, [21, 170])):
        xs = tuple(float(i) for i in range(rows))
        page = numbers_table(replace(made, columns={"x": xs, "value": tuple(x / rows for x in xs)}))
        shown = [
            re.findall(r"<tr role=row style[^>]*><td[^>]*>(.*?)</td>", part)
            for part in page.split("<details>")
        ]
        assert [len(part) for part in shown] == lengths
        assert all((part[0], part[-1]) == ("0", f"{rows - 1}") for part in shown)
