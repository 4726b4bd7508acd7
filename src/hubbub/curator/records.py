"""What can be read without asking the data: budgets, earlier releases and profiles. Free.

Tested in tests/curator/test_path.py.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction

from hubbub.accounting.chain import Entry
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.reviews import Reviewed, Reviews, decide, refuse_held
from hubbub.accounting.status import spending
from hubbub.accounting.store import EntryFilter
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.left_out import LeftOut
from hubbub.answers.profile import Profile
from hubbub.answers.release import Release
from hubbub.config import Config
from hubbub.core import numbers
from hubbub.core.schema import Table
from hubbub.curator import history as past
from hubbub.curator import receipt as receipts
from hubbub.curator.budgets import Budgets
from hubbub.curator.left_out import Profiles
from hubbub.curator.open_blocks import OpenBlocks
from hubbub.curator.planner import Planner
from hubbub.engines.base import Engine


class Records:
    """The ledger of one hubbub.yaml, as its owner and its analysts may read it. Thread-safe."""

    def __init__(self, config: Config, tables: Mapping[str, Table], ledger: Ledger, engine: Engine) -> None:
        self.config = config
        self.tables = tables
        self.ledger = ledger
        self.engine = engine
        self.open_blocks = OpenBlocks(ledger)
        self.planner = Planner(config, tables, engine, self.open_blocks)
        self._budgets = Budgets(ledger, config.policy, self.open_blocks)
        self._profiles = Profiles()
        self._reviews = Reviews()

    def profile(self, dataset: str) -> Profile | None:
        """Give the newest profile of a dataset that its owner published, if there is one; free."""
        with self.ledger.snapshot() as snapshot:
            self._profiles.take_in(snapshot)
        found = self._profiles.find(dataset)
        if found is None or dataset not in self.tables:
            return None
        return found.only({column.name for column in self.tables[dataset].columns if not column.hidden})

    def budget(self, analyst: str, *, exact: bool = False) -> tuple[BudgetOverview, ...]:
        """Show the spent and the remaining budget of each dataset that the analyst can query.

        What others spent is shown as precisely as the owner chose; `exact` is for the owner.
        """
        mine = [name for name in self.datasets(analyst) if not self.tables[name].public]
        return tuple(self._budgets.overview(analyst, self.tables[name], exact=exact) for name in mine)

    def spending(self, dataset: str, *, limit: int) -> dict[str, list[tuple[datetime, Fraction]]]:
        """Give the spent ε of each analyst on a dataset after each of its newest charges; for the owner."""
        with self.ledger.snapshot() as snapshot:
            return spending(snapshot, self.config.policy, dataset, self.ledger.time(), limit=limit)

    def releases(
        self, analyst: str | None, *, limit: int = 100, before: int | None = None, unseen: past.Unseen = frozenset()
    ) -> tuple[PastCharge, ...]:
        """List charges of one analyst, or of all if None, newest first; `before` continues an earlier list.

        Charges in `unseen` are listed without their releases.
        """
        limit = numbers.integer(limit, "limit", 1, 1000)
        with self.ledger.snapshot() as snapshot:
            which = EntryFilter(kind="charge", analyst=analyst, before=before)
            return past.list_charges(snapshot, which, limit, self.config.policy, unseen, self._reviews)

    def release(self, number: int, *, analyst: str | None, unseen: past.Unseen = frozenset()) -> Release:
        """Give the release of a charge for free: of this analyst, or of any analyst if None, also before its review."""
        with self.ledger.snapshot() as snapshot:
            self._profiles.take_in(snapshot)
            if analyst is not None:
                unseen = unseen | self._reviews.held_in(snapshot)
                charge = past.find_charge(snapshot, number, analyst)
                refuse_held(None if charge is None else self._reviews.of(charge))
            stored = past.find_release(snapshot, number, analyst, unseen)
        return self._release(stored, analyst, replayed=True)

    def recall(self, analyst: str, key: str) -> Release | None:
        """Give the release of the charge under this key of the ledger (see `Claim`) for free, if there is one."""
        charge = self.ledger.recall(analyst, key)
        if charge is not None:
            self.refuse_held([charge.entry])
        stored = None if charge is None else charge.release
        return None if stored is None else self._release(stored, analyst, replayed=True)

    def reviews(self) -> tuple[Reviewed, ...]:
        """List all answers that need or needed review, newest first; for those who review."""
        with self.ledger.snapshot() as snapshot:
            self._reviews.take_in(snapshot)
        return self._reviews.all()

    def decide(self, number: int, *, approve: bool, by: str, reason: str = "") -> Reviewed:
        """Record a person's decision on an answer that waits for review."""
        self.release(number, analyst=None)  # raises if there is no answer: nobody can approve what they cannot read
        return decide(self.ledger, number, approve=approve, by=by, reason=reason)

    def refuse_held(self, charges: Iterable[Entry]) -> None:
        """Raise an error if an answer has to be approved first; `charges` were read before."""
        with self.ledger.snapshot() as snapshot:
            self._reviews.take_in(snapshot)
        for charge in charges:
            refuse_held(self._reviews.of(charge))

    def charge(self, number: int) -> Entry:
        """Give the charge of a release, of any analyst."""
        with self.ledger.snapshot() as snapshot:
            charge = past.find_charge(snapshot, number, None)
        if charge is None:
            raise AssertionError("a release has a charge")
        return charge

    def refuse_held_release(self, number: int) -> None:
        """Raise an error if the answer with this number, of any analyst, has to be approved first."""
        with self.ledger.snapshot() as snapshot:
            charge = past.find_charge(snapshot, number, None)
        self.refuse_held([] if charge is None else [charge])

    def datasets(self, analyst: str) -> tuple[str, ...]:
        """List the datasets that an analyst can query: public tables, and those with a cap for the analyst."""
        return self.planner.datasets(analyst)

    def _release(self, stored: bytes, analyst: str | None, *, replayed: bool) -> Release:
        """Decode a stored release; for an analyst, with the remaining budget."""
        found = receipts.decode(stored)
        paper = found.receipt
        epsilon, delta = (Fraction(paper["charge"][name]) for name in ("epsilon", "delta"))
        left = None
        if analyst is not None:
            left = self._budgets.left(analyst, paper, self.datasets(analyst))
        left_out = LeftOut.from_receipt(paper)
        if left_out is not None:
            left_out = self._profiles.recorded(left_out, paper["data"])
        facts = (found.outputs, found.ratio, epsilon, delta, paper, left, replayed, found.model, left_out)
        return Release(*facts, packed=found.packed)
