"""The ledger, in which every privacy charge is made.

All code that reads data calls `charge` first. It returns only after the charge is durable and within every cap, and
only then may the data be read: a crash costs budget, never privacy. `record` stores the release of a charge and returns
the release to publish: a charge has one release, however often it is retried.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from hubbub.accounting.anchor import Anchor
from hubbub.accounting.calls import (
    AnyCall,
    Charge,
    ChargeCall,
    ChargeRequest,
    LookupCall,
    NoteCall,
    RecordCall,
    RemarkCall,
)
from hubbub.accounting.chain import Mark
from hubbub.accounting.group_commit import GroupCommit, PendingCall
from hubbub.accounting.policy import Policy
from hubbub.accounting.refusal import budget_error
from hubbub.accounting.store import MAX_RELEASE_BYTES, REFUSED, EntryFilter, Head, OnStep, Snapshot, Store, row_refused
from hubbub.accounting.totals import Totals
from hubbub.accounting.transaction import Transaction
from hubbub.accounting.verify import LedgerProblem, Verification, verify
from hubbub.accounting.witness import WitnessedAnchor
from hubbub.errors import HubbubError, LedgerError


def now() -> int:
    """Read the wall clock in microseconds."""
    return time.time_ns() // 1000


def no_step(_: str) -> None:
    """Do nothing; stress tests stop the process at a step."""


class Ledger:
    """A verified ledger under a policy. Thread-safe; another process opens its own."""

    def __init__(self, store: Store, policy: Policy, anchor: Anchor, clock: Callable[[], int], on_step: OnStep) -> None:
        """Use `Ledger.open`, which verifies the ledger."""
        self._store = store
        self._anchor = anchor
        self._clock = clock
        self._on_step = on_step
        self._head = _NO_HEAD
        self._totals = Totals(store, policy)
        self._group_commit: GroupCommit[AnyCall] = GroupCommit(self._serve)
        self._stopped: LedgerError | None = None
        self._process = os.getpid()
        self._shared = threading.local()  # the snapshot of `one_snapshot`

    @classmethod
    def open(
        cls, store: Store, *, policy: Policy, anchor: Anchor, clock: Callable[[], int] = now, on_step: OnStep = no_step
    ) -> Self:
        """Verify the ledger, refuse one that was edited, truncated or restored, and record a new policy."""
        verification = examine(store, anchor)
        verification.refuse(anchor.where)
        if verification.anchor is None:
            anchor.reset(verification.head)
        else:
            anchor.write(verification.head)  # an anchor that cannot be written must be noticed before the first charge
        ledger = cls(store, policy, anchor, clock, on_step)
        ledger.note(NoteCall("policy", policy.text))
        return ledger

    def charge(self, request: ChargeRequest) -> Charge:
        """Make a durable charge within all caps, or raise an error and charge nothing.

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

    def charge_all(self, requests: Sequence[ChargeRequest]) -> list[Charge]:
        """Make durable charges on several datasets, all or none.

        One commit holds all charges. Requests whose key is already charged are replayed; of the others, all are charged
        or none. The largest ε in the error fits on all of the datasets.
        """
        self._usable()
        for request in requests:
            # raises if the analyst, the dataset or its blocks are unknown
            self.policy.charged(request.analyst, request.dataset, request.blocks)
        call = ChargeCall(requests)
        self._take(call)
        if call.outcome is not None:
            return call.outcome
        if call.refusal is None:
            raise LedgerError("HB301", "The ledger stopped.", "Restart hubbub; startup verification checks the ledger.")
        raise budget_error(*call.refusal, requests[0].analyst, self.policy.show)

    def record(self, charge: Charge, release: bytes) -> bytes:
        """Store the release of a charge durably, and return the one to publish: the first release of the charge.

        If the release is too large, or the database rejects it, only this call fails; the charge remains.
        """
        self._usable()
        if len(release) > MAX_RELEASE_BYTES:
            raise LedgerError(
                "HB330",
                f"The result is larger than {MAX_RELEASE_BYTES:,} bytes.",
                "Query fewer groups, columns or rows.",
            )
        call = RecordCall(charge, bytes(release))
        self._take(call)
        return call.outcome

    def recall(self, analyst: str, key: str) -> Charge | None:
        """Look up the charge of a key, with its release; None if there is no such charge.

        It takes the writer lock, so that it sees every earlier charge of any process.
        """
        self._usable()
        call = LookupCall(analyst, key)
        self._take(call)
        return call.outcome

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._totals.policy

    @property
    def folders(self) -> tuple[Path, ...]:
        """The local folders that a charge writes to: of the database, if it is a file, and of the anchor."""
        paths = [path for path in (self._store.where, self._anchor.where) if "://" not in path]
        return tuple({Path(path).resolve().parent for path in paths})

    @property
    def stopped(self) -> bool:
        """Whether an error left the disk in an unknown state: a restart must verify the ledger."""
        return self._stopped is not None

    def govern(self, policy: Policy) -> None:
        """Change the policy durably: each charge is decided under the old policy or the new one.

        The change is queued like any other call. Charges before it are decided under the old policy, and their totals
        are stored with the entry of the new one; charges after it are decided under the new policy. If the entry cannot
        be written, the old policy stays.

        Theorem (Change of policy). Let the policy be changed while queries are asked, each change chosen by whatever
        was answered so far. If no policy gives a dataset more than ε, the whole transcript is ε-private for it.
        Proof    A charge is decided under one policy, on the total of all that was charged to the dataset before,
                 under whatever policy: totals are kept by cap and only ever grow. So the losses along every transcript
                 sum to at most the largest cap in force at a charge, hence to at most ε; the theorem of adaptive
                 queries does the rest, the owner's choices being a function of the transcript.
        Assumes  caps with δ = 0; `filters` has the theorem for caps with δ > 0.
        Charges  nothing by itself.
        Tested   tests/accounting/test_govern.py::test_charges_during_changes_fall_under_the_old_or_the_new_policy
                 tests/accounting/test_govern.py::test_a_raised_cap_is_spent_up_to_and_no_further
        """
        self.note(NoteCall("policy", policy.text, policy=policy))

    def note(self, call: NoteCall) -> None:
        """Add a policy or a forfeit."""
        self._usable()
        self._take(call)

    def remark(self, call: RemarkCall) -> None:
        """Add entries about failures, durably: see `hubbub.accounting.failures`."""
        self._usable()
        self._take(call)

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent view of the whole ledger; within `one_snapshot`, the one that is open."""
        self._usable()
        shared: Snapshot | None = getattr(self._shared, "snapshot", None)
        return self._store.snapshot() if shared is None else nullcontext(shared)

    @contextmanager
    def one_snapshot(self) -> Iterator[None]:
        """Let this thread read one state of the ledger meanwhile: for reading alone, since a charge would not show."""
        with self.snapshot() as snapshot:
            before = getattr(self._shared, "snapshot", None)
            self._shared.snapshot = snapshot
            try:
                yield
            finally:
                self._shared.snapshot = before

    def verify(self) -> Verification:
        """Verify the ledger and its anchor now."""
        self._usable()
        return examine(self._store, self._anchor)

    def time(self) -> int:
        """Give the timestamp that a charge would get now."""
        return max(self._clock(), self._head.time)

    def close(self) -> None:
        """Make the anchor durable and close the database."""
        if self._process == os.getpid():
            self._stopped = self._stopped or LedgerError("HB314", "This ledger is closed.", "Open it again.")
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
                "This ledger was opened by another process, before a fork. Nothing was charged.",
                "Open the ledger in the process that uses it.",
            )

    def _take(self, call: AnyCall) -> None:
        self._group_commit.take(call)
        if call.error is not None:
            _raise(call.error)

    def _serve(self, calls: Sequence[AnyCall]) -> None:
        """Serve a batch in one transaction; stop for good after an error that leaves the disk in an unknown state."""
        try:
            if self._stopped is None:
                self._transact(calls)
            else:
                _fail(calls, self._stopped)
        except BaseException as error:
            # the state of the disk is unknown: serve no call until a restart has verified the ledger
            self._store.rollback()
            self._stopped = LedgerError(
                "HB301",
                f"The ledger stopped after an error: {error}",
                "Restart hubbub; startup verification checks the ledger.",
            )
            self._stopped.__cause__ = error
            _fail(calls, self._stopped)
            if not isinstance(error, Exception):
                raise

    def _transact(self, calls: Sequence[AnyCall]) -> None:
        """Serve a batch; if the database rejects a row, serve each call alone, so that only one fails.

        After a rejection nothing was written, so the totals are read from the database again.
        """
        policy = self.policy
        try:
            self._attempt(calls)
        except LedgerError as error:
            if error.code != REFUSED:
                raise
            self._store.rollback()
            self._totals, self._head = Totals(self._store, policy), _NO_HEAD
            for call in calls:
                call.reset()
                if len(calls) == 1:
                    call.error = error
                else:
                    self._transact([call])

    def _attempt(self, calls: Sequence[AnyCall]) -> None:
        try:
            keys = calls[0].keys if len(calls) == 1 else [key for call in calls for key in call.keys]
            head, charges, news = self._store.begin(keys, self._head.sequence)
        except LedgerError as error:
            if error.code != "HB303":
                raise
            _fail(calls, error)
            return
        self._on_step("begun")
        if head != self._head:
            if head.sequence <= self._head.sequence:
                raise LedgerError(
                    "HB307",
                    "The ledger database was replaced while in use.",
                    "Restart hubbub; startup verification reports the details.",
                )
            self._totals.catch_up(self._head.sequence, head.sequence, news)
            self._head = head
        clock = self._clock()
        transaction = Transaction(head, clock, self._totals)
        try:
            for call in calls:
                transaction.serve(call, charges, clock)
        except (ValueError, OverflowError, MemoryError) as error:  # nothing was sent to the database yet
            raise row_refused(type(error).__name__) from error
        if not transaction.entries:
            self._store.rollback()
            return
        totals = self._totals.carry(head.sequence, transaction.sequence)
        self._store.commit(transaction.entries, totals, transaction.releases, self._on_step)
        self._on_step("committed")
        self._head = Head(transaction.sequence, transaction.hash, transaction.time, transaction.config)
        # after the commit, never before: an anchor ahead of the database would lock an honest owner out
        self._anchor.write(Mark(self._store.ledger, transaction.sequence, transaction.hash))
        self._on_step("anchored")


_NO_HEAD = Head(-1, b"", 0, b"")


def examine(store: Store, anchor: Anchor) -> Verification:
    """Verify a ledger against its anchor."""
    for last in (False, True):
        # read the anchor first: read after the database, it could be ahead by entries written in between
        mark = anchor.read()
        witnessed = anchor.witnessed if isinstance(anchor, WitnessedAnchor) else None
        with store.snapshot() as snapshot:
            verification = verify(snapshot, mark)
            if verification.sound and witnessed is not None and witnessed != mark:
                verification = _compared(snapshot, verification, witnessed)
        if last or mark is not None or verification.sound:
            break  # otherwise another process may have created the anchor just now
    return verification


def _compared(snapshot: Snapshot, verification: Verification, witnessed: Mark) -> Verification:
    """Refuse a ledger that has another entry where the witness was told of one."""
    number = witnessed.sequence
    entry = next(snapshot.entries(EntryFilter(before=number + 1), after=number - 1), None)
    if entry is None or entry.hash == witnessed.hash:
        return verification
    problem = LedgerProblem("anchor", f"entry {number} does not match the witness, so entries were replaced")
    return replace(verification, problems=(problem,))


def _fail(calls: Sequence[PendingCall], error: HubbubError) -> None:
    for call in calls:
        call.error = error


def _raise(error: HubbubError) -> NoReturn:
    """Raise a copy of an error, so that the tracebacks of several threads do not mix."""
    raise type(error)(error.code, error.message, error.remedy) from error.__cause__
