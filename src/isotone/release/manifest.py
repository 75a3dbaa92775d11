"""The manifest: what a release is and what it promises, as plain values that can be hashed and checked.

It holds public things and private outputs only. There is no row count, no file size, no hash and no time of
the data in it; the one time is that of the release itself.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee, exact

__all__ = [
    "FORMAT",
    "content_hash",
    "guarantee_from",
    "guarantee_to",
    "now",
    "order_from",
    "order_to",
    "versions",
]

FORMAT = "isotone release 1"


def content_hash(content: Mapping[str, Any]) -> str:
    """A digest of plain values that does not depend on the order of keys; ``content_hash`` itself is left out."""
    kept = {key: value for key, value in content.items() if key != "content_hash"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def order_to(P: Poset) -> dict[str, Any]:
    """An order as plain values; names become text."""
    names = [str(x) for x in P.elements]
    if len(set(names)) < len(names):
        raise InputError("Two elements of the order have the same name as text. Rename one before releasing.")
    return {"elements": names, "covers": [[str(a), str(b)] for a, b in P.covers]}


def order_from(plain: Mapping[str, Any]) -> Poset:
    """The order that :func:`order_to` wrote."""
    pairs: list[tuple[Hashable, Hashable]] = [(a, b) for a, b in plain["covers"]]
    return Poset(plain["elements"], pairs)


def guarantee_to(promise: Guarantee) -> dict[str, str]:
    """A promise as plain values, numbers as exact text."""
    return {
        "kind": promise.kind,
        "epsilon": str(promise.epsilon),
        "delta": str(promise.delta),
        "rho": str(promise.rho),
        "neighbours": promise.neighbours,
        "unit": promise.unit,
    }


def guarantee_from(plain: Mapping[str, Any]) -> Guarantee:
    """The promise that :func:`guarantee_to` wrote."""
    return Guarantee(
        plain["kind"],
        exact(plain["epsilon"], "epsilon"),
        exact(plain["delta"], "delta"),
        exact(plain["rho"], "rho"),
        plain["neighbours"],
        plain["unit"],
    )


def now() -> str:
    """The time of a release, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """What the release was made with."""

    def of(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "unknown"

    return {"python": platform.python_version(), **{name: of(name) for name in ("isotone", "numpy", "scipy")}}
