"""What tells two neighboring inputs apart: a score learnt from a first part of the samples.

A score is the sum over columns of the logarithm of how much likelier the column's value was on the first input, which
is the best there is where the columns are independent, as noises are. Where they are not (noise that two cells share),
columns of differences and the whole rows taken as one outcome are looked at as well, and the view that tells most apart
is kept. Any score at all gives valid bounds (see `hubbub.audit.black_box`): this one is only meant to give good ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_VALUES = 256  # so many different values at most have a bin each
_QUANTILES = 48
_PAIRS = 12  # differences of neighboring columns that are looked at
_ROWS = 192  # so many different rows at most, of the first, are taken as outcomes


@dataclass(frozen=True, slots=True)
class Column:
    """The log-ratios of one column, by bins between edges."""

    edges: Floats
    ratios: Floats

    def score(self, values: Floats) -> Floats:
        """Give the log-ratio of each value."""
        found: Floats = self.ratios[np.searchsorted(self.edges, values, side="right")]
        return found


@dataclass(frozen=True, slots=True)
class Witness:
    """A score of samples: the sum of the columns' log-ratios, in one view of the samples."""

    view: str
    columns: tuple[tuple[int, Column], ...]

    def score(self, samples: Floats) -> Floats:
        """Give the log-ratio of each sample; 0 says nothing, larger speaks for the first input."""
        seen = _VIEWS[self.view](samples)
        total = np.zeros(len(samples))
        for place, column in self.columns:
            total += column.score(seen[:, place])
        return total


def fitted(one: Floats, other: Floats) -> Witness:
    """Learn what tells two tables of samples apart."""
    half = len(one) // 2
    found = []
    for name, view in _VIEWS.items():
        a, b = view(one), view(other)
        if _fits(name, a):
            # learnt on one half and judged on the other: a view with more columns must not win by learning noise
            trial = Witness(name, _learnt(a[:half], b[:half], single=name == "differences"))
            found.append((_apart(trial.score(one[half:]), trial.score(other[half:])), name))
    _, best = max(found)
    view = _VIEWS[best]
    return Witness(best, _learnt(view(one), view(other), single=best == "differences"))


def _fits(name: str, seen: Floats) -> bool:
    if name == "rows":
        return bool(len(np.unique(seen[: 4 * _ROWS])) <= _ROWS)
    return bool(seen.shape[1])


def table(samples: NDArray[Any]) -> Floats:
    """Take samples as a table of numbers, one row each; NaN is a value like others."""
    rows = np.asarray(samples, dtype=np.float64)
    rows = rows.reshape(len(rows), -1)
    return np.nan_to_num(rows, nan=-1e300, posinf=1e300, neginf=-1e300)


def standard_error(share: Floats, size: int) -> Floats:
    """Give the standard error of a share, never none."""
    return np.sqrt((share * (1 - share) + 1 / size) / size)


def _learnt(one: Floats, other: Floats, *, single: bool) -> tuple[tuple[int, Column], ...]:
    columns = [(place, _column(one[:, place], other[:, place])) for place in range(one.shape[1])]
    # differences share noise with each other, so their log-ratios do not add up: the best one alone
    if single:
        half = len(one) // 2
        best = max(
            columns, key=lambda c: _apart(c[1].score(one[half:, c[0]]), c[1].score(other[half:, c[0]])), default=None
        )
        return () if best is None else (best,)
    return tuple((place, column) for place, column in columns if np.any(column.ratios))


def _column(one: Floats, other: Floats) -> Column:
    both = np.concatenate([one, other])
    values = np.unique(both)
    edges = values[1:] if len(values) <= _VALUES else np.unique(np.quantile(both, np.linspace(0, 1, _QUANTILES)[1:-1]))
    a, b = (np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1) for x in (one, other))
    ratio = np.log((a + 0.5) / (b + 0.5))
    # shrunk by how sure it is, so that many columns which say nothing do not drown one that does
    doubt = 1 / (a + 0.5) + 1 / (b + 0.5)
    return Column(edges, ratio * np.maximum(0.0, 1 - 2 * doubt / np.maximum(ratio * ratio, 1e-12)))


def _apart(one: Floats, other: Floats) -> float:
    """Say how far apart two samples of scores are: the largest log-ratio of a tail that is not by chance."""
    found = 0.0
    cuts = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0.01, 0.99, 33)))
    for sign, first, second in ((1.0, one, other), (-1.0, other, one)):
        p = np.array([np.mean(sign * first >= sign * cut) for cut in cuts])
        q = np.array([np.mean(sign * second >= sign * cut) for cut in cuts])
        low, high = p - 3 * standard_error(p, len(first)), q + 3 * standard_error(q, len(second))
        found = max(found, float(np.max(np.log(np.maximum(low, 1e-12) / high))))
    return found


def _plain(samples: Floats) -> Floats:
    return samples


def _differences(samples: Floats) -> Floats:
    return np.diff(samples[:, : _PAIRS + 1], axis=1)


def _rows(samples: Floats) -> Floats:
    """Take each row as one outcome, by a hash of it."""
    words = np.ascontiguousarray(samples).view(np.uint64)
    mixed = np.zeros(len(samples), dtype=np.uint64)
    for place in range(words.shape[1]):
        mixed = (mixed ^ words[:, place]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.float64)[:, None]


#: Ways to look at samples.
_VIEWS = {"columns": _plain, "differences": _differences, "rows": _rows}
