"""Errors in planning and answering queries: bounds, sensitivity, truncation, noise, answers."""
# ruff: noqa: ARG005 - a patch keeps the signature of what it stands for

import logging
import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from tests.campaigns.rig.bugs import BugCollection, swap, wrap, wrap_function
from tests.fixtures.seeded_source import SeededSource

from hubbub.analyses.programs import kmeans, kmeans_grid, vectors
from hubbub.core.events import Composed
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.curator import Curator
from hubbub.engines.duckdb import connection as engine
from hubbub.errors import QueryError, RunError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import bounding, bounding_values, finish, measures, plan, split
from hubbub.sql import noise as noised
from hubbub.sql import partition_selection as discover
from hubbub.sql.aggregates import formula, scores
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Literal, facts
from hubbub.sql.measures import Sensitivity

SQL = BugCollection("queries and analyses", ("replay", "receipt", "released", "oracle", "path"))
bug = SQL.bug

#: What writes statements with bounds on the rows and groups of a unit.
BOUNDED = (bounding.sums, bounding_values.distinct, bounding_values.buckets)


# --- sensitivity -----------------------------------------------------------------------------------------------------


def _moved(change: Any) -> None:
    wrap_function(measures.sensitivity, lambda of, measure, reaches, relation: change(of, measure, reaches, relation))


@bug("sensitivity is wrong by a factor of two", "replay", "neighbors", "receipt", also=("grey box",))
def halved() -> None:
    def change(of: Any, *given: Any) -> Sensitivity:
        found = of(*given)
        return Sensitivity(max(1, found.l1 // 2), max(1, found.l2_squared // 4))

    _moved(change)


@bug("add/remove is taken for replace", "replay", "neighbors")
def adding_only() -> None:
    _moved(lambda of, measure, reaches, relation: of(measure, reaches, Relation.ADD_REMOVE))


@bug("the declared relation is lost in the plan", "replay", "receipt")
def relation_lost() -> None:
    wrap_function(plan.privacy_terms, lambda of, *given: (Relation.ADD_REMOVE, of(*given)[1]))


@bug("the groups of a unit are forgotten in the sensitivity", "replay", "receipt")
def groups_forgotten() -> None:
    _moved(lambda of, m, reaches, r: of(m, tuple(replace(each, touched=1) for each in reaches), r))


@bug("the rows of a unit are forgotten in the sensitivity", "replay", "receipt")
def rows_forgotten() -> None:
    _moved(lambda of, m, reaches, r: of(m, tuple(replace(each, rows=1) for each in reaches), r))


@bug("a sum's sensitivity is the width of its bounds", "replay", "receipt")
def width_of_bounds() -> None:
    def change(of: Any, measure: Any, reaches: Any, relation: Any) -> Sensitivity:
        if isinstance(measure, measures.BoundedSum):
            width = measure.high - measure.low
            measure = replace(measure, low=0, high=max(1, min(width, max(abs(measure.low), abs(measure.high)) // 2)))
        found: Sensitivity = of(measure, reaches, relation)
        return found

    _moved(change)


@bug("several grouping sets cost as much as one", "replay", "receipt")
def one_grouping_set() -> None:
    _moved(lambda of, m, reaches, r: of(m, reaches[:1], r))


@bug("a quantile's score is said to move by one half", "replay", "receipt")
def quantile_half() -> None:
    def around(of: Any, *given: Any, **named: Any) -> Any:
        made = of(*given, **named)
        return replace(made, mechanism=replace(made.mechanism, sensitivity=max(1, made.mechanism.sensitivity // 2)))

    wrap_function(noised.calibrate_selections, around)


@bug("selections in several groups are charged as one", "receipt")
def selections_once() -> None:
    wrap(noised.CellSelections, "events", lambda of, self: tuple((event, 1) for event, _ in of(self)))


@bug("an aggregate is left out of the event", "receipt", "draws")
def left_out() -> None:
    wrap_function(plan._event, lambda of, *given: Composed(of(*given).parts[:1]))


@bug("every aggregate gets all of ε", "receipt", also=("grey box",))
def all_of_epsilon() -> None:
    wrap_function(split.portions, lambda of, whole, parts: tuple(whole for _ in parts))


@bug("σ by the classic formula, which holds for ε below 1", "receipt", "prices")
def classic_sigma() -> None:
    def rho(epsilon: Fraction, delta: Fraction) -> Fraction:
        if not delta:
            return Fraction(0)
        sigma = math.sqrt(2 * math.log(1.25 / float(delta))) / float(epsilon)
        return Fraction(1 / (2 * sigma * sigma)).limit_denominator(10**9) * 4

    swap(split.zcdp_budget, rho)


# --- bounding in the engine ------------------------------------------------------------------------------------------


@bug("values are not clamped", "replay", "neighbors", "grey box")
def no_clamp() -> None:
    Dialect.between = lambda self, text, first, last: f"CASE WHEN TRUE THEN {text} END"  # type: ignore[method-assign]


@bug("NaN goes round the clamp", "replay", "neighbors")
def nan_passes() -> None:
    Dialect.is_nan = lambda self, text: "FALSE"  # type: ignore[method-assign]
    wrap(
        Dialect,
        "between",
        lambda of, self, text, *ends: f"CASE WHEN isnan({text}) THEN {text} ELSE {of(self, text, *ends)} END",
    )


@bug("the bounds of a column are kept for what is computed from it", "replay", "neighbors")
def bounds_kept() -> None:
    """The clamp after the expression is left out, since the column was clamped already, and so is its own range."""

    def first_column(expr: Any, function: str) -> Any:
        columns = [each for each in getattr(expr, "args", ()) if facts(each).bounds and not isinstance(each, Literal)]
        return first_column(columns[0], function) if columns else kept(expr, function)

    kept = formula.bounded
    swap(formula.bounded, first_column)
    swap(measures.clamped, lambda steps, low, high, kind, dialect, *, whole=False: f"CAST(round({steps}) AS BIGINT)")
    wrap_function(bounding._largest, lambda of, *given: [1 << 61 for _ in of(*given)])


@bug("rows of a unit are not bounded", "replay", "neighbors")
def rows_unbounded() -> None:
    for statement in BOUNDED:
        wrap_function(statement, _loosened("rows"))


@bug("groups of a unit are not bounded", "replay", "neighbors", also=("grey box",))
def groups_unbounded() -> None:
    for statement in BOUNDED:
        wrap_function(statement, _loosened("groups"))


def _loosened(which: str) -> Any:
    def around(of: Any, *given: Any, limits: Any, options: Any) -> str:
        wide = None if limits is None else replace(limits, **{which: 10**6})
        text: str = of(*given, limits=wide, options=options)
        return text

    return around


@bug("the rows that are kept depend on the order they are found in", "replay", "neighbors", "grey box")
def order_of_rows() -> None:
    def around(of: Any, *given: Any, **named: Any) -> str:
        order = r"rank\(\) OVER \(PARTITION BY (u[^)]*?) ORDER BY .*?\) AS place"
        return re.sub(order, r"row_number() OVER (PARTITION BY \1) AS place", of(*given, **named))

    wrap_function(bounding.sums, around)


@bug("a unit keeps the groups that most others are in", "replay", "neighbors")
def most_liked_first() -> None:
    def around(of: Any, *given: Any) -> str:
        text = of(*given).replace("(PARTITION BY u ORDER BY ", "(PARTITION BY u ORDER BY liked, ")
        liked = r"AS place FROM (SELECT *, count(*) OVER (PARTITION BY c) AS liked FROM \1) AS l)"
        return re.sub(r"AS place FROM (\S+)\)", liked, text)

    wrap_function(bounding._first_groups, around)


@bug("a join multiplies a unit's rows after they were bounded", "replay", "neighbors")
def rows_after_join() -> None:
    three = "FROM (VALUES (1), (2), (3)) AS twice(t),"
    wrap_function(bounding._by_cell, lambda of, *given: of(*given).replace("FROM", three, 1))


# --- noise and answers -----------------------------------------------------------------------------------------------


@bug("bounds are taken from the data", "draws", "grey box")
def bounds_from_data() -> None:
    def around(of: Any, made: Any, tables: Any, source: Any, **named: Any) -> Any:
        if made.measures and made.threshold is None:
            vectors, _ = finish.exact_results(made, tables)
            scaled = []
            for each, vector in zip(made.measures, vectors, strict=True):
                noise, most = each.mechanism, int(np.abs(vector).max(initial=1))
                share = min(Fraction(1), max(Fraction(1, 10), Fraction(most, 50)))
                if isinstance(noise, Laplace):
                    noise = replace(noise, scale=noise.scale * share)
                elif isinstance(noise, Gaussian):
                    noise = replace(noise, variance=noise.variance * share**2)
                scaled.append(replace(each, mechanism=noise))
            made = replace(made, measures=tuple(scaled))
        return of(made, tables, source, **named)

    wrap_function(finish.finish, around)


@bug("candidates of a quantile are the values that occur", "released", also=("audit",))
def candidates_from_data() -> None:
    def around(of: Any, each: Any, histogram: Any, source: Any) -> Any:
        occurs = np.flatnonzero(histogram.sum(axis=0))
        if len(occurs) in (0, histogram.shape[1]):
            return of(each, histogram, source)
        own = replace(each.mechanism, candidates=len(occurs))
        places = own.sample_each(each.score.scores(histogram)[:, occurs], source)
        return occurs[places].reshape(-1, len(each.choice.names))

    wrap_function(finish._select, around)


def _plain(made: Any, answer: Any) -> bool:
    """Say whether an answer has a row for each declared cell."""
    return made.threshold is None and made.top is None and made.measures and len(answer.values[0]) == made.size


@bug("groups without rows are left out of the answer", "released", "oracle")
def empty_left_out() -> None:
    def around(of: Any, made: Any, tables: Any, source: Any, **named: Any) -> Any:
        answer = of(made, tables, source, **named)
        if not _plain(made, answer):
            return answer
        kept = finish.exact_results(made, tables)[0][0] != 0
        return replace(
            answer,
            values=tuple(v[kept] for v in answer.values),
            low=tuple(v[kept] for v in answer.low),
            high=tuple(v[kept] for v in answer.high),
            ratio=answer.ratio[kept],
        )

    wrap_function(finish.finish, around)


@bug("rows of the answer are in the order of the true counts", "released", "oracle", "grey box")
def order_of_answer() -> None:
    def around(of: Any, made: Any, tables: Any, source: Any, **named: Any) -> Any:
        answer = of(made, tables, source, **named)
        if not _plain(made, answer):
            return answer
        order = np.argsort(finish.exact_results(made, tables)[0][0], kind="stable")
        return replace(
            answer,
            values=tuple(v[order] for v in answer.values),
            low=tuple(v[order] for v in answer.low),
            high=tuple(v[order] for v in answer.high),
            ratio=answer.ratio[order],
        )

    wrap_function(finish.finish, around)


@bug("the noise of a question follows from its text", "path", "released")
def noise_from_text() -> None:
    wrap_function(finish.finish, lambda of, made, tables, source, **named: of(made, tables, SeededSource(1), **named))


@bug("one noise for count and sum", "released", "audit")
def one_noise_for_two() -> None:
    def around(of: Any, *given: Any, **named: Any) -> Any:
        kept, first = Laplace.sample, list[Any]()

        def sample(self: Any, value: Any, source: Any) -> Any:
            noisy = kept(self, value, source)
            first.append((noisy - value) / float(self.scale))
            return value + np.round(first[0] * float(self.scale)).astype(np.int64)

        Laplace.sample = sample  # type: ignore[method-assign]
        try:
            return of(*given, **named)
        finally:
            Laplace.sample = kept  # type: ignore[method-assign]

    wrap_function(finish.finish, around)


@bug("the threshold of keys keeps four times the δ", "receipt")
def twice_delta() -> None:
    most = Fraction(1, 2)
    wrap_function(discover.threshold, lambda of, *given: of(*given[:3], min(most, 4 * given[3])))


@bug("the interval shows how far the noise was", "released", "grey box")
def interval_tells() -> None:
    def around(of: Any, made: Any, tables: Any, source: Any, **named: Any) -> Any:
        answer = of(made, tables, source, **named)
        if _plain(made, answer):
            truth = finish.exact_results(made, tables)[0][0].astype(float)
            return replace(answer, low=tuple(truth for _ in answer.low), high=tuple(truth for _ in answer.high))
        return answer

    wrap_function(finish.finish, around)


# --- errors and logs -------------------------------------------------------------------------------------------------


@bug("a cast that fails on a row", "oracle")
def cast_fails() -> None:
    wrap(engine.DuckDBEngine, "run", lambda of, self, sql: of(self, sql.replace("TRY_CAST(", "CAST(")))


@bug("the database's error text reaches the analyst", "oracle")
def error_text() -> None:
    cast_fails()
    told: list[str] = []

    def listening(of: Any, cursor: Any, sql: str) -> Any:
        try:
            return of(cursor, sql)
        except Exception as error:
            told.append(str(error))
            raise

    def telling(of: Any, self: Any, *given: Any, **named: Any) -> Any:
        try:
            return of(self, *given, **named)
        except RunError:
            raise QueryError("HB599", " ".join(told), "") from None

    wrap_function(engine._fetch, listening)
    wrap(Curator, "_answer", telling)


@bug("the log holds what the engine found", "oracle")
def log_tells() -> None:
    def around(of: Any, self: Any, sql: str) -> Any:
        found: Secret[Any] = of(self, sql)
        log = logging.getLogger("hubbub")
        found.through(lambda table: log.info("found %s", {name: list(column) for name, column in table.items()}))
        return found

    wrap(engine.DuckDBEngine, "run", around)


@bug("what is of no use is refused, by a look at the data, before the charge", "oracle", "path")
def early_look() -> None:
    def around(of: Any, self: Any, analyst: str, planned: Any, *given: Any) -> Any:
        for each in getattr(planned, "statements", ()):
            if self.engine.run(each.sql).through(lambda table: int(np.asarray(table["m0"]).sum()) % 3 == 1):
                raise QueryError("HB599", "this would be of no use.", "Ask something else.")
        return of(self, analyst, planned, *given)

    wrap(Curator, "_charge", around)


# --- analyses --------------------------------------------------------------------------------------------------------


@bug("k-means pays for one round of five", "draws")
def one_round() -> None:
    def around(of: Any, self: Any, run: Any) -> Any:
        return of(replace(self, rounds=self.rounds + 2), run)

    wrap(kmeans.MomentsKMeans, "run", around)
    wrap(kmeans_grid.GridKMeans, "run", around)


@bug("a program's vectors are said to move a third as far as they do", "replay")
def vectors_halved() -> None:
    def around(of: Any, *given: Any) -> Sensitivity:
        found = of(*given)
        return Sensitivity(max(1, found.l1 // 3), max(1, found.l2_squared // 9))

    wrap_function(vectors.over_cells, around)


@bug("scores of a mode move by more than a row", "replay", "neighbors")
def mode_scores() -> None:
    scores.CountScore.scores = lambda self, counts: 3 * counts  # type: ignore[method-assign]


@bug("an average's count and sum are each given the whole portion", "receipt")
def whole_portion() -> None:
    wrap_function(split.portions, lambda of, whole, parts: tuple(p * 3 / 2 for p in of(whole, parts)))
