"""Commands for who releases: plan, release, verify, report, check, audit, export, schema, keygen, sign, and the desk in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from isotone.cli.console import (
    AsJson,
    Quiet,
    ReleaseFolder,
    SpecPath,
    decimal,
    errors,
    json_text,
    out,
    printable,
    progress_bar,
    show,
)
from isotone.errors import InputError
from isotone.lazy import install

# The command plan, with plans side by side.


def plan(
    context: typer.Context,
    spec: SpecPath,
    records: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="About how many records there are, guessed without the data: for a curve, and for --compare.",
        ),
    ] = None,
    rows_per_unit: Annotated[
        int | None,
        typer.Option(
            min=1, help="About how many rows a unit has, guessed: says what contributions leaves out."
        ),
    ] = None,
    found: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what was found for an order out of reach, for relaxation in the spec: nobody searches again.",
        ),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            parser=decimal,
            metavar="FLOAT",
            help="Counts, tables, or with --records distributions: the error that you can accept; says what ε it takes.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            parser=decimal, metavar="FLOAT", help="The confidence of --error, --compare and --waves."
        ),
    ] = 0.95,
    each: Annotated[
        bool, typer.Option("--each", help="With --error: each count for itself, not all at once.")
    ] = False,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E,E,…", help="Plans for several ε side by side.")
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(metavar="K,K,…", help="Counts: plans for several max_size side by side.")
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option(metavar="LOWER,UPPER", help="Counts: what if LOWER implied UPPER?")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="LOWER,UPPER", help="Counts: what if it did not?")
    ] = None,
    guess: Annotated[
        int | None, typer.Option(min=1, help="A guessed count: also the error as a share of it.")
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(metavar="P,P", help='Counts: are two shares, "3%,4%", told apart in so many --records?'),
    ] = None,
    element: Annotated[
        str | None, typer.Option(help="With --compare: the element, by default the one with the most noise.")
    ] = None,
    waves: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Counts: so many releases at this price, such as one a year; says what all cost and how sure changes are.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare mechanisms for a spec. No data is read and no budget is spent.

    With --error from an error to ε; with --epsilon, --max-size, --add or --drop several plans side by side.
    """
    from isotone.release import load_spec
    from isotone.release.whatif import epsilon_for, side_by_side, variants, visible, waves_of

    _refuse_unheard(context.params)
    budgets, sizes = _parts(epsilon), _sizes(max_size)
    described = load_spec(spec)
    with progress_bar("planning", quiet=quiet or as_json) as progress:
        if error is not None:
            value = epsilon_for(described, error, confidence, each=each, records=records, progress=progress)
            plain: Any = _sentence(value)
        elif waves is not None:
            plain = waves_of(described, waves, confidence, progress=progress)
            value = plain.plain()
        elif compare is not None:
            shares, people = _compared(compare, records)
            seen = {
                name: visible(one, shares, people, element=element, confidence=confidence, progress=progress)
                for name, one in variants(described, epsilon=budgets)
            }
            plain = "\n".join(f"{name}: {one}" if epsilon else str(one) for name, one in seen.items())
            values = {name: one.plain() for name, one in seen.items()}
            value = values if epsilon else values["as it is"]
        elif epsilon or max_size or add or drop or guess:
            several = variants(described, epsilon=budgets, max_size=sizes, add=_pairs(add), drop=_pairs(drop))
            value = side_by_side(several, records=records, guess=guess, progress=progress)
            plain = _table(value)
        else:
            plain = described.plan(progress, records=records, rows_per_unit=rows_per_unit)
            value = plain.plain()
            if found is not None:
                plain.write_found(found)
    show(value, as_json=as_json, quiet=quiet, plain=plain)


_SIDE_BY_SIDE = ("--epsilon", "--max-size", "--add", "--drop", "--guess")
_HEARD = {
    "--error": {"--each", "--records"},
    "--waves": set[str](),
    "--compare": {"--records", "--element", "--epsilon"},
    **{name: {*_SIDE_BY_SIDE, "--records"} for name in _SIDE_BY_SIDE},
}
_ALONE = ("--records", "--rows-per-unit", "--found")
"""Which other options each question looks at, the first question that is asked deciding; and a plain plan."""


def _refuse_unheard(parameters: dict[str, Any]) -> None:
    """No option is passed over in silence."""
    options = {f"--{name.replace('_', '-')}": value for name, value in parameters.items()}
    flags = (*_HEARD, *_ALONE, "--each", "--element")
    stated = [name for name in flags if options[name] is not False and options[name] not in (None, ())]
    question = next((name for name in _HEARD if name in stated), None)
    heard = {*_ALONE} if question is None else _HEARD[question] | {question}
    unheard = [name for name in stated if name not in heard]
    if unheard:
        beside = f"beside {question}" if question else "by itself"
        raise InputError(f"{unheard[0]} has no meaning {beside}. Ask one thing at a time.")


def _parts(text: str | None) -> list[str]:
    parts = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(f"A list such as 0.1,0.5,1 has no empty places; this is {text!r}.")
    return parts


def _sizes(text: str | None) -> list[int]:
    parts = _parts(text)
    if not all(part.isdecimal() for part in parts):
        raise InputError(f"--max-size takes whole numbers such as 2,3,5, not {text!r}.")
    return [int(part) for part in parts]


def _compared(text: str, records: int | None) -> tuple[tuple[Any, Any], int]:
    """Two shares, and the number of people among whom they are compared."""
    from isotone.release.whatif import percent

    if records is None:
        raise InputError("--compare needs --records, the number of people whose shares are compared.")
    shares = [percent(part) for part in text.split(",")]
    if len(shares) != 2:
        raise InputError(f'--compare takes two shares such as "3%,4%", not {text!r}.')
    return (shares[0], shares[1]), records


def _pairs(texts: list[str] | None) -> list[tuple[str, str]]:
    pairs = [tuple(part.strip() for part in text.split(",")) for text in texts or ()]
    for pair in pairs:
        if len(pair) != 2:
            raise InputError(f"A relation is LOWER,UPPER, not {','.join(pair)!r}.")
    return [(pair[0], pair[1]) for pair in pairs]


def _sentence(answer: dict[str, Any]) -> str:
    name = "rho" if "rho" in answer else "epsilon"
    letter = {"rho": "ρ", "epsilon": "ε"}[name]
    if "confidence" not in answer:
        setting = (
            f"if the table is {answer['shape']}"
            if "shape" in answer
            else f"for about {answer['records']:,} records, on the stated shapes of a plan"
        )
        return f"{letter} = {answer[name]:g} is expected to keep {answer['of']} within ± {answer['error']:g} {setting}."
    return (
        f"{letter} = {answer[name]:g} keeps {answer['of']} within ± {answer['error']:g}, "
        f"{100 * answer['confidence']:g} % of the time."
    )


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="The best mechanism of each plan", title_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("plan", "mechanism") else "right")
    for row in rows:
        table.add_row(*(_cell(name, value) for name, value in row.items()))
    return table


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if name.endswith("of the time"):
        return f"± {value:,.4g}"
    return f"{100 * value:.2f} %" if " of " in name else f"{value:,.4g}"


# The commands release, verify, report, check and audit.


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
    from isotone.release.spec import deliver, load_spec

    try:
        with progress_bar("releasing", quiet=quiet or as_json) as progress:
            described = load_spec(spec)
            done = deliver(described, again=again, progress=progress)
    except KeyboardInterrupt:
        errors.print(
            "isotone: interrupted. A charge that was made stays spent. If nothing was drawn under it, the same command "
            "takes it over at no cost: see 'isotone ledger show'."
        )
        raise typer.Exit(130) from None
    result, folder, fresh = done.release, described.target, done.fresh
    value = {"folder": str(folder), "new": fresh, "columns": {k: list(v) for k, v in result.columns.items()}}
    show(value, as_json=as_json, quiet=quiet, plain=release_table(result))
    sentence = (
        "The release is" if fresh else "This spec was released before; nothing was charged. The release is"
    )
    if not as_json and not quiet:
        out.print(f"{sentence} in {folder}", markup=False)
        if not fresh and described.output.title not in (None, result.manifest.stated.title):
            out.print("The new title is not used: a title is sealed with its release.", markup=False)
        if (folder / "report.html").exists():
            out.print(f"Report: {folder / 'report.html'}", markup=False)
        # in the same words whatever the data contains
        out.print(
            f"A release never says what is odd in the data. To look for yourself alone: isotone check {spec}",
            markup=False,
        )


def release_table(made: Any) -> Table:
    """The published numbers as a table."""
    from isotone.release.result import written

    table = Table(title=Text(printable(made.title)), title_justify="left")
    for name, column in made.shown().items():
        words = bool(column) and isinstance(column[0], str)
        table.add_column(name, justify="left" if words else "right")
    rows, which = made.on_screen()
    for row in rows:
        table.add_row(*(Text(printable(written(value))) for value in row))
    if which:
        table.caption = f"{which}; all are in release.csv"
        table.caption_justify = "left"
        table.min_width = len(table.caption) + 2
    return table


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
    full: Annotated[
        bool, typer.Option("--full", help="Search again for slow draws that the manifest says where to find.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check files, seal, guarantee, errors and report of a release from its folder alone.

    With --key also who signed it, with --ledger also that it was paid for.
    """
    from isotone.release import verify as check

    verdict = check(folder, key=key, ledger=ledger, full=full)
    value = {"holds": verdict.holds, "checks": [vars(item) for item in verdict.checks]}
    show(value, as_json=as_json, quiet=quiet, plain=str(verdict))
    if not verdict.holds:
        raise typer.Exit(1)


def report(folder: ReleaseFolder) -> None:
    """Draw report.html of a release again, from its folder."""
    from isotone.release import load_release

    out.print(f"Report: {load_release(folder).save_report(folder)}", markup=False)


def check(spec: SpecPath) -> None:
    """Look at the contents of the data for oddities. NOT PRIVATE, never to be published."""
    from isotone.release import load_spec

    result = load_spec(spec).check()
    out.print(str(result), markup=False)
    if result.error is not None:
        raise typer.Exit(1)


def audit(
    what: Annotated[
        str, typer.Argument(metavar="SPEC|NAME", help="A spec, or the name of a mechanism's class.")
    ],
    trials: Annotated[int, typer.Option(help="How many draws of each side.")] = 30_000,
    as_json: AsJson = False,
) -> None:
    """Attack the mechanism of a spec, or a mechanism by its name. The data is never opened."""
    from isotone.release import audit_name, load_spec

    with progress_bar("auditing", quiet=as_json) as progress:
        if what.endswith(".toml"):
            result = load_spec(what).audit(trials, progress)
        else:
            result = audit_name(what, 1, trials, progress)
    show(result.plain(), as_json=as_json, quiet=False, plain=f"{what}\n{result}")
    if result.broken:
        raise typer.Exit(1)


# Commands for what is published with a release: export, schema, keygen and sign.

_Text = str | None


def export(
    folder: ReleaseFolder,
    to: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Another folder to write to, made if need be.")
    ] = None,
    publisher: Annotated[_Text, typer.Option(metavar="TEXT", help="Who publishes the release.")] = None,
    license: Annotated[_Text, typer.Option(metavar="TEXT", help="Its licence, a name or an address.")] = None,
    url: Annotated[_Text, typer.Option(metavar="TEXT", help="Where it is published.")] = None,
    unit: Annotated[_Text, typer.Option(metavar="TEXT", help="What is protected, in words.")] = None,
    intended_use: Annotated[_Text, typer.Option(metavar="TEXT", help="What the release is for.")] = None,
    region: Annotated[_Text, typer.Option(metavar="TEXT", help="The region that the data describes.")] = None,
    author: Annotated[
        _Text, typer.Option(metavar="TEXT", help="Who answers for the entry in a registry.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Describe a release for catalogues (DCAT), data loaders (Croissant, CSVW, Frictionless) and registries of deployments.

    The files stand beside the release and say nothing of the data and the ledger. The entry of the public registry of
    deployments needs words that only you know: publisher, intended_use and region, here or under output in the spec. With
    --json all are printed, and nothing is written.
    """
    from isotone.release import load_release
    from isotone.release.export import REGISTRY, PublisherWords, described, facts_of
    from isotone.release.export import export as write

    words = PublisherWords(publisher, license, url, unit, intended_use, region, author)
    release = load_release(folder)
    if as_json:
        typer.echo(json_text(described(release, words)))
        return
    written = write(folder, to, words)
    if quiet:
        return
    for path in written:
        out.print(f"Written: {path}", markup=False)
    missing = facts_of(release, words).words.missing
    if missing:
        out.print(
            f"Not written: {REGISTRY}, for the public registry of deployments. It asks for {', '.join(missing)}: state "
            "them in [output] of the spec, or here.",
            markup=False,
        )


def schema() -> None:
    """Print the JSON Schema of a spec, for editors that check a file while it is written."""
    from isotone.release import spec_schema

    typer.echo(json_text(spec_schema()))


def keygen(
    path: Annotated[
        Path, typer.Argument(metavar="KEY", help="The private key to write; KEY.pub is the public one.")
    ],
    owner: Annotated[str, typer.Option(help="Who the key belongs to, in one word.")] = "isotone",
) -> None:
    """Make a key to sign releases with. Keys made by ssh-keygen -t ed25519 serve as well."""
    from isotone.release.signing import make_key

    key = make_key(path, owner)
    out.print(f"{path} is the private key: keep it. {path}.pub is public: {key.fingerprint}", markup=False)


def sign(
    what: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="The folder of a release, or an extract of a ledger.")
    ],
    key: Annotated[Path, typer.Option(metavar="KEY", help="The private key.")],
) -> None:
    """Sign the values and the manifest of a release, or an extract of a ledger."""
    from isotone.release.signing import sign_file, sign_release

    where = sign_release(what, key) if what.is_dir() else sign_file(what, key)
    out.print(f"Signature: {where}", markup=False)


# The command that starts the desk in the browser.


def require_desk() -> None:
    """Refuse if a library of the desk is not installed."""
    try:
        import isotone.desk.server  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise InputError(
            f"The desk needs more libraries ({error.name} is missing): {install('desk')}"
        ) from None


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of this machine; 0 for any.")] = 8765,
    root: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder with specs, data, ledgers and releases.")
    ] = Path(),
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address alone.")] = False,
    allow_check: Annotated[
        bool, typer.Option("--allow-check", help="Switch on the page that looks at data. NOT PRIVATE.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="For auditors: no data is opened and nothing is written.")
    ] = False,
) -> None:
    """Plan, release and look after budgets in the browser. Only this machine can reach it.

    Prints the address to open, which works once.
    """
    require_desk()
    from isotone.desk.server import serve as run

    run(port, root, browser=not no_browser, allow_check=allow_check, read_only=read_only)
