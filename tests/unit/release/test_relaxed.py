"""Orders out of reach, through a whole release: what a search found is kept, and nobody searches again."""

import json

import pytest

import isotone as iso
from isotone.counts import Relaxation
from isotone.counts.sampling import choosing
from isotone.errors import InputError, OrderError, SpecError
from isotone.release import load_spec, plan_spec, release_spec, verify
from isotone.release.kinds.counts.section import Order
from isotone.release.order_files import read_relaxation

ELEMENTS = ["a", "b", "c", "d", "e"]
RELATIONS = [("a", "b"), ("b", "c"), ("d", "c"), ("d", "e")]
P = iso.Poset(ELEMENTS, RELATIONS)
FOUND = Relaxation.of([("a", "b")], restored=[("d", "e")])
SPEC = """
[data]
path = "answers.csv"
[privacy]
epsilon = 1
ledger = "answers.ledger"
[order]
elements = ["a", "b", "c", "d", "e"]
relations = [["a", "b"], ["b", "c"], ["d", "c"], ["d", "e"]]
mechanism = "PosetMechanism"
relaxation = "found.json"
[output]
folder = "out"
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A spec, its data and what was found, in a place where searches fail."""

    def no_search(*_args, **_kwargs):
        raise AssertionError("what was found is at hand")

    monkeypatch.setattr(choosing, "relax", no_search)
    (tmp_path / "answers.csv").write_text("a,b,c,d,e\n1,1,1,0,0\n0,0,1,1,1\n")
    (tmp_path / "found.json").write_text(json.dumps(FOUND.plain()))
    (tmp_path / "spec.toml").write_text(SPEC)
    iso.Ledger(tmp_path / "answers.ledger", epsilon=5)
    return tmp_path


def test_a_spec_names_what_was_found_and_the_manifest_keeps_it(desk):
    release_spec(load_spec(desk / "spec.toml"))
    manifest = json.loads((desk / "out" / "manifest.json").read_text())
    assert Relaxation.from_plain(manifest["mechanism"]["relaxation"]).kept(P) == FOUND.kept(P)
    assert verify(desk / "out").holds, str(verify(desk / "out"))


def test_the_manifest_of_a_release_serves_the_next_spec(desk):
    release_spec(load_spec(desk / "spec.toml"))
    text = SPEC.replace("found.json", "out/manifest.json").replace('folder = "out"', 'folder = "next"')
    (desk / "next.toml").write_text(text)
    spec = load_spec(desk / "next.toml")
    found = spec.said(Order).found(spec.resolve)
    assert found is not None
    assert found.kept(P) == FOUND.kept(P)
    assert "partly relaxed" in str(plan_spec(spec))


def test_the_contents_of_the_file_are_a_part_of_the_request(desk):
    spec = load_spec(desk / "spec.toml")
    before = spec.said(Order).content(spec.resolve)
    (desk / "found.json").write_text(json.dumps(Relaxation.of([("a", "b")], restored=[]).plain()))
    after = spec.said(Order).content(spec.resolve)
    assert before["relaxation"] == FOUND.plain()
    assert before != after


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"mechanism": {"name": "x"}}', '{"relations": [["a"]]}'])
def test_a_file_without_a_relaxation_is_refused(tmp_path, text):
    (tmp_path / "found.json").write_text(text)
    with pytest.raises(SpecError, match="no relaxation"):
        read_relaxation(tmp_path / "found.json")
    with pytest.raises(SpecError, match="no relaxation"):
        read_relaxation(tmp_path / "missing.json")


def test_what_was_found_for_another_order_is_refused_before_anything_is_charged(desk):
    (desk / "found.json").write_text(json.dumps({"relations": [["b", "a"]]}))
    with pytest.raises(OrderError, match="'b' implies 'a'"):
        release_spec(load_spec(desk / "spec.toml"))
    assert iso.Ledger(desk / "answers.ledger").charges() == []


def test_python_takes_what_was_found_too(desk):
    with iso.Ledger(desk / "other.ledger", epsilon=1) as ledger:
        release = iso.release_counts(
            desk / "answers.csv", P, ledger=ledger, epsilon=1, mechanism="PosetMechanism", relaxation=FOUND
        )
    assert release.manifest["mechanism"]["relaxation"]["relations"] == [["a", "b"]]
    with (
        iso.Ledger(desk / "third.ledger", epsilon=1) as ledger,
        pytest.raises(InputError, match="relaxation"),
    ):
        iso.release_counts(
            desk / "answers.csv", P, ledger=ledger, epsilon=1, mechanism="LaplaceMechanism", relaxation=FOUND
        )


def test_a_manifest_that_claims_more_relations_than_the_order_has_does_not_hold(desk):
    release_spec(load_spec(desk / "spec.toml"))
    path = desk / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["mechanism"]["relaxation"]["restored"].append(["e", "a"])
    path.write_text(json.dumps(manifest))
    assert not verify(desk / "out").holds
