"""Forfeit: go on after a ledger was lost, by writing off what nobody can say was not spent.

An owner who restored an old backup does not know what was spent since; neither does hubbub. The caps say how much it
can have been at most. So that much is charged to each of them, in the chain and for good, and only then is the ledger
used again. An owner who knows better (from the analysts, or another log) may name the amount; it is charged on top of
what the database shows, and stands in the chain under the owner's name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hubbub.accounting.anchor import Anchor
from hubbub.accounting.calls import NoteCall
from hubbub.accounting.chain import NO_HASH, Mark, canonical
from hubbub.accounting.filters import Budget
from hubbub.accounting.ledger import Ledger, no_step, now
from hubbub.accounting.policy import Policy
from hubbub.accounting.store import Store
from hubbub.accounting.verify import Verification, loss_of, verify
from hubbub.errors import LedgerError, ParameterError

#: Belongs to no ledger: while it stands in the anchor, nothing opens.
_NOBODY = Mark("0" * 32, 1, NO_HASH)


@dataclass(frozen=True, slots=True)
class Forfeited:
    """What was written off, by cap, and where a database that was beyond use lies now."""

    charged: dict[str, Budget]
    set_aside: str | None
    sequence: int


class _Later:
    """Holds the newest mark until the forfeit is durable: an anchor that moved first would accept the old database."""

    where = "memory"

    def __init__(self) -> None:
        self.mark = _NOBODY

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
) -> Forfeited:
    """Charge each cap its whole budget, or `amount`, and make the database as it is the ledger from here on.

    A database that is right in itself is kept and added to. One that is not is set aside and a new one begins with the
    forfeit; since what it showed as spent cannot be believed either, no amount below the whole caps is accepted then.
    """
    _signed(by, reason)
    mark, readable = _anchored(anchor)
    store, verification = _examined(open_store, mark)
    believed = verification is not None and (mark is None or mark.ledger == verification.ledger)
    if amount is not None and not believed:
        if store is not None:
            store.close()
        raise LedgerError(
            "HB316",
            "what this database shows as spent cannot be believed, so no amount can be added to it.",
            "Forfeit the whole budget: leave out the amount.",
        )
    aside = None
    if store is None or verification is None:
        if mark is None:
            anchor.reset(_NOBODY)  # or a crash between here and the end would leave neither database nor anchor
        if store is not None:
            store.close()
        aside = set_aside()
        store = open_store()
    later = _Later()
    ledger = Ledger(store, policy, later, clock, no_step)
    time = ledger.time()
    charged = {cap.at(time): cap.budget if amount is None else amount for cap in policy.every_cap()}
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
        losses = {label: loss_of(budget.epsilon, budget.delta) for label, budget in charged.items()}
        ledger.note(NoteCall("forfeit", facts, losses))
        anchor.reset(later.mark)
        anchor.close()
    finally:
        ledger.close()
    return Forfeited(charged, aside, later.mark.sequence)


def adopt(open_store: Callable[[], Store], *, policy: Policy, anchor: Anchor, by: str, reason: str) -> int:
    """Give a ledger that was moved a new anchor; note in the chain who says that nothing is missing, and why.

    Only where there is no anchor at all, and the database is right in itself: one that an anchor contradicts is an
    older copy or another ledger, and what it lacks can be written off but not talked away. Nothing is charged. Gives
    the number of the entry.
    """
    _signed(by, reason)
    if anchor.read() is not None:
        raise LedgerError(
            "HB333",
            f"there is an anchor at {anchor.where}, so none is needed. Nothing was done.",
            "If the ledger is refused all the same, it is an older copy or another one: put the newest back, or write "
            "off what it may lack: hubbub admin forfeit.",
        )
    store, verification = _examined(open_store, None)
    if store is None or verification is None:
        if store is not None:
            store.close()
        raise LedgerError(
            "HB334",
            "this ledger is not right in itself, anchor or none. Nothing was done.",
            "hubbub verify ledger says more. Put back the newest one, or accept the loss: hubbub admin forfeit.",
        )
    later = _Later()
    ledger = Ledger(store, policy, later, now, no_step)
    facts: dict[str, object] = {
        "by": by,
        "reason": reason,
        "charged": {},
        "anchored": None,
        "anchor_readable": True,
        "set_aside": None,
    }
    try:
        ledger.note(NoteCall("policy", policy.text))
        ledger.note(NoteCall("forfeit", canonical(facts), {}))
        anchor.reset(later.mark)
        anchor.close()
    finally:
        ledger.close()
    return later.mark.sequence


def _signed(by: str, reason: str) -> None:
    if not by.strip() or not reason.strip() or "\0" in by + reason:
        raise ParameterError(
            "HB125", "a forfeit needs a name and a reason.", "Say who decides, and why: both are kept."
        )


def _anchored(anchor: Anchor) -> tuple[Mark | None, bool]:
    try:
        return anchor.read(), True
    except LedgerError as error:
        if error.code != "HB310":
            raise
        return None, False


def _examined(open_store: Callable[[], Store], mark: Mark | None) -> tuple[Store | None, Verification | None]:
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
