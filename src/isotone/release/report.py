"""The report of a release: one HTML page, complete in itself, in words that need no training."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.privacy.guarantee import Guarantee
from isotone.reading.contributions import rows_in_words
from isotone.release.kinds.kind import Page, kind_named, versions
from isotone.release.result import in_digits

if TYPE_CHECKING:
    from isotone.release.result import Release

STYLE = """
.sort { color: var(--soft); font-size: .85rem; margin-right: .9rem; } input.sort { margin: 0 .3rem 0 0; }
table.numbers { display: grid; } .numbers thead, .numbers tbody, .numbers tr { display: contents; }
.numbers th { order: -1; white-space: normal; } .numbers td.rest { grid-column: 1 / -1; order: 999999 !important; } .numbers td small { color: var(--soft); display: block; }
#by-value:checked ~ .scroll td { order: var(--v); } #by-name:checked ~ .scroll td { order: var(--n); }
.numbers td.text { padding-left: calc(.6rem + var(--d, 0) * var(--step)); } .numbers { --step: 1.1rem; --name: 6rem; }
#by-value:checked ~ .scroll .numbers, #by-name:checked ~ .scroll .numbers { --step: 0rem; }
@media (max-width: 34rem) { .numbers { --step: .4rem; --name: 4.6rem; } .numbers th, .numbers td { padding: .3rem .22rem; font-size: .8rem; } .numbers th { white-space: normal; } }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--mark); padding: .3rem 0; }
@media print { .sort, details { display: none; } }
"""

HEADINGS = {
    "element": "question or item",
    "value": "released value",
    "sd": "typical error",
    "low": "from",
    "high": "to",
    "new": "new since the last one shown",
    "new_sd": "its typical error",
    "low_all": "",  # the simultaneous intervals are in the CSV; two pairs side by side confuse more than they tell
    "high_all": "",
}
_MEASURED = ("value", "share", "survival", "estimate", "noisy", "low", "high", "raw")
_FEWEST = 3  # rows that are worth sorting


def numbers_table(release: Release) -> str:
    """The table, with the choice of a sequence above it, and folded where a few rows in equal steps tell the same."""
    page = kind_named(release.kind).page(release)
    number = len(next(iter(release.columns.values()), ()))
    errors = release.columns.get("sd", ())
    # one error of all rows stands above the picture, and not in every row
    apart = len(errors) < _FEWEST or len(set(errors)) > 1
    release = page.head(release)
    rows = page.sequence(release)
    sequence, folded = rows[: page.most_rows], ""
    if page.few_rows and len(rows) > 2 * page.few_rows:
        sequence = page.some(release, rows, page.few_rows)
        folded = f'<details><summary>All {len(rows):,} rows</summary><div class="scroll">{_table(release, rows, 0, apart=apart)}</div></details>'
    left = 0 if folded else number - len(sequence)
    choice = _choice(page.sequence_name) if len(rows) >= _FEWEST else ""
    return (
        f'<div>{choice}<div class="scroll">{_table(release, sequence, left, apart=apart)}</div>{folded}</div>'
    )


def _table(release: Release, sequence: Sequence[tuple[int, int]], left: int, *, apart: bool) -> str:
    """The table of these rows, each with its error if they are told apart, and how many are left out."""
    page = kind_named(release.kind).page(release)
    shown = {
        name: column
        for name, column in page.shown(release).items()
        if HEADINGS.get(name, name) and (apart or name != "sd")
    }
    labels, rows = page.labels(release), list(zip(*shown.values(), strict=True))
    words, errors = release.manifest.text_columns | {"where"}, _errors(release)
    by_value, by_name = _ranks(release, sequence, labels, words)
    head = "".join(
        f"<th{_class(name, words)} role=columnheader>{escape(HEADINGS.get(name, name))}</th>"
        for name in shown
    )
    body = "".join(
        f'<tr role=row style="--v:{by_value[place]};--n:{by_name[place]}">'
        + "".join(
            _cell(name, value, depth, labels, words, errors[i])
            for name, value in zip(shown, rows[i], strict=True)
        )
        + "</tr>"
        for place, (i, depth) in enumerate(sequence)
    )
    if left:
        body += f'<tr role=row><td class="rest" role=cell>and {left:,} more in release.csv</td></tr>'
    other = "min-content" if words & {*shown} else "auto"
    widths = " ".join("minmax(var(--name), 1fr)" if name in words else other for name in shown)
    return (
        f'<table class="numbers" role=table style="grid-template-columns: {widths}"><thead role=rowgroup><tr role=row>{head}'
        f"</tr></thead><tbody role=rowgroup>{body}</tbody></table>"
    )


def _choice(first: str) -> str:
    """Buttons that choose the sequence. The page's style does the rest."""
    kinds = (("by-order", first), ("by-value", "value"), ("by-name", "name"))
    buttons = "".join(
        f'<input class="sort" type="radio" name="sort" id="{key}"{" checked" if key == "by-order" else ""}>'
        f'<label class="sort" for="{key}">{words}</label>'
        for key, words in kinds
    )
    return f'<span class="sort">Sort by</span>{buttons}'


def _ranks(
    release: Release, sequence: Sequence[tuple[int, int]], labels: dict[str, str], texts: Collection[str]
) -> tuple[list[int], list[int]]:
    """The place of each row of the sequence if it is sorted by value, largest first, and by name."""
    values = release.columns.get("value") or next(iter(release.columns.values()), ())
    words = [[release.columns[name][i] for name in release.columns if name in texts] for i, _ in sequence]
    names = [[labels.get(str(word), str(word)).casefold() for word in row] for row in words]
    first = sorted(range(len(sequence)), key=lambda k: -float(values[sequence[k][0]]))
    second = sorted(range(len(sequence)), key=lambda k: names[k])
    ranks: list[list[int]] = []
    for result in (first, second):
        places = [0] * len(sequence)
        for place, k in enumerate(result):
            places[k] = place
        ranks.append(places)
    return ranks[0], ranks[1]


def _class(name: str, words: Collection[str]) -> str:
    return ' class="text"' if name in words else ""


def _errors(release: Release) -> list[float]:
    """About how far each row may be off, which says how many of its digits mean something, or 0 if that is not known."""
    columns, rows = release.columns, len(next(iter(release.columns.values()), ()))
    if "sd" in columns:
        return [float(error) for error in columns["sd"]]
    if "low" in columns and "high" in columns:
        return [float(high - low) / 4 for low, high in zip(columns["low"], columns["high"], strict=True)]
    return [0.0] * rows


def _cell(
    name: str, value: Any, depth: int, labels: dict[str, str], words: Collection[str], error: float
) -> str:
    nested = f' style="--d:{min(depth, 8)}"' if depth and name == "element" else ""
    return f"<td{_class(name, words)} role=cell{nested}>{_written(name, value, labels, error)}</td>"


def _written(name: str, value: Any, labels: dict[str, str], error: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if name in ("sd", "new_sd"):
            return _two_digits(value)
        return _as_known(value, error) if name in _MEASURED else in_digits(value, 4)
    label = labels.get(str(value)) if name == "element" else None
    return escape(str(value)) if label is None else f"{escape(label)}<small>{escape(str(value))}</small>"


def _as_known(value: float, error: float) -> str:
    """A number with the digits that its error leaves, whole where the error is one or more.

    >>> _as_known(678.21, 5.7), _as_known(0.1575, 0.08), _as_known(0.42381, 0.0), _as_known(27445.7, 0.0)
    ('678', '0.158', '0.424', '27,446')
    """
    if not error or not math.isfinite(error):
        return in_digits(value, 3)
    return f"{value + 0.0:,.{0 if error >= 1 else 1 - math.floor(math.log10(error))}f}"


def _two_digits(error: float) -> str:
    """An error with the two digits that matter.

    >>> _two_digits(7.2897), _two_digits(1234.5), _two_digits(0.01791), _two_digits(0.0)
    ('7.3', '1,200', '0.018', '0')
    """
    if not error or not math.isfinite(error):
        return f"{error:g}"
    digits = 1 - math.floor(math.log10(abs(error)))
    return f"{round(error, digits):,.{max(digits, 0)}f}"


# The report is one HTML page about a release, complete in itself, in words that need no training.
#
# It shows private outputs and public values only, and says nothing about the data that is not known without them. It
# loads nothing from anywhere. The page is a function of the sealed folder and of the versions in its generator line, so
# that anyone can draw it again and compare.

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7a; --line: #d9e0e7; --mark: #1f4e79; --paper: #ffffff; --desk: #f4f6f8; --box: #eef2f5; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #dfe6ee; --soft: #9fb0c0; --line: #33414f; --mark: #7fb4e8; --paper: #12181f; --desk: #0b0f14; --box: #1d2731; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--desk); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; background: var(--paper); }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; color: var(--mark); }
.lead { color: var(--soft); margin: 0 0 1rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.fact { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.fact b { display: block; font-size: 1.25rem; color: var(--mark); }
.fact span { color: var(--soft); font-size: .85rem; }
figure { margin: 1rem 0; } figure svg { display: block; width: 100%; height: auto; max-height: 80vh; margin: 0 auto; }
figure .tall svg { max-height: none; } figure .narrow { display: none; }
@media screen and (max-width: 40rem) { figure .wide { display: none; } figure .narrow { display: block; } }
figcaption { color: var(--soft); font-size: .85rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child, th.text, td.text { text-align: left; overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid var(--mark); white-space: nowrap; }
code { background: var(--box); padding: .1rem .3rem; border-radius: .25rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: minmax(7rem, 12rem) 1fr; gap: .3rem 1rem; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } main { padding: 1rem .8rem 2rem; } }
@media print { body { background: none; font-size: 11pt; } main { padding: 0; max-width: none; } h2 { break-after: avoid; } tr, figure { break-inside: avoid; } }
"""

_BEYOND = 700  # e to this power is the largest float, nearly


def report_html(release: Release) -> str:
    """The whole page."""
    manifest = release.manifest
    title, unit, page = (
        escape(str(release.manifest.stated.title)),
        escape(release.guarantee.unit),
        _page(release),
    )
    stated = manifest.stated_confidence
    level = "" if stated is None else f"{100 * stated:g} %"
    accuracy = "".join(f"<p>{escape(text)}</p>" for text in page.accuracy(release, level))
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="lead">{page.lead} Released with noise that protects every single {unit}.</p>',
        _facts(release),
        f"<figure>{page.svg(release)}<figcaption>{page.caption(release, level)}</figcaption></figure>",
        f"<h2>What is guaranteed</h2>{_guarantee(release)}",
        f"<h2>How accurate it is</h2>{accuracy}",
        f"<h2>The numbers</h2>{numbers_table(release)}",
        f"<h2>How the data was read</h2>{_rules(release)}",
        f"<h2>How to cite and to check this page</h2>{_verify(release)}",
        f"<h2>Details</h2>{_details(release)}",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="{escape(generator())}">'
        f"<title>{title}</title><style>{_STYLE}{STYLE}</style></head><body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def generator() -> str:
    """The versions that draw the page. The same ones draw the same page from the same folder."""
    return ", ".join(f"{name} {number}" for name, number in versions().items() if name != "python")


def guarantee_in_words(guarantee: Guarantee, page: str = "this page") -> str:
    """A guarantee in words that a journalist understands. ``page`` is what has the numbers.

    >>> guarantee_in_words(Guarantee.pure(1, unit="person"))[:66]
    'Whatever one person contributed, nobody can be sure of it from thi'
    """
    unit = guarantee.unit
    change = f"had {guarantee.adjacency.otherwise.format(unit=unit)}"
    text = (
        f"Whatever one {unit} contributed, nobody can be sure of it from {page}. Every number in it that "
        f"comes from the data was changed at random, and {change}, "
    )
    if guarantee.kind == "zcdp":
        shown = guarantee.to_approximate("1e-6").epsilon
        return text + (
            f"it would look almost the same: {page} is ρ-zero-concentrated differentially private with ρ = "
            f"{_short(guarantee.rho)}, which means that, except with a chance of one in a million, no reader's odds "
            f"about anyone move by more than a factor of {_factor(shown)}."
        )
    factor = _factor(guarantee.epsilon)
    text += (
        f"anything one could read off it would have been about as likely: no probability changes by more than a "
        f"factor of {factor} (differential privacy with ε = {_short(guarantee.epsilon)})."
    )
    if guarantee.delta:
        text += f" This holds but for a chance of δ = {float(guarantee.delta):.2g}."
    return text


def _factor(epsilon: Fraction) -> str:
    return f"{math.exp(float(epsilon)):.3g}" if epsilon < _BEYOND else "more than can be written down"


def _short(number: Fraction) -> str:
    return f"{float(number):g}"


def _page(release: Release) -> Page:
    return kind_named(release.kind).page(release)


def _facts(release: Release) -> str:
    guarantee = release.guarantee
    facts = [
        (
            f"ρ = {_short(guarantee.rho)}"
            if guarantee.kind == "zcdp"
            else f"ε = {_short(guarantee.epsilon)}",
            "privacy budget spent on this page",
        )
    ]
    facts.append((escape(guarantee.unit), "what is protected, one at a time"))
    if release.columns.get("sd"):
        typical = math.sqrt(np.mean(np.square(np.array(release.columns["sd"], dtype=np.float64))))
        facts.append((f"{typical:.3g}", _page(release).typical_error))
    if release.total is not None and isinstance(release.total, int):
        noise = f"records in all, noisy too (typical error {release.manifest['total_sd']:.3g})"
        facts.append((f"{release.total:,}", noise))
    return (
        '<div class="facts">'
        + "".join(f'<div class="fact"><b>{a}</b><span>{b}</span></div>' for a, b in facts)
        + "</div>"
    )


def _guarantee(release: Release) -> str:
    return (
        f"<p>{escape(guarantee_in_words(release.guarantee))}</p><p>The guarantee is about what a reader can learn about "
        "one of them; it does not hide what is true of the group as a whole. It holds whatever else the reader "
        "knows, now or later. Other releases from the same data add to what is spent: the ledger keeps the total.</p>"
    )


def _rules(release: Release) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in rules_in_words(release))
    return (
        "<p>These rules were fixed before the data was read, and each looks at one record at a time. How often a "
        f"rule had to be used is not known to anyone but the steward.</p><ul>{items}</ul>"
    )


def rules_in_words(release: Release) -> list[str]:
    """The declared rules of a release, a sentence each."""
    return [rows_in_words(release.manifest.rows, release.guarantee.unit), *_page(release).rules(release)]


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    text = str(value)
    return _decimal(text) if _RATIO.fullmatch(text) else text


_RATIO = re.compile("-?[0-9]{1,30}/[1-9][0-9]{0,29}")


def _decimal(ratio: str) -> str:
    """A ratio as people write it, where that is exact.

    >>> _decimal("93/250"), _decimal("1/3")
    ('0.372', '1/3')
    """
    exact = Fraction(ratio)
    text = f"{float(exact):.12g}"
    return text if Fraction(text) == exact else ratio


def _verify(release: Release) -> str:
    digest = escape(str(release.manifest["content_hash"]))
    cite = f"{release.manifest.stated.title}. Differentially private release made with isotone {release.manifest['versions']['isotone']}, {str(release.manifest['time'])[:10]}."
    return (
        f"<p>Cite as: {escape(cite)} Content <code>{digest}</code>.</p><p>Anyone who has this folder and the software can "
        "check it with <code>isotone verify FOLDER</code>. It compares the hashes, builds the mechanism again from its "
        "description, derives the guarantee from it, computes again what is published about errors, and draws this page "
        "again. Who made the folder is known only if it is signed by a key that you know: "
        "<code>isotone verify FOLDER --key KEY</code>.</p>"
    )


def _details(release: Release) -> str:
    manifest = release.manifest
    facts = {
        "guarantee": str(release.guarantee),
        "mechanism": ", ".join(f"{key} = {_plain(value)}" for key, value in manifest["mechanism"].items()),
        "data set": manifest.get("dataset"),
        "charge in the ledger": manifest.get("charge"),
        "time of release": manifest["time"],
        "software": ", ".join(f"{key} {value}" for key, value in manifest["versions"].items()),
    }
    items = "".join(
        f"<dt>{key}</dt><dd>{escape(str(value))}</dd>" for key, value in facts.items() if value is not None
    )
    return f"<dl>{items}</dl>"
