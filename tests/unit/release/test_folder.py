"""Folders that a stranger made: read within limits, or refused with a sentence; never a wait."""

import csv
import os
import re
from itertools import islice

import pytest

from isotone.errors import InputError
from isotone.release.result import DEEPEST, LARGEST, plain_json, read_columns, read_file, read_json


def test_a_plain_file_is_read(tmp_path):
    (tmp_path / "manifest.json").write_text('{"a": [1, -2.5, "ü", null, true]}')
    assert read_json(tmp_path, "manifest.json") == {"a": [1, -2.5, "ü", None, True]}


def link(path):
    (path.parent / "elsewhere").write_text("{}")
    path.symlink_to(path.parent / "elsewhere")


def sparse(path):
    with path.open("wb") as file:
        file.truncate(3 << 30)


KINDS_OF_FILE = [
    (link, "is a link"),
    (lambda path: path.symlink_to("/dev/zero"), "is a link"),
    (lambda path: path.symlink_to(path), "is a link"),
    (os.mkfifo, "not a regular file"),
    (os.mkdir, "not a regular file|Is a directory"),
    (sparse, "larger than"),
    (lambda path: path.write_bytes(b"\xff{}"), "not UTF-8"),
    (lambda path: path.write_text("[" * 200_000), "nested too deeply"),
    (lambda path: path.write_text('{"a":' * 100_000 + "1" + "}" * 100_000), "nested too deeply"),
    (lambda path: path.write_text('{"a":' * 40 + "1" + "}" * 40), "nested too deeply"),
    (lambda path: path.write_text('{"a": "' + "x" * 200_000 + '"}'), "more than 100,000 characters"),
    (lambda path: path.write_text('{"' + "x" * 200_000 + '": 1}'), "more than 100,000 characters"),
    (lambda path: path.write_text('{"a": 1, "a": 2}'), "same key twice"),
    (lambda path: path.write_text('{"a": NaN}'), "NaN"),
    (lambda path: path.write_text('{"a": 1e999}'), "too large"),
    (lambda path: path.write_text('{"a": ' + "9" * 5000 + "}"), "too long"),
    (lambda path: path.write_text("[]"), "no JSON object"),
    (lambda path: path.write_text(""), "cannot be read"),
]


@pytest.mark.parametrize(("make", "words"), KINDS_OF_FILE)
def test_what_is_no_honest_manifest_is_refused_at_once(tmp_path, make, words):
    make(tmp_path / "manifest.json")
    with pytest.raises(InputError, match=words):
        read_json(tmp_path, "manifest.json")


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "", ".", "..", "a/b", "a\\b", "a\0b", "x" * 5000, "ü" * 150]
)
def test_a_name_that_leaves_the_folder_is_refused(tmp_path, name):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match="no plain file name") as caught:
        read_file(tmp_path / "in", name)
    assert len(str(caught.value)) < 300


def test_a_missing_file_and_a_folder_with_an_impossible_name_are_explained(tmp_path):
    with pytest.raises(InputError) as caught:
        read_json(tmp_path, "manifest.json")
    said = str(caught.value)
    assert said.endswith("holds no release: manifest.json is missing.")
    assert said.count("manifest.json") == 1
    with pytest.raises(InputError, match=r"release.csv is missing"):
        read_file(tmp_path, "release.csv")
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"is missing. There is one in 'published'\."):
        read_json(tmp_path, "manifest.json")
    with pytest.raises(InputError, match=r"is a file. Name the folder of a release\."):
        read_json(tmp_path / "published" / "manifest.json", "manifest.json")
    for folder in ("x" * 5000, "a\0b"):
        with pytest.raises(InputError) as caught:
            read_file(folder, "release.csv")
        assert len(str(caught.value)) < 300


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(LARGEST, "release.csv", 10)
    (tmp_path / "release.csv").write_bytes(b"x" * 11)
    honest = os.fstat

    class Small:
        st_size = 1

        def __init__(self, found):
            self.st_mode = found.st_mode

    monkeypatch.setattr("isotone.release.result.os.fstat", lambda handle: Small(honest(handle)))
    with pytest.raises(InputError, match="larger than"):
        read_file(tmp_path, "release.csv")


def test_the_limit_of_depth_is_where_it_says():
    assert plain_json("[" * DEEPEST + "1" + "]" * DEEPEST)
    with pytest.raises(ValueError, match="too deeply"):
        plain_json("[" * (DEEPEST + 1) + "1" + "]" * (DEEPEST + 1))


def test_columns_are_names_and_numbers(tmp_path):
    text = 'element,value,sd\n"a, b",12,1.5\n=1,-3,1e-05\n'
    (tmp_path / "release.csv").write_text(text)
    assert read_columns(tmp_path, "release.csv", {"element", "category"}) == {
        "element": ("a, b", "=1"),
        "value": (12, -3),
        "sd": (1.5, 1e-05),
    }
    (tmp_path / "release.csv").write_text("category,value\n")
    assert read_columns(tmp_path, "release.csv", {"element", "category"}) == {"category": (), "value": ()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("element,sd\na,1\n", "does not name the columns"),
        ("value,value\n1,1\n", "does not name the columns"),
        ("element,value\na,1\nb\n", "different lengths"),
        ("element,value\n" + "\n" * 9, "different lengths"),
        ("value," + ",".join(map(str, range(60))) + "\n", "does not name the columns"),
        ("element,value\na,nan\n", "where a number belongs"),
        ("element,value\na,inf\n", "where a number belongs"),
        ("element,value\na,1_0\n", "where a number belongs"),
        ("element,value\na, 1\n", "where a number belongs"),
        ("element,value\na,١\n", "where a number belongs"),
        ("element,value\na,1e999\n", "where a number belongs"),
        (f"element,value\na,{'9' * 5000}\n", "where a number belongs"),
        (f"element,value\n{'a' * 200_000},1\n", "field larger than|more than 100,000"),
        (f"element,value\n{'a' * 120_000},1\n", "more than 100,000"),
        ('element,value\n"a,1\n', "cannot be read"),
        ("element,value\n\0,1\n", "null character"),
    ],
)
def test_a_forged_table_is_refused_with_a_short_sentence(tmp_path, text, words):
    (tmp_path / "release.csv").write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_columns(tmp_path, "release.csv", {"element", "category"})
    assert len(re.sub(re.escape(str(tmp_path)), "", str(caught.value))) < 300


@pytest.mark.parametrize("header", ['element,"value"', "element,value"])
def test_a_file_of_empty_lines_is_refused_at_the_first_of_them(tmp_path, monkeypatch, header):
    """Each empty line would be a list of its own: a file of 128 MiB took 8 GB."""
    read, taken = [], []
    real = csv.reader

    def told(*given, **options):
        for row in real(*given, **options):
            read.append(row)
            yield row

    def some(lines, number):
        taken.append(number)
        return islice(lines, number)

    monkeypatch.setattr("isotone.release.result.csv.reader", told)
    monkeypatch.setattr("isotone.release.result.islice", some)
    (tmp_path / "release.csv").write_text(header + "\n" * 5000)
    with pytest.raises(InputError, match="different lengths"):
        read_columns(tmp_path, "release.csv", ["element"])
    assert len(read) == (2 if '"' in header else 0)
    assert taken == [1000]


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_file_without_quotes_is_read_like_one_with_them(tmp_path, end):
    words = [f"w{i % 7}" for i in range(2500)]
    values = [str((-1) ** i * i / 8) if i % 3 else str(i) for i in range(2500)]
    odd = ["-0", "-0.0", "007.5", "1e3", "0.1", "12345678901234567890123", "1e-7", "5.5", "9" * 301 + ".0"]
    values[5 : 5 + len(odd)] = odd
    lines = [f"{word},{value}" for word, value in zip(words, values, strict=True)]
    found = []
    for header in ("element,value", 'element,"value"'):
        (tmp_path / "release.csv").write_text("\n".join([header, *lines]) + end)
        found.append(read_columns(tmp_path, "release.csv", ["element"]))
    assert list(map(repr, found[0]["value"])) == list(map(repr, found[1]["value"]))
    assert found[0] == found[1]
    assert found[0]["value"][:3] == (0, -0.125, 0.25)
    assert len({id(word) for word in found[0]["element"]}) == 7  # each word is kept once


@pytest.mark.parametrize("cell", ["5.", ".5", "-.5", "1.2.3", "--1.0", "1-2.0", "", "+1.0", "-", "1,2"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_no_other_number_is_read_in_a_block_of_numbers(tmp_path, cell, quote):
    (tmp_path / "release.csv").write_text(f"element,value\na,1.0\nb,{quote}{cell}{quote}\nc,2.0\n")
    with pytest.raises(InputError, match=r"where a number belongs|different lengths"):
        read_columns(tmp_path, "release.csv", ["element"])
