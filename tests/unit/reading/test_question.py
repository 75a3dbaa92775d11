"""What counts as a yes to a question is the same in every engine, for one value in Python, and by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.support.backends import Backend, every_backend

import isotone as iso
from isotone import Answers, InputError, Question, order_of
from isotone.reading.questions import book_of, implied, says
from isotone.reading.records import RecordRules, RecordSource, count_records, read_records
from isotone.reading.sources import collect

VALUES: list[Any] = [
    *("1", "2", "7", "9", " 1 ", "1.0", "7.0", "01", "yes", "NO", "true", "", " ", None, "NA", "nan", "null"),
    *("139", "140", "140.0", " 141", "160", "1.6e2", "999", "-3", "abc", "1,40", "inf", "1e400", "0.1"),
    *(
        "car",
        "Car",
        "car bus",
        "bus,car",
        "bus; CAR",
        "bus|car",
        "cart",
        "scar bus",
        "bus",
        "a b, c d",
        "c d",
    ),
    *("car/bus", "none", "É", "[car]", "%", "_ar", "'; --", "\\", "car\tbus", "7 car"),
]
ASKED = [
    Question("plain"),
    Question("codes", [1, "Car"], no=["2"], refused=["7", "9"]),
    Question("codes_missing", ["1"], no=["2"], refused=[7], missing="yes"),
    Question("codes_refusal", ["1"], no=["2"], refused=[7], refusal="yes"),
    Question("answered", "answered"),
    Question("answered_refused", "answered", refused=[7, "abc"]),
    Question("answered_missing", "answered", refused=[7], missing="yes"),
    Question("least", ">= 140"),
    Question("above", "> 140", refused=["999"]),
    Question("most", "<= 140", refused=["999"], refusal="yes"),
    Question("below", "<0.1", missing="yes"),
    Question("below_refused", "< 200", refused=["139"], missing="yes"),
    Question("word", word="CAR"),
    Question("word_refused", word="car", refused=["7 car"], refusal="yes"),
    Question("word_missing", word="bus", missing="yes"),
    Question("words", word="c d", separator=","),
    Question("slash", word="bus", separator="/"),
    Question("odd", word="[car]"),
    Question("percent", word="%"),
    Question("either", any_of=["least", "word"]),
]
BOOK = book_of(
    [q if q.any_of else replace(q, column="a") for q in ASKED]  # one column for all
)
FEW = book_of([BOOK[x] for x in ("codes_missing", "answered_refused", "least", "word", "either")])
"""What is tried in every engine."""


def by_hand(name: str, value: Any) -> bool:
    """The rules once more, from their descriptions, with nothing of the package."""
    text = None if value is None else str(value).strip(" \t\n\r")
    if text is not None and text.endswith(".0") and text[:-2].isdigit():
        text = text[:-2]
    low = "" if text is None else text.lower()
    number = None
    if low and low.lstrip("-+")[:1].isdigit() and "," not in low and " " not in low:
        try:
            number = float(low)
        except ValueError:
            number = None
    number = None if number is not None and abs(number) > 1e299 else number
    nothing = low in ("", "na", "nan", "null", "inf")
    words = [word for part in low.replace(";", ",").replace("|", ",").replace("\t", " ").split(",") for word in part.split()]  # fmt: skip
    match name:
        case "plain":
            return low in ("1", "true", "t", "yes", "y") or number == 1
        case "codes":
            return low in ("car", "true") or number == 1
        case "codes_missing":
            return number not in (2, 7)
        case "codes_refusal":
            return number in (1, 7) or low == "true"
        case "answered":
            return not nothing
        case "answered_refused":
            return not nothing and number != 7 and low != "abc"
        case "answered_missing":
            return number != 7
        case "least":
            return number is not None and number >= 140
        case "above":
            return number is not None and number > 140 and number != 999
        case "most":
            return number is not None and (number <= 140 or number == 999)
        case "below":
            return number is None or number < 0.1
        case "below_refused":
            return number is None or (number < 200 and number != 139)
        case "word":
            return "car" in words
        case "word_refused":
            return "car" in words or low == "7 car"
        case "word_missing":
            return nothing or "bus" in words
        case "words":
            return "c d" in [word.strip() for word in low.split(",")]
        case "slash":
            return "bus" in [word.strip() for word in low.split("/")]
        case "odd":
            return "[car]" in words
        case "percent":
            return "%" in words
        case _:
            return by_hand("least", value) or by_hand("word", value)


def test_one_value_in_python_is_read_as_described() -> None:
    for question, value in itertools.product(BOOK.values(), VALUES):
        found = says(question, value, BOOK, Answers())  # pyright: ignore
        assert found == by_hand(question.name, value), (question.name, value)


@every_backend
def test_every_engine_reads_a_column_of_many_questions_alike(backend: Backend, tmp_path: Path) -> None:
    # CSV has no nulls beside blanks and no outer blanks of its own: the values that all forms can hold
    values = [value for value in VALUES if value is None or value.strip()]
    data = backend(pd.DataFrame({"row": [str(i) for i in range(len(values))], "a": values}), tmp_path)
    source, rules, P = RecordSource(data, questions=FEW), RecordRules(), iso.Poset.antichain(list(FEW))
    counts, records = count_records(source, source.open(P, rules, None), P, rules)
    wanted = {name: sum(by_hand(name, value) for value in values) for name in FEW}
    assert dict(zip(FEW, counts[0].tolist(), strict=True)) == wanted
    assert records.tolist() == [len(values)]


def read(values: Sequence[Any], book: dict[str, Question]) -> dict[str, list[bool]]:
    P, rules = iso.Poset.antichain(list(book)), RecordRules()
    source = RecordSource(pl.DataFrame({"a": values}, strict=False).lazy(), questions=book)
    frame = collect(read_records(source, source.open(P, rules, None), P, rules))
    return {name: frame[f"isotone_{i}"] for i, name in enumerate(book)}


def test_every_rule_reads_a_column_as_it_reads_its_values() -> None:
    assert read(VALUES, BOOK) == {name: [by_hand(name, value) for value in VALUES] for name in BOOK}


def test_a_number_is_the_same_answer_in_a_column_of_any_type() -> None:
    numbers = [1.0, 2.0, 7.0, 139.0, 140.0, 160.0, 999.0]
    wanted = {name: [by_hand(name, f"{x:g}") for x in numbers] for name in FEW}
    for values in (numbers, [int(x) for x in numbers]):
        assert read(values, FEW) == wanted
    assert read([float("nan"), None], FEW) == {name: [by_hand(name, None)] * 2 for name in FEW}
    booleans = read([True, False], BOOK)
    assert booleans["codes"] == [True, False]
    assert booleans["answered"] == [True, True]
    assert booleans["least"] == [False, False]
    assert booleans["below"] == [True, True]


def test_values_that_no_rule_can_read_are_missing_and_raise_nothing() -> None:
    assert read([[1], [2, 3], None], FEW) == {name: [by_hand(name, None)] * 3 for name in FEW}


def test_comparisons_codes_and_words_on_one_column_give_their_relations() -> None:
    questions = [
        Question("ge140", ">= 140", "bp"),
        Question("ge160", ">= 160", "bp"),
        Question("gt140", "> 140", "bp"),
        Question("lt90", "< 90", "bp"),
        Question("le90", "<= 90", "bp"),
        Question("exactly", ["170", "180"], "bp"),
        Question("known", "answered", "bp"),
        Question("other", ">= 200", "pulse"),
    ]
    below = order_of(questions)
    pairs = {(a, b) for a in below.elements for b in below.elements if a != b and below.leq(a, b)}
    numbers = {"ge140", "ge160", "gt140", "lt90", "le90", "exactly"}
    assert pairs == {
        ("ge160", "ge140"),
        ("ge160", "gt140"),
        ("gt140", "ge140"),
        ("lt90", "le90"),
        *(("exactly", x) for x in ("ge140", "gt140", "ge160")),
        *((x, "known") for x in numbers),
    }
    words = [Question("car", word="car", column="m"), Question("bus", word="bus", column="m")]
    words += [Question("some", "answered", "m"), Question("any", any_of=["car", "bus"])]
    assert set(order_of(words).covers) == {("car", "any"), ("bus", "any"), ("any", "some")}
    assert (
        order_of([Question("a", ["1"], "x"), Question("b", ["1"], "x")]).covers == ()
    )  # the same question twice


def test_a_relation_is_given_only_where_refusals_and_missing_answers_keep_it() -> None:
    high = Question("high", ">= 140", "bp", refused=["999"])
    assert order_of([high, Question("very", ">= 160", "bp")]).covers == ()  # 999 is a yes to the second alone
    assert order_of([high, Question("very", ">= 160", "bp", refused=["999"])]).covers == (("very", "high"),)
    assert order_of([high, Question("very", ">= 160", "bp", refused=["999"], missing="yes")]).covers == ()
    two = [Question("a", ["1"], "x"), Question("ab", ["1", "2"], "x")]
    assert order_of(two).covers == (("a", "ab"),)
    assert order_of([Question("a", ["1"], "x", refused=["9"], refusal="yes"), two[1]]).covers == ()
    # a missing or unknown answer is a yes to the first alone
    assert order_of([Question("a", ["1"], "x", missing="yes"), two[1]]).covers == (("ab", "a"),)


def test_no_value_breaks_a_relation_that_was_found() -> None:
    answers = Answers()
    pairs = implied(BOOK, answers)  # pyright: ignore
    assert ("above", "least") in pairs
    rng = np.random.default_rng(5)
    letters = ["car", "bus", "7", "1", "2", "140", "160", "999", "139", "x", "0.05"]
    values = [*VALUES, *(f"{x:g}" for x in rng.normal(140, 60, 200)), *map(" ".join, itertools.permutations(letters, 2))]  # fmt: skip
    for lower, upper in pairs:
        for value in values:
            one, other = (says(BOOK[name], value, BOOK, answers) for name in (lower, upper))  # pyright: ignore
            assert other or not one, (lower, upper, value)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: Question("a", "140"), r"comparison such as '>= 140'.*\['140'\]"),
        (lambda: Question("a", "== 1"), "comparison"),
        (lambda: Question("a", ">= 1e999999"), "comparison"),
        (lambda: Question("a", []), "no code for yes"),
        (lambda: Question("a", [1.5]), "codes are texts or whole numbers"),  # type: ignore[list-item]
        (lambda: Question("a", [b"1"]), "codes are texts or whole numbers"),  # type: ignore[list-item]
        (lambda: Question("a", ["1"], refused=["1.0", "1"]), "an answer and a refusal"),
        (lambda: Question("a", ["1"], word="x"), "in several ways"),
        (lambda: Question("a", word="two words"), "one word"),
        (lambda: Question("a", word="a;b", separator=";"), "one word"),
        (lambda: Question("a", word="a", separator="."), "separator must be"),
        (lambda: Question("a", ["1"], separator=","), "belongs to a word"),
        (lambda: Question("a", any_of=["b"], column="c"), "no column or codes"),
        (lambda: Question("a", any_of="b"), "list of names"),  # type: ignore[arg-type]
        (lambda: Question("a", refused="7"), "list of codes"),
        (lambda: Question("a", ["1"], missing="maybe"), "'no' or 'yes'"),  # type: ignore[arg-type]
        (lambda: Question(7), "must be non-empty text"),  # type: ignore[arg-type]
        (lambda: Question("a", label="x" * 1001), "at most 1,000"),
        (lambda: book_of([Question("a"), Question("a")]), "two questions 'a'"),
        (lambda: book_of([Question("a", any_of=["b"])]), "is no question"),
        (lambda: book_of([Question("a", any_of=["a"])]), "List the parts"),
        (lambda: book_of("abc"), "list of Question"),
        (lambda: order_of([Question("h", ">= 140", "x"), Question("v", ">= 160", "x")], [("h", "v")]), "cycle"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_used_is_refused_with_the_reason(made: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        made()


def test_codes_of_numpy_and_labels_with_blanks_become_plain() -> None:
    question = Question("a", np.array([1, 2]), label=" Ever\n told ")  # type: ignore[arg-type]
    assert question.yes == ("1", "2")
    assert question.label == "Ever told"
    assert question == Question("a", ["1", "2"], label="Ever told")
    assert Question("a", **question.plain()) == question
