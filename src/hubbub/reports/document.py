"""A document: questions with their answers and evidence. What nobody has answered is listed as such, never filled in.

Tested in tests/reports/test_documents.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.core.numbers import brief
from hubbub.reports.facts import DatasetFacts, Deployment

#: The version of the JSON form (docs/formats.md).
FORMAT = 1


@dataclass(frozen=True, slots=True)
class DocumentItem:
    """One question.

    name      a stable key, under which people can answer what the ledger cannot
    answer    one or more statements; empty if nobody has answered it
    evidence  where each statement can be checked
    """

    name: str
    question: str
    answer: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return bool(self.answer)


@dataclass(frozen=True, slots=True)
class Section:
    """Questions on one subject."""

    title: str
    items: tuple[DocumentItem, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole document about one deployment."""

    kind: str
    title: str
    deployment: Deployment
    sections: tuple[Section, ...]

    @property
    def items(self) -> Iterator[DocumentItem]:
        """All questions."""
        return (item for section in self.sections for item in section.items)

    @property
    def unanswered(self) -> tuple[DocumentItem, ...]:
        """The questions without an answer."""
        return tuple(item for item in self.items if not item.answered)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        head = self.deployment.verification.head
        return {
            "document": self.kind,
            "format_of_document": FORMAT,
            "title": self.title,
            "made": self.deployment.made.isoformat(timespec="seconds"),
            "software": self.deployment.software,
            "ledger": {"id": head.ledger, "entry": head.sequence, "hash": head.hash.hex()},
            "hubbub_yaml": self.deployment.config_hash,
            "sections": [
                {
                    "title": section.title,
                    "questions": [
                        {
                            "name": item.name,
                            "question": item.question,
                            "answered": item.answered,
                            "answer": list(item.answer),
                            "evidence": list(item.evidence),
                        }
                        for item in section.items
                    ],
                }
                for section in self.sections
            ],
            "unanswered": [item.name for item in self.unanswered],
        }


def told(name: str, question: str, about: Mapping[str, str]) -> DocumentItem:
    """Return a question that only people can answer, with the answer they gave, if they did."""
    answer = about.get(name, "").strip()
    return DocumentItem(name, question, (answer,) if answer else (), ("stated by the data owner",) if answer else ())


def per_dataset(
    name: str, question: str, deployment: Deployment, answer: "Sequence[tuple[DatasetFacts, str]]", evidence: str
) -> DocumentItem:
    """Return a question that has an answer for each private dataset."""
    several = len(deployment.datasets) > 1
    statements = tuple(f"{facts.name}: {text}" if several else text for facts, text in answer)
    return DocumentItem(name, question, statements, (evidence,) if statements else ())


def budgets(facts: DatasetFacts) -> str:
    """State the caps of a dataset in words."""
    listed = "; ".join(
        f"ε = {brief(budget.epsilon)}" + (f", δ = {brief(budget.delta)}" if budget.delta else ", δ = 0") + f" for {who}"
        for who, budget in facts.caps
    )
    certain = f"Maximum certainty about one of them once all is spent, starting from 50%: {facts.certainty}."
    return f"{listed}. {certain}" + (f" Blocks: {'. '.join(facts.blocks)}." if facts.blocks else "")


def spent(facts: DatasetFacts) -> str:
    """State what was spent so far."""
    if not facts.charges and not facts.forfeits:
        return "nothing has been charged"
    epsilon = facts.spent_epsilon
    amount = "not expressible as ε without a δ" if epsilon is None else f"ε = {brief(epsilon)}"
    if not facts.charges:
        return f"{amount}, all of it written off after a loss of the ledger"
    if facts.forfeits:
        amount += ", with what was written off after a loss of the ledger,"
    if facts.first is None or facts.last is None:
        raise AssertionError("charges have times")
    if facts.spent_by_block:
        amount += " on the block that was charged most,"
    return (
        f"{amount} in {facts.charges:,} charge{'s' if facts.charges > 1 else ''} by {facts.analysts:,} analyst"
        f"{'s' if facts.analysts > 1 else ''}, from {facts.first:%Y-%m-%d} to {facts.last:%Y-%m-%d};"
        f" {facts.answered:,} with an answer, {facts.failures:,} failed runs"
    )
