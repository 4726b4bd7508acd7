"""From the engine's integers to the answer: noise on every cell, estimates, intervals, and what was asked of them.

Noise and selections are the only steps that touch the data; all after them is post-processing and costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import Source
from hubbub.sql import answers
from hubbub.sql import partition_selection as discover
from hubbub.sql.aggregates.formula import Floats
from hubbub.sql.allocation import counted, factor
from hubbub.sql.estimates import Estimate, Integers, Keys, choice, estimate, expression
from hubbub.sql.expressions import Col
from hubbub.sql.keys import Found, domains_of
from hubbub.sql.noise import Chosen
from hubbub.sql.plan import Plan

Tables = Mapping[str, Mapping[str, NDArray[Any]]]

#: Found groups whose histograms are held at once.
_AT_ONCE = 1024


@dataclass(frozen=True)
class Answer:
    """What the analyst gets: columns in order, each with the ends of its 95% interval (NaN: it has none).

    ratio   for each row, the privacy noise against the sampling error of a count: its ± beside 1.96·√n, n being the
            noisy count; NaN where nothing was counted. Below 1 the noise is the smaller of the two.
    """

    columns: tuple[str, ...]
    values: tuple[NDArray[Any], ...]
    low: tuple[Floats, ...]
    high: tuple[Floats, ...]
    ratio: Floats

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The values, row by row."""
        return list(zip(*(column.tolist() for column in self.values), strict=True))

    @property
    def intervals(self) -> list[tuple[tuple[float, float], ...]]:
        """The intervals, row by row."""
        pairs = [zip(low.tolist(), high.tolist(), strict=True) for low, high in zip(self.low, self.high, strict=True)]
        return list(zip(*pairs, strict=True))


def exact(plan: Plan, tables: Tables) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """Scatter what the engine gave over all cells, before noise: measures (cell), histograms (cell, bucket)."""
    offsets = np.cumsum([0, *(each.size for each in plan.cells)])
    # the count behind a top-k is no measure: nothing is added to it
    count = max(len(plan.measures), 1 if plan.top is not None else 0)
    measures = [np.zeros(plan.size, dtype=np.int64) for _ in range(count)]
    histograms = [np.zeros((plan.size, each.count), dtype=np.int64) for each in plan.histograms]
    for statement in plan.statements:
        table = tables[statement.name]
        at = np.asarray(table["cell"], dtype=np.int64) + offsets[statement.place]
        for column, target in enumerate(statement.targets):
            found = np.asarray(table[f"m{column}"], dtype=np.int64)
            if statement.fills == "measures":
                np.add.at(measures[target], at, found)
            else:
                np.add.at(histograms[target], (at, np.asarray(table["bucket"], dtype=np.int64)), found)
    for target, histogram in plan.derived.items():
        measures[target] = histograms[histogram].sum(axis=1)
    return tuple(measures), tuple(histograms)


def declared(plan: Plan) -> Keys:
    """Give the keys of all declared cells."""
    shown, typed = {}, {}
    for i, domain in enumerate(domains_of(plan.query)):
        codes = np.concatenate([each.codes(i) for each in plan.cells])
        shown[domain.key.name] = domain.shown[codes]
        typed[domain.key.name] = (domain.typed[codes], domain.kind)
    return Keys(plan.size, shown, typed)


def finish(plan: Plan, tables: Tables, source: Source, *, raw: bool = False) -> Answer:
    """Add the noise, make the choices and the answer; `raw` leaves estimates as they fall, outside their range."""
    if plan.top is not None:
        return _best(plan, plan.top.sample(exact(plan, tables)[0][0], source))
    if plan.threshold is not None:
        return _discovered(plan, plan.threshold, tables, source, raw=raw)
    measures, histograms = exact(plan, tables)
    noisy = [noised.mechanism.sample(vector, source) for noised, vector in zip(plan.measures, measures, strict=True)]
    picked = [_chosen(each, histograms[each.histogram], source) for each in plan.choices]
    return present(plan, declared(plan), noisy, picked, raw=raw)


def _chosen(each: Chosen, histogram: Integers, source: Source) -> list[Integers]:
    """Make the selections of one choice in every cell."""
    return [
        np.array([pick.mechanism.sample(scores, source) for scores in pick.aim.scores(histogram)], dtype=np.int64)
        for pick in each.picks
    ]


def _discovered(plan: Plan, rule: PartitionSelection, tables: Tables, source: Source, *, raw: bool) -> Answer:
    """Find the groups first; they are public then, and everything else is answered for them."""
    (found,) = plan.groups
    if not isinstance(found, Found):
        raise AssertionError("groups are discovered where none are declared")
    units = plan.place(discover.UNITS)
    first = next(each for each in plan.statements if units in each.targets)
    shown = discover.sample(found, rule, tables[first.name], f"m{first.targets.index(units)}", source)
    noisy: dict[int, Integers] = {units: shown.units}
    for statement in plan.statements:
        table = tables[statement.name]
        if statement.fills == "histogram":
            continue
        at = None if statement is first else shown.places(found, table)
        for column, target in enumerate(statement.targets):
            if target == units:
                continue
            vector = np.asarray(table[f"m{column}"], dtype=np.int64)
            if at is None:
                own = vector[shown.positions]
            else:
                own = np.zeros(shown.size, dtype=np.int64)
                np.add.at(own, at[at >= 0], vector[at >= 0])
            noisy[target] = plan.measures[target].mechanism.sample(own, source)
    picked = [_chosen_found(plan, each, found, shown, tables, source) for each in plan.choices]
    named = {
        key.name: discover.shown_key(column, key.expr.kind)
        for key, column in zip(found.keys, shown.columns, strict=True)
    }
    typed = {key.name: (named[key.name], key.expr.kind) for key in found.keys}
    sums = [noisy[place] for place in range(len(plan.measures))]
    return present(plan, Keys(shown.size, named, typed), sums, picked, raw=raw)


def _chosen_found(
    plan: Plan, each: Chosen, found: Found, shown: discover.Shown, tables: Tables, source: Source
) -> list[Integers]:
    """Make one choice in every group that is shown, some of them at a time: how many there are is not known before."""
    statement = next(s for s in plan.statements if s.fills == "histogram" and s.targets == (each.histogram,))
    table = tables[statement.name]
    at = shown.places(found, table)
    bucket, counts = (np.asarray(table[name], dtype=np.int64) for name in ("bucket", "m0"))
    parts: list[list[Integers]] = [[np.array([], dtype=np.int64)] for _ in each.picks]
    for start in range(0, shown.size, _AT_ONCE):
        size = min(_AT_ONCE, shown.size - start)
        own = (at >= start) & (at < start + size)
        histogram = np.zeros((size, plan.histograms[each.histogram].count), dtype=np.int64)
        np.add.at(histogram, (at[own] - start, bucket[own]), counts[own])
        for part, chosen in zip(parts, _chosen(each, histogram, source), strict=True):
            part.append(chosen)
    return [np.concatenate(part) for part in parts]


def _best(plan: Plan, positions: Integers) -> Answer:
    """Show the chosen keys, the best first."""
    shown = declared(plan).shown
    nothing = tuple(np.full(len(positions), np.nan) for _ in plan.query.select)
    values = tuple(shown[expr.name][positions] for _, expr in plan.query.select if isinstance(expr, Col))
    return Answer(tuple(name for name, _ in plan.query.select), values, nothing, nothing, nothing[0])


def present(
    plan: Plan, keys: Keys, noisy: Sequence[Integers], picked: Sequence[Sequence[Integers]], *, raw: bool
) -> Answer:
    """Make the answer from the noisy integers and the choices alone."""
    sums = [each.astype(np.float64) for each in noisy]
    estimates = {name: estimate(plan, formula, sums, raw=raw) for name, formula in plan.formulas.items()}
    estimates |= {
        each.choice.name: choice(plan, each, positions, sums)
        for each, positions in zip(plan.choices, picked, strict=True)
    }
    shown = _arranged(plan, keys, estimates)
    columns: list[Estimate] = []
    for _, expr in plan.query.select:
        nothing = np.full(keys.size, np.nan)
        if isinstance(expr, Col) and expr.name in keys.shown:
            columns.append(Estimate(keys.shown[expr.name], nothing, nothing))
        elif isinstance(expr, Col):
            each = estimates[expr.name]
            whole = expr.name in plan.formulas and plan.formulas[expr.name].integer and not raw
            columns.append(Estimate(each.value.astype(np.int64), each.low, each.high) if whole else each)
        else:
            columns.append(expression(plan, expr, keys, estimates, sums))
    return Answer(
        tuple(name for name, _ in plan.query.select),
        tuple(each.value[shown] for each in columns),
        tuple(each.low[shown] for each in columns),
        tuple(each.high[shown] for each in columns),
        _ratio(plan, keys.size, sums)[shown],
    )


def _arranged(plan: Plan, keys: Keys, estimates: Mapping[str, Estimate]) -> NDArray[np.int64]:
    query = plan.query
    if query.having is None and not query.order:
        rows = np.arange(keys.size)
        return rows if query.limit is None else rows[: query.limit]
    table = {**keys.typed, **{name: (each.value, each.kind) for name, each in estimates.items()}}
    return answers.arrange(table, query.having, query.order, query.limit)


def _ratio(plan: Plan, size: int, sums: Sequence[Floats]) -> Floats:
    """Compare the ± of the first count with 1.96·√n, the sampling error of a count of that size."""
    counts = [formula.measures[formula.count] for formula in plan.formulas.values() if formula.count is not None]
    counts += [counted(each.choice) for each in plan.choices]
    if not counts:
        return np.full(size, np.nan)
    place = plan.place(counts[0])
    half = factor(plan.noise) * plan.measures[place].deviation
    return half / (1.96 * np.sqrt(np.maximum(sums[place], 1.0)))
