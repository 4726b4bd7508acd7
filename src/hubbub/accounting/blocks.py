"""Close a block for good: no later charge can read it, under any policy.

Tested in tests/accounting/test_blocks.py.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from hubbub.accounting.calls import NoteCall
from hubbub.accounting.chain import canonical
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.policy import Cap, basis
from hubbub.accounting.verify import cost_of_budget
from hubbub.core.blocks import block_name, block_number, number
from hubbub.core.numbers import EPSILON_MAX
from hubbub.errors import ParameterError

#: What closing a block charges to it: no cap can be this large.
CLOSED = 2 * EPSILON_MAX
_EARLIEST = date(1900, 1, 1)


def close_block(ledger: Ledger, dataset: str, name: str, *, by: str, reason: str) -> int:
    """Close a block of a dataset for good; return the number of the ledger's entry.

    Theorem (Closed for good). After the entry, no charge names the block, whatever policy is in force later.
    Proof    The entry adds a pure loss of `CLOSED` to the total of the dataset's cap on this block, with the Rényi
             divergences of randomized response at that ε. A cap's ε is at most half of it, so the pure filter admits
             nothing more; and the divergence at each order is above what any cap of at most that ε can allow. Totals
             only grow, and a dataset with blocks always has this cap (`Policy.from_record`).
    Charges  `CLOSED` to the cap of everybody on this block, and nothing to any other.
    Tested   tests/accounting/test_blocks.py::test_a_closed_block_stays_closed_under_the_largest_cap
    """
    if not by.strip() or not reason.strip() or "\0" in by + reason:
        raise ParameterError("HB208", "Closing a block needs a name and a reason.", "Pass --by and --reason.")
    declared = ledger.policy.blocks(dataset)
    if declared is None:
        raise ParameterError("HB208", f"{dataset} has no blocks.", "Name a dataset that declares `blocks`.")
    try:
        block = block_number(declared.by, name)
    except ValueError:
        example = block_name(declared.by, declared.first)
        raise ParameterError(
            "HB208", f"{name!r} is not a {declared.by}. Nothing was closed.", f"Write it like {example}."
        ) from None
    today = number(declared.by, datetime.fromtimestamp(ledger.time() / 1_000_000, UTC).date())
    # closing is for good: a typing error must not take a period that is still to come
    newest = today if declared.last is None else min(today, declared.last)
    if not number(declared.by, _EARLIEST) <= block <= newest:
        raise ParameterError(
            "HB208",
            f"{dataset} has no block {name} today. Nothing was closed.",
            f"Its newest block is {block_name(declared.by, newest)}.",
        )
    of_everybody = basis(ledger.policy.datasets[dataset])
    label = Cap("dataset", dataset, dataset, of_everybody.budget, block=block_name(declared.by, block)).label
    facts = {"by": by, "reason": reason, "charged": {label: [str(CLOSED), "0"]}, "closed": [[dataset, name]]}
    ledger.note(NoteCall("forfeit", canonical(facts), {label: cost_of_budget(CLOSED, Fraction(0))}, sets_clock=False))
    with ledger.snapshot() as snapshot:
        return snapshot.head().sequence


def closed_by(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give the datasets and blocks that an entry closed."""
    return [(dataset, name) for dataset, name in facts.get("closed", ())]
