"""The budgets of an analyst on datasets and their blocks, as the ledger has them now.

Tested in tests/curator/test_blocks.py.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from hubbub.accounting.ledger import Ledger
from hubbub.accounting.policy import Policy
from hubbub.accounting.status import BudgetStatus, RecordedTotals, block_statuses, overview_of_blocks
from hubbub.answers.budget import BudgetOverview
from hubbub.core.blocks import BlockSet
from hubbub.core.schema import Table
from hubbub.curator.open_blocks import OpenBlocks


@dataclass(frozen=True)
class Budgets:
    """What is left of the budgets of one policy."""

    ledger: Ledger
    policy: Policy
    open_blocks: OpenBlocks

    def of(self, analyst: str, table: Table, *, exact: bool = False) -> list[BudgetStatus]:
        """Read the budget on a dataset, or on each of the blocks that are read."""
        read, time = None if table.blocks is None else table.blocks.read, self.ledger.time()
        with self.ledger.snapshot() as snapshot:
            return block_statuses(snapshot, self.policy, analyst, table.name, time, read, exact=exact)

    def overview(self, analyst: str, table: Table, *, exact: bool) -> BudgetOverview:
        """Summarize the budget on a dataset, with a line for each of its newest blocks."""
        shown = self.open_blocks.shown(table)
        if table.blocks is None or not len(shown):
            return self.of(analyst, table, exact=exact)[0].overview()
        reading = replace(table, blocks=table.blocks.reading(shown))
        closed = self.open_blocks.closed().get(table.name, frozenset())
        return overview_of_blocks(self.of(analyst, reading, exact=exact), shown, closed)

    def left(self, analyst: str, paper: Mapping[str, Any], visible: Collection[str]) -> Callable[[], Fraction | None]:
        """Give a function that tells what is left of what a receipt was charged to, from the ledger as it is now."""
        blocks = {each["dataset"]: each.get("blocks") for each in paper["data"] if each["dataset"] in visible}
        read = {name: None if form is None else BlockSet.from_json(form) for name, form in blocks.items()}
        with self.ledger.snapshot() as snapshot:
            totals = RecordedTotals.read(snapshot)
        return partial(totals.least_left, self.policy, analyst, read, self.ledger.time())
