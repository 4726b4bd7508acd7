"""The utility of synthetic rows by column: a private report, and exact distances for owners only.

Tested in tests/analyses/synthetic/test_synthetic.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.release import Release
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ColumnUtility:
    """The utility of one column: total-variation distances between synthetic rows and data, with their ± at 95%.

    Both were measured with noise and charged, so they can be published. `pairs` is the mean over the column's pairs
    with all others; None if there is no other column.
    """

    column: str
    alone: float
    alone_half: float
    pairs: float | None
    pairs_half: float | None

    def to_json(self) -> dict[str, Any]:
        """Give it for JSON."""
        return asdict(self)


def column_utilities(
    names: Sequence[str],
    alone: NDArray[np.int64],
    pairs: NDArray[np.int64] | None,
    halves: Sequence[float],
    total: float,
    *,
    others: int | None = None,
) -> list[ColumnUtility]:
    """Convert noisy sums of differences to distances: half of them, as shares of the total."""
    others = max(1, len(names) - 1 if others is None else others)
    found = []
    for i, name in enumerate(names):
        wide = None if pairs is None else _share(float(pairs[i]) / others, total)
        half = None if pairs is None else round(halves[1] / others / (2 * total), 6)
        found.append(ColumnUtility(name, _share(float(alone[i]), total), round(halves[0] / (2 * total), 6), wide, half))
    return found


def _share(off: float, total: float) -> float:
    return round(min(1.0, max(0.0, off / (2 * total))), 6)


class Synthetic:
    """The model of synthetic rows: the rows, their measurements and their utility."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.model: Mapping[str, Any] = release.model
        self.utility = tuple(ColumnUtility(**each) for each in self.model["utility"])

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read a release of `synthetic`."""
        return cls(release)

    def to_pandas(self) -> Any:
        """Give the rows as a pandas DataFrame."""
        return self.release.to_pandas()

    def report(self) -> str:
        """Write the report: the error of the rows for each column, with its confidence interval.

        Distances are total-variation distances: the share of rows that would have to change.
        """
        lines = [f"{'column':<24} {'alone':>16} {'with others':>16}"]
        for each in self.utility:
            wide = "–" if each.pairs is None else f"{each.pairs:.4f} ±{each.pairs_half:.4f}"
            lines.append(f"{each.column:<24} {each.alone:>8.4f} ±{each.alone_half:.4f} {wide:>16}")
        return "\n".join(lines)

    def plot(self) -> "Figure":
        """Plot each column: the share of each level in the rows, and the measurement with its ±."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ParameterError("HB130", "matplotlib is not installed.", "Run: pip install matplotlib") from None
        columns = self.model["columns"]
        across = min(3, len(columns))
        down = -(-len(columns) // across)
        figure = Figure(figsize=(4.2 * across, 2.6 * down), layout="constrained")
        places = figure.subplots(down, across, squeeze=False).ravel()
        for axes, column, fares in zip(places, columns, self.utility, strict=False):
            made = np.array(column["synthetic"]) * self.model["total"] / self.model["rows"]
            at = np.arange(len(made))
            axes.bar(at, made, color="#9ecae1", label="synthetic")
            half = 1.96 * column["deviation"]
            axes.errorbar(at, column["measured"], yerr=half, fmt=".", ms=3, lw=0.7, color="#333333", label="measured")
            axes.set_title(f"{column['name']}: off by {fares.alone:.3f} ±{fares.alone_half:.3f}", fontsize=9)
            few = at if len(at) <= 12 else at[:: -(-len(at) // 8)]
            axes.set_xticks(few, [str(column["levels"][i])[:12] for i in few], rotation=45, ha="right", fontsize=6)
            axes.tick_params(axis="y", labelsize=6)
        for axes in places[len(columns) :]:
            axes.set_visible(False)
        places[0].legend(fontsize=6)
        return figure

    def __repr__(self) -> str:
        return f"Synthetic({self.model['rows']:,} rows of {len(self.utility)} columns)"


def distances(data: NDArray[np.int64], rows: NDArray[np.int64], sizes: Sequence[int]) -> dict[tuple[int, int], float]:
    """Compute the exact total-variation distance of every two columns. For data owners: it reads the data.

    The result is not private and must not be shown to analysts, unlike `Synthetic.utility`.

    >>> distances(np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 1]]), [2, 2])
    {(0, 1): 0.5}
    """
    found = {}
    for i, j in combinations(range(len(sizes)), 2):
        cells = sizes[i] * sizes[j]
        true, made = (np.bincount(t[:, i] * sizes[j] + t[:, j], minlength=cells) / len(t) for t in (data, rows))
        found[i, j] = float(np.abs(true - made).sum() / 2)
    return found


def k_marginal(distance: Mapping[tuple[int, int], float]) -> float:
    """Score rows as in the NIST challenges, on pairs: 1000 if all agree, 0 if none does."""
    return 1000.0 * (1.0 - float(np.mean(list(distance.values()))))
