"""The specification of a release: one TOML file, everything in it public and fixed before data is read.

A spec says where the data is, what is promised, what is released and where it goes. Its hash identifies it in
the ledger and in the manifest, so that the same spec is not charged twice by accident. Nothing in a spec may be
chosen by looking at the data.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from isotone.errors import SpecError
from isotone.privacy.guarantee import Guarantee, exact, positive
from isotone.reading.sources import ColumnType, did_you_mean
from isotone.release.order_files import read_categories, read_order
from isotone.tables.shapes import Shape

__all__ = ["Curve", "Data", "Order", "Output", "Privacy", "Spec", "Table", "load_spec"]


def _number(value: Any) -> str:
    """A number kept as the text it was written as, so that it stays exact and the hash stays the same."""
    exact(value, "this entry")
    return value.strip() if isinstance(value, str) else repr(value)


def _amount(value: Any) -> str:
    positive(value, "this entry")
    return _number(value)


Text = Annotated[str, Field(min_length=1)]
Real = Annotated[str, BeforeValidator(_number)]
Amount = Annotated[str, BeforeValidator(_amount)]
Size = Annotated[int, Field(ge=1)]


class _Section(BaseModel):
    # The text under an entry is its meaning in the documentation (docs/reference/spec.md).
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Data(_Section):
    """``[data]``: where the records are and how one is read."""

    path: Text
    """The data: .csv, .tsv, .parquet, .jsonl or .arrow; a pattern such as "part-*.parquet" means all that match."""
    unit: Text | None = None
    """The column that says whose row it is. Without it every row is one unit; rows without a value are dropped."""
    element: Text | None = None
    """Counts, long data: the column that names the element which the unit has. A row is one yes."""
    columns: dict[str, str] = {}
    """Counts, wide data: the column of each element that is not called like the element."""
    yes: list[str] | None = None
    """Counts: the words that mean yes, in any case. By default 1, true, t, yes, y."""
    no: list[str] | None = None
    """Counts: the words that mean no; they matter with missing = "yes" only. By default 0, false, f, no, n."""
    types: dict[str, ColumnType] = {}
    """What a column is read as: "text", "number" or "integer". A value that does not parse so counts as missing."""
    missing: Literal["no", "yes"] = "no"
    """Counts: what an answer counts as that is missing or cannot be read."""
    on_violation: Literal["close", "drop"] = "close"
    """Counts: whether a record that breaks the order is completed upward, or left out."""
    contributions: Size = 1
    """How many records one unit may give; the noise grows with it. 1 combines a unit's rows into one record."""
    by: Text | None = None
    """Counts: a column of groups; one release for each, for the price of one."""
    groups: list[str] | None = None
    """Counts: the public list of the groups. Rows of other groups are left out."""
    weights: Text | None = None
    """Refused: a survey weight would multiply what one unit reveals. The error says what to do instead."""

    @model_validator(mode="after")
    def _consistent(self) -> Data:
        if self.weights is not None:
            raise ValueError(
                "survey weights are refused: one person's weight would multiply what that person reveals, and "
                "weights are computed from the data. Release unweighted counts, and weight them afterwards "
                "with public totals"
            )
        if (self.by is None) != (self.groups is None):
            raise ValueError("by and groups go together: the column, and the public list of its values")
        return self


class Budget(_Section):
    """``budget = { … }`` in ``[privacy]``: the ledger's total, to create it on first use."""

    epsilon: Amount | None = None
    """The total ε."""
    delta: Real | None = None
    """The total δ, for an (ε, δ) budget."""
    rho: Amount | None = None
    """The total ρ, for a zCDP budget, in place of ε."""


class Privacy(_Section):
    """``[privacy]``: what is promised, and the ledger that pays for it."""

    epsilon: Amount | None = None
    """What this release spends. Quoted numbers such as "0.1" or "1/3" are exact, and so is 0.1."""
    delta: Real | None = None
    """Counts: with ε, for (ε, δ)-differential privacy."""
    rho: Amount | None = None
    """Counts: zero-concentrated differential privacy, in place of ε."""
    ledger: Text
    """The ledger that pays: a path, or postgresql://… for one that several machines share."""
    dataset: Text | None = None
    """The steward's name for the data in the ledger. By default the ledger's file name without its ending."""
    unit: Text | None = None
    """What is protected, in words: person, household, … By default the name of the unit's column, or "record"."""
    neighbours: Literal["add-remove", "replace"] = "add-remove"
    """What one change of the data is: a unit more or less, or a unit with other answers."""
    budget: Budget | None = None
    """The ledger's total, to create it on first use; afterwards it must be the same, or left out."""

    @model_validator(mode="after")
    def _one_kind(self) -> Privacy:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("give epsilon (with delta if you like) or rho, and not both")
        if self.rho is not None and self.delta is not None:
            raise ValueError("rho stands alone: leave out delta")
        return self

    def guarantee(self, unit: str) -> Guarantee:
        """The promise of the release, for the unit in words."""
        if self.rho is not None:
            return Guarantee.zcdp(self.rho, neighbours=self.neighbours, unit=unit)
        assert self.epsilon is not None
        return Guarantee.approximate(self.epsilon, self.delta or 0, neighbours=self.neighbours, unit=unit)


class Order(_Section):
    """``[order]``: counts over a partial order, given here or in a file."""

    elements: list[str] | None = None
    """The names, with relations; their sequence is that of the release."""
    relations: list[tuple[str, str]] | None = None
    """Pairs [lower, upper]: a yes to lower implies a yes to upper."""
    parents: dict[str, str | list[str]] | None = None
    """The same as a table: name = "what it implies", or a list of them. Other names become elements too."""
    file: Text | None = None
    """The same in a file: .csv with a line per relation, or .json or .toml with such a table."""
    lower: Text = "child"
    """In a CSV file: the column of the lower element, the one that implies."""
    upper: Text = "parent"
    """In a CSV file: the column of the upper element, the one that is implied."""
    mechanism: Text = "best"
    """The name of a mechanism, or "best": the one that the plan puts first."""
    max_size: Size | None = None
    """Records keep at most so many yeses, those nearest to the top; the noise may then be smaller."""
    total: bool = False
    """Also release the number of records, where the mechanism gives it for free."""

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("relations"), list):
            given = {
                **given,
                "relations": [tuple(x) if isinstance(x, list) else x for x in given["relations"]],
            }
        return given

    @model_validator(mode="after")
    def _one_source(self) -> Order:
        ways = [self.file is not None, self.parents is not None, self.elements is not None]
        if sum(ways) != 1:
            raise ValueError("give the order in one way: elements (and relations), or parents, or file")
        return self


class Table(_Section):
    """``[table]``: one count per category."""

    category: Text
    """The column of the categories."""
    categories: list[str] | None = None
    """The public list of the categories: others are ignored, absent ones count 0."""
    categories_file: Text | None = None
    """A public CSV file that has the list, in a column called like category."""
    count: Text | None = None
    """For rows that are already counts: the column of the count. Without it a row counts as one."""
    upper: Size
    """The largest count that is told apart; larger ones are published as this at most. Not chosen by the data."""
    remap: Literal["auto", "rows", "table"] = "auto"
    """Whether counts are published row by row or from an estimate for the whole table; "auto" decides by public numbers and by what is already private."""
    split: Real | None = None
    """The share of ε that goes to the distribution. By default a rule of thumb."""
    shape: Shape = "skewed"
    """Your guess at the distribution, for the plan alone: a release does not use it."""

    @model_validator(mode="after")
    def _one_list(self) -> Table:
        if (self.categories is None) == (self.categories_file is None):
            raise ValueError("give categories (the public list) or categories_file, and not both")
        return self


class Curve(_Section):
    """``[curve]``: y as a monotone function of x."""

    x: Text
    """The column of x."""
    y: Text
    """The column of y."""
    bounds: tuple[Real, Real]
    """Public limits [low, high] of x; values outside are moved to the ends. Not chosen by the data."""
    y_range: tuple[Real, Real]
    """Public limits [low, high] of y, in the same way. The noise grows with their distance."""
    increasing: bool | Literal["auto"] = True
    """Whether y rises or falls with x; "auto" spends 5 % of ε on finding out."""
    loss: str | tuple[str, Real] = "squared"
    """What a fit minimises: "squared", "absolute", "logistic", ["huber", delta], ["pinball", q] or ["logistic", margin]."""
    method: Text = "additive"
    """The mechanism: "additive", "threshold", "baseline", "bins" or "auto"."""
    shape: str | tuple[str, Real] | tuple[str, Real, Size] | None = None
    """Beyond rising: ["constant", pieces], ["linear", pieces] or ["linear", pieces, knots], ["lipschitz", slope], "convex" or
    "concave"."""
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of ε."""
    x_grid: Size | Literal["integers"] | list[Real] | None = None
    """The public grid of x: so many even points, "integers" for every whole number of bounds, or a list of points."""
    value_levels: Size | None = None
    """Steps between the lowest and the highest value of a baseline or a shape: a power of two up to 1024."""

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, given: Any) -> Any:
        if isinstance(given, dict):
            lists = {
                key: value for key, value in given.items() if isinstance(value, list) and key != "x_grid"
            }
            pairs = {key: tuple(value) for key, value in lists.items()}
            given = {**given, **pairs}
        return given


class Output(_Section):
    """``[output]``: where the release goes."""

    folder: Text
    """The folder to write: release.csv, manifest.json and report.html."""
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """The confidence of the intervals."""
    title: str | None = None
    """The title of the report."""
    report: bool = True
    """Whether to write report.html."""


class Spec(_Section):
    """A whole specification. Relative paths in it are relative to the file it came from."""

    data: Data
    privacy: Privacy
    order: Order | None = None
    table: Table | None = None
    curve: Curve | None = None
    output: Output
    folder: Path = Field(default=Path(), exclude=True)

    @model_validator(mode="after")
    def _one_release(self) -> Spec:
        if sum(part is not None for part in (self.order, self.table, self.curve)) != 1:
            raise ValueError("a spec has exactly one of [order], [table] and [curve]")
        return self

    @property
    def unit(self) -> str:
        """The privacy unit in words."""
        return self.privacy.unit or self.data.unit or "record"

    @property
    def hash(self) -> str:
        """What identifies this spec: a digest of its entries, and of the public files it names."""
        content = self.model_dump(mode="json", exclude_none=True)
        if self.order is not None and self.order.file is not None:
            P = read_order(self.resolve(self.order.file), self.order.lower, self.order.upper)
            content["order"]["file"] = [
                list(map(str, P.elements)),
                [list(map(str, pair)) for pair in P.covers],
            ]
        if self.table is not None and self.table.categories_file is not None:
            content["table"]["categories_file"] = list(self.categories)
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def categories(self) -> tuple[str, ...]:
        """The public list of categories of a table."""
        assert self.table is not None
        if self.table.categories is not None:
            return tuple(self.table.categories)
        assert self.table.categories_file is not None
        return read_categories(self.resolve(self.table.categories_file), self.table.category)

    def resolve(self, path: str) -> Path:
        """A path of the spec, seen from where the spec is."""
        return self.folder / path


def load_spec(path: str | Path) -> Spec:
    """Read and check a spec; every error names the entry, its value and the repair."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*.toml")])
        raise SpecError(f"There is no spec {str(path)!r}{near or '.'}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"The spec {str(path)!r} cannot be read: {error}.") from None
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"The spec {str(path)!r} is not valid TOML: {error}.") from None
    try:
        return Spec.model_validate({**entries, "folder": path.parent})
    except ValidationError as error:
        raise SpecError("\n".join([f"The spec {str(path)!r} cannot be used:", *_explain(error)])) from None


def _explain(error: ValidationError) -> list[str]:
    lines: list[str] = []
    for problem in error.errors():
        where = [str(part) for part in problem["loc"] if not _is_alternative(part)]
        key = ".".join(where) or "the spec"
        if problem["type"] == "extra_forbidden":
            lines.append(f"  {key}: there is no such entry{_nearest(where)}")
        elif problem["type"] == "missing":
            lines.append(f"  {key}: this entry is missing")
        else:
            reason = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
            shown = (
                f" (it is {problem['input']!r})" if isinstance(problem["input"], (str, int, float)) else ""
            )
            lines.append(f"  {key}: {reason}{shown}")
    return lines


def _is_alternative(part: int | str) -> bool:
    """Whether a part of a place only says which of several types was tried there."""
    return isinstance(part, str) and (part in ("str", "bool", "int", "constrained-int") or "[" in part)


_SECTIONS: dict[str, type[_Section]] = {
    "data": Data,
    "privacy": Privacy,
    "order": Order,
    "table": Table,
    "curve": Curve,
    "output": Output,
}


def _nearest(where: list[str]) -> str:
    section = _SECTIONS.get(where[0]) if len(where) > 1 else None
    known = list(section.model_fields) if section else list(_SECTIONS)
    return did_you_mean(where[-1], known) or f"; there are: {', '.join(known)}"
