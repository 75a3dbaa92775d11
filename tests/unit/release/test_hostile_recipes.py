"""Recipes that would keep whoever verifies them busy: refused by public limits before any work, as counted here."""

import contextlib

import numpy as np
import pyarrow as pa
import pytest
from tests.support import flat
from tests.support.forgeries import forged

import isotone as iso
from isotone.counts import relaxation
from isotone.errors import InputError
from isotone.order.bipartitions.counting import within_reach
from isotone.release import manifest as manifests
from isotone.release import verify
from isotone.release.manifest import LARGEST_ORDER, order_from, order_to
from isotone.tables import two_stage


@pytest.fixture
def counts(tmp_path):
    data = pa.table({"person": range(9), "a": [1, 0, 1] * 3})
    with iso.Ledger(tmp_path / "ledger", epsilon=1) as ledger:
        made = flat.counts(
            data, iso.Poset("a"), epsilon=1, ledger=ledger, unit="person", mechanism="PosetMechanism"
        )
    return made.save(tmp_path / "out", report=False)


def never(*_: object, **__: object) -> None:
    raise AssertionError("this work was not to be done")


def over(n: int, covers: list[list[str]]):
    def change(entries, columns):
        entries["description"]["order"] = {"elements": [f"e{i}" for i in range(n)], "covers": covers}
        for name in columns:
            columns[name] = [f"e{i}" for i in range(n)] if name == "element" else [0] * n

    return change


@pytest.mark.parametrize(("n", "covers"), [(LARGEST_ORDER + 1, 0), (2, 51)])
def test_an_order_beyond_the_limits_is_never_built(counts, monkeypatch, n, covers):
    monkeypatch.setattr(manifests, "MOST_COVERS", 50)
    folder = forged(counts, over(n, [["e0", "e1"]] * covers))
    monkeypatch.setattr(manifests, "Poset", never)
    verdict = verify(folder)
    assert not verdict["guarantee"].holds
    assert "too large for a release" in verdict["guarantee"].words
    assert not verdict["error"].holds


def test_what_others_could_not_verify_is_not_released(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "LARGEST_ORDER", 3)
    assert len(order_from(order_to(iso.Poset.chain("abc")))) == 3
    with iso.Ledger(tmp_path / "ledger", epsilon=1) as ledger:
        with pytest.raises(InputError, match="too large for a release"):
            flat.counts(
                pa.table({"person": [1], "item": ["x"]}),
                iso.Poset.antichain("abcd"),
                epsilon=1, ledger=ledger, unit="person", element="item", mechanism="LaplaceMechanism",
            )  # fmt: skip
        assert not ledger.charges()


@pytest.mark.parametrize("name", ["PosetMechanism", "BoundedPosetMechanism", "DifferenceBodyMechanism"])
def test_no_relaxation_is_searched_for_a_stranger(counts, monkeypatch, name):
    rng = np.random.default_rng(3)
    pairs = [(f"e{i}", f"e{j}") for i in range(90) for j in range(i + 1, 90) if rng.random() < 0.06]
    P = iso.Poset([f"e{i}" for i in range(90)], pairs)
    assert P.height > 2
    assert not within_reach(P.canonical.order)

    def change(entries, columns):
        over(90, [list(pair) for pair in pairs])(entries, columns)
        size = {"max_size": 5} if name == "BoundedPosetMechanism" else {}
        entries["mechanism"] = {"name": name, "epsilon": "1", "neighbours": "add-remove", **size}

    folder = forged(counts, change)
    monkeypatch.setattr(relaxation, "_RelaxationSearch", never)
    verdict = verify(folder)
    assert not verdict["guarantee"].holds
    assert "names no relaxation" in verdict["guarantee"].words


@pytest.mark.parametrize("upper", [10**6 + 1, 10**30, -1, 2.5, "9", True, [1]])
def test_no_table_is_computed_for_a_largest_count_beyond_the_limit(tmp_path, monkeypatch, upper):
    data = pa.table({"person": range(9), "c": ["x", "y", "x"] * 3})
    with iso.Ledger(tmp_path / "ledger", epsilon=1) as ledger:
        made = flat.table(
            data, category="c", categories=["x", "y"], upper=3, epsilon=1, ledger=ledger, unit="person"
        )

    def change(entries, columns):
        entries.update(upper=upper)
        entries["mechanism"].update(upper=upper)

    folder = forged(made.save(tmp_path / "out", report=False), change)
    monkeypatch.setattr(two_stage.TwoStageMechanism, "measurement", never)
    with contextlib.suppress(InputError):  # refused as no manifest of a table at all
        assert not verify(folder).holds
