"""The command plan, with plans side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from isotone.cli.console import AsJson, Quiet, SpecPath, progress_bar, show
from isotone.errors import InputError

__all__ = ["plan"]


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
        float | None, typer.Option(help="Counts: the error that you can accept; says what ε it takes.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="The confidence of --error, --compare and --waves.")
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
    asked = load_spec(spec)
    with progress_bar("planning", quiet=quiet or as_json) as progress:
        if error is not None:
            value = epsilon_for(asked, error, confidence, each=each, progress=progress)
            plain: Any = _sentence(value)
        elif waves is not None:
            plain = waves_of(asked, waves, confidence, progress=progress)
            value = plain.plain()
        elif compare is not None:
            shares, people = _compared(compare, records)
            seen = {
                name: visible(one, shares, people, element=element, confidence=confidence, progress=progress)
                for name, one in variants(asked, epsilon=budgets)
            }
            plain = "\n".join(f"{name}: {one}" if epsilon else str(one) for name, one in seen.items())
            values = {name: one.plain() for name, one in seen.items()}
            value = values if epsilon else values["as it is"]
        elif epsilon or max_size or add or drop or guess:
            several = variants(asked, epsilon=budgets, max_size=sizes, add=_pairs(add), drop=_pairs(drop))
            value = side_by_side(several, records=records, guess=guess, progress=progress)
            plain = _table(value)
        else:
            plain = asked.plan(progress, records=records, rows_per_unit=rows_per_unit)
            value = plain.plain()
            if found is not None:
                plain.write_found(found)
    show(value, as_json=as_json, quiet=quiet, plain=plain)


_SIDE_BY_SIDE = ("--epsilon", "--max-size", "--add", "--drop", "--guess")
_HEARD = {
    "--error": {"--each"},
    "--waves": set[str](),
    "--compare": {"--records", "--element", "--epsilon"},
    **{name: {*_SIDE_BY_SIDE, "--records"} for name in _SIDE_BY_SIDE},
}
_ALONE = ("--records", "--rows-per-unit", "--found")
"""Which other options each question looks at, the first question that is asked deciding; and a plain plan."""


def _refuse_unheard(parameters: dict[str, Any]) -> None:
    """No option is passed over in silence."""
    options = {f"--{name.replace('_', '-')}": value for name, value in parameters.items()}
    asked = (*_HEARD, *_ALONE, "--each", "--element")
    given = [name for name in asked if options[name] is not False and options[name] not in (None, ())]
    question = next((name for name in _HEARD if name in given), None)
    heard = {*_ALONE} if question is None else _HEARD[question] | {question}
    unheard = [name for name in given if name not in heard]
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
    return f"{value:.2%}" if " of " in name else f"{value:,.4g}"
