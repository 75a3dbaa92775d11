"""Typeset the mathematics of the theory pages as MathML.

The sources write mathematics as plain text between backticks, as in ``Σ_{i≤k} a^{k−i} r_i``, so that they read well in any
editor. Browsers draw MathML themselves: the site needs no script and no network. A line of this notation is a row of
atoms, each with a subscript (``_i``, ``_{…}``, ``₁``), a superscript (``^2``, ``^{…}``, ``²``) or primes.
"""

from __future__ import annotations

import re
from html import escape, unescape
from typing import NamedTuple

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀᵏ", "0123456789+−=()niTk", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ᵢⱼₖₙ", "0123456789+−=()ijkn", strict=True))
_PRIMES = {"'": "′", "′": "′", "″": "″"}
_HAT = "\u0302"
_CLOSING = {"(": ")", "[": "]", "{": "}", "⌊": "⌋", "⌈": "⌉"}
_SHORT_NAMES = {
    "ln",
    "tr",
    "Pr",
    "hi",
    "lo",
    "up",
    "sd",
    "if",
    "is",
    "in",
    "of",
    "or",
    "at",
    "by",
    "no",
    "to",
}
_ENDS = set(_CLOSING.values()) | set(_PRIMES) | set(_RAISED) | set(_LOWERED)
_TIGHT = {"|", "‖", "/", "!"}
_LARGE = {"Σ", "Π", "∫"}

_CODE = re.compile(
    r"""\.py | \.md | :: | \(\) | " | \\ | \w\.[a-z_]{3,}     # files, tests, calls, strings, attributes
    | [a-z0-9]{2,}_[a-z]{3,} | ^[a-z]_[a-z]{4,}$ | ^_ | ^--      # names_with_underscores, options
    | [A-Z][a-z]+[A-Z] | ^[A-Z]?[a-z]{3,}$ | ^[a-z]{4,}=         # ClassNames, words, keyword=arguments
    | ^[a-z]+(?:[ -][a-z]+)+$ | ^[a-z]{3,}/[a-z]{3,}             # commands, paths""",
    re.VERBOSE,
)
_TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<number>\d+(?:[.,]\d+)*(?:e[−-]?\d+)?) | (?P<letters>[A-Za-z]+) | (?P<dots>\.\.+|⋯|…)
    | (?P<sign>:=|.)""",
    re.VERBOSE | re.DOTALL,
)
_FORMULA = re.compile(
    r"<pre><span></span><code>(.*?)</code></pre>|<pre><code>(.*?)</code></pre>|<code>(.*?)</code>", re.DOTALL
)


class _Token(NamedTuple):
    kind: str
    text: str


def typeset(html: str) -> str:
    """Replace the code of a page that is mathematics by MathML."""
    return _FORMULA.sub(_replaced, html)


def is_mathematics(text: str) -> bool:
    """Whether the text between backticks is mathematics rather than a name of the code."""
    return not _CODE.search(text)


def inline(text: str) -> str:
    """One formula within a sentence."""
    return f"<math>{_Row(text).markup()}</math>"


def display(text: str) -> str:
    """Lines of formulas on their own, aligned where the source has two spaces or more."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.strip("\n").split("\n") if line.strip()]
    cells = ("".join(f"<mtd>{_Row(cell).markup()}</mtd>" for cell in row) for row in rows)
    table = "".join(f"<mtr>{row}</mtr>" for row in cells)
    return f'<div class="formula"><math display="block"><mtable>{table}</mtable></math></div>'


def _replaced(match: re.Match[str]) -> str:
    block = match[1] or match[2]
    text = unescape(re.sub(r"<[^>]+>", "", block or match[3] or ""))
    if block:
        return match[0] if "⎡" in text else display(text)
    return inline(text) if is_mathematics(text) else match[0]


def _ends_a_term(token: _Token) -> bool:
    return token.kind != "sign" or token.text.isalpha() or token.text in _ENDS


class _Row:
    """A row of atoms, read from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = [_Token(m.lastgroup or "sign", m[0]) for m in _TOKEN.finditer(text)]
        self.place = 0

    def markup(self, closing: str = "") -> str:
        """The row up to a closing bracket, or to its end."""
        parts: list[str] = []
        while (token := self._peek()) is not None and token.text != closing:
            parts.append(self._scripted(self._atom()))
        return "".join(parts)

    def _peek(self) -> _Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def _next(self) -> _Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def _atom(self) -> str:
        kind, text = self._next()
        if kind == "space":
            return self._spaced()
        if kind == "number":
            return f"<mn>{text}</mn>"
        if kind == "letters":
            return self._name(text)
        if text == "√":
            return f"<msqrt>{self._scripted(self._atom())}</msqrt>"
        if text in _CLOSING:
            return self._group(text)
        if text.isalpha() and text not in _LARGE:
            return self._hatted(text)
        return self._operator(text)

    def _operator(self, text: str) -> str:
        tight = text in _TIGHT or text in _LARGE or (text in "−±" and not self._follows_a_term())
        space = ' lspace="0" rspace="0"' if tight else ""
        return f'<mo stretchy="false"{space}>{escape(text)}</mo>'

    def _follows_a_term(self) -> bool:
        """Whether what stands before the present sign can be subtracted from."""
        before = [token for token in self.tokens[: self.place - 1] if token.kind != "space"]
        return bool(before) and _ends_a_term(before[-1])

    def _spaced(self) -> str:
        """A space counts between words and factors; around signs the browser sets its own."""
        before = self.tokens[self.place - 2] if self.place > 1 else None
        after = self._peek()
        if before is None or after is None:
            return ""
        ends = _ends_a_term(before)
        starts = after.kind != "sign" or after.text.isalpha() or after.text in _CLOSING
        return '<mspace width="0.25em"/>' if ends and starts else ""

    def _name(self, letters: str) -> str:
        """A word stands upright; letters in a row are factors, of which the last may carry a script."""
        if len(letters) > 2 or letters in _SHORT_NAMES:
            return f"<mi>{letters}</mi>"
        if len(letters) == 2:
            self.place -= 1
            self.tokens[self.place] = _Token("letters", letters[1])
            return f"<mi>{letters[0]}</mi>"
        return self._hatted(letters)

    def _hatted(self, letter: str) -> str:
        following = self._peek()
        if following is not None and following.text == _HAT:
            self._next()
            return f"<mover><mi>{letter}</mi><mo>^</mo></mover>"
        return f"<mi>{letter}</mi>"

    def _group(self, opening: str) -> str:
        inner = self.markup(_CLOSING[opening])
        closing = self._next().text if self._peek() is not None else ""
        return f'<mrow><mo stretchy="false">{opening}</mo>{inner}<mo stretchy="false">{closing}</mo></mrow>'

    def _scripted(self, base: str) -> str:
        """The atom with the scripts and primes that follow it."""
        if not base:
            return base
        lower, upper, primes = "", "", ""
        while (token := self._peek()) is not None:
            if token.text == "_" and not lower and self._has_script():
                lower = self._script()
            elif token.text == "^" and not upper and self._has_script():
                upper = self._script()
            elif token.text in _RAISED:
                upper += self._marks(_RAISED)
            elif token.text in _LOWERED:
                lower += self._marks(_LOWERED)
            elif token.text == "*" and self._is_a_star():
                primes += self._next().text
            elif token.text in _PRIMES:
                primes += _PRIMES[self._next().text]
            else:
                break
        upper = (f"<mo>{primes}</mo>" if primes else "") + upper
        if lower and upper:
            return f"<msubsup>{base}<mrow>{lower}</mrow><mrow>{upper}</mrow></msubsup>"
        if lower:
            return f"<msub>{base}<mrow>{lower}</mrow></msub>"
        return f"<msup>{base}<mrow>{upper}</mrow></msup>" if upper else base

    def _has_script(self) -> bool:
        return self.place + 1 < len(self.tokens) and self.tokens[self.place + 1].kind != "space"

    def _is_a_star(self) -> bool:
        """Whether the star belongs to the letter before it, as in ``f*``."""
        return self.place > 0 and self.tokens[self.place - 1].kind == "letters"

    def _marks(self, alphabet: dict[str, str]) -> str:
        """Raised or lowered characters in a row."""
        marks = ""
        while (token := self._peek()) is not None and token.text in alphabet:
            marks += alphabet[self._next().text]
        return _Row(marks).markup()

    def _script(self) -> str:
        """What follows ``_`` or ``^``: braces, or a sign with a number or letters of one case."""
        self._next()
        kind, text = self._next()
        if text in ("{", "("):
            inner = self.markup(_CLOSING[text])
            if self._peek() is not None:
                self._next()
            return inner
        if text in ("−", "-", "±") and self._peek() is not None:
            return f"<mo>{text}</mo>{self._script_letters(self._next())}"
        return self._script_letters(_Token(kind, text))

    def _script_letters(self, token: _Token) -> str:
        if token.kind != "letters":
            return f"<mn>{token.text}</mn>" if token.kind == "number" else f"<mi>{escape(token.text)}</mi>"
        case = re.match(r"[a-z]+|[A-Z]+", token.text)
        taken = case[0] if case else token.text
        if taken != token.text:
            self.place -= 1
            self.tokens[self.place] = _Token("letters", token.text[len(taken) :])
        return (
            f"<mi>{taken}</mi>"
            if len(taken) == 1 or len(taken) > 2
            else "".join(f"<mi>{c}</mi>" for c in taken)
        )
