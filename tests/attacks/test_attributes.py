"""Attribute attack: a person is known in part."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks.attributes import by_cells, by_nearest
from hubbub.attacks.base import AttackStudy
from hubbub.crowd.histogram import build_histogram
from hubbub.errors import AttackError

Run = Callable[..., AttackStudy]


def test_fitting_cells_vote_by_count() -> None:
    """Four rows in the plane with t = 2: the first halving separates the sign of the second coordinate."""
    rows = np.array([[-0.5, 0.5], [-0.6, 0.4], [0.5, -0.5], [0.6, 0.5]])
    evidence = by_cells(build_histogram(rows, t=2), rows, 1)
    assert np.sign(evidence).tolist() == [1, 1, 0, 0]
    assert by_cells(build_histogram(rows, t=2), rows, 0)[0] == 2.0  # three rows above, one below
    assert by_nearest(rows, rows, 1).tolist() == rows[:, 1].tolist()
    assert by_nearest(rows, rows, 0).tolist() == [0.0] * 4


@pytest.mark.row(101)
def test_known_attributes_give_the_missing_one_without_isolating_anybody(run: Run) -> None:
    """500 people, 12 attributes. The attacker is seeded; hubbub's scores exceed their maximum with less than 1e-6."""
    study = run("attributes", epsilons=("0.1", "1"))
    cells = {each.target: each for each in study.findings if each.target.startswith("recursive histogram")}
    nothing, most, everything = (cells[f"recursive histogram, {share}% known"] for share in (0, 75, 100))
    assert nothing.score.interval(1 - 1e-6)[0] < 0.5
    assert most.score.interval(1 - 1e-6)[0] > 0.5
    assert float(most.facts["isolated by the completed row"]) < 0.05
    assert everything.score.share > 0.9
    assert all(each.held for each in study.findings)
    assert {each.epsilon for each in study.findings if each.ceiling is not None} == {Fraction(1), Fraction(1, 10)}


def test_percentages_are_percentages(run: Run) -> None:
    for known in ("101", "-5", "half", "5,a"):
        with pytest.raises(AttackError, match="HB643"):
            run("attributes", known=known, epsilons=("1",))
