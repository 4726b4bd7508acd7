"""Count the runs of each analyst on each dataset that failed (HB900) after they were charged.

A failure after the charge has no noise, so it can reveal a bit about the data. Each is recorded in the ledger, once
per charge, and after `failures` of them (in hubbub.yaml) the analyst's next query is refused until the owner reviews
them. An entry of the kind `reviewed` resets the count.
"""

from collections.abc import Sequence
from heapq import merge
from threading import Lock

from hubbub.accounting.calls import Remark, RemarkCall
from hubbub.accounting.chain import canonical
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.errors import LedgerError

#: An analyst and a dataset.
Pair = tuple[str, str]


class Failures:
    """The failed charges of each analyst on each dataset since the owner's last review. Thread-safe.

    It remembers the last entry that it read, so that an update reads only the newer ones.
    """

    def __init__(self) -> None:
        self._failed: dict[Pair, dict[int, None]] = {}
        self._read = 0
        self._lock = Lock()

    def take_in(self, snapshot: Snapshot) -> None:
        """Read the entries that were written since the last update."""
        newest = snapshot.head().sequence
        with self._lock:
            if newest <= self._read:
                return
            kinds = [snapshot.entries(EntryFilter(kind=kind), after=self._read) for kind in ("failure", "reviewed")]
            for entry in merge(*map(list, kinds), key=lambda entry: entry.sequence):
                pair = entry.analyst, entry.dataset
                if entry.kind == "reviewed":
                    self._failed.pop(pair, None)
                else:
                    self._failed.setdefault(pair, {})[entry.charge] = None
            self._read = newest

    def of(self, analyst: str, dataset: str) -> tuple[int, ...]:
        """Give the failed charges of an analyst on a dataset."""
        with self._lock:
            return tuple(self._failed.get((analyst, dataset), ()))

    def every(self) -> dict[Pair, tuple[int, ...]]:
        """Give all failed charges."""
        with self._lock:
            return {pair: tuple(charges) for pair, charges in sorted(self._failed.items())}

    def note(self, ledger: Ledger, failed: Sequence[Remark]) -> None:
        """Count the failed charges of a run, in memory and durably in the ledger, each once."""
        with ledger.snapshot() as snapshot:
            self.take_in(snapshot)
        with self._lock:
            new = [remark for remark in failed if remark.charge not in self._failed.get(remark[:2], {})]
            for analyst, dataset, charge in new:
                self._failed.setdefault((analyst, dataset), {})[charge] = None
        if new:
            ledger.remark(RemarkCall("failure", new))

    def refuse(self, analyst: str, dataset: str, most: int) -> None:
        """Refuse an analyst with too many failed runs on a dataset."""
        if len(self.of(analyst, dataset)) >= most:
            raise LedgerError(
                "HB325",
                f"{most} queries of {analyst} on {dataset} failed after they were charged, and each failure can reveal "
                "something about the data. Nothing was run or charged.",
                "Ask the data owner to review them: `hubbub admin failures` lists them, and `hubbub admin failures "
                f"--clear {analyst} {dataset}` resets the count.",
            )


def review(ledger: Ledger, analyst: str, dataset: str, *, by: str) -> tuple[int, ...]:
    """Record the owner's review of the failures of an analyst on a dataset; return the charges."""
    failures = Failures()
    with ledger.snapshot() as snapshot:
        failures.take_in(snapshot)
    charges = failures.of(analyst, dataset)
    if not charges:
        raise LedgerError(
            "HB327",
            f"There are no failures of {analyst} on {dataset} to review.",
            "List the failures with `hubbub admin failures`.",
        )
    if not by.strip() or "\0" in by:
        raise LedgerError(
            "HB327", "A review needs the name of the reviewer.", "Pass --by and your name; it is recorded."
        )
    facts = canonical({"by": by, "charges": list(charges)})
    ledger.remark(RemarkCall("reviewed", [Remark(analyst, dataset, 0)], facts))
    return charges
