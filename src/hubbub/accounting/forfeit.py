"""Recover from a lost ledger by writing off the budget that it may have spent.

After restoring an old backup, neither the owner nor hubbub knows what was charged since. The caps bound it, so the
whole budget of each cap is charged, permanently, before the ledger is used again. An owner who knows better (from the
analysts, or another log) may name a smaller amount; it is charged in addition to what the database shows, and recorded
with the owner's name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from hubbub.accounting.anchor import Anchor
from hubbub.accounting.calls import NoteCall
from hubbub.accounting.chain import NO_HASH, Mark, canonical
from hubbub.accounting.filters import Budget
from hubbub.accounting.ledger import Ledger, no_step, now
from hubbub.accounting.policy import Policy
from hubbub.accounting.store import Store
from hubbub.accounting.verify import Verification, cost_of_budget, verify
from hubbub.errors import LedgerError, ParameterError

#: A mark of no ledger: while the anchor holds it, no ledger can be opened.
_NO_LEDGER = Mark("0" * 32, 1, NO_HASH)


@dataclass(frozen=True, slots=True)
class ForfeitResult:
    """What was charged to each cap, and the new location of a database that could not be used."""

    charged: dict[str, Budget]
    set_aside: str | None
    sequence: int


class _PendingAnchor:
    """Holds the newest mark until the forfeit is durable: a real anchor would accept the old database too early."""

    where = "memory"

    def __init__(self) -> None:
        self.mark = _NO_LEDGER

    def read(self) -> Mark | None:
        return self.mark

    def write(self, mark: Mark) -> None:
        self.mark = mark

    def reset(self, mark: Mark) -> None:
        self.mark = mark

    def close(self) -> None:
        pass


def forfeit(
    open_store: Callable[[], Store],
    set_aside: Callable[[], str],
    *,
    policy: Policy,
    anchor: Anchor,
    by: str,
    reason: str,
    amount: Budget | None = None,
    clock: Callable[[], int] = now,
) -> ForfeitResult:
    """Charge each cap its whole budget, or `amount`, and continue with the database as it is.

    A consistent database is kept. An inconsistent one is set aside, and a new one begins with the forfeit; its charges
    cannot be trusted either, so only the whole budget can be forfeited then.
    """
    _check_signature(by, reason)
    mark, readable = _read_anchor(anchor)
    store, verification = _open_and_verify(open_store, mark)
    trusted = verification is not None and (mark is None or mark.ledger == verification.ledger)
    if amount is not None and not trusted:
        if store is not None:
            store.close()
        raise LedgerError(
            "HB316",
            "The spending recorded in this database cannot be trusted, so a partial forfeit is not possible.",
            "Omit --epsilon to forfeit the whole budget.",
        )
    aside = None
    if store is None or verification is None:
        if mark is None:
            anchor.reset(_NO_LEDGER)  # otherwise a crash before the end would leave neither database nor anchor
        if store is not None:
            store.close()
        aside = set_aside()
        store = open_store()
    pending = _PendingAnchor()
    ledger = Ledger(store, policy, pending, clock, no_step)
    charged = _budgets(policy, ledger.time(), amount)
    facts = canonical(
        {
            "by": by,
            "reason": reason,
            "charged": {label: [str(budget.epsilon), str(budget.delta)] for label, budget in charged.items()},
            "anchored": [mark.ledger, mark.sequence, mark.hash.hex()] if mark is not None else None,
            "anchor_readable": readable,
            "set_aside": aside,
        }
    )
    try:
        ledger.note(NoteCall("policy", policy.text))
        losses = {label: cost_of_budget(budget.epsilon, budget.delta) for label, budget in charged.items()}
        ledger.note(NoteCall("forfeit", facts, losses))
        anchor.reset(pending.mark)
        anchor.close()
    finally:
        ledger.close()
    return ForfeitResult(charged, aside, pending.mark.sequence)


def _budgets(policy: Policy, time: int, amount: Budget | None = None) -> dict[str, Budget]:
    """Give the budget of each cap, or `amount` for each, by the label of its total."""
    today = datetime.fromtimestamp(time / 1_000_000, UTC).date()
    caps = [each for cap in policy.every_cap() for each in policy.in_blocks(cap, today)]
    return {cap.at(time): cap.budget if amount is None else amount for cap in caps}


def close_moved(store: Store, *, policy: Policy, anchor: Anchor, by: str, reason: str, archive: str) -> None:
    """Charge each cap of a ledger that moves elsewhere its whole budget, and close the ledger.

    What was spent before this entry is what the other place goes on with. Here nothing is left to spend, whoever
    starts a server, until the owner raises a cap.
    """
    _check_signature(by, reason)
    with Ledger.open(store, policy=policy, anchor=anchor) as ledger:
        charged = _budgets(policy, ledger.time())
        losses = {label: cost_of_budget(budget.epsilon, budget.delta) for label, budget in charged.items()}
        ledger.note(NoteCall("forfeit", _facts(by, reason, charged, moved=archive), losses, sets_clock=False))


def arrive(store: Store, *, policy: Policy, anchor: Anchor, by: str, reason: str, archive: str) -> Mark:
    """Record who brought a ledger here and from which archive, and anchor it; nothing is charged."""
    _check_signature(by, reason)
    pending = _PendingAnchor()
    ledger = Ledger(store, policy, pending, now, no_step)
    try:
        ledger.note(NoteCall("forfeit", _facts(by, reason, {}, imported=archive), {}, sets_clock=False))
        anchor.reset(pending.mark)
        anchor.close()
    finally:
        ledger.close()
    return pending.mark


def _facts(by: str, reason: str, charged: Mapping[str, Budget], **more: str) -> str:
    """Write the facts of a forfeit of a ledger that is in order."""
    amounts = {label: [str(budget.epsilon), str(budget.delta)] for label, budget in charged.items()}
    usual = {"by": by, "reason": reason, "charged": amounts, "anchored": None, "anchor_readable": True}
    return canonical(usual | {"set_aside": None} | more)


def reanchor(open_store: Callable[[], Store], *, policy: Policy, anchor: Anchor, by: str, reason: str) -> int:
    """Create a new anchor for a ledger that was moved; record who asserts that no entries are missing, and why.

    This requires that there is no anchor and that the database is consistent. If an anchor contradicts the database, it
    is an older copy or another ledger, and its missing charges can only be forfeited. Nothing is charged. Returns the
    sequence number of the new entry.
    """
    _check_signature(by, reason)
    if anchor.read() is not None:
        raise LedgerError(
            "HB333",
            f"The ledger already has an anchor at {anchor.where}. Nothing was changed.",
            "If hubbub still refuses the ledger, it is an older copy or another ledger: restore the newest one, or run "
            "`hubbub admin forfeit` to write off the missing charges.",
        )
    store, verification = _open_and_verify(open_store, None)
    if store is None or verification is None:
        if store is not None:
            store.close()
        raise LedgerError(
            "HB334",
            "This ledger is inconsistent, with or without an anchor. Nothing was changed.",
            "Run `hubbub verify ledger` for details. Restore the newest copy, or run `hubbub admin forfeit` to write "
            "off the budget.",
        )
    pending = _PendingAnchor()
    ledger = Ledger(store, policy, pending, now, no_step)
    try:
        ledger.note(NoteCall("policy", policy.text))
        ledger.note(NoteCall("forfeit", _facts(by, reason, {}), {}))
        anchor.reset(pending.mark)
        anchor.close()
    finally:
        ledger.close()
    return pending.mark.sequence


def _check_signature(by: str, reason: str) -> None:
    if not by.strip() or not reason.strip() or "\0" in by + reason:
        raise ParameterError(
            "HB125", "A forfeit needs a name and a reason.", "Pass --by and --reason; both are recorded."
        )


def _read_anchor(anchor: Anchor) -> tuple[Mark | None, bool]:
    try:
        return anchor.read(), True
    except LedgerError as error:
        if error.code != "HB310":
            raise
        return None, False


def _open_and_verify(open_store: Callable[[], Store], mark: Mark | None) -> tuple[Store | None, Verification | None]:
    """Open the database, and verify it; no verification where it is not right in itself."""
    store = None
    try:
        store = open_store()
        with store.snapshot() as snapshot:
            verification = verify(snapshot, mark)
    except LedgerError as error:
        if error.code != "HB306":
            if store is not None:
                store.close()
            raise
        return store, None
    return store, verification if verification.intact else None
