"""A budget is split also where the errors of results cannot be compared."""

import math

import numpy as np
import pytest

from hubbub.sql.split import shares


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_errors_that_cannot_be_compared_split_a_budget_evenly(value: float, power: float) -> None:
    assert shares(np.full((2, 3), value), [1.0, 1.0], power=power) == pytest.approx([1 / 3] * 3)


def test_a_result_without_noise_does_not_change_the_others() -> None:
    errors = np.array([[1.0, 4.0], [2.0, 1.0]])
    alone = shares(errors, [1.0, 1.0], power=1.0)
    assert shares(np.vstack([errors, np.zeros(2)]), [1.0, 1.0, 1.0], power=1.0) == pytest.approx(alone)
