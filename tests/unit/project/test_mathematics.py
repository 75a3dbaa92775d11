"""The mathematics of the theory pages is typeset as MathML, and names of the code stay code."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "docs"))

from mathematics import display, inline, is_mathematics, typeset  # noqa: E402  # pyright: ignore[reportMissingImports]

PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))


def spans(page: Path) -> list[str]:
    text = re.sub(r"```.*?```|^    .*$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`]+)`", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_of_a_page_is_well_formed_and_loses_no_letter(page):
    for span in filter(is_mathematics, spans(page)):
        drawn = "".join(ElementTree.fromstring(inline(span)).itertext())
        assert sorted(re.findall(r"[A-Za-zα-ω]", drawn)) == sorted(
            re.findall(r"[A-Za-zα-ωⁿⁱᵢⱼₖₙᵏᵀ]", plain(span))
        )


def plain(text: str) -> str:
    return text.translate(str.maketrans("ⁿⁱᵢⱼₖₙᵏᵀ", "niijknkT"))


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("y_z", "<msub><mi>y</mi><mrow><mi>z</mi></mrow></msub>"),
        ("z_iT_ij", "<msub><mi>T</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>"),
        (
            "2^{−50}",
            '<msup><mn>2</mn><mrow><mo stretchy="false" lspace="0" rspace="0">−</mo><mn>50</mn></mrow></msup>',
        ),
        ("M⁺(z)", '<msup><mi>M</mi><mrow><mo stretchy="false">+</mo></mrow></msup>'),
        ("v₀²", "<msubsup><mi>v</mi><mrow><mn>0</mn></mrow><mrow><mn>2</mn></mrow></msubsup>"),
        ("J'", "<msup><mi>J</mi><mrow><mo>′</mo></mrow></msup>"),
        ("√n", "<msqrt><mi>n</mi></msqrt>"),
        ("mH", "<mi>m</mi><mi>H</mi>"),
        ("max x", '<mi>max</mi><mspace width="0.25em"/><mi>x</mi>'),
        ("a < b", '<mo stretchy="false">&lt;</mo>'),
    ],
)
def test_scripts_words_and_signs_are_drawn_as_such(text, drawn):
    assert drawn in inline(text)


@pytest.mark.parametrize(
    "text", ["test_norm.py", "PosetMechanism", "max_size", "make audit", "error()", "auto", "tests/unit"]
)
def test_names_of_the_code_stay_code(text):
    assert not is_mathematics(text)
    assert typeset(f"<p><code>{text}</code></p>") == f"<p><code>{text}</code></p>"


def test_lines_of_a_block_are_aligned_where_the_source_has_two_spaces():
    drawn = ElementTree.fromstring(display("a = 1,  b = 2\nc = 3,  d = 4"))
    assert [len(row) for row in drawn.iter("mtr")] == [2, 2]
