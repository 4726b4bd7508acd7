"""Estimators: fitted on a session, used by scikit-learn's pipelines, clones and scorers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.analyses.conftest import settle

import hubbub
from hubbub.analyses.estimator import Estimator
from hubbub.curator.session import Session
from hubbub.errors import ParameterError


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Open the town; `sick` is x + y > 0."""
    folder: Path = settle(tmp_path_factory.mktemp("town"))
    with hubbub.open(folder / "hubbub.yaml") as session:
        yield session


def rows() -> tuple[NDArray[np.float64], NDArray[np.object_]]:
    """Give rows of one's own."""
    values = np.random.default_rng(3).uniform(-1, 1, (400, 2))
    return values, np.where(values.sum(axis=1) > 0, "yes", "no").astype(object)


def bayes(**more: object) -> Estimator:
    return Estimator("naive_bayes", ["x", "y"], "sick", epsilon=8, **more)  # type: ignore[arg-type]


def test_a_fitted_estimator_predicts_in_a_pipeline(town: Session) -> None:
    """Rows are in grams and meters; the table is in other units. Chance alone gives an AUC of 0.5."""
    values, truth = rows()
    estimator = bayes(arguments={"bins": 4}).fit(town, "people")
    pipeline = Pipeline([("units", FunctionTransformer(lambda given: given / 1_000)), ("model", estimator)])
    assert pipeline.predict(values * 1_000).tolist() == estimator.predict(values).tolist()
    assert pipeline.predict_proba(values * 1_000).shape == (400, 2)
    assert estimator.classes_.tolist() == ["no", "yes"]
    assert roc_auc_score(truth == "yes", estimator.predict_proba(values)[:, 1]) > 0.8


def test_fit_pays_what_was_said_once(town: Session) -> None:
    estimator = bayes(key="once").fit(town, "people")
    assert float(estimator.release_.epsilon) == 8
    again = bayes(key="once").fit(town, "people")
    assert again.release_.receipt == estimator.release_.receipt
    assert (again.predict_proba(rows()[0]) == estimator.predict_proba(rows()[0])).all()


def test_parameters_are_read_set_and_cloned() -> None:
    estimator = bayes(arguments={"bins": 4})
    copied = clone(estimator)
    assert copied is not estimator
    assert copied.get_params() == estimator.get_params()
    assert copied.set_params(epsilon=2, arguments=None).get_params()["epsilon"] == 2
    assert estimator.epsilon == 8
    with pytest.raises(ParameterError, match="no parameter 'bins'"):
        copied.set_params(bins=3)
    assert "naive_bayes" in repr(copied)


def test_there_is_no_model_before_fit_and_rows_are_not_taken(town: Session) -> None:
    estimator = bayes()
    assert not hasattr(estimator, "predict")
    assert not estimator.__sklearn_is_fitted__()
    values, truth = rows()
    with pytest.raises(ParameterError, match="not rows"):
        estimator.fit(values, truth)  # type: ignore[arg-type]
    assert hasattr(estimator.fit(town, "people"), "predict")
    assert not hasattr(estimator, "transform")


def test_clusters_are_transformed(town: Session) -> None:
    model = Estimator("kmeans", ["x", "y"], epsilon=4, arguments={"k": 2}).fit(town, "people")
    assert model.transform(rows()[0]).shape == (400, 2)
    assert set(model.predict(rows()[0]).tolist()) <= {0, 1}
