"""Private calibration of a classifier: probabilities that mean what they say, learnt from patients' outcomes.

A classifier is trained on public data. Its scores are then calibrated on *private* data by a monotone curve, fitted
with differential privacy, in the manner of scikit-learn's CalibratedClassifierCV with a frozen classifier. Run it with
``python examples/classifier-calibration/calibrate.py``; it needs ``pip install '.[sklearn]'``.

Only ``fit`` is private, and only the calibration: a classifier that was trained without privacy on the same patients would tell
about them. The reliability diagram and the calibration error come from what ``fit`` released. The Brier scores printed below use
outcomes that are taken to be public. A cross-validation score, a grid search or any choice made by looking at private outcomes is not
private by itself: make such choices on public data, or before the data are seen.
"""

from __future__ import annotations

from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from isotone.curves import PrivateCalibrator


def main() -> dict[str, float]:
    # Redundant features make naive Bayes far too sure of itself.
    X, y = make_classification(
        24_000, n_features=20, n_informative=4, n_redundant=12, flip_y=0.1, random_state=0
    )
    X_public, X_rest, y_public, y_rest = train_test_split(X, y, train_size=4_000, random_state=0)
    X_private, X_test, y_private, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
    classifier = GaussianNB().fit(X_public, y_public)
    calibrated = PrivateCalibrator(classifier, epsilon=1, strict=True).fit(X_private, y_private)
    found = {
        "as the classifier says": brier_score_loss(y_test, classifier.predict_proba(X_test)[:, 1]),
        "calibrated with ε = 1": brier_score_loss(y_test, calibrated.predict_proba(X_test)[:, 1]),
    }
    for name, loss in found.items():
        print(f"Brier score, {name}: {loss:.4f}")
    error = calibrated.reliability(groups=10).error
    if error is not None:
        print(f"calibration error of the classifier: {error.value:.3f} ({error.low:.3f} to {error.high:.3f})")
    print(f"guaranteed: {calibrated.guarantee_}")
    return found


if __name__ == "__main__":
    main()
