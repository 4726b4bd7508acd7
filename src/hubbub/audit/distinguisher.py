"""Learn a score that distinguishes the outputs of a mechanism on two neighboring inputs.

The score is the sum of the log-likelihood ratios of the columns, which is optimal for independent columns, such as
independent noise. For dependent columns (noise shared by two cells) it also tries differences of columns, and whole
rows as single outcomes, and keeps the view that separates best. Any score gives valid bounds (see
`hubbub.audit.black_box`); a good one gives larger bounds.

Tested in tests/audit/test_black_box.py.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_VALUES = 256  # up to this many distinct values get a bin each
_QUANTILES = 48
_PAIRS = 12  # differences of adjacent columns
_ROWS = 192  # up to this many distinct rows count as outcomes


@dataclass(frozen=True, slots=True)
class ColumnRatios:
    """The log-ratios of one column, per bin between edges."""

    edges: Floats
    ratios: Floats

    def score(self, values: Floats) -> Floats:
        """Return the log-ratio of each value."""
        ratios: Floats = self.ratios[np.searchsorted(self.edges, values, side="right")]
        return ratios


@dataclass(frozen=True, slots=True)
class Distinguisher:
    """A score: the sum of the log-ratios of the columns, in one view of the samples."""

    view: str
    columns: tuple[tuple[int, ColumnRatios], ...]

    def score(self, samples: Floats) -> Floats:
        """Return the log-ratio of each sample; positive values favor the first input."""
        seen = _VIEWS[self.view](samples)
        total = np.zeros(len(samples))
        for number, column in self.columns:
            total += column.score(seen[:, number])
        return total


def fit_distinguisher(one: Floats, other: Floats) -> Distinguisher:
    """Learn a score from two tables of samples."""
    half = len(one) // 2
    trials = []
    for name, view in _VIEWS.items():
        a, b = view(one), view(other)
        if _fits(name, a):
            # fit on one half and judge on the other, so that a view with more columns cannot win by overfitting
            trial = Distinguisher(name, _fit_columns(a[:half], b[:half], single=name == "differences"))
            trials.append((_separation(trial.score(one[half:]), trial.score(other[half:])), name))
    _, best = max(trials)
    view = _VIEWS[best]
    return Distinguisher(best, _fit_columns(view(one), view(other), single=best == "differences"))


def _fits(name: str, seen: Floats) -> bool:
    if name == "rows":
        return bool(len(np.unique(seen[: 4 * _ROWS])) <= _ROWS)
    return bool(seen.shape[1])


def as_table(samples: NDArray[Any]) -> Floats:
    """Return samples as a table of numbers, one row each; NaN and infinities become extreme numbers."""
    rows = np.asarray(samples, dtype=np.float64)
    rows = rows.reshape(len(rows), -1)
    return np.nan_to_num(rows, nan=-1e300, posinf=1e300, neginf=-1e300)


def standard_error(share: Floats, size: int) -> Floats:
    """Return the standard error of a share; it is never 0."""
    return np.sqrt((share * (1 - share) + 1 / size) / size)


def _fit_columns(one: Floats, other: Floats, *, single: bool) -> tuple[tuple[int, ColumnRatios], ...]:
    columns = [(number, _column(one[:, number], other[:, number])) for number in range(one.shape[1])]
    # differences share noise, so their log-ratios do not add up: use only the best one
    if single:
        half = len(one) // 2
        best = max(
            columns,
            key=lambda c: _separation(c[1].score(one[half:, c[0]]), c[1].score(other[half:, c[0]])),
            default=None,
        )
        return () if best is None else (best,)
    return tuple((number, column) for number, column in columns if np.any(column.ratios))


def _column(one: Floats, other: Floats) -> ColumnRatios:
    both = np.concatenate([one, other])
    values = np.unique(both)
    edges = values[1:] if len(values) <= _VALUES else np.unique(np.quantile(both, np.linspace(0, 1, _QUANTILES)[1:-1]))
    a, b = (np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1) for x in (one, other))
    ratio = np.log((a + 0.5) / (b + 0.5))
    # shrink uncertain ratios, so that many uninformative columns do not drown an informative one
    doubt = 1 / (a + 0.5) + 1 / (b + 0.5)
    return ColumnRatios(edges, ratio * np.maximum(0.0, 1 - 2 * doubt / np.maximum(ratio * ratio, 1e-12)))


def _separation(one: Floats, other: Floats) -> float:
    """Return the largest log-ratio of a tail of two score samples, minus three standard errors."""
    best = 0.0
    cuts = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0.01, 0.99, 33)))
    for sign, first, second in ((1.0, one, other), (-1.0, other, one)):
        p = np.array([np.mean(sign * first >= sign * cut) for cut in cuts])
        q = np.array([np.mean(sign * second >= sign * cut) for cut in cuts])
        low, high = p - 3 * standard_error(p, len(first)), q + 3 * standard_error(q, len(second))
        best = max(best, float(np.max(np.log(np.maximum(low, 1e-12) / high))))
    return best


def _plain(samples: Floats) -> Floats:
    return samples


def _differences(samples: Floats) -> Floats:
    return np.diff(samples[:, : _PAIRS + 1], axis=1)


def _rows(samples: Floats) -> Floats:
    """Hash each row into one outcome."""
    words = np.ascontiguousarray(samples).view(np.uint64)
    mixed = np.zeros(len(samples), dtype=np.uint64)
    for number in range(words.shape[1]):
        mixed = (mixed ^ words[:, number]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.float64)[:, None]


#: Views of the samples that are tried.
_VIEWS = {"columns": _plain, "differences": _differences, "rows": _rows}
