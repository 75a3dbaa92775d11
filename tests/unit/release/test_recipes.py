"""Every mechanism for counts, through a whole release and back: what a stranger rebuilds is what was used."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.counts.count_plan import count_mechanisms
from isotone.errors import InputError
from isotone.release import load_release, verify
from isotone.release.kinds.counts import description
from isotone.release.kinds.counts import kind as counts_kind
from isotone.release.kinds.kind import TOLERANCES, kind_named
from isotone.release.manifest import order_from, rebuild_count_mechanism, recipe_of

P = iso.Poset(["a", "b", "c", "d"], [("a", "b"), ("b", "d"), ("c", "d")])
CHAIN = iso.Poset.chain(["a", "b", "c", "d"])
HIERARCHY = iso.Poset.from_mapping({"a": "d", "b": "d", "c": "d"}, children="partition")
ANSWERS = pd.DataFrame(
    {
        "person": [1, 1, 2, 3],
        "region": ["x", "y", "y", "elsewhere"],
        "a": [0, 1, 0, 1],
        "b": [1, 1, 0, 1],
        "c": [0, 0, 1, 1],
        "d": [1, 1, 1, 1],
    }
)
PURE: dict[str, Any] = {"epsilon": 1}
APPROXIMATE: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}
CONCENTRATED: dict[str, Any] = {"rho": "0.5"}
GUARANTEES = {
    "PosetMechanism": [PURE],
    "LaplaceMechanism": [PURE],
    "DiscreteLaplaceMechanism": [PURE],
    "LInfinityMechanism": [PURE],
    "HierarchicalMechanism": [PURE],
    "MatrixMechanism": [PURE],
    "BoundedPosetMechanism": [PURE],
    "DifferenceBodyMechanism": [PURE],
    "GroupedDifferenceMechanism": [PURE],
    "GaussianMechanism": [APPROXIMATE, CONCENTRATED],
    "DiscreteGaussianMechanism": [APPROXIMATE, CONCENTRATED],
    "OrderGaussianMechanism": [APPROXIMATE, CONCENTRATED],
    "TreeFieldMechanism": [PURE],
    "TreeGaussianMechanism": [APPROXIMATE, CONCENTRATED],
    "TreeLaplaceMechanism": [PURE],
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"max_size": 2},
    {"neighbours": "replace"},
    {"contributions": 2, "unit": "person"},
    {"by": "region", "groups": ["x", "y"]},
    {"by": "region", "groups": ["x", "y"], "neighbours": "replace"},
    {"total": True},
]
NEEDS_BOUND = {"BoundedPosetMechanism"}
REFUSES_BOUND = {
    "PosetMechanism",
    "DifferenceBodyMechanism",
    "GroupedDifferenceMechanism",
    "LInfinityMechanism",
    "HierarchicalMechanism",
    "MatrixMechanism",
    "TreeFieldMechanism",
    "TreeGaussianMechanism",
    "TreeLaplaceMechanism",
}
HAS_TOTAL = {"PosetMechanism", "OrderGaussianMechanism"}


_READ: dict[Any, Any] = {}


@pytest.fixture(autouse=True)
def _read_once(monkeypatch):
    """The same rows by the same rules are counted once: reading is not what is tried here, and takes the longest."""
    count = description.count_records

    def counted(source, frame, order, rules, groups):
        asked = str(frame.collect_schema()), order, repr(rules), repr(groups)
        if asked not in _READ:
            _READ[asked] = count(source, frame, order, rules, groups)
        return _READ[asked]

    monkeypatch.setattr(description, "count_records", counted)


def settings_of(name: str) -> list[dict[str, Any]]:
    if name in NEEDS_BOUND:
        return [{"max_size": 2, **setting} for setting in SETTINGS if "total" not in setting]
    return [
        setting
        for setting in SETTINGS
        if not ("max_size" in setting and name in REFUSES_BOUND)
        and not ("total" in setting and name not in HAS_TOTAL)
        and not ("by" not in setting and name == "GroupedDifferenceMechanism")
    ]


def released(folder, name: str, guarantee: dict[str, Any], setting: dict[str, Any]):
    fixed = {key: setting[key] for key in ("neighbours", "unit") if key in setting}
    order = HIERARCHY if name.startswith("Tree") else CHAIN if name == "HierarchicalMechanism" else P
    with iso.Ledger(folder / "answers.ledger", **guarantee, **fixed) as ledger:
        return flat.counts(ANSWERS, order, ledger=ledger, mechanism=name, **guarantee, **setting)


CASES = [
    (name, guarantee, setting)
    for name, guarantees in GUARANTEES.items()
    for guarantee in guarantees
    for setting in settings_of(name)
]


def test_no_mechanism_is_left_out():
    simulated_only = {"L2Mechanism", "LpMechanism", "FixedRootMechanism"}  # the last: test_fixed_root.py
    assert set(count_mechanisms()) == set(GUARANTEES) | simulated_only


@pytest.mark.parametrize(("name", "guarantee", "setting"), CASES)
def test_a_release_by_any_mechanism_can_be_rebuilt_and_verified(tmp_path, name, guarantee, setting):
    release = released(tmp_path, name, guarantee, setting)
    release.save(tmp_path / "out", report=False)
    verdict = verify(tmp_path / "out")
    assert verdict.holds, str(verdict)
    manifest = json.loads(json.dumps(load_release(tmp_path / "out").manifest.plain()))
    rebuilt = rebuild_count_mechanism(order_from(manifest["description"]["order"]), manifest["mechanism"])
    assert type(rebuilt).__name__ == name
    assert recipe_of(rebuilt) == manifest["mechanism"]
    repeat = len(setting.get("groups", [0]))
    np.testing.assert_allclose(np.tile(rebuilt.error().sd, repeat), release.columns["sd"], rtol=0.02)


@pytest.mark.parametrize("guarantee", [PURE, APPROXIMATE, CONCENTRATED])
@pytest.mark.parametrize("max_size", [None, 2, 4])
def test_what_the_plan_picks_can_be_verified_too(tmp_path, guarantee, max_size):
    with iso.Ledger(tmp_path / "answers.ledger", **guarantee) as ledger:
        release = flat.counts(ANSWERS, P, ledger=ledger, max_size=max_size, **guarantee)
    release.save(tmp_path / "out", report=False)
    assert verify(tmp_path / "out").holds, str(verify(tmp_path / "out"))


def test_noise_for_shorter_records_than_were_counted_is_found_by_a_stranger(tmp_path):
    from isotone.release.result import seal

    honest = released(tmp_path, "LaplaceMechanism", PURE, {"max_size": 2})
    manifest = {key: value for key, value in honest.manifest.items() if key != "content_hash"}
    for size, holds in ((2, True), (1, False), (3, False), (None, False)):
        forged = seal(
            honest.columns, {**manifest, "description": {**manifest["description"], "max_size": size}}
        )
        forged.save(tmp_path / f"out{size}", report=False)
        assert verify(tmp_path / f"out{size}").holds == holds


@pytest.mark.parametrize("name", sorted(HAS_TOTAL))
def test_the_number_of_records_comes_with_its_own_error(tmp_path, name):
    release = released(tmp_path, name, GUARANTEES[name][0], {"total": True})
    assert isinstance(release.total, int)
    assert release.manifest["total_sd"] > 0
    release.save(tmp_path / "out")
    fact = f"<b>{release.total:,}</b><span>records in all, noisy too (typical error {release.manifest['total_sd']:.3g})"
    assert fact in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(set(GUARANTEES) - HAS_TOTAL - NEEDS_BOUND))
def test_the_number_of_records_is_refused_where_noise_does_not_cover_it(tmp_path, name):
    grouped = SETTINGS[4] if name == "GroupedDifferenceMechanism" else {}
    with pytest.raises(InputError, match="does not give the number of records for free"):
        released(tmp_path, name, GUARANTEES[name][0], {"total": True, **grouped})


def test_a_number_of_records_that_the_noise_does_not_cover_is_found_by_a_stranger(tmp_path):
    """Sealed by its publisher, but not private: the guarantee does not follow from the mechanism."""
    from isotone.release.result import seal

    honest = released(tmp_path, "LaplaceMechanism", PURE, {})
    manifest = {key: value for key, value in honest.manifest.items() if key != "content_hash"}
    forged = seal(
        honest.columns,
        {**manifest, "description": {**manifest["description"], "total": True}, "total": 4, "total_sd": 1.0},
    )
    forged.save(tmp_path / "out", report=False)
    failed = [check for check in verify(tmp_path / "out").checks if not check.holds]
    assert "guarantee" in [check.name for check in failed]
    assert "does not cover the number of records" in str(verify(tmp_path / "out"))


@pytest.mark.parametrize("groups", [None, ["x", "y"]])
def test_noise_for_other_groups_than_those_released_is_refused_with_both_numbers(
    tmp_path, monkeypatch, groups
) -> None:
    given = {} if groups is None else {"by": "region", "groups": groups}
    release = flat.counts(ANSWERS, P, epsilon=1, ledger=iso.Ledger(tmp_path / "l", epsilon=9), **given)
    kind: Any = kind_named(release.kind)
    grouped = SimpleNamespace(
        guarantee=kind.derived_guarantee(release), groups=3, release_rows=list, group_law=list
    )
    monkeypatch.setattr(type(kind), "rebuild", lambda *_: grouped)
    monkeypatch.setattr(counts_kind, "_require_described", lambda *_: None)
    with pytest.raises(InputError, match=f"for 3 groups, and {'none' if groups is None else 2} are released"):
        kind.derived_guarantee(release)


def test_the_error_of_a_total_is_known_as_well_as_that_of_the_elements() -> None:
    """A relative error: also where the standard deviations are small."""
    for sd in (0.2, 40.0):
        error = SimpleNamespace(sd=np.full(2, sd), standard_error=np.full(2, 0.02 * sd * sd))
        mechanism: Any = SimpleNamespace(
            total_variance=lambda sd=sd: (2 * sd) ** 2, error=lambda error=error: error
        )
        room = (
            TOLERANCES["error"].errors * 0.01
        )  # a standard error of the variance of 2 % is one of the deviation of 1 %
        for share, faults in ((0.9 * room, 0), (-0.9 * room, 0), (1.2 * room, 1), (-1.2 * room, 1)):
            entries = {"total": 7, "total_sd": 2 * sd * (1 + share)}
            assert len(counts_kind._total_faults(entries, mechanism, 1, False)) == faults
