"""Estimators with the interface of scikit-learn, for pipelines and other code that takes fitted models.

Tested in tests/analyses/test_estimator.py.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses import registry
from hubbub.answers.methods_base import AnalysisCalls
from hubbub.answers.release import Release
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError

_NAMES = ("analysis", "columns", "target", "epsilon", "delta", "key", "arguments")


class Estimator:
    """An analysis that is fitted on a private table of a session and predicts rows that the caller has.

    `fit(session, table)` pays ε and asks for the model; the rows stay with the curator. All other methods of the model
    (`predict`, `predict_proba`, `transform`, `score`, …) are those of the estimator afterwards, and free.

    analysis   the name of an analysis whose model predicts or transforms, such as 'naive_bayes' or 'kmeans'
    columns    the columns to learn from; an array that is passed to a method has them in this order
    target     the column to predict, where the analysis has one
    arguments  further arguments of the analysis, such as {'bins': 8} or {'k': 3}
    """

    def __init__(
        self,
        analysis: str,
        columns: Sequence[str],
        target: str | None = None,
        *,
        epsilon: Number,
        delta: Number | None = None,
        key: str | None = None,
        arguments: dict[str, object] | None = None,
    ) -> None:
        # scikit-learn's clone compares parameters by identity, so they are kept as they are given
        self.analysis = analysis
        self.columns = columns
        self.target = target
        self.epsilon = epsilon
        self.delta = delta
        self.key = key
        self.arguments = arguments

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - of scikit-learn's interface
        """Give the parameters by name."""
        return {name: getattr(self, name) for name in _NAMES}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name. What was fitted stays as it is until the next fit."""
        unknown = sorted(set(parameters) - set(_NAMES))
        if unknown:
            raise ParameterError(
                "HB101", f"An estimator has no parameter {unknown[0]!r}.", f"Its parameters: {', '.join(_NAMES)}."
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def fit(self, session: AnalysisCalls[Release], table: str) -> Self:
        """Pay for the model of a table of this session. Fitting again pays again, unless the answer is the same one."""
        if not hasattr(session, "call") or not isinstance(table, str):
            raise ParameterError(
                "HB101",
                "fit takes a session and the name of a private table, not rows.",
                'Write estimator.fit(h, "visits") with h = hubbub.open(…) or hubbub.connect(…).',
            )
        given: dict[str, object] = {"table": table, "columns": list(self.columns), **(self.arguments or {})}
        if self.target is not None:
            given["target"] = self.target
        self.release_ = session.call(self.analysis, given, epsilon=self.epsilon, delta=self.delta, key=self.key)
        self.model_ = registry.model(self.release_)
        self.n_features_in_ = len(self.columns)
        if hasattr(self.model_, "classes"):
            self.classes_: NDArray[np.object_] = np.array(self.model_.classes, dtype=object)
        return self

    def __getattr__(self, name: str) -> Any:
        """Give a method of the model; there is none before `fit`."""
        model = self.__dict__.get("model_")
        if model is None or name.startswith("_"):
            raise AttributeError(f"{name}: call fit(session, table) first")
        return getattr(model, name)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return "model_" in self.__dict__

    def __repr__(self) -> str:
        """Show the parameters that are set."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value is not None)
        return f"Estimator({shown})"
