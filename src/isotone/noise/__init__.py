"""The only package that draws random bits for releases.

Every sampler here has exactly the distribution it names, from the operating system's cryptographic bits and
integer arithmetic; the proofs are in docs/theory/sampling.md. Parameters are rationals (``Fraction``).
``simulate`` holds seeded float twins for planning, whose results no release accepts.
"""

from isotone.noise import bits, simulate
from isotone.noise.bits import (
    bernoulli,
    bernoulli_exp,
    bernoulli_exp_lazily,
    choose_exponential,
    choose_exponential_segments,
    choose_integer,
    choose_lazily,
    random_below,
    random_belows,
    random_bits,
    random_words,
    shuffle,
)
from isotone.noise.exponential import (
    LazyExponentials,
    rounded_cube,
    rounded_exponential_rows,
    rounded_exponential_spans,
    rounded_exponential_sums,
)
from isotone.noise.gaussian import discrete_gaussian, discrete_gaussians, rounded_gaussians
from isotone.noise.laplace import (
    UnevenLine,
    bernoulli_exps,
    geometric,
    geometric_sums,
    geometrics,
    lazy_geometrics,
    lazy_two_sided_geometrics,
    rounded_laplaces,
    two_sided_geometric,
    two_sided_geometrics,
    uneven_geometrics,
)
from isotone.noise.simulate import Simulated, refuse_simulated

discrete_laplace = two_sided_geometric

__all__ = [
    "LazyExponentials",
    "Simulated",
    "UnevenLine",
    "bernoulli",
    "bernoulli_exp",
    "bernoulli_exp_lazily",
    "bernoulli_exps",
    "bits",
    "choose_exponential",
    "choose_exponential_segments",
    "choose_integer",
    "choose_lazily",
    "discrete_gaussian",
    "discrete_gaussians",
    "discrete_laplace",
    "geometric",
    "geometric_sums",
    "geometrics",
    "lazy_geometrics",
    "lazy_two_sided_geometrics",
    "random_below",
    "random_belows",
    "random_bits",
    "random_words",
    "refuse_simulated",
    "rounded_cube",
    "rounded_exponential_rows",
    "rounded_exponential_spans",
    "rounded_exponential_sums",
    "rounded_gaussians",
    "rounded_laplaces",
    "shuffle",
    "simulate",
    "two_sided_geometric",
    "two_sided_geometrics",
    "uneven_geometrics",
]
