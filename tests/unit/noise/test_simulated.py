import copy
import pickle

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.noise import Simulated, refuse_simulated

NOISE = Simulated.wrap([[1.0, -2.0], [3.0, 4.5]])


@pytest.mark.parametrize(
    "computed",
    [
        NOISE + 1,
        1 - NOISE,
        np.ones((2, 2)) @ NOISE,
        NOISE[0],
        NOISE[0, 1],
        next(iter(NOISE[1])),
        NOISE.sum(),
        NOISE.mean(axis=0),
        NOISE.astype(np.int64),
        np.round(NOISE),
        np.concatenate([np.zeros((1, 2)), NOISE]),
        np.stack([NOISE, NOISE]),
        np.where(NOISE > 0, NOISE, 0),
        np.sort(NOISE),
        np.quantile(NOISE, 0.5),
        np.linalg.norm(NOISE),
        np.linalg.svd(NOISE).S,
        np.split(NOISE, 2)[0],
        np.unique(NOISE, return_counts=True)[0],
        copy.deepcopy(NOISE),
        pickle.loads(pickle.dumps(NOISE)),
    ],
)
def test_whatever_is_computed_from_simulated_noise_is_simulated_and_refused(computed):
    assert isinstance(computed, Simulated)
    with pytest.raises(InputError, match=r"simulate\(\)"):
        refuse_simulated(computed)


@pytest.mark.parametrize(
    "holder",
    [
        [1, NOISE],
        (NOISE,),
        {"a": NOISE},
        [[0, [NOISE[0, 0]]]],
        {"a": {"b": [NOISE]}},
        [NOISE[0, 0], NOISE[0, 1]],
    ],
)
def test_simulated_noise_is_found_inside_lists_and_mappings(holder):
    with pytest.raises(InputError, match="must not be released"):
        refuse_simulated(holder)


@pytest.mark.parametrize(
    "statistic", [[1, 2], np.arange(3), {"a": 1}, "text", 5, None, [np.int64(3)], ["a", b"b"]]
)
def test_true_statistics_pass(statistic):
    refuse_simulated(statistic)


def test_plain_questions_get_plain_answers():
    assert np.allclose(NOISE, NOISE) is True
    assert NOISE.shape == np.shape(NOISE) == (2, 2)
    assert NOISE.tolist() == [[1.0, -2.0], [3.0, 4.5]]
    assert f"{NOISE[0, 0]:.2f}" == "1.00"
    assert type(np.asarray(NOISE)) is np.ndarray
