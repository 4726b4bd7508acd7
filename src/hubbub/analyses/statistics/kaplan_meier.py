"""Survival curves from noisy counts of events and censorings by time, with bands that hold for the whole curve.

Tested in tests/analyses/statistics/test_survival.py.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.analyses.statistics import null
from hubbub.analyses.statistics.null import Floats, simulated_noise
from hubbub.analyses.tables.product_strategies import ProductStrategy
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

#: People are counted as at risk while they are this many, and this many standard deviations of the noise.
_LEAST, _SURE = 5.0, 4.0
_MOST_NUMBERS = 1_000_000
#: How often a band may miss in simulations at the estimate: less than 5%, since the estimate is not the truth.
_MISSED = 0.025


@dataclass(frozen=True)
class TimeNoise:
    """The noise of estimated counts by time: measured sums, and the least squares estimate of the counts from them.

    strategy  the first factor counts groups and kinds (censored, event), the last one is along time
    """

    strategy: ProductStrategy
    mechanism: AdditiveNoise

    @property
    def times(self) -> int:
        """The number of times."""
        return self.strategy.shape[-1]

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the counts of one kind over time."""
        return self.strategy.factors[-1].covariance * standard_deviation(self.mechanism) ** 2

    @cached_property
    def at_risk(self) -> Floats:
        """The standard deviation of the number of people at risk in one group, for each time."""
        totals = np.cumsum(np.cumsum(self.covariance[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]
        return np.asarray(np.sqrt(2 * np.maximum(np.diag(totals), 0)))

    @cached_property
    def running(self) -> Floats:
        """The standard deviation of the number of events up to each time."""
        totals = np.cumsum(np.cumsum(self.covariance, axis=0), axis=1)
        return np.asarray(np.sqrt(np.maximum(np.diag(totals), 0)))

    def draw(self, count: int, blocks: int, generator: np.random.Generator) -> Floats:
        """Simulate the noise of some blocks of counts: (count, blocks, times)."""
        along = self.strategy.factors[-1]
        noise = simulated_noise(self.mechanism, (count, blocks, len(along.matrix)), generator)
        return np.asarray(noise @ (along.covariance @ along.matrix.T.astype(np.float64)).T)

    def draws(self, groups: int) -> int:
        """Give how often an experiment with some groups is simulated."""
        return min(null.DRAWS, max(199, _MOST_NUMBERS // (2 * groups * self.times)))


@dataclass(frozen=True)
class Curve:
    """Kaplan-Meier estimates of one group, or of an array of simulated ones; the last axis is time.

    log       the logarithm of the survival function, which noise may let rise
    sampling  the variance of `log` between samples (Greenwood)
    reached   whether enough people are at risk for an estimate, up to a time
    """

    at_risk: Floats
    log: Floats
    sampling: Floats
    reached: Floats

    @classmethod
    def of(cls, counts: Floats, noise: Floats) -> "Curve":
        """Estimate from counts (…, kinds, times); `noise` is the deviation of the number of people at risk."""
        events = counts[..., 1, :]
        at_risk = np.cumsum(counts.sum(axis=-2)[..., ::-1], axis=-1)[..., ::-1]
        reached = np.logical_and.accumulate(at_risk >= _LEAST + _SURE * noise, axis=-1)
        some = np.maximum(at_risk, 1.0)
        hazard = np.where(reached, np.clip(events / some, -0.5, 1 - 0.5 / some), 0.0)
        greenwood = np.cumsum(np.where(reached, hazard / (some * (1 - hazard)), 0.0), axis=-1)
        # an event more, so that a time before the first event has a variance
        sampling = np.maximum.accumulate(np.maximum(greenwood, 0), axis=-1) + 1 / some**2
        return cls(at_risk, np.cumsum(np.log1p(-hazard), axis=-1), sampling, reached)

    @property
    def survival(self) -> Floats:
        """The survival function of one group: the nearest that never rises, in [0, 1]."""
        return np.clip(never_rising(np.exp(self.log)), 0, 1)


def never_rising(values: Floats) -> Floats:
    """Give the nearest sequence that never rises, by pooling neighbors.

    >>> never_rising(np.array([3.0, 1.0, 2.0, 0.0])).tolist()
    [3.0, 1.5, 1.5, 0.0]
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    return np.repeat(np.array(means), sizes)


def shares_by_time(survival: Floats, at_risk: Floats) -> Floats:
    """Give how many of a group are censored and have the event at each time, (kinds, times), adding up to 1.

    survival  the survival function that the events shall have; `at_risk` is followed by censoring
    """
    left = np.maximum(never_rising(np.append(at_risk, 0.0)), 0.0)
    left /= max(left[0], 1e-9)
    before = np.concatenate([[1.0], survival[:-1]])
    hazard = np.where(before > 0, 1 - survival / np.maximum(before, 1e-12), 0.0)
    parts = np.zeros((2, len(survival)))
    here = 1.0
    for place, chance in enumerate(np.clip(hazard, 0, 1)):
        after = here * (1 - chance)
        parts[1, place] = here - after
        following = min(after, left[place + 1])
        parts[0, place] = after - following
        here = following
    return np.asarray(parts / parts.sum())


def noise_variance(curve: Curve, noise: TimeNoise) -> Floats:
    """Give the variance of the logarithm of a survival function that noise makes, to first order.

    An event more at time k lowers the logarithm from k on by 1/n_k, and one person more at risk up to k raises it by
    the sum of h/n up to then.
    """
    some = np.maximum(curve.at_risk, 1.0)
    hazard = -np.expm1(np.diff(curve.log, prepend=0.0))
    place = np.arange(noise.times)
    risk = np.cumsum(np.where(curve.reached, hazard / some, 0.0))[np.minimum(place[:, None], place[None, :])]
    event = risk - np.where(place[None, :] <= place[:, None], 1 / some, 0.0)
    found: Floats = np.zeros(noise.times)
    for each in (risk, event):
        found += np.asarray(np.einsum("ij,jk,ik->i", each, noise.covariance, each, optimize=True))
    return found


def band(counts: Floats, noise: TimeNoise, generator: np.random.Generator) -> tuple[Curve, Floats, Floats]:
    """Give the curve of one group and a band that holds the whole survival function with 95%.

    Theorem (Bands of survival curves). If with probability 1 − α no time has |log Ŝ − log S| > q·s, then with that
    probability S lies between exp(log Ŝ ± q·s) at all times at once, and so it does between the largest lower end
    of all later times and the smallest upper end of all earlier ones.
    Proof    S never rises, so a bound from below at a later time, and one from above at an earlier time, hold here.
    Assumes  q, the 95% point of the largest deviation, from simulations at the estimate (a studentized bootstrap with
             the noise in it). That it is large enough is shown by simulation.
    Tested   tests/analyses/statistics/test_survival.py::test_bands_hold_the_whole_curve
    """
    curve = Curve.of(counts, noise.at_risk)
    deviation = np.sqrt(curve.sampling + noise_variance(curve, noise))
    reached = int(curve.reached.sum())
    low, high = np.zeros(noise.times), np.ones(noise.times)
    if reached:
        wide = _quantile(curve, noise, generator) * deviation
        low[:reached] = np.exp(np.minimum(curve.log - wide, 0))[:reached]
        high[:reached] = np.exp(np.minimum(curve.log + wide, 0))[:reached]
    high = np.clip(np.minimum.accumulate(high), 0, 1)
    # where noise lets a curve rise by more than its band is wide, nothing lies in it: what is left is a line
    return curve, np.clip(np.minimum(np.maximum.accumulate(low[::-1])[::-1], high), 0, 1), high


def _quantile(curve: Curve, noise: TimeNoise, generator: np.random.Generator) -> float:
    """Simulate the experiment at its estimate, and give the 95% point of the largest deviation in units of its own."""
    survival = curve.survival
    shares = shares_by_time(survival, curve.at_risk)
    rows = max(1, round(float(curve.at_risk[0])))
    count = noise.draws(1)
    exact = generator.multinomial(rows, shares.reshape(-1), count).reshape(count, 2, noise.times)
    found = Curve.of(exact + noise.draw(count, 2, generator), noise.at_risk)
    own = np.sqrt(found.sampling + noise_variance(curve, noise))
    away = np.where(found.reached, np.abs(found.log - np.log(np.maximum(survival, 1e-9))) / own, 0.0)
    return max(1.96, float(np.quantile(away.max(axis=-1), 1 - _MISSED, method="higher")))


def median_time(survival: Floats, low: Floats, high: Floats) -> tuple[int | None, int | None, int | None]:
    """Give the place of the first time at which at most half survive, and of the ends of its interval; None: later."""

    def first(values: Floats) -> int | None:
        at = np.flatnonzero(values <= 0.5)
        return int(at[0]) if len(at) else None

    return first(survival), first(low), first(high)
