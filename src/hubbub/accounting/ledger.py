"""The ledger: the one place where privacy is spent.

Everything that touches data asks `charge` first. It returns only when the charge is on the disk, under every cap at
once, and only then may the data be touched: a crash costs budget, never privacy. `record` keeps what the charge paid
for, and returns what may be handed out: a charge has one release, whoever retries and however often.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from hubbub.accounting.anchor import Anchor
from hubbub.accounting.calls import AnyCall, Charge, ChargeCall, LookupCall, NoteCall, RecordCall, Remarking, Request
from hubbub.accounting.chain import Mark
from hubbub.accounting.group_commit import Call, GroupCommit
from hubbub.accounting.policy import Policy
from hubbub.accounting.refusal import refuse
from hubbub.accounting.store import MOST_RELEASE, REFUSED, Head, OnStep, Snapshot, Store, refused
from hubbub.accounting.totals import Totals
from hubbub.accounting.transaction import Transaction
from hubbub.accounting.verify import Verification, verify
from hubbub.errors import HubbubError, LedgerError


def now() -> int:
    """Read the wall clock in microseconds."""
    return time.time_ns() // 1000


def no_step(_: str) -> None:
    """Do nothing: only campaigns stop at a step."""


class Ledger:
    """A verified ledger under a policy. Safe to use from many threads; another process opens its own."""

    def __init__(self, store: Store, policy: Policy, anchor: Anchor, clock: Callable[[], int], on_step: OnStep) -> None:
        """Use `Ledger.open`, which verifies."""
        self._store = store
        self._anchor = anchor
        self._clock = clock
        self._on_step = on_step
        self._head = _NOWHERE
        self._totals = Totals(store, policy)
        self._turns: GroupCommit[AnyCall] = GroupCommit(self._serve)
        self._stopped: LedgerError | None = None
        self._process = os.getpid()

    @classmethod
    def open(
        cls, store: Store, *, policy: Policy, anchor: Anchor, clock: Callable[[], int] = now, on_step: OnStep = no_step
    ) -> Self:
        """Verify everything, and refuse a ledger that was edited, cut short or restored; note a new policy in it."""
        verification = examine(store, anchor)
        verification.refuse(anchor.where)
        if verification.anchor is None:
            anchor.reset(verification.head)
        else:
            anchor.write(verification.head)  # one that cannot be written must show before anything is charged
        ledger = cls(store, policy, anchor, clock, on_step)
        ledger.note(NoteCall("policy", policy.text))
        return ledger

    def charge(self, request: Request) -> Charge:
        """Spend, durably, under all caps at once; or raise, and nothing was spent.

        Theorem (Adaptive queries). Let an analyst choose each query by the answers so far, and let each be answered
        with noise whose loss is charged first and refused where a cap of ε would be passed. Then the whole transcript,
        refusals included, is ε-private: refusals are a function of queries and earlier charges, and along every
        transcript t the losses sum to at most ε, that is S(f_t)/λ ≤ ε for equal scales λ (Dwork, McSherry, Nissim and
        Smith 2006, Theorem 1, with λ = max_t S(f_t)/ε).
        Assumes  the answer is drawn after the charge returned; the event states the mechanism's true facts.
        Charges  the price of the event, to each cap; the filters say what that means for δ > 0.
        Tested   tests/accounting/test_adaptive.py::test_refusals_depend_on_the_queries_alone
                 tests/accounting/test_adaptive.py::test_the_loss_of_every_transcript_is_at_most_the_budget
        """
        return self.charge_all([request])[0]

    def charge_all(self, requests: Sequence[Request]) -> list[Charge]:
        """Spend on several datasets at once, durably: all caps of all of them admit it, or nothing is spent.

        One commit holds all charges. Those whose key is already charged are replayed, as `charge` does, and the others
        are charged whole or not at all. The refusal's largest ε is what would pass on all of the datasets.
        """
        self._usable()
        for request in requests:
            self.policy.caps(request.analyst, request.dataset)  # raises where the analyst or the dataset is unknown
        call = ChargeCall(requests)
        self._take(call)
        if call.outcome is not None:
            return call.outcome
        if call.refusal is None:
            raise LedgerError("HB301", "the ledger stopped.", "Restart hubbub: the start verifies the ledger.")
        raise refuse(*call.refusal, requests[0].analyst, self.policy.show)

    def record(self, charge: Charge, release: bytes) -> bytes:
        """Keep what a charge paid for, durably, and return what may be handed out: the first release of the charge.

        One that is too large, or that the database refuses, fails alone: the ledger goes on, and the charge stands.
        """
        self._usable()
        if len(release) > MOST_RELEASE:
            raise LedgerError(
                "HB330", f"a release has at most {MOST_RELEASE:,} bytes.", "Ask for fewer groups, columns or rows."
            )
        call = RecordCall(charge, bytes(release))
        self._take(call)
        return call.outcome

    def recall(self, analyst: str, key: str) -> Charge | None:
        """Find the charge that a key belongs to, with its release; None where nothing was charged under it.

        It takes the writer's turn, so that it sees every charge that was made before it, whoever made it.
        """
        self._usable()
        call = LookupCall(analyst, key)
        self._take(call)
        return call.outcome

    @property
    def policy(self) -> Policy:
        """The policy that a charge is decided under now."""
        return self._totals.policy

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders on this machine that a charge writes to: of the database, if it is a file, and of the anchor."""
        places = [place for place in (self._store.where, self._anchor.where) if "://" not in place]
        return tuple({Path(place).resolve().parent for place in places})

    def govern(self, policy: Policy) -> None:
        """Go on under another policy, durably: each charge is decided under the old one or this one, never under none.

        The change is a call in line like any other. The charges before it are decided under the old policy, and their
        totals are stored with the entry that names the new one; those behind it are decided under the new one. Where
        it cannot be written, the old one stays.

        Theorem (Change of policy). Let the policy be changed while queries are asked, each change chosen by whatever
        was answered so far. If no policy gives a dataset more than ε, the whole transcript is ε-private for it.
        Proof    A charge is decided under one policy, on the total of all that was charged to the dataset before,
                 under whatever policy: totals are kept by cap and only ever grow. So the losses along every transcript
                 sum to at most the largest cap in force at a charge, hence to at most ε; the theorem of adaptive
                 queries does the rest, the owner's choices being a function of the transcript.
        Assumes  caps with δ = 0. Each cap with δ > 0 splits its δ over filters in its own way: docs/known-limits.md.
        Charges  nothing by itself.
        Tested   tests/accounting/test_govern.py::test_charges_during_changes_fall_under_the_old_or_the_new_policy
                 tests/accounting/test_govern.py::test_a_raised_cap_is_spent_up_to_and_no_further
        """
        self.note(NoteCall("policy", policy.text, policy=policy))

    def note(self, call: NoteCall) -> None:
        """Add an entry of the curator's own: see `forfeit`."""
        self._usable()
        self._take(call)

    def remark(self, call: Remarking) -> None:
        """Add entries about an analyst and a dataset, durably: see `hubbub.accounting.failures`."""
        self._usable()
        self._take(call)

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Look at the whole ledger as it is now."""
        self._usable()
        return self._store.snapshot()

    def verify(self) -> Verification:
        """Derive everything again, now."""
        self._usable()
        return examine(self._store, self._anchor)

    def time(self) -> int:
        """Give the time that a charge would have now."""
        return max(self._clock(), self._head.time)

    def close(self) -> None:
        """Make the anchor durable and let go of the database."""
        if self._process == os.getpid():
            self._stopped = self._stopped or LedgerError("HB314", "this ledger was closed.", "Open it again.")
            try:
                self._anchor.close()
            finally:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _usable(self) -> None:
        if self._stopped is not None:
            _raise(self._stopped)
        if os.getpid() != self._process:
            raise LedgerError(
                "HB313",
                "this ledger was opened by another process, before a fork. Nothing was charged.",
                "Open the ledger in the process that uses it.",
            )

    def _take(self, call: AnyCall) -> None:
        self._turns.take(call)
        if call.error is not None:
            _raise(call.error)

    def _serve(self, calls: Sequence[AnyCall]) -> None:
        """Serve a group in one transaction; an error that leaves the disk in doubt stops the ledger for good."""
        try:
            if self._stopped is None:
                self._transact(calls)
            else:
                _fail(calls, self._stopped)
        except BaseException as error:
            # nobody knows now what the disk has: no call is served before a start has verified the ledger
            self._store.rollback()
            self._stopped = LedgerError(
                "HB301", f"the ledger stopped after an error: {error}", "Restart hubbub: the start verifies the ledger."
            )
            self._stopped.__cause__ = error
            _fail(calls, self._stopped)
            if not isinstance(error, Exception):
                raise

    def _transact(self, calls: Sequence[AnyCall]) -> None:
        """Serve a group; where the database refuses a row of it, each call by itself, so that only its own call fails.

        After a refusal nothing was written, so what was counted for it is forgotten and read again from the database.
        """
        policy = self.policy
        try:
            self._attempt(calls)
        except LedgerError as error:
            if error.code != REFUSED:
                raise
            self._store.rollback()
            self._totals, self._head = Totals(self._store, policy), _NOWHERE
            for call in calls:
                call.reset()
                if len(calls) == 1:
                    call.error = error
                else:
                    self._transact([call])

    def _attempt(self, calls: Sequence[AnyCall]) -> None:
        try:
            keys = calls[0].keys if len(calls) == 1 else [key for call in calls for key in call.keys]
            head, found, news = self._store.begin(keys, self._head.sequence)
        except LedgerError as error:
            if error.code != "HB303":
                raise
            _fail(calls, error)
            return
        self._on_step("begun")
        if head != self._head:
            if head.sequence <= self._head.sequence:
                raise LedgerError(
                    "HB307", "the database was replaced while in use.", "Restart: that says what is wrong."
                )
            self._totals.catch_up(self._head.sequence, head.sequence, news)
            self._head = head
        clock = self._clock()
        turn = Transaction(head, clock, self._totals)
        try:
            for call in calls:
                turn.serve(call, found, clock)
        except (ValueError, OverflowError, MemoryError) as error:  # nothing was sent to the database yet
            raise refused(type(error).__name__) from error
        if not turn.entries:
            self._store.rollback()
            return
        self._store.commit(turn.entries, self._totals.carry(head.sequence, turn.sequence), turn.releases, self._on_step)
        self._on_step("committed")
        self._head = Head(turn.sequence, turn.hash, turn.time, turn.config)
        # after the commit, never before: an anchor ahead of the database would lock an honest owner out
        self._anchor.write(Mark(self._store.ledger, turn.sequence, turn.hash))
        self._on_step("anchored")


_NOWHERE = Head(-1, b"", 0, b"")


def examine(store: Store, anchor: Anchor) -> Verification:
    """Verify a ledger against its anchor."""
    for last in (False, True):
        # the anchor first: read after the database, it could be ahead by what was written in between
        mark = anchor.read()
        with store.snapshot() as snapshot:
            verification = verify(snapshot, mark)
        if last or mark is not None or verification.sound:
            break  # else another process may have made the anchor just now
    return verification


def _fail(calls: Sequence[Call], error: HubbubError) -> None:
    for call in calls:
        call.error = error


def _raise(error: HubbubError) -> NoReturn:
    """Raise an error that several threads may raise: each its own copy, or their tracebacks would mix."""
    raise type(error)(error.code, error.message, error.remedy) from error.__cause__
