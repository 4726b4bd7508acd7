"""A SQL query as a prepared analysis.

Tested in tests/curator/test_path.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from hubbub.analyses.base import EngineRun, PreparedAnalysis, Protection, Published, Run
from hubbub.answers.groups import GroupThreshold
from hubbub.answers.joint import independent_noises, joint_sentence
from hubbub.answers.left_out import LeftOut
from hubbub.core.schema import Bounds
from hubbub.core.secret import combine_secrets
from hubbub.curator import receipt as receipts
from hubbub.curator import undeclared
from hubbub.curator.after import SENTENCE, answer_after
from hubbub.curator.left_out import describe
from hubbub.curator.question import Question
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.weighted_selection import WeightedSelection
from hubbub.sql import several_owners
from hubbub.sql.allocation import LEVEL
from hubbub.sql.auto_bounds import ChosenBound, LevelHistogram
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Numbers
from hubbub.sql.disclosure import rule_of
from hubbub.sql.expected import joint_level
from hubbub.sql.expressions import Expr
from hubbub.sql.finish import finish, public_rows
from hubbub.sql.keys import Cells
from hubbub.sql.measured import describe as describe_sums
from hubbub.sql.measured import measured
from hubbub.sql.measures import KeyWeight
from hubbub.sql.noise import Noise
from hubbub.sql.owner_levels import OwnerLevels
from hubbub.sql.plan import Plan, bound_work, plan, privacy_terms, settle
from hubbub.sql.presentation import Answer
from hubbub.sql.query import Query
from hubbub.sql.release_size import MAX_CELLS
from hubbub.sql.value_bounds import ValueBounds, value_bounds, with_bounds


@dataclass(frozen=True, kw_only=True)
class PreparedQuery(PreparedAnalysis):
    """A planned query, ready to be charged and run.

    joint   intervals shall hold for the whole answer at once
    raw     leave estimates as they are: negative counts, averages outside their bounds
    at      plans the same query at another ε without statements, to compare errors
    values  the bounds of columns that the query finds first, if it has to
    bounded plans the query with bounds of columns
    reading plans the query with the noisy values of earlier releases that it reads
    most    the largest number of values of the answer
    given   the contribution bounds (groups, rows) that the query asks for
    """

    plan: Plan
    raw: bool
    joint: bool
    at: Callable[[Fraction], "PreparedQuery"]
    values: ValueBounds | None
    bounded: Callable[[Mapping[Expr, Bounds]], Plan]
    reading: Callable[[Sequence[Numbers]], Plan]
    most: int = MAX_CELLS
    given: tuple[int | None, int | None] = (None, None)

    def left_out(self) -> LeftOut:
        """State what the bounds leave out."""
        return describe(self.plan)

    def never_equal(self) -> tuple[str, ...]:
        """Name constants that a column never equals, because they are not among its declared values."""
        return undeclared.never_equal(self.plan.query)

    def receipt(self) -> dict[str, Any]:
        """Give the sizes of the grouping sets and the facts of every draw."""
        return {
            "cells": [each.size if isinstance(each, Cells) else None for each in self.plan.groups],
            "draws": receipts.draws(self.plan)
            if self.values is None
            else receipts.draws_with_values(self.values, self.plan),
        } | ({} if self.plan.query.after is None else {"after": self.plan.query.after.sql})

    def group_threshold(self, units: int | None) -> GroupThreshold | None:
        """State how many privacy units a group needs; offer a larger ε if hardly any group can have so many."""
        stated = self.stated_threshold()
        if stated is None or not replace(stated, units=units).scarce:
            return stated if stated is None else replace(stated, units=units)
        goal = 100 if units is None else max(1, units // 100)
        enough, epsilon = None, self.epsilon
        with suppress(QueryError, ParameterError):
            while enough is None:
                epsilon *= 2
                other = self.at(epsilon).stated_threshold()
                enough = epsilon if other is not None and other.alone <= goal else None
        return replace(stated, units=units, enough=enough)

    def joint_intervals(self) -> str:
        """State with what probability all intervals of the answer hold, if that was requested."""
        if not self.joint:
            return ""
        level = joint_level(self.plan.query, self.plan.formulas, self.plan.size)
        count = round((1 - LEVEL) / (1 - level))
        noisy = count // max(1, self.plan.size)
        return joint_sentence(count, independent=independent_noises(self.receipt(), noisy))

    def stated_threshold(self) -> GroupThreshold | None:
        """Give the number of privacy units that a group needs, as its receipt will state it."""
        rule, keys = self.plan.threshold, self.plan.keys
        if rule is None or keys is None:
            return None
        unit = next((table.unit.column for table in self.private if table.unit is not None), None)
        if isinstance(rule, WeightedSelection):
            return GroupThreshold.from_weights(rule.threshold, rule.weight, rule.keys, unit)
        if isinstance(self.plan.measures[keys].measure, KeyWeight):
            return GroupThreshold.from_weights(rule.threshold, 1, 1, unit)
        return GroupThreshold(rule.threshold, rule.threshold, unit)

    def scaling(self) -> Iterator[PreparedAnalysis]:
        """Give the query at a quarter of its ε, at its ε and at four times its ε, where it can be planned."""
        with suppress(QueryError, ParameterError):
            yield self.at(self.epsilon / 4)
        yield self
        with suppress(QueryError, ParameterError):
            yield self.at(self.epsilon * 4)

    def run(self, run: Run) -> Published:
        """Run the statements, add noise, and compute the answer."""
        plan, answer, rows = self.answer(run)
        sums = None if self.values is not None else measured(describe_sums(self.plan, self.given))
        if rule_of(self.plan).form:  # the receipt must not have what the rules leave out
            sums = None
        if sums is not None:
            sums["sums"] = [vector.tolist() for vector in answer.sums]
        found = bool(plan.left_out) or self.values is not None
        model: dict[str, Any] = {}
        if plan.query.after is not None:
            answer, model = answer_after(plan.query.after, [answer], most=self.most)
        columns, ratio = receipts.outputs(answer)
        left_out = describe(plan) if found else None
        return Published(tuple(columns), model, ratio, left_out=left_out, rows=rows, measured=sums)

    def answer(self, run: Run, values: Sequence[Numbers] = ()) -> tuple[Plan, Answer, int | None]:
        """Run the statements and add noise; return the plan with its bounds, the result, and the public rows.

        `values` are the noisy values of earlier releases of the same statement.
        """
        # where rows have two owners, one statement serves the choice of bounds and the sums
        run = EngineRun(cache(run.ask), run.source, run.progress)
        plan = self.reading(values) if values else self._with_values(run)
        if values and plan.event != self.event:
            raise AssertionError("a noisy value decides nothing about the plan")
        plan = self._settled(run, plan) if plan.levels else plan
        tables = combine_secrets({statement.name: run.ask(statement.sql) for statement in plan.statements})
        answer = tables.through(lambda secret: finish(plan, secret, run.source, raw=self.raw))
        return plan, answer, tables.through(lambda secret: public_rows(plan, secret))

    def _with_values(self, run: Run) -> Plan:
        """Find the bounds of columns from noisy levels, if they have to be found."""
        if self.values is None:
            return self.plan
        chosen = _choose(self.values.histograms, run)
        return replace(self.bounded(self.values.bounds(chosen)), clipped=self.values.clipped(chosen))

    def _settled(self, run: Run, plan: Plan) -> Plan:
        """Find the contribution bounds from noisy levels."""
        return settle(plan, _choose(plan.levels, run))


def _choose(levels: Sequence[LevelHistogram | OwnerLevels], run: Run) -> list[ChosenBound]:
    tables = combine_secrets({level.name: run.ask(level.sql) for level in levels})
    return tables.through(lambda secret: [level.choose(secret[level.name], run.source) for level in levels])


def prepare_query(
    query: Query,
    question: Question,
    options: RenderOptions,
    *,
    epsilon: Fraction,
    delta: Fraction,
    most: int = MAX_CELLS,
    noise: Noise | None = None,
) -> PreparedQuery:
    """Plan a bound query for an ε and a δ, with at most so many values in its answer; `noise` as in `plan`."""
    return _prepare(query, question, options, epsilon=epsilon, delta=delta, most=most, sketch=False, noise=noise)


def _prepare(
    query: Query,
    question: Question,
    options: RenderOptions,
    *,
    epsilon: Fraction,
    delta: Fraction,
    most: int,
    sketch: bool,
    noise: Noise | None,
) -> PreparedQuery:
    """Plan a bound query; `sketch` and `noise` as in `plan`."""
    settings: dict[str, Any] = dict(question.planner_options(query)) | {"noise": noise}
    settings |= {"salt": options.salt, "hashing": options.hashing, "dialect": options.dialect}
    settings |= {"memory": options.memory}
    values = find_values(query, epsilon, options, settings)
    if values is not None and several_owners.has_two_owners(query.relation):
        raise QueryError(
            "HB764",
            "Bounds of columns cannot be found where rows have two owners.",
            "Ask the data owner to declare `bounds` for the columns that the query adds up.",
        )
    if question.joint and (values is not None or query.after is not None):
        why = "it finds its bounds when it runs" if values is not None else "it is computed from noisy results"
        raise QueryError(
            "HB585",
            f"The intervals of this query cannot hold for the whole answer at once: {why}.",
            "Use intervals='each'.",
        )
    # where bounds have to be found, the cost of the rest must not depend on them: pure losses alone
    spent = {"epsilon": epsilon, "delta": delta} if values is None else values.settings

    def bounded(bounds: Mapping[Expr, Bounds]) -> Plan:
        return plan(with_bounds(query, bounds), **settings | spent, sketch=sketch)

    def reading(numbers: Sequence[Numbers]) -> Plan:
        return plan(query, **settings | spent | {"dialect": options.dialect.reading(numbers)})

    planned = bounded({} if values is None else values.typical)
    if values is not None:
        planned = replace(planned, epsilon=epsilon, event=values.event)
    found = () if values is None else tuple(each.sql for each in values.histograms)
    return PreparedQuery(
        protection=Protection(planned.tables, planned.relation, planned.limits),
        epsilon=planned.epsilon,
        delta=planned.delta,
        event=planned.event,
        noise=planned.noise,
        derivation=planned.derivation + (() if query.after is None else (SENTENCE,)),
        expected=planned.outputs,
        cells=planned.size,
        statements=(*found, *planned.sql.values()),
        plan=planned,
        raw=question.raw,
        joint=question.joint,
        at=lambda other: _prepare(
            query, question, options, epsilon=other, delta=delta, most=most, sketch=True, noise=noise
        ),
        values=values,
        bounded=bounded,
        reading=reading,
        most=most,
        given=(question.groups, question.rows),
    )


def find_values(
    query: Query, epsilon: Fraction, options: RenderOptions, settings: Mapping[str, Any]
) -> ValueBounds | None:
    """Plan how a query finds bounds of columns, if it has to."""
    groups, rows = settings.get("groups"), settings.get("rows")
    if not any(column.auto for table in query.tables for column in table.columns):
        return None
    neighbors, _ = privacy_terms(query, groups, rows)
    return value_bounds(query, bound_work(query, groups, rows, options), neighbors, epsilon, options)
