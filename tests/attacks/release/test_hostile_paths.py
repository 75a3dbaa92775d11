"""Hostile contents behind a spec and behind OpenDP, and hostile entries in a spec: released, or refused before the charge."""

# pyright: reportPrivateImportUsage=false

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attacks.release.test_hostile_values import silently, table
from tests.support import flat
from tests.support.hostile import HOSTILE, objects

from isotone.counts import PosetMechanism
from isotone.errors import InputError, IsotoneError
from isotone.interop import opendp as bridge
from isotone.order import Poset
from isotone.release import Ledger, load_spec
from isotone.tables import truncated_geometric

dp.enable_features("contrib", "honest-but-curious")
NAMES = ("a", "u", "c", "x", "y")
GOOD = [
    {"a": 1, "u": "Ann", "c": "A", "x": 1, "y": 0.5},
    {"a": "yes", "u": "Bo", "c": "A", "x": "1", "y": "0.5"},
]
WRITTEN = [
    *(
        "[]",
        "[[1, [2]]]",
        "{}",
        '{"a": {"b": 1}}',
        "1e300",
        "-1e300",
        "1e999",
        "9" * 400,
        '"\\ud800"',
        '"x\\u0000y"',
    ),
    *(
        "NaN",
        "Infinity",
        "null",
        '"nan"',
        '"inf"',
        '"[/b]"',
        '"=1+1"',
        '"\\u001b[31m"',
        '"2020-01-01"',
        '"0x61"',
    ),
]
"""JSON that is none of the texts, numbers or units 1, yes and A."""


def json_lines(path: Path) -> Path:
    lines = [*map(json.dumps, GOOD), *("{" + ", ".join(f'"{n}": {v}' for n in NAMES) + "}" for v in WRITTEN)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def csv(path: Path) -> Path:
    bad = [bytes(str(v), "utf-8").replace(b'"', b"") for v in WRITTEN]
    cells = [b'"' + value.replace(b"\\u0000", b"\0") + b'"' for value in (*bad, b"\xff\xfe", b"\xed\xa0\x80")]
    rows = [b",".join(str(row[n]).encode() for n in NAMES) for row in GOOD]
    path.write_bytes(
        b"\n".join([",".join(NAMES).encode(), *rows, *(b",".join([cell] * 5) for cell in cells)]) + b"\n"
    )
    return path


COLUMNS: dict[str, Any] = {
    "decimals": pa.array([Decimal("1e30"), None, Decimal("-0.5")], pa.decimal256(60, 10)),
    "bytes": pa.array([b"\xff", b"", None]),
    "nested": pa.array([[[1], []], [], None]),
    "records": pa.array([{"k": 1}, None, {"k": None}]),
    "dates": pa.array([datetime.date(1, 1, 1), None, datetime.date.max]),
    "durations": pa.array([datetime.timedelta(1), None, datetime.timedelta(-1)], pa.duration("us")),
    "floats": pa.array([float("nan"), float("inf"), 1e300]),
    "large": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "invalid": pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"\xed\xa0\x80"]).buffers()),
    "nothing": pa.nulls(3),
}


def parquet(name: str) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        pq.write_table(pa.table(dict.fromkeys(NAMES, COLUMNS[name])), path)
        return path

    return write


FILES: dict[str, Callable[[Path], Path]] = {
    "d.jsonl": json_lines,
    "d.csv": csv,
    **{f"{name}.parquet": parquet(name) for name in COLUMNS},
}
UNLISTED = ("bytes", "nested", "records", "durations")
"""Files whose schema has types that are not read: they are refused before the charge."""
KINDS = {
    "order": '[order]\nmechanism = "PosetMechanism"\nrelations = []\nelements = ["a"]\n',
    "table": '[table]\ncategory = "c"\ncategories = ["A", "B"]\nupper = 5\n',
    "curve": '[curve]\nx = "x"\ny = "y"\nbounds = [0, 2]\ny_range = [0, 1]\n',
}


def spec(desk: Path, file: str, kind: str, **changes: str) -> Path:
    entries = {"epsilon": '"1000"', "unit": '"u"', "folder": '"out"', "path": json.dumps(file)} | changes
    data = "".join(f"{key} = {entries[key]}\n" for key in ("path", "unit", "contributions") if key in entries)
    out = "".join(f"{key} = {entries[key]}\n" for key in ("folder", "title", "confidence") if key in entries)
    text = (
        f'[data]\n{data}[privacy]\nepsilon = {entries["epsilon"]}\nledger = "l.ledger"\nbudget = {{ epsilon = "1000" }}\n'
        f"{KINDS[kind]}{''.join(f'{k} = {v}{chr(10)}' for k, v in changes.items() if k in ('max_size', 'upper'))}"
        f"[output]\n{out}report = false\n"
    )
    (desk / "spec.toml").write_text(text, encoding="utf-8")
    return desk / "spec.toml"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_a_spec_of_any_file_is_released(tmp_path, name, kind):
    FILES[name](tmp_path / name)
    stem = name.removesuffix(".parquet")
    if name.endswith("parquet") and (stem in UNLISTED or (kind == "curve" and stem == "dates")):
        with pytest.raises(InputError, match="Give it another type first"):
            flat.with_spec(load_spec(spec(tmp_path, name, kind)))
        assert not (tmp_path / "l.ledger").exists() or not Ledger(tmp_path / "l.ledger").charges()
        return
    made = silently(lambda: flat.with_spec(load_spec(spec(tmp_path, name, kind)))[0])
    assert [charge.state for charge in Ledger(tmp_path / "l.ledger").charges()] == ["sealed"]
    if kind == "order":
        # at such an epsilon noise is 0 but with probability e^-500: two good people, and nobody else says yes
        assert list(made.columns["value"]) == [0 if name.endswith("parquet") else 2]


ODD = [
    *(
        "nan",
        "inf",
        "-inf",
        "1e300",
        "9" * 400,
        "-1",
        "0",
        "true",
        "[[1]]",
        "[]",
        "{}",
        "1979-05-27",
        '""',
        '"\\u0000"',
    ),
    *('"1e400"', '"1/0"', '"x"', "07:32:00", '"' + "9" * 500 + '"', '"NaN"', "0x7fffffffffffffffff"),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:12])
@pytest.mark.parametrize(
    "entry", ["epsilon", "contributions", "max_size", "confidence", "path", "unit", "folder"]
)
def test_an_odd_entry_of_a_spec_is_refused_before_the_charge(tmp_path, entry, odd):
    csv(tmp_path / "d.csv")
    known = {
        ("max_size", "9" * 400),  # more than the order has elements: no bound at all
        ("unit", '"x"'),
        ("folder", '"x"'),
        ("folder", '"1e400"'),
        ("folder", '"1/0"'),
        ("folder", '"NaN"'),
    }
    path = spec(tmp_path, "d.csv", "order", **{entry: odd})
    try:
        flat.with_spec(load_spec(path))
    except IsotoneError as error:
        said = str(error)
    else:
        said = ""
        assert (entry, odd) in known
    if said:
        assert len(said) < 2_000
        ledger = tmp_path / "l.ledger"
        assert not ledger.exists() or Ledger(ledger).charges() == []


@pytest.mark.parametrize("unit", [None, "u"])
def test_measurements_of_opendp_take_any_value(unit):
    data = table(HOSTILE)
    metric = dp.symmetric_distance() if unit is None else dp.symmetric_id_distance(unit)
    made = bridge.make_counts(bridge.table_domain(), metric, PosetMechanism(Poset(["a"], []), 1000))
    # at such a rate noise is 0 but with probability e^-500
    assert silently(lambda: made(data)).tolist() == [2]
    made = bridge.make_table(
        bridge.table_domain(), metric, truncated_geometric(10, 500), category="c", categories=["A", "B"]
    )
    assert silently(lambda: made(data)).tolist() == [2, 0]


@pytest.mark.parametrize("name", COLUMNS)
def test_measurements_of_opendp_take_any_column(name):
    data = pa.table(dict.fromkeys(NAMES, COLUMNS[name]))
    made = bridge.make_counts(
        bridge.table_domain(), dp.symmetric_id_distance("u"), PosetMechanism(Poset(["a"], []), 1000)
    )
    assert silently(lambda: made(data)).tolist() == [0]
    made = bridge.make_table(
        bridge.table_domain(),
        dp.symmetric_id_distance("u"),
        truncated_geometric(10, 500),
        category="c",
        categories=["A", "B"],
    )
    assert silently(lambda: made(data)).tolist() == [0, 0]


def test_scalars_of_numpy_are_read_like_plain_numbers():
    kinds = [np.int8, np.uint64, np.float16, np.float64, np.longdouble, np.bool_]
    data = pd.DataFrame({"a": pd.Series(objects([kind(1) for kind in kinds]), dtype=object)})
    made = bridge.make_counts(
        bridge.table_domain(), dp.symmetric_distance(), PosetMechanism(Poset(["a"], []), 1000)
    )
    assert silently(lambda: made(data)).tolist() == [len(kinds)]
