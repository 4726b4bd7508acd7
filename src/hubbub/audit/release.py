"""The audit of one release, from the ledger alone: its receipt, its place in the chain, its plan on made-up neighbors.

The data is not opened. Tables that are public are read, as their values are part of the plan.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hubbub.accounting.chain import canonical
from hubbub.accounting.store import Filter, Snapshot
from hubbub.analyses.base import Enumerable
from hubbub.audit.receipt import check
from hubbub.audit.replan import planned, question
from hubbub.audit.replay import replay
from hubbub.config import Config
from hubbub.core.events import to_facts
from hubbub.core.schema import Table
from hubbub.curator import history as past
from hubbub.curator.opening import store_of, tables_of
from hubbub.errors import HubbubError
from hubbub.sql.plan import Plan

#: Made-up worlds that a plan is replayed on, unless said otherwise.
WORLDS = 10


@dataclass
class Audited:
    """What was derived, what could not be, and what does not hold."""

    number: int
    lines: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    loss: str = ""

    @property
    def sound(self) -> bool:
        """Whether everything that was looked at holds."""
        return not self.problems

    def form(self) -> dict[str, Any]:
        """Give it for JSON."""
        return {
            "release": self.number,
            "sound": self.sound,
            "loss": self.loss,
            "derived": self.lines,
            "left_out": self.left_out,
            "problems": self.problems,
        }


def audit(config: Config, number: int, *, worlds: int = WORLDS, chance: random.Random | None = None) -> Audited:
    """Audit the release of one charge, by its number in the ledger.

    Theorem (Audit of a release). If a release is sound, its receipt's loss follows from its receipt alone, its charge
    stands in the ledger with the same facts, the plan of its question has these facts, and on every pair of made-up
    neighbors that was tried the plan's integers (an analysis' draws, given the same answers before) were within the
    sensitivity that was charged. Of a stream, whose draws come later, the loss in small is enumerated over all pairs of
    the declared relation.
    Assumes  the declarations are those of then; where they changed, the plan may be another, and that is said. Made-up
             neighbors can refute a plan and never prove one: the proofs are those of the plan's theorems.
    Charges  nothing: no private data is read.
    Tested   tests/audit/test_release.py::test_an_honest_release_is_sound
             tests/audit/test_release.py::test_a_plan_that_would_be_made_otherwise_now_is_told
             tests/audit/test_release.py::test_a_release_whose_charge_says_less_is_not_sound
             tests/audit/test_release.py::test_a_sensitivity_that_is_too_small_is_found_by_replaying
             tests/analyses/streams/test_contract.py::test_the_audit_of_a_release_enumerates_the_declared_relation
    """
    found = Audited(number)
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            document = json.loads(past.found(snapshot, number, None))
            _charged(snapshot, document["receipt"], found)
        salt = store.ledger
    finally:
        store.close()
    receipt = check(document)
    found.lines += receipt.lines
    found.problems += receipt.problems
    found.loss = receipt.loss
    _replayed(config, document, found, salt, worlds, chance or random.SystemRandom())
    return found


def _charged(snapshot: Snapshot, paper: Mapping[str, Any], found: Audited) -> None:
    """Compare what the receipt says of the ledger with what stands there."""
    facts = canonical(paper["event"])
    for each in paper["ledger"]:
        at = each["sequence"]
        entry = next(snapshot.entries(Filter(kind="charge", before=at + 1), after=at - 1), None)
        if entry is None or entry.hash.hex() != each["hash"] or entry.dataset != each["dataset"]:
            found.problems.append(f"charge {at}, which the receipt names, is not in the ledger")
        elif entry.facts != facts or entry.query != paper["query"]:
            found.problems.append(f"charge {at} of the ledger is for something else than the receipt says")
        else:
            found.lines.append(f"charge {at} stands in the ledger with the same facts and the same question")


def _replayed(
    config: Config, document: Mapping[str, Any], found: Audited, salt: str, worlds: int, chance: random.Random
) -> None:
    """Plan the question again, and run the plan on made-up neighbors."""
    paper = document["receipt"]
    try:
        known = tables_of(config)
        plan = planned(question(paper), known, salt=salt, hashing=config.hashing)
    except HubbubError as refusal:
        found.left_out.append(f"the plan could not be made again: {refusal.code} {refusal.message}")
        return
    later = not isinstance(plan, Plan) and isinstance(plan.prepared, Enumerable)
    if not isinstance(plan, Plan) and isinstance(plan.prepared, Enumerable):
        line, kept = plan.prepared.enumerated(document["answer"]["model"])
        (found.lines if kept else found.problems).append(line)
    now = (canonical(to_facts(plan.event)), plan.relation.value, list(plan.derivation))
    if now != (canonical(paper["event"]), paper["relation"], paper["derivation"]):
        found.left_out.append(
            "the plan was not replayed: with the declarations of now it is another one than was charged then"
        )
        return
    found.lines.append("the plan, made again from the declarations, has the facts that were charged")
    seen = replay(plan, _declared(plan, known), worlds=worlds, chance=chance)
    found.lines.append(f"replayed on made-up data: {seen.say()}")
    found.problems += [f"on made-up neighbors: {problem}" for problem in seen.problems]
    if not isinstance(plan, Plan) and not any(seen.pairs.values()) and not later:
        found.left_out.append("nothing is drawn when this analysis is bought: there was nothing to replay")


def _declared(plan: Any, known: Mapping[str, Table]) -> dict[str, Table]:
    return {each.name: known[each.name] for each in plan.tables}
