"""The specification of a release is one TOML file. All of it is public and fixed before data is read.

A spec holds a description, its data, the guarantee and where the release goes. Its sections are made from the parameters of
descriptions and the entries below. Its hash identifies it, and the request is known by what it describes, so that the same
spec is not charged twice by accident. Nothing in a spec may be chosen by looking at the data.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from pydantic import Field, ValidationError, create_model, model_validator

from isotone.errors import InputError, SpecError
from isotone.ledger import Ledger, open_or_start
from isotone.mechanism import Progress, no_progress
from isotone.planning import Plan
from isotone.privacy.checks import Number, did_you_mean, whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.reading.connections import DataTable
from isotone.reading.questions import Question, book_of
from isotone.reading.sources import ColumnType, DataFile
from isotone.release.description import (
    Amount,
    Answers,
    Description,
    Real,
    Section,
    Text,
    Unit,
    gathered,
    placed,
    section_of,
)
from isotone.release.kinds.kind import BESIDE, SECTIONS, all_kinds, kind_of_mechanism, kind_of_section
from isotone.release.manifest import Stated, content_hash
from isotone.release.pipeline import Job, Outcome, Presentation, request_id, run
from isotone.release.result import Release, write_file

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.order import Poset
    from isotone.release.check import DeskReport
    from isotone.release.kinds.kind import Kind
    from isotone.release.over_time import Standing

SectionType = TypeVar("SectionType", bound=Section)
Made = TypeVar("Made")

# ---------------------------------------------------------------------------- sections


class QuestionEntries(Section):
    """``[questions.NAME]``: the label of an element, its column, and what counts as a yes. NAME is its identifier."""

    label: str = ""
    """The question in words. Reports and diagrams show it, files the identifier."""
    column: Text | None = None
    """The column, by default called like the question. One column may serve several questions."""
    yes: list[str | int] | str | None = None
    """The codes that mean yes, such as ["1"]; or "answered"; or a comparison such as ">= 140". By default the words of [data]."""
    word: Text | None = None
    """In place of yes: a word that is among those of a multiple-choice field."""
    separator: Text | None = None
    """What stands between the words: one of , ; | / or a blank. By default blanks, commas, semicolons or bars."""
    any_of: list[str] = Field(default=[])
    """In place of yes: other questions. A yes to one of them is a yes."""
    no: list[str | int] = Field(default=[])
    """The codes that mean no; they matter with missing = "yes" only."""
    refused: list[str | int] = Field(default=[])
    """The codes of refusals, which are no answer and no number."""
    refusal: Literal["no", "yes"] = "no"
    """What a refusal counts as."""
    missing: Literal["no", "yes"] | None = None
    """What a missing answer or an unknown code counts as. By default as [data] says."""

    def question(self, name: str) -> Question:
        """The question called ``name``."""
        return Question(name, **self.model_dump(exclude_none=True))


class DataEntries(Section):
    """``[data]``: where the records are and how one is read."""

    path: Text | None = None
    """The data: .csv, .tsv, .parquet, .jsonl or .arrow; a pattern such as "part-*.parquet" means all that match."""
    connection: Text | None = None
    """In place of path, a database: a URL such as "postgresql://reader@host/database" without a password, or "env:NAME" for a URL in the environment."""
    table: Text | None = None
    """With connection: the table, with its schema and a point before it if it has one."""
    separator: str | None = None
    """CSV: what stands between fields, such as ";". By default a comma, and a tabulator in .tsv files."""
    encoding: str | None = None
    """CSV and JSON lines: the encoding of letters, such as "latin-1" or "cp1252". By default "utf-8"."""
    header: bool | None = None
    """CSV: whether the first line names the columns, as it does by default. Stated as true, it is public, and errors may quote it. With false, names and newline are stated."""
    names: list[str] = Field(default=[])
    """CSV, with header = false: the names of all columns, in their order."""
    newline: str | None = None
    """CSV, with header = false: how lines end, "\\n", "\\r\\n" or "\\r". With a header line, it is the ending of that line."""
    types: dict[str, ColumnType] = Field(default={})
    """What a column is read as: "text", "number" or "integer". A value that does not parse so counts as missing."""
    weights: Text | None = None
    """Refused: a survey weight would multiply what one unit reveals. The error says what to do instead."""

    @model_validator(mode="after")
    def _unweighted(self) -> DataEntries:
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
        try:
            stated = self.file(self.path or "").stated()
        except InputError as error:
            raise ValueError(str(error)) from None
        if self.path is None and stated:
            raise ValueError(f"{next(iter(stated))} is for CSV files, and a database is none")
        return self

    def file(self, path: str) -> DataFile:
        """The data at a path, written and typed as stated."""
        encoding = "utf-8" if self.encoding is None else self.encoding
        names = tuple(self.names)
        return DataFile(path, self.types, self.separator, encoding, self.header, names, self.newline)

    @property
    def file_path(self) -> str:
        """The path of the data, for who reads files only."""
        if self.path is None:
            raise SpecError(
                "This spec reads a table of a database. Release it from the command line or from Python."
            )
        return self.path


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


class PrivacyEntries(Section):
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
    budget: Budget | None = None
    """The ledger's total, to start it on first use in a folder without another ledger; afterwards it must be the same, or left out."""

    @model_validator(mode="after")
    def _one_kind(self) -> PrivacyEntries:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError(
                'give epsilon (with delta if you like), such as epsilon = "0.5", or rho, and not both'
            )
        if self.rho is not None and self.delta is not None:
            raise ValueError("rho stands alone: leave out delta")
        return self


class OutputEntries(Section):
    """``[output]``: where the release goes."""

    folder: Text
    """The folder to write: release.csv, manifest.json and report.html. New or empty, or that of the same request."""
    title: str | None = None
    """The title of the report. It is sealed with the release; changing it later charges nothing and changes nothing."""
    report: bool = True
    """Whether to write report.html."""
    publisher: str | None = None
    """Who publishes the release. Sealed with it, as the next three are, and written by `isotone export`."""
    intended_use: str | None = None
    """What the release is for, in a sentence. A public registry of deployments asks for it."""
    region: str | None = None
    """The region that the data describes. A public registry of deployments asks for it."""
    registry_author: str | None = None
    """Who answers for the entry in a public registry of deployments. By default the publisher."""

    @property
    def stated(self) -> Stated:
        """What the manifest repeats."""
        return Stated(**{field.name: getattr(self, field.name) for field in fields(Stated)})


_COMMON: dict[str, Any] = {
    "data": section_of("Data", DataEntries, "data", Unit, Answers),
    "privacy": section_of("Privacy", PrivacyEntries, "privacy", Unit),
    "output": section_of("Output", OutputEntries, "output", Description),
}
"""The sections that every spec has: the entries above, and parameters of descriptions that stand there."""

# ---------------------------------------------------------------------------- a whole spec


class Spec(Section):
    """A description with its data, guarantee and delivery. Relative paths in it are relative to the file it came from."""

    data: DataEntries
    privacy: PrivacyEntries
    output: OutputEntries
    questions: dict[str, QuestionEntries] | None = None
    folder: Path = Field(default=Path(), exclude=True)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.key:
            for key in (self.key, BESIDE.get(self.key)):
                if key is not None:
                    getattr(self, key).complete(bool(self.book))
            self._require_heard()
        return self

    def _require_heard(self) -> None:
        """What [data] says about answers is for counts, and nothing is passed over in silence."""
        kinds = (kind_of_section(key) for key in self._sections if key in SECTIONS)
        if any(entry.name == "answers" for kind in kinds for entry in fields(kind.described)):
            return
        unheard = set(self.data.given()) & {entry for _, _, entry in placed(Answers)}
        for name in sorted(unheard):
            raise ValueError(
                f"data.{name} is for counts, which have [order]; a curve has yes and no in [curve]"
            )

    # -- what can be done with it

    def plan(
        self,
        progress: Progress = no_progress,
        *,
        records: int | None = None,
        rows_per_unit: int | None = None,
    ) -> SpecPlan:
        """Plan from what is public. No data is read and no budget is spent.

        ``records`` is a guess at how many records there are, which must not come from the data: the error of a curve
        depends on it. Counts and tables need none. ``rows_per_unit`` is a guess, too: the plan then says what bounding
        contributions leaves out.
        """
        described = self.description
        guess = type(described).guessed(self.section, records)
        return plan_of(described, self.guarantee, guess, rows_per_unit, progress, self.hash)

    def release(self, *, again: bool = False, progress: Progress = no_progress) -> Release:
        """Release what the spec describes, and save it. One that was released before is read back, unless ``again``."""
        return deliver(self, again=again, progress=progress).release

    @property
    def over_time(self) -> Standing:
        """The series that the spec describes: ``open()`` it once, and ``close()`` each period."""
        from isotone.release.over_time import Standing

        return Standing.of(self)

    def check(self) -> DeskReport:
        """Look at the contents of the data for oddities. NOT PRIVATE, never to be published."""
        from isotone.release.check import check_spec

        return check_spec(self)

    def audit(self, trials: int = 30_000, progress: Progress = no_progress) -> AuditReport:
        """Attack the mechanism that a release would use. The data is not opened."""
        described = self.description.checked()
        return described.attacked(described.mechanism(self.guarantee), self.guarantee, trials, progress)

    # -- what it says

    @property
    def description(self) -> Description:
        """What is published, about whom. Public files that the spec names are read."""
        return self._from_public(
            lambda resolve: self.kind.described.from_sections(self._sections, self.book, resolve)
        )

    @property
    def job(self) -> Job:
        """The release that the spec asks for, checked."""
        return Job.of(self.description, self.source, self.guarantee, self.output.stated)

    @property
    def key(self) -> str:
        """The section that says what is released."""
        return next((key for key in SECTIONS if getattr(self, key, None) is not None), "")

    @property
    def kind(self) -> Kind:
        """The kind of release that the spec asks for."""
        return kind_of_section(self.key)

    @property
    def section(self) -> Section:
        """What that section says."""
        return getattr(self, self.key)

    @property
    def _sections(self) -> dict[str, Section]:
        own = {key: getattr(self, key) for key in (self.key, BESIDE.get(self.key)) if key is not None}
        return {"data": self.data, "privacy": self.privacy, "output": self.output, **own}

    def section_of_type(self, section: type[SectionType]) -> SectionType:
        """The section of the spec's kind, which must be of the type given."""
        if not isinstance(self.section, section):
            expected = section.__name__.removesuffix("Entries").lower()
            raise SpecError(f"This spec has no [{expected}]: it has [{self.key}].")
        return self.section

    @cached_property
    def book(self) -> dict[str, Question]:
        """The questions by name."""
        return book_of([entry.question(name) for name, entry in (self.questions or {}).items()])

    @property
    def poset(self) -> Poset:
        """The order of a spec for counts, with its questions and what follows from their definitions."""
        from isotone.release.kinds.counts.description import OrderEntries

        answers = Answers(**gathered(Answers, self._sections))
        section = self._sections.get("order", self.section)
        if not isinstance(section, OrderEntries):
            section = self.section_of_type(OrderEntries)
        return self._from_public(lambda resolve: section.order(resolve, self.book, answers))

    @property
    def privacy_unit(self) -> Unit:
        """The unit."""
        return Unit(**gathered(Unit, self._sections))

    @property
    def unit(self) -> str:
        """The privacy unit in words."""
        return self.privacy_unit.words

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee to the unit."""
        privacy, unit = self.privacy, self.privacy_unit
        if privacy.rho is not None:
            return Guarantee.zcdp(privacy.rho, neighbours=unit.neighbours, unit=unit.words)
        assert privacy.epsilon is not None
        return Guarantee.approximate(
            privacy.epsilon, privacy.delta or 0, neighbours=unit.neighbours, unit=unit.words
        )

    @property
    def source(self) -> DataFile | DataTable:
        """The data with the types that are declared for its columns."""
        if self.data.connection is None:
            return self.data.file(str(self.resolve(self.data.file_path)))
        return DataTable(self.data.connection, self.data.table or "", self.data.types, self.folder)

    @property
    def target(self) -> Path:
        """The folder that a release is written to."""
        return self.resolve(self.output.folder)

    @property
    def hash(self) -> str:
        """A digest of the entries of this spec, and of the public files it names."""
        rest = {"data": self.data, "privacy": self.privacy, "output": self.output}
        content: dict[str, Any] = {
            name: {key: str(value) for key, value in section.given().items()}
            for name, section in rest.items()
        }
        return content_hash({**content, "description": self.description.plain()}).removeprefix("sha256:")

    @property
    def identity(self) -> dict[str, Any]:
        """What identifies the data in a request. It is the path or the table and the declared types, nothing of the contents."""
        source = self.source
        if isinstance(source, DataTable):
            return source.identity()
        path = Path(self.resolve(self.data.file_path)).absolute()
        return {"path": str(path), "types": dict(self.data.types), **source.stated()}

    def _from_public(self, read: Callable[[Callable[[str], Path]], Made]) -> Made:
        """What ``read`` makes of public files. Its errors quote them, but not the data, if a file is both."""
        named: list[str] = []

        def resolve(path: str) -> Path:
            named.append(path)
            return self.resolve(path)

        try:
            return read(resolve)
        except SpecError:
            for path in filter(self._is_data, named):
                raise SpecError(
                    f"{path!r} is the data, and cannot be read as the public list that the spec wants. Which columns it has is "
                    "not told. Name a file that holds what is public, and check the names of its columns."
                ) from None
            raise

    def _is_data(self, path: str) -> bool:
        if self.data.path is None:
            return False
        file, data = (self.resolve(name).resolve() for name in (path, self.data.path))
        return file == data or fnmatchcase(str(file), str(data))

    def resolve(self, path: str) -> Path:
        """A path of the spec, seen from where the spec is."""
        return self.folder / path


def open_ledger(spec: Spec) -> Ledger:
    """The spec's ledger, started on first use if the spec gives its total and the folder has no other ledger."""
    privacy, unit = spec.privacy, spec.privacy_unit
    where = privacy.ledger if "://" in privacy.ledger else spec.resolve(privacy.ledger)
    total = privacy.budget.given() if privacy.budget is not None else {}
    return open_or_start(where, dataset=privacy.dataset, unit=unit.words, neighbours=unit.neighbours, **total)


def make_ledger(spec: Spec) -> None:
    """Make the ledger of a spec before its first charge, which a further one in a folder needs."""
    privacy, unit = spec.privacy, spec.privacy_unit
    total = privacy.budget.given() if privacy.budget is not None else {}
    where = spec.resolve(privacy.ledger)
    Ledger(where, dataset=privacy.dataset, unit=unit.words, neighbours=unit.neighbours, **total).create()


def deliver(
    spec: Spec, *, again: bool = False, progress: Progress = no_progress, confirmed: str | None = None
) -> Outcome:
    """Release what a spec describes, and save it. The outcome says whether it was drawn now.

    ``confirmed`` is the id of the request that somebody agreed to: if a public file that the spec names was changed
    since, nothing is charged.
    """
    job = spec.job
    if confirmed is not None and request_id(job, spec.identity) != confirmed:
        raise SpecError("What the spec asks for was changed after it was confirmed. Nothing was charged.")
    shown = Presentation(spec.target, spec.output.report)
    return run(
        job,
        ledger=open_ledger(spec),
        identity=spec.identity,
        again=again,
        presentation=shown,
        progress=progress,
    )


def audit_name(
    name: str, epsilon: Number = 1, trials: int = 60_000, progress: Progress = no_progress
) -> AuditReport:
    """Audit a mechanism by the name of its class, on a small example."""
    return kind_of_mechanism(name).audit_named(name, epsilon, trials, progress)


# ---------------------------------------------------------------------------- its plan


@dataclass(frozen=True)
class SpecPlan:
    """A plan for people, which rich can print, and for programs (``plain``).

    ``view`` compares mechanisms, and is None where nothing can be said about errors without the data. ``before`` and
    ``note`` are said around it.
    """

    view: Plan[Any] | None
    values: dict[str, Any]
    before: str = ""
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """The plan as plain values."""
        return self.values

    def write_found(self, path: str | os.PathLike[str]) -> None:
        """Write what was found for an order out of reach in a JSON file, which ``relaxation`` in ``[order]`` can name."""
        result = getattr(self.view, "relaxation", None)
        if result is None:
            raise InputError("Nothing was searched for: the order is within exact reach, or has two levels.")
        write_file(Path(path), json.dumps(result.plain(), ensure_ascii=False) + "\n")

    def _parts(self) -> list[Any]:
        return [part for part in (self.before, self.view, self.note) if part]

    def __rich__(self) -> Any:
        from rich.console import Group

        return Group(*self._parts())

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))


def plan_of(
    described: Description,
    guarantee: Guarantee,
    guess: Any,
    rows_per_unit: int | None,
    progress: Progress,
    spec: str,
) -> SpecPlan:
    """The plan of a description under a guarantee, with what bounding contributions costs for a guessed number of rows."""
    described = described.checked()
    plan = described.planned(guarantee, guess, progress)
    head = {"guarantee": str(guarantee), "spec": spec, "kind": described.kind_name, "text": str(plan)}
    view = plan if plan.rows[0].columns else None
    remarks = [text for text in (described.reading, _weak(guarantee)) if text]
    result = SpecPlan(view, {**head, **plan.plain()}, "" if view else str(plan), "\n".join(remarks))
    if rows_per_unit is None:
        return result
    rows, most = whole_number(rows_per_unit, "rows_per_unit"), described.privacy_unit.most
    combined = described.combines and most == 1
    share = 1.0 if combined else min(most / rows, 1.0)
    note = f"If a unit has {rows} row{'s' * (rows > 1)}, as you guess: "
    if combined:
        note += "they are combined into one record, and none is left out."
    elif share < 1:
        note += (
            f"{most} of them count, chosen by chance, so that the release is about {100 * share:.0f} % of "
            f"all rows. With contributions = {rows} none is left out, and the noise is that of {rows} rows a unit."
        )
    else:
        note += "none is left out."
    values = {**result.values, "rows_per_unit": rows, "share_of_rows": share}
    return replace(result, values=values, note="\n".join([*remarks, note]))


_WEAK = 10


def _weak(guarantee: Guarantee) -> str:
    """That an ε guarantees next to nothing, perhaps by a slip of the pen."""
    if guarantee.kind == "zcdp" or guarantee.epsilon <= _WEAK:
        return ""
    return (
        f"ε = {float(guarantee.epsilon):g} guarantees next to nothing: the odds of what a reader concludes about one {guarantee.unit} may "
        f"change by a factor of e^{float(guarantee.epsilon):g}. Below 1 is easy to defend."
    )


# ---------------------------------------------------------------------------- reading one


@cache
def spec_form(*keys: str) -> type[Spec]:
    """The form of specs with one of these sections, which is required if there is only one, with the one beside it."""
    fields: dict[str, Any] = {name: (form, ...) for name, form in _COMMON.items()}
    alone = len(keys) == 1 or keys[1:] == tuple(BESIDE[key] for key in keys[:1] if key in BESIDE)
    for key in keys:
        form: Any = kind_of_section(key).section
        fields[key] = (form, ...) if alone else (form | None, None)
    return create_model("Spec", __base__=Spec, __doc__=Spec.__doc__, __module__=__name__, **fields)


def load_spec(path: str | Path) -> Spec:
    """Read and check a spec. Every error names the entry, its value and the repair."""
    if not isinstance(path, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SpecError(f"A spec is read from the path of a TOML file, not from a {type(path).__name__}.")
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*.toml")])
        raise SpecError(f"There is no spec {str(path)!r}{near or '.'}") from None
    except IsADirectoryError:
        near = sorted(p.name for p in path.glob("*.toml"))[:3]
        there = f" There is {', '.join(near)} in it." if near else ""
        raise SpecError(
            f"{str(path)!r} is a folder. Name the spec, a file that ends in .toml.{there}"
        ) from None
    except UnicodeDecodeError:
        raise SpecError(f"The spec {str(path)!r} is not UTF-8. Save it as UTF-8.") from None
    except OSError as error:
        raise SpecError(f"The spec {str(path)!r} cannot be read: {error.strerror}.") from None
    return parse_spec(text, path.parent, str(path))


def parse_spec(text: str, folder: Path, name: str) -> Spec:
    """Check the text of a spec that is, or will be, called ``name`` in ``folder``."""
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if not name.lower().endswith(".toml"):  # it may be data, of which nothing is shown
            raise SpecError(
                f"{name!r} is no spec: that is a TOML file, with a name that ends in .toml."
            ) from None
        raise SpecError(f"The spec {name!r} is not valid TOML: {_at(text, str(error))}") from None
    if not entries:
        raise SpecError(
            f"The spec {name!r} is empty. docs/start.md has one to begin with, and 'isotone demo' writes one."
        )
    keys = [key for key in SECTIONS if key in entries]
    problems: list[str] = []
    beside = [BESIDE[key] for key in keys if key in BESIDE]
    keys = list(dict.fromkeys([*keys, *beside]))
    if len(keys) != 1 + len(beside):
        *others, last = (f"[{key}]" for key in SECTIONS if key not in BESIDE)
        there = " and ".join(f"[{key}]" for key in keys) or "none of them"
        problems.append(
            f"  the spec: a spec has exactly one of {', '.join(others)} and {last} (it has {there}); [series] stands beside [order]"
        )
    try:
        result = spec_form(*keys).model_validate({**entries, "folder": folder})
    except ValidationError as error:
        problems += _explain(error)
    else:
        if not problems:
            return result
    raise SpecError("\n".join([f"The spec {name!r} cannot be used:", *problems]))


def _at(text: str, problem: str) -> str:
    """A problem of TOML with its line and an arrow, and what it often means."""
    result = re.search(r"\(at line (\d+), column (\d+)\)$", problem)
    lines = text.splitlines()
    if result is None or not 0 < int(result[1]) <= len(lines):
        return f"{problem}."
    number, column, line = int(result[1]), int(result[2]), lines[int(result[1]) - 1]
    if "connection" in line:  # which may hold a password
        return f"{problem}."
    arrow = f"\n  line {number}: {line}\n  {' ' * (len(f'line {number}: ') + column - 1)}^"
    hint = ""
    if re.search(r"=\s*-?\d+,\d", line):
        hint = '\nA decimal number has a point: 0.5, or in quotes "0.5".'
    elif "after a key" in problem and line[column - 1 : column] == ":":
        hint = "\nBetween a name and its value stands =, and no colon."
    elif "after a key" in problem and not {'"', "'"} & {*line.partition("=")[0]}:
        hint = '\nA name with other letters than a to z, or with spaces, stands in quotes: "name" = "text".'
    elif re.search(r"=\s*[\u2018-\u201f\xab\xbb]", line):
        hint = '\nA text stands in straight quotes: " and no others.'
    elif re.search(r'"[^"]*\\', line):
        hint = "\nA backslash has a meaning in double quotes. Write the path with /, or in single quotes: 'C:\\data\\answers.csv'."
    elif re.search(r"=\s*[A-Za-z_./]", line) and not re.search(r"=\s*(true|false|inf|nan)\b", line):
        hint = '\nA text stands in quotes: name = "text".'
    elif "overwrite" in problem or "twice" in problem:
        hint = '\nThis name stands twice in its section. An element of [order.parents] with two parents is written name = ["one", "other"].'
    elif line.count('"') % 2:
        hint = "\nA quote that opens a text is missing its end."
    return f"{problem.removesuffix(result[0]).strip()}.{arrow}{hint}"


def _explain(error: ValidationError) -> list[str]:
    lines: dict[str, None] = {}
    for problem in _telling(error.errors()):
        where = [str(part) for part in problem["loc"] if not _is_alternative(part)]
        key = ".".join(where) or "the spec"
        if problem["type"] == "extra_forbidden":
            lines[f"  {key}: there is no such entry{_nearest(where)}"] = None
        elif problem["type"] == "missing":
            lines[_missing(where, key)] = None
        else:
            reason = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
            own, given = isinstance(problem.get("ctx", {}).get("error"), InputError), problem["input"]
            public = isinstance(given, (str, int, float)) and where[-1:] != ["connection"]
            shown = f" (it is {given!r})" if public and not own else ""
            lines[f"  {key}: {_WRITTEN.get(problem['type'], reason)}{shown}{_in_a_file(where)}"] = None
    return list(lines)


def _missing(where: list[str], key: str) -> str:
    """That an entry is not there, with what it means; or that a list is too short."""
    if where[-1].isdecimal():
        return f"  {key.rpartition('.')[0]}: this list has too few entries"
    section = sections().get(where[0]) if len(where) == 2 else None
    entry = section and section.model_fields.get(where[1])
    return f"  {key}: this entry is missing{f'. {entry.description}' if entry and entry.description else ''}"


def _telling(problems: Sequence[Any]) -> Iterator[Any]:
    """The problems without those of types that were tried as well, where another one tells more of the same entry."""
    places = [tuple(part for part in problem["loc"] if not _is_alternative(part)) for problem in problems]
    clear = {
        place[:2] for place, problem in zip(places, problems, strict=True) if problem["type"] not in _WRITTEN
    }
    for place, problem in zip(places, problems, strict=True):
        deeper = any(other != place and other[: len(place)] == place for other in places)
        if problem["type"] not in _WRITTEN or (place[:2] not in clear and not deeper):
            yield problem


_LIST = 'a list stands in square brackets, such as [0, 1] or ["a", "b"]'
_MANY = "this list has too many entries"
_WRITTEN = {
    "list_type": _LIST,
    "tuple_type": _LIST,
    "too_long": _MANY,
    "dict_type": 'a table stands in braces, such as { name = "value" }',
    "model_type": 'this is a table, such as budget = { epsilon = "1" }, or a section, such as [order]',
    "bool_type": "true or false stands here, without quotes",
    "string_type": "a text in quotes stands here",
}
"""How TOML writes what a type asks for, by the type of the error."""


def _in_a_file(where: Sequence[str]) -> str:
    """The entry that takes a file instead, if there is one."""
    section = sections().get(where[0]) if len(where) == 2 else None
    name = f"{where[-1]}_file" if where else ""
    return f"; a file goes into {name}" if section is not None and name in section.model_fields else ""


def _is_alternative(part: int | str) -> bool:
    """Whether a part of a place only says which of several types was tried there."""
    return isinstance(part, str) and (part in ("str", "bool", "int", "float") or "[" in part or "-" in part)


def sections() -> dict[str, type[Section]]:
    """The sections that a spec may have, by name."""
    kinds = {kind.key: kind.section for kind in all_kinds()}
    return {
        "data": _COMMON["data"],
        "privacy": _COMMON["privacy"],
        **kinds,
        "questions": QuestionEntries,
        "output": _COMMON["output"],
    }


def _nearest(where: list[str]) -> str:
    section = sections().get(where[0]) if len(where) > 1 else None
    known = list(section.model_fields) if section else list(sections())
    elsewhere = [
        f"[{name}]" for name, form in _COMMON.items() if where[-1] in getattr(form, "model_fields", ())
    ]
    there = f" here, but in {' and in '.join(elsewhere)}" if section and elsewhere else ""
    return there or did_you_mean(where[-1], known, least=0.75) or f"; there are: {', '.join(known)}"


def spec_schema() -> dict[str, Any]:
    """The JSON Schema of a spec, which is a TOML file with the tables that it describes, for editors that check it.

    It knows names, types and which sections go together. What isotone checks beyond that, such as whether an order has a
    cycle, only ``isotone plan`` tells.
    """
    schema = spec_form(*SECTIONS).model_json_schema()
    schema["properties"].pop("folder")  # where the file is, which it does not say
    for kind in all_kinds():
        schema["properties"][kind.key] = {"$ref": f"#/$defs/{kind.section.__name__}"}
    schema["oneOf"] = [{"required": [key]} for key in SECTIONS if key not in BESIDE]
    schema["dependentRequired"] = {key: [other] for key, other in BESIDE.items()}
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": "isotone spec", **{k: v for k, v in schema.items() if k != "title"}}
