"""Which cast a refusal of a type names."""

import pytest

from isotone.reading.types import _family


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
