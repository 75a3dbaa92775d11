"""The health survey: squared error of the poset mechanism over that of the cube (Figure 6 of the counts paper).

Published: 0.573, 0.503, 0.460 (conference) and 0.414, 0.427, 0.408 (preprint and poster). The latter are ratios of
*balls* in d+1 and d dimensions; times (d+3)/(d+1) they are ratios of mechanisms. The published sampler is not
uniform; the exact one has less error, and ε where the other has several.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from _posets import ratio_to_cube, survey_sections
from common import DATA, read_table, save_figure, write_table
from isotone.mechanism import Progress
from isotone.order import Poset

CONFERENCE = (0.573, 0.503, 0.460)
PREPRINT = (0.414, 0.427, 0.408)
EXACT = (91 / 160, None, None)  # one section by hand


def codebook_sections(sections: int) -> Poset:
    """The questions of the 2021 codebook: 4, 7 and 11 of them."""
    rows = read_table(DATA / "survey" / "nhis2021_counts.csv")
    kept = [row for row in rows if row["section"] in ("HYP", "CHL", "AST")[:sections]]
    return Poset(
        [row["variable"] for row in kept], [(row["variable"], row["parent"]) for row in kept if row["parent"]]
    )


def run(out: Path, quick: bool, progress: Progress) -> None:
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "sections", "d", "exact_sampler", "standard_error", "published_conference", "published_preprint",
            "preprint_as_mechanisms", "codebook_2021_d", "codebook_2021",
        )
    }  # fmt: skip
    for sections in (1, 2, 3):
        progress((sections - 1) / 3, f"{sections} sections")
        P, codebook = survey_sections(sections), codebook_sections(sections)
        d = len(P)
        ratio, doubt = ratio_to_cube(P)
        columns["sections"].append(sections)
        columns["d"].append(d)
        columns["exact_sampler"].append(ratio)
        columns["standard_error"].append(doubt)
        columns["published_conference"].append(CONFERENCE[sections - 1])
        columns["published_preprint"].append(PREPRINT[sections - 1])
        columns["preprint_as_mechanisms"].append(PREPRINT[sections - 1] * (d + 3) / (d + 1))
        columns["codebook_2021_d"].append(len(codebook))
        columns["codebook_2021"].append(ratio_to_cube(codebook)[0])
    write_table(out, "survey_table", columns)
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    bars = {
        "exact sampler": ("exact_sampler", "C0"),
        "published, conference": ("published_conference", "C3"),
        "published, preprint (balls)": ("published_preprint", "0.75"),
        "preprint × (d+3)/(d+1)": ("preprint_as_mechanisms", "C1"),
    }
    for k, (label, (name, colour)) in enumerate(bars.items()):
        places = [section + 0.2 * (k - 1.5) for section in (1, 2, 3)]
        drawn = axes.bar(places, columns[name], width=0.18, color=colour, label=label)
        axes.bar_label(drawn, fmt="%.3f", fontsize=7)
    axes.set_xticks([1, 2, 3], [f"{s} (d = {d})" for s, d in zip((1, 2, 3), columns["d"], strict=True)])
    axes.set(xlabel="survey sections", ylabel="squared error over that of ℓ∞")
    axes.set_title("Health survey")
    axes.legend(fontsize="small", ncol=2, loc="upper right")
    axes.set_ylim(0, 0.72)
    save_figure(figure, out, "survey_table")
    progress(1.0, "done")
