"""One call for every sanitizer."""

import numpy as np
import pytest

from hubbub.crowd.disclaimers import KINDS, Kind
from hubbub.crowd.points import make_points
from hubbub.crowd.sanitizers import bin_shares, sanitize
from hubbub.errors import CrowdError


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_published_tells_means_and_shares_of_the_crowd(rng: np.random.Generator, kind: Kind) -> None:
    """2,000 rows: means within a twentieth of the range, shares of five bins within 0.08. The seed is fixed."""
    columns = {"a": rng.uniform(0, 10, 2000), "b": rng.normal(50, 10, 2000)}
    made = make_points(columns, ["a", "b"], rng=rng, bounds={"a": (0, 10), "b": (0, 100)})
    found = sanitize(made, kind, t=10, rng=rng)
    means = found.means()
    assert means["a"] == pytest.approx(columns["a"].mean(), abs=0.5)
    assert means["b"] == pytest.approx(columns["b"].mean(), abs=5)
    truth = bin_shares(made.values, np.ones(2000), 5)
    assert np.abs(found.shares(5) - truth).max() < 0.08
    rates = found.isolated(c=4)
    assert set(rates) == set(found.guesses)
    assert all(0 <= rate.share < 1 for rate in rates.values())


def test_rows_are_published_in_another_order(rng: np.random.Generator) -> None:
    columns = {"a": np.arange(1000.0)}
    found = sanitize(make_points(columns, ["a"], rng=rng), "ball", t=2, rng=rng)
    published = found.tables["points"]["a"]
    assert np.abs(np.sort(published) - columns["a"]).max() < 3
    assert np.corrcoef(published, columns["a"])[0, 1] < 0.2


def test_an_unknown_sanitizer_is_refused(rng: np.random.Generator) -> None:
    made = make_points({"a": np.arange(10.0)}, ["a"], rng=rng)
    with pytest.raises(CrowdError, match="HB624"):
        sanitize(made, "magic", t=2, rng=rng)  # type: ignore[arg-type]
    with pytest.raises(CrowdError, match="HB622"):
        sanitize(made, "ball", t=20, rng=rng)
