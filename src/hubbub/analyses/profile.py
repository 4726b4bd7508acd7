"""A private profile of a dataset: rows per unit, groups per unit, values and NULLs, to choose bounds by.

CALL profile(table => 'visits')

Every histogram counts units, each in exactly one bucket: by how many rows it has, by how many groups of a column it is
in, and by the value of one of its rows, which a salted hash chooses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Protection, Published, Run, Setting
from hubbub.analyses.profile_parts import Part, Sketch
from hubbub.analyses.programs.inputs import ProgramInput
from hubbub.answers.estimate import Expected
from hubbub.answers.left_out import LeftOut
from hubbub.answers.profile import Profile
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed
from hubbub.core.schema import Column, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.measures import UnitContribution, sensitivity
from hubbub.sql.relations import Scan
from hubbub.sql.split import portions

__all__ = ["Profile", "ProfileRelease", "profile"]

#: Units with more rows than this are counted together.
MAX_ROWS = 10_000
MAX_COLUMNS = 64
#: What the three subjects get of ε: rows per unit, groups per unit, values.
SHARES = (0.5, 0.25, 0.25)


@dataclass(frozen=True, kw_only=True)
class ProfileRelease(PreparedAnalysis):
    """A prepared profile: a noise for each part."""

    inputs: ProgramInput
    parts: tuple[Part, ...]
    noises: tuple[Laplace, ...]
    model: Mapping[str, Any]

    def left_out(self) -> LeftOut:
        """State that every unit counts once in each histogram."""
        unit = self.private[0].unit
        return LeftOut(self.private[0].name, None if unit is None else unit.column, counts="units")

    def run(self, run: Run) -> Published:
        """Count, add noise, and publish."""
        noisy: list[list[int]] = []
        for place, (part, noise) in enumerate(zip(self.parts, self.noises, strict=True)):
            run.progress(place / len(self.parts), part.what)
            counts = self.inputs.integers(run, part.rows, part.cells, [part.measure])
            noisy.append(_sampled(noise, counts, run))
        run.progress(1.0, "done")
        model = _filled(self.model, noisy, [_deviation(noise) for noise in self.noises])
        return Published(_outputs(model), model)

    def exact(self, run: Run) -> Profile:
        """Count without noise, for the data owner's own eyes: nothing that this returns may be shown to anyone else."""
        counts = [
            self.inputs.integers(run, part.rows, part.cells, [part.measure]).through(lambda found: found[0].tolist())
            for part in self.parts
        ]
        return Profile(_filled(self.model, counts, [0.0] * len(counts)))


def profile(
    setting: Setting, *, table: str, columns: list[str] | None = None, max_rows: int | None = None
) -> ProfileRelease:
    """Prepare a profile of a dataset: rows and groups per unit, values and NULLs, and what bounds leave out.

    columns   the columns to profile; by default all that queries can use
    max_rows  a public number of rows per unit up to which units are told apart (10,000 if nothing else is declared)
    """
    source = setting.table(table, bounded=False)
    usual = source.unit.rows if source.unit is not None and source.unit.auto else MAX_ROWS
    most = numbers.integer(usual if max_rows is None else max_rows, "max_rows", 1, 10**9)
    chosen = _chosen(source, columns)
    by_row = source.unit is None or source.unit.column is None
    inputs = ProgramInput(
        source, (), (), Scan(source, (), ()), None if by_row else ContributionBounds(1, 1), setting.render_options
    )
    sketch = Sketch(inputs, most)
    sketch.add_rows()
    for column in chosen:
        sketch.add_column(column)
    parts = tuple(sketch.parts)
    weights = [sum(part.weight for part in parts if part.subject == subject) for subject in range(len(SHARES))]
    total = sum(share for share, weight in zip(SHARES, weights, strict=True) if weight)
    shares = [SHARES[part.subject] / total * part.weight / weights[part.subject] for part in parts]
    noises = tuple(
        _noise(part, source.relation, epsilon)
        for part, epsilon in zip(parts, portions(setting.epsilon, shares), strict=True)
    )
    setting.fits(sum(part.cells.size for part in parts), [40, 40, 8, 8, 8])
    half = float(noises[0].error(Fraction(95, 100)))
    return ProfileRelease(
        protection=Protection((source,), source.relation, None),
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(tuple((noise.event, 1) for noise in noises)),
        noise="laplace",
        derivation=_lines(source, parts, noises),
        expected=(Expected("units in a bucket of rows per unit", half, None, 0.0),),
        inputs=inputs,
        parts=parts,
        noises=noises,
        model=sketch.model,
    )


def _chosen(table: Table, names: list[str] | None) -> list[Column]:
    unit = None if table.unit is None else table.unit.column
    known = [column for column in table.columns if not column.hidden and column.name != unit]
    if names is None:
        chosen = known
    else:
        by_name = {column.name: column for column in known}
        for name in names:
            if name not in by_name:
                raise QueryError(
                    "HB541",
                    f"{table.name} has no column {name!r} that an analysis can use.",
                    f"Available: {', '.join(by_name)}.",
                )
        chosen = [by_name[name] for name in dict.fromkeys(names)]
    if len(chosen) > MAX_COLUMNS:
        raise QueryError(
            "HB540", f"A profile can have at most {MAX_COLUMNS} columns.", "List the columns: columns => ['age', …]."
        )
    return chosen


def _sampled(noise: Laplace, counts: Secret[NDArray[np.int64]], run: Run) -> list[int]:
    return [int(count) for count in counts.through(lambda exact: noise.sample(exact[0], run.source))]


def _noise(part: Part, relation: Relation, epsilon: Fraction) -> Laplace:
    moved = sensitivity(part.measure, (UnitContribution(part.cells.size, 1, 1),), relation).l1
    return Laplace(sensitivity=moved, scale=moved / epsilon)


def _deviation(noise: Laplace) -> float:
    return sqrt(float(noise.variance[1]))


def _filled(model: Mapping[str, Any], noisy: Sequence[list[int]], deviations: Sequence[float]) -> dict[str, Any]:
    """Replace the places of parts by their noisy numbers and the standard deviations of their noise."""
    filled = {name: value for name, value in model.items() if name not in ("rows", "groups", "values", "nulls")}
    rows = model["rows"]
    has_positions = isinstance(rows["positions"], int)
    filled["rows"] = rows | {
        "counts": noisy[rows["counts"]],
        "deviation": deviations[rows["counts"]],
        "positions": noisy[rows["positions"]] if has_positions else rows["positions"],
        "position_deviation": deviations[rows["positions"]] if has_positions else 0.0,
    }
    for kind in ("groups", "values", "nulls"):
        filled[kind] = {
            name: entry | {"counts": noisy[entry["counts"]], "deviation": deviations[entry["counts"]]}
            for name, entry in model[kind].items()
        }
    for entry in filled["groups"].values():
        if "left" in entry:
            entry |= {"left": noisy[entry["left"]], "left_deviation": deviations[entry["left"]]}
    return filled


def _outputs(model: Mapping[str, Any]) -> tuple[Output, ...]:
    """Write the histograms of units as one table, with the ± of each count."""
    made = Profile(model)
    what, level = list[str](), list[str]()
    units, low, high = list[int](), list[float | None](), list[float | None]()
    histograms = [("rows per unit", made.rows_per_unit)]
    for column in model["groups"]:
        histogram = made.groups_per_unit(column)
        if histogram is not None:
            histograms.append((f"groups per unit: {column}", histogram))
    for name, histogram in histograms:
        for label, count in zip(histogram.labels(), histogram.counts, strict=True):
            what.append(name)
            level.append(label)
            units.append(max(0, count))
            low.append(max(0.0, count - histogram.margin))
            high.append(max(0.0, count + histogram.margin))
    return (
        Output("histogram", "text", what),
        Output("level", "text", level),
        Output("units", "integer", units, low, high),
    )


def _lines(table: Table, parts: Sequence[Part], noises: Sequence[Laplace]) -> tuple[str, ...]:
    """Describe what is counted and how ε is split."""
    unit = None if table.unit is None else table.unit.column
    changed = "one unit more or less" if table.relation is Relation.ADD_REMOVE else "one unit replaced by another"
    whose = "each row is its own unit" if unit is None else f"all rows of one {unit} are one unit"
    chosen = "" if unit is None else "; values are those of one row of each unit, chosen by a salted hash"
    lines = [f"profile {table.name}: {whose}; neighbors differ by {changed}{chosen}"]
    for part, noise in zip(parts, noises, strict=True):
        lines.append(
            f"{part.what}: each unit is in one of {part.cells.size} buckets; L1 sensitivity {noise.sensitivity:,};"
            f" ε = {numbers.brief(noise.loss.epsilon)}; Laplace noise of scale {numbers.brief(noise.scale)}"
        )
    return tuple(lines)
