"""Prompts for common work, which a person chooses in the client.

Tested in tests/mcp/test_tools.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import mcp_types as types

from hubbub.mcp.quote import QUERY, quoted


@dataclass(frozen=True)
class PromptEntry:
    """One prompt: its arguments with their descriptions, and its text with places for them."""

    title: str
    arguments: Mapping[str, str]
    text: str

    def listed(self, name: str) -> types.Prompt:
        """Describe the prompt to a client."""
        wanted = [types.PromptArgument(name=key, description=about, required=True) for key, about in _items(self)]
        return types.Prompt(name=name, title=self.title, arguments=wanted)

    def filled(self, values: Mapping[str, str]) -> str:
        """Fill in the arguments, as quotations."""
        return self.text.format(**{name: quoted(values.get(name, ""), QUERY) for name in self.arguments})


def _items(prompt: PromptEntry) -> list[tuple[str, str]]:
    return list(prompt.arguments.items())


PROMPTS: Mapping[str, PromptEntry] = {
    "first_look": PromptEntry(
        "Get to know a dataset",
        {"dataset": "name of the dataset"},
        "Use `describe` on the dataset {dataset}. Tell me who is protected, which columns there are, and three"
        " questions that it could answer. Estimate each with ε = 0.1 and tell me the expected error. Spend nothing.",
    ),
    "answer_carefully": PromptEntry(
        "Answer a question at a small cost",
        {"question": "what you want to know"},
        "My question is: {question}. First look among the earlier releases: they are free. Otherwise write one"
        " aggregate query, estimate its error at several costs, and tell me the smallest ε whose error is small"
        " enough to answer the question. Ask me before you spend. Report each number with its interval and its"
        " receipt.",
    ),
    "report": PromptEntry(
        "Write up earlier answers",
        {"topic": "what the report is about"},
        "Write a short report on {topic} from the earlier releases alone: list them, read those that matter, and"
        " spend nothing. Give each number with its interval, its privacy cost and its receipt, and say what the"
        " bounds leave out.",
    ),
    "check": PromptEntry(
        "Check an earlier answer",
        {"number": "number of the charge"},
        "Read release {number} again, verify its receipt, and explain in plain words what the number says, how far off"
        " it may be, what it leaves out, and what its ε means for one person.",
    ),
}
