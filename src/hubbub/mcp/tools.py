"""The tools: what a model reads about each, and what each does.

Tested in tests/mcp/test_tools.py.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mcp_types as types

from hubbub.answers.options import Options
from hubbub.audit.receipt import check_receipt
from hubbub.core import numbers
from hubbub.errors import ParameterError
from hubbub.mcp import answers, spending
from hubbub.mcp import arguments as given
from hubbub.mcp.answers import Form
from hubbub.mcp.consent import Approvals, Context
from hubbub.mcp.quote import QUERY, bounded, quoted
from hubbub.mcp.spending import Caller, SpendingRequest
from hubbub.semantics.odds import EVEN, meaning

#: The structured content of a result, and its words.
Result = tuple[Form, str]


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool."""

    caller: Caller
    context: Context
    params: types.CallToolRequestParams
    approvals: Approvals


Handler = Callable[[ToolCall, Any], Awaitable[Result | types.InputRequiredResult]]


@dataclass(frozen=True)
class ToolEntry:
    """One tool."""

    title: str
    description: str
    arguments: type[given.ToolArguments]
    run: Handler
    spends: bool = False

    def listed(self, name: str) -> types.Tool:
        """Describe the tool to a client."""
        return types.Tool(
            name=name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            output_schema={"type": "object"},
            annotations=types.ToolAnnotations(
                read_only_hint=not self.spends, destructive_hint=self.spends, open_world_hint=False
            ),
        )


async def _list_datasets(call: ToolCall, _: given.NoArguments) -> Result:
    names = [bounded(name) for name in await call.caller.backend.datasets()]
    return {"kind": "datasets", "datasets": names}, "Datasets: " + (", ".join(map(quoted, names)) or "none") + "."


async def _describe(call: ToolCall, wanted: given.DatasetArguments) -> Result:
    return answers.dataset(await call.caller.backend.describe(wanted.dataset), wanted.dataset)


async def _estimate(call: ToolCall, wanted: given.QueryArguments) -> Result:
    return answers.estimate(await call.caller.backend.estimate(wanted.text(), wanted.options()))


async def _answer(
    call: ToolCall, wanted: given.PaidQueryArguments | given.CallArguments
) -> Result | types.InputRequiredResult:
    request = SpendingRequest(wanted.text(), wanted.options(), wanted.key)
    answered = await spending.answer(call.caller, request, call.context, call.params, call.approvals)
    if isinstance(answered, types.InputRequiredResult):
        return answered
    form, words = answers.release(answered.release, charged=answered.charged)
    left = call.caller.allowance.left(call.caller.allowed)
    return form | {"allowance_left": {"epsilon": str(left.epsilon), "delta": str(left.delta)}}, words


async def _try(call: ToolCall, wanted: given.TryArguments) -> Result:
    return answers.made_up(await call.caller.backend.try_query(wanted.text(), wanted.options()))


async def _budget(call: ToolCall, _: given.NoArguments) -> Result:
    form, words = answers.budgets(await call.caller.backend.budget())
    left = call.caller.allowance.left(call.caller.allowed)
    allowance = {"allowance_left": {"epsilon": str(left.epsilon), "delta": str(left.delta)}}
    told = f"Of what the person allowed this assistant to spend, ε = {numbers.brief(left.epsilon)} is left."
    return form | allowance, f"{words}\n{told}"


async def _releases(call: ToolCall, wanted: given.ReleasesArguments) -> Result:
    if wanted.number is not None:
        return answers.release(await call.caller.backend.release(wanted.number), charged=False)
    return answers.past(await call.caller.backend.releases(wanted.limit))


async def _explain(call: ToolCall, wanted: given.ExplainArguments) -> Result:
    if wanted.sql is not None:
        options: Options = {} if wanted.epsilon is None else {"epsilon": wanted.epsilon}
        if wanted.delta is not None:
            options["delta"] = wanted.delta
        return answers.explanation(await call.caller.backend.estimate(wanted.sql, options))
    if wanted.epsilon is None:
        raise ParameterError("HB168", "Neither epsilon nor sql was given.", "Pass an ε or a query to explain.")
    delta = Fraction(0) if wanted.delta in (None, 0, "0") else numbers.delta(wanted.delta)
    told = meaning(epsilon=numbers.epsilon(wanted.epsilon), delta=delta, prior=EVEN, people=None)
    lines = [told.odds, told.belief, told.rare, told.consequence, told.guesses, told.test, *told.warnings]
    return {"kind": "meaning of ε", "epsilon": str(told.epsilon), "statements": lines}, "\n".join(lines)


async def _verify(call: ToolCall, wanted: given.VerifyArguments) -> Result:
    answer = await call.caller.backend.release(wanted.number)
    checked = check_receipt(answer.document())
    lines = [bounded(line, QUERY) for line in checked.lines]
    problems = [bounded(problem, QUERY) for problem in checked.problems]
    form: Form = {"kind": "verification", "verified": checked.sound, "loss": checked.loss, "problems": problems}
    verdict = (
        f"Verified from the receipt alone: this answer costs {checked.loss}."
        if checked.sound
        else "NOT verified: " + " ".join(problems)
    )
    more = "The receipt was not compared with the ledger here; `hubbub verify` does that."
    return form | {"derivation": lines}, "\n".join([verdict, *lines, more])


TOOLS: Mapping[str, ToolEntry] = {
    "list_datasets": ToolEntry(
        "List datasets", "List the datasets that can be queried. Free.", given.NoArguments, _list_datasets
    ),
    "describe": ToolEntry(
        "Describe a dataset",
        "Describe a dataset: who is protected, and the columns with their types, bounds and values. Free.",
        given.DatasetArguments,
        _describe,
    ),
    "estimate": ToolEntry(
        "Estimate cost and error",
        "Estimate the privacy cost and the margin of error of a query, without running it. Free, so do it first.",
        given.QueryArguments,
        _estimate,
    ),
    "try_query": ToolEntry(
        "Try a query on made-up rows",
        "Try a query on MADE-UP rows, to see whether it works and how large its noise is. The numbers say nothing about"
        " the data: never report them. Free, and as often as you like.",
        given.TryArguments,
        _try,
    ),
    "query": ToolEntry(
        "Answer a query",
        "Answer an aggregate SQL query with noise. It spends privacy budget that never comes back, so the person"
        " decides: within an amount that they allowed, or one query at a time. An answer that was recorded before is"
        " free. Report every number with its interval.",
        given.PaidQueryArguments,
        _answer,
        spends=True,
    ),
    "call": ToolEntry(
        "Run an analysis",
        "Run an analysis such as kmeans, linear_regression, tabulate or synthetic, with noise. It spends privacy budget"
        " as `query` does, with the same consent.",
        given.CallArguments,
        _answer,
        spends=True,
    ),
    "budget": ToolEntry(
        "Show the budget",
        "Show the spent and the remaining privacy budget, and what is left of the allowance. Free.",
        given.NoArguments,
        _budget,
    ),
    "releases": ToolEntry(
        "Show earlier answers",
        "List earlier charges, or read an earlier answer again by its number. Free.",
        given.ReleasesArguments,
        _releases,
    ),
    "explain": ToolEntry(
        "Explain",
        "Explain what an ε means for one person, or how the noise of a query is derived. Free.",
        given.ExplainArguments,
        _explain,
    ),
    "verify": ToolEntry(
        "Verify a receipt",
        "Verify the receipt of an earlier answer: derive its privacy cost again, independently. Free.",
        given.VerifyArguments,
        _verify,
    ),
}
