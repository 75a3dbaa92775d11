"""Marks tell which blocks of a function ran, and tests of a line are those that reach its block."""

import json

import pytest

from tests.mutants.reach import Blocks, Reach, _packed

TEXT = '''"""A module."""
LIMIT = 3

def twice(x):
    """Say it twice."""
    if x > LIMIT:
        return LIMIT
    total = 0
    for _ in range(2):
        total += x
    return total

class Noise:
    def scale(self, x):
        try:
            return 1 / x
        except ZeroDivisionError:
            return 0

@kernel(steps=1)
def inner(x):
    if x:
        return 1
    return 2
'''


def reached(call):
    blocks, marks = Blocks(), bytearray(100)
    names = {"__reached__": marks, "kernel": lambda **_: lambda function: function}
    exec(compile(blocks.marked("m.py", TEXT), "m.py", "exec"), names)
    call(names)
    lines = blocks.lines["m.py"]
    return {line for line, block in enumerate(lines) if block and marks[block]}


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        (lambda names: names["twice"](1), {6, 8, 9, 10, 11}),
        (lambda names: names["twice"](4), {6, 7}),
        (lambda names: names["Noise"]().scale(1), {15, 16, 17}),
        (lambda names: names["Noise"]().scale(0), {15, 16, 17, 18}),
        (lambda names: names["inner"](0), set()),
    ],
)
def test_the_lines_of_blocks_that_ran_are_marked(call, lines):
    assert reached(call) == lines


def test_a_kernel_is_one_block_named_by_its_first_line():
    blocks = Blocks()
    blocks.marked("m.py", TEXT)
    assert list(blocks.kernels) == [("m.py", 20)]
    assert len({blocks.lines["m.py"][line] for line in range(21, 25)}) == 1


def test_the_quickest_case_of_each_test_comes_first(tmp_path):
    (tmp_path / "blocks.json").write_text(
        json.dumps({"lines": {"m.py": [0, 0, 1, 2]}, "loaded": _packed(b"\0\0\1")})
    )
    rows = [("slow", 3.0, b"\0\1"), ("quick[a]", 0.2, b"\0\1\1"), ("quick[b]", 0.1, b"\0\1")]
    text = "\n".join(
        json.dumps({"test": test, "cpu": cpu, "reached": _packed(marks)}) for test, cpu, marks in rows
    )
    (tmp_path / "test_m.jsonl").write_text(text)
    reach = Reach(tmp_path)
    assert reach.of("m.py", 2) == ["quick[b]", "slow", "quick[a]"]
    assert reach.of("m.py", 3) == ["quick[a]"]
    assert reach.of("m.py", 1)[:2] == ["quick[b]", "quick[a]"]
    assert [reach.is_loaded("m.py", line) for line in (1, 2, 3)] == [True, False, True]
