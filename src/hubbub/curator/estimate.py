"""The estimate of a prepared analysis: its privacy cost and expected errors."""

from collections.abc import Sequence

from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.status import BudgetStatus
from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.estimate import Estimate, FreeAnswer, describe_target
from hubbub.answers.left_out import LeftOut
from hubbub.core.disclosure import DisclosureRule, disclosure_sentence


def make_estimate(
    prepared: PreparedAnalysis,
    *,
    statuses: Sequence[BudgetStatus],
    within: str = "",
    left_out: LeftOut | None = None,
    units: int | None = None,
    rows: int | None = None,
    free: FreeAnswer | None = None,
    choice: str = "",
    work: str = "",
    review: str = "",
) -> Estimate:
    """Make the estimate of an analysis; SQL is shown only where it does not depend on noisy answers.

    `statuses` are the budgets that the analysis would be charged to; `units` and `rows` are the known
    numbers of privacy units and rows, `free` is what earlier releases tell, `choice` says why its noise was chosen,
    `work` what it takes, and `review` who must approve the answer.
    """
    loss = privacy_cost(prepared.event)
    refusals = [refusal for status in statuses if (refusal := status.refusal(loss)) is not None]
    fits = [count for status in statuses if (count := status.how_many(loss)) is not None]
    admitted = not refusals
    return Estimate(
        datasets=tuple(table.name for table in prepared.private),
        epsilon=prepared.epsilon,
        delta=prepared.delta,
        noise=prepared.noise,
        cells=prepared.cells,
        expected=prepared.expected,
        derivation=prepared.derivation,
        admitted=admitted,
        largest=min((status.largest(admitted=admitted) for status in statuses), default=prepared.epsilon),
        scaling=prepared.errors_by_price,
        sql=prepared.statements,
        target=describe_target(within.strip(), prepared.expected) if "%" in within else "",
        left_out=left_out,
        groups=prepared.group_threshold(units),
        intervals=prepared.joint_intervals(),
        fits=min(fits) if fits and len(fits) == len(statuses) else None,
        units=units,
        choice=choice,
        work=work,
        review=review,
        disclosure=_disclosure(prepared),
        never_equal=prepared.never_equal(),
        group_rows=None if rows is None or not prepared.cells else max(1, rows // prepared.cells),
        free=free,
        refusal=" ".join(f"{refusal.message} {refusal.remedy}" for refusal in refusals[:1]),
    )


def _disclosure(prepared: PreparedAnalysis) -> str:
    form = DisclosureRule.strictest(table.disclosure for table in prepared.private).form
    analysis = bool(form) and prepared.receipt_facts.get("analysis", "batch") != "batch"
    return disclosure_sentence(form, analysis=analysis)
