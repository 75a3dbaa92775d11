"""Drafts of specs. A draft is a file beside its spec (``survey.draft.toml``), written while one types, until it is saved as the spec.

A draft counts as a spec wherever the desk asks what is data. The table ``desk`` in its file holds what no spec has: guesses for
pictures, what was typed and not taken over yet, and what an import could not say.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotone.desk.folder import (
    DRAFT,
    LEDGER,
    PathError,
    Root,
    UnnamedError,
    columns_of,
    name_public,
    require_inside,
    require_no_data,
    small_text,
)
from isotone.desk.forms import in_words
from isotone.desk.words import FormError
from isotone.errors import InputError, IsotoneError, OrderError, SpecError
from isotone.forms.questionnaire import toml_text
from isotone.reading.questions import Question
from isotone.release.result import write_file
from isotone.release.spec import Spec, parse_spec

_NAME = re.compile(r"[\w./-]+")
_ID = re.compile(r"[\w-]{8,40}", re.ASCII)
_STUB: dict[str, Any] = {"order": {"elements": ["x"]}}
"""What stands in the place of a kind of release that is not described yet."""


@dataclass
class Draft:
    """A spec on its way."""

    id: str
    name: str
    """The path of the spec, seen from the folder of the desk."""
    entries: dict[str, Any]
    guesses: dict[str, int] = field(default_factory=dict)
    """For pictures alone: they stand neither in the spec nor in a manifest."""
    notes: tuple[str, ...] = ()
    """What an import of a questionnaire could not say, and how it was read."""
    aside: dict[str, Any] = field(default_factory=dict)
    """Definitions of questions that are not in the outline at the moment."""
    typed: dict[str, dict[str, str]] = field(default_factory=dict)
    """By screen, what was typed there and not taken over yet."""
    saved: str | None = None
    """The text of the file as it was opened or saved here."""
    lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)

    def section(self, name: str) -> dict[str, Any]:
        """A section as it is, or an empty one."""
        result = self.entries.get(name, {})
        return dict(result) if isinstance(result, Mapping) else {}

    def change(self, section: str, **values: Any) -> None:
        """Set entries of a section. None and empty text take an entry away."""
        changed = {**self.section(section), **values}
        kept = {key: value for key, value in changed.items() if value not in (None, "")}
        self.entries = {**self.entries, section: kept}

    def ask(self, names: Iterable[str]) -> None:
        """Keep the definitions of these questions, and put those of others aside until their names come back."""
        pool, names = {**self.aside, **self.section("questions")}, set(names)
        kept = {name: text for name, text in pool.items() if name in names}
        self.aside = {name: text for name, text in pool.items() if name not in names}
        self.entries = {key: value for key, value in self.entries.items() if key != "questions"}
        if kept:
            self.entries = {**self.entries, "questions": kept}

    @property
    def labels(self) -> dict[str, str]:
        """The questions in words, by their names."""
        questions = {
            name: question
            for name, question in self.section("questions").items()
            if isinstance(question, Mapping)
        }
        result: dict[str, str] = {}
        for name, question in questions.items():
            with suppress(InputError, TypeError):
                result |= {name: Question(name, **question).shown} if question.get("label") else {}
        return result

    def text(self) -> str:
        """The spec as TOML."""
        return toml_text(self.entries)

    def folder(self, root: Root) -> Path:
        """The folder of the spec, which its paths are seen from."""
        return root.inside(self.name).parent

    def columns(self, root: Root) -> list[str] | None:
        """The columns of the data, if they are public."""
        data = self.section("data")
        try:
            return columns_of(str(data.get("path", "")), self.folder(root), data, root)
        except PathError:
            return None

    def require_settings(self, root: Root) -> None:
        """Refuse what is wrong in the sections that all kinds have."""
        kept = {name: self.section(name) for name in ("data", "privacy", "output")}
        _parsed({**kept, **_STUB}, self.folder(root), self.name, root)

    def spec(self, root: Root) -> Spec:
        """The checked spec. All its paths are inside the folder of the desk. No data is opened."""
        spec = _parsed(self.entries, self.folder(root), self.name, root)
        try:
            _ = spec.hash  # reads the public files that the spec names
        except (SpecError, OrderError) as error:
            raise FormError(str(error)) from None
        except OSError:
            raise FormError("A public file that the spec names cannot be read.") from None
        except InputError:
            pass  # what is not complete yet, or does not fit, is told on its own screen
        return spec

    def file(self, root: Root) -> Path:
        """Where the draft is kept until it is saved."""
        return root.inside(self.name.removesuffix(".toml") + DRAFT)

    def keep(self, root: Root) -> None:
        """Write the draft beside its spec, or remove it if the spec says the same. What cannot be written stays in memory."""
        desk: dict[str, Any] = {
            "id": self.id,
            "origin": "" if self.saved is None else _digest(self.saved),
            "guesses": self.guesses,
            "notes": list(self.notes),
            "aside": self.aside,
            "typed": {step: entries for step, entries in self.typed.items() if entries},
        }
        with suppress(OSError, IsotoneError):
            if self.text() == self.saved and not desk["typed"]:
                self.file(root).unlink(missing_ok=True)
            else:
                self.file(root).parent.mkdir(parents=True, exist_ok=True)
                write_file(self.file(root), toml_text({**self.entries, "desk": desk}))

    def save(self, root: Root) -> Spec:
        """Write the spec into its file, which must be new or the one that this draft came from."""
        result, text, path = self.spec(root), self.text(), root.inside(self.name)
        if path.exists() and small_text(path) not in (self.saved, text):
            raise FormError(
                f"There is another spec {self.name}, or it was changed since. Open it on the first screen, or begin with a new name."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, text)
        except OSError as error:
            raise FormError(f"The spec could not be written to {self.name}: {error.strerror}.") from None
        self.saved, self.typed = text, {}
        return result


def _parsed(entries: Mapping[str, Any], folder: Path, name: str, root: Root) -> Spec:
    try:
        spec = parse_spec(toml_text(entries), folder, name)
    except SpecError as error:
        problems = [in_words(line.strip()) for line in str(error).splitlines()[1:]]
        raise FormError("\n".join(problems or [str(error)])) from None
    require_inside(spec, root)
    return spec


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def spec_name(typed: str, root: Root) -> str:
    """The name of a spec file inside the folder, with its ending."""
    name = typed.strip()
    name = name if name.endswith(".toml") else f"{name}.toml"
    if (
        any(part.startswith(".") for part in Path(name).parts)
        or not _NAME.fullmatch(name)
        or name.endswith(DRAFT)
    ):
        raise PathError("A spec needs a name of letters, digits, '-' and '_'.")
    return root.shown(root.inside(name))


def _require_new(name: str, root: Root) -> None:
    for path in (root.inside(name), root.inside(name.removesuffix(".toml") + DRAFT)):
        if path.exists():
            raise FormError(f"There is {root.shown(path)} already. Open it below, or choose another name.")


def new_draft(name: str, begun: Callable[[str], Mapping[str, Any]], root: Root) -> Draft:
    """A draft with the usual entries, beside what a kind begins with."""
    shown = spec_name(name, root)
    _require_new(shown, root)
    stem = Path(shown).stem
    entries: dict[str, Any] = {
        "data": {},
        "privacy": {"epsilon": "1", "ledger": _usual_ledger(shown, root)},
        **begun(stem),
        "output": {"folder": f"{stem}-release"},
    }
    return Draft(secrets.token_urlsafe(9), shown, entries)


def _usual_ledger(name: str, root: Root) -> str:
    """The one ledger beside a spec, since all releases from the same people share it; else one that is called like the spec."""
    result = root.beside(Path(name).parent, LEDGER)
    return result[0] if len(result) == 1 else f"{Path(name).stem}{LEDGER}"


def open_draft(path: str, root: Root, *, named: bool = False) -> Draft:
    """The draft of a spec file inside the folder. ``named`` says that the files it names as public are public."""
    file = root.file(path)
    if file.suffix != ".toml":
        raise PathError("A spec is a .toml file.")
    text = small_text(file)
    try:
        entries = tomllib.loads(text or "")
        draft = _read(entries, text, file, root)
        whole = not file.name.endswith(DRAFT)
        try:
            draft.spec(root)
        except UnnamedError as error:
            if not named:
                raise
            name_public(error.files, root)
            draft.spec(root)
        except FormError:
            if whole:
                raise  # a draft may be incomplete
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FormError(f"{path} is not valid TOML: {error}.") from None
    return draft


def _read(entries: dict[str, Any], text: str | None, file: Path, root: Root) -> Draft:
    """A spec, or a draft as it was left."""
    shown = root.shown(file)
    if not shown.endswith(DRAFT):
        return Draft(secrets.token_urlsafe(9), shown, entries, saved=text)
    held = entries.pop("desk", {})
    name = shown.removesuffix(DRAFT) + ".toml"
    known = small_text(root.inside(name)) if root.inside(name).is_file() else None
    try:
        if not _ID.fullmatch(held["id"]):
            raise ValueError("an id that no desk gives")
        return Draft(
            held["id"],
            name,
            entries,
            {str(key): int(value) for key, value in held["guesses"].items()},
            tuple(map(str, held["notes"])),
            dict(held["aside"]),
            {str(step): {str(a): str(b) for a, b in said.items()} for step, said in held["typed"].items()},
            known if known is not None and _digest(known) == held["origin"] else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormError(f"{shown} is no draft of this desk.") from None


def import_draft(path: str, name: str, root: Root) -> Draft:
    """The draft of a questionnaire. The form alone is read."""
    from isotone.forms import read_form

    file, shown = root.file(path), spec_name(name, root)
    _require_new(shown, root)
    stem = Path(shown).stem
    require_no_data(file, root)
    try:
        questionnaire = read_form(file)
        entries = tomllib.loads(
            questionnaire.spec(data="data.csv", ledger=_usual_ledger(shown, root), folder=f"{stem}-release")
        )
    except (
        IsotoneError,
        OSError,
        ValueError,
        ImportError,
    ):  # their words may quote a file that is none, and holds data
        raise FormError(
            "This is no questionnaire that can be read: an XLSForm (.xlsx), a REDCap data dictionary (.csv), or a CSV of "
            "relations. In a terminal, 'isotone order import' tells more."
        ) from None
    entries["data"].pop("path", None)  # the screen of the data asks for it
    notes = (*(f"Not in the order: {words}" for words in questionnaire.problems), *questionnaire.notes)
    return Draft(secrets.token_urlsafe(9), shown, entries, notes=notes)
