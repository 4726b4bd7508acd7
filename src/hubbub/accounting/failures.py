"""Failures: runs that ended in HB900 after their charge, counted for each analyst and dataset until the owner looks.

A failure after the charge has no noise: that it came can tell a bit about the data. So each is an entry of the chain,
once a charge, and an owner's `failures` of hubbub.yaml says after how many an analyst's next query is refused. An entry
of the kind `reviewed` starts the count again.
"""

from collections.abc import Sequence
from heapq import merge
from threading import Lock

from hubbub.accounting.calls import Remark, Remarking
from hubbub.accounting.chain import canonical
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.store import Filter, Snapshot
from hubbub.errors import LedgerError

#: An analyst and a dataset.
Pair = tuple[str, str]


class Failures:
    """The failed charges of each analyst on each dataset since the owner's last look. Safe to use from many threads.

    It remembers how far it has read, so that a look reads the newest entries alone.
    """

    def __init__(self) -> None:
        self._failed: dict[Pair, dict[int, None]] = {}
        self._read = 0
        self._lock = Lock()

    def take_in(self, snapshot: Snapshot) -> None:
        """Read what was written since the last look."""
        with self._lock:
            kinds = [snapshot.entries(Filter(kind=kind), after=self._read) for kind in ("failure", "reviewed")]
            for entry in merge(*map(list, kinds), key=lambda entry: entry.sequence):
                pair = entry.analyst, entry.dataset
                if entry.kind == "reviewed":
                    self._failed.pop(pair, None)
                else:
                    self._failed.setdefault(pair, {})[entry.charge] = None
            self._read = snapshot.head().sequence

    def of(self, analyst: str, dataset: str) -> tuple[int, ...]:
        """Give the charges that failed."""
        with self._lock:
            return tuple(self._failed.get((analyst, dataset), ()))

    def every(self) -> dict[Pair, tuple[int, ...]]:
        """Give them all."""
        with self._lock:
            return {pair: tuple(charges) for pair, charges in sorted(self._failed.items())}

    def note(self, ledger: Ledger, failed: Sequence[Remark]) -> None:
        """Count the failure of a run's charges: here at once, and durably in the ledger; each charge once."""
        with ledger.snapshot() as snapshot:
            self.take_in(snapshot)
        with self._lock:
            new = [each for each in failed if each.charge not in self._failed.get((each.analyst, each.dataset), {})]
            for analyst, dataset, charge in new:
                self._failed.setdefault((analyst, dataset), {})[charge] = None
        if new:
            ledger.remark(Remarking("failure", new))

    def refuse(self, analyst: str, dataset: str, most: int) -> None:
        """Refuse an analyst whose runs on a dataset failed too often."""
        if len(self.of(analyst, dataset)) >= most:
            raise LedgerError(
                "HB325",
                f"{most} of {analyst}'s queries on {dataset} failed after their charge, and each failure can "
                "tell something about the data. Nothing was run or charged.",
                f"Ask the owner to look: `hubbub admin failures` lists them, and `hubbub admin failures --clear "
                f"{analyst} {dataset}` lets you go on.",
            )


def review(ledger: Ledger, analyst: str, dataset: str, *, by: str) -> tuple[int, ...]:
    """Write down that the owner looked at the failures of an analyst on a dataset; give the charges."""
    failures = Failures()
    with ledger.snapshot() as snapshot:
        failures.take_in(snapshot)
    charges = failures.of(analyst, dataset)
    if not charges:
        raise LedgerError(
            "HB327", f"no failure of {analyst} on {dataset} waits for a look.", "hubbub admin failures lists them."
        )
    if not by.strip() or "\0" in by:
        raise LedgerError("HB327", "a review needs the name of who looked.", "Say it with --by: it is kept.")
    facts = canonical({"by": by, "charges": list(charges)})
    ledger.remark(Remarking("reviewed", [Remark(analyst, dataset, 0)], facts))
    return charges
