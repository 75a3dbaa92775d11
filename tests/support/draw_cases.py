"""Mechanisms for counts on small orders, and what each of them releases on a fixed tape of bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import isotone.counts as counts
from isotone.counts import MarginsMechanism
from isotone.counts.breakdown import Breakdown, read_breakdown
from isotone.order import Poset

__all__ = ["CASES", "Tape", "released", "statistic"]


class Tape:
    """Stands in for ``os.urandom`` with a stream that is always the same."""

    def __init__(self, label: str) -> None:
        self.label, self.block, self.left = label, 0, b""

    def urandom(self, size: int) -> bytes:
        """The next bytes of the stream."""
        while len(self.left) < size:
            self.left += hashlib.shake_256(f"{self.label} {self.block}".encode()).digest(4096)
            self.block += 1
        found, self.left = self.left[:size], self.left[size:]
        return found

    @contextmanager
    def playing(self) -> Generator[None]:
        """Every random bit comes from the tape."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("os.urandom", self.urandom)
            yield


BUSH = Poset(list("abcdef"), [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("e", "d"), ("f", "e")])
CHAINS = Poset([*range(7), *"xyz"], [*((i, i + 1) for i in range(6)), ("x", "y"), ("y", "z")])
TREE = Poset.from_mapping(
    {
        "a": "all",
        "b": "all",
        "other": "all",
        "a1": "a",
        "a2": "a",
        "a3": "a",
        "b1": "b",
        "b2": "b",
        "b3": "b",
    },
    children="partition",
)
STOPS = Poset.from_mapping({"a": "all", "b": "all", "a1": "a", "a2": "a"}, children="exclusive")
LONG = Poset.chain(range(40))
FOREST = Poset(range(9), [(0, 2), (1, 2), (2, 3), (4, 3), (5, 6), (7, 6)])

REPLACE: dict[str, Any] = {"neighbours": "replace"}
TWO: dict[str, Any] = {"contributions": 2}
PURE = {"epsilon": "0.7"}
APPROXIMATE = {"epsilon": "0.7", "delta": "1e-6"}
ZCDP = {"rho": "0.3"}


def breakdowns() -> dict[str, Breakdown]:
    lists = {"region": ["n", "e", "s"], "sex": ["f", "m"]}
    nested = {"state": ["A", "B"], "county": {"a": "A", "b": "A", "c": "A", "d": "B"}, "sex": ["f", "m"]}
    both = {
        "state": ["A", "B"],
        "county": {"a": "A", "b": "A", "c": "A", "d": "B"},
        "band": ["old", "young"],
        "age": {"60": "old", "70": "old", "20": "young"},
    }
    return {
        "flat": read_breakdown(["region", "sex"], lists, None),
        "tree": read_breakdown(["state", "county", "sex"], nested, None),
        "trees": read_breakdown(["state", "county", "band", "age"], both, None),
        "trees without cells": read_breakdown(
            ["state", "county", "band", "age"], both, ["", "state", ["county", "band"], "age"]
        ),
    }


def _cases() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}

    def add(name: str, P: Poset, label: str, *guarantees: dict[str, Any], **more: Any) -> None:
        kind = getattr(counts, name)
        for guarantee in guarantees:
            words = " ".join(f"{key}={value}" for key, value in (guarantee | more).items())
            found[f"{name} {label} {words}"] = lambda g=guarantee: kind(P, **g, **more)

    for unit in ({}, REPLACE, TWO, {"max_size": 3}):
        for label, order in (("bush", BUSH), ("chains", CHAINS)):
            add("LaplaceMechanism", order, label, PURE, **unit)
            add("DiscreteLaplaceMechanism", order, label, PURE, **unit)
            add("GaussianMechanism", order, label, APPROXIMATE, ZCDP, **unit)
            add("DiscreteGaussianMechanism", order, label, APPROXIMATE, ZCDP, **unit)
    for unit in ({}, REPLACE, TWO, {"branching": 2, "root": True}, {"branching": 3, "root": False} | REPLACE):
        add("HierarchicalMechanism", CHAINS, "chains", PURE, **unit)
        add("HierarchicalMechanism", LONG, "long", PURE, **unit)
    for label, order in (("tree", TREE), ("stops", STOPS)):
        for unit in ({}, REPLACE, TWO):
            add("TreeLaplaceMechanism", order, label, PURE, **unit)
            add("TreeGaussianMechanism", order, label, APPROXIMATE, ZCDP, **unit)
            add("TreeFieldMechanism", order, label, PURE, **unit)
    add("TreeLaplaceMechanism", TREE, "shares", PURE, shares={"all": "1/5", "a": "2/5", "b": "1/5", "other": "4/5",
        "a1": "2/5", "a2": "2/5", "a3": "2/5", "b1": "3/5", "b2": "3/5", "b3": "3/5"})  # fmt: skip
    add("TreeGaussianMechanism", TREE, "worst", ZCDP, care="worst")
    add("FixedRootMechanism", TREE, "tree", PURE, APPROXIMATE, ZCDP, records=900, catch_all="other")
    for unit in ({}, REPLACE, TWO, {"max_size": 3}):
        for label, order in (("bush", BUSH), ("chains", CHAINS), ("long", LONG), ("forest", FOREST)):
            add("OrderGaussianMechanism", order, label, APPROXIMATE, ZCDP, **unit)
    for label, breakdown in breakdowns().items():
        bases: dict[str, Callable[[], Any]] = {
            "discrete": lambda: counts.DiscreteLaplaceMechanism(BUSH, epsilon=2),
            "laplace": lambda: counts.LaplaceMechanism(BUSH, epsilon=2, contributions=2),
            "gaussian": lambda: counts.GaussianMechanism(BUSH, rho=1),
            "tree": lambda: counts.TreeGaussianMechanism(TREE, epsilon=1, delta="1e-5"),
            "order": lambda: counts.OrderGaussianMechanism(BUSH, rho=1),
            "chains": lambda: counts.HierarchicalMechanism(LONG, epsilon=2),
        }
        for base, build in bases.items():
            found[f"MarginsMechanism {label} {base}"] = lambda b=breakdown, build=build: MarginsMechanism(
                build(), b
            )
        found[f"MarginsMechanism {label} discrete rho"] = lambda b=breakdown, d=bases["discrete"]: (
            MarginsMechanism(d(), b, "cells", rho=2)
        )
    return found


CASES = _cases()


def statistic(mechanism: Any) -> Any:
    """Counts that the mechanism may be given: monotone, and of hierarchies such that they add up."""
    if isinstance(mechanism, MarginsMechanism):
        row = statistic(mechanism.base)
        return np.arange(1, mechanism.breakdown.cells + 1)[:, None] * row
    P = mechanism.P
    below = np.array([sum(P.leq(y, x) for y in P.minimal) for x in P.elements])
    return below * 100


def released(mechanism: Any, label: str, times: int = 3) -> list[list[int]]:
    """Whole numbers of releases on the tape of this label."""
    with Tape(label).playing():
        return [mechanism.release(statistic(mechanism)).tolist() for _ in range(times)]
