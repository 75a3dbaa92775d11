"""A fault that is planted in memory is the one of the text, and what cannot be planted so is told."""

import ast

import pytest

from tests.mutants.warm import changed_functions

TEXT = """from dataclasses import dataclass
LIMIT = 3

@dataclass(frozen=True)
class Noise:
    rate: int = 1

    def scale(self, more=2):
        return [x * self.rate for x in range(more)]

def twice(x):
    return 2 * x
"""


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("2 * x", "3 * x", ["twice"]),
        ("x * self", "x + self", ["Noise.scale", "Noise.scale.<locals>.<listcomp>"]),
        ("LIMIT = 3", "LIMIT = 4", ["LIMIT"]),
        ("more=2", "more=3", None),
        ("frozen=True", "frozen=False", None),
        ("rate: int = 1", "rate: int = 2", None),
    ],
)
def test_functions_and_constants_that_differ_are_found(old, new, names):
    functions, constants = changed_functions(TEXT, TEXT.replace(old, new), "noise.py")
    if names is None:
        assert functions is None
    else:
        assert functions is not None
        found = [pair[1].co_qualname for pair in functions] + [
            ast.unparse(s).split(" ")[0] for s in constants
        ]
        assert set(found) & set(names) == set(found)
        assert found
