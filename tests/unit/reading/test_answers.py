"""The usual texts are compared directly, all others go by the rule: both give the same answers."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import polars as pl
import pytest

import isotone as iso
from isotone.errors import InputError
from isotone.reading.questions import Answers
from isotone.reading.sources import collect, open_source

TEXTS = [
    *(
        "1",
        "0",
        "2",
        "9",
        "yes",
        "no",
        "Yes",
        "NO",
        "true",
        "False",
        "T",
        "f",
        "y",
        "N",
        "",
        "1.0",
        "0.0",
        "1e0",
    ),
    *("+1", "01", "ja", "JA", "Nein", "maybe", "na", "tRUE", "yES", "1.5", "1.50", "x" * 40, "é", "ß", "SS"),
]
RULES = [
    Answers(),
    Answers(missing="yes"),
    Answers(yes=("ja",), no=("nein",)),
    Answers(yes=("ja", "1.5"), no=("nein", "2"), missing="yes"),
    Answers(yes=("0",), no=("1",)),
    Answers(yes=("ß",), no=("true",)),
]


def read(values: Sequence[Any], answers: Answers, make: type) -> list[bool]:
    frame = open_source(make({"row": range(len(values)), "a": values}), {"answer": ["row", "a"]})
    answer = answers.read("a", frame.collect_schema()["a"]).alias("a")
    found = collect(frame.select("row", answer).sort("row"))
    return found["a"]


def by_hand(text: str | None, answers: Answers) -> bool:
    counted = answers.no if answers.missing == "yes" else answers.yes
    matched = False
    if text is not None:
        word = text.strip().lower()
        numbers = [float(w) for w in counted if w.replace(".", "").isdigit()]
        try:
            matched = word in counted or (word[-1:].isdigit() and float(word) in numbers)
        except ValueError:
            matched = word in counted
    return not matched if answers.missing == "yes" else matched


@pytest.mark.parametrize("make", [pd.DataFrame, pl.LazyFrame], ids=["pandas", "lazy"])
@pytest.mark.parametrize("answers", RULES, ids=range(len(RULES)))
def test_the_usual_texts_mean_what_the_rule_says(make, answers):
    expected = [by_hand(text, answers) for text in TEXTS]
    assert read(TEXTS, answers, make) == expected
    assert (
        read([f" {text}\t" for text in TEXTS], answers, make) == expected
    )  # blanks: never compared directly
    assert read([None], answers, make) == [answers.missing == "yes"]


@pytest.mark.parametrize("missing", ["no", "yes"])
@pytest.mark.parametrize("values", [[True, None], [1, None], [1.0, None], ["yes", None]], ids=repr)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.LazyFrame], ids=["pandas", "lazy"])
def test_no_answer_means_what_the_rule_says_in_columns_of_any_type(make, values, missing):
    assert read(values, Answers(missing=missing), make) == [True, missing == "yes"]


@pytest.mark.parametrize("words", [[""], ["1", " "]])
def test_an_empty_word_is_refused(words):
    """An empty field is missing, so that nobody could say it."""
    with pytest.raises(InputError, match="empty"):
        iso.Answers(yes=words)
    with pytest.raises(InputError, match="empty"):
        iso.Survival("t", event="e", horizon=1, yes=words, unit="u")
