"""Auditing specs and names: no data, no ledger, a verdict in words."""

from typing import Any

import pytest
from tests.support import fuzz
from tests.support.effort import CLOSELY, effort

from isotone import counts
from isotone.audit import black_box
from isotone.audit.exact import ExactFinding, audit_count_mechanism
from isotone.errors import InputError
from isotone.order import Poset
from isotone.reading import sources as formats
from isotone.release import audit_name, load_spec

SPECS: dict[str, dict[str, Any]] = {
    "counts": fuzz.COUNTS,
    "counts, replace": {**fuzz.COUNTS, "privacy": {**fuzz.COUNTS["privacy"], "neighbours": "replace"}},
    "counts, several records": {**fuzz.COUNTS, "data": {**fuzz.COUNTS["data"], "contributions": 3}},
    "counts, short records": {
        **fuzz.COUNTS,
        "order": {**fuzz.COUNTS["order"], "max_size": 2, "mechanism": "LaplaceMechanism"},
    },
    "counts by groups": {
        **fuzz.COUNTS,
        "order": {**fuzz.COUNTS["order"], "by": {"county": ["A", "B"]}},
    },
    "counts, zCDP": {
        **fuzz.COUNTS,
        "privacy": {"rho": "0.5", "ledger": "x.ledger"},
        "order": {"parents": {"twice": "hyp", "meds": "hyp"}, "mechanism": "OrderGaussianMechanism"},
    },
    "table, replace, several counts": {
        **fuzz.TABLE,
        "privacy": {**fuzz.TABLE["privacy"], "neighbours": "replace"},
        "data": {**fuzz.TABLE["data"], "contributions": 5},
    },
    "curve": {**fuzz.CURVE, "curve": {**fuzz.CURVE["curve"], "method": "bins"}},
    "curve, replace, several records": {
        **fuzz.CURVE,
        "privacy": {**fuzz.CURVE["privacy"], "neighbours": "replace"},
        "data": {**fuzz.CURVE["data"], "contributions": 2},
    },
}

QUICKER: dict[str, dict[str, Any]] = {
    "table, replace, several counts": {"table": {"emphasis": "counts"}, "privacy": {"epsilon": "20"}},
    "curve, replace, several records": {"curve": {"method": "bins"}},
}
"""Choices that are estimated in a hundredth of the time; make audit takes the usual ones."""


def spec_of(name: str) -> dict[str, Any]:
    choices = {} if CLOSELY else QUICKER.get(name, {})
    return SPECS[name] | {part: SPECS[name][part] | choice for part, choice in choices.items()}


@pytest.fixture(autouse=True)
def _rarely_wrong(monkeypatch):
    """Draws are from cryptographic bits: an honest mechanism is called broken once in 1e9 times, not in a thousand."""
    monkeypatch.setitem(black_box.audit.__kwdefaults__, "confidence", 1 - 1e-9)


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_is_audited_without_data_and_without_a_ledger(tmp_path, monkeypatch, name):
    def never(*_):
        raise AssertionError("the data was opened")

    monkeypatch.setattr(formats, "_open_path", never)
    (tmp_path / "spec.toml").write_text(fuzz.toml(spec_of(name)), encoding="utf-8")
    done: list[float] = []
    report = load_spec(tmp_path / "spec.toml").audit(
        trials=effort(300, 1_000), progress=lambda share, _: done.append(share)
    )
    assert not report.broken
    assert "no evidence above" in str(report)
    assert done == sorted(done)
    assert done[-1] == 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"]
    assert len(report.plain()["findings"]) == (2 if name.startswith("counts") else 1)


def test_a_search_of_the_density_comes_first_and_chooses_the_neighbours():
    report = audit_name("PosetMechanism", trials=300)
    exact, drawn = report.findings
    assert str(report).startswith("by its density: claims ε = 1; kept at every output searched")
    assert "by draws: claims ε = 1; no evidence above 1 (lower bound " in str(report)
    assert exact.claimed == drawn.claimed == 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_unit_changes_all_its_contributions_and_the_whole_loss_is_found(neighbours):
    mechanism = counts.DiscreteLaplaceMechanism(Poset.antichain("ab"), 1, neighbours, contributions=3)
    exact = audit_count_mechanism(mechanism, 300, lambda *_: None).findings[0]
    assert isinstance(exact, ExactFinding)
    assert exact.loss == pytest.approx(1)


@pytest.mark.parametrize("name", [name for name in counts.__all__ if name.endswith("Mechanism")])
def test_every_mechanism_can_be_audited_by_its_name(name):
    assert not audit_name(name, trials=300).broken


def test_what_is_not_there_is_refused():
    with pytest.raises(InputError, match="did you mean"):
        audit_name("PosetMechanisms")
