"""Audit one release from the ledger alone: its receipt, its charge, and its plan on simulated neighboring data.

Private data is not opened. Public tables are read, because their values are part of the plan.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hubbub.accounting.chain import Entry, canonical
from hubbub.accounting.cost import event_of_facts
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.analyses.base import Enumerable, PreparedAnalysis
from hubbub.analyses.threshold import Comparison, OpenSession, ThresholdTerms
from hubbub.audit.ledger_check import LedgerComparison, compare_with_ledger
from hubbub.audit.receipt import check_receipt
from hubbub.audit.replan import plan_again, question_of
from hubbub.audit.replay import replay
from hubbub.config import Config
from hubbub.core.blocks import BlockSet
from hubbub.core.events import Composed, SparseVectorEvent, to_facts
from hubbub.core.schema import Table
from hubbub.curator import history as past
from hubbub.curator.opening import store_of, tables_of
from hubbub.curator.question import Question
from hubbub.curator.replay import declared_hash
from hubbub.curator.running_totals import NAME as RUNNING_TOTALS
from hubbub.curator.thresholds import COMPARED
from hubbub.errors import HubbubError, QueryError

#: Default number of simulated datasets.
WORLDS = 10


@dataclass
class ReleaseAudit:
    """The result of an audit: what was verified, what was not checked, and the problems."""

    number: int
    lines: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    loss: str = ""

    @property
    def sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "release": self.number,
            "sound": self.sound,
            "loss": self.loss,
            "derived": self.lines,
            "left_out": self.left_out,
            "problems": self.problems,
        }


def audit(config: Config, number: int, *, worlds: int = WORLDS, chance: random.Random | None = None) -> ReleaseAudit:
    """Audit the release of a charge, given its number in the ledger.

    Theorem (Audit of a release). If a release is sound, its receipt's loss follows from its receipt alone, its charge
    stands in the ledger with the same facts, the plan of its question has these facts, and on every pair of made-up
    neighbors that was tried the plan's integers (an analysis' draws, given the same answers before) were within the
    sensitivity that was charged. Of a stream, whose draws come later, the loss in small is enumerated over all pairs of
    the declared relation. An answer of a session is one of as many as its session was charged for.
    Assumes  the declarations are those of then; where they changed, the plan may be another, and that is said. Made-up
             neighbors can refute a plan and never prove one: the proofs are those of the plan's theorems.
    Charges  nothing: no private data is read.
    Tested   tests/audit/test_release.py::test_an_honest_release_is_sound
             tests/audit/test_release.py::test_a_plan_that_would_be_made_otherwise_now_is_told
             tests/audit/test_release.py::test_a_release_whose_charge_says_less_is_not_sound
             tests/audit/test_release.py::test_an_answer_that_no_session_paid_for_is_not_sound
             tests/audit/test_release.py::test_a_sensitivity_that_is_too_small_is_found_by_replaying
             tests/analyses/streams/test_contract.py::test_the_audit_of_a_release_enumerates_the_declared_relation
    """
    result = ReleaseAudit(number)
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            document = json.loads(past.find_release(snapshot, number, None))
            _check_charges(snapshot, document["receipt"], result)
            terms = _session_terms(snapshot, document["receipt"], result)
            derived = "derived" in document["receipt"]
            compared = compare_with_ledger(document, snapshot) if derived else LedgerComparison()
        salt = store.ledger
    finally:
        store.close()
    receipt = check_receipt(document)
    result.lines += receipt.lines
    result.problems += receipt.problems
    result.loss = receipt.loss
    if derived:  # there is no plan to replay: nothing was drawn
        result.lines += compared.lines
        result.problems += compared.problems
    elif "session" not in document["receipt"] or terms is not None:
        _replay_plan(config, document, result, salt, worlds, chance or random.SystemRandom(), terms)
    return result


def _check_charges(snapshot: Snapshot, paper: Mapping[str, Any], result: ReleaseAudit) -> None:
    """Compare the charges that the receipt names with the ledger."""
    blocks = {each["dataset"]: {"blocks": each["blocks"]} for each in paper["data"] if "blocks" in each}
    for charge in paper["ledger"]:
        facts = canonical({**paper["event"], **blocks.get(charge["dataset"], {})})
        number = charge["sequence"]
        entry = _charge(snapshot, number)
        if entry is None or entry.hash.hex() != charge["hash"] or entry.dataset != charge["dataset"]:
            result.problems.append(f"Charge {number} of the receipt is not in the ledger.")
        elif entry.facts != facts or entry.query != paper["query"]:
            result.problems.append(f"Charge {number} of the ledger does not match the receipt.")
        else:
            result.lines.append(f"charge {number} in the ledger has the same facts and the same query")


def _session_terms(snapshot: Snapshot, paper: Mapping[str, Any], result: ReleaseAudit) -> ThresholdTerms | None:
    """Compare a free answer with the session that paid for it; the ledger has all answers of a session."""
    if "session" not in paper:
        return None
    number, own = paper["session"], _charge(snapshot, paper["ledger"][0]["sequence"])
    opened, body = _charge(snapshot, number), snapshot.body(number)
    if own is None or opened is None or body is None or (opened.analyst, opened.dataset) != (own.analyst, own.dataset):
        result.problems.append(f"Charge {number}, which is said to have paid, is not in the ledger.")
        return None
    event = event_of_facts(opened.facts)
    hits = [part.hits for part, _ in getattr(event, "parts", ()) if isinstance(part, SparseVectorEvent)]
    if len(hits) != 1 or number >= own.sequence:
        result.problems.append(f"Charge {number}, which is said to have paid, is not that of a session.")
        return None
    states, above = set(), 0
    which = EntryFilter(kind="charge", analyst=own.analyst, dataset=own.dataset, before=own.sequence + 1)
    for entry in snapshot.entries(which, after=number):
        compared = COMPARED.search(entry.query)
        if compared is not None and int(compared["session"]) == number:
            states.add(compared["state"])
            answer = snapshot.body(entry.sequence)
            above += answer is not None and json.loads(answer)["answer"]["model"]["above"] is True
    if above > hits[0] or len(states) != 1:
        result.problems.append(f"Session {number} was charged for {hits[0]} answers that are above, and gave more.")
        return None
    result.lines.append(f"{above} of the {hits[0]} answers that are above, for which session {number} paid, were given")
    return ThresholdTerms.read(json.loads(body)["answer"]["model"]["terms"])


def _charge(snapshot: Snapshot, number: int) -> Entry | None:
    return next(snapshot.entries(EntryFilter(kind="charge", before=number + 1), after=number - 1), None)


def _asked_in(terms: ThresholdTerms | None, paper: Mapping[str, Any]) -> Question:
    """Give the question of a receipt; that of an answer of a session with the terms of the session."""
    if terms is None:
        return question_of(paper)
    question = question_of({**paper, "query": COMPARED.sub("", paper["query"])})
    return replace(question, epsilon=terms.epsilon, groups=terms.groups, rows=terms.rows)


def _in_session(plan: PreparedAnalysis, terms: ThresholdTerms) -> PreparedAnalysis:
    """Give an answer of a session what it runs with: its session's charge covers it, or it is refused."""
    if not isinstance(plan, Comparison):
        raise TypeError("only a comparison is an answer of a session")
    plan.covers(terms)
    return replace(plan, event=Composed(((terms.mechanism.event, 1),)), session=OpenSession(0, terms, 1, 0, 0))


def _as_read(table: Table, paper: Mapping[str, Any]) -> Table:
    """Give a table with the blocks that the receipt says were read."""
    read = [each["blocks"] for each in paper["data"] if each["dataset"] == table.name and "blocks" in each]
    if table.blocks is None or not read:
        return table
    return replace(table, blocks=table.blocks.reading(BlockSet.from_json(read[0])))


def _replay_plan(
    config: Config,
    document: Mapping[str, Any],
    result: ReleaseAudit,
    salt: str,
    worlds: int,
    chance: random.Random,
    terms: ThresholdTerms | None,
) -> None:
    """Plan the query again and run the plan on simulated neighboring data."""
    paper = document["receipt"]
    try:
        known = {name: _as_read(table, paper) for name, table in tables_of(config).items()}
        totals = paper.get("analysis") == RUNNING_TOTALS
        plan = plan_again(_asked_in(terms, paper), known, salt=salt, hashing=config.hashing, totals=totals)
    except HubbubError as refusal:
        result.left_out.append(f"The query could not be planned again: {refusal.code} {refusal.message}")
        return
    if isinstance(plan, Enumerable):
        line, holds = plan.enumerated(document["answer"]["model"])
        (result.lines if holds else result.problems).append(line)
    if _facts(plan, paper) != (canonical(paper["event"]), paper["relation"], paper["bounds"], paper.get("declared")):
        result.left_out.append(
            "The plan was not replayed: with today's declarations it differs from the plan that was charged."
        )
        return
    if terms is not None:
        try:
            plan = _in_session(plan, terms)
        except QueryError as refusal:
            result.problems.append(f"The session does not cover this answer: {refusal.message}")
            return
    result.lines.append("the query, planned again, has the facts that were charged")
    replayed = replay(plan, _declared(plan, known), worlds=worlds, chance=chance)
    result.lines.append(f"replayed on simulated data: {replayed.summary()}")
    result.problems += [f"On simulated neighbors: {problem}" for problem in replayed.problems]
    if not any(replayed.pairs.values()) and not replayed.problems and not isinstance(plan, Enumerable):
        result.left_out.append("This analysis draws no noise at purchase, so there is nothing to replay.")


def _facts(plan: PreparedAnalysis, paper: Mapping[str, Any]) -> tuple[object, ...]:
    """Give the facts of a plan as a receipt has them: never its sentences, which may be better worded by now.

    Receipts from before November 2026 have no hash of the declarations.
    """
    bounds = None if plan.limits is None else plan.limits.to_json()
    declared = declared_hash(plan.private) if "declared" in paper else None
    return canonical(to_facts(plan.event)), plan.relation.value, bounds, declared


def _declared(plan: Any, known: Mapping[str, Table]) -> dict[str, Table]:
    return {table.name: known[table.name] for table in plan.tables}
