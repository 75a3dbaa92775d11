"""Checks of public parameters, shared by every mechanism, estimator and release.

Each function takes what a caller gave and returns a plain Python value that means the same, or raises
:class:`InputError` with the value, the reason and the repair. Numpy scalars of any width mean their values.
Mechanisms store what these functions return and never the argument, so arithmetic on parameters cannot wrap.
"""

from __future__ import annotations

import difflib
import numbers
import operator
import re
from collections.abc import Iterable
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from types import FunctionType
from typing import Any, Literal, TypeVar

import numpy as np

from isotone.errors import InputError

Number = int | float | str | Fraction | Decimal
"""A number as users give it. Numpy's integers and floats are accepted as well."""

Kind = Literal["pure", "approximate", "zcdp", "bounded-range"]
Text = TypeVar("Text", bound=str)

_LONGEST = 2_000
_MOST_BITS = 10_000  # Python writes at most 4,300 digits
_NOTHING = ": without privacy loss nothing can be learned."
_PLAIN = (
    str,
    bytes,
    numbers.Number,
    Decimal,
    np.generic,
    date,
    time,
    timedelta,
    PurePath,
    type,
    FunctionType,
)
_FRACTION = re.compile(r"Fraction\((-?\d+), (\d+)\)")
_LEAST, _MOST = Fraction(1, 10**100), Fraction(10**100)


MOST_WHOLE = 2**63 - 1
"""The largest whole number that anything counts: engines, arrays and files have 64 bits for it."""


def shown(value: Any) -> str:
    """A short ``repr`` of a public value for a message. Of what could hold data, such as a frame, only the type.

    >>> shown((Fraction(9, 2), "x"))
    "(4.5, 'x')"
    """
    if not is_plain(value):
        return f"a {type(value).__name__}"
    try:
        text = _FRACTION.sub(lambda match: decimal(Fraction(int(match[1]), int(match[2]))), repr(value))
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= 100 else f"{text[:97]}..."


def is_plain(value: Any) -> bool:
    """Whether a value is one number, text, date or path, a name of code, an object of isotone, or a collection of such."""
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        within = (*value, *value.values()) if isinstance(value, dict) else value
        return all(map(is_plain, within))
    own = type(value).__module__.partition(".")[0] == "isotone"
    return own or value is None or value is ... or isinstance(value, _PLAIN)


def whole_number(value: Any, name: str, least: int = 1, most: int = MOST_WHOLE) -> int:
    """``value`` as a plain int between ``least`` and ``most``, which is 64 bits at most.

    Anything with ``__index__`` means its value, numpy integers of any width included. Booleans, floats and
    text are refused.

    >>> whole_number(np.uint8(200), "contributions") * 2
    400
    """
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        usual = most == MOST_WHOLE and (number is None or number < least)
        expected = f"a whole number of at least {least:,}" + ("" if usual else f" and at most {most:,}")
        raise InputError(f"{name} must be {expected}, not {shown(value)}.")
    return number


def exact(value: Any, name: str = "value") -> Fraction:
    """The rational number that ``value`` stands for.

    It is made of plain ints. A float stands for the decimal that it prints as.

    >>> exact(0.1), exact("1/3"), exact("0.25"), exact(np.float32(0.1))
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 4), Fraction(1, 10))
    """
    if isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be a number, not {shown(value)}.")
    try:
        number = _fraction(value)
        if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
            raise ValueError
        return number
    except (ValueError, ZeroDivisionError, OverflowError, TypeError):
        comma = isinstance(value, str) and re.fullmatch(r"\s*-?\d*,\d+\s*", value)
        point = " A decimal number has a point, not a comma." if comma else ""
        raise InputError(
            f"{name} must be a finite number such as 0.5, '0.5' or '1/3', not {shown(value)}.{point}"
        ) from None


def _fraction(value: Any) -> Fraction:
    if isinstance(value, float):  # numpy's double too: its repr names the type, float's does not
        return Fraction(repr(float(value)))
    if isinstance(value, np.floating):
        return Fraction(str(value))
    if isinstance(value, (str, Decimal)) and _too_long(str(value)):
        raise ValueError
    if isinstance(value, (str, Decimal)):
        return Fraction(value)
    if isinstance(value, Fraction):  # its parts may be numpy integers, which wrap
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(int(operator.index(value)))


def _too_long(text: str) -> bool:
    """Whether a number would take minutes to read.

    ``1e999999999`` has a thousand million digits.
    """
    return len(text) > _LONGEST or re.search(r"[eE][-+]?[0-9_]{5,}", text) is not None


def decimal(value: Fraction) -> str:
    """A number as people write it: a short decimal or a short fraction if it is one, and its first digits otherwise.

    >>> [decimal(Fraction(*pair)) for pair in ((893, 500), (1, 3), (1, 10**6), (10**9 + 7, 3 * 10**9))]
    ['1.786', '1/3', '1e-06', '0.3333333357…']
    """
    try:
        text = f"{float(value):.6g}"
    except OverflowError:
        return str(value)
    if Fraction(text) == value:
        return text
    exactly = str(value)
    return exactly if len(exactly) <= 9 else f"{float(value):.10g}…"


def positive(value: Any, name: str) -> Fraction:
    """``exact(value)``, refused unless it is above zero and of a size that can be computed with."""
    number = exact(value, name)
    if number <= 0:
        raise InputError(
            f"{name} must be above 0, not {shown(value)}{_NOTHING if name in ('epsilon', 'rho') else '.'}"
        )
    if not _LEAST <= number <= _MOST:
        raise InputError(f"{name} must be between 1e-100 and 1e100, not {shown(value)}.")
    return number


def share(value: Any, name: str) -> Fraction:
    """``value`` as a plain rational strictly between 0 and 1."""
    number = exact(value, name)
    if not 0 < number < 1:
        raise InputError(f"{name} must be strictly between 0 and 1, not {shown(value)}.")
    return number


def confidence_level(value: Any, name: str = "confidence") -> float:
    """``value`` as a plain float strictly between 0 and 1.

    >>> confidence_level(Fraction(19, 20))
    0.95
    """
    number = float(share(value, name))
    if not 0 < number < 1:  # a rational may round to either end
        raise InputError(f"{name} must be strictly between 0 and 1, for example 0.95, not {shown(value)}.")
    return number


def plain_text(value: Any, name: str, *, empty: bool = False) -> str:
    """``value`` as a plain str.

    Bytes and everything else that is not text raises an error.
    """
    if not isinstance(value, str) or not (value or empty):
        reason = " (decode it first)" if isinstance(value, (bytes, bytearray)) else ""
        raise InputError(f"{name} must be {'' if empty else 'non-empty '}text, not {shown(value)}{reason}.")
    return str.__str__(value)


def truth(value: Any, name: str) -> bool:
    """``value`` as a plain bool.

    Only booleans are accepted, numpy's included.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, not {shown(value)}.")
    return bool(value)


def one_of(value: Any, name: str, known: Iterable[Text]) -> Text:
    """The entry of ``known`` that equals ``value``.

    Other values raise an error that suggests the nearest known name.

    >>> one_of("squard", "loss", ["absolute", "squared"])
    Traceback (most recent call last):
    isotone.errors.InputError: loss must be 'absolute' or 'squared', not 'squard'; did you mean 'squared'?
    """
    names = list(known)
    if isinstance(value, str):
        for entry in names:
            if entry == str.__str__(value):
                return entry
    *others, last = (repr(entry) for entry in names)
    listed = f"{', '.join(others)} or {last}" if others else last
    near = did_you_mean(value, names) if isinstance(value, str) else ""
    raise InputError(f"{name} must be {listed}, not {shown(value)}{near or '.'}")


def did_you_mean(wrong: str, known: Iterable[str], *, least: float = 0.6) -> str:
    """The end of an error message that suggests the nearest known name.

    Empty if no name is near: 1 is the same name, ``least`` the last that counts.

    >>> did_you_mean("hpy", ["hyp", "meds"])
    "; did you mean 'hyp'?"
    """
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=least)
    return f"; did you mean {close[0]!r}?" if close else ""


def frozen(value: Any) -> Any:
    """``value`` without anything that can change later. Sequences become tuples, numpy's scalars plain ones.

    >>> frozen([np.uint8(3), [0.5, "x"]])
    (3, (0.5, 'x'))
    """
    if isinstance(value, np.ndarray):
        return frozen(value.tolist())
    if isinstance(value, (tuple, list)):
        return tuple(frozen(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (np.bool_, np.floating)):
        return value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if not hasattr(type(value), "__index__") or isinstance(value, np.timedelta64):
        return value
    return operator.index(value)


def require_list(values: Any, name: str, kind: str = "names") -> None:
    """Refuse what is no list.

    A single str raises an error, and so does an array without a dimension, which calls itself iterable, and a set,
    whose sequence is another one in the next process.
    """
    scalar = isinstance(values, (str, bytes, bytearray, set, frozenset))
    scalar = scalar or (isinstance(values, np.ndarray) and values.ndim == 0)
    if scalar or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of {kind}, not {shown(values)}.")


def epsilon_or_rho(epsilon: Any, delta: Any, rho: Any) -> tuple[Kind, Fraction, Fraction, Fraction]:
    """The privacy parameters as (kind, epsilon, delta, rho).

    Give ``rho``, or ``epsilon`` with or without ``delta``.

    >>> epsilon_or_rho("0.5", None, None)
    ('pure', Fraction(1, 2), Fraction(0, 1), Fraction(0, 1))
    """
    zero = Fraction(0)
    if rho is not None:
        if epsilon is not None or (delta is not None and exact(delta, "delta")):
            raise InputError("Give rho, or epsilon (with delta if it is to be above 0), and not both.")
        return "zcdp", zero, zero, positive(rho, "rho")
    if epsilon is None:
        raise InputError("Give epsilon (with delta if it is to be above 0) or rho.")
    d = zero if delta is None else exact(delta, "delta")
    if not 0 <= d < 1:
        raise InputError(f"delta must be at least 0 and below 1, not {shown(delta)}.")
    return "approximate" if d else "pure", positive(epsilon, "epsilon"), d, zero
