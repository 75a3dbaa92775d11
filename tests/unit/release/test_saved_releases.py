"""Releases that were saved, read back, verified and shown."""

import json
import pickle
import re
from typing import Any

import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.errors import InputError, IsotoneError
from isotone.release import load_release, verify
from isotone.release.result import seal

P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])

TABLE = pd.DataFrame(
    {"person": range(400), "hyp": [1] * 200 + [0] * 200, "twice": [1, 0] * 200, "meds": [0] * 400}
)


@pytest.fixture
def ledger(tmp_path):
    return iso.Ledger(tmp_path / "survey.ledger", epsilon=10)


def counts(ledger, data: Any = TABLE, **options):
    settings: dict[str, Any] = {"epsilon": 1, "unit": "person", "mechanism": "PosetMechanism", **options}
    return flat.counts(data, P, ledger=ledger, **settings)


def saved(ledger, tmp_path):
    release = counts(ledger, title="A <survey> & more")
    return release, release.save(tmp_path / "out")


def test_a_saved_release_is_read_back_and_verified(ledger, tmp_path):
    release, folder = saved(ledger, tmp_path)
    again = load_release(folder)
    assert again.columns == release.columns
    verdict = verify(folder)
    assert verdict.holds, str(verdict)
    assert "ask who published it" in str(verdict)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("release.csv", lambda text: text.replace("hyp,", "hyp,1", 1)),
        ("report.html", lambda text: text.replace("survey", "census")),
        ("manifest.json", lambda text: text.replace('"epsilon": "1"', '"epsilon": "1/9"')),
        ("manifest.json", lambda text: text.replace('"unit": "person"', '"unit": "household"')),
        ("manifest.json", lambda text: re.sub(r'"twice",(\s+)"hyp"', r'"meds",\1"twice"', text)),
    ],
)
def test_a_changed_release_is_noticed(ledger, tmp_path, name, change):
    _, folder = saved(ledger, tmp_path)
    before = (folder / name).read_text()
    assert change(before) != before
    (folder / name).write_text(change(before))
    verdict = verify(folder)
    assert not verdict.holds
    assert "Do not rely" in str(verdict)


def test_a_guarantee_the_mechanism_does_not_keep_is_noticed_even_when_sealed_anew(ledger):
    from isotone.release.verify import derived_guarantee

    release = counts(ledger)
    cheat = {**release.manifest, "guarantee": {**release.manifest["guarantee"], "epsilon": "1/2"}}
    forged = seal(release.columns, cheat)
    assert not derived_guarantee(forged).within(forged.guarantee)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "isotone release 0"}', "\x00"])
def test_a_folder_that_holds_no_release_is_explained(ledger, tmp_path, content):
    _, folder = saved(ledger, tmp_path)
    (folder / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=r"cannot be read|not written by"):
        load_release(folder)


def test_a_folder_without_files_is_explained(tmp_path):
    with pytest.raises(InputError, match=r"manifest.json is missing"):
        load_release(tmp_path)


def test_an_unwritable_folder_is_explained(ledger, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(IsotoneError, match="could not be written"):
        counts(ledger).save(tmp_path / "file" / "out")


def test_the_report_is_complete_in_itself_and_escapes_what_it_shows(ledger, tmp_path):
    release, folder = saved(ledger, tmp_path)
    page = (folder / "report.html").read_text()
    assert "A &lt;survey&gt; &amp; more" in page
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""", page)
    for value in release.value:
        assert f"{value:,}" in page
    assert "differential privacy with ε = 1" in page
    assert "the typical error of Laplace noise would have been" in page


def test_nothing_of_the_data_is_stored_but_its_private_outputs(ledger, tmp_path):
    """A release of other data with the same noise differs in its values and in nothing else."""
    secret = TABLE.assign(person=[f"secret-{i}" for i in range(400)])
    release, folder = saved(ledger, tmp_path)
    other = counts(ledger, secret)
    stored = "".join(path.read_text(errors="replace") for path in folder.iterdir())
    stored += pickle.dumps(other).decode("latin-1") + json.dumps(ledger.export())
    assert "secret-" not in stored
    assert set(release.manifest) == set(other.manifest)
    changing = {"charge", "time", "content_hash", "stated"}
    assert {k: v for k, v in release.manifest.items() if k not in changing} == {
        k: v for k, v in other.manifest.items() if k not in changing
    }


def test_a_verdict_shows_itself_in_words(ledger, tmp_path):
    _, folder = saved(ledger, tmp_path)
    verdict = verify(folder)
    assert repr(verdict) == str(verdict)
    page = verdict._repr_html_()
    assert "<tr><td>ok</td><td>content</td><td>the content hash matches" in page
    assert page.endswith("by the rules stated.</p>")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"person"', '"<b>"'))
    assert "<b>" not in verify(folder)._repr_html_()
    assert "Do not rely on this release" in repr(verify(folder))


def test_a_ledger_may_be_named_or_given(ledger, tmp_path):
    _, folder = saved(ledger, tmp_path)
    for given in (ledger, ledger.address):
        verdict = verify(folder, ledger=given)
        assert verdict["ledger"].checked
        assert verdict.holds
    other = iso.Ledger(tmp_path / "other.ledger", epsilon=1, dataset="other", unit="person")
    with other.attempt(iso.Guarantee.pure("0.5", unit="person"), request="something else") as attempt:
        attempt.draw()
        attempt.seal("hash")
    assert "it is about charge" in verify(folder, ledger=other)["ledger"].words
    unused = iso.Ledger(tmp_path / "unused.ledger", epsilon=1)
    assert "has no charge 1" in verify(folder, ledger=unused)["ledger"].words
    wrong: Any = 5
    with pytest.raises(InputError, match="ledger is a Ledger, its address"):
        verify(folder, ledger=wrong)


def test_a_verdict_claims_no_error_that_it_could_not_check(ledger, tmp_path):
    counts(ledger).save(tmp_path / "counts", report=False)
    assert verify(tmp_path / "counts")["error"].checked
    table = flat.table(
        TABLE, category="hyp", categories=["0", "1"], upper=500, epsilon=1, ledger=ledger, unit_name="person"
    )
    table.save(tmp_path / "table", report=False)
    verdict = str(verify(tmp_path / "table"))
    assert "The numbers and their guarantee belong together" in verdict
    assert "ask who published it: whether the errors are right" in verdict
