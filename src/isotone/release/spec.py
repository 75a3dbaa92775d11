"""The specification of a release is one TOML file. All of it is public and fixed before data is read.

A spec says where the data is, what is guaranteed, what is released and where it goes. Its hash identifies it in
the ledger and in the manifest, so that the same spec is not charged twice by accident. Nothing in a spec may be
chosen by looking at the data.
"""

from __future__ import annotations

import tomllib
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, ValidationError, create_model, model_validator

from isotone.errors import InputError, SpecError
from isotone.privacy.checks import did_you_mean
from isotone.privacy.guarantee import Guarantee, Neighbours
from isotone.reading.connections import DataTable
from isotone.reading.questions import Answers, Question, book_of
from isotone.reading.sources import ColumnType, DataFile
from isotone.release.kinds import KINDS, Kind
from isotone.release.manifest import Stated, content_hash
from isotone.release.sections import Amount, Asked, Real, Section, Size, Text

__all__ = ["Budget", "Data", "Output", "Privacy", "Spec", "load_spec", "parse_spec", "sections"]

SectionType = TypeVar("SectionType", bound=Section)


class Data(Section):
    """``[data]``: where the records are and how one is read."""

    path: Text | None = None
    """The data: .csv, .tsv, .parquet, .jsonl or .arrow; a pattern such as "part-*.parquet" means all that match."""
    connection: Text | None = None
    """In place of path, a database: a URL such as "postgresql://reader@host/database" without a password, or "env:NAME" for a URL in the environment."""
    table: Text | None = None
    """With connection: the table, with its schema and a point before it if it has one."""
    unit: Text | None = None
    """The column that says whose row it is. Without it every row is one unit; rows without a value are dropped."""
    element: Text | None = None
    """Counts, long data: the column that names the element which the unit has. A row is one yes."""
    columns: dict[str, str] | list[str] = Field(default={})
    """Counts, wide data: the column of each element that is not called like the element. With header = false: the list of the names of all columns."""
    separator: str | None = None
    """CSV: what stands between fields, such as ";". By default a comma, and a tabulator in .tsv files."""
    encoding: str | None = None
    """CSV and JSON lines: the encoding of letters, such as "latin-1" or "cp1252". By default "utf-8"."""
    header: bool = True
    """CSV: whether the first line names the columns. Without it columns and newline are stated."""
    newline: Literal["\n", "\r\n", "\r"] | None = None
    """CSV, with header = false: how lines end, "\\n", "\\r\\n" or "\\r". With a header line, it is the ending of that line."""
    yes: list[str] | None = None
    """Counts: the words that mean yes, in any case. By default 1, true, t, yes, y."""
    no: list[str] | None = None
    """Counts: the words that mean no; they matter with missing = "yes" only. By default 0, false, f, no, n."""
    types: dict[str, ColumnType] = Field(default={})
    """What a column is read as: "text", "number" or "integer". A value that does not parse so counts as missing."""
    missing: Literal["no", "yes"] = "no"
    """Counts: what an answer counts as that is missing or cannot be read."""
    on_violation: Literal["close", "drop"] = "close"
    """Counts: whether a record that breaks the order is completed upward, or left out."""
    on_conflict: Literal["first", "drop"] | None = None
    """Counts: whether a record with several options of a choice keeps the first in the list of elements, or is left out. By default "first"."""
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
        if (self.path is None) == (self.connection is None):
            raise ValueError("give path, or connection with table")
        if (self.connection is None) != (self.table is None):
            raise ValueError("connection and table go together: the database, and the table in it")
        if "://" in (self.path or ""):
            raise ValueError("path is the path of a file; a database is named by connection and table")
        if self.connection is not None and self.table is not None:
            try:
                DataTable(self.connection, self.table)
            except InputError as error:
                raise ValueError(str(error)) from None
        if (self.by is None) != (self.groups is None):
            raise ValueError("by and groups go together: the column, and the public list of its values")
        if self.header and isinstance(self.columns, list):
            raise ValueError("a list of columns is for files without a header line: state header = false")
        try:
            stated = self.file(self.path or "").stated()
        except InputError as error:
            raise ValueError(str(error)) from None
        if self.path is None and stated:
            raise ValueError(f"{next(iter(stated))} is for CSV files, and a database is none")
        return self

    def file(self, path: str) -> DataFile:
        """The data at a path, written and typed as stated."""
        names = tuple(self.columns) if isinstance(self.columns, list) else ()
        encoding = "utf-8" if self.encoding is None else self.encoding
        return DataFile(path, self.types, self.separator, encoding, self.header, names, self.newline)

    @property
    def element_columns(self) -> dict[str, str]:
        """The columns of elements that are not called like them."""
        return {} if isinstance(self.columns, list) else self.columns

    @property
    def file_path(self) -> str:
        """The path of the data, for who reads files only."""
        if self.path is None:
            raise SpecError(
                "This spec reads a table of a database. Release it from the command line or from Python."
            )
        return self.path

    @property
    def answers(self) -> Answers:
        """What counts as a yes, unless a question says otherwise."""
        words = {key: tuple(value) for key, value in (("yes", self.yes), ("no", self.no)) if value}
        return Answers(missing=self.missing, **words)


class Budget(Section):
    """``budget = { … }`` in ``[privacy]``: the ledger's total, to create it on first use."""

    epsilon: Amount | None = None
    """The total ε."""
    delta: Real | None = None
    """The total δ, for an (ε, δ) budget or a filter."""
    rho: Amount | None = None
    """The total ρ, for a zCDP budget, in place of ε, or for a filter."""
    composition: Literal["addition", "zcdp filter"] | None = None
    """How charges add up, fixed when the ledger is made: "addition" (default), or a "zcdp filter" with rho, delta and final_delta."""
    final_delta: Amount | None = None
    """For a filter: the δ at which its total is stated as (ε, δ)."""


class Privacy(Section):
    """``[privacy]``: what is guaranteed, and the ledger that pays for it."""

    epsilon: Amount | None = None
    """What this release spends. Quoted numbers such as "0.1" or "1/3" are exact, and so is 0.1."""
    delta: Real | None = None
    """With ε, for (ε, δ)-differential privacy."""
    rho: Amount | None = None
    """Zero-concentrated differential privacy, in place of ε."""
    ledger: Text
    """The ledger that pays: a path, or postgresql://… for one that several machines share."""
    dataset: Text | None = None
    """The steward's name for the data in the ledger. By default the ledger's file name without its ending."""
    unit: Text | None = None
    """What is protected, in words: person, household, … By default the name of the unit's column, or "record"."""
    neighbours: Neighbours = "add-remove"
    """What one change of the data is: a unit more or less, or a unit with other answers."""
    waves: Size | None = None
    """Counts: how many releases at this price are planned, such as one a year. Their total stands in the manifest, and the ledger must be able to pay it."""
    budget: Budget | None = None
    """The ledger's total, to start it on first use in a folder without another ledger; afterwards it must be the same, or left out."""

    @model_validator(mode="after")
    def _one_kind(self) -> Privacy:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("give epsilon (with delta if you like) or rho, and not both")
        if self.rho is not None and self.delta is not None:
            raise ValueError("rho stands alone: leave out delta")
        return self

    def guarantee(self, unit: str) -> Guarantee:
        """The guarantee of the release, for the unit in words."""
        if self.rho is not None:
            return Guarantee.zcdp(self.rho, neighbours=self.neighbours, unit=unit)
        assert self.epsilon is not None
        return Guarantee.approximate(self.epsilon, self.delta or 0, neighbours=self.neighbours, unit=unit)


class Output(Section):
    """``[output]``: where the release goes."""

    folder: Text
    """The folder to write: release.csv, manifest.json and report.html. New or empty, or that of the same request."""
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """The confidence of the intervals."""
    title: str | None = None
    """The title of the report. It is sealed with the release; changing it later charges nothing and changes nothing."""
    report: bool = True
    """Whether to write report.html."""

    @property
    def stated(self) -> Stated:
        """What the manifest repeats."""
        return Stated(**{field.name: getattr(self, field.name) for field in fields(Stated)})


class _SpecHead(Section):
    """What every spec has besides the section of its kind."""

    data: Data
    privacy: Privacy
    output: Output
    questions: dict[str, Asked] | None = None
    folder: Path = Field(default=Path(), exclude=True)

    @model_validator(mode="after")
    def _one_release(self) -> Self:
        if sum(getattr(self, kind.key) is not None for kind in KINDS) != 1:
            *others, last = (f"[{kind.key}]" for kind in KINDS)
            raise ValueError(f"a spec has exactly one of {', '.join(others)} and {last}")
        if (self.privacy.waves or 1) > 1 and not self.kind.has_waves:
            raise ValueError("privacy.waves is for counts: readers get changes between their releases")
        getattr(self, self.kind.key).complete(bool(self.asked))
        return self

    @cached_property
    def asked(self) -> dict[str, Question]:
        """The questions by name."""
        return book_of([said.question(name) for name, said in (self.questions or {}).items()])

    @property
    def kind(self) -> Kind:
        """The kind of release that the spec asks for."""
        return next(kind for kind in KINDS if getattr(self, kind.key) is not None)

    def said(self, section: type[SectionType]) -> SectionType:
        """The section of the spec's kind, which must be of the type given."""
        found = getattr(self, self.kind.key)
        if not isinstance(found, section):
            asked = section.__name__.removesuffix("Section").lower()
            raise SpecError(f"This spec has no [{asked}]: it has [{self.kind.key}].")
        return found

    @property
    def unit(self) -> str:
        """The privacy unit in words."""
        return self.privacy.unit or self.data.unit or "record"

    @property
    def source(self) -> DataFile | DataTable:
        """The data with the types that are declared for its columns."""
        if self.data.connection is None:
            return self.data.file(str(self.resolve(self.data.file_path)))
        return DataTable(self.data.connection, self.data.table or "", self.data.types, self.folder)

    @property
    def hash(self) -> str:
        """A digest of the entries of this spec, and of the public files it names."""
        content = self.model_dump(mode="json", exclude_none=True)
        content[self.kind.key] = getattr(self, self.kind.key).content(self.resolve)
        return content_hash(content).removeprefix("sha256:")

    @property
    def identity(self) -> dict[str, Any]:
        """What identifies the data in a request. It is the path or the table and the declared types, nothing of the contents."""
        source = self.source
        if isinstance(source, DataTable):
            return source.identity()
        path = Path(self.resolve(self.data.file_path)).absolute()
        return {"path": str(path), "types": dict(self.data.types), **source.stated()}

    def head(self) -> dict[str, Any]:
        """What a plan says first."""
        guarantee = self.privacy.guarantee(self.unit)
        return {"guarantee": str(guarantee), "spec": self.hash, "kind": self.kind.name}

    def resolve(self, path: str) -> Path:
        """A path of the spec, seen from where the spec is."""
        return self.folder / path


if TYPE_CHECKING:

    class Spec(_SpecHead):
        """A whole specification. Relative paths in it are relative to the file it came from."""

else:
    # One optional section for each kind; that exactly one is there is checked above.
    Spec = create_model(
        "Spec",
        __base__=_SpecHead,
        __doc__="A whole specification. Relative paths in it are relative to the file it came from.",
        __module__=__name__,
        **{kind.key: (kind.section | None, None) for kind in KINDS},
    )


def load_spec(path: str | Path) -> Spec:
    """Read and check a spec. Every error names the entry, its value and the repair."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*.toml")])
        raise SpecError(f"There is no spec {str(path)!r}{near or '.'}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"The spec {str(path)!r} cannot be read: {error}.") from None
    return parse_spec(text, path.parent, str(path))


def parse_spec(text: str, folder: Path, name: str) -> Spec:
    """Check the text of a spec that is, or will be, called ``name`` in ``folder``."""
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"The spec {name!r} is not valid TOML: {error}.") from None
    try:
        return Spec.model_validate({**entries, "folder": folder})
    except ValidationError as error:
        raise SpecError("\n".join([f"The spec {name!r} cannot be used:", *_explain(error)])) from None


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
            public = isinstance(problem["input"], (str, int, float)) and where[-1:] != ["connection"]
            shown = f" (it is {problem['input']!r})" if public else ""
            lines.append(f"  {key}: {reason}{shown}")
    return lines


def _is_alternative(part: int | str) -> bool:
    """Whether a part of a place only says which of several types was tried there."""
    return isinstance(part, str) and (part in ("str", "bool", "int", "constrained-int") or "[" in part)


def sections() -> dict[str, type[Section]]:
    """The sections that a spec may have, by name."""
    kinds = {kind.key: kind.section for kind in KINDS}
    return {"data": Data, "privacy": Privacy, **kinds, "questions": Asked, "output": Output}


def _nearest(where: list[str]) -> str:
    section = sections().get(where[0]) if len(where) > 1 else None
    known = list(section.model_fields) if section else list(sections())
    return did_you_mean(where[-1], known) or f"; there are: {', '.join(known)}"
