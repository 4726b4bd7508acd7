"""All marginals of some columns up to an order, bought at once.

CALL cube(table => 'visits', columns => ['region', 'age', 'sex'], measures => ['count', 'sum(cost)'], order => 2)

Every row has a cell of every marginal: NULL, and what nobody declared, is a value of each column.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Self, cast

import numpy as np

from hubbub.analyses.base import Arrays, PreparedAnalysis, Protection, Published, Run, Setting
from hubbub.analyses.tables.axes import axes
from hubbub.analyses.tables.residuals import ResidualBasis, Subset, contrasts, largest
from hubbub.analyses.tables.shared_counts import with_nulls
from hubbub.analyses.tables.strategies import Integers
from hubbub.analyses.tables.strategy_search import Floats
from hubbub.analyses.tables.table_release import expected
from hubbub.answers.release import Output, Release
from hubbub.core import deadline
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import integer
from hubbub.core.schema import Table
from hubbub.core.secret import Secret, combine_secrets
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.sql import bounding
from hubbub.sql.aggregates.formula import Formula, Resolution
from hubbub.sql.aggregates.table import formulas
from hubbub.sql.allocation import deviations_at_level
from hubbub.sql.bind import bind
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.domains import with_values
from hubbub.sql.fanout import strict
from hubbub.sql.keys import Cells, Domain, domains_of
from hubbub.sql.measures import BoundedSum, RowCount
from hubbub.sql.noise_budget import noise_budgets
from hubbub.sql.plan import bound_work, privacy_terms
from hubbub.sql.prune import prune
from hubbub.sql.query import Key, Query
from hubbub.sql.relations import Rel, Scan
from hubbub.sql.residual_views import measured_cube
from hubbub.sql.split import gaussian_variance

#: Most columns, values of a column, marginals, and measured numbers.
MAX_COLUMNS, MAX_VALUES, MAX_MARGINALS, MAX_NUMBERS = 200, 1000, 25_000, 900_000
#: Marginals in one statement.
_AT_ONCE = 16
_NAMED_AT_ONCE = 10
#: Steps of the largest value of a sum.
_STEPS = 1 << 12
_MEASURE = re.compile(r"\s*(sum|count)\s*\(\s*(\w+)\s*\)\s*", re.IGNORECASE)

CubeMeasure = RowCount | BoundedSum


@dataclass(frozen=True, kw_only=True)
class PreparedCube(PreparedAnalysis):
    """The noise of each part of each measure, and the statements of the largest marginals."""

    basis: ResidualBasis
    labels: tuple[tuple[str, tuple[Any, ...]], ...]
    measures: tuple[CubeMeasure, ...]
    formulas: Mapping[str, Formula]
    mechanisms: tuple[Mapping[Subset, Gaussian], ...]
    described: Mapping[str, Any] | None  #: what the sums mean, without them; None if nothing is derived from them

    def run(self, run: Run) -> Published:
        """Count the largest marginals, measure each part once, and show the marginals of single columns."""
        subsets = largest(self.basis.subsets)
        asked: dict[str, Secret[Arrays]] = {}
        for number, text in enumerate(self.statements):
            run.progress(0.8 * number / len(self.statements), "counting")
            asked[str(number)] = run.ask(text)
        run.progress(0.8, "adding noise")
        noisy = Secret(combine_secrets(asked).through(partial(self._exact, subsets))).through(
            lambda exact: [
                {
                    subset: mechanism.sample(self.basis.strategy(subset).measured(exact[place][subset]), run.source)
                    for subset, mechanism in own.items()
                }
                for place, own in enumerate(self.mechanisms)
            ]
        )
        model = {
            "columns": [[name, [_plain(each) for each in values]] for name, values in self.labels],
            "order": self.basis.order,
            "measures": [
                {
                    "parts": [parts[subset].tolist() for subset in self.basis.subsets],
                    "variances": [str(own[subset].variance) for subset in self.basis.subsets],
                }
                for parts, own in zip(noisy, self.mechanisms, strict=True)
            ],
            "names": list(self.formulas),
            "linear": [self._coefficients(formula) for formula in self.formulas.values()],
        }
        measured = None
        if self.described is not None:
            sums = [[int(v) for subset in self.basis.subsets for v in parts[subset].tolist()] for parts in noisy]
            measured = {**self.described, "sums": sums}
        return Published(_outputs(Cube(model)), model, measured=measured)

    def _exact(self, subsets: Sequence[Subset], found: Mapping[str, Arrays]) -> list[dict[Subset, Integers]]:
        """Arrange the exact sums of the largest marginals, and add them up to those of all others."""
        whole: list[dict[Subset, Integers]] = [{} for _ in self.measures]
        for number, table in found.items():
            which, cell = (np.asarray(table[name], dtype=np.int64) for name in ("marginal", "cell"))
            first = int(number) * _AT_ONCE
            for place, subset in enumerate(subsets[first : first + _AT_ONCE]):
                own = (which == place) & (cell >= 0)
                for measure in range(len(self.measures)):
                    sums = np.zeros(math.prod(self.basis.sizes[i] for i in subset), dtype=np.int64)
                    np.add.at(sums, cell[own], np.asarray(table[f"m{measure}"], dtype=np.int64)[own])
                    whole[measure][subset] = sums
        for subset in reversed(self.basis.subsets):
            for sums_of in whole:
                if subset not in sums_of:
                    larger = next(each for each in sums_of if len(each) == len(subset) + 1 and set(subset) < set(each))
                    shape = [self.basis.sizes[i] for i in larger]
                    axis = next(place for place, i in enumerate(larger) if i not in subset)
                    sums_of[subset] = sums_of[larger].reshape(shape).sum(axis=axis).reshape(-1)
        return whole

    def _coefficients(self, formula: Formula) -> list[float]:
        """Give the factor of each measure in a value that is linear in them."""
        zero = [np.zeros(1) for _ in formula.measures]
        base = float(formula.value(zero)[0])
        if base:
            raise AssertionError("a count or a sum of nothing is 0")
        factors = dict.fromkeys(range(len(self.measures)), 0.0)
        for place, measure in enumerate(formula.measures):
            one = [np.ones(1) if i == place else each for i, each in enumerate(zero)]
            factors[self.measures.index(cast(CubeMeasure, measure))] = float(formula.value(one)[0])
        return list(factors.values())


def cube(
    setting: Setting,
    *,
    table: str,
    columns: object,
    measures: object = ("count",),
    order: int = 2,
) -> PreparedCube:
    """Prepare all marginals of some columns, up to an order.

    columns   names of columns with declared values, integers or days between bounds; NULL is a value of each
    measures  'count', 'sum(x)' of columns with bounds, and 'count(x)', the rows with a value
    order     how many columns a marginal has at most
    """
    source = setting.table(table)
    listed = axes(source, columns)
    order = integer(order, "order", 1, 4)
    if len(listed) > MAX_COLUMNS or any(each.edges is not None for each in listed):
        raise QueryError(
            "HB587", f"A cube takes up to {MAX_COLUMNS} columns by their names.", "Declare values or integer bounds."
        )
    (budget,) = noise_budgets(setting.epsilon, setting.delta, "gaussian")
    query = _bound(setting, source, [each.name for each in listed], measures)
    domains = domains_of(query)
    basis = ResidualBasis(tuple(each.size for each in domains), min(order, len(domains)))
    _check_size(basis)
    named = formulas(query.aggregates, Resolution(_STEPS))
    kept = tuple(dict.fromkeys(m for formula in named.values() for m in formula.measures))
    counted = tuple(each for each in kept if isinstance(each, RowCount | BoundedSum))
    relation, limits = privacy_terms(query, None, None)
    if limits is None:
        total, cut = 1, None
    else:
        total = limits.groups * limits.rows if limits.total is None else limits.total
        cut = bound_work(query, None, None, setting.render_options, total)
    shares = basis.shares().tolist()
    parts = budget.portions([share / len(counted) for _ in counted for share in shares])
    mechanisms: list[dict[Subset, Gaussian]] = []
    for place, measure in enumerate(counted):
        most = total * max(-measure.low, measure.high)
        own = parts[place * len(shares) : (place + 1) * len(shares)]
        mechanisms.append({})
        for subset, rho in zip(basis.subsets, own, strict=True):
            deadline.check()
            squared = basis.sensitivity(subset, contribution=most, relation=relation).l2_squared
            mechanisms[-1][subset] = Gaussian(sensitivity_squared=squared, variance=gaussian_variance(squared, rho))
    texts = _statements(query, domains, cut, counted, basis, setting)
    events: list[tuple[Event, int]] = [(each.event, 1) for own in mechanisms for each in own.values()]
    labels = tuple((each.key.expr.name, (*each.values, None)) for each in domains)  # type: ignore[union-attr]
    names = tuple(name for name, _ in zip((each.name for each in listed), labels, strict=True))
    scales = [contrasts(size).matrix[:, 0].tolist() for size in basis.sizes]
    noises = [[own[subset].event for subset in basis.subsets] for own in mechanisms]
    described = measured_cube(query, domains, scales, basis.order, counted, noises)
    prepared = PreparedCube(
        protection=Protection(query.tables, relation, None),
        epsilon=setting.epsilon,
        delta=setting.delta,
        event=Composed(tuple(events)),
        noise="gaussian",
        derivation=_derivation(basis, names, None if limits is None else total),
        expected=(),
        statements=texts,
        basis=basis,
        labels=tuple((name, values) for name, (_, values) in zip(names, labels, strict=True)),
        measures=counted,
        formulas=named,
        mechanisms=tuple(mechanisms),
        described=described if limits is None else None,
    )
    return replace(prepared, expected=_expected(prepared))


def _bound(setting: Setting, table: Table, columns: Sequence[str], measures: object) -> Query:
    """Bind one query that groups by all columns and computes all measures."""
    wanted = [measures] if isinstance(measures, str) else measures
    if not isinstance(wanted, Sequence) or not wanted or not all(isinstance(each, str) for each in wanted):
        raise QueryError("HB587", "measures must be a list.", "Use measures => ['count', 'sum(cost)'].")
    selected = []
    for place, text in enumerate(dict.fromkeys(["count", *(each.strip().lower() for each in wanted)])):
        found = _MEASURE.fullmatch(text)
        if text != "count" and found is None:
            raise QueryError("HB587", f"{text[:40]!r} is not a measure of a cube.", "Use 'count' or 'sum(column)'.")
        name = next((each.name for each in table.columns if found and each.name.lower() == found[2]), None)
        if found is not None and name is None:
            raise QueryError("HB588", f"{table.name} has no column {found[2]!r}.", "Use sum() of a numeric column.")
        value = "COUNT(*)" if found is None or name is None else f"{found[1].upper()}({DUCKDB.identifier(name)})"
        selected.append(f"{value} AS measure{place}")
    named = len(selected)
    # keys are named in filters, because a query groups by few expressions and returns few columns
    for start in range(0, len(columns), _NAMED_AT_ONCE):
        tests = [f"{DUCKDB.identifier(each)} IS NULL" for each in columns[start : start + _NAMED_AT_ONCE]]
        selected.append(f"COUNT(*) FILTER (WHERE {' OR '.join(tests)}) AS keys{start}")
    text = f"SELECT {', '.join(selected)} FROM {DUCKDB.identifier(table.name)}"  # noqa: S608 - declared names
    query = bind(text, tables=setting.tables)
    scan = query.relation
    if not isinstance(scan, Scan):
        raise QueryError("HB587", f"{table.name} is not a table of its own.", "Use a table that has its own source.")
    cols = [scan.columns[scan.sources.index(name)] for name in columns]
    keys = tuple(Key(col.name, with_values(col)) for col in cols)
    return with_nulls(replace(query, keys=keys, sets=(), aggregates=query.aggregates[:named]))


def _check_size(basis: ResidualBasis) -> None:
    numbers = sum(math.prod(basis.sizes[i] for i in subset) for subset in largest(basis.subsets))
    if max(basis.sizes) > MAX_VALUES or len(basis.subsets) > MAX_MARGINALS or numbers > MAX_NUMBERS:
        raise QueryError(
            "HB587",
            f"This cube has {len(basis.subsets):,} marginals with {numbers:,} cells.",
            f"Use fewer columns, values or a smaller order: at most {MAX_MARGINALS:,} marginals, {MAX_NUMBERS:,} cells "
            f"and {MAX_VALUES:,} values of a column.",
        )


def _statements(
    query: Query,
    domains: Sequence[Domain],
    cut: Rel | None,
    measures: Sequence[CubeMeasure],
    basis: ResidualBasis,
    setting: Setting,
) -> tuple[str, ...]:
    texts = []
    for subset in largest(basis.subsets):
        deadline.check()
        cells = Cells(subset, tuple(domains[place] for place in subset))
        read = cut
        if read is None:  # no rows are cut, so only the columns of this marginal are read
            own = prune(replace(query, keys=tuple(each.key for each in cells.domains)))
            read = strict(bound_work(own, None, None, setting.render_options))
        texts.append(bounding.sums(read, cells, measures, limits=None, options=setting.render_options))
    columns = ", ".join(["cell", *(f"m{place}" for place in range(len(measures)))])
    return tuple(
        " UNION ALL ".join(
            f"SELECT {place} AS marginal, {columns} FROM ({text}) AS t{place}"  # noqa: S608 - rendered texts
            for place, text in enumerate(texts[start : start + _AT_ONCE])
        )
        for start in range(0, len(texts), _AT_ONCE)
    )


def _derivation(basis: ResidualBasis, names: Sequence[str], most: int | None) -> tuple[str, ...]:
    whose = "each row is its own unit" if most is None else f"a unit counts with at most {most} rows in all of it"
    return (
        f"all {len(basis.subsets):,} marginals of up to {basis.order} of {len(names)} columns: {', '.join(names)}",
        whose,
        "each subset of columns is measured once, by what it tells beyond its own subsets, with Gaussian noise; every "
        "marginal adds up the parts of its subsets",
    )


def _expected(prepared: PreparedCube) -> tuple[Any, ...]:
    """Give the ± of a count in a typical marginal of each order: the root mean square over its cells."""
    basis, own = prepared.basis, prepared.mechanisms[0]
    zeros = {s: np.zeros(basis.strategy(s).sums, dtype=np.int64) for s in own}
    variances = {subset: float(each.variance) for subset, each in own.items()}
    found = []
    for size in range(basis.order + 1):
        subset = tuple(range(size))
        _, variance = basis.marginal(subset, zeros, variances)
        half = deviations_at_level("gaussian") * math.sqrt(float(variance.mean()))
        found.append(expected(f"count by {', '.join(prepared.labels[i][0] for i in subset) or 'nothing'}", half))
    return tuple(found)


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return float(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _outputs(cube: "Cube") -> tuple[Output, ...]:
    """Show the marginals of single columns."""
    rows: list[tuple[object, ...]] = []
    for name, values in cube.columns.items():
        each = {measure: cube.marginal(name, measure=measure) for measure in cube.names}
        for place, value in enumerate(values):
            rows.append((name, None if value is None else str(value), *(each[m][place] for m in cube.names)))
    texts = [Output("column", "text", [str(row[0]) for row in rows])]
    texts.append(Output("value", "text", [cast("str | None", row[1]) for row in rows]))
    for place, measure in enumerate(cube.names):
        found = [cast("tuple[float, float, float]", row[2 + place]) for row in rows]
        texts.append(
            Output(
                "count" if place == 0 else measure,
                "real",
                [value for value, _, _ in found],
                [low for _, low, _ in found],
                [high for _, _, high in found],
            )
        )
    return tuple(texts)


class Cube:
    """All marginals of a published cube, with 95% confidence intervals."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        """Use `hubbub.model`."""
        self.columns: dict[str, list[Any]] = {name: list(values) for name, values in model["columns"]}
        self.names: list[str] = list(model["names"])
        self.basis = ResidualBasis(tuple(len(values) for values in self.columns.values()), model["order"])
        self._linear = model["linear"]
        self._parts = [
            dict(zip(self.basis.subsets, (np.array(p, dtype=np.int64) for p in each["parts"]), strict=True))
            for each in model["measures"]
        ]
        self._variances = [
            dict(zip(self.basis.subsets, (float(Fraction(v)) for v in each["variances"]), strict=True))
            for each in model["measures"]
        ]

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read a release of `cube`."""
        return cls(release.model)

    def estimates(self, *columns: str, measure: str | None = None) -> tuple[Floats, Floats]:
        """Give the values of a marginal and their variances; one axis for each column, in this order."""
        known = list(self.columns)
        if len(columns) > self.basis.order or not set(columns) <= set(known) or len(set(columns)) < len(columns):
            raise ParameterError(
                "HB171",
                f"The cube has no marginal of {', '.join(columns)}.",
                f"Use up to {self.basis.order} of its columns.",
            )
        places = [known.index(each) for each in columns]
        ordered = tuple(sorted(places))
        factors = self._linear[0 if measure is None else self.names.index(measure)]
        value = variance = np.zeros(())
        for factor, parts, variances in zip(factors, self._parts, self._variances, strict=True):
            one, spread = self.basis.marginal(ordered, parts, variances)
            value, variance = value + factor * one, variance + factor**2 * spread
        axes_of = [ordered.index(place) for place in places]
        return value.transpose(axes_of), variance.transpose(axes_of)

    def marginal(self, *columns: str, measure: str | None = None) -> list[tuple[float, float, float]]:
        """Give each cell of a marginal with its interval; the last column varies fastest."""
        value, variance = self.estimates(*columns, measure=measure)
        half = deviations_at_level("gaussian") * np.sqrt(variance)
        cells = zip(value.reshape(-1).tolist(), half.reshape(-1).tolist(), strict=True)
        return [(each, each - margin, each + margin) for each, margin in cells]

    def __repr__(self) -> str:
        return f"Cube({', '.join(self.columns)}; up to {self.basis.order} columns)"
