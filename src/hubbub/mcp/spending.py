"""The one place where a tool can spend: free if possible, else with consent, else not at all."""

import secrets
from dataclasses import dataclass
from fractions import Fraction

import mcp_types as types

from hubbub.answers.estimate import Estimate
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core import call as calls
from hubbub.curator.question import Question
from hubbub.errors import AssistantError, BudgetError, ParameterError, QueryError
from hubbub.mcp import consent
from hubbub.mcp.allowance import Allowance, PrivacyAmount
from hubbub.mcp.backend import Backend
from hubbub.mcp.consent import Approval, Approvals, Context

#: Analyses that pay now for answers later, or use up what was paid for: a person starts and asks those.
NOT_FOR_ASSISTANTS = frozenset({"above_threshold", "compare", "stream"})
#: The code of a query that is not free.
_NOT_FREE = "HB167"


@dataclass(frozen=True)
class Caller:
    """On whose behalf a tool is called.

    allowance  what the assistants of this person have spent of it
    allowed    what the person allowed them to spend without asking again
    """

    backend: Backend
    allowance: Allowance
    allowed: PrivacyAmount
    name: str = ""


@dataclass(frozen=True)
class SpendingRequest:
    """A query, or a call of an analysis, that may cost something."""

    sql: str
    options: Options
    key: str | None


@dataclass(frozen=True)
class Answered:
    """An answer, and whether this call paid for it."""

    release: Release
    charged: bool


async def answer(
    caller: Caller,
    request: SpendingRequest,
    context: Context,
    params: types.CallToolRequestParams,
    approvals: Approvals,
) -> Answered | types.InputRequiredResult:
    """Answer a query for free if that is possible, or with consent.

    Theorem (No charge without consent). What the calls of an assistant charge together is at most what the person
    allowed in advance, plus the costs that the person approved one by one.
    Proof    Every tool that can charge calls this function, and every call of the backend below either passes
             `free=True`, which charges nothing, or comes after consent to its cost: an approval for this tool, these
             arguments and this cost, used once, or a reservation in the allowance. The cost is that of the estimate,
             whose ε and δ are passed on as the options of the query, so that it costs no more.
    Assumes  the curator charges at most the ε and δ that a query names; the policy does not change between estimate
             and charge (if it does, `Allowance.settle` counts what was charged).
    Tested   tests/mcp/test_scripted_assistant.py::test_nothing_is_charged_without_consent
             tests/mcp/test_scripted_assistant.py::test_many_calls_at_once_spend_the_allowance_and_no_more
    """
    _refuse_analyses(request.sql)
    backend = caller.backend
    try:
        free = await backend.query(
            request.sql, request.options, key=request.key, free=True, request=secrets.token_hex(16)
        )
        return Answered(free, charged=False)
    except ParameterError as error:
        if error.code != _NOT_FREE:
            raise
    estimate = await backend.estimate(request.sql, request.options)
    if not estimate.admitted:
        raise AssistantError(
            "HB833",
            f"The budget does not admit this query: {estimate.refusal or estimate.budget()} Nothing was charged.",
            "Ask for less, or ask the data owner to raise the budget.",
        )
    cost = consent.cost(estimate)
    if caller.allowance.reserve(cost, caller.allowed):
        return await _pay(caller, request, estimate, secrets.token_hex(16), reserved=cost)
    if not consent.can_ask(context):
        raise _no_consent(caller, cost)
    text = Question(request.sql, **request.options).text()  # without comments, with the options that matter
    approval = await consent.ask(context, params, estimate, text, approvals)
    if not isinstance(approval, Approval):
        return approval
    if not approval.given:
        raise AssistantError(
            "HB831",
            f"The person did not approve this charge of {consent.shown(cost)}. Nothing was run or charged.",
            "Do not ask again for the same. Answer from what is free: recorded releases, estimates, public datasets.",
        )
    return await _pay(caller, request, estimate, approval.request, reserved=None)


async def _pay(
    caller: Caller, request: SpendingRequest, estimate: Estimate, name: str, *, reserved: PrivacyAmount | None
) -> Answered:
    """Charge and answer, at exactly the cost that was consented to."""
    options: Options = {**request.options, "epsilon": estimate.epsilon, "within": None, "delta": estimate.delta}
    if estimate.choice and estimate.noise in ("laplace", "gaussian"):  # chosen for a margin of error: it names it too
        options["noise"] = "gaussian" if estimate.noise == "gaussian" else "laplace"
    try:
        release = await caller.backend.query(request.sql, options, key=request.key, free=False, request=name)
    except (QueryError, ParameterError, BudgetError):
        # refused before any charge; after any other failure, and if this call is cancelled, the charge may stand
        if reserved is not None:
            caller.allowance.give_back(reserved)
        raise
    charges = [entry["sequence"] for entry in release.receipt.get("ledger", ())]
    if reserved is None:
        caller.allowance.note(charges)
        return Answered(release, charged=True)
    charged = PrivacyAmount(Fraction(release.epsilon), Fraction(release.delta))
    return Answered(release, charged=caller.allowance.settle(reserved, charges, charged))


def _refuse_analyses(sql: str) -> None:
    if calls.is_call(sql) and (name := calls.parse_call(sql).name) in NOT_FOR_ASSISTANTS:
        raise AssistantError(
            "HB832",
            f"{name} cannot be called by an assistant: it pays in advance for later answers, or uses what was paid for."
            " Nothing was run or charged.",
            "Ask the person to call it with `hubbub call` or in Python.",
        )


def _no_consent(caller: Caller, cost: PrivacyAmount) -> AssistantError:
    left = caller.allowance.left(caller.allowed)
    pure = " A query with delta=0 spends no δ, if it can be answered so." if cost.delta > left.delta else ""
    return AssistantError(
        "HB830",
        f"This answer costs {consent.shown(cost)}, and nobody has agreed to that. The allowance of this session has"
        f" {consent.shown(left)} left. Nothing was run or charged.",
        "Tell the person the cost and the expected error, and let them decide. They can allow an amount with"
        " `hubbub mcp --allow`, or with the header Hubbub-Allow of a server connection." + pure,
    )
