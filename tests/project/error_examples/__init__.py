"""An example of each error code, as docs/errors.md shows it and tests/project/test_errors.py runs it.

An error that needs a broken disk, a second server or the like names a test that produces it instead.
"""

from tests.project.error_examples import (
    analyses,
    configuration,
    guarantees,
    ledger,
    owners,
    queries,
    tested,
    tools,
    use,
)
from tests.project.error_examples.world import WORLD, Example

__all__ = ["EXAMPLES", "TESTED", "WORLD", "Example"]

EXAMPLES: dict[str, Example] = {
    **analyses.EXAMPLES,
    **configuration.EXAMPLES,
    **guarantees.EXAMPLES,
    **ledger.EXAMPLES,
    **owners.EXAMPLES,
    **queries.EXAMPLES,
    **tools.EXAMPLES,
    **use.EXAMPLES,
}

#: Codes whose example is a test: path::name.
TESTED = tested.TESTED
