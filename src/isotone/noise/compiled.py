"""Names for what compiled kernels work with: numba infers the types, and to a type checker they are Any.

Indexing an array gives a machine scalar in compiled code, which numpy's own annotations cannot say.
"""

from typing import Any

__all__ = ["Flag", "Floats", "Int", "Ints", "Real", "Word", "Words"]

Flag = Any  # bool
Int = Any  # int64
Word = Any  # uint64
Real = Any  # float64
Ints = Any  # array of int64
Words = Any  # array of uint64
Floats = Any  # array of float64
