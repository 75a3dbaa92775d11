"""What verify catches: forgeries on folders that were sealed anew, and changes after the seal."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.support.forgeries import edited, forged, rewrite
from tests.support.sealed_forgeries import FORGERIES, HONEST, honest, put

import isotone as iso
from isotone.errors import InputError
from isotone.ledger.ledger import extract_charge
from isotone.release import load_release, verify
from isotone.release.signing import make_key, sign_file, sign_release


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    honest(folder)
    return folder


@pytest.fixture
def copy(shelf, tmp_path):
    return lambda name: Path(shutil.copytree(shelf / name, tmp_path / name))


@pytest.mark.parametrize("name", HONEST)
def test_honest_releases_verify(shelf, name):
    verdict = verify(shelf / name)
    assert verdict.holds, str(verdict)
    assert verdict["report"].checked


@pytest.mark.parametrize("name", HONEST)
def test_sealing_anew_without_a_change_is_no_forgery(copy, name):
    """The forger's tools by themselves do no harm: what fails below fails for what was changed."""
    verdict = verify(forged(copy(name), lambda m, c: None))
    assert verdict.holds, str(verdict)


@pytest.mark.parametrize(
    ("name", "change", "fails"), [line[1:] for line in FORGERIES], ids=[f[0] for f in FORGERIES]
)
def test_a_forgery_that_was_sealed_anew_is_caught(copy, name, change, fails):
    verdict = verify(forged(copy(name), change))
    assert not verdict[fails].holds, str(verdict)
    assert "Do not rely" in str(verdict)


UNSEALED = [
    ("a value in the file", lambda f: edited(f, "release.csv", "\na,", "\na,1"), "files"),
    ("a value, with the file's hash", lambda f: edited(f, "release.csv", "\na,", "\na,1", hashed=True), "content"),
    ("a number written otherwise", lambda f: edited(f, "release.csv", "\na,", '\n"a",', hashed=True), "files"),
    ("another unit", lambda f: rewrite(f, lambda m: m["guarantee"].update(unit="household")), "content"),
    ("another title", lambda f: rewrite(f, lambda m: m["stated"].update(title="Truth")), "content"),
    ("another seal", lambda f: rewrite(f, lambda m: m.update(content_hash="sha256:0")), "content"),
    ("no seal", lambda f: rewrite(f, lambda m: m.pop("content_hash")), "content"),
    ("no hashes", lambda f: rewrite(f, lambda m: m.pop("files")), "files"),
    ("a wrong hash", lambda f: rewrite(f, lambda m: m["files"].update({"release.csv": "sha256:0"})), "files"),
    ("a file outside", lambda f: rewrite(f, lambda m: m["files"].update({"../../etc/passwd": "x"})), "files"),
    ("a file elsewhere", lambda f: rewrite(f, lambda m: m["files"].update({"/etc/passwd": "x"})), "files"),
    ("a name of 5,000", lambda f: rewrite(f, lambda m: m["files"].update({"x" * 5000: "x"})), "files"),
    ("an edited report", lambda f: edited(f, "report.html", "question", "answer"), "report"),
    ("an edited report with its hash", lambda f: edited(f, "report.html", "question", "answer", hashed=True), "report"),
    ("a script in the report", lambda f: edited(f, "report.html", "</main>", "<script>x</script></main>"), "report"),
    ("a report that is a link", lambda f: replaced(f, "report.html", lambda p: p.symlink_to("/etc/passwd")), "report"),
    ("a report that is a pipe", lambda f: replaced(f, "report.html", os.mkfifo), "report"),
    ("a report without end", lambda f: replaced(f, "report.html", lambda p: sparse(p)), "report"),
    ("a signature that is none", lambda f: replaced(f, "release.sig", lambda p: p.write_text("x")), "signature"),
    ("a signature that is a pipe", lambda f: replaced(f, "release.sig", os.mkfifo), "signature"),
]  # fmt: skip


def replaced(folder, name, make):
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    return folder


def sparse(path):
    with path.open("wb") as file:
        file.truncate(3 << 30)


@pytest.mark.parametrize(("change", "fails"), [line[1:] for line in UNSEALED], ids=[f[0] for f in UNSEALED])
def test_a_change_after_the_seal_is_caught(copy, change, fails):
    if fails == "signature":
        pytest.importorskip("cryptography")
    verdict = verify(change(copy("counts")))
    assert not verdict[fails].holds, str(verdict)
    assert len(str(verdict)) < 3000


UNREADABLE = [
    ("a pipe", "release.csv", os.mkfifo),
    ("a pipe for a manifest", "manifest.json", os.mkfifo),
    ("a device", "release.csv", lambda p: p.symlink_to("/dev/zero")),
    ("a link out", "manifest.json", lambda p: p.symlink_to("/etc/passwd")),
    ("a file of 3 GB", "release.csv", sparse),
    ("deep JSON", "manifest.json", lambda p: p.write_text('{"a":' * 50_000)),
    ("deep JSON, closed", "manifest.json", lambda p: p.write_text("[" * 900 + "]" * 900)),
    ("a long field", "release.csv", lambda p: p.write_text("element,value\n" + "x" * 200_000 + ",1\n")),
    ("a long number", "release.csv", lambda p: p.write_text("element,value\na," + "9" * 6_000 + "\n")),
    ("not a number", "release.csv", lambda p: p.write_text("element,value\na,nan\n")),
    ("an empty file", "release.csv", lambda p: p.write_text("")),
    ("null characters", "release.csv", lambda p: p.write_bytes(b"\0" * 100)),
    ("another format", "manifest.json", lambda p: p.write_text('{"format": "isotone release 99"}')),
]


@pytest.mark.parametrize(("name", "make"), [line[1:] for line in UNREADABLE], ids=[f[0] for f in UNREADABLE])
def test_a_folder_that_cannot_be_read_is_refused_with_a_sentence(copy, name, make):
    folder = replaced(copy("counts"), name, make)
    with pytest.raises(InputError) as caught:
        verify(folder)
    assert len(str(caught.value).replace(str(folder), "")) < 400


@pytest.mark.parametrize(
    "path", [("order",), ("rules",), ("mechanism",), ("guarantee",), ("groups",), ("files",)]
)
@pytest.mark.parametrize(
    "value", [None, 1, "x", [], {}, [[]], {"a": {}}, {"elements": "ab", "covers": [["a"]]}]
)
def test_a_manifest_of_other_types_never_breaks_verify(copy, path, value):
    if path == ("files",):  # outside the seal, and written anew by the forger's tools
        folder = rewrite(copy("groups"), lambda m: m.update(files=value))
    else:
        folder = forged(copy("groups"), put(*path, to=value))
    with contextlib.suppress(InputError):
        assert not verify(folder).holds or (path, value) == (("groups",), None)


def test_signatures_count_for_a_key_that_the_reader_names(copy, tmp_path):
    pytest.importorskip("cryptography")
    folder = copy("counts")
    steward, other = tmp_path / "steward", tmp_path / "other"
    make_key(steward, "steward@example.org")
    make_key(other)
    assert not verify(folder, key=f"{steward}.pub").holds  # not signed
    sign_release(folder, steward)
    known = verify(folder, key=f"{steward}.pub")
    assert known.holds
    assert known["signature"].checked
    assert "signed by steward@example.org (SHA256:" in str(known)
    unknown = verify(folder)
    assert unknown.holds
    assert not unknown["signature"].checked
    assert "signed by an unknown key" in str(unknown)
    stranger = verify(folder, key=f"{other}.pub")
    assert not stranger["signature"].holds
    assert "signed by an unknown key" in str(stranger)
    (tmp_path / "allowed").write_text(
        "".join(f"{who} " + Path(f"{k}.pub").read_text() for who, k in (("ann", other), ("bob", steward)))
    )
    assert "signed by bob" in str(verify(folder, key=tmp_path / "allowed"))
    with pytest.raises(InputError, match="private key"):
        verify(folder, key=steward)
    # a forger can seal, but not sign
    resealed = forged(folder, lambda m, c: m["stated"].update(title="Truth"))
    assert resealed.joinpath("release.sig").exists()
    assert not verify(resealed)["signature"].holds
    assert not verify(resealed, key=f"{steward}.pub")["signature"].holds
    rewrite(resealed, lambda m: m["stated"].update(title="Lie"))
    with pytest.raises(InputError, match="not signed"):
        sign_release(resealed, steward)


def test_ledgers_show_that_a_release_was_paid_for(copy, shelf):
    for name, ledger in (
        ("counts", "ledger"),
        ("table", "ledger"),
        ("curve", "ledger"),
        ("swapped", "swapping"),
        ("gaussian", "rho"),
    ):
        verdict = verify(shelf / name, ledger=shelf / ledger)
        assert verdict["ledger"].holds, str(verdict)
        assert verdict["ledger"].checked
    cheaper = forged(copy("counts"), put("guarantee", "epsilon", to="2"))
    assert "paid" in verify(cheaper, ledger=shelf / "ledger")["ledger"].words
    for change in (
        put("charge", to=2),
        put("charge", to=99),
        put("dataset", to="other"),
        put("stated", "title", to="x"),
    ):
        folder = Path(shutil.copytree(shelf / "counts", shelf / "copy", dirs_exist_ok=True))
        assert not verify(forged(folder, change), ledger=shelf / "ledger")["ledger"].holds
    assert not verify(shelf / "counts", ledger=shelf / "swapping")["ledger"].holds
    assert not verify(shelf / "counts", ledger=shelf / "none")["ledger"].holds
    assert not (shelf / "none").exists()


def test_an_extract_of_a_ledger_counts_if_a_known_key_signed_it(shelf, tmp_path):
    pytest.importorskip("cryptography")
    folder = Path(shutil.copytree(shelf / "counts", tmp_path / "counts"))
    make_key(tmp_path / "steward")
    sign_release(folder, tmp_path / "steward")
    extract = tmp_path / "charge.json"
    number = load_release(folder).manifest["charge"]
    extract.write_bytes(extract_charge(iso.Ledger(shelf / "ledger"), number))
    pub = tmp_path / "steward.pub"
    assert not verify(folder, ledger=extract)["ledger"].checked
    assert not verify(folder, ledger=extract, key=pub)["ledger"].holds
    sign_file(extract, tmp_path / "steward")
    verdict = verify(folder, ledger=extract, key=pub)
    assert verdict.holds
    assert verdict["ledger"].checked
    assert not verify(folder, ledger=extract)["ledger"].checked
    extract.write_text(extract.read_text().replace('"epsilon":"1"', '"epsilon":"3"'))
    assert not verify(folder, ledger=extract, key=pub)["ledger"].holds
    for content in ("", "[]", "{}", "[" * 5000, '{"charges": 1, "dataset": "ledger"}'):
        extract.write_text(content)
        assert not verify(folder, ledger=extract)["ledger"].holds


def test_a_report_by_another_version_is_not_checked_and_can_be_drawn_again(copy):
    folder = edited(copy("counts"), "report.html", 'content="isotone ', 'content="isotone 9.')
    verdict = verify(folder)
    assert verdict.holds
    assert not verdict["report"].checked
    assert "the report" in str(verdict).splitlines()[-1]
    load_release(folder).save_report(folder)
    assert verify(folder)["report"].checked


def test_the_report_is_the_same_in_another_process_with_other_settings(shelf, tmp_path):
    (tmp_path / "matplotlibrc").write_text("font.size: 30\nsvg.fonttype: path\n")
    code = "import sys; from isotone.release import verify; v = verify(sys.argv[1]); print(v); sys.exit(not v.holds)"
    for name in ("counts", "table", "curve"):
        run = subprocess.run(
            [sys.executable, "-c", code, str(shelf / name)],
            env={
                **os.environ,
                "PYTHONHASHSEED": "7",
                "MPLCONFIGDIR": str(tmp_path),
                "LC_ALL": "C",
                "TZ": "Asia/Tokyo",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert "ok          report" in run.stdout


def test_a_first_release_on_an_order_from_a_file_verifies_whatever_the_sequence(tmp_path):
    """Errors of this order are simulated; its relations come in any sequence, some of them twice over."""
    rng = np.random.default_rng(3)
    names = [f"term {k}" for k in range(12)]
    pairs = [(names[i], names[j]) for i in range(12) for j in range(i + 1, 12) if rng.random() < 0.16]
    pairs += [(a, d) for a, b in pairs for c, d in pairs if b == c][:3]
    data = pa.table({"person": range(40), **{name: rng.integers(0, 2, 40) for name in names}})
    pq = tmp_path / "answers.parquet"
    import pyarrow.parquet

    pyarrow.parquet.write_table(data, pq)
    for turn in range(2):
        where = tmp_path / str(turn)
        where.mkdir()
        said = [pairs[k] for k in rng.permutation(len(pairs))]
        (where / "order.csv").write_text("child,parent\n" + "".join(f"{a},{b}\n" for a, b in said))
        (where / "spec.toml").write_text(
            f'[data]\npath = "{pq}"\nunit = "person"\n[privacy]\nepsilon = "1"\nledger = "budget.ledger"\n'
            'budget = { epsilon = "2" }\n[order]\nfile = "order.csv"\nmechanism = "PosetMechanism"\n'
            '[output]\nfolder = "out"\n'
        )
        run = subprocess.run(
            [sys.executable, "-m", "isotone", "release", "spec.toml"],
            cwd=where,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert verify(where / "out").holds
        assert iso.counts.PosetMechanism(load_release(where / "out").order, 1).error().method == "simulated"
