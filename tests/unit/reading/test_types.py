"""Which cast a refusal of a type names."""

from types import SimpleNamespace

import duckdb
import pytest

from isotone.errors import InputError
from isotone.reading.types import _family, duckdb_kind, require_kinds, spark_kind


@pytest.mark.parametrize(
    ("written", "family"),
    [
        ("INTERVAL", "interval"),
        ("duration[ns]", "interval"),
        ("Period(M)", "interval"),
        ("VARCHAR[]", "nested"),
        ("STRUCT(a INTEGER)", "nested"),
        ("BLOB", "binary"),
        ("bytea", "binary"),
        ("TIME", "time"),
        ("JSON", "other"),
    ],
)
def test_the_cast_that_helps_follows_from_the_name_of_the_type(written, family):
    assert _family(written) == family


@pytest.mark.parametrize(
    ("kind", "written", "cast"),
    [(None, "BLOB", "if the bytes are text"), ("date", "DATE", "where it is an amount")],
)
def test_a_type_that_is_read_elsewhere_is_told_from_one_that_is_not(kind, written, cast):
    with pytest.raises(InputError, match=f"has the column 'a' of type {written}, .* {cast}"):
        require_kinds({"number": ["a"]}, {"a": (kind, written)}, "The table")


@pytest.mark.parametrize("collation", ["UNICODE_CI", "UTF8_LCASE", "de_AI"])
def test_a_text_of_spark_that_a_collation_compares_is_refused_with_its_cast(collation):
    """Two names of people, or two groups, could be equal there."""

    def text(collation: str) -> SimpleNamespace:
        return SimpleNamespace(typeName=lambda: "string", collation=collation)

    assert spark_kind(text("UTF8_BINARY")) == spark_kind(SimpleNamespace(typeName=lambda: "char")) == "text"
    assert spark_kind(text(collation)) is None
    with pytest.raises(InputError, match="COLLATE UTF8_BINARY"):
        require_kinds({"unit": ["u"]}, {"u": (None, f"string collate {collation}")}, "The table")


def test_json_is_no_text_although_the_engine_keeps_it_as_one():
    """It compares values of JSON, of which one row that is none could end a query."""
    text, json = duckdb.connect().query("SELECT 'x' AS a, '1'::JSON AS b").types
    assert (duckdb_kind(text), duckdb_kind(json)) == ("text", None)
