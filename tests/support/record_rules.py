"""The rules from rows to statistics in plain Python, one unit at a time: what every engine must agree with."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from isotone.order import Poset

__all__ = ["SALT", "chosen", "counts_by_hand", "units_of"]

SALT = bytes(range(16))

Row = dict[str, Any]
T = TypeVar("T")


def chosen(
    unit: str, rows: Iterable[T], k: int, says: Callable[[T], Sequence[str]], salt: bytes = SALT
) -> list[T]:
    """The ``k`` rows of a unit that count: the first by the hash of salt, unit, contents and number among equals."""
    seen: Counter[str] = Counter()
    keyed: list[tuple[str, str, T]] = []
    for row in rows:
        text = "".join(f"{len(part)}:{part}" for part in (unit, *says(row)))
        seen[text] += 1
        digest = hashlib.sha256(f"{salt.hex()}{text}{seen[text]}".encode()).hexdigest()
        keyed.append((digest, text, row))
    return [row for _, _, row in sorted(keyed, key=lambda item: item[:2])[:k]]


def units_of(rows: Iterable[Row], unit: str) -> dict[Hashable, list[Row]]:
    """The rows of each unit; those without one are gone."""
    found: dict[Hashable, list[Row]] = {}
    for row in rows:
        if row[unit] is not None:
            found.setdefault(row[unit], []).append(row)
    return found


def counts_by_hand(
    rows: list[Row],
    P: Poset,
    *,
    unit: str | None,
    contributions: int = 1,
    on_violation: str = "close",
    max_size: int | None = None,
    groups: Sequence[str] | None = None,
) -> list[list[int]]:
    """Counts per group (rows hold booleans under the elements' names, and "group"), the number of records last."""
    listed = list(groups) if groups is not None else [None]
    known = [row for row in rows if groups is None or row["group"] in listed]
    units: list[list[Row]] = [[row] for row in known] if unit is None else [*units_of(known, unit).values()]
    records: list[tuple[int, set[Hashable]]] = []
    for mine in units:
        place = [listed.index(row["group"]) if groups is not None else 0 for row in mine]
        said = [{x for x in P.elements if row[str(x)]} for row in mine]
        if unit is None or contributions == 1:
            records.append((min(place), set().union(*said)))
            continue
        both = list(zip(place, said, strict=True))
        name = str(mine[0][unit])
        records += chosen(name, both, contributions, lambda row: _says(row, P, groups is not None))
    counts = [[0] * (len(P) + 1) for _ in listed]
    for place, said in records:
        closed = {x for x in P.elements if any(P.leq(a, x) for a in said)}
        if on_violation == "drop" and closed != said:
            continue
        kept = [x for x in reversed([P.elements[i] for i in P.canonical.positions]) if x in closed][:max_size]
        counts[place][-1] += 1
        for x in kept:
            counts[place][P.index(x)] += 1
    return counts


def _says(row: tuple[int, set[Hashable]], P: Poset, grouped: bool) -> list[str]:
    place, said = row
    answers = "".join("1" if x in said else "0" for x in P.elements)
    return [answers, str(place)] if grouped else [answers]
