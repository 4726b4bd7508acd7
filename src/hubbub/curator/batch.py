"""A batch: many questions that are planned together, with one price, one charge and one run.

    CALL batch(queries => ['SELECT COUNT(*) FROM visits WHERE age < 18', 'SELECT region, COUNT(*) …', …])

Equal questions share one draw. Counts over cells of one table share measurements (`analyses.tables.shared_counts`); all
other questions, and analyses, are run one by one. No question is less exact than if the price were split evenly, or by
the weights that are given.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Protection, Published, Run
from hubbub.analyses.tables.shared_counts import (
    SharedBlock,
    SharedCounts,
    SharedQuestion,
    can_be_measured,
    ratios,
    share_counts,
)
from hubbub.answers.batch import BATCH, batch_model
from hubbub.answers.estimate import Expected
from hubbub.answers.left_out import LeftOut
from hubbub.answers.release import Output
from hubbub.core import call as calls
from hubbub.core import numbers
from hubbub.core.call import AnalysisCall
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.reals import floor_to
from hubbub.core.schema import Table
from hubbub.curator import receipt as receipts
from hubbub.curator.batch_questions import (
    Bound,
    PartOfRun,
    Rendering,
    bind_question,
    in_question,
    prepare_call,
    read_questions,
)
from hubbub.curator.one_price import at_one_price, fits
from hubbub.curator.queries import prepare_queries, selects_groups
from hubbub.curator.query import PreparedQuery, prepare_query
from hubbub.curator.question import Question
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.sql.allocation import deviations_at_level
from hubbub.sql.finish import declared_keys
from hubbub.sql.linear_counts import linear_question
from hubbub.sql.noise import Noise
from hubbub.sql.noise_budget import noise_budgets
from hubbub.sql.plan import Plan
from hubbub.sql.presentation import present
from hubbub.sql.query import Queries

#: Counts with noise of a smaller standard deviation are exact: weights need not tell them apart.
_EXACT = 1e-3

#: Gives the δ that may be used, for tables and whether groups are selected.
Delta = Callable[[Sequence[Table], bool], Fraction]


@dataclass(frozen=True)
class SharedAnswer:
    """A question that is told from shared measurements: its plan, for everything after the noise, and its block.

    ratio  how its margins of error compare with those of an even split
    """

    plan: Plan
    block: SharedBlock
    ratio: float
    left_out: LeftOut

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The expected errors."""
        return tuple(
            replace(each, plus_minus=each.plus_minus * self.ratio, relative=each.relative * self.ratio)
            for each in self.plan.outputs
        )


@dataclass(frozen=True, kw_only=True)
class PreparedBatch(PreparedAnalysis):
    """Planned questions with one price.

    Theorem (Batches). All answers of a batch, and everything that is computed from them, cost at most the one event
    that is charged before the first statement runs.
    Proof    The event lists the noise of each block of shared measurements, for the sensitivity of its product
             strategy, and the events of all questions that are drawn one by one; composition adds up their losses,
             also where they read the same people's rows. Answers from a block are computed from its noisy sums alone.
             Which questions share, with what strategies and shares, follows from texts and declarations.
    Assumes  "Product strategies", "One bound for all cells", and the theorems of `plan` for each other question.
    Charges  `event`, on every private table that some question reads: one entry each.
    Tested   tests/curator/test_batch.py::test_neighbors_stay_within_the_sensitivity_that_a_batch_was_charged_for
             tests/curator/test_batch.py::test_a_batch_is_charged_once_and_draws_once

    answers    of each distinct question: an analysis of its own, or what it is told from
    questions  of each question: its text, and the place of its answer
    """

    answers: tuple[PreparedAnalysis | SharedAnswer, ...]
    questions: tuple[tuple[str, int], ...]
    shared: SharedCounts | None
    margins: tuple[tuple[float | None, float | None], ...]  #: of each answer: planned, and with an even split

    def left_out(self) -> LeftOut:
        """State the tightest bounds of all questions; each answer states its own."""
        stated = [each.left_out if isinstance(each, SharedAnswer) else each.left_out() for each in self.answers]
        first, clamped = stated[0], {clamp: None for each in stated for clamp in each.clamped}
        if all(each == first for each in stated):
            return first
        groups = [each.groups for each in stated if each.groups is not None]
        rows = [each.rows for each in stated if each.rows is not None]
        return LeftOut(
            " and ".join(table.name for table in self.private),
            next((each.unit for each in stated if each.unit is not None), None),
            min(groups, default=None),
            min(rows, default=None),
            filtered=True,
            clamped=tuple(clamped),
        )

    def run(self, run: Run) -> Published:
        """Measure each block, then run the other questions one by one."""
        answers: list[Mapping[str, Any]] = []
        estimated = self._measured(run)
        for place, each in enumerate(self.answers):
            run.progress(0.5 + 0.5 * place / len(self.answers), "answering questions")
            if isinstance(each, SharedAnswer):
                sums = [
                    np.concatenate([each.block.answer(estimated[id(each.block)], count) for count in measure])
                    for measure in self._linear(each, place).measures
                ]
                answer = present(each.plan, declared_keys(each.plan), sums, [], raw=False)
                columns, ratio = receipts.outputs(answer)
                answers.append(batch_model(columns, ratio, {}, each.left_out))
            else:
                found = each.run(PartOfRun(run, 0.5 + 0.5 * place / len(self.answers), 0.5 / len(self.answers)))
                left_out = found.left_out or each.left_out()
                answers.append(batch_model(found.outputs, found.ratio or (), found.model, left_out, each.name))
        return Published(self._summary(answers), {"answers": answers, "questions": [list(q) for q in self.questions]})

    def _linear(self, answer: SharedAnswer, place: int) -> Any:
        return answer.block.questions[answer.block.places.index(place)].question

    def _measured(self, run: Run) -> dict[int, Any]:
        """Measure all blocks with noise."""
        found: dict[int, Any] = {}
        if self.shared is not None:
            for place, (block, mechanism) in enumerate(zip(self.shared.blocks, self.shared.mechanisms, strict=True)):
                run.progress(0.5 * place / len(self.shared.blocks), "measuring")
                table = run.ask(block.counted.sql)
                found[id(block)] = table.through(partial(block.through, mechanism=mechanism, run=run))
        return found

    def _summary(self, answers: Sequence[Mapping[str, Any]]) -> tuple[Output, ...]:
        """Give one row for each question."""
        places = [place for _, place in self.questions]
        return (
            Output("question", "integer", list(range(1, len(places) + 1))),
            Output("rows", "integer", [len(answers[place]["columns"][0]["values"]) for place in places]),
            Output("plus_minus", "real", [self.margins[place][0] for place in places]),
            Output("split_evenly", "real", [self.margins[place][1] for place in places]),
        )


def is_batch(text: str) -> bool:
    """Tell whether a call is a batch."""
    return calls.is_call(text) and calls.parse_call(text).name == BATCH


def prepare_batch(
    call: AnalysisCall,
    tables: Mapping[str, Table],
    rendering: Rendering,
    delta_of: Delta,
    *,
    epsilon: Fraction,
    most: int,
) -> PreparedBatch:
    """Plan all questions of a batch, without reading data."""
    texts, given = read_questions(call)
    bound = [bind_question(number, text, tables) for number, text in enumerate(texts, 1)]
    names: dict[str, int] = {}
    questions = tuple((text, names.setdefault(Question(text).text(), len(names))) for text in texts)
    first = [next(i for i, (_, place) in enumerate(questions) if place == wanted) for wanted in range(len(names))]
    distinct, own = [bound[i] for i in first], [texts[i] for i in first]
    weights = [max(w for w, (_, place) in zip(given, questions, strict=True) if place == i) for i in range(len(names))]

    def planner(epsilon: Fraction, delta: Fraction, noise: Noise | None = None) -> _Planner:
        return _Planner(tuple(distinct), tuple(own), tuple(weights), tables, rendering, epsilon, delta, most, noise)

    delta = _delta(distinct, planner, tables, delta_of, epsilon)
    for tenths in range(10, 0, -1):
        price = epsilon * Fraction(tenths, 10)
        found = at_one_price(
            lambda noise, price=price: _planned(planner(price, delta, noise), questions),  # type: ignore[misc]
            epsilon=epsilon,
            delta=delta,
        )
        # analyses choose their noise themselves, and different kinds may cost more together than their shares
        if not delta or fits(found.event, epsilon, delta):
            return replace(found, epsilon=epsilon)
    raise QueryError(
        "HB841", "The questions of this batch do not fit into its privacy cost.", "Ask some of them by themselves."
    )


def _delta(
    distinct: Sequence[Bound],
    planner: Callable[[Fraction, Fraction], "_Planner"],
    tables: Mapping[str, Table],
    delta_of: Delta,
    epsilon: Fraction,
) -> Fraction:
    """Give the δ that a batch may use, by the tables that its questions read."""
    parts = [query for each in distinct for query in (each.parts if isinstance(each, Queries) else (each,))]
    queries = [each for each in parts if not isinstance(each, AnalysisCall)]
    read = [table for each in queries for table in each.tables]
    for place, each in enumerate(distinct):
        if isinstance(each, AnalysisCall):
            table = tables.get(str(each.arguments.get("table")))
            delta = delta_of([] if table is None else [table], False)  # noqa: FBT003 - positional in its type
            read += planner(epsilon, delta).alone(place, Fraction(1, len(distinct))).tables
    return delta_of(read, any(map(selects_groups, queries)))


def _planned(batch: "_Planner", questions: tuple[tuple[str, int], ...]) -> PreparedBatch:
    distinct, most = batch.bound, batch.most
    evenly = [batch.alone(place, batch.share_of([place])) for place in range(len(distinct))]
    cells = sum(evenly[place].cells for _, place in questions)
    if cells > most:
        raise QueryError(
            "HB791",
            f"The answers of this batch have {cells:,} rows in all; the maximum is {most:,}.",
            "Split it into several batches.",
        )
    shared, share = batch.shared(evenly)
    places = {place for block in shared.blocks for place in block.places} if shared is not None else set()
    rest = batch.share_of([place for place in range(len(distinct)) if place not in places])
    own = {
        place: evenly[place] if shared is None else batch.alone(place, (1 - share) * batch.share_of([place]) / rest)
        for place in range(len(distinct))
        if place not in places
    }
    told = {} if shared is None else _told(shared, {place: evenly[place] for place in places})
    answers = tuple(own[place] if place in own else told[place] for place in range(len(distinct)))
    return _prepared(batch, answers, questions, shared, evenly)


@dataclass(frozen=True)
class _Planner:
    """The distinct questions of a batch, and everything that they are planned with."""

    bound: tuple[Bound, ...]
    texts: tuple[str, ...]
    weights: tuple[Fraction, ...]
    tables: Mapping[str, Table]
    rendering: Rendering
    epsilon: Fraction
    delta: Fraction
    most: int
    noise: Noise | None  #: of everything; None: whatever is best for each part

    def share_of(self, places: Sequence[int]) -> Fraction:
        """Give the share of the price that some questions would get by their weights."""
        return sum((self.weights[place] for place in places), Fraction(0)) / sum(self.weights)

    def alone(self, place: int, share: Fraction) -> PreparedAnalysis:
        """Plan one question by itself, for a share of the price."""
        query, question = self.bound[place], Question(self.texts[place])
        price = {"epsilon": _part(self.epsilon, share), "delta": _part(self.delta, share)}
        try:
            if isinstance(query, AnalysisCall):
                return self._analysis(query, **price)
            if isinstance(query, Queries):
                return prepare_queries(query, question, self.rendering, most=self.most, noise=self.noise, **price)
            options = self.rendering(query.tables)
            return prepare_query(query, question, options, most=self.most, noise=self.noise, **price)
        except (QueryError, ParameterError) as error:
            raise in_question(place + 1, error) from None

    def _analysis(self, call: AnalysisCall, *, epsilon: Fraction, delta: Fraction) -> PreparedAnalysis:
        """Plan an analysis; where all noise shall be Laplace, without δ if it can do without."""
        if self.noise == "laplace" and delta:
            with suppress(QueryError, ParameterError):
                return self._analysis(call, epsilon=epsilon, delta=Fraction(0))
        return prepare_call(call, self.tables, self.rendering, epsilon=epsilon, delta=delta, most=self.most)

    def shared(self, evenly: Sequence[PreparedAnalysis]) -> tuple[SharedCounts | None, Fraction]:
        """Find the questions that share measurements, and their share of the price.

        Questions that would be less exact than with an even split are left out, until there are none.
        """
        linear = {place: self._linear(each) for place, each in enumerate(evenly)}
        sharing = {place: each for place, each in linear.items() if each is not None}
        while len(sharing) > 1:
            share = self.share_of([*sharing])
            found = self._measured(sharing, share)
            compared = {} if found is None else ratios(found, sharing)
            if found is not None and max(compared.values()) <= 1:
                return self._rebalanced(sharing, found, share)
            worse = {place for place in sharing if found is None or compared[place] > 1}
            sharing = {place: each for place, each in sharing.items() if place not in worse}
        return None, Fraction(0)

    def _rebalanced(
        self, sharing: Mapping[int, SharedQuestion], found: SharedCounts, share: Fraction
    ) -> tuple[SharedCounts, Fraction]:
        """Give a part of what sharing saves to the questions that are drawn one by one."""
        rest = len(self.bound) - len(sharing)
        if not rest:
            return found, Fraction(1)
        saved = float(np.sqrt(np.mean([each**2 for each in ratios(found, sharing).values()])))
        # least Σ variances, each relative to its own with an even split, for noise whose variance falls with 1/share²
        wanted = [(len(sharing) * (saved * float(share)) ** 2) ** (1 / 3), (rest * float(1 - share) ** 2) ** (1 / 3)]
        least = max(ratios(found, sharing).values()) * float(share) * 1.001
        better = Fraction(round(max(wanted[0] / sum(wanted), least) * 10**6), 10**6)
        if not better < share:
            return found, share
        other = self._measured(sharing, better)
        kept = other is not None and max(ratios(other, sharing).values()) <= 1
        return (other, better) if kept and other is not None else (found, share)

    def _measured(self, sharing: Mapping[int, SharedQuestion], share: Fraction) -> SharedCounts | None:
        budgets = noise_budgets(_part(self.epsilon, share), _part(self.delta, share), self.noise)
        tables = {each.question.table.name: each.question.table for each in sharing.values()}
        options = {name: self.rendering([table]) for name, table in tables.items()}
        return share_counts(sharing, budgets, self.tables, options)

    def _linear(self, planned: PreparedAnalysis) -> SharedQuestion | None:
        if not isinstance(planned, PreparedQuery):
            return None
        question = linear_question(planned.plan)
        if question is None or not can_be_measured(question):
            return None
        return SharedQuestion(question, tuple(max(each.deviation, _EXACT) for each in planned.plan.measures))


def _told(shared: SharedCounts, evenly: Mapping[int, PreparedAnalysis]) -> dict[int, SharedAnswer]:
    """Plan what happens after the noise: intervals are those of Gaussian noise that is at least as wide."""
    answers = {}
    for block in shared.blocks:
        table = block.counted.table
        unit = None if table.unit is None else table.unit.column
        left_out = LeftOut(table.name, unit, rows=block.counted.contribution if unit is not None else None)
        for place in block.places:
            plan = evenly[place].plan
            if plan is None:
                raise AssertionError("only planned queries share measurements")
            factor = deviations_at_level(shared.budget.noise) / deviations_at_level("gaussian")
            wide = [Fraction(factor * deviation) for deviation in shared.deviations(place)]
            stands = tuple(
                replace(each, mechanism=Gaussian(sensitivity_squared=1, variance=max(own**2, numbers.SCALE_MIN**2)))
                for each, own in zip(plan.measures, wide, strict=True)
            )
            even = [each.deviation * deviations_at_level(plan.noise) for each in plan.measures]
            ratio = max(
                float(own) * deviations_at_level("gaussian") / other for own, other in zip(wide, even, strict=True)
            )
            said = replace(left_out, filtered=True) if unit is not None else left_out
            answers[place] = SharedAnswer(replace(plan, measures=stands, noise="gaussian"), block, ratio, said)
    return answers


def _prepared(
    batch: _Planner,
    answers: tuple[PreparedAnalysis | SharedAnswer, ...],
    questions: tuple[tuple[str, int], ...],
    shared: SharedCounts | None,
    evenly: Sequence[PreparedAnalysis],
) -> PreparedBatch:
    own = [each for each in answers if not isinstance(each, SharedAnswer)]
    if len({each.relation for each in evenly}) > 1:
        raise QueryError(
            "HB792",
            "The tables of this batch have different neighboring relations.",
            "Put questions about each kind of table into a batch of their own.",
        )
    noises = () if shared is None else shared.mechanisms
    events: list[tuple[Event, int]] = [(each.event, 1) for each in noises]
    for each in own:
        events += each.event.parts if isinstance(each.event, Composed) else ((each.event, 1),)
    tables = {table.name: table for each in evenly for table in each.tables}
    gaussian = shared is not None and shared.budget.noise == "gaussian"
    margins = tuple(
        (_margin(each.expected), _margin(even.expected)) for each, even in zip(answers, evenly, strict=True)
    )
    return PreparedBatch(
        name=BATCH,
        protection=Protection(tuple(tables.values()), evenly[0].relation, None),
        epsilon=batch.epsilon,
        delta=batch.delta if gaussian or any(each.delta for each in own) else Fraction(0),
        event=Composed(tuple(events)),
        noise=" and ".join(
            dict.fromkeys([*([] if shared is None else [shared.budget.noise]), *(e.noise for e in own)])
        ),
        derivation=_derivation(answers, questions, shared, margins, weighted=len(set(batch.weights)) > 1),
        expected=_expected(answers),
        cells=sum(each.cells for each in evenly),
        statements=(
            *(() if shared is None else (block.counted.sql for block in shared.blocks)),
            *(text for each in own for text in each.statements),
        ),
        answers=answers,
        questions=questions,
        shared=shared,
        margins=margins,
    )


def _derivation(
    answers: Sequence[PreparedAnalysis | SharedAnswer],
    questions: Sequence[tuple[str, int]],
    shared: SharedCounts | None,
    margins: Sequence[tuple[float | None, float | None]],
    *,
    weighted: bool,
) -> tuple[str, ...]:
    split = "by weights" if weighted else "evenly"
    lines = [f"{len(questions)} questions, of which {len(answers)} are different; the price is charged once"]
    for block, mechanism in zip(*((), ()) if shared is None else (shared.blocks, shared.mechanisms), strict=True):
        names = ", ".join(column.name for column in block.counted.columns) or "nothing"
        moved = block.sensitivity
        noise = (
            f"moves by at most √{moved.l2_squared:,} (L2); Gaussian noise of variance {brief(mechanism.variance)}"
            if isinstance(mechanism, Gaussian)
            else f"moves by at most {moved.l1:,} (L1); Laplace noise of scale {brief(mechanism.scale)}"
        )
        most = block.counted.contribution
        unit = None if block.counted.table.unit is None else block.counted.table.unit.column
        kept = "each row is its own unit" if unit is None else f"a unit counts with at most {most} rows in all of it"
        lines.append(
            f"rows of {block.counted.table.name} by {names}: {block.strategy.sums:,} weighted sums for "
            f"{len(block.places)} questions; {kept}; {noise}"
        )
    for number, (_, place) in enumerate(questions, 1):
        planned, even = margins[place]
        how = "from the measurements" if isinstance(answers[place], SharedAnswer) else "drawn by itself"
        if planned is not None and even is not None:
            lines.append(f"question {number}: ±{planned:.4g}, {how}; ±{even:.4g} with the price split {split}")
        else:
            lines.append(f"question {number}: {how}")
        answer = answers[place]
        if isinstance(answer, PreparedAnalysis) and answer.name:
            lines += [f"question {number}, {answer.name}: {line}" for line in answer.derivation]
    return tuple(lines)


def _margin(expected: Sequence[Expected]) -> float | None:
    """Give the largest margin of error of one question, if all are known."""
    return max((each.plus_minus for each in expected), default=None)


def _expected(answers: Sequence[PreparedAnalysis | SharedAnswer]) -> tuple[Expected, ...]:
    return tuple(
        replace(one, name=f"{one.name} of question {place}")
        for place, each in enumerate(answers, 1)
        for one in each.expected
    )


def _part(whole: Fraction, share: Fraction) -> Fraction:
    """Return a share, rounded down where the ledger could not add up the exact one."""
    part = whole * share
    return part if part.denominator <= numbers.MAX_DENOMINATOR else floor_to(part)
