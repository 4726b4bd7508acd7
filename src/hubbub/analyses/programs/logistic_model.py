"""The model of a logistic regression: predictions, intervals and plots.

Tested in tests/analyses/programs/test_logistic.py.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.programs.attributes import Rows, by_columns
from hubbub.analyses.programs.logistic_fit import softmax
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.vectors import Floats
from hubbub.answers.release import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class LogisticRegression:
    """The model of a logistic regression, with methods as in scikit-learn; rows by columns, or as an array.

    coef      a coefficient for each column, of the log-odds of the second of two classes; or a row for each class
    half      half of the 95% intervals of intercept and coefficients by the noise; None if there are none
    sampling  the ± at 95% of intercept and coefficients between samples of rows; None if it is not known
    """

    columns: tuple[str, ...]
    target: str
    classes: tuple[bool | int | float | str, ...]
    coef: Floats
    intercept: Floats | float
    half: Floats | None = None
    sampling: Floats | None = None

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "logistic_regression")
        several = len(model["classes"]) > 2
        return cls(
            tuple(model["columns"]),
            model["target"],
            tuple(model["classes"]),
            np.array(model["coefficients"]),
            np.array(model["intercept"]) if several else model["intercept"],
            *(np.array(model[name]) if name in model else None for name in ("half", "sampling")),
        )

    def decision_function(self, rows: Rows) -> Floats:
        """Give the log-odds of the second class for each row; of more classes, a margin for each."""
        data = by_columns(rows, self.columns)
        table = np.stack([np.asarray(each, dtype=float) for each in data.values()], axis=1)
        return np.asarray(table @ self.coef.T + self.intercept)

    def predict_proba(self, rows: Rows) -> Floats:
        """Give the probability of each class for each row."""
        margins = self.decision_function(rows)
        return softmax(np.stack([np.zeros(len(margins)), margins], axis=1) if margins.ndim == 1 else margins)

    def predict(self, rows: Rows) -> NDArray[np.object_]:
        """Give the most probable class of each row."""
        return np.asarray(np.array(self.classes, dtype=object)[self.predict_proba(rows).argmax(axis=1)])

    def score(self, rows: Rows, target: NDArray[np.generic] | list[object]) -> float:
        """Give the share of rows whose class is predicted."""
        return float(np.mean(self.predict(rows) == np.asarray(target, dtype=object)))

    def plot(self) -> "Figure":
        """Plot the coefficients with their intervals, if there are some; of more classes, one mark for each."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 1.2 + 0.45 * len(self.columns)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(self.columns))
        if self.coef.ndim == 1:
            half = None if self.half is None else self.half[1:]
            axes.errorbar(self.coef, places, xerr=half, fmt="o", capsize=3)
            axes.set_xlabel(
                f"log-odds of {self.classes[1]} for each unit" + (", with 95% intervals" * (half is not None))
            )
        else:
            for name, own in zip(self.classes, self.coef, strict=True):
                axes.plot(own, places, "o", label=str(name))
            axes.legend(title=self.target)
            axes.set_xlabel("log-odds for each unit, against the mean of all classes")
        axes.axvline(0, linewidth=0.8, color="gray")
        axes.set_yticks(places, labels=list(self.columns))
        axes.invert_yaxis()
        return figure
