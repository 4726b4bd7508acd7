"""The estimate of a prepared analysis: its privacy cost and expected errors."""

from fractions import Fraction

from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.estimate import Estimate, describe_target
from hubbub.answers.left_out import LeftOut


def make_estimate(
    prepared: PreparedAnalysis, *, admitted: bool, largest: Fraction, within: str = "", left_out: LeftOut | None = None
) -> Estimate:
    """Make the estimate of an analysis; SQL is shown only where it does not depend on noisy answers."""
    return Estimate(
        datasets=tuple(table.name for table in prepared.private),
        epsilon=prepared.epsilon,
        delta=prepared.delta,
        noise=prepared.noise,
        cells=prepared.cells,
        expected=prepared.expected,
        derivation=prepared.derivation,
        admitted=admitted,
        largest=largest,
        scaling=tuple((each.epsilon, each.expected) for each in prepared.scaling()),
        sql=prepared.statements,
        target=describe_target(within.strip(), prepared.expected) if "%" in within else "",
        left_out=left_out,
    )
