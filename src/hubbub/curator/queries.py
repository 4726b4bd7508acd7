"""Several queries that are charged and released together, with the query over their results that is the answer.

Tested in tests/curator/test_after.py.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Protection, Published, Run
from hubbub.answers.estimate import Expected
from hubbub.answers.groups import GroupThreshold
from hubbub.answers.left_out import LeftOut
from hubbub.core import numbers
from hubbub.core.events import Composed, Event, to_facts
from hubbub.core.reals import floor_to
from hubbub.core.schema import Kind, Table
from hubbub.curator import receipt as receipts
from hubbub.curator.after import SENTENCE, answer_after, released_table
from hubbub.curator.one_price import at_one_price
from hubbub.curator.query import PreparedQuery, prepare_query
from hubbub.curator.question import Question
from hubbub.curator.together import put_together
from hubbub.errors import ParameterError, QueryError
from hubbub.sql import partition_selection
from hubbub.sql import release_size as size
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Numbers
from hubbub.sql.epsilon_search import solve
from hubbub.sql.grouping_sets import visible
from hubbub.sql.noise import Noise
from hubbub.sql.plan import Plan
from hubbub.sql.presentation import Answer
from hubbub.sql.query import After, Queries, Query, Together

#: The largest number that a query reads from an earlier release; a larger one is NULL.
_LARGEST = 1e300
#: Said in the derivation of an answer that reads noisy values of its own earlier releases.
VALUES = "$released0, … are the noisy numbers of releases 1, …: the answer and its intervals are about these numbers"

#: Gives the SQL dialect, hash and salt for the tables that a query reads.
Rendering = Callable[[Sequence[Table]], RenderOptions]


@dataclass(frozen=True, kw_only=True)
class PreparedQueries(PreparedAnalysis):
    """Planned queries with equal shares of one privacy cost, and the query over their results.

    Theorem (Releases together). All releases of a statement, and everything that is computed from them, cost at most
    what is charged before the first of them runs.
    Proof    The charged event is the list of the events of all parts, each derived from its own contribution bounds,
             and composition adds up their losses, also where the parts read the same people's rows. The query over
             their results reads noisy results and public tables alone: it runs in a database that has nothing else.
    Assumes  the theorems of `plan` for each part.
    Charges  `event`: the parts' events, on every private table that some part reads.
    Tested   tests/curator/test_after.py::test_several_releases_are_charged_together_and_once
    """

    parts: tuple[PreparedQuery, ...]
    after: After | None
    values: int
    together: Together | None
    most: int
    at: Callable[[Fraction], "PreparedQueries"]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of all parts; one number stands for every noisy value that they read."""
        numbers = [_typical(part) for part in self.parts[: self.values]]
        return tuple(part.reading(numbers) if numbers else part.plan for part in self.parts)

    @property
    def last_step(self) -> After | None:
        """The query over the results of the last parts, if their result is not the answer itself."""
        return self.after or self.parts[-1].plan.query.after

    def left_out(self) -> LeftOut:
        """State the tightest bounds of all parts, and all columns that are clamped."""
        stated = [part.left_out() for part in self.parts]
        first, clamped = stated[0], {clamp: None for each in stated for clamp in each.clamped}
        names = " and ".join(table.name for table in self.private)
        if all(replace(each, clamped=()) == replace(first, clamped=()) for each in stated):
            return replace(first, clamped=tuple(clamped))
        groups = [each.groups for each in stated if each.groups is not None]
        rows = [each.rows for each in stated if each.rows is not None]
        return replace(
            first,
            dataset=names,
            groups=min(groups, default=None),
            rows=min(rows, default=None),
            by=None,
            filtered=True,
            clamped=tuple(clamped),
        )

    def receipt(self) -> dict[str, Any]:
        """Give the facts of every part, from which its privacy loss follows, and the query over the results."""
        facts = {"queries": [_facts(part) for part in self.parts]}
        after = self.last_step
        return facts if after is None else facts | {"after": after.sql}

    def group_threshold(self, units: int | None) -> GroupThreshold | None:
        """State how many privacy units a group needs in the first part that selects its groups."""
        stated = (part.group_threshold(units) for part in self.parts)
        return next((each for each in stated if each is not None), None)

    def scaling(self) -> Iterator[PreparedAnalysis]:
        """Give the queries at a quarter of their ε, at their ε and at four times their ε, where they can be planned."""
        with suppress(QueryError, ParameterError):
            yield self.at(self.epsilon / 4)
        yield self
        with suppress(QueryError, ParameterError):
            yield self.at(self.epsilon * 4)

    def run(self, run: Run) -> Published:
        """Run one part after the other, then the query over their results."""
        numbers, answers, rows = list[Numbers](), list[Answer](), list[int]()
        for place, part in enumerate(self.parts):
            plan, answer, counted = part.answer(run, tuple(numbers))
            answers.append(answer)
            rows += [] if counted is None else [counted]
            if place < self.values:
                numbers.append(_numbers(answer, plan))
        model: dict[str, Any] = {}
        after, results = self.last_step, answers
        if self.together is not None:
            kinds = [expr.kind for _, expr in self.parts[-1].plan.query.select]
            answer = put_together(answers[-self.together.count :], self.together, kinds)
            results = [answer]
        if after is not None:
            answer, model = answer_after(after, results[-len(after.released) :], most=self.most)
        model["released"] = [released_table(each) for each in answers]
        model |= {"values": self.values} if self.values else {}
        columns, ratio = receipts.outputs(answer)
        return Published(tuple(columns), model, ratio, rows=rows[0] if rows else None)


def prepare_queries(
    queries: Queries,
    question: Question,
    rendering: Rendering,
    *,
    epsilon: Fraction,
    delta: Fraction,
    most: int,
    noise: Noise | None = None,
) -> PreparedQueries:
    """Plan the parts of a statement, each for an equal share of ε and δ; with `noise` all parts have that kind."""

    def prepared(kind: Noise | None) -> PreparedQueries:
        return _prepared(queries, question, rendering, epsilon=epsilon, delta=delta, most=most, noise=kind)

    return at_one_price(prepared, epsilon=epsilon, delta=delta) if noise is None else prepared(noise)


def _prepared(
    queries: Queries,
    question: Question,
    rendering: Rendering,
    *,
    epsilon: Fraction,
    delta: Fraction,
    most: int,
    noise: Noise | None,
) -> PreparedQueries:
    _refuse_options(queries, question)
    shares = {"epsilon": _share(epsilon, queries), "delta": _share(delta, queries)}
    parts = tuple(
        prepare_query(query, question, rendering(query.tables), most=most, noise=noise, **shares)
        for query in queries.parts
    )
    _check_alike(parts)
    for part in parts:
        size.check(part.plan, most=most)
    tables = {table.name: table for part in parts for table in part.tables}
    tables |= {table.name: table for table in (() if queries.after is None else queries.after.public)}
    computed = queries.after is not None or queries.parts[-1].after is not None
    return PreparedQueries(
        protection=Protection(tuple(tables.values()), parts[0].relation, None),
        epsilon=epsilon,
        delta=delta if any(part.delta for part in parts) else Fraction(0),
        event=Composed(tuple(each for part in parts for each in _parts(part.event))),
        noise=" and ".join(dict.fromkeys(part.noise for part in parts)),
        derivation=(
            *(f"release {i}: {line}" for i, part in enumerate(parts, 1) for line in part.derivation),
            *([VALUES] if queries.values else []),
            *([SENTENCE] if computed else []),
        ),
        expected=tuple(each for each in _expected(parts) if visible(each.name)),
        cells=sum(part.cells for part in parts),
        statements=tuple(text for part in parts for text in part.statements),
        parts=parts,
        after=queries.after,
        values=queries.values,
        together=queries.together,
        most=most,
        at=lambda other: prepare_queries(
            queries, question, rendering, epsilon=other, delta=delta, most=most, noise=noise
        ),
    )


def solve_queries(queries: Queries, question: Question, delta: Fraction) -> Fraction:
    """Return the ε at which every result of every part is within the margin of error."""
    _refuse_options(queries, question)
    count = len(queries.parts)
    shares = [
        solve(
            query,
            within=question.within or 0,
            delta=_share(delta, queries),
            noise=question.known_noise,
            **question.planner_options(query),
        )
        for query in queries.parts
    ]
    return count * max(shares)


def _share(whole: Fraction, queries: Queries) -> Fraction:
    """Return the share of one part, rounded down where the ledger could not add up the exact one."""
    share = whole / len(queries.parts)
    return share if share.denominator <= numbers.MAX_DENOMINATOR else floor_to(share)


def selects_groups(query: Query) -> bool:
    """Tell whether a query selects its groups privately."""
    return bool(query.keys) and not query.top and partition_selection.needed(query)


def _refuse_options(queries: Queries, question: Question) -> None:
    if question.weights or question.joint:
        raise QueryError(
            "HB757",
            f"This query needs {len(queries.parts)} releases, for which weights and joint intervals are not supported.",
            "Leave them out, or run its parts as queries of their own.",
        )


def _check_alike(parts: Sequence[PreparedQuery]) -> None:
    """Reject releases that one receipt cannot describe."""
    if len({part.relation for part in parts}) > 1:
        raise QueryError(
            "HB757",
            "The tables of this query have different neighboring relations.",
            "Run its parts as queries of their own.",
        )
    counted = [part.tables for part in parts if any(draw["kind"] == "public" for draw in part.receipt()["draws"])]
    if len(set(counted)) > 1:
        raise QueryError(
            "HB757",
            "The query uses the public numbers of rows of several tables.",
            "Run its parts as queries of their own.",
        )
    if any(part.values is not None or part.plan.levels for part in parts):
        raise QueryError(
            "HB757",
            "A query with several releases cannot find its bounds by itself.",
            "Pass rows= and groups=, or run its parts as queries of their own.",
        )


def _facts(part: PreparedQuery) -> dict[str, Any]:
    return {
        "data": [table.name for table in part.private],
        "bounds": None if part.limits is None else part.limits.to_json(),
        **{name: facts for name, facts in part.receipt().items() if name != "after"},
        "event": to_facts(part.event),
        "charge": {"epsilon": str(part.epsilon), "delta": str(part.delta)},
    }


def _numbers(answer: Answer, plan: Plan) -> Numbers:
    """Return the numbers of a noisy result as constants of the next query, one for each of its keys; None for NULL."""
    values = np.ma.filled(np.ma.asarray(answer.values[-1]).astype(np.float64), np.nan)
    if not plan.query.keys and not len(values):  # HAVING or LIMIT 0 left no row
        return None
    if len(values) != plan.size:
        raise AssertionError("a release has one number for each of its keys")
    whole = plan.query.select[-1][1].kind is Kind.INTEGER
    exact = [Fraction(value) if abs(value) <= _LARGEST else None for value in values.tolist()]
    numbers = tuple(Fraction(round(each)) if whole and each is not None else each for each in exact)
    return numbers if plan.query.keys else numbers[0]


def _typical(part: PreparedQuery) -> Numbers:
    """Return numbers that stand for the noisy ones of a part before it runs."""
    return (Fraction(1),) * part.plan.size if part.plan.query.keys else Fraction(1)


def _parts(event: Event) -> tuple[tuple[Event, int], ...]:
    return event.parts if isinstance(event, Composed) else ((event, 1),)


def _expected(parts: Sequence[PreparedQuery]) -> tuple[Expected, ...]:
    """List the expected errors of all parts; equal names are numbered by their release."""
    listed = [(number, each) for number, part in enumerate(parts, 1) for each in part.expected]
    names = [each.name for _, each in listed]
    return tuple(
        replace(each, name=f"{each.name} of release {number}") if names.count(each.name) > 1 else each
        for number, each in listed
    )
