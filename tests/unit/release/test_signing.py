"""Signatures: right for one message and one key, in the format that ssh-keygen knows, with clear errors."""

import base64
import shutil
import stat
import struct
import subprocess

import pytest

from isotone.errors import InputError, IsotoneError
from isotone.release import signing
from isotone.release.signing import make_key, public_keys, sign, signer

MESSAGE = b'{"columns": {"value": [1, 2]}}'


@pytest.fixture
def key(tmp_path):
    pytest.importorskip("cryptography")
    make_key(tmp_path / "steward", "steward@example.org")
    return tmp_path / "steward"


def test_a_signature_is_by_the_key_that_made_it(key):
    found = signer(MESSAGE, sign(MESSAGE, key))
    (known,) = public_keys(f"{key}.pub")
    assert found.raw == known.raw
    assert str(known).startswith("steward@example.org (SHA256:")


def test_a_private_key_is_for_its_owner_alone_and_never_overwritten(key):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(InputError, match="not overwritten"):
        make_key(key)
    assert key.read_bytes() == before


def changed(text, at, to):
    """A signature with one byte of its content replaced."""
    lines = text.splitlines()
    blob = bytearray(base64.b64decode("".join(lines[1:-1])))
    blob[at] = to if blob[at] != to else to ^ 1
    return "\n".join([lines[0], base64.b64encode(bytes(blob)).decode(), lines[-1]]) + "\n"


def test_every_byte_of_a_signature_matters(key):
    text = sign(MESSAGE, key)
    size = len(base64.b64decode("".join(text.splitlines()[1:-1])))
    owner = signer(MESSAGE, text).raw
    for at in range(size):
        with pytest.raises(InputError):
            signer(MESSAGE, changed(text, at, 0x41))
    with pytest.raises(InputError, match="not one of these values"):
        signer(MESSAGE + b" ", text)
    assert signer(MESSAGE, text).raw == owner


@pytest.mark.parametrize(
    "text", ["", "x", "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"]
)
def test_what_is_no_signature_is_refused(key, text):
    with pytest.raises(InputError, match=r"format of OpenSSH|damaged"):
        signer(MESSAGE, text)


def test_lists_of_allowed_signers_are_read(key, tmp_path):
    kind, blob, owner = key.with_suffix(".pub").read_text().split()
    listed = tmp_path / "allowed"
    listed.write_text(
        f"# our stewards\n\nann@example.org {kind} {blob} laptop\n"
        f'bob@example.org,eve@example.org namespaces="git,isotone" {kind} {blob}\n{kind} {blob} {owner}\n'
    )
    assert [k.owner for k in public_keys(listed)] == [
        "ann@example.org",
        "bob@example.org,eve@example.org",
        owner,
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "holds no public key"),
        ("ssh-rsa AAAAB3NzaC1yc2E= me", "no Ed25519 key"),
        ("ssh-ed25519", "no Ed25519 key"),
        ("ssh-ed25519 AAAA", "damaged"),
        ("ssh-ed25519 !!!", "damaged"),
        ('me namespaces="git" ssh-ed25519 AAAA', "does not allow"),
        ("me cert-authority ssh-ed25519 AAAA", "does not know"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
        ("\udcff", "not text"),
    ],
)
def test_bad_public_keys_are_explained(tmp_path, line, words):
    (tmp_path / "key.pub").write_bytes(line.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=words):
        public_keys(tmp_path / "key.pub")


def test_a_short_key_is_damaged(tmp_path):
    wire = b"".join(struct.pack(">I", len(x)) + x for x in (b"ssh-ed25519", b"\0" * 31))
    (tmp_path / "key.pub").write_text(f"ssh-ed25519 {base64.b64encode(wire).decode()}\n")
    with pytest.raises(InputError, match="damaged"):
        public_keys(tmp_path / "key.pub")


def test_missing_and_impossible_key_files_are_explained(tmp_path):
    for path in (tmp_path / "none", tmp_path, "a\0b", "x" * 5000):
        with pytest.raises(InputError, match="cannot be read"):
            public_keys(path)


def test_bad_private_keys_are_explained(key, tmp_path):
    with pytest.raises(InputError, match="no private key"):
        sign(MESSAGE, f"{key}.pub")
    (tmp_path / "torn").write_bytes(key.read_bytes()[:120])
    with pytest.raises(InputError, match="cannot be used"):
        sign(MESSAGE, tmp_path / "torn")
    with pytest.raises(InputError, match="one word"):
        make_key(tmp_path / "new", "two words")


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
def test_ssh_keygen_makes_and_checks_the_same_signatures(key, tmp_path):
    def run(*words, **options):
        return subprocess.run(["ssh-keygen", *map(str, words)], capture_output=True, check=True, **options)

    (tmp_path / "message").write_bytes(MESSAGE)
    run("-t", "ed25519", "-N", "", "-C", "ann@example.org", "-f", tmp_path / "ann")
    run("-Y", "sign", "-n", "isotone", "-f", tmp_path / "ann", tmp_path / "message")
    theirs = (tmp_path / "message.sig").read_text()
    assert signer(MESSAGE, theirs).raw == public_keys(tmp_path / "ann.pub")[0].raw
    (tmp_path / "message.sig").unlink()
    run("-Y", "sign", "-n", "git", "-f", tmp_path / "ann", tmp_path / "message")
    with pytest.raises(InputError, match="something else"):
        signer(MESSAGE, (tmp_path / "message.sig").read_text())

    (tmp_path / "ours.sig").write_text(sign(MESSAGE, tmp_path / "ann"))
    (tmp_path / "allowed").write_text("ann@example.org " + (tmp_path / "ann.pub").read_text())
    words = ("-Y", "verify", "-f", tmp_path / "allowed", "-I", "ann@example.org", "-n", "isotone")
    run(*words, "-s", tmp_path / "ours.sig", input=MESSAGE)

    run("-t", "rsa", "-b", "2048", "-N", "", "-f", tmp_path / "old")
    with pytest.raises(InputError, match="not an Ed25519 key"):
        sign(MESSAGE, tmp_path / "old")
    run("-p", "-P", "", "-N", "secret words", "-f", tmp_path / "ann")
    with pytest.raises(InputError, match="passphrase"):
        sign(MESSAGE, tmp_path / "ann")


def test_without_the_library_the_extra_is_named(monkeypatch, tmp_path):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(signing.importlib, "import_module", missing)
    with pytest.raises(IsotoneError, match="need the library cryptography: pip install"):
        make_key(tmp_path / "key")
