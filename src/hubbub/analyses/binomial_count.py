"""A count or sum with binomial noise, whose error has an end."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.scores import Score, plan_score
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import shares
from hubbub.core.events import Composed
from hubbub.core.numbers import DELTA_MIN, brief
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.binomial import Binomial
from hubbub.sql.aggregates.formula import TYPICAL_ROWS

_LEVEL = Fraction(95, 100)
SHARE = Fraction(1, 1000)  #: of the δ of the caps; a failure of probability δ adds up over queries


@dataclass(frozen=True, kw_only=True)
class BinomialCount(PreparedAnalysis):
    """A prepared count with binomial noise."""

    score: Score
    mechanism: Binomial

    def run(self, run: Run) -> Published:
        """Compute the count, and toss the coins."""
        noisy = self.score.integer(run).through(lambda value: self.mechanism.sample(value, run.source))
        run.progress(1.0, "done")
        step, half = float(self.score.step), float(self.mechanism.error(_LEVEL))
        value, most = noisy * step, self.mechanism.coins // 2
        output = Output("value", "real", [value], [(noisy - half) * step], [(noisy + half) * step])
        return Published((output,), {"coins": self.mechanism.coins, "error_at_most": most * step})


def binomial_count(setting: Setting, *, table: str, query: str) -> BinomialCount:
    """Prepare a count or sum with binomial noise: heads among fair coins. Its error is never more than half of them.

    table  the private table that the query reads
    query  SQL that returns one COUNT or SUM

    A thousandth of the δ that the query may use is enough: more coins cost little.

    Theorem (Count with binomial noise). The answer is (ε, δ)-private with the exact δ of the coins.
    Proof    Scores, and the theorem of the binomial mechanism.
    Charges  one BinomialEvent.
    Tested   tests/analyses/test_binomial_count.py::test_a_count_with_coins_is_charged_with_its_exact_delta
    """
    score = plan_score(setting, query, what="query")
    if [each.name for each in score.protection.tables if each.unit is not None] != [setting.table(table).name]:
        raise QueryError(
            "HB670", f"The query reads other private tables than {table}.", "Name the table that it reads."
        )
    allowed = max(setting.delta * SHARE, min(setting.delta, DELTA_MIN))
    if not allowed:
        raise ParameterError("HB553", "Binomial noise needs a δ.", "Set a δ on the budget, or use SELECT.")
    try:
        # privacy filters reserve the rest of δ
        part = allowed * shares.OWN
        mechanism = Binomial.from_epsilon(sensitivity=score.sensitivity, epsilon=setting.epsilon, delta=part)
    except ParameterError as error:
        raise QueryError("HB544", error.message, error.remedy) from None
    half = float(mechanism.error(_LEVEL) * score.step)
    return BinomialCount(
        protection=score.protection,
        epsilon=setting.epsilon,
        delta=allowed,
        event=Composed(((mechanism.event, 1),)),
        noise="binomial",
        derivation=(
            score.measured,
            f"one unit moves it by at most {brief(score.sensitivity * score.step)}",
            f"{mechanism.coins:,} coins: the error is at most {brief(mechanism.coins // 2 * score.step)}",
        ),
        expected=(Expected("value", half, None, half / (TYPICAL_ROWS * float(score.row))),),
        cells=1,
        statements=(score.sql,),
        score=score,
        mechanism=mechanism,
    )
