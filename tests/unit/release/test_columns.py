"""Columns in bulk are the same text as one value at a time."""

import csv
import io
import json

import numpy as np
import pytest

from isotone.release import manifest as writing
from isotone.release.manifest import csv_text, json_parts, thinned


def _columns(rows: int) -> dict[str, tuple]:
    rng = np.random.default_rng(rows)
    powers = 10.0 ** rng.integers(-25, 25, rows)
    return {
        "word": tuple(rng.choice(["a", "b,c", 'q"x', "é\n", "", " s", "\r", "\x7f"], rows).tolist()),
        "whole": tuple(rng.integers(-5, 5, rows).tolist()),
        "value": tuple((np.round(rng.normal(0, 10.0 ** rng.integers(-3, 9, rows)), 4) + 0.0).tolist()),
        "any": tuple((rng.normal(size=rows) * powers).tolist()),
        "power": tuple((10.0 ** rng.integers(-6, 18, rows)).tolist()),
        "tens": tuple((10.0 ** rng.integers(-4, 15, rows)).tolist()),
        "mixed": tuple([1, 1.0, 2**70, -0.0][i % 4] for i in range(rows)),
    }


@pytest.mark.parametrize("rows", [0, 1, 9, 2000])
def test_columns_are_written_as_the_standard_library_does(monkeypatch, rows):
    monkeypatch.setattr(writing, "_TOGETHER", 700)
    given = _columns(rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(given)
    writer.writerows(zip(*given.values(), strict=True))
    assert csv_text(given) == out.getvalue()
    plain = {name: list(column) for name, column in given.items()}
    assert b"".join(json_parts(given)) == json.dumps(plain, sort_keys=True, ensure_ascii=False).encode()


def test_columns_that_no_file_can_hold_are_refused():
    with pytest.raises(ValueError, match="different lengths"):
        csv_text({"a": (1, 2), "value": (1.0,)})
    with pytest.raises(ValueError, match="JSON"):
        list(json_parts({"value": (1.0, float("nan"))}))


def test_some_rows_hold_every_word():
    words = tuple(["a"] * 50 + ["b"] + ["a"] * 49)
    kept = thinned({"word": words, "value": tuple(range(100))}, 20)
    assert set(kept["value"]) == {0, 20, 40, 50, 60, 80, 99}
    assert kept["word"][kept["value"].index(50)] == "b"
