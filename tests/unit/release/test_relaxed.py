"""Orders out of reach, through a whole release: what a search found is kept, and nobody searches again."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.support import flat
from tests.support.forgeries import forged
from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.counts import PosetMechanism, Relaxation
from isotone.counts import knorm as k_norm
from isotone.counts import relaxation as kept_draws
from isotone.counts import sampler as choosing
from isotone.counts import sampler as sources
from isotone.counts.sampler import Recent, Sampler
from isotone.errors import InputError, OrderError, SpecError
from isotone.release import load_spec, verify
from isotone.release.kinds.counts import kind as faults
from isotone.release.kinds.counts.columns import count_columns
from isotone.release.manifest import rebuild_count_mechanism
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
    iso.Ledger(tmp_path / "answers.ledger", epsilon=5).create()
    return tmp_path


def test_a_spec_names_what_was_found_and_the_manifest_keeps_it(desk):
    flat.with_spec(load_spec(desk / "spec.toml"))
    manifest = json.loads((desk / "out" / "manifest.json").read_text())
    assert Relaxation.from_plain(manifest["mechanism"]["relaxation"]).kept(P) == FOUND.kept(P)
    assert verify(desk / "out").holds, str(verify(desk / "out"))


def test_the_manifest_of_a_release_serves_the_next_spec(desk):
    flat.with_spec(load_spec(desk / "spec.toml"))
    text = SPEC.replace("found.json", "out/manifest.json").replace('folder = "out"', 'folder = "next"')
    (desk / "next.toml").write_text(text)
    spec = load_spec(desk / "next.toml")
    found = spec.description.relaxation  # pyright: ignore[reportAttributeAccessIssue]
    assert found is not None
    assert found.kept(P) == FOUND.kept(P)
    assert "partly relaxed" in str(spec.plan())


def test_the_contents_of_the_file_are_a_part_of_the_request(desk):
    spec = load_spec(desk / "spec.toml")
    before = spec.description.identity()
    (desk / "found.json").write_text(json.dumps(Relaxation.of([("a", "b")], restored=[]).plain()))
    after = spec.description.identity()
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
        flat.with_spec(load_spec(desk / "spec.toml"))
    assert iso.Ledger(desk / "answers.ledger").charges() == []


def test_python_takes_what_was_found_too(desk):
    with iso.Ledger(desk / "other.ledger", epsilon=1) as ledger:
        release = flat.counts(
            desk / "answers.csv", P, ledger=ledger, epsilon=1, mechanism="PosetMechanism", relaxation=FOUND
        )
    assert release.manifest["mechanism"]["relaxation"]["relations"] == [["a", "b"]]
    with (
        iso.Ledger(desk / "third.ledger", epsilon=1) as ledger,
        pytest.raises(InputError, match="relaxation"),
    ):
        flat.counts(
            desk / "answers.csv", P, ledger=ledger, epsilon=1, mechanism="LaplaceMechanism", relaxation=FOUND
        )


def test_a_manifest_that_claims_more_relations_than_the_order_has_does_not_hold(desk):
    flat.with_spec(load_spec(desk / "spec.toml"))
    path = desk / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["mechanism"]["relaxation"]["restored"].append(["e", "a"])
    path.write_text(json.dumps(manifest))
    assert not verify(desk / "out").holds


@pytest.fixture
def slow(monkeypatch):
    """Every draw that is rejected counts as slow, however small the order."""
    monkeypatch.setattr("isotone.counts.sampler.is_small", lambda _: False)
    monkeypatch.setattr(sources, "RARE", 1.1)
    monkeypatch.setattr(k_norm, "SECONDS", 0.0)
    monkeypatch.setattr(choosing, "_recent", Recent[Sampler](4))


def test_a_confidence_that_few_draws_cannot_tell_is_refused_before_any_is_drawn(desk, slow, monkeypatch):
    def nothing_is_drawn(*_args, **_kwargs):
        raise AssertionError("drawn")

    monkeypatch.setattr(kept_draws, "draw_at", nothing_is_drawn)
    monkeypatch.setattr(Sampler, "squares", property(nothing_is_drawn))
    (desk / "sure.toml").write_text(SPEC.replace("[output]", "[output]\nconfidence = 0.99"))
    with pytest.raises(
        InputError, match=r"0.99 cannot be known from 500 draws of the noise. Ask for 0.972 at most"
    ):
        flat.with_spec(load_spec(desk / "sure.toml"))
    assert iso.Ledger(desk / "answers.ledger").charges() == []
    made = PosetMechanism(P, 1, relaxation=FOUND)
    with pytest.raises(InputError, match="cannot be known"):
        made.half_widths(0.99)
    with pytest.raises(InputError, match="cannot be known"):
        made.simultaneous_half_width(0.99)


def test_verification_searches_for_slow_draws_only_when_asked(desk, slow, monkeypatch):
    flat.with_spec(load_spec(desk / "spec.toml"))
    sizes: list[int] = []
    real = kept_draws.draw_at

    def counted(made, size, *rest):
        sizes.append(size)
        return real(made, size, *rest)

    monkeypatch.setattr(kept_draws, "draw_at", counted)
    verdict = verify(desk / "out")
    assert verdict.holds, str(verdict)
    assert set(sizes) == {1}
    assert "--full" in verdict["error"].words
    sizes.clear()
    monkeypatch.setattr(choosing, "_recent", Recent[Sampler](4))
    verdict = verify(desk / "out", full=True)
    assert verdict.holds, str(verdict)
    assert set(sizes) == {k_norm.FEWEST}
    assert "--full" not in verdict["error"].words


def test_what_is_derived_from_a_slow_order_uses_the_draws_that_are_known(desk, slow, monkeypatch):
    """The first draw of a derived release is drawn again from where it begins; only a second one is searched for."""
    (desk / "spec.toml").write_text(SPEC.replace("[output]", "total = true\n[output]"))
    flat.with_spec(load_spec(desk / "spec.toml"))
    release = iso.load_release(desk / "out")
    searched: list[int] = []
    real = kept_draws.draw_at

    def counted(made, size, *rest):
        searched.extend([size] if size > 1 else [])
        return real(made, size, *rest)

    monkeypatch.setattr(kept_draws, "draw_at", counted)
    monkeypatch.setattr(choosing, "_recent", Recent[Sampler](4))
    given = release.given(records=2)
    given.share("a", of="b")
    given.consistent()
    release.shares(together=True)
    assert searched == []
    text = SPEC.replace("found.json", "out/manifest.json").replace('"out"', '"next"')
    (desk / "next.toml").write_text(text.replace("[output]", "total = true\n[output]"))
    other, _, _ = flat.with_spec(load_spec(desk / "next.toml"))
    searched.clear()
    release.change(other)
    assert searched == [k_norm.FEWEST]


def test_draws_that_were_left_out_are_found_by_full_verification(desk, slow, monkeypatch):
    """The widest draws are left out: the intervals follow from those listed, and only a search finds the others."""
    flat.with_spec(load_spec(desk / "spec.toml"))
    ((stream, words),) = iso.load_release(desk / "out").manifest["mechanism"]["relaxation"]["draws"].items()
    made = PosetMechanism(P, 1, relaxation=replace(FOUND, draws=((stream, tuple(words)),)))
    noise = np.abs(made._unrounded).max(axis=1)
    listed = [word for word, size in zip(words, noise, strict=True) if size < np.quantile(noise, 0.9)]

    def forge(manifest, columns):
        manifest["mechanism"]["relaxation"]["draws"] = {stream: listed}
        mechanism = rebuild_count_mechanism(P, manifest["mechanism"])
        widths = count_columns(mechanism, 0.95)
        columns["low"] = [
            max(v - w, 0) for v, w in zip(columns["value"], widths["alone"].tolist(), strict=True)
        ]
        columns["high"] = [
            max(v + w, 0) for v, w in zip(columns["value"], widths["alone"].tolist(), strict=True)
        ]
        columns["low_all"] = [max(v - int(widths["together"][0]), 0) for v in columns["value"]]
        columns["high_all"] = [max(v + int(widths["together"][0]), 0) for v in columns["value"]]

    folder = forged(desk / "out", forge)
    monkeypatch.setattr(choosing, "_recent", Recent[Sampler](4))
    verdict = verify(folder, full=True)
    assert verdict["content"].holds
    assert not verdict["error"].holds


def test_intervals_that_noise_leaves_too_often_do_not_hold(desk, slow):
    """Whatever draws a manifest lists, noise must keep within the intervals."""
    flat.with_spec(load_spec(desk / "spec.toml"))
    assert verify(desk / "out")["error"].holds
    made = rebuild_count_mechanism(P, iso.load_release(desk / "out").manifest["mechanism"])
    widths = count_columns(made, 0.95)
    assert faults._keeps_within(made, widths, 0.95)
    for name in ("alone", "together"):
        assert not faults._keeps_within(made, {**widths, name: widths[name] // 3}, 0.95)


def test_a_plan_writes_what_it_found_for_the_next_spec(desk):
    text = SPEC.replace('relaxation = "found.json"\n', "")
    (desk / "plain.toml").write_text(text)
    with pytest.raises(InputError, match="within exact reach"):
        load_spec(desk / "plain.toml").plan().write_found(desk / "new.json")
    assert not (desk / "new.json").exists()
    found = CliRunner().invoke(app, ["plan", str(desk / "spec.toml"), "--found", str(desk / "new.json")])
    assert found.exit_code == 0, found.output
    again = read_relaxation(desk / "new.json")
    assert again.kept(P) == FOUND.kept(P)
    assert again.order(P) == FOUND.order(P)
