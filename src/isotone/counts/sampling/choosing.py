"""Which method draws the extended bipartitions of an order.

An order within reach of the tables is drawn from its own, and one of two levels by coupling from the past. Any other is
relaxed first, and relations are put back as long as rejection keeps enough draws: all of them if possible, so that
the noise is that of the order itself. All this depends on the order alone, and :class:`Method` says what it came to.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np

from isotone.array_types import Ints
from isotone.counts.sampling.bipartition_sampler import Sampler
from isotone.counts.sampling.method import Method
from isotone.counts.sampling.recent import Recent
from isotone.counts.sampling.relaxation import Relaxation, relax
from isotone.counts.sampling.relaxations.restoring import estimated_share, missing_pairs, restore
from isotone.counts.sampling.sources import RARE, CoupledSource, TableSource, seeded
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.order.bipartitions.coupling import TwoLevels
from isotone.order.bipartitions.extended import Tables, draw, kept, tables, within_reach
from isotone.order.poset import Poset
from isotone.privacy.draws import ExactDraws, require_exact

__all__ = ["SHARE", "build_sampler", "sample_extended_bipartition", "sampler"]

S = TypeVar("S", bound=Sampler)

SHARE = 2e-4
"""The share of draws that rejection must keep, unless told otherwise: a few thousand draws for a release."""

TRIES = 1 << 13
"""Draws from a relaxed order that tell the share that is kept …"""

KEPT = 20
"""… if so many are kept. Otherwise a random walk tells it."""

QUICK_STEPS = 30
"""Steps of a first, short search."""

SECONDS_A_STEP = 1e-7
"""About how long a walk through the tables takes for each element, or a sweep of the coupling."""

_recent: Recent[Any] = Recent(4)
_searched: Recent[Relaxation] = Recent(8)
_tables: Recent[Tables] = Recent(2)
_shares: Recent[float] = Recent(8)


def sampler(
    P: Poset,
    relaxation: Relaxation | None = None,
    progress: Progress = no_progress,
    *,
    kind: type[S] = Sampler,
    share: float = SHARE,
) -> S:
    """The sampler of ``P``, with the law of its ``kind``.

    Where draws are rejected, about a share ``share`` of them is kept at least. The last few samplers are kept, because
    their tables take time.
    """
    key = (kind, P.elements, P.covers, relaxation, share)
    return _recent.get(key, lambda: build_sampler(P, relaxation, progress, kind=kind, share=share))


def build_sampler(
    P: Poset,
    relaxation: Relaxation | None,
    progress: Progress,
    *,
    kind: type[S] = Sampler,
    share: float = SHARE,
) -> S:
    """Choose the method for ``P`` and build what it needs."""
    if relaxation is None:
        if within_reach(P):
            return kind(P, TableSource(kind.weighed(_tables_of(P))), Method("exact"))
        if np.max(P.levels) <= 1:
            levels = TwoLevels(P, kind.balanced)
            seconds = SECONDS_A_STEP * levels.sweeps * len(P)
            return kind(P, CoupledSource(levels), Method("two levels", seconds=seconds))
        relaxation = _searched.get((P.elements, P.covers), lambda: _search(P, progress))
    return _settle(kind, P, relaxation, share)


def _search(P: Poset, progress: Progress) -> Relaxation:
    """A relaxation from a short search if rejection keeps many draws from it, from a longer one otherwise."""
    quick = relax(P, steps=QUICK_STEPS)
    count, tried = _kept(_tables_of(quick.order(P)), quick.dropped(P))
    return quick if count >= RARE * tried else relax(P, progress=progress)


def _settle(kind: type[S], P: Poset, relaxation: Relaxation, share: float) -> S:
    """Put relations back as far as rejection goes, and say what is left."""
    relaxed = relaxation.order(P)
    made = kind.weighed(_tables_of(relaxed))
    if relaxed == P:
        return kind(P, TableSource(made), Method("exact"))
    if relaxation.restored is None:
        order = _affordable(kind, P, relaxed, made, share)
        relaxation = Relaxation(relaxation.relations, order.covers, relaxation.draws)
    order = relaxation.kept(P)
    acceptance = _acceptance(kind, order, relaxed, made)
    if acceptance < min(share, SHARE) / 100:
        raise InputError(
            f"About 1 in {1 / acceptance:.0g} draws would fit the relations that the relaxation restores. Restore fewer of "
            "them, or leave out restored."
        )
    rejected, dropped = missing_pairs(order, relaxed), missing_pairs(P, order)
    source = TableSource(made, rejected, acceptance)
    seconds = SECONDS_A_STEP * len(P) / acceptance
    if not len(dropped):
        method = Method("rejection", _names(P, rejected), acceptance, seconds=seconds)
        return kind(P, source, method, relaxation)
    name = "partly relaxed" if len(rejected) else "relaxed"
    method = Method(name, _names(P, dropped), acceptance, seconds=seconds)
    return kind(order, source, method, relaxation, P)


def _affordable(kind: type[S], P: Poset, relaxed: Poset, made: Tables, share: float) -> Poset:
    """The order itself if many draws from the relaxed one fit it, or else one between."""
    count, tried = _kept(made, missing_pairs(P, relaxed))
    if count >= KEPT and count / tried >= share:
        return P
    return restore(kind.wander, kind.given, P, relaxed, share)


def _acceptance(kind: type[S], order: Poset, relaxed: Poset, made: Tables) -> float:
    """The share of draws for the relaxed order that fit ``order``, estimated from public bits."""
    if order == relaxed:
        return 1.0
    key = (kind, order.elements, order.covers, relaxed.covers)
    return _shares.get(key, lambda: _estimated(kind, order, relaxed, made))


def _estimated(kind: type[S], order: Poset, relaxed: Poset, made: Tables) -> float:
    count, tried = _kept(made, missing_pairs(order, relaxed))
    return count / tried if count >= KEPT else math.exp(estimated_share(kind.wander, order, relaxed))


def _kept(made: Tables, dropped: Ints) -> tuple[int, int]:
    """How many of how many draws have the dropped relations, from public bits."""
    rng, tried, count = np.random.default_rng(0), 0, 0
    while tried < TRIES and count < 50 * KEPT:
        orders, sizes = draw(made, 2048, *seeded(rng))
        count += int(kept(orders, sizes, dropped).sum())
        tried += 2048
    return count, tried


def _tables_of(P: Poset) -> Tables:
    return _tables.get((P.elements, P.covers), lambda: tables(P))


def _names(P: Poset, pairs: Ints) -> tuple[tuple[Hashable, Hashable], ...]:
    return tuple((P.elements[x], P.elements[y]) for x, y in pairs.tolist())


def sample_extended_bipartition(P: Poset) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Draw a uniform extended bipartition of ``P`` from cryptographic bits.

    Returns the sides A and B, each ascending.

    Exactly uniform: the tables that guide the draw are rounded up, and the draw starts over whenever it falls
    in what was rounded away, decided by integer arithmetic (docs/theory/counts.md, section 6). Refused for
    an order that is out of reach even of rejection.

    >>> from isotone.order import Poset
    >>> A, B = sample_extended_bipartition(Poset.chain("ab"))
    >>> sorted(A + B), list(A) == sorted(A), list(B) == sorted(B)
    (['a', 'b'], True, True)
    """
    chosen = sampler(P.canonical.order)
    if chosen.order != P.canonical.order:
        raise InputError(
            "Uniform extended bipartitions of this order are out of reach: its prime blocks are too large, and "
            "rejection from a relaxed order would keep too few. PosetMechanism releases with the relaxed order."
        )
    order, a = chosen.draw(require_exact(ExactDraws()))
    names = [chosen.order.elements[x] for x in order]
    return tuple(names[:a]), tuple(names[a:])
