"""Read `sandbox:` of a dataset: whether analysts may try queries on made-up rows, and on which.

Tested in tests/config/test_sandbox.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hubbub.config.document import KEYS, check_keys, expect_mapping, reject
from hubbub.core import numbers
from hubbub.errors import HubbubError

#: The most rows that a stand-in has.
MAX_ROWS = 1_000_000
_REMEDY = "Write `sandbox: off`, `sandbox: {rows: 20000}`, or `sandbox: {release: 17}`."


@dataclass(frozen=True, slots=True)
class SandboxRule:
    """The stand-in of a dataset.

    allowed  whether there is one
    rows     how many rows are made up; None: a public default
    release  the number of a release of synthetic rows that is the stand-in; None: rows are made up
    """

    allowed: bool = True
    rows: int | None = None
    release: int | None = None


#: The rule of a dataset that has none: made-up rows.
ON = SandboxRule()


def read_sandbox(entry: Mapping[str, object], path: str, *, public: bool) -> SandboxRule:
    """Read the rule of one dataset."""
    if "sandbox" not in entry:
        return ON
    value, path = entry["sandbox"], f"{path}.sandbox"
    if public:
        reject("HB860", path, "is only for private datasets", "Remove it: the sandbox reads public tables as they are.")
    if isinstance(value, bool) or value in ("on", "off"):
        return SandboxRule(allowed=value in (True, "on"))
    if not isinstance(value, Mapping) or not value:
        reject("HB860", path, "is not a rule for the sandbox", _REMEDY)
    terms = expect_mapping(value, path)
    check_keys(terms, path, KEYS["datasets.*.sandbox"])
    if len(terms) > 1:
        reject("HB860", path, "has both rows and a release", _REMEDY)
    try:
        if "rows" in terms:
            return SandboxRule(rows=numbers.integer(terms["rows"], f"{path}.rows", 1, MAX_ROWS))
        return SandboxRule(release=numbers.integer(terms["release"], f"{path}.release", 1, 2**62))
    except HubbubError as error:
        reject("HB860", path, f"is out of range: {error.message}", _REMEDY)
