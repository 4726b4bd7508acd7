"""Consent: a person approves one charge, or allows an amount in advance; without either, nothing is charged.

Two ways to ask the person exist. A client of protocol 2026-07-28 gets the question as the result of its call, and makes
the call again with the answer; earlier clients are asked while the call waits. In both, the person sees the cost before
the text of the query, which the model wrote.
"""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp_types.version import is_version_at_least

from hubbub.answers.estimate import Estimate, margin
from hubbub.core.numbers import brief
from hubbub.core.odds import consequence
from hubbub.mcp.allowance import PrivacyAmount
from hubbub.mcp.quote import quoted

Context = ServerRequestContext[Any, Any]

#: The first protocol version in which a question is the result of a call.
_QUESTION_IS_A_RESULT = "2026-07-28"
_QUESTION = "approve"
#: Characters of the query that the person sees; it is said how many more there are.
_SHOWN = 4000
#: Seconds for which an approval can be used.
_SECONDS = 600.0
#: The form that the person fills in. It has no default: an empty answer approves nothing.
_FORM = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Spend this privacy budget",
            "description": "It is spent for good, whatever the answer turns out to be.",
        }
    },
    "required": ["approve"],
}


@dataclass(frozen=True, slots=True)
class Approval:
    """What the person said: whether they approve, and the name of this request, under which it is charged once."""

    given: bool
    request: str = ""


@dataclass
class Approvals:
    """Approvals that were used. Each is used once; a sealed question lives no longer than this remembers it."""

    used: dict[str, float] = field(default_factory=dict)

    def use(self, request: str) -> bool:
        """Use an approval; return False if it was used before."""
        now = time.monotonic()
        self.used = {name: until for name, until in self.used.items() if until > now}
        if request in self.used:
            return False
        self.used[request] = now + 2 * _SECONDS
        return True


def can_ask(context: Context) -> bool:
    """Return whether the client shows forms to its person."""
    capabilities = context.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None:
        return False
    return elicitation.form is not None or elicitation.url is None  # an empty capability means forms


async def ask(
    context: Context, params: types.CallToolRequestParams, estimate: Estimate, text: str, approvals: Approvals
) -> Approval | types.InputRequiredResult:
    """Ask the person about one charge; return their answer, or the question if it is the result of this call.

    Theorem (An approval is for one charge). An answer is taken as approval only of a call with the same tool and the
    same arguments as the question, at the same cost, and only once.
    Proof    The question's state is sealed by `RequestStateBoundary` with the tool, the arguments and the caller, which
             are checked when it comes back; it holds the cost, which must equal the estimate of the call that brings
             it, and a random name, which `Approvals` accepts once. Where the call waits for the answer there is nothing
             to bring back.
    Assumes  the client shows the question to the person, and the sealing key is secret.
    Tested   tests/mcp/test_consent.py::test_an_approval_is_for_the_same_arguments_only
             tests/mcp/test_consent.py::test_an_approval_is_used_once
    """
    if not is_version_at_least(context.protocol_version, _QUESTION_IS_A_RESULT):
        return await _wait(context, estimate, text)
    state = _read_state(params.request_state)
    if state is None or not params.input_responses:
        sealed = {"request": secrets.token_hex(16), "epsilon": str(estimate.epsilon), "delta": str(estimate.delta)}
        form = types.ElicitRequestFormParams(message=question(estimate, text), requested_schema=_FORM)
        return types.InputRequiredResult(
            input_requests={_QUESTION: types.ElicitRequest(params=form)}, request_state=json.dumps(sealed)
        )
    asked = PrivacyAmount(Fraction(state["epsilon"]), Fraction(state["delta"]))
    if asked != cost(estimate) or not approvals.use(state["request"]):
        return Approval(given=False)
    return Approval(approves(params.input_responses.get(_QUESTION)), state["request"])


async def _wait(context: Context, estimate: Estimate, text: str) -> Approval:
    try:
        reply = await context.session.elicit_form(question(estimate, text), _FORM, context.request_id)
    except (MCPError, NoBackChannelError):
        return Approval(given=False)
    return Approval(approves(reply), secrets.token_hex(16))


def approves(reply: object) -> bool:
    """Return whether a reply is an approval: accepted, with exactly `true`."""
    if not isinstance(reply, types.ElicitResult) or reply.action != "accept":
        return False
    return isinstance(reply.content, Mapping) and reply.content.get("approve") is True


def cost(estimate: Estimate) -> PrivacyAmount:
    """Return the privacy cost of an estimate."""
    return PrivacyAmount(estimate.epsilon, estimate.delta)


def shown(amount: PrivacyAmount) -> str:
    """Write an amount."""
    return f"ε = {brief(amount.epsilon)}" + (f", δ = {brief(amount.delta)}" if amount.delta else "")


def question(estimate: Estimate, text: str) -> str:
    """Write the question: the cost first, then what the assistant wants to know, as a quotation."""
    errors = "; ".join(f"{quoted(each.name)} {margin(each)}" for each in estimate.expected[:8])
    parts = [
        f"An AI assistant wants to spend {shown(cost(estimate))} of your privacy budget on"
        f" {', '.join(map(quoted, estimate.datasets))}. It is spent for good.",
        consequence(epsilon=estimate.epsilon, delta=estimate.delta),
        f"Expected margins of error (95%): {errors}." if errors else "",
        f"The query: {quoted(text, _SHOWN)}",
    ]
    return "\n".join(part for part in parts if part)


def _read_state(sealed: str | None) -> dict[str, str] | None:
    """Read the state that a call brings back; the boundary has checked that this server wrote it."""
    if sealed is None:
        return None
    try:
        state = json.loads(sealed)
        return {name: str(state[name]) for name in ("request", "epsilon", "delta")}
    except (ValueError, KeyError, TypeError):
        return None
