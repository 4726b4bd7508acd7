"""Answers that several documents give: who is trusted, what is covered, what limits apply.

Tested in tests/reports/test_documents.py.
"""

from collections.abc import Iterator

from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.reports.document import DocumentItem
from hubbub.reports.facts import DatasetFacts, Deployment

YAML, LEDGER, THREATS, LIMITS = "hubbub.yaml", "ledger", "docs/threat-model.md", "docs/known-limits.md"


def model(name: str, question: str) -> DocumentItem:
    """Say who holds the data."""
    answer = "Central model: a trusted curator holds the data and answers queries with noise."
    return DocumentItem(name, question, (answer,), (THREATS,))


def flavor(name: str, question: str, deployment: Deployment) -> DocumentItem:
    """Say which definition of privacy holds for each dataset."""
    statements = []
    for facts in deployment.datasets:
        kind = "pure ε-differential privacy" if not facts.budget.delta else "approximate (ε, δ)-differential privacy"
        relation = "one unit is added or removed" if facts.relation is Relation.ADD_REMOVE else "one unit is replaced"
        statements.append(f"{facts.name}: {kind}; neighboring datasets differ in that {relation}")
    return DocumentItem(name, question, tuple(statements), (YAML, "docs/theorems.md"))


def accounting(name: str, question: str, deployment: Deployment) -> DocumentItem:
    """Say how costs are added up."""
    lines = ["Every query is charged to a hash-chained ledger before the data is read, and is never refunded."]
    if any(not facts.budget.delta for facts in deployment.datasets):
        lines.append("Under budgets with δ = 0, privacy losses add up.")
    if any(facts.budget.delta for facts in deployment.datasets):
        lines.append(
            "Under budgets with δ > 0, privacy filters over pure losses, Gaussian variances and Rényi divergences admit"
            " adaptively chosen queries."
        )
    return DocumentItem(name, question, tuple(lines), ("docs/theorems.md", LEDGER))


def mechanisms(name: str, question: str, deployment: Deployment) -> DocumentItem:
    """Say which mechanisms the charges used, and how often."""
    statements = [
        f"{facts.name}: " + ", ".join(f"{kind} ({times:,} times)" for kind, times in facts.mechanisms)
        for facts in deployment.datasets
        if facts.mechanisms
    ]
    return DocumentItem(name, question, tuple(statements), (LEDGER,) if statements else ())


def implementation(name: str, question: str, deployment: Deployment) -> DocumentItem:
    """Say what runs here."""
    engines = ", ".join(deployment.engines)
    answer = (
        f"{deployment.software} over {engines}. Noise is sampled exactly over the integers from the operating system's"
        " randomness; sums are of integers in fixed point."
    )
    return DocumentItem(name, question, (answer,), ("docs/decisions/0002-exact-noise.md",))


def audits(name: str, question: str, deployment: Deployment) -> DocumentItem:
    """Say what was verified: the ledger now, and a signed self-audit, if one was given."""
    checked = deployment.verification
    head = f"entry {checked.head.sequence}, hash {deployment.head}"
    state = "verified" if checked.sound else "NOT VERIFIED: " + "; ".join(each.text for each in checked.problems)
    lines = [f"The ledger was {state} when this document was written ({checked.entries:,} entries, {head})."]
    evidence = ["hubbub verify ledger"]
    if deployment.audit is not None:
        parts = deployment.audit["parts"]
        failed = [str(part["name"]) for part in parts if part["problems"]]
        result = "no problem" if not failed else f"problems in {', '.join(failed)}"
        lines.append(f"Self-audit of {deployment.audit['time']}: {len(parts)} parts, {result}.")
        evidence.append("the signed report of hubbub audit self")
    return DocumentItem(name, question, tuple(lines), tuple(evidence))


def trusted(name: str, question: str) -> DocumentItem:
    """Say who is trusted."""
    lines = (
        "Trusted: the machine, its operator, and the owner's declarations (unit, bounds, keys).",
        "Not trusted: analysts, also several who collude; the network; a ledger that was restored from a backup.",
    )
    return DocumentItem(name, question, lines, (THREATS,))


def not_covered(name: str, question: str, deployment: Deployment) -> DocumentItem:
    """List the known limits that apply to what this deployment declares and does."""
    lines = tuple(dict.fromkeys(text for facts in deployment.datasets for text in _limits(facts)))
    return DocumentItem(name, question, lines, (LIMITS,) if lines else ())


def _limits(facts: DatasetFacts) -> Iterator[str]:
    yield "What follows from the population as a whole, or from public facts, can be learned without a person's data."
    yield "Whoever owns several privacy units (say, two patient numbers) is protected less, in proportion."
    if facts.rows_are_units:
        yield f"{facts.name}: the privacy unit is the row. A person with k rows is protected at k times the loss."
    if facts.owners > 1:
        yield f"{facts.name}: rows with two owners are truncated; answers can be too small by any amount."
    if facts.budget.delta:
        yield (
            f"{facts.name}: with δ = {brief(facts.budget.delta)}, the odds of a fact can move by more than e^ε with a"
            " probability that is larger than δ."
        )
    if facts.selects_groups:
        yield f"{facts.name}: some answers show only groups with enough people; small groups are missing from them."
    if facts.forfeits:
        yield f"{facts.name}: part of the budget was written off after a loss of the ledger."
    if any(who.endswith((" per day", " per month")) for who, _ in facts.caps):
        yield f"{facts.name}: a renewing cap bounds each period; only the cap in total bounds all periods together."
