"""A linear model of two classes, as released by a logistic regression or a perceptron.

Tested in tests/analyses/programs/test_regression.py and test_perceptron.py.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.vectors import Floats
from hubbub.answers.release import Release


@dataclass(frozen=True, slots=True)
class LinearClassifier:
    """A linear model of two classes, with methods as in scikit-learn."""

    ANALYSIS: ClassVar[str]  #: the analysis that releases it
    WEIGHTS: ClassVar[str]  #: the name of the weights in its release

    columns: tuple[str, ...]
    target: str
    classes: tuple[bool | int | float | str, ...]
    coef: Floats
    intercept: float

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, cls.ANALYSIS)
        return cls(
            tuple(model["columns"]),
            model["target"],
            tuple(model["classes"]),
            np.array(model[cls.WEIGHTS]),
            model["intercept"],
        )

    def decision_function(self, rows: Floats) -> Floats:
        """Give the margin of each row: the log-odds of the second class, for a logistic regression."""
        return np.asarray(np.asarray(rows, dtype=float) @ self.coef + self.intercept)

    def predict(self, rows: Floats) -> NDArray[np.object_]:
        """Give the predicted class of each row."""
        return np.asarray(np.array(self.classes, dtype=object)[(self.decision_function(rows) > 0).astype(int)])
