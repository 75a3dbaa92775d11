"""The plan of a spec: what would be released, by which mechanism, with what error. No data, no budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from isotone import tables
from isotone.counts import plan as plan_counts
from isotone.curves import PrivateIsotonicRegression
from isotone.curves import plan as plan_curves
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.release.spec import Curve, Spec
from isotone.release.steward import order_of, require_pure

__all__ = ["SpecPlan", "describe_order", "plan_spec"]


@dataclass(frozen=True)
class SpecPlan:
    """A plan for people (``view``: anything rich can print) and for programs (``plain``)."""

    view: Any
    values: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        """The plan as plain values."""
        return self.values

    def __rich__(self) -> Any:
        return self.view

    def __str__(self) -> str:
        return str(self.view)


def plan_spec(spec: Spec, progress: Progress = no_progress, *, records: int | None = None) -> SpecPlan:
    """Plan a spec from what is public.

    ``records`` is a guess at how many records there are, which must not come from the data: the error of a curve depends
    on it. Counts and tables need none.
    """
    promise = spec.privacy.guarantee(spec.unit)
    head = {"guarantee": str(promise), "spec": spec.hash}
    if spec.order is not None:
        budget: dict[str, Any] = (
            {"rho": promise.rho}
            if promise.kind == "zcdp"
            else {"epsilon": promise.epsilon, "delta": promise.delta}
        )
        made = plan_counts(
            order_of(spec),
            **budget,
            max_size=spec.order.max_size,
            neighbours=promise.neighbours,
            contributions=spec.data.contributions,
            progress=progress,
        )
        made = replace(made, guarantee=promise)  # the plan does not know the unit, the spec does
        rows = [
            {
                "mechanism": r.name,
                "rmse": r.rmse,
                "worst": r.worst,
                "half_width": r.half_width,
                "note": r.note,
            }
            for r in made.rows
        ]
        return SpecPlan(made, {**head, "kind": "counts", "best": rows[0]["mechanism"], "rows": rows})
    require_pure(spec)
    if spec.table is not None:
        table = tables.plan(
            spec.table.shape,
            upper=spec.table.upper,
            size=len(spec.categories),
            epsilon=promise.epsilon,
            contributions=spec.data.contributions,
            neighbours=promise.neighbours,
            progress=progress,
        )
        return SpecPlan(table, {**head, "kind": "table", "text": str(table)})
    assert spec.curve is not None
    options = spec.curve.model_dump(exclude={"x", "y"}, exclude_none=True)
    estimator = PrivateIsotonicRegression(
        promise.epsilon,
        neighbours=promise.neighbours,
        contributions=spec.data.contributions,
        unit=promise.unit,
        **options,
    )
    estimator.check()
    text = (
        f"A monotone curve of {spec.curve.y} over {spec.curve.x}: {_described(spec.curve)}, {promise}. No data was read "
        "and no budget was spent."
    )
    size = records or spec.curve.public_n
    if size is None:
        text += " About how many records are there? With --records the plan tells the expected error."
        return SpecPlan(text, {**head, "kind": "curve", "text": text})
    expected = plan_curves(
        promise.epsilon,
        size,
        loss=spec.curve.loss,
        y_range=spec.curve.y_range,
        neighbours=promise.neighbours,
        contributions=spec.data.contributions,
    )
    rows = [{"method": r.method, "excess": r.excess, "least": r.least, "most": r.most} for r in expected.rows]
    if spec.curve.shape is not None:
        text += " What follows is for curves without the shape: those of other methods, to compare with."
    text += f"\n{expected}"
    return SpecPlan(text, {**head, "kind": "curve", "text": text, "rows": rows})


def _described(curve: Curve) -> str:
    """Method, shape and loss in words."""
    loss = curve.loss if isinstance(curve.loss, str) else f"{curve.loss[0]}({curve.loss[1]})"
    if curve.shape is None:
        return f"{curve.method} method, {loss} loss"
    shape = curve.shape if isinstance(curve.shape, str) else f"{curve.shape[0]}({curve.shape[1]})"
    way = "the published tree" if curve.method == "threshold" else "one draw from all curves"
    return f"{way} of shape {shape}, {loss} loss"


def describe_order(P: Poset) -> dict[str, Any]:
    """The shape of an order in a few numbers."""
    described: dict[str, Any] = {
        "elements": len(P),
        "covers": len(P.covers),
        "height": P.height,
        "width": P.width,
        "minimal": len(P.minimal),
        "maximal": len(P.maximal),
        "forest": "yes" if P.is_forest else "no",
        "decomposition": type(P.decomposition()).__name__.lower(),
    }
    return described
