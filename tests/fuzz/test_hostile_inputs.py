"""Whatever a spec, a data file, an order or a manifest says: our errors only, no release without a charge, no charge lost.

The same examples every time; ``make audit`` looks for new ones (tests/audit/fuzzing.py).
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.support import fuzz

few = settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
many = settings(few, max_examples=50)


@few
@given(fuzz.specs)
def test_any_spec_is_released_or_refused_before_the_charge(spec):
    event("released" if fuzz.check_spec_text(fuzz.toml(spec)) else "refused")


@many
@given(st.one_of(st.text(max_size=60), fuzz.specs.map(fuzz.toml).map(lambda text: text[: len(text) // 2])))
def test_any_text_is_a_spec_or_an_error_of_ours(text):
    fuzz.check_spec_text(text)


@pytest.mark.parametrize(
    ("spec", "released"),
    [
        ({**fuzz.CURVE, "curve": {**fuzz.CURVE["curve"], "y_range": [-1, "0.5"]}}, True),
        (
            {
                **fuzz.CURVE,
                "curve": {
                    **fuzz.CURVE["curve"],
                    "bounds": [0, "1/3"],
                    "x_grid": 65,
                    "shape": ["lipschitz", "0.5"],
                },
            },
            False,
        ),
        ({**fuzz.CURVE, "curve": {**fuzz.CURVE["curve"], "bounds": [0, "1e400"]}}, False),
        (
            {
                **fuzz.COUNTS,
                "privacy": {**fuzz.COUNTS["privacy"], "epsilon": 800, "budget": {"epsilon": 800}},
            },
            True,
        ),
        ({**fuzz.COUNTS, "privacy": {**fuzz.COUNTS["privacy"], "epsilon": "1e-40"}}, False),
        ({**fuzz.COUNTS, "data": {**fuzz.COUNTS["data"], "contributions": 10**18}}, False),
        ({**fuzz.COUNTS, "order": {**fuzz.COUNTS["order"], "mechanism": "L2Mechanism"}}, False),
        ({**fuzz.TABLE, "table": {**fuzz.TABLE["table"], "upper": 10**9}}, False),
    ],
)
def test_what_fuzzing_found_is_released_with_its_report_or_refused_before_the_charge(spec, released):
    spec = {**spec, "output": {"folder": "out"}}
    assert fuzz.check_data(fuzz.PEOPLE.encode(), spec) is released


cells = st.one_of(
    st.sampled_from(
        ["yes", "no", "1", "", "A", '"', "NaN", "1e309", "-0", "9" * 40, "\x00", "é", " A ", "'", "\\"]
    ),
    fuzz.texts,
)
rows = st.lists(st.lists(cells, min_size=1, max_size=9).map(",".join), max_size=8).map("\n".join)


@pytest.mark.parametrize("spec", [fuzz.COUNTS, fuzz.TABLE, fuzz.CURVE], ids=["counts", "table", "curve"])
@settings(few, max_examples=5)
@given(body=rows)
def test_any_contents_of_a_csv_are_released(spec, body):
    content = "person,hyp,twice,meds,county,age,risk\n" + body
    assert fuzz.check_data(content.encode("utf-8", "surrogatepass"), spec)


@settings(few, max_examples=6)
@given(st.binary(max_size=80))
def test_any_bytes_are_data_or_an_error_before_the_charge(content):
    fuzz.check_data(content, fuzz.COUNTS)
    fuzz.check_data(b"person,hyp,twice,meds\n" + content, fuzz.COUNTS)


@many
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(max_size=60).map(str.encode),
        fuzz.values.map(fuzz.toml).map(str.encode),
    ),
    st.sampled_from([".csv", ".json", ".toml", ".txt"]),
)
def test_any_bytes_are_an_order_or_an_error_of_ours(content, ending):
    fuzz.check_order_file(content, ending)


names = st.sampled_from(["a", "b", "c", "", " a"])


@many
@given(
    st.one_of(
        st.lists(st.tuples(names, names)).map(lambda p: "child,parent\n" + "\n".join(map(",".join, p))),
        st.dictionaries(names, st.one_of(names, st.lists(names), st.none(), fuzz.numbers)).map(json.dumps),
    ),
    st.sampled_from([".csv", ".json"]),
)
def test_relations_in_any_order_and_with_any_circle_are_an_order_or_an_error_of_ours(content, ending):
    fuzz.check_order_file(content.encode("utf-8", "replace"), ending)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> tuple[Path, list[list[Any]]]:
    """A release on disk, and where each entry of its manifest is."""
    folder = fuzz.saved_release(tmp_path_factory.mktemp("saved"))
    return folder, list(_paths(json.loads((folder / "manifest.json").read_text())))


def _paths(value, before=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield [*before, key]
        yield from _paths(item, (*before, key))


json_values = st.one_of(
    fuzz.numbers.filter(lambda x: x == x and x not in (float("inf"), float("-inf"))), fuzz.texts, st.none(),
    st.lists(fuzz.texts, max_size=2), st.dictionaries(fuzz.texts, fuzz.texts, max_size=2),
)  # fmt: skip


@many
@given(data=st.data())
def test_a_manifest_with_anything_changed_is_noticed(saved, data):
    folder, paths = saved
    fuzz.check_manifest(folder, data.draw(st.sampled_from(paths)), data.draw(json_values))


@many
@given(text=st.text(max_size=80))
def test_a_table_of_any_text_is_read_or_refused(saved, text):
    folder, _ = saved
    with fuzz.desk() as copy:
        (copy / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
        (copy / "release.csv").write_text(text, encoding="utf-8", errors="replace")
        try:
            assert not fuzz.verify(copy).holds
        except fuzz.IsotoneError:
            return
