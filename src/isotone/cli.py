"""The command line: parse, call, print. Every command is a thin shell over a public function.

On a terminal there are tables and progress bars; in a pipe, plain text. ``--json`` prints one JSON value.
Exit codes: 0 done, 1 refused or failed with a sentence on stderr, 2 a mistake in the call itself.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from isotone.errors import InputError, IsotoneError
from isotone.mechanism import no_progress
from isotone.privacy.guarantee import Neighbours

__all__ = ["app", "main"]

app = typer.Typer(
    help="Differentially private statistics of ordered data: plan, release, verify, audit.",
    no_args_is_help=True,
    add_completion=False,
)
ledger_app = typer.Typer(
    help="A data set's privacy budget: create it, look at it, export it.", no_args_is_help=True
)
order_app = typer.Typer(help="Look at a partial order before it is used.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")
app.add_typer(order_app, name="order")

out = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="The specification, a TOML file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
ReleaseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Generator[Callable[[float, str], None]]:
    """A progress bar on a terminal, nothing in a pipe."""
    if quiet or not errors.is_terminal:
        yield no_progress
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=1.0, what="")
        yield lambda fraction, what: bar.update(task, completed=fraction, what=what)


def _json(value: Any) -> str:
    """One JSON value, with escapes where the terminal cannot show a letter."""
    unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return json.dumps(value, indent=2, ensure_ascii=not unicode)


def show(value: Any, *, as_json: bool, quiet: bool, plain: Any) -> None:
    """Print ``plain`` for people, or ``value`` for programs."""
    if as_json:
        typer.echo(_json(value))
    elif quiet:
        return
    elif out.is_terminal and not isinstance(plain, str):
        out.print(plain)
    elif isinstance(plain, Table):
        if plain.title:  # a title of its own is not wrapped to the width of the table
            typer.echo(str(plain.title))
        plain.title, plain.box = None, None
        Console(width=240, highlight=False).print(plain)  # as wide as the text: nothing is cut in a pipe
    else:
        typer.echo(str(plain))


# ---------------------------------------------------------------------------- plan, release, verify


@app.command()
def plan(
    spec: SpecPath,
    records: Annotated[
        int | None,
        typer.Option(min=1, help="For a curve: about how many records there are, guessed without the data."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare mechanisms for a spec. No data is read and no budget is spent."""
    from isotone.release import load_spec, plan_spec

    with progress_bar("planning", quiet=quiet or as_json) as progress:
        made = plan_spec(load_spec(spec), progress, records=records)
    show(made.plain(), as_json=as_json, quiet=quiet, plain=made)


@app.command()
def release(
    spec: SpecPath,
    again: Annotated[
        bool, typer.Option("--again", help="Draw and charge anew although it was released.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Charge the ledger, read the data, add noise, and write the release with its report.

    Safe to repeat: a spec that was released is neither charged nor drawn again, unless --again is given.
    """
    from isotone.release import load_spec, release_spec

    try:
        with progress_bar("releasing", quiet=quiet or as_json) as progress:
            asked = load_spec(spec)
            made, folder, fresh = release_spec(asked, again=again, progress=progress)
    except KeyboardInterrupt:
        errors.print(
            "isotone: interrupted. A charge that was made stays spent. If nothing was drawn under it, the same command "
            "takes it over at no cost: see 'isotone ledger show'."
        )
        raise typer.Exit(130) from None
    value = {"folder": str(folder), "new": fresh, "columns": {k: list(v) for k, v in made.columns.items()}}
    show(value, as_json=as_json, quiet=quiet, plain=_release_table(made))
    said = "The release is" if fresh else "This spec was released before; nothing was charged. The release is"
    if not as_json and not quiet:
        out.print(f"{said} in {folder}", markup=False)
        if not fresh and asked.output.title not in (None, made.manifest.title):
            out.print("The new title is not used: a title is sealed with its release.", markup=False)
        if (folder / "report.html").exists():
            out.print(f"Report: {folder / 'report.html'}", markup=False)


@app.command()
def verify(
    folder: ReleaseFolder,
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUB", help="The publisher's public key, or a list of allowed signers."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="The ledger that paid, or an extract of the charge (.json)."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a release from its folder alone: files, seal, promise, errors and report.

    With --key also who signed it, with --ledger also that it was paid for.
    """
    from isotone.release import verify as check

    verdict = check(folder, key=key, ledger=ledger)
    value = {"holds": verdict.holds, "checks": [vars(item) for item in verdict.checks]}
    show(value, as_json=as_json, quiet=quiet, plain=str(verdict))
    if not verdict.holds:
        raise typer.Exit(1)


@app.command()
def report(folder: ReleaseFolder) -> None:
    """Draw report.html of a release again, from its folder."""
    from isotone.release import load_release

    out.print(f"Report: {load_release(folder).save_report(folder)}", markup=False)


@app.command()
def keygen(
    path: Annotated[
        Path, typer.Argument(metavar="KEY", help="The private key to write; KEY.pub is the public one.")
    ],
    owner: Annotated[str, typer.Option(help="Who the key belongs to, in one word.")] = "isotone",
) -> None:
    """Make a key to sign releases with. Keys made by ssh-keygen -t ed25519 serve as well."""
    from isotone.release.verifying.signing import make_key

    key = make_key(path, owner)
    out.print(f"{path} is the private key: keep it. {path}.pub is public: {key.fingerprint}", markup=False)


@app.command()
def sign(
    what: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="The folder of a release, or an extract of a ledger.")
    ],
    key: Annotated[Path, typer.Option(metavar="KEY", help="The private key.")],
) -> None:
    """Sign the values and the manifest of a release, or an extract of a ledger."""
    from isotone.release.verifying.sign import sign_file, sign_release

    where = sign_release(what, key) if what.is_dir() else sign_file(what, key)
    out.print(f"Signature: {where}", markup=False)


@app.command()
def check(spec: SpecPath) -> None:
    """Look at the contents of the data for oddities. For the steward's desk: not private, never to be published."""
    from isotone.release import check_spec, load_spec

    out.print(str(check_spec(load_spec(spec))), markup=False)


@app.command()
def audit(
    what: Annotated[
        str, typer.Argument(metavar="SPEC|NAME", help="A spec, or the name of a mechanism's class.")
    ],
    trials: Annotated[int, typer.Option(help="How many draws of each side.")] = 30_000,
    as_json: AsJson = False,
) -> None:
    """Attack the mechanism of a spec, or a mechanism by its name. The data is never opened."""
    from isotone.release import audit_name, audit_spec, load_spec

    with progress_bar("auditing", quiet=as_json) as progress:
        if what.endswith(".toml"):
            found = audit_spec(load_spec(what), trials, progress)
        else:
            found = audit_name(what, 1, trials, progress)
    show(found.plain(), as_json=as_json, quiet=False, plain=f"{what}\n{found}")
    if found.broken:
        raise typer.Exit(1)


def printable(text: str) -> str:
    """Text without control codes, which a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _release_table(made: Any) -> Table:
    hidden = {"low_all", "high_all"}
    shown = {name: column for name, column in made.columns.items() if name not in hidden}
    title = printable(f"{made.manifest.title} ({made.guarantee})")
    table = Table(title=Text(title), title_justify="left")
    for name in shown:
        table.add_column(name, justify="left" if name in ("element", "category", "group") else "right")
    rows = list(zip(*shown.values(), strict=True))
    for row in rows[:40]:
        table.add_row(
            *(
                f"{x:,.6g}"
                if isinstance(x, float)
                else f"{x:,}"
                if isinstance(x, int)
                else Text(printable(str(x)))
                for x in row
            )
        )
    if len(rows) > 40:
        table.caption = f"the first 40 of {len(rows)} rows; all are in release.csv"
    return table


# ---------------------------------------------------------------------------- ledger

LedgerPath = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger's path or postgresql:// URL.")]
Dataset = Annotated[str | None, typer.Option(help="The data set's name. Default: the file's stem.")]


@ledger_app.command("create")
def ledger_create(
    path: LedgerPath,
    epsilon: Annotated[str | None, typer.Option(help="The total ε.")] = None,
    delta: Annotated[str | None, typer.Option(help="The total δ, for an (ε, δ) budget.")] = None,
    rho: Annotated[str | None, typer.Option(help="The total ρ, for a zCDP budget.")] = None,
    dataset: Dataset = None,
    unit: Annotated[
        str | None, typer.Option(help="What is protected, in words: person, household, …")
    ] = None,
    neighbours: Annotated[Neighbours, typer.Option(help="What one change of the data is.")] = "add-remove",
) -> None:
    """Create a ledger. Its total, unit and neighbours are fixed for good."""
    from isotone.release import Ledger

    if epsilon is None and rho is None:
        raise InputError("A new ledger needs its total: --epsilon (with --delta if you like) or --rho.")
    ledger = Ledger(
        path, epsilon=epsilon, delta=delta, rho=rho, dataset=dataset, unit=unit, neighbours=neighbours
    )
    out.print(
        _printable(f"{ledger.address}: the budget of {ledger.dataset!r} is {ledger.remaining()}."),
        markup=False,
    )


@ledger_app.command("show")
def ledger_show(path: LedgerPath, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """Show what was spent, on what, and what is left."""
    from isotone.release import Ledger

    ledger = Ledger(path, dataset=dataset)
    title = f"{ledger.dataset}: {ledger.remaining()} left of {ledger.total}"
    table = Table(title=Text(_printable(title)), title_justify="left")
    for name in ("charge", "time", "cost", "mechanism", "what", "state"):
        table.add_column(name)
    for charge in ledger.charges():
        number, cost = str(charge.number), str(charge.cost)
        row = (number, charge.time, cost, charge.mechanism, charge.description, charge.meaning)
        table.add_row(*(Text(_printable(cell)) for cell in row))
    show(ledger.export(), as_json=as_json, quiet=False, plain=table)


@ledger_app.command("extract")
def ledger_extract(
    path: LedgerPath,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The charge's number, as 'show' lists it.")],
    file: Annotated[
        Path | None, typer.Option("--out", help="The file to write. Default: standard output.")
    ] = None,
    dataset: Dataset = None,
) -> None:
    """Write one charge as canonical JSON, for those who verify its release without seeing the ledger."""
    from isotone.ledger import Ledger, extract_charge

    content = extract_charge(Ledger(path, dataset=dataset), number)
    if file is None:
        sys.stdout.buffer.write(content)
        return
    try:
        file.write_bytes(content)
    except OSError as error:
        raise InputError(f"The extract {str(file)!r} could not be written: {error.strerror}.") from None


def _printable(text: str) -> str:
    """``text`` as this terminal can show it: Greek letters by name on an ASCII one, no control codes."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        for letter, name in (("ε", "epsilon"), ("δ", "delta"), ("ρ", "rho")):
            text = text.replace(letter, name)
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    return text


@ledger_app.command("export")
def ledger_export(path: LedgerPath, dataset: Dataset = None) -> None:
    """Print the whole ledger as JSON, with exact numbers."""
    from isotone.release import Ledger

    typer.echo(_json(Ledger(path, dataset=dataset).export()))


# ---------------------------------------------------------------------------- order

OrderPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="A spec for counts, or an order file (.csv, .json, .toml).")
]
Lower = Annotated[str, typer.Option(help="For a CSV file: the column of the lower element.")]
Upper = Annotated[str, typer.Option(help="For a CSV file: the column of the upper element.")]


@order_app.command("check")
def order_check(
    file: OrderPath, lower: Lower = "child", upper: Upper = "parent", as_json: AsJson = False
) -> None:
    """Check an order and describe its shape."""
    from isotone.release import describe_order, load_order

    found = describe_order(load_order(file, lower, upper))
    table = Table(show_header=False, box=None)
    for key, value in found.items():
        table.add_row(key, str(value))
    show(found, as_json=as_json, quiet=False, plain=table)


@order_app.command("plot")
def order_plot(
    file: OrderPath,
    picture: Annotated[Path, typer.Option("--out", help="The picture to write (.png, .svg or .pdf).")] = Path(
        "order.png"
    ),
    lower: Lower = "child",
    upper: Upper = "parent",
) -> None:
    """Draw an order as a Hasse diagram."""
    from isotone.release import load_order

    P = load_order(file, lower, upper)
    import matplotlib as mpl

    mpl.use("Agg")
    figure = P.plot().get_figure(root=True)
    assert figure is not None
    try:
        figure.savefig(picture, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise InputError(f"The picture {str(picture)!r} could not be written: {error}.") from None
    out.print(f"The diagram of {len(P)} elements is in {picture}.", markup=False)


# ---------------------------------------------------------------------------- reproduce


def experiments_folder() -> Path:
    """The ``experiments`` folder of the checkout that this package runs from."""
    folder = Path(__file__).resolve().parents[2] / "experiments"
    if not folder.is_dir():
        raise InputError(
            "The experiments are part of the source repository, not of the installed package. Clone the repository "
            "and run 'make run' there; then this command finds them."
        )
    return folder


def experiments() -> dict[str, Path]:
    """Every experiment by its name on the command line."""
    return {
        path.stem.replace("_", "-"): path
        for path in sorted(experiments_folder().glob("*.py"))
        if path.stem != "common"
        and not path.stem.startswith("_")
        and "\ndef run(" in path.read_text(encoding="utf-8")
    }


def load_experiment(path: Path) -> ModuleType:
    """Import an experiment by its file."""
    if str(path.parent) not in sys.path:  # experiments import each other and common.py by name
        sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="The experiment; without it, the list of all.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Where data and pictures go. Default: out/NAME.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version that runs in seconds.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare what is stored with a quick run; write nothing.")
    ] = False,
) -> None:
    """Redo a figure or table of the papers isotone builds on, with the published values beside ours.

    ``all`` stands for every experiment.
    """
    known = experiments()
    if name is None:
        for key, path in known.items():
            typer.echo(f"{key:28} {(load_experiment(path).__doc__ or '').splitlines()[0]}")
        return
    key = name.replace("_", "-")
    if key not in known and key != "all":
        raise InputError(f"There is no experiment {name!r}. There are: all, {', '.join(known)}.")
    chosen = known if key == "all" else {key: known[key]}
    if check:
        check_experiments(chosen)
        return
    for each, path in chosen.items():
        where = (folder / each if key == "all" else folder) if folder else Path("out") / each
        with progress_bar(each) as progress:
            load_experiment(path).run(where, quick, progress)
        out.print(f"Data and pictures are in {where}.", markup=False)


def check_experiments(chosen: dict[str, Path]) -> None:
    """Hold quick runs against what is stored; exit code 1 if a number is off."""
    checks = load_experiment(experiments_folder() / "_check.py")
    off = 0
    for name, path in chosen.items():
        if name not in checks.RULES:
            reason = checks.UNCOMPARED.get(name, "no rule says how")
            out.print(f"{name:28} not compared: {reason}", markup=False)
            continue
        outcome = checks.compare(name, load_experiment(path))
        verdict = f"{len(outcome.off)} of them off" if outcome.off else "as stored"
        out.print(f"{name:28} {outcome.numbers} numbers, {verdict}", markup=False)
        for words in outcome.off:
            out.print(f"  {words}", markup=False)
        off += len(outcome.off)
    if off:
        raise typer.Exit(1)


def main() -> None:
    """Run the command line; an isotone error is a sentence on stderr and exit code 1, never a traceback."""
    try:
        app()
    except IsotoneError as error:
        errors.print(f"isotone: {error}", markup=False)
        sys.exit(1)
