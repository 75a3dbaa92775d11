"""Derived releases: given a public number of records, made consistent, combined; from the folder alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.derived import DATA, SIZE, P, made, refused
from tests.support.forgeries import forged
from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.counts import PosetMechanism
from isotone.errors import InputError
from isotone.release import Release, load_release, verify
from isotone.release.kinds.counts.report import CountsPage

GROUPS: dict[str, Any] = {"by": "region", "groups": ["north", "south"]}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("derived")
    ledger = iso.Ledger(folder / "survey", epsilon=100)
    found = {
        "one": made(ledger),
        "half": made(ledger, epsilon="1/2"),
        "groups": made(ledger, DATA, **GROUPS),
        "gauss": made(
            iso.Ledger(folder / "rho", rho=9), epsilon=None, rho=1, mechanism="OrderGaussianMechanism"
        ),
        "laplace": made(ledger, total=False, mechanism="LaplaceMechanism"),
    }
    found["given"] = found["one"].given(records=SIZE)
    found["given groups"] = found["groups"].given(records={"south": 250, "north": 150}, after_rules=True)
    found["consistent"] = found["one"].consistent()
    found["combined"] = iso.combine([found["given"], found["half"]])
    found["all"] = iso.combine([found["one"], found["half"], found["laplace"]]).consistent()
    for name, release in found.items():
        release.save(folder / name)
    return folder, found


DERIVED = ["given", "given groups", "consistent", "combined", "all"]


@pytest.mark.parametrize("name", DERIVED)
def test_derived_releases_verify_from_their_folder_and_their_ledger(shelf, name):
    folder, _ = shelf
    verdict = verify(folder / name, ledger=folder / "survey")
    assert verdict.holds, str(verdict)
    assert verdict["report"].checked
    assert verdict["ledger"].checked


@pytest.mark.parametrize("name", ["one", *DERIVED])
def test_a_stranger_gets_the_same_answers_from_the_folder(shelf, name):
    folder, found = shelf
    read, group = load_release(folder / name), "south" if "groups" in name else None
    for ask in (
        lambda r: r.share("meds", of="hyp", group=group),
        lambda r: r.contrast({"hyp": 1, "meds": -1}, group=group),
        lambda r: r.rank("meds", group=group),
        lambda r: r.shares(together=True, group=group),
        lambda r: r.sum("hyp"),
    ):
        assert ask(read) == ask(found[name])


FORGERIES: list[tuple[str, str, Any]] = [
    ("a value", "given", lambda m, c: c["value"].__setitem__(0, c["value"][0] + 1)),
    ("a smaller sd", "given", lambda m, c: c.update(sd=[x * 0.9 for x in c["sd"]])),
    ("a nearer end", "given", lambda m, c: c["low"].__setitem__(0, c["low"][0] + 1)),
    ("another number of records", "given", lambda m, c: m["derived"].update(records=SIZE + 9)),
    ("a kinder guarantee", "given", lambda m, c: m["derived"].update(promise="nothing changes")),
    ("the raw values", "given", lambda m, c: c["raw"].__setitem__(0, 0)),
    ("an origin", "given", lambda m, c: m["derived"]["of"][0]["values"].__setitem__(0, 0)),
    (
        "the origin's guarantee",
        "given",
        lambda m, c: m["derived"]["of"][0]["manifest"]["mechanism"].update(epsilon="2"),
    ),
    (
        "the origin's title",
        "given",
        lambda m, c: m["derived"]["of"][0]["manifest"]["stated"].update(title="another"),
    ),
    ("the order of consistent values", "consistent", lambda m, c: c.update(value=[0, 5, 5])),
    ("the way of deriving", "consistent", lambda m, c: m["derived"].update(how="magic")),
    ("half of the costs", "combined", lambda m, c: m["guarantee"].update(epsilon="1")),
    ("the list of costs", "combined", lambda m, c: m["derived"]["costs"].clear()),
    ("one part twice", "combined", lambda m, c: m["derived"]["of"].append(m["derived"]["of"][1])),
    ("no word about deriving", "consistent", lambda m, c: m.pop("derived")),
    ("nothing to derive from", "combined", lambda m, c: m["derived"].update(of=[])),
]


@pytest.mark.parametrize(("what", "name", "change"), FORGERIES, ids=[f"{n}: {w}" for w, n, _ in FORGERIES])
def test_forged_derivations_that_were_sealed_anew_are_caught(shelf, tmp_path, what, name, change):
    copy = Path(shutil.copytree(shelf[0] / name, tmp_path / "copy"))
    (copy / "report.html").unlink()
    verdict = verify(forged(copy, change))
    assert not verdict.holds, what


def test_other_weights_than_those_of_the_values_are_caught(tmp_path):
    """Of forty releases with much noise one at least has other values by other weights, but for a chance below 1e-9."""
    ledger = iso.Ledger(tmp_path / "ledger", epsilon=99)
    data = pa.table({"id": range(8), "hyp": [1] * 8, "twice": [1] * 8, "meds": [1] * 8})
    found: dict[str, Any] = {}
    for _ in range(40):
        release = iso.Counts(P, unit="id").release(data, epsilon="0.1", ledger=ledger)
        found = {weights: release.consistent(weights=weights) for weights in ("variance", "covariance")}
        if found["variance"].columns["value"] != found["covariance"].columns["value"]:
            break
    for weights, other in (("variance", "covariance"), ("covariance", "variance")):
        found[weights].save(tmp_path / weights)
        assert verify(tmp_path / weights).holds
        assert not verify(
            forged(tmp_path / weights, lambda m, c, w=other: m["derived"].update(weights=w))
        ).holds


def test_a_public_number_of_records_takes_noise_off(shelf):
    _, found = shelf
    one, given = found["one"], found["given"]
    m = PosetMechanism(P, 1)
    slope = m.total_covariance().variance / m.total_variance()
    off = one.total - SIZE
    assert given.value == pytest.approx(one.value - slope * off, abs=1e-4)
    assert given.sd**2 == pytest.approx(one.sd**2 - slope**2 * m.total_variance(), abs=1e-3)
    assert np.all(given.sd < 0.8 * one.sd)
    assert np.all(given.high - given.low < one.high - one.low)
    assert given.columns["raw"] == one.columns["value"]
    assert given.total is None
    assert given.guarantee == one.guarantee
    assert "ε = 2, replace" in given.manifest["derived"]["promise"]
    assert given.manifest["derived"]["covariance_error"] == 0  # the order is series-parallel
    assert given.share("hyp").value == pytest.approx(given.value[0] / SIZE, abs=1e-6)


def test_a_number_of_records_must_count_as_the_rules_do(shelf, tmp_path):
    _, found = shelf
    ledger = iso.Ledger(tmp_path / "ledger", epsilon=99)
    for options, reason in (
        ({"on_violation": "drop"}, "are dropped"),
        ({"data": DATA, "unit": "person"}, "without a unit"),
        ({"data": DATA, **GROUPS}, "not listed"),
        ({"data": DATA, "unit": "person", "contributions": 2}, "without a unit"),
    ):
        release = made(ledger, unit_name="person", **options)
        records: Any = {"north": 150, "south": 250} if "by" in options else SIZE
        refused(reason, release.given, records=records)
        assert release.given(records=records, after_rules=True).manifest["derived"]["after_rules"] is True
        group = "north" if "by" in options else None
        refused(reason, release.share, "hyp", records=SIZE, group=group)
        assert release.share("hyp", records=SIZE, group=group, after_rules=True).high <= 1
    for bad in (-1, 1.5, "400", None, True, {"north": 1}, float("nan")):
        refused("records", found["one"].given, records=bad)
    refused(
        "one number for each group", lambda: found["groups"].given(records={"north": 1}, after_rules=True)
    )
    refused("total=True", found["laplace"].given, records=SIZE)
    refused("after_rules", found["one"].given, records=SIZE, after_rules="yes")
    refused("call given\\(\\) first", found["consistent"].given, records=SIZE)
    with pytest.raises(TypeError):
        found["one"].given()


def test_shares_need_a_number_of_records_or_a_whole(shelf):
    _, found = shelf
    refused("has no number of records", found["laplace"].share, "hyp")
    assert found["laplace"].share("hyp", records=SIZE).value == pytest.approx(
        found["laplace"].value[0] / SIZE
    )
    refused("did you mean 'meds'", found["one"].share, "mds", of="hyp")
    refused("two different", found["one"].share, "hyp", of="hyp")
    refused("leave of= out", found["one"].share, "meds", of="hyp", records=SIZE)
    refused("Which group", found["groups"].share, "meds", of="hyp")
    refused("no group 'west'", found["groups"].share, "meds", of="hyp", group="west")
    refused("no groups", found["one"].share, "meds", of="hyp", group="south")
    refused("does not imply", found["one"].shares, [("hyp", "meds")], together=True)
    for bad in (2, 0, "high", float("nan")):
        refused("confidence", found["one"].share, "meds", of="hyp", confidence=bad)


def test_contrasts_take_numbers_by_name(shelf):
    _, found = shelf
    one = found["one"]
    assert one.contrast({"hyp": 1, "twice": -1}).value == one.value[0] - one.value[1]
    assert (
        one.contrast({"hyp": np.int8(100), "twice": np.float32(-2)}).value
        == 100 * one.value[0] - 2 * one.value[1]
    )
    for bad in ({}, {"hyp": "1"}, {"hyp": float("inf")}, {"hyp": True}, ["hyp"], {"nobody": 1}, {("a",): 1}):
        refused("contrast|coefficient|not an element", one.contrast, bad)


def test_the_same_draw_is_never_counted_twice(shelf):
    _, found = shelf
    for pair in (
        ["one", "one"],
        ["one", "given"],
        ["consistent", "given"],
        ["combined", "half"],
        ["all", "one"],
    ):
        refused("same draw twice", iso.combine, [found[name] for name in pair])
    refused("same draw twice", found["one"].change, found["given"])
    refused("two or more", iso.combine, [found["one"]])


def test_what_counts_other_things_is_not_combined(shelf, tmp_path):
    _, found = shelf
    ledger = iso.Ledger(tmp_path / "other", epsilon=99)
    people, homes = (iso.Ledger(tmp_path / name, epsilon=99) for name in ("people", "homes"))
    swaps = iso.Ledger(tmp_path / "swaps", epsilon=99, neighbours="replace")
    one = found["one"]
    for other, reason in (
        (made(people, DATA, unit="person"), "unit"),
        (made(ledger, answers=iso.Answers(yes=("2",))), "yes"),
        (made(ledger, answers=iso.Answers(missing="yes")), "missing"),
        (made(ledger, on_violation="drop"), "on_violation"),
        (made(homes, unit_name="household"), "units"),
        (made(swaps, neighbours="replace"), "neighbours"),
        (made(ledger, DATA, **GROUPS), "groups"),
        (made(ledger, order=iso.Poset(["hyp", "twice"], [])), "differ about"),
        (made(ledger, order=iso.Poset(["hyp", "twice"], [("twice", "hyp")])), "follows_order"),
    ):
        refused(reason, iso.combine, [one, other])


def test_overlapping_orders_are_combined_by_their_covariances(shelf, tmp_path):
    _, found = shelf
    other = made(
        iso.Ledger(tmp_path / "other", epsilon=99),
        order=iso.Poset(["twice", "hyp"], [("twice", "hyp")]),
        epsilon=2,
    )
    both = iso.combine([found["one"], other], follows_order=True)
    assert both.columns["element"] == ("hyp", "twice", "meds")
    assert np.all(both.sd < found["one"].sd)  # meds too, which the other does not count
    assert both.manifest["derived"]["costs"].keys() == {"survey", "other"}
    assert both.manifest["derived"]["covariance_error"] == 0  # both orders are series-parallel
    assert both.guarantee.epsilon == 2  # listed apart, not added: the larger of two data sets
    both.save(tmp_path / "both")
    assert verify(tmp_path / "both").holds


def test_weights_of_one_mechanism_are_squares_of_epsilon(shelf):
    _, found = shelf
    one, half = found["one"], found["half"]
    both = iso.combine([one, half])
    assert both.value == pytest.approx(0.8 * one.value + 0.2 * half.value, abs=1e-4)
    assert both.sd == pytest.approx(np.sqrt(0.8) * one.sd, abs=1e-3)
    assert both.manifest["derived"]["covariance_error"] == 0  # no covariance was needed
    assert both.guarantee.epsilon == 1 + half.guarantee.epsilon  # one data set: costs are added
    assert both.total == pytest.approx(0.8 * one.total + 0.2 * half.total, abs=1e-4)


def test_a_combination_has_the_noise_of_independent_draws(shelf):
    """Of two draws of one size each interval is shorter by √2; with one stream for both it would be as long as before."""
    _, found = shelf
    twin = made(iso.Ledger(shelf[0] / "twin", epsilon=9), epsilon=1)
    both = iso.combine([found["one"], twin])
    level = {"confidence": 0.95}
    one, two = (r.contrast({"hyp": 1, "twice": -0.3}, **level) for r in (found["one"], both))
    assert 0.6 < (two.high - two.low) / (one.high - one.low) < 0.85
    nested = iso.combine([both, made(iso.Ledger(shelf[0] / "third", epsilon=9), epsilon=1)])
    three = nested.contrast({"hyp": 1, "twice": -0.3}, **level)
    # 0.58 for three draws, 0.75 if two of them were one
    assert 0.5 < (three.high - three.low) / (one.high - one.low) < 0.68


def test_changes_are_from_the_first_to_the_second(shelf):
    _, found = shelf
    change = found["one"].change(found["half"])
    assert list(change) == ["hyp", "twice", "meds"]
    assert change["hyp"].value == found["half"].value[0] - found["one"].value[0]
    assert change["hyp"] == found["one"].change(found["half"], "hyp")
    alone = [r.contrast({"hyp": 1}) for r in (found["one"], found["half"])]
    assert change["hyp"].high - change["hyp"].low < sum(each.high - each.low for each in alone)


def test_groups_are_summed_with_a_draw_for_each(shelf):
    _, found = shelf
    total = found["groups"].sum("hyp")
    assert total.value == found["groups"].value[0] + found["groups"].value[3]
    one = found["groups"].contrast({"hyp": 1}, group="north")
    width = one.high - one.low
    assert 1.2 * width < total.high - total.low < 1.7 * width  # independent, so about √2 times as wide


def test_consistent_values_lie_in_intervals_that_hold_at_once(shelf):
    _, found = shelf
    mended = found["consistent"]
    assert np.all(mended.low <= mended.value)
    assert np.all(mended.value <= mended.high)
    assert mended.columns["low"] == mended.columns["low_all"]
    assert mended.consistent() is mended
    by_covariance = found["gauss"].consistent(weights="covariance", integers=False)
    assert np.all(by_covariance.value[1:] <= by_covariance.value[0] + 1e-9)
    refused("weights", found["one"].consistent, weights="none")


def test_population_figures_are_wider_and_say_so(shelf):
    _, found = shelf
    one = found["one"]
    for options in ({"of": "hyp"}, {"records": SIZE}, {}):
        noise = one.share("meds", **options)
        both = one.share("meds", **options, population=True)
        clustered = one.share("meds", **options, population=True, deff=4)
        assert (noise.about, both.about) == ("records", "population")
        assert noise.high - noise.low < both.high - both.low < clustered.high - clustered.low
    for bad in (0.5, "2", None, float("inf")):
        refused("design effect", one.share, "meds", population=True, records=SIZE, deff=bad)


def ask(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def test_readers_use_the_command_line(shelf, tmp_path):
    folder, found = shelf
    shown = json.loads(ask("share", folder / "one", "meds", "--of", "hyp", "--json"))
    wanted = found["one"].share("meds", of="hyp")
    assert shown == {"part": "meds", "of": "hyp", **wanted.plain()}
    assert "not known" in (plain := ask("share", folder / "one")) or "meds of hyp" in plain
    together = json.loads(ask("share", folder / "one", "--together", "--json"))
    assert [row["part"] for row in together] == ["twice", "meds"]
    population = json.loads(ask("share", folder / "one", "hyp", "--population", "--records", SIZE, "--json"))
    assert population["about"] == "population"
    assert "of the population" in ask("share", folder / "one", "hyp", "--population", "--records", SIZE)
    change = json.loads(ask("change", folder / "one", folder / "half", "--json"))
    assert change[0] == {"element": "hyp", **found["one"].change(found["half"], "hyp").plain()}
    both = json.loads(ask("combine", folder / "one", folder / "half", "--out", tmp_path / "both", "--json"))
    assert both["columns"] == {
        k: list(v) for k, v in iso.combine([found["one"], found["half"]]).columns.items()
    }
    assert verify(tmp_path / "both").holds
    assert "The combination is in" in ask(
        "combine", folder / "one", folder / "half", "--out", tmp_path / "more"
    )


def _set(*path: Any) -> Any:
    """A change of one entry of a manifest, written by a stranger."""

    def change(manifest: Any) -> None:
        for step in path[:-2]:
            manifest = manifest[step]
        manifest[path[-2]] = path[-1]

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("one", _set("total", [])),
        ("one", _set("mechanism", {"name": "PosetMechanism"})),
        ("one", _set("description", "order", "covers", 0, ["twice"])),
        ("groups", _set("description", "by", 0, 1, ["north"])),
        ("given", _set("derived", "of", 3.5)),
        ("given", _set("derived", "of", 0, "values", ["x", None, {}])),
        ("combined", _set("derived", {"how": "combined"})),
        ("all", _set("derived", "of", 0, "manifest", "derived", "of", [])),
    ],
)
def test_a_stranger_s_folder_is_answered_by_a_sentence(shelf, tmp_path, name, change):
    copy = Path(shutil.copytree(shelf[0] / name, tmp_path / "copy"))
    manifest = json.loads((copy / "manifest.json").read_text())
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    group, refused_at_all = ["--group", "north"] if name == "groups" else [], False
    for words in (
        ["share", copy, "meds", "--of", "hyp", *group],
        ["share", copy, "--together", *group],
        ["change", shelf[0] / "laplace", copy, *group],
        ["combine", shelf[0] / "laplace", copy],
    ):
        result = CliRunner().invoke(app, [*map(str, words), "--json"])
        assert result.exception is None or isinstance(result.exception, InputError), (words, result.output)
        refused_at_all |= result.exception is not None
    assert refused_at_all


def test_reports_show_shares_at_the_lines_and_how_values_were_derived(shelf):
    folder, found = shelf
    page = (folder / "one" / "report.html").read_text()
    assert found["one"].share("meds", of="hyp").percent() in page
    broken = {**found["one"].columns, "value": (200, 260, 160)}  # more than those above: no ratio is made up
    drawn = CountsPage().svg(Release(broken, found["one"].manifest))
    assert "not known" in drawn
    assert "100 %" not in drawn
    broken = {**found["one"].columns, "value": (20, 22, 16)}
    assert " to 100 %<" in CountsPage().svg(Release(broken, found["one"].manifest))
    assert "sample of a larger population" in page
    assert "given N public" in (folder / "given" / "report.html").read_text()
    assert "hold at once" in (folder / "consistent" / "report.html").read_text()
    assert "combine 2 releases" in (folder / "combined" / "report.html").read_text()
