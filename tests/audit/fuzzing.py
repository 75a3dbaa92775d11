"""Hostile specs, data, orders and manifests in hundreds: the checks of tests/fuzz, for longer."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import fuzz


def _run(examples: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], object]) -> Counter[object]:
    outcomes: Counter[object] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(strategy)
    def run(example: Any) -> None:
        outcomes[check(example)] += 1

    run()
    return outcomes


def audit_specs() -> str:
    seen = _run(600, fuzz.specs, lambda spec: fuzz.check_spec_text(fuzz.toml(spec)))
    assert seen[True] > 20, f"hardly any spec was released: {seen}"
    return f"{seen[True]} were released, {seen[False]} refused before the charge"


def audit_data_files() -> str:
    cells = st.one_of(
        st.sampled_from(["yes", "no", "1", "", "A", '"', "NaN", "1e309", "9" * 40, "\x00"]), fuzz.texts
    )
    rows = st.lists(st.lists(cells, min_size=1, max_size=9).map(",".join), max_size=20).map("\n".join)
    header = "person,hyp,twice,meds,county,age,risk\n"
    specs = st.sampled_from([fuzz.COUNTS, fuzz.TABLE, fuzz.CURVE])

    def check(example: Any) -> bool:
        body, spec = example
        assert fuzz.check_data((header + body).encode("utf-8", "replace"), spec)
        return True

    seen = _run(200, st.tuples(rows, specs), check)
    return f"{seen[True]} files of any contents, all released"


def audit_order_files() -> str:
    contents = st.one_of(
        st.binary(max_size=200), st.text().map(str.encode), fuzz.values.map(fuzz.toml).map(str.encode)
    )
    endings = st.sampled_from([".csv", ".json", ".toml", ".txt"])
    seen = _run(3_000, st.tuples(contents, endings), lambda example: fuzz.check_order_file(*example))
    return f"{sum(seen.values())} files, read or refused"


def audit_manifests() -> str:
    with tempfile.TemporaryDirectory() as place:
        return _change_manifests(fuzz.saved_release(Path(place)))


def _change_manifests(folder: Path) -> str:
    paths = list(_paths(json.loads((folder / "manifest.json").read_text())))
    plain = st.one_of(
        fuzz.texts, st.none(), st.integers(), st.booleans(), st.sampled_from(["1e400", "1/0", "-1", "1e99999999"]),
        st.lists(fuzz.texts, max_size=3), st.dictionaries(fuzz.texts, st.integers(), max_size=2),
    )  # fmt: skip
    seen = _run(800, st.tuples(st.sampled_from(paths), plain), lambda x: fuzz.check_manifest(folder, *x))
    return f"{sum(seen.values())} changes of {len(paths)} entries, all noticed"


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield [*before, key]
        yield from _paths(item, (*before, key))
