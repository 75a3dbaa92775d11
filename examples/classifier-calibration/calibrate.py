"""Private calibration of a classifier: probabilities that mean what they say, learnt from patients' outcomes.

A classifier is trained on public data. Its scores are then calibrated on *private* data by a monotone curve, fitted
with differential privacy in place of scikit-learn's IsotonicRegression, in an ordinary pipeline. Run it with
``python examples/classifier-calibration/calibrate.py``; it needs ``pip install 'isotone[sklearn]'``.

Only ``fit`` is private. The comparison printed below uses outcomes that are taken to be public. A cross-validation score, a
grid search or any choice made by looking at private outcomes is not private by itself: make such choices on public
data, or before the data are seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from isotone.curves import PrivateIsotonicRegression


def scores_of(classifier: Any, X: Any) -> Any:
    return classifier.predict_proba(X)[:, 1]


def main() -> dict[str, float]:
    # Redundant features make naive Bayes far too sure of itself.
    X, y = make_classification(
        24_000, n_features=20, n_informative=4, n_redundant=12, flip_y=0.1, random_state=0
    )
    X_public, X_rest, y_public, y_rest = train_test_split(X, y, train_size=4_000, random_state=0)
    X_private, X_test, y_private, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
    classifier = GaussianNB().fit(X_public, y_public)
    calibrated: Any = make_pipeline(
        FunctionTransformer(lambda rows: scores_of(classifier, rows)),
        PrivateIsotonicRegression(epsilon=1, bounds=(0, 1), y_range=(0, 1)),
    ).fit(X_private, y_private)
    found = {
        "as the classifier says": brier_score_loss(y_test, scores_of(classifier, X_test)),
        "calibrated with ε = 1": brier_score_loss(y_test, np.clip(calibrated.predict(X_test), 0, 1)),
    }
    for name, loss in found.items():
        print(f"Brier score, {name}: {loss:.4f}")
    print(f"promised: {calibrated[-1].guarantee_}")
    return found


if __name__ == "__main__":
    main()
