"""One pipeline for all kinds: what happens in which order, and what is charged."""

import subprocess
import sys
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.curves.regression import ComparisonWarning, charged
from isotone.errors import InputError
from isotone.ledger import AttemptError
from isotone.release import pipeline
from isotone.release.manifest import Stated
from isotone.release.pipeline import Job

P = iso.Poset(["hyp", "twice"], [("twice", "hyp")])
DATA = pd.DataFrame(
    {
        "person": np.arange(60) // 4,
        "hyp": [1, 0, 1] * 20,
        "twice": [1, 0, 0] * 20,
        "county": ["a", "b", "c"] * 20,
        "age": np.arange(60.0),
        "risk": np.arange(60) / 60,
    }
)


@pytest.fixture
def ledger(tmp_path):
    with iso.Ledger(tmp_path / "survey.ledger", epsilon=10) as opened:
        yield opened


def counts(ledger, **options):
    return flat.counts(DATA, P, epsilon=1, ledger=ledger, unit="person", **options)


def table(ledger, **options):
    given: dict[str, Any] = {
        "category": "county",
        "categories": ["a", "b"],
        "upper": 50,
        "epsilon": 1,
        "unit": "person",
    }
    return flat.table(DATA, ledger=ledger, **{**given, **options})


def curve(ledger, **options):
    given: dict[str, Any] = {
        "x": "age",
        "y": "risk",
        "bounds": (0, 60),
        "y_range": (0, 1),
        "epsilon": 1,
        "unit": "person",
    }
    return flat.curve(DATA, ledger=ledger, **{**given, **options})


KINDS = pytest.mark.parametrize(
    ("release", "query"),
    [(counts, Job), (table, Job), (curve, Job)],
    ids=["counts", "table", "curve"],
)


def test_a_published_method_is_warned_of_once_and_before_the_charge(ledger):
    with pytest.warns(ComparisonWarning) as told:
        curve(ledger, method="additive")
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ComparisonWarning):
            curve(ledger, method="additive")
    assert ledger.spent().epsilon == 1


def test_errors_of_floating_point_that_raise_lose_no_charge(ledger, monkeypatch):
    """Tiny probabilities of a posterior underflow, and callers may have told numpy to raise."""
    draw = Job.draw
    monkeypatch.setattr(Job, "draw", lambda *given: (np.exp(np.float64(-1e4)), draw(*given))[1])
    with np.errstate(all="raise"):
        counts(ledger)
        with charged(None, iso.Guarantee.pure(1), "a fit"):
            assert np.exp(np.float64(-1e4)) == 0
    assert ledger.spent().epsilon == 1


def trapped(monkeypatch, query, ledger, fail=False):
    """What the ledger held each time that rows, and not the zero rows of a rehearsal, were about to be read."""
    seen: list[int] = []
    read = query.read

    def trap(self, frame):
        if frame.select(nw.len().alias("rows")).collect()["rows"][0]:
            seen.append(len(ledger.charges()))
            if fail:
                raise ZeroDivisionError
        return read(self, frame)

    monkeypatch.setattr(query, "read", trap)
    return seen


@KINDS
def test_the_charge_exists_when_reading_starts(ledger, monkeypatch, release, query):
    seen = trapped(monkeypatch, query, ledger)
    release(ledger)
    assert seen == [1]


@KINDS
def test_a_read_that_fails_leaves_the_charge_spent(ledger, monkeypatch, release, query):
    seen = trapped(monkeypatch, query, ledger, fail=True)
    with pytest.raises(AttemptError):
        release(ledger)
    assert seen == [1]
    assert ledger.remaining().epsilon == 9
    assert not ledger.charges()[0].finished


@KINDS
def test_a_guarantee_weaker_than_the_charge_is_noticed_before_it(ledger, monkeypatch, release, query):
    """From the manifest that would be written, and not from what the query says of itself."""
    run = pipeline.run

    def cheaper(asked, **options):
        assert isinstance(asked, query)
        return run(replace(asked, guarantee=replace(asked.guarantee, epsilon=Fraction(1, 2))), **options)

    monkeypatch.setattr(pipeline, "run", cheaper)
    with pytest.raises(
        InputError, match=r"less than the .*ε = 0.5.*Nothing was charged|not the one that the description has"
    ):
        release(ledger)
    assert ledger.charges() == []


@pytest.mark.parametrize("release", [counts, table], ids=["counts", "table"])
def test_noise_for_fewer_contributions_is_noticed_before_the_charge(ledger, monkeypatch, release):
    run, once = pipeline.run, []

    def fewer(asked, **options):
        return run(replace(asked, mechanism=once[0]) if once else _kept(once, asked), **options)

    def _kept(kept, asked):
        kept.append(asked.mechanism)
        return asked

    monkeypatch.setattr(pipeline, "run", fewer)
    release(ledger, contributions=1)
    with pytest.raises(InputError, match=r"another kind|fewer categories"):
        release(ledger, contributions=3)
    assert len(ledger.charges()) == 1


@KINDS
def test_no_noise_is_drawn_before_the_data_is_read(ledger, monkeypatch, release, query):
    """After the charge the statistic is read once and drawn from once."""
    steps: list[str] = []
    for name in ("read", "draw", "publish"):
        step = getattr(query, name)

        def noted(self, *arguments, step=step, name=name):
            steps.append(f"{name} {len(ledger.charges())}")
            return step(self, *arguments)

        monkeypatch.setattr(query, name, noted)
    release(ledger)
    assert steps == ["read 0", "draw 0", "publish 0", "read 1", "draw 1", "publish 1"]


@KINDS
@pytest.mark.parametrize("epsilon", [1, "1/3", 0.1])
def test_what_is_spent_is_what_is_stated(ledger, release, query, epsilon):
    if release is counts:
        made = flat.counts(DATA, P, epsilon=epsilon, ledger=ledger, unit="person")
    else:
        made = release(ledger, epsilon=epsilon)
    assert ledger.spent().epsilon == made.guarantee.epsilon == Fraction(str(epsilon))
    assert made.guarantee.unit == "person"


@KINDS
def test_contributions_are_in_the_mechanism_of_the_manifest(ledger, release, query):
    made = release(ledger, contributions=np.uint8(4))
    assert made.manifest.mechanism["contributions"] == 4
    assert made.manifest["description"]["unit"]["contributions"] == 4


@KINDS
def test_the_time_of_a_manifest_is_that_of_its_charge(ledger, release, query):
    made = release(ledger)
    (charge,) = ledger.charges()
    assert (made.manifest.time, made.manifest.charge) == (charge.time, charge.number)


@KINDS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contributions": "2"}, "contributions"),
        ({"contributions": True}, "contributions"),
        ({"contributions": 2.0}, "contributions"),
        ({"unit": ["person", "hyp"]}, "must be the name of one column"),
        ({"unit": 3}, "must be the name of one column"),
        ({"title": b"bytes"}, "title"),
        ({"title": "\ud800"}, "UTF-8"),
        ({"title": "x" * 2000}, "at most 1,000 characters"),
        ({"request": 7}, "request"),
    ],
)
def test_odd_parameters_are_refused_before_the_charge(ledger, release, query, options, message):
    with pytest.raises(InputError, match=message):
        (lambda: flat.counts(DATA, P, epsilon=1, ledger=ledger, **options))() if release is counts else (
            release(ledger, **options)
        )
    assert ledger.charges() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": {"county": ["a"], "hyp": 3}}, "must be a list of names"),
        ({"by": "county", "groups": "a"}, "must be a list of names"),
        ({"by": "county", "groups": 3}, "must be a list of names"),
        ({"max_size": "2"}, "max_size"),
        ({"max_size": True}, "max_size"),
        ({"total": 1}, "total"),
        ({"confidence": "high"}, "confidence"),
        ({"columns": {"hyp": 3}}, "columns must be the name"),
    ],
)
def test_odd_parameters_of_counts_are_refused_before_the_charge(ledger, options, message):
    with pytest.raises(InputError, match=message):
        counts(ledger, **options)
    assert ledger.charges() == []


def test_numpy_and_exact_numbers_are_parameters_like_any_other(ledger):
    made = counts(ledger, max_size=np.int64(1), confidence=Fraction(9, 10), contributions=np.int64(2))
    assert made.manifest["description"]["max_size"] == 1
    assert made.manifest["description"]["confidence"] == 0.9
    grouped = counts(ledger, by="county", groups=np.array(["a", "b"]))
    assert grouped.manifest["description"]["by"] == [["county", ["a", "b"]]]
    assert table(ledger, upper=np.int64(20)).manifest["description"]["upper"] == 20
    assert curve(ledger, public_n=np.int64(60)).manifest.mechanism["public_n"] == 60
    assert len(ledger.charges()) == 4
    for made in (table(ledger, contributions=np.uint8(200)), curve(ledger, contributions=np.int64(2))):
        assert (
            made.manifest.mechanism["contributions"]
            == made.manifest["description"]["unit"]["contributions"]
            > 1
        )


@pytest.mark.parametrize("options", [{}, {"by": "county", "groups": ["a", "b"]}])
def test_published_errors_are_those_of_the_mechanism(ledger, options):
    made = counts(ledger, total=True, confidence=0.8, **options)
    mechanism = iso.counts.PosetMechanism(P, 1)
    assert made.manifest.mechanism["name"] == "PosetMechanism"
    repeat = len(options.get("groups", [0]))
    alone = np.tile(mechanism.half_widths(0.8), repeat)
    together = mechanism.simultaneous_half_width(0.8)
    value = made.value
    expected = {
        "sd": np.tile(np.round(mechanism.error().sd, 4), repeat),
        "low": np.maximum(value - alone, 0),
        "high": np.maximum(value + alone, 0),
        "low_all": np.maximum(value - together, 0),
        "high_all": np.maximum(value + together, 0),
    }
    for name, column in expected.items():
        np.testing.assert_allclose(made.columns[name], column, err_msg=name)
    assert made.manifest["total_sd"] == pytest.approx(mechanism.total_variance() ** 0.5, abs=1e-4)


@pytest.mark.parametrize("odd", [2, 2.5, "text", True, None, pd.NA])
@pytest.mark.parametrize("kind", [object, "category"])
def test_sources_that_differ_in_one_row_rehearse_alike(ledger, monkeypatch, kind, odd):
    """Byte for byte, noise apart: the zero rows that a rehearsal reads have the same names and types."""
    from isotone.release import pipeline

    def rehearsed(values):
        seen: list[Any] = []
        read = Job.read

        def note(self, frame):
            seen.append((str(frame.collect_schema()), frame.collect().to_dict(as_series=False)))
            return read(self, frame)

        data = pd.DataFrame({"hyp": pd.Series(values, dtype=kind), "twice": [0, 1, 1]})
        query = Job.of(iso.Counts(P), data, iso.Guarantee.pure(1), Stated())
        with monkeypatch.context() as patch:
            patch.setattr(Job, "read", note)
            pipeline.rehearse(query, query.open(), pipeline.Presentation())
        return repr(seen).encode()

    assert rehearsed([1, 0, odd]) == rehearsed([1, 0, 1])


def test_a_release_loads_nothing_that_only_reproduces_papers_unless_it_asks_for_it_by_name(
    tmp_path: Path,
) -> None:
    code = f"""
import sys
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
import pandas as pd
import isotone as iso
from isotone.curves import PrivateIsotonicRegression
from isotone.curves.regression import mechanism_for
from isotone.curves.problem import CurveSetting, FitMethod
from isotone.privacy.guarantee import Guarantee

def built(**options):
    model = PrivateIsotonicRegression(1, (0, 1), (0, 1), **options)
    return mechanism_for(model._problem(weighted=False, grouped=False).sized(99, CurveSetting(Fraction(1))))

def loaded():
    return [name for name in sys.modules if name.startswith("isotone.published.")]

data = pd.DataFrame({{"a": [0, 1], "b": [0, 0]}})
with iso.Ledger({str(tmp_path / "a.ledger")!r}, epsilon=9) as ledger:
    iso.Counts(iso.Poset.chain("ba")).release(data, epsilon=1, ledger=ledger)
    iso.Table("a", [0, 1], upper=5).release(data, epsilon=1, ledger=ledger)
for options in ({{}}, {{"loss": "absolute"}}, {{"shape": "convex", "x_grid": 5}}, {{"method": FitMethod("auto", levels=3)}}, {{"method": "additive"}}):
    built(**options)
iso.Curve(("a", "b"), y="a2", bounds=((0, 1), (0, 1)), y_range=(0, 1), x_grid=2).mechanism(Guarantee.pure(1))
assert not loaded(), loaded()
built(method="threshold")
assert loaded()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
