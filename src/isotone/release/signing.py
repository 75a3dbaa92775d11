"""Ed25519 signatures of the values and the manifest, in the format of OpenSSH.

The seal of a release shows that values and manifest belong together, but anyone can make a seal. A signature shows
who made it. Keys and signatures are those of ``ssh-keygen -Y`` with the name space ``isotone``, so that keys which
people already have can be used. A signature counts only for a key that the reader names: a key that comes with the
release proves nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotone.errors import InputError, IsotoneError
from isotone.lazy import install
from isotone.release.result import load_release, read_file, write_file

SIGNATURE = "release.sig"
"""The file of a release's signature."""

_NAMESPACE = b"isotone"
_KIND = b"ssh-ed25519"
_MAGIC = b"SSHSIG"
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
_ARMOR = re.compile(r"\s*-----BEGIN SSH SIGNATURE-----\s+([A-Za-z0-9+/=\s]+)-----END SSH SIGNATURE-----\s*")
_LARGEST = 1 << 20


@dataclass(frozen=True)
class PublicKey:
    """A public key, and who it belongs to as far as the reader knows."""

    raw: bytes
    owner: str = ""

    @property
    def wire(self) -> bytes:
        """The key as it stands in signatures and, in base64, in files."""
        return _string(_KIND) + _string(self.raw)

    @property
    def fingerprint(self) -> str:
        """The name of the key, as ssh-keygen prints it."""
        digest = base64.b64encode(hashlib.sha256(self.wire).digest()).decode()
        return "SHA256:" + digest.rstrip("=")

    def __str__(self) -> str:
        return f"{self.owner} ({self.fingerprint})" if self.owner else self.fingerprint


def make_key(path: str | os.PathLike[str], owner: str = "isotone") -> PublicKey:
    """Write a new key to ``path`` (readable by its owner only) and its public half to ``path.pub``."""
    serialization, ed25519, _ = _cryptography()
    if re.search(r"\s", owner) or not owner.isprintable() or not owner:
        raise InputError(f"The owner of a key is one word, such as a mail address, not {owner!r}.")
    secret = ed25519.Ed25519PrivateKey.generate()
    text = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    key = PublicKey(secret.public_key().public_bytes_raw(), owner)
    public = f"{_KIND.decode()} {base64.b64encode(key.wire).decode()} {owner}\n".encode()
    for name, content, mode in ((Path(f"{path}.pub"), public, 0o644), (Path(path), text, 0o600)):
        _write_new(name, content, mode)
    return key


def sign(message: bytes, path: str | os.PathLike[str]) -> str:
    """The signature of ``message`` by the private key in a file, as text."""
    serialization, ed25519, _ = _cryptography()
    content = _read(path)
    try:
        secret = serialization.load_ssh_private_key(content, password=None)
    except Exception as error:  # the library raises many kinds, and none may reach the reader raw
        if b"PRIVATE KEY" not in content:
            raise InputError(f"{str(path)!r} holds no private key in the format of OpenSSH.") from None
        raise InputError(
            f"The key in {str(path)!r} cannot be used: {str(error).rstrip('.') or type(error).__name__}. Make one without "
            "a passphrase with 'isotone keygen', or take one off a copy with 'ssh-keygen -p'."
        ) from None
    if not isinstance(secret, ed25519.Ed25519PrivateKey):
        raise InputError(f"The key in {str(path)!r} is not an Ed25519 key. 'isotone keygen' makes one.")
    key: Any = secret
    signature = _string(_KIND) + _string(key.sign(_signed(message, b"sha512")))
    wire = PublicKey(key.public_key().public_bytes_raw()).wire
    blob = _MAGIC + struct.pack(">I", 1)
    blob += b"".join(map(_string, (wire, _NAMESPACE, b"", b"sha512", signature)))
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])


def sign_release(folder: str | os.PathLike[str], key: str | os.PathLike[str]) -> Path:
    """Sign the values and the manifest with the private key in a file, into ``release.sig``."""
    release = load_release(folder)
    if release.manifest.hash_with(release.columns) != release.manifest["content_hash"]:
        raise InputError("The values or the manifest were changed after the release: not signed.")
    return _write(Path(folder) / SIGNATURE, sign(release.sealed_bytes(), key))


def sign_file(path: str | os.PathLike[str], key: str | os.PathLike[str]) -> Path:
    """Sign a file, such as an extract of a ledger, into ``path.sig``."""
    path = Path(path)
    return _write(path.with_name(path.name + ".sig"), sign(read_file(path.parent, path.name), key))


def _write(path: Path, text: str) -> Path:
    try:
        write_file(path, text)
    except OSError as error:
        raise InputError(
            f"The signature {str(path)!r} cannot be written: {error.strerror or error}."
        ) from None
    return path


def signer(message: bytes, signature: str) -> PublicKey:
    """The key that made ``signature``, which must be a right signature of ``message``."""
    _, ed25519, wrong = _cryptography()
    wire, digest, value = _parts(signature)
    key = _key_of(wire)
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key.raw).verify(value, _signed(message, digest))
    except wrong:
        raise InputError("the signature is not one of these values and this manifest") from None
    except ValueError as error:
        raise InputError(f"the key of the signature cannot be used: {error}") from None
    return key


def public_keys(path: str | os.PathLike[str]) -> tuple[PublicKey, ...]:
    """The keys in a file, a public key or a list of allowed signers (``ssh-keygen``, ALLOWED SIGNERS)."""
    try:
        lines = _read(path).decode().splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} holds no public key: it is not text.") from None
    if any("PRIVATE KEY" in line for line in lines):
        raise InputError(f"{str(path)!r} holds a private key. Give the public one, whose name ends in .pub.")
    result = [
        _listed(path, number, line.strip())
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not result:
        raise InputError(
            f"{str(path)!r} holds no public key. A line is 'ssh-ed25519 AAAA…' or 'NAME ssh-ed25519 AAAA…'."
        )
    return tuple(result)


def _listed(path: str | os.PathLike[str], number: int, line: str) -> PublicKey:
    """The key in one line ``[owners [namespaces="…"]] ssh-ed25519 AAAA… [comment]``."""
    where = f"Line {number} of {str(path)!r}"
    words = line.split()
    at = next((k for k, word in enumerate(words[:3]) if word == _KIND.decode()), None)
    if at is None or len(words) < at + 2:
        raise InputError(
            f"{where} holds no Ed25519 key: it must read 'ssh-ed25519 AAAA…', with owner or without."
        )
    if at == 2:
        spaces = re.fullmatch(r'namespaces="([^"]*)"', words[1])
        if spaces is None:
            raise InputError(
                f"{where} limits its key in a way that isotone does not know: {words[1][:60]!r}."
            )
        if _NAMESPACE.decode() not in spaces[1].split(","):
            raise InputError(f"{where} does not allow its key for the name space 'isotone'.")
    try:
        key = _key_of(base64.b64decode(words[at + 1], validate=True))
    except (binascii.Error, ValueError, InputError):
        raise InputError(f"{where} holds a damaged key: copy it again.") from None
    return PublicKey(key.raw, words[0] if at else " ".join(words[2:3]))


def _parts(text: str) -> tuple[bytes, bytes, bytes]:
    """Public key, name of the hash and value of a signature."""
    armored = _ARMOR.fullmatch(text)
    if armored is None:
        raise InputError("the signature is not in the format of OpenSSH")
    try:
        blob = base64.b64decode("".join(armored[1].split()), validate=True)
        if blob[:6] != _MAGIC or struct.unpack(">I", blob[6:10]) != (1,):
            raise ValueError
        wire, namespace, _, digest, signature = _strings(blob[10:], 5)
        kind, value = _strings(signature, 2)
    except (ValueError, struct.error):
        raise InputError("the signature is damaged") from None
    if namespace != _NAMESPACE:
        raise InputError("the signature was made for something else than a release")
    if kind != _KIND or digest not in _HASHES:
        raise InputError("the signature is not an Ed25519 one")
    return wire, digest, value


def _signed(message: bytes, digest: bytes) -> bytes:
    """What is signed in the place of ``message``."""
    hashed = _HASHES[digest](message).digest()
    return _MAGIC + b"".join(map(_string, (_NAMESPACE, b"", digest, hashed)))


def _key_of(wire: bytes) -> PublicKey:
    try:
        kind, raw = _strings(wire, 2)
    except (ValueError, struct.error):
        raise InputError("the public key is damaged") from None
    if kind != _KIND or len(raw) != 32:
        raise InputError("the public key is not an Ed25519 one")
    return PublicKey(raw)


def _string(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _strings(blob: bytes, count: int) -> list[bytes]:
    """Exactly ``count`` strings, each with its length before it."""
    result: list[bytes] = []
    for _ in range(count):
        (size,) = struct.unpack(">I", blob[:4])
        if len(blob) < 4 + size:
            raise ValueError
        result.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    if blob:
        raise ValueError
    return result


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The key {str(path)!r} cannot be read: {reason}.") from None
    if len(content) > _LARGEST:
        raise InputError(f"{str(path)!r} is no key: it is larger than a mebibyte.")
    return content


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that does not exist yet, since a key is never overwritten."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InputError(f"{str(path)!r} exists: a key is not overwritten. Choose another name.") from None
    except OSError as error:
        raise InputError(f"The key {str(path)!r} cannot be written: {error.strerror or error}.") from None
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _cryptography() -> tuple[Any, Any, Any]:
    """The modules for keys and Ed25519, and what a wrong signature raises."""
    try:
        primitives = "cryptography.hazmat.primitives"
        serialization = importlib.import_module(f"{primitives}.serialization")
        ed25519 = importlib.import_module(f"{primitives}.asymmetric.ed25519")
        wrong = importlib.import_module("cryptography.exceptions").InvalidSignature
    except ImportError:
        raise IsotoneError(f"Signatures need the library cryptography: {install('sign')}") from None
    return serialization, ed25519, wrong
