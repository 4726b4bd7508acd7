"""What is read from a profile: intervals that cover, shares that are exact without noise, and recommendations."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from hubbub.answers import profile_view
from hubbub.answers.left_out import Clamp, Evidence, LeftOut
from hubbub.answers.profile import Profile
from hubbub.answers.shares import Histogram, linear, share_of

LEVELS = (1, 2, 4, 8, 16, 32, 60, 64, 128, 256, 512, 1024)
HALF = 500
Ints = NDArray[np.int64]


def model(sizes: Ints, chance: np.random.Generator | None, scale: float, *, told: float = 1.0) -> dict[str, Any]:
    """Write the model of a profile of units of these sizes; `told` below 1 understates the noise."""
    counts, positions = np.zeros(len(LEVELS) + 1), np.zeros(len(LEVELS) + 1)
    for place, (low, high) in enumerate(zip((0, *LEVELS), LEVELS, strict=False)):
        inside = sizes[(sizes > low) & (sizes <= high)]
        counts[place] = len(inside)
        if high - low > 1:
            positions[place] = np.rint(2 * HALF * (inside - low - 1) / (high - low - 1) - HALF).sum()
    counts[-1] = (sizes > LEVELS[-1]).sum()
    if chance is not None:
        counts += np.rint(chance.laplace(0, scale, len(counts)))
        positions += np.rint(chance.laplace(0, 2 * HALF * scale, len(counts)))
    return {
        "table": "flights",
        "unit": "tailnum",
        "changed": 1,
        "declared": {"groups": 12, "rows": 60},
        "rows": {
            "levels": list(LEVELS),
            "counts": counts.astype(int).tolist(),
            "deviation": sqrt(2) * scale * told,
            "positions": positions.astype(int).tolist(),
            "position_deviation": sqrt(2) * 2 * HALF * scale * told,
            "half": HALF,
        },
        "groups": {},
        "values": {},
        "nulls": {},
    }


def heavy(seed: int, units: int = 3000) -> Ints:
    sizes: Ints = np.minimum(900, np.ceil(np.random.default_rng(seed).pareto(0.8, units) * 5)).astype(np.int64) + 1
    return sizes


def beyond(sizes: Ints, rows: int, level: int) -> float:
    """The share that is left out, by definition."""
    counted = sizes[sizes <= level]
    return float(1 - np.minimum(counted, rows).sum() / counted.sum())


@pytest.mark.parametrize("rows", [1, 3, 20, 60, 100, 300])
def test_without_noise_the_share_is_that_of_the_data(rows: int) -> None:
    sizes = heavy(3)
    share = Profile(model(sizes, None, 0.0)).share_beyond(rows)
    truth = beyond(sizes, rows, 1024)
    assert share.low - 5e-4 <= truth <= share.high + 5e-4
    if rows in LEVELS:
        assert share.value == pytest.approx(truth, abs=5e-4)
        assert share.high - share.low < 1e-3


def misses(told: float, *, scale: float = 12.0, trials: int = 1000) -> tuple[int, int]:
    """Count how often the interval misses the share, and how often more units lie above than is stated."""
    chance, missed, more = np.random.default_rng(11), 0, 0
    for trial in range(trials):
        sizes = heavy(trial % 20)
        profile = Profile(model(sizes, chance, scale, told=told))
        histogram, share = profile.rows_per_unit, profile.share_beyond(60)
        level = histogram.levels[histogram.top()]
        missed += not share.low <= beyond(sizes, 60, level) <= share.high
        more += int((sizes > level).sum()) > histogram.above()
    return missed, more


def test_intervals_cover_the_share_95_times_in_100() -> None:
    """Of 1,000 trials at most 50 fail on average; more than 88 do with probability 2e-7 (binomial)."""
    missed, more = misses(1.0)
    assert missed <= 88
    assert more <= 88


def test_intervals_that_understate_the_noise_are_noticed() -> None:
    assert misses(0.5)[0] > 88


def test_a_ratio_has_the_interval_of_its_definition() -> None:
    """Fieller's interval by a fine grid: all x for which part − x·whole is within the noise."""
    part = linear("n", [30, 10], 4.0, {0: 1.0})
    whole = linear("n", [30, 10], 4.0, {0: 1.0, 1: 1.0})
    share = share_of(part, whole)
    width = np.log(20) / sqrt(2)
    inside = [x for x in np.linspace(0, 1, 100_001) if abs(30 - x * 40) <= width * 4 * sqrt((1 - x) ** 2 + x**2)]
    assert (share.low, share.high) == pytest.approx((inside[0], inside[-1]), abs=2e-4)
    assert share.value == 0.75


def test_a_noisy_share_below_zero_still_has_an_upper_end() -> None:
    share = share_of(linear("n", [-40, 500], 10.0, {0: 1.0}), linear("n", [-40, 500], 10.0, {0: 1.0, 1: 1.0}))
    assert share.value == share.low == 0.0
    assert share.high > 0.03


def test_labels_are_single_numbers_and_ranges() -> None:
    histogram = Histogram((1, 2, 4, 8), (5, 4, 3, 2, 1), 0.0)
    assert histogram.labels() == ["1", "2", "3–4", "5–8", "over 8"]
    assert (histogram.top(), histogram.above()) == (3, 1)


def values(counts: Sequence[int], deviation: float = 0.0) -> dict[str, Any]:
    """Bins of [0, 4] with one wider bin and one open bin on each side."""
    return {
        "bounds": ["0", "4"],
        "edges": [-4.0, 0.0, 1.0, 2.0, 3.0, 4.0, 8.0],
        "inside": [1, 5],
        "counts": list(counts),
        "deviation": deviation,
    }


def test_quantiles_shares_outside_and_nulls_are_those_of_the_bins() -> None:
    made = model(np.ones(1000, dtype=np.int64), None, 0.0)
    made["values"]["age"] = values([100, 0, 50, 200, 200, 200, 200, 40, 10])
    profile = Profile(made)
    missing, outside = profile.missing("age"), profile.outside("age")
    assert missing is not None
    assert outside is not None
    assert missing.value == pytest.approx(0.1)
    assert outside.value == pytest.approx(100 / 900, abs=1e-4)
    assert profile.quantile("age", 0.5) == pytest.approx(2.0)
    assert profile.recommended_bounds("age") == (-4.0, 8.0)
    narrow = model(np.ones(1000, dtype=np.int64), None, 0.0)
    narrow["values"]["age"] = values([0, 0, 0, 500, 499, 1, 0, 0, 0])
    assert Profile(narrow).recommended_bounds("age") == (0.0, 2.0)


def test_quantiles_of_hardly_any_values_are_not_stated() -> None:
    """All values are NULL: the counts are noise alone, and quantiles of noise say nothing about the column."""
    made = model(np.ones(1000, dtype=np.int64), None, 0.0)
    made["values"]["empty"] = values([1000, 3, -8, 12, -5, 7, 2, -4, 1], 10.0)
    made["values"]["full"] = values([0, 0, 0, 250, 250, 250, 250, 0, 0], 10.0)
    made["values"]["exact"] = values([990, 0, 0, 0, 10, 0, 0, 0, 0])
    empty, full, exact = profile_view.column_facts(Profile(made))
    assert empty.cells[-2:] == ("not known: hardly any values", "–")
    assert full.cells[-1] == "0 to 4"
    assert exact.cells[-1] == "1 to 2"


def test_the_heading_says_which_units_the_shares_are_about() -> None:
    sizes = np.array([1] * 500 + [1000])
    made = model(sizes, None, 0.0)
    assert profile_view.row_bounds_title(Profile(made)) == "Bounds on rows"
    made["rows"]["deviation"] = 10.0  # the one large unit no longer stands out
    assert profile_view.row_bounds_title(Profile(made)) == "Bounds on rows, for units with 1 row"
    assert "those with 1 row have" in profile_view.summary(Profile(made))


def test_groups_left_out_follow_from_the_groups_of_each_unit() -> None:
    made = model(np.ones(100, dtype=np.int64), None, 0.0)
    made["groups"]["origin"] = {"levels": [1, 2, 3], "counts": [50, 30, 20], "deviation": 0.0, "values": 3}
    share = Profile(made).share_of_groups("origin", 2)
    assert share is not None
    assert share.value == pytest.approx(20 / 170, abs=1e-4)
    assert Profile(made).recommended_groups("origin") == 3
    assert Profile(made).share_of_groups("nowhere", 2) is None


def test_a_profile_speaks_only_of_its_own_dataset_bounds_and_version() -> None:
    profile = Profile(model(heavy(1), None, 0.0), 7, "3-ab")
    profile.model["values"]["age"] = values([0, 0, 0, 500, 500, 500, 500, 0, 0])
    rows = LeftOut("flights", "tailnum", rows=60, by="")
    stated = profile.state(rows, "3-ab")
    assert stated.share is not None
    assert stated.evidence == Evidence(7, level=1024)
    older = profile.state(rows, "4-cd").evidence
    assert older is not None
    assert older.older
    assert profile.state(LeftOut("other", "tailnum", rows=60, by=""), "3-ab").evidence is None
    assert profile.state(LeftOut("flights", "tailnum", 12, 60), "3-ab").share is None  # what the groups are is unknown
    assert profile.state(LeftOut("flights", "tailnum", rows=60, maximum=100), "3-ab").evidence is None
    for low, known in (("0", True), ("1", False)):  # declared differently since
        (clamp,) = profile.state(LeftOut("flights", clamped=(Clamp("age", low, "4"),)), "3-ab").clamped
        assert (clamp.share is not None) is known


def test_the_recommended_bound_weighs_what_is_left_out_against_noise() -> None:
    """Of 1, 2, 4, …: the least of rows left out plus ln(20)·bound/0.1, by hand."""
    sizes = np.array([1] * 50_000 + [500] * 200)
    profile = Profile(model(sizes, None, 0.0))
    errors = {
        level: float(np.maximum(sizes - level, 0).sum() + np.log(20) * level / 0.1) for level in LEVELS if level <= 512
    }
    assert profile_view.recommended_rows(profile) == min(errors, key=lambda level: errors[level])


def test_a_profile_is_printed_with_bars_bounds_and_columns() -> None:
    made = model(heavy(2), np.random.default_rng(1), 5.0)
    made["values"]["age"] = values([0, 0, 0, 500, 500, 500, 500, 0, 0], 10.0)
    made["nulls"]["kind"] = {"listed": True, "counts": [100, 2000, 900], "deviation": 10.0}
    made["groups"]["kind"] = {"levels": [1, 2], "counts": [2000, 1000], "deviation": 10.0, "values": 2}
    console = Console(width=120, record=True, force_terminal=False)
    profile_view.show(Profile(made), console)
    text = console.export_text()
    for part in (
        "flights has about",
        "█",
        "declared",
        "recommended",
        "Bounds on groups",
        "one row of each unit",
        "age",
    ):
        assert part in text
    assert profile_view.chart(Profile(made)).startswith("<svg")
    assert Profile.from_json(Profile(made, 3, "1").to_json()) == Profile(made, 3, "1")
