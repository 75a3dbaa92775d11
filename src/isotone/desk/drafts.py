"""Drafts of specs. A draft lives in memory until it is saved as a file inside the folder of the desk."""

from __future__ import annotations

import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotone.desk.folder import PathError, Root, UnnamedError, require_inside, require_no_data, small_text
from isotone.desk.words import FormError
from isotone.errors import InputError, IsotoneError, OrderError, SpecError
from isotone.forms.questionnaire import toml_text
from isotone.release.result import write_file
from isotone.release.spec import Spec, parse_spec

__all__ = ["Draft", "import_draft", "new_draft", "open_draft"]

_NAME = re.compile(r"[\w./-]+")


@dataclass
class Draft:
    """A spec on its way. ``guesses`` are for pictures alone, and stand neither in the spec nor in a manifest."""

    id: str
    name: str
    entries: dict[str, Any]
    guesses: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What an import of a questionnaire could not say, and how it was read."""
    aside: dict[str, Any] = field(default_factory=dict)
    """Definitions of questions that are not in the outline at the moment."""
    saved: str | None = None
    """The text of the file as it was opened or saved here."""

    def section(self, name: str) -> dict[str, Any]:
        """A section as it is, or an empty one."""
        found = self.entries.get(name, {})
        return dict(found) if isinstance(found, Mapping) else {}

    def change(self, section: str, **values: Any) -> None:
        """Set entries of a section. None and empty text take an entry away."""
        changed = {**self.section(section), **values}
        kept = {key: value for key, value in changed.items() if value not in (None, "")}
        self.entries = {**self.entries, section: kept}

    def ask(self, names: Iterable[str]) -> None:
        """Keep the definitions of these questions, and put those of others aside until their names come back."""
        pool, names = {**self.aside, **self.section("questions")}, set(names)
        kept = {name: said for name, said in pool.items() if name in names}
        self.aside = {name: said for name, said in pool.items() if name not in names}
        self.entries = {key: value for key, value in self.entries.items() if key != "questions"}
        if kept:
            self.entries = {**self.entries, "questions": kept}

    @property
    def labels(self) -> dict[str, str]:
        """The questions in words, by their names."""
        asked = {name: said for name, said in self.section("questions").items() if isinstance(said, Mapping)}
        return {name: str(said["label"]) for name, said in asked.items() if said.get("label")}

    def text(self) -> str:
        """The spec as TOML."""
        return toml_text(self.entries)

    def folder(self, root: Root) -> Path:
        """The folder of the spec, which its paths are seen from."""
        return root.inside(self.name).parent

    def spec(self, root: Root) -> Spec:
        """The checked spec. All its paths are inside the folder of the desk. No data is opened."""
        folder = self.folder(root)
        try:
            found = parse_spec(self.text(), folder, self.name)
        except SpecError as error:
            raise FormError("\n".join(["The spec cannot be used:", *str(error).splitlines()[1:]])) from None
        require_inside(found, root)
        try:
            _ = found.hash  # reads the public files that the spec names
        except (SpecError, OrderError, OSError):
            raise FormError("A public file that the spec names cannot be used.") from None
        except InputError:
            pass  # what is not complete yet, or does not fit, is told on its own screen
        return found

    def save(self, root: Root) -> Spec:
        """Write the spec into its file, which must be new or the one that this draft came from."""
        found, text, path = self.spec(root), self.text(), root.inside(self.name)
        if path.exists() and small_text(path) not in (self.saved, text):
            raise FormError(
                "There is another spec of this name. Choose a name of its own on the first screen."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, text)
        except OSError:
            raise FormError("The spec could not be written to the folder of the desk.") from None
        self.saved = text
        return found


def spec_name(typed: str, root: Root) -> str:
    """The name of a spec file inside the folder, with its ending."""
    name = typed.strip()
    name = name if name.endswith(".toml") else f"{name}.toml"
    if any(part.startswith(".") for part in Path(name).parts) or not _NAME.fullmatch(name):
        raise PathError("A spec needs a name of letters, digits, '-' and '_'.")
    return root.shown(root.inside(name))


def new_draft(name: str, sections: Mapping[str, Any], root: Root) -> Draft:
    """A draft with the usual entries."""
    shown = spec_name(name, root)
    stem = Path(shown).stem
    entries: dict[str, Any] = {
        "data": {"path": "data.csv"},
        "privacy": {"epsilon": "1", "ledger": f"{stem}.ledger"},
        **sections,
        "output": {"folder": f"{stem}-release"},
    }
    return Draft(secrets.token_urlsafe(9), shown, entries)


def open_draft(path: str, root: Root, *, named: bool = False) -> Draft:
    """The draft of a spec file inside the folder. ``named`` says that the files it names as public are public."""
    file = root.file(path)
    if file.suffix != ".toml":
        raise PathError("A spec is a .toml file.")
    text = small_text(file)
    try:
        entries = tomllib.loads(text or "")
        draft = Draft(secrets.token_urlsafe(9), root.shown(file), entries, saved=text)
        try:
            draft.spec(root)
        except UnnamedError as error:
            if not named:
                raise
            root.public.update(root.file(name) for name in error.files)
            draft.spec(root)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise FormError("This file is no spec: it is not valid TOML.") from None
    return draft


def import_draft(path: str, name: str, root: Root) -> Draft:
    """The draft of a questionnaire. The form alone is read."""
    from isotone.forms import read_form

    file, shown = root.file(path), spec_name(name, root)
    stem = Path(shown).stem
    require_no_data(file, root)
    try:
        found = read_form(file)
        entries = tomllib.loads(
            found.spec(data="data.csv", ledger=f"{stem}.ledger", folder=f"{stem}-release")
        )
    except (IsotoneError, OSError, ValueError, ImportError):
        raise FormError(
            "This is no questionnaire that can be read: an XLSForm (.xlsx), a REDCap data dictionary (.csv), or a CSV of "
            "relations. In a terminal, 'isotone order import' tells more."
        ) from None
    notes = (*(f"Not in the order: {words}" for words in found.problems), *found.notes)
    return Draft(secrets.token_urlsafe(9), shown, entries, notes=notes)
