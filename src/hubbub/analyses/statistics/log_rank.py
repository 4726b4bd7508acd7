"""The log-rank statistic of noisy counts by time, and its law where all groups have the same hazard.

Tested in tests/analyses/statistics/test_survival.py.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hubbub.analyses.statistics.kaplan_meier import Curve, TimeNoise, shares_by_time
from hubbub.analyses.statistics.null import Floats, largest_p

#: How many more values of what is not known are tried, each as likely as a repetition of the experiment makes it.
_OTHERS = 3


def log_rank_sums(counts: Floats, noise: TimeNoise) -> tuple[Floats, Floats]:
    """Give the events of each group that exceed the expected ones, and their covariance: (…, groups) and its square.

    counts  (…, groups, kinds, times); times with too few people at risk are left out
    """
    events = counts[..., 1, :]
    own = np.cumsum(counts.sum(axis=-2)[..., ::-1], axis=-1)[..., ::-1]
    groups = counts.shape[-3]
    both, all_events = own.sum(axis=-2), events.sum(axis=-2)
    used = Curve.of(counts.sum(axis=-3), noise.at_risk * np.sqrt(groups)).reached
    some = np.maximum(both, 2.0)
    share = np.clip(own / some[..., None, :], 0, 1) * used[..., None, :]
    excess = (events * used[..., None, :] - share * all_events[..., None, :]).sum(axis=-1)
    ties = np.clip((some - all_events) / (some - 1), 0, 1)
    weight = np.maximum(all_events, 0) * ties
    crossed = np.einsum("...gt,...ht,...t->...gh", share, share, weight, optimize=True)
    alone = np.einsum("...gt,...t->...g", share, weight, optimize=True)
    return excess, np.eye(groups) * alone[..., None, :] - crossed


def log_rank_p(counts: Floats, noise: TimeNoise, generator: np.random.Generator) -> tuple[float, float]:
    """Give the log-rank statistic and its p-value, by simulation of people and noise."""
    # the part of the noise in the covariance, at the estimate; the same for the data and for the simulations
    exact, noisy = _simulated(*_model(counts, noise), noise, generator)
    moved = (log_rank_sums(noisy, noise)[0] - log_rank_sums(exact, noise)[0])[..., :-1]
    extra = np.atleast_2d(np.cov(moved, rowvar=False)) + 1e-9 * np.eye(moved.shape[-1])
    statistic = float(_form(counts, noise, extra))

    def null(rows: Floats, shares: Floats) -> Callable[[], Floats]:
        return lambda: _form(_simulated(rows, shares, noise, generator)[1], noise, extra)

    def nulls() -> Iterator[Callable[[], Floats]]:
        rows, shares = _model(counts, noise)
        slack = 3 * noise.at_risk[0]
        for size in (rows, np.maximum(1.0, rows - slack), rows + slack):
            yield null(size, shares)
        for other in noisy[:_OTHERS]:
            yield null(*_model(other, noise))

    return statistic, largest_p(statistic, nulls())[0]


def _form(counts: Floats, noise: TimeNoise, extra: Floats) -> Floats:
    excess, covariance = log_rank_sums(counts, noise)
    some = excess[..., :-1, None]
    return np.asarray((some * np.linalg.solve(covariance[..., :-1, :-1] + extra, some)).sum(axis=(-2, -1)))


def _model(counts: Floats, noise: TimeNoise) -> tuple[Floats, Floats]:
    """Estimate what the null hypothesis leaves open: the sizes, and for each group how people leave it over time."""
    groups = len(counts)
    pooled = Curve.of(counts.sum(axis=0), noise.at_risk * np.sqrt(groups)).survival
    at_risk = np.cumsum(counts.sum(axis=-2)[..., ::-1], axis=-1)[..., ::-1]
    return np.maximum(at_risk[:, 0], 1.0), np.stack([shares_by_time(pooled, each) for each in at_risk])


def _simulated(rows: Floats, shares: Floats, noise: TimeNoise, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw counts of all groups, without noise and with it: (draws, groups, kinds, times)."""
    groups = len(rows)
    count = noise.draws(groups)
    exact = np.stack(
        [
            generator.multinomial(max(1, round(size)), own.reshape(-1), count)
            for size, own in zip(rows.tolist(), shares, strict=True)
        ],
        axis=1,
    ).reshape(count, groups, 2, noise.times)
    drawn = noise.draw(count, 2 * groups, generator).reshape(exact.shape)
    return exact.astype(np.float64), exact + drawn
