"""A description says what is published, about whom. It is built without data, and it plans, releases, checks and audits.

There is one class for each kind of release. A parameter is written once, as a field with its type, its default and a
sentence: the signature, the section of a spec, its JSON Schema, the reference pages, the manifest and the hash of a request
are made from it. Every public parameter is checked when a description is built, and again before anything is planned, charged
or attacked, so that no copy or pickle gets round a check. Errors never show data: a frame is refused by its type.
"""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, cast, dataclass_transform

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core.core_schema import ValidationInfo

from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import (
    Number,
    confidence_level,
    did_you_mean,
    exact,
    frozen,
    is_plain,
    plain_text,
    positive,
    shown,
    truth,
    whole_number,
)
from isotone.privacy.guarantee import Guarantee, Neighbours
from isotone.privacy.guarantee import Unit as PrivacyUnit
from isotone.reading.contributions import UnitEntry, check_contributions
from isotone.reading.questions import Answers as AnswerWords
from isotone.reading.questions import Question, book_of
from isotone.release.manifest import Manifest, Stated, column_name

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.ledger import Ledger
    from isotone.planning import Plan
    from isotone.reading.sources import Frame
    from isotone.release.check import DeskReport
    from isotone.release.kinds.kind import Stamp
    from isotone.release.pipeline import Job
    from isotone.release.result import Release

T = TypeVar("T")

# ---------------------------------------------------------------------------- values that cannot change


class FrozenMapping(Mapping[str, Any]):
    """A mapping that cannot change and can be hashed."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> Any:
        """Keys with their values."""
        return self._items.items()

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> Any:
        return FrozenMapping, (self._items,)


_DATA = {
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "ibis",
    "pyspark",
    "narwhals",
    "dask",
    "modin",
    "cudf",
    "numpy",
    "scipy",
}


def _refuse_data(value: Any, name: str, depth: int = 0) -> None:
    """Refuse what holds data, by its type and without looking into it. A list of names may be a column or an array."""
    kind = type(value)
    library = (kind.__module__ or "").partition(".")[0]
    if library in _DATA and not isinstance(value, np.generic):
        if depth == 0 and name in _LISTS and _is_list(kind, value):
            return
        raise InputError(
            f"{name} must not be data, and this is of the type {library}.{kind.__name__}: a description is built without "
            "data. Give the data to release()."
        )
    if depth < 4 and isinstance(value, Mapping):
        for part in cast("Mapping[Any, Any]", value).values():
            _refuse_data(part, name, depth + (name not in _LISTS))
    elif depth < 4 and isinstance(value, (list, tuple)):
        for part in cast("list[Any]", value)[:100]:
            _refuse_data(part, name, depth + 1)


def _is_list(kind: type[Any], value: Any) -> bool:
    """Whether a type of some library is that of one column, or an array in one dimension."""
    if kind is np.ndarray:
        return value.ndim == 1
    return bool({base.__name__ for base in kind.__mro__} & {"Series", "Index", "Array", "ChunkedArray"})


_LISTS = {"categories", "strata", "population", "by", "bounds", "y_range", "y_values", "x_grid"}
"""Parameters that are lists, which people keep in columns and arrays."""

# ---------------------------------------------------------------------------- types of parameters


def _named(check: Callable[[Any, str], Any]) -> BeforeValidator:
    """A check that is told the name of its parameter."""
    return BeforeValidator(lambda value, info: check(value, _name(info)))


def _name(info: ValidationInfo) -> str:
    return info.field_name or "this entry"


def _list(value: Any) -> Any:
    """Lists and arrays as tuples."""
    return frozen(value)


_WRITTEN = r"^\s*[-+]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?(\s*/\s*\d+)?\s*$"
_A_NUMBER: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _WRITTEN}]}
_A_POSITIVE: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": _WRITTEN.replace("[-+]?", "", 1)},
    ]
}

Text = Annotated[str, Field(min_length=1), _named(plain_text)]
ColumnName = Annotated[str, Field(min_length=1), _named(column_name)]
Real = Annotated[Number, _named(exact), WithJsonSchema(_A_NUMBER)]
"""A number, kept exact."""
Amount = Annotated[Number, _named(positive), WithJsonSchema(_A_POSITIVE)]
Size = Annotated[int, Field(ge=1), _named(whole_number)]
Truth = Annotated[bool, _named(truth)]
Listed = BeforeValidator(_list)
"""For tuples, which may be given as lists or arrays."""
Pair = Annotated[tuple[Real, Real], Listed]
Confidence = Annotated[float, Field(gt=0, lt=1), _named(confidence_level)]

# ---------------------------------------------------------------------------- classes of parameters


@dataclass(frozen=True)
class InSpec:
    """Where a spec says a parameter: the section, and the entry if it has another name. By default in that of the kind."""

    section: str
    entry: str = ""


_CONFIG = ConfigDict(
    strict=True,
    extra="forbid",
    use_attribute_docstrings=True,
    arbitrary_types_allowed=True,
    hide_input_in_errors=True,
    revalidate_instances="always",
)


@dataclass_transform(frozen_default=True, field_specifiers=(Field, dataclasses.field))
def described(cls: type[T]) -> type[T]:
    """A frozen class of checked parameters. What is wrong with one is an InputError that names it and shows no data."""
    result: Any = pydantic_dataclass(frozen=True, repr=False, config=_CONFIG)(cls)
    build, names = result.__init__, [field.name for field in dataclasses.fields(result) if not field.kw_only]

    @wraps(build)
    def build_checked(self: Any, *args: Any, **given: Any) -> None:
        for name, value in (*zip(names, args, strict=False), *given.items()):
            _refuse_data(value, name)
        try:
            build(self, *args, **given)
        except ValidationError as error:
            problem = _explained(result, error, {**dict(zip(names, args, strict=False)), **given})
        else:
            return
        raise problem

    result.__init__ = build_checked
    for base in result.__mro__[1:]:  # sentences stand in the source of the class that has the field
        for name, info in getattr(base, "__pydantic_fields__", {}).items():
            own = result.__pydantic_fields__[name]
            own.description = own.description or info.description
    result.__repr__ = _short
    return result


def _short(self: Any) -> str:
    """The parameters that are not as by default."""
    parts: list[str] = []
    for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only)):
        value = getattr(self, field.name)
        if value != default_of(type(self), field.name):
            text = shown(value) if len(shown(value)) <= 60 else f"{shown(value)[:57]}..."
            parts.append(f"{given_name(type(self), field.name)}={text}" if field.kw_only else text)
    return f"{type(self).__name__}({', '.join(parts)})"


def default_of(kind: type[Any], name: str) -> Any:
    """What a parameter is if it is not given, as it is stored."""
    info = fields_of(kind)[name]
    return info.get_default(call_default_factory=True) if not info.is_required() else dataclasses.MISSING


def fields_of(kind: type[Any]) -> dict[str, Any]:
    """The parameters of a class with their types, defaults and sentences."""
    return kind.__pydantic_fields__


def given_name(kind: type[Any], name: str) -> str:
    """What a parameter is called by those who give it."""
    return fields_of(kind)[name].alias or name


def _explained(kind: type[Any], error: ValidationError, given: Mapping[str, Any]) -> InputError:
    """What is wrong with a parameter, in a sentence without data."""
    problems = error.errors(include_url=False)
    problem = problems[0]
    name, what = str(problem["loc"][0]) if problem["loc"] else kind.__name__, problem["type"]
    if len(problem["loc"]) > 1 and not is_plain(given.get(name)):  # an entry of an array could be anybody's
        return InputError(
            f"{name} has entries that it cannot have, and a {type(given[name]).__name__} may hold data, so they are not shown. Write a plain list."
        )
    for one in problems:  # of several types that were tried, the last one with a reason
        raised = one.get("ctx", {}).get("error")
        if one["loc"][:1] == problem["loc"][:1] and isinstance(raised, InputError):
            return raised
    if what == "unexpected_keyword_argument":
        known = [given_name(kind, field) for field in fields_of(kind)]
        reason = getattr(kind, "refused", {}).get(name)
        if name in fields_of(kind):
            reason = f"{kind.__name__} has no parameter {name!r}: it is called {given_name(kind, name)!r}."
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}."
        return InputError(reason or f"{kind.__name__} has no parameter {name!r}{near}")
    if len(problem["loc"]) > 1 and what in ("missing", "too_long", "too_short"):
        return InputError(f"{name} has too few or too many entries.")
    if what.startswith("missing"):
        meaning = fields_of(kind)[name].description or ""
        return InputError(f"{kind.__name__} needs {name}. {meaning}".rstrip())
    if what == "unexpected_positional_argument":
        return InputError(
            f"{kind.__name__} takes its first parameter without a name; give all others by name."
        )
    value = problem["input"]
    quoted = (
        f", not {shown(value)}" if isinstance(value, (str, int, float)) else f", not a {type(value).__name__}"
    )
    reason = problem["msg"].removeprefix("Value error, ")
    if not reason.startswith("Input should "):
        return InputError(f"{name}: {reason}.")
    return InputError(f"{name} must {reason.removeprefix('Input should ')}{quoted}.")


@described
class Unit:
    """Whose rows belong together, how many of them count, and what neighbouring data sets are.

    >>> Unit("person", contributions=2)
    Unit('person', contributions=2)
    """

    column: Annotated[ColumnName | None, InSpec("data", "unit")] = None
    """The column that says whose row it is. Without it every row is one unit; rows without a value are dropped."""
    _: KW_ONLY
    contributions: Annotated[Size | None, InSpec("data")] = None
    """How many records one unit may give; the noise grows with it. By default 1, which combines a unit's rows of counts into one record."""
    neighbours: Annotated[Neighbours, InSpec("privacy")] = "add-remove"
    """What one change of the data is: a unit more or less, or a unit with other answers."""
    name: Annotated[Text | None, InSpec("privacy", "unit")] = None
    """What is protected, in words: person, household, … By default the name of the unit's column, or "record"."""

    @classmethod
    def of(cls, value: Any) -> Any:
        """A unit from its column alone, or as it is."""
        if value is None or isinstance(value, str):
            return cls(value)
        if isinstance(value, Mapping):
            return cls(**cast("Mapping[str, Any]", value))
        if not isinstance(value, cls):
            raise InputError(
                f"unit must be the name of one column as text, or a Unit, not a {type(value).__name__}."
            )
        return value

    @cached_property
    def most(self) -> int:
        """How many records of a unit count at most."""
        return self.contributions or 1

    @cached_property
    def words(self) -> str:
        """What is protected, in words."""
        return self.name or self.column or "record"

    def entry(self) -> UnitEntry:
        """Column and contributions, as readers of rows know them."""
        return {"unit": self.column, "contributions": self.most}

    def require_column(self) -> None:
        """Refuse contributions where every row is a unit of its own."""
        check_contributions(self.most, self.column)


UnitLike = Annotated[Unit | str | None, BeforeValidator(Unit.of)]

_WORDS = AnswerWords()


def _words(value: Any) -> Any:
    """Words as texts; they are compared without regard to case."""
    if isinstance(value, (list, tuple)):
        return tuple(
            str(word) if isinstance(word, (int, float)) else word for word in cast("list[Any]", value)
        )
    return value


def _columns(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise InputError(f"columns must be of the type Mapping, not {shown(value)}.")
    return FrozenMapping({x: column_name(c, "columns") for x, c in cast("Mapping[Any, Any]", value).items()})


def _questions(value: Any) -> Any:
    """Questions, or their definitions by name."""
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value).items()
        value = [entry if isinstance(entry, Question) else _question(name, entry) for name, entry in named]
    elif isinstance(value, (list, tuple)):
        entries = cast("list[Any]", value)
        value = [_question(None, entry) if isinstance(entry, Mapping) else entry for entry in entries]
    return tuple(book_of(value).values())


def _question(name: Any, entry: Any) -> Question:
    """A question from its parts by name."""
    if not isinstance(entry, Mapping):
        raise InputError(f"The question {shown(name)} must be a Question, or a mapping of its parts.")
    parts = cast("Mapping[str, Any]", entry)
    known = [field.name for field in dataclasses.fields(Question)]
    for part in parts:
        if part not in known:
            near = did_you_mean(str(part), known) or f"; there are: {', '.join(known)}."
            raise InputError(f"A question has no {shown(part)}{near}")
    return Question(**({"name": name} | dict(parts)))


@described
class Answers:
    """Where the answers to the elements of an order are, what counts as a yes, and what happens to odd records.

    >>> Answers(element="item", missing="yes")
    Answers(element='item', missing='yes')
    """

    _: KW_ONLY
    element: Annotated[ColumnName | None, InSpec("data")] = None
    """Long data: the column that names the element which the unit has. A row is one yes."""
    columns: Annotated[
        Any,
        BeforeValidator(_columns),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
        InSpec("data"),
    ] = FrozenMapping({})
    """Wide data: the column of each element that is not called like the element."""
    yes: Annotated[tuple[str, ...], BeforeValidator(_words), InSpec("data")] = _WORDS.yes
    """The words that mean yes, in any case."""
    no: Annotated[tuple[str, ...], BeforeValidator(_words), InSpec("data")] = _WORDS.no
    """The words that mean no; they matter with missing = "yes" only."""
    missing: Annotated[Literal["no", "yes"], InSpec("data")] = "no"
    """What an answer counts as that is missing or cannot be read."""
    on_violation: Annotated[Literal["close", "drop"], InSpec("data")] = "close"
    """Whether a record that breaks the order is completed upward, or left out."""
    on_conflict: Annotated[Literal["first", "drop"], InSpec("data")] = "first"
    """Whether a record with several options of a choice keeps the first in the list of elements, or is left out."""
    questions: Annotated[Any, BeforeValidator(_questions), InSpec("questions")] = ()
    """What counts as a yes to an element, and its label, where it is not as for all (:func:`isotone.order_of`)."""

    def __post_init__(self) -> None:
        for name in ("yes", "no"):
            object.__setattr__(self, name, getattr(self.words, name))

    @cached_property
    def words(self) -> AnswerWords:
        """What counts as a yes, unless a question says otherwise."""
        return AnswerWords(self.yes, self.no, self.missing)

    @property
    def book(self) -> dict[str, Question]:
        """The questions by name."""
        return {question.name: question for question in self.questions}

    @classmethod
    def of(cls, value: Any) -> Any:
        """Answers as they are, or the usual ones."""
        if value is None:
            return cls()
        if isinstance(value, Mapping):
            return cls(**cast("Mapping[str, Any]", value))
        if not isinstance(value, cls):
            raise InputError(f"answers must be of the type Answers, not {shown(value)}.")
        return value


AnswersLike = Annotated[Answers | None, BeforeValidator(Answers.of)]


class Section(BaseModel):
    """One table of a spec. The text under an entry is its meaning in the documentation (docs/reference/spec.md)."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True, arbitrary_types_allowed=True
    )

    def complete(self, questions: bool) -> None:
        """Refuse what the rest of the spec does not allow; ``asked`` says whether there are questions."""
        if questions:
            raise ValueError("questions are for counts, which have [order]")

    def given(self) -> dict[str, Any]:
        """The entries that stand in the spec."""
        return {
            name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set
        }


def placed(kind: type[Any], own: str = "") -> Iterator[tuple[str, str, str]]:
    """For each parameter of a class its name, and the section and entry of a spec that say it."""
    for name, info in fields_of(kind).items():
        where = next((part for part in info.metadata if isinstance(part, InSpec)), InSpec(own))
        yield name, where.section, where.entry or info.alias or name


def section_of(
    name: str, base: type[Section], section: str, *kinds: type[Any], leave: frozenset[str] = frozenset()
) -> type[Section]:
    """The section of a spec that holds the entries of ``base``, and the parameters of some classes that stand there."""
    entries: dict[str, Any] = {}
    for kind in kinds:
        own = getattr(kind, "key", "")
        for field, where, entry in placed(kind, own):
            taken = entry in base.model_fields or entry in entries
            if where == section and field not in leave and not taken:
                info = fields_of(kind)[field]
                kept: Any = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
                default = ... if info.is_required() else info.default
                default = dict(default) if isinstance(default, FrozenMapping) else default
                entries[entry] = (kept, Field(default, description=info.description))
    return create_model(name, __base__=base, __doc__=base.__doc__, __module__=base.__module__, **entries)


def gathered(kind: type[T], sections: Mapping[str, Section], own: str = "") -> dict[str, Any]:
    """The parameters of a class that the sections of a spec give."""
    entries = {name: section.given() for name, section in sections.items()}
    return {
        given_name(kind, name): entries[section][entry]
        for name, section, entry in placed(kind, own)
        if section in entries and entry in entries[section]
    }


# ---------------------------------------------------------------------------- what every description can do


@described
class Description(ABC):
    """What is published, about whom. Frozen, and built without data; every parameter is public.

    The first parameter may be given without its name. ``unit`` is a column, or a :class:`Unit`.
    """

    kind_name: ClassVar[str]
    """What a manifest calls this kind of release."""
    form: ClassVar[type[Manifest]]
    """The manifest of this kind."""
    key: ClassVar[str]
    """The section of a spec that asks for it."""
    entries: ClassVar[type[Section]] = Section
    """The entries of that section beside the parameters."""
    elsewhere: ClassVar[Mapping[str, str]] = FrozenMapping({})
    """Parameters that the manifest does not repeat, each with the place that says it."""
    refused: ClassVar[Mapping[str, str]] = FrozenMapping({})
    """Parameters that people ask for and that there are none of, each with the reason."""

    _: KW_ONLY
    unit: UnitLike = Unit()
    """The column of the privacy unit, or a Unit that says also how many of its rows count and what neighbours are."""
    confidence: Annotated[Confidence, InSpec("output")] = 0.95
    """The confidence of the intervals."""

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        guess: Any = None,
        progress: Progress = no_progress,
    ) -> Plan[Any]:
        """What would be released, by which mechanism and with what error. Nothing is read and nothing is spent.

        The first mechanism is the one that :meth:`release` uses. ``guess`` is what a plan may assume about the data, and must
        not come from them: about how many records there are, for a curve; for a table the shape of its distribution.
        """
        description = self.checked()
        return description.planned(description.guarantee(epsilon, delta, rho), guess, progress)

    def release(
        self,
        data: Any,
        *,
        ledger: Ledger,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        folder: str | os.PathLike[str] | None = None,
        request: str | None = None,
        again: bool = False,
        title: str | None = None,
        progress: Progress = no_progress,
    ) -> Release:
        """Charge the ledger, read the data, add noise. Everything that can be refused is refused before the charge.

        Parameters
        ----------
        data
            A path (CSV, Parquet, JSON lines, Arrow; globs) or a table (pandas, polars, Arrow, DuckDB, ibis, Spark).
        ledger
            Pays for the release. The charge is durable before the data is read.
        epsilon, delta, rho
            The guarantee: pure ``epsilon``, ``epsilon`` with ``delta``, or ``rho``-zCDP.
        folder
            Where the release is written before this returns; the same as what ``isotone release`` does with a spec. A
            request that was released there before is read back, and nothing is charged.
        request
            A name for this request. A second call with the same name and parameters takes over a charge whose process
            ended before anything was drawn, instead of paying again. Data in memory has no identity without it.
        again
            Draw and charge anew although the request was released before.
        title
            The title of the report. It is presentation, and no part of the request.
        """
        from isotone.ledger.ledger import require_ledger
        from isotone.release import pipeline

        require_ledger(ledger)
        description = self.checked()
        job = description.job(data, description.guarantee(epsilon, delta, rho), Stated(title=title))
        return pipeline.released(job, ledger, request, again, folder, progress)

    def check(self, data: Any) -> DeskReport:
        """Look at the contents of the data for oddities. NOT PRIVATE, never to be published."""
        from isotone.release.check import check_data

        return check_data(self.checked(), data)

    def audit(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        trials: int = 30_000,
        progress: Progress = no_progress,
    ) -> AuditReport:
        """Attack the mechanism that a release would use, by draws. No data is opened and nothing is spent."""
        description = self.checked()
        guarantee = description.guarantee(epsilon, delta, rho)
        return description.attacked(description.mechanism(guarantee), guarantee, trials, progress)

    # -- what each kind says

    @property
    @abstractmethod
    def words(self) -> str:
        """A few public words for the ledger."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The title of a report that is given none."""

    @abstractmethod
    def mechanism(self, guarantee: Guarantee) -> Any:
        """The one mechanism that plans, releases and audits use for a guarantee."""

    def charged(self, mechanism: Any, guarantee: Guarantee) -> Guarantee:
        """What is charged, which may be less than was asked for."""
        del mechanism
        return guarantee

    def mechanism_name(self, mechanism: Any) -> str:
        """The class of the mechanism, for the ledger."""
        return type(mechanism).__name__

    @abstractmethod
    def source(self, data: Any, mechanism: Any) -> Any:
        """How rows are read. It has ``open()``, which looks at the schema alone."""

    @abstractmethod
    def read(self, source: Any, frame: Frame) -> Any:
        """The statistic of the data, computed where the data is. Zero rows are rows like any others."""

    @abstractmethod
    def draw(self, mechanism: Any, statistic: Any) -> Any:
        """The private outputs, from cryptographic bits. The only step that draws noise."""

    def known(self, mechanism: Any) -> Any:
        """What is published about errors and is known before any data is read."""
        del mechanism

    @abstractmethod
    def columns(self, mechanism: Any, drawn: Any, known: Any) -> dict[str, tuple[Any, ...]]:
        """The published columns, which follow from the private outputs and the mechanism."""

    @abstractmethod
    def manifest(self, mechanism: Any, drawn: Any, common: Mapping[str, Any]) -> Manifest:
        """The manifest, given the entries that all kinds have."""

    @abstractmethod
    def planned(self, guarantee: Guarantee, guess: Any, progress: Progress) -> Plan[Any]:
        """See :meth:`plan`."""

    @abstractmethod
    def attacked(self, mechanism: Any, guarantee: Guarantee, trials: int, progress: Progress) -> AuditReport:
        """See :meth:`audit`."""

    @abstractmethod
    def findings(self, source: Any) -> list[str]:
        """What the steward should know about the contents of the data beside its units. Not private."""

    @property
    def reading(self) -> str:
        """How values are read that people write as words, in a sentence, where a plan has to say it."""
        return ""

    combines: ClassVar[bool] = False
    """Whether one contribution makes one record of all rows of a unit, in place of choosing one."""

    @property
    def number_of_waves(self) -> int:
        """How many releases like this one are planned, this one among them."""
        return 1

    # -- what follows for all kinds

    @cached_property
    def privacy_unit(self) -> Unit:
        """The unit."""
        return cast("Unit", self.unit)

    def least_budget(self, guarantee: Guarantee, error: float, guess: int | None, confidence: float) -> Any:
        """The least budget of the kind of a guarantee with so large an error, and what that is the error of, or None.

        None is for a kind that cannot tell it, and for one whose plan does.
        """
        del guarantee, error, guess, confidence

    def guarantee(self, epsilon: Any = None, delta: Any = None, rho: Any = None) -> Guarantee:
        """The guarantee to the unit of this description."""
        return PrivacyUnit(1, self.privacy_unit.neighbours, self.privacy_unit.words).guarantee(
            epsilon, delta, rho
        )

    def checked(self) -> Self:
        """The same description, built again: nothing that got round a check gets further."""
        return self.changed()

    def changed(self, **changes: Any) -> Self:
        """The same description with some parameters changed."""
        kind = type(self)
        parameters = {given_name(kind, name): getattr(self, name) for name in fields_of(kind)} | changes
        first = [
            parameters.pop(field.name) for field in dataclasses.fields(cast("Any", self)) if not field.kw_only
        ]
        return kind(*first, **parameters)

    def job(self, data: Any, guarantee: Guarantee, stated: Stated) -> Any:
        """One release of this description, ready to be charged."""
        from isotone.release.pipeline import Job

        return Job.of(self, data, guarantee, stated)

    def plain(self) -> dict[str, Any]:
        """Every parameter as plain values, which a request is known by."""
        kind = type(self)
        return {given_name(kind, name): plain_value(getattr(self, name)) for name in fields_of(kind)}

    def identity(self) -> dict[str, Any]:
        """What a request is known by: every parameter that decides about the numbers."""
        return self.plain()

    def rehearsed(self, job: Job, frame: Frame, stamp: Stamp) -> tuple[Release, dict[str, int]]:
        """A release of zero rows, and how many bytes more some files of a real one have, by name.

        A large release may be drawn in full and written in part, by a public rule.
        """
        return job.publish(job.draw(job.read(frame)), stamp), {}

    def in_manifest(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {name: value for name, value in self.plain().items() if name not in self.elsewhere}

    @classmethod
    def from_manifest(cls, manifest: Manifest, columns: Mapping[str, tuple[Any, ...]]) -> Self:
        """The description of a release."""
        del columns
        return cls(**manifest.description or {})

    @classmethod
    def from_sections(
        cls,
        sections: Mapping[str, Section],
        questions: Mapping[str, Question],
        resolve: Callable[[str], Path],
    ) -> Self:
        """The description that a spec gives in its sections, whose files are found by ``resolve``."""
        del questions, resolve
        parameters: dict[str, Any] = gathered(cls, sections, cls.key)
        parameters["unit"] = Unit(**gathered(Unit, sections))
        return cls(**parameters)

    @classmethod
    def leaves(cls) -> frozenset[str]:
        """Parameters that a spec does not give in the section of the kind."""
        return frozenset({"unit"})

    @classmethod
    def guessed(cls, section: Section, records: int | None) -> Any:
        """What a spec lets a plan assume about the data."""
        del section
        return records

    @classmethod
    @cache
    def section(cls) -> type[Section]:
        """The section of a spec that asks for this kind."""
        return section_of(f"{cls.__name__}Section", cls.entries, cls.key, cls, leave=cls.leaves())


def plain_value(value: Any) -> Any:
    """A parameter as values of JSON. Numbers that are no whole numbers become exact texts."""
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value
    if isinstance(value, tuple):
        return [plain_value(part) for part in cast("tuple[Any, ...]", value)]
    if isinstance(value, Mapping):
        return {str(key): plain_value(part) for key, part in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Question):
        return {"name": value.name, **value.plain()}
    if hasattr(value, "__pydantic_fields__"):
        return {name: plain_value(getattr(value, name)) for name in fields_of(type(value))}
    return str(value)
