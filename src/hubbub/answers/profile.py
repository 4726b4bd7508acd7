"""A released profile of a dataset: what bounds would leave out, computed from its noisy counts for free."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import Any, Self

from hubbub.answers.left_out import Clamp, Evidence, LeftOut, Share
from hubbub.answers.release import Release
from hubbub.answers.shares import SIGNIFICANT, Histogram, Linear, linear, share_of
from hubbub.core.blocks import BlockSet
from hubbub.core.wire import Json

#: The name of the analysis.
NAME = "profile"

#: A bound is recommended that leaves out at most this share.
_SMALL = 0.01


def blocks_read(form: Mapping[str, Any]) -> BlockSet | None:
    """Read which blocks of a dataset are meant, from the data of a receipt; None where it has no blocks."""
    return None if form.get("blocks") is None else BlockSet.from_json(form["blocks"])


@dataclass(frozen=True)
class Profile:
    """The model of a profile. `charge`, `version` and `blocks` say which release of which data it is."""

    model: Mapping[str, Any]
    charge: int = 0
    version: str = ""
    blocks: BlockSet | None = None

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read a release of `profile`."""
        (data, *_), (entry, *_) = release.receipt["data"], release.receipt["ledger"]
        return cls(release.model, entry["sequence"], data["version"], blocks_read(data))

    def to_json(self) -> Json:
        """Return it as JSON values."""
        form: Json = {"charge": self.charge, "version": self.version, "model": dict(self.model)}
        return form if self.blocks is None else form | {"blocks": self.blocks.to_json()}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(form["model"], form["charge"], form["version"], blocks_read(form))

    def only(self, columns: Collection[str]) -> Self:
        """Leave out columns that are not among these, such as one that was hidden after the profile was made."""
        kinds = ("groups", "values", "nulls")
        kept = {kind: {name: part for name, part in self.model[kind].items() if name in columns} for kind in kinds}
        return replace(self, model={**self.model, **kept})

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return str(self.model["table"])

    @cached_property
    def rows_per_unit(self) -> Histogram:
        """How many units have how many rows."""
        rows = self.model["rows"]
        return Histogram(tuple(rows["levels"]), tuple(rows["counts"]), rows["deviation"])

    def groups_per_unit(self, column: str) -> Histogram | None:
        """How many units are in how many groups of a column, if the profile has it."""
        entry = self.model["groups"].get(column)
        return None if entry is None else Histogram(tuple(entry["levels"]), tuple(entry["counts"]), entry["deviation"])

    def units(self) -> Linear:
        """Estimate the number of units."""
        return self._rows_part(lambda _: 1.0, everywhere=True)

    def rows(self) -> Linear:
        """Estimate the number of rows of the units up to the last level that matters."""
        return self._over(lambda low, _: (low + 1.0, 1.0))

    def _rows_part(self, weigh: Callable[[int], float], *, everywhere: bool = False) -> Linear:
        histogram = self.rows_per_unit
        places = range(len(histogram.counts) if everywhere else histogram.top() + 1)
        return linear("rows", histogram.counts, histogram.deviation, {place: weigh(place) for place in places})

    def _over(self, weigh: Callable[[int, int], tuple[float, float]]) -> Linear:
        """Sum over units: `weigh` gives, for a bucket, a and b where a unit with n rows adds a + b·(n − low − 1)."""
        rows, weights = self.model["rows"], dict[int, tuple[float, float]]()
        for place, (low, high) in enumerate(self.rows_per_unit.ends()[: self.rows_per_unit.top() + 1]):
            start, slope = weigh(low, high)
            # n − low − 1 is width·(1 + position/half)/2, and positions are summed with noise of their own
            middle = slope * (high - low - 1) / 2
            weights[place] = (start + middle, middle / rows["half"])
        counts = self._rows_part(lambda place: weights[place][0])
        inside = {place: weight for place, (_, weight) in weights.items() if weight}
        positions = linear("positions", rows["positions"], rows["position_deviation"], inside)
        return Linear({**counts.terms, **positions.terms})

    def share_beyond(self, rows: int) -> Share:
        """Estimate the share of the rows that is left out if at most `rows` rows of a unit count."""

        def least(low: int, _: int) -> tuple[float, float]:
            return (low + 1.0 - rows, 1.0) if low >= rows else (0.0, 0.0)

        def most(low: int, high: int) -> tuple[float, float]:
            # inside a bucket, the sum of max(0, n − rows) lies below its chord
            return (0.0, (high - rows) / (high - low - 1)) if low < rows < high else least(low, high)

        return share_of(self._over(least), self.rows(), self._over(most))

    def share_grouped(self, column: str, groups: int | None, rows: int | None) -> Share | None:
        """Estimate the share of the rows that GROUP BY a column leaves out; known for the declared bounds only."""
        entry, declared = self.model["groups"].get(column), self.model["declared"]
        if entry is None or "left" not in entry or rows != declared["rows"]:
            return None
        if groups != (declared["groups"] if declared["groups"] < entry["values"] else None):
            return None
        # a unit adds its left-out rows in parts of the upper end of its bucket
        levels = self.rows_per_unit.levels[: self.rows_per_unit.top() + 1]
        weights = {place: level / entry["half"] for place, level in enumerate(levels)}
        return share_of(linear("left", entry["left"], entry["left_deviation"], weights), self.rows())

    def share_of_groups(self, column: str, groups: int) -> Share | None:
        """Estimate the share of (unit, group) pairs that is left out if a unit counts in at most `groups` groups."""
        histogram = self.groups_per_unit(column)
        if histogram is None:
            return None

        def share(sizes: Sequence[float]) -> Share:
            parts = [max(0.0, size - groups) for size in sizes], sizes
            part, whole = (
                linear("groups", histogram.counts, histogram.deviation, dict(enumerate(weights))) for weights in parts
            )
            return share_of(part, whole)

        # where in its bucket a unit lies is not known, so take the least and the most that can be left out
        ends = histogram.ends()
        least = share([low + 1 if high > groups else high for low, high in ends])
        most = share([high if high > groups else low + 1 for low, high in ends])
        return Share(share([(low + 1 + high) / 2 for low, high in ends]).value, least.low, most.high)

    def outside(self, column: str) -> Share | None:
        """Estimate the share of a column's values that lie outside its bounds."""
        entry = self.model["values"].get(column)
        if entry is None:
            return None
        first, last = entry["inside"]
        places = [place for place in range(1, len(entry["counts"])) if not first < place - 1 <= last]
        beyond = linear("values", entry["counts"], entry["deviation"], dict.fromkeys(places, 1.0))
        return share_of(beyond, self.units().minus(1.0, self._nulls(entry)))

    def missing(self, column: str) -> Share | None:
        """Estimate the share of NULL in a column."""
        entry = self.model["values"].get(column) or self.model["nulls"].get(column)
        return None if entry is None else share_of(self._nulls(entry), self.units())

    def unlisted(self, column: str) -> Share | None:
        """Estimate the share of a column's values that are not in its list."""
        entry = self.model["nulls"].get(column)
        if entry is None or not entry["listed"]:
            return None
        others = linear("values", entry["counts"], entry["deviation"], {2: 1.0})
        return share_of(others, self.units().minus(1.0, self._nulls(entry)))

    def _nulls(self, entry: Mapping[str, Any]) -> Linear:
        return linear("values", entry["counts"], entry["deviation"], {0: 1.0})

    def quantile(self, column: str, level: float) -> float:
        """Estimate a quantile of a column's values, clamped to its bounds."""
        entry = self.model["values"][column]
        first, last = entry["inside"]
        edges, likely = entry["edges"], list[float]()
        for place, count in enumerate(entry["counts"][1:]):
            # far from the bounds a few units of noise would move a quantile a lot
            least = 0.0 if first < place <= last else 2 * SIGNIFICANT * entry["deviation"]
            likely.append(float(count) if count > least else 0.0)
        wanted, total = level * sum(likely), 0.0
        for (low, high), count in zip(pairwise((edges[0], *edges, edges[-1])), likely, strict=True):
            if total + count >= wanted and count:
                return float(low + (high - low) * (wanted - total) / count)
            total += count
        return float(edges[-1])

    def knows_values(self, column: str) -> bool:
        """Tell whether the counts of a column's values stand out from their noise; else its quantiles are noise."""
        entry = self.model["values"][column]
        counts = entry["counts"][1:]
        return not entry["deviation"] or bool(sum(counts) > SIGNIFICANT * entry["deviation"] * sqrt(len(counts)))

    def recommended_bounds(self, column: str) -> tuple[float, float]:
        """Recommend clamping bounds: the narrowest bins that hold all values but the lowest and the highest 0.5%."""
        edges = self.model["values"][column]["edges"]
        low, high = (self.quantile(column, level) for level in (_SMALL / 2, 1 - _SMALL / 2))
        return max(edge for edge in edges if edge <= low), min(edge for edge in edges if edge >= high)

    def state(self, left_out: LeftOut, version: str | None, blocks: BlockSet | None = None) -> LeftOut:
        """Add to a statement the shares that follow from this profile.

        `version` is that of the answer's data, and `blocks` are those that it reads: blocks that were filled together
        have versions with one name.
        """
        if left_out.dataset != self.dataset:
            return left_out
        clamped = tuple(replace(each, share=self._clamped(each)) for each in left_out.clamped)
        older = blocks != self.blocks or (version is not None and version != self.version)
        if left_out.maximum is not None:  # the answer itself says what its bounds leave out
            return left_out if older else replace(left_out, clamped=clamped)
        share = self._share(left_out) if left_out.unit is not None and left_out.bounded else None
        if not left_out.bounded and not clamped:
            return left_out
        histogram, top = self.rows_per_unit, None
        if left_out.bounded and len(histogram.counts) > len(histogram.levels):
            top = histogram.levels[histogram.top()]
        proof = Evidence(self.charge, older, top, 0 if top is None else histogram.above())
        return replace(left_out, clamped=clamped, share=share, evidence=proof)

    def _clamped(self, clamp: Clamp) -> Share | None:
        entry = self.model["values"].get(clamp.column)
        return self.outside(clamp.column) if entry and entry["bounds"] == [clamp.low, clamp.high] else None

    def _share(self, left_out: LeftOut) -> Share | None:
        if left_out.by is None:
            return None
        if left_out.rows_total is not None:
            alone = all(each is None or each >= left_out.rows_total for each in (left_out.groups, left_out.rows))
            # a profile does not tell how the rows and groups of a unit go together
            return self.share_beyond(left_out.rows_total) if alone else None
        if left_out.counts == "units":
            return self.share_of_groups(left_out.by, left_out.groups) if left_out.by and left_out.groups else None
        if left_out.by == "":
            return None if left_out.rows is None else self.share_beyond(left_out.rows)
        return self.share_grouped(left_out.by, left_out.groups, left_out.rows)

    def row_bounds(self) -> Iterator[tuple[int, Share]]:
        """List possible bounds on rows, each with what it leaves out, up to the last level that matters."""
        histogram = self.rows_per_unit
        for level in histogram.levels[: histogram.top() + 1]:
            yield level, self.share_beyond(level)

    def recommended_groups(self, column: str) -> int:
        """Recommend the smallest bound on groups that leaves out at most 1% of the groups that units are in."""
        histogram = self.groups_per_unit(column)
        if histogram is None:
            return 1
        for level in histogram.levels:
            share = self.share_of_groups(column, level)
            if share is not None and share.value <= _SMALL:
                return level
        return histogram.levels[-1]
