"""Above threshold: many questions over time, each answered only by whether it reaches a threshold.

    CALL above_threshold(table => 'visits', name => 'alarm', threshold => 100)     charged once
    CALL compare(table => 'visits', name => 'alarm', query => 'SELECT COUNT(*) …')  charged nothing more

A session halts after a fixed number of answers that are above. `hubbub.curator.thresholds` keeps it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Any, Self

from hubbub.analyses.base import PreparedAnalysis, Protection, Published, Run, Setting
from hubbub.analyses.programs.inputs import limits
from hubbub.analyses.scores import Score, plan_score
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.enumeration import worst_over
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.sparse_vector import SparseVector
from hubbub.noise.source import RandomSource

FORMAT = 1
MAX_QUESTIONS = 100_000
#: Steps of the largest change by one unit, where that change is no whole number.
_STEPS = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_LEVEL = Fraction(95, 100)
_LARGEST = Fraction(10**12)


@dataclass(frozen=True, slots=True)
class ThresholdTerms:
    """What a session was charged for: its mechanism, in steps, and the default threshold."""

    name: str
    threshold: Fraction
    step: Fraction
    mechanism: SparseVector
    epsilon: Fraction
    groups: int | None
    rows: int | None

    @property
    def most(self) -> Fraction:
        """The most that one privacy unit may change an answer."""
        return self.mechanism.sensitivity * self.step

    def steps(self, threshold: Fraction) -> int:
        """Give the least number of steps that reaches a threshold."""
        return ceil(threshold / self.step)

    def to_json(self) -> dict[str, Any]:
        """Give the terms as JSON."""
        noise = self.mechanism
        return {
            "format": FORMAT,
            "name": self.name,
            "threshold": str(self.threshold),
            "step": str(self.step),
            "sensitivity": noise.sensitivity,
            "monotone": noise.monotone,
            "threshold_scale": str(noise.threshold_scale),
            "query_scale": str(noise.query_scale),
            "hits": noise.hits,
            "questions": noise.queries,
            "epsilon": str(self.epsilon),
            "groups": self.groups,
            "rows": self.rows,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read the terms from JSON."""
        noise = SparseVector(
            sensitivity=form["sensitivity"],
            monotone=form["monotone"],
            threshold_scale=Fraction(form["threshold_scale"]),
            query_scale=Fraction(form["query_scale"]),
            hits=form["hits"],
            queries=form["questions"],
        )
        threshold, step, epsilon = (Fraction(form[name]) for name in ("threshold", "step", "epsilon"))
        return cls(form["name"], threshold, step, noise, epsilon, form["groups"], form["rows"])


@dataclass(frozen=True, kw_only=True)
class ThresholdSession(PreparedAnalysis):
    """A session to be charged: opening it samples no noise and reads no data."""

    terms: ThresholdTerms

    def run(self, run: Run) -> Published:
        """Publish the terms."""
        run.progress(1.0, "charged")
        return Published((Output("session", "text", [self.terms.name]),), {"terms": self.terms.to_json()})

    def enumerated(self, model: Mapping[str, Any]) -> tuple[str, bool]:
        """Enumerate the transcripts of two questions that move by at most 1, at the released scales."""
        noise = ThresholdTerms.read(model["terms"]).mechanism
        small = SparseVector(
            sensitivity=1,
            monotone=noise.monotone,
            threshold_scale=noise.threshold_scale / noise.sensitivity,
            query_scale=noise.query_scale / noise.sensitivity,
            hits=min(noise.hits, 2),
            queries=2,
        )
        moves = [(1, 1), (0, 1), (1, 0)] if noise.monotone else list(product((-1, 0, 1), repeat=2))
        pairs = [((0, 0), move) for move in moves]
        worst = worst_over(pairs, small.distribution).bounds[1]
        charged = noise.loss.epsilon
        line = f"enumerated: the answers to two questions lose at most {float(worst):.6g} of ε = {brief(charged)}"
        return line, worst <= charged


def above_threshold(
    setting: Setting,
    *,
    table: str,
    name: str,
    threshold: Fraction,
    hits: int = 1,
    questions: int = 1000,
    sensitivity: Fraction | None = None,
    monotone: bool = True,
) -> ThresholdSession:
    """Prepare a session of questions that are answered only by whether they reach a threshold, charged once.

    name         names the session in CALL compare(…); it cannot be used again for another one
    hits         the session halts after so many answers that are above
    questions    the most questions that are answered
    sensitivity  the most that one privacy unit may change an answer (default: what a COUNT(*) needs)
    monotone     FALSE to allow sums of negative numbers, with more noise
    """
    dataset, bounds = setting.table(table), limits(setting, setting.table(table))
    if not _NAME.fullmatch(name):
        raise QueryError(
            "HB672", "The name of a session has 1 to 63 letters a–z, digits, - and _.", "Use such as name => 'alarm'."
        )
    counted = Fraction(1 if bounds is None else bounds.rows)
    most = counted if sensitivity is None else numbers.in_range(sensitivity, "sensitivity", 1 / _LARGEST, _LARGEST)
    whole = most.denominator == 1
    numbers.in_range(abs(threshold), "threshold", Fraction(0), _LARGEST)
    mechanism = SparseVector.from_epsilon(
        sensitivity=int(most) if whole else _STEPS,
        monotone=monotone,
        relation=dataset.relation,
        hits=numbers.integer(hits, "hits", 1, 1000),
        queries=numbers.integer(questions, "questions", hits, MAX_QUESTIONS),
        epsilon=setting.epsilon,
    )
    step = Fraction(1) if whole else most / _STEPS
    terms = ThresholdTerms(name, threshold, step, mechanism, setting.epsilon, setting.groups, setting.rows)
    half = float(mechanism.error(_LEVEL) * step)
    changed = "all answers in one direction" if mechanism.monotone else "answers in either direction"
    return ThresholdSession(
        protection=Protection((dataset,), dataset.relation, bounds),
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(((mechanism.event, 1),)),
        noise="Laplace",
        derivation=(
            f"up to {mechanism.queries} questions; halts after {mechanism.hits} above {brief(threshold)}",
            f"one unit moves an answer by at most {brief(most)}, {changed}",
            f"threshold: Laplace noise of scale {brief(mechanism.threshold_scale * step)}, sampled once, kept secret",
            f"each question: Laplace noise of scale {brief(mechanism.query_scale * step)}",
        ),
        expected=(Expected("distance from the threshold", half, None, half / (1000 * float(most / counted))),),
        terms=terms,
    )


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session at one question: its charge and terms, the hits so far, and the secret noise of its threshold."""

    charge: int
    terms: ThresholdTerms
    question: int
    hits: int
    bar: int = field(repr=False)


def threshold_noise(mechanism: SparseVector, source: RandomSource) -> int:
    """Sample the noise of the threshold, once for all questions of a session."""
    return Laplace(sensitivity=mechanism.sensitivity, scale=mechanism.threshold_scale).sample(0, source)


@dataclass(frozen=True, kw_only=True)
class Comparison(PreparedAnalysis):
    """One question of a session. Its event is empty: the session was charged for all answers.

    Theorem (A session answers what was charged). The answers of a session, with the questions chosen in any way by the
    answers before and on data that changes, cost the session's charge.
    Proof    An answer is whether q + ν ≥ t + ρ, with ρ sampled once for the session and ν for the question: the sparse
             vector technique on q − t. By `covers` the exact value moves by at most D·step, so its floor in steps, q,
             moves by at most D, and keeps its direction. Neighbors differ in one unit in every version of the data.
             An answer that was not recorded is summed over, and is no hit.
    Assumes  at most `hits` answers that are above and `questions` answers are recorded (`curator.thresholds`).
    Charges  nothing.
    Tested   tests/analyses/test_threshold.py::test_an_answer_is_the_comparison_of_noisy_values
             tests/analyses/test_threshold.py::test_the_loss_of_all_transcripts_is_within_the_charge
    """

    score: Score
    threshold: Fraction | None
    session: OpenSession | None = None

    def covers(self, terms: ThresholdTerms) -> None:
        """Refuse a question that moves further than its session was charged for."""
        moved = self.score.sensitivity * self.score.step
        if moved > terms.most:
            raise QueryError(
                "HB672",
                f"One privacy unit can change this query by {brief(moved)}, more than the {brief(terms.most)} of its "
                "session.",
                "Ask a COUNT(DISTINCT …), or open a session with a larger sensitivity.",
            )
        if terms.mechanism.monotone and not self.score.monotone:
            raise QueryError(
                "HB672",
                "A privacy unit can lower this query, and its session allows only queries that grow.",
                "Open a session with monotone => FALSE.",
            )

    def receipt(self) -> dict[str, Any]:
        """Name the charge of the session."""
        return super().receipt() | ({} if self.session is None else {"session": self.session.charge})

    def run(self, run: Run) -> Published:
        """Compare the noisy value with the noisy threshold."""
        session = self.session
        if session is None:
            raise AssertionError("a comparison needs its session")
        terms = session.terms
        mechanism = terms.mechanism
        noise = Laplace(sensitivity=mechanism.sensitivity, scale=mechanism.query_scale)
        bar = terms.steps(terms.threshold if self.threshold is None else self.threshold)
        above = self.score.integer(run).through(
            lambda value: noise.sample(floor(value * self.score.step / terms.step) - bar, run.source) >= session.bar
        )
        run.progress(1.0, "compared")
        left = mechanism.hits - session.hits - above
        outputs = (
            Output("above", "boolean", [above]),
            Output("question", "integer", [session.question]),
            Output("hits left", "integer", [left]),
        )
        return Published(outputs, {"above": above, "question": session.question, "hits_left": left})


def compare(setting: Setting, *, table: str, name: str, query: str, threshold: Fraction | None = None) -> Comparison:
    """Prepare one question of a session: whether a COUNT or SUM reaches its threshold. Charges nothing more.

    name       the name of the session, opened by CALL above_threshold(…)
    query      SQL that returns one COUNT or SUM over the table of the session
    threshold  another threshold than that of the session
    """
    score = plan_score(setting, query, what="query")
    private = [each.name for each in score.protection.tables if each.unit is not None]
    if private != [setting.table(table, bounded=False).name]:
        raise QueryError("HB672", f"The query reads other private tables than {table}.", "Ask about this table alone.")
    if threshold is not None:
        numbers.in_range(abs(threshold), "threshold", Fraction(0), _LARGEST)
    relation = "one unit more or less" if score.protection.relation is Relation.ADD_REMOVE else "one unit replaced"
    return Comparison(
        protection=score.protection,
        epsilon=Fraction(0),
        delta=Fraction(0),
        event=Composed(()),
        noise="Laplace",
        derivation=(
            f"free: session {name} paid for all of its answers",
            score.measured,
            f"{relation} moves it by at most {brief(score.sensitivity * score.step)}",
        ),
        expected=(),
        statements=(score.sql,),
        score=score,
        threshold=threshold,
    )
