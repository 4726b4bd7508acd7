"""Read `suppress_below:` and `round_to:` of a dataset.

Tested in tests/config/test_disclosure.py.
"""

from collections.abc import Mapping

from hubbub.config.document import reject
from hubbub.core import numbers
from hubbub.core.disclosure import NO_RULE, DisclosureRule
from hubbub.errors import HubbubError

#: The largest threshold, and the largest number that counts are rounded to.
MAX_RULE = 10**6


def read_disclosure(entry: Mapping[str, object], path: str, *, public: bool) -> DisclosureRule:
    """Read the rules for small numbers and rounding of one dataset."""
    given = [name for name in ("suppress_below", "round_to") if name in entry]
    if not given:
        return NO_RULE
    if public:
        reject("HB866", f"{path}.{given[0]}", "is only for private datasets", "Remove it: public tables are exact.")
    rounded = entry.get("round_to")
    return DisclosureRule(
        _whole(entry, "suppress_below", path),
        None if rounded == "noise" else _whole(entry, "round_to", path),
        round_by_noise=rounded == "noise",
    )


def _whole(entry: Mapping[str, object], name: str, path: str) -> int | None:
    if name not in entry:
        return None
    example = "suppress_below: 11" if name == "suppress_below" else "round_to: 5` or `round_to: noise"
    try:
        return numbers.integer(entry[name], f"{path}.{name}", 2, MAX_RULE)
    except HubbubError:
        reject("HB866", f"{path}.{name}", f"is not a whole number from 2 to {MAX_RULE:,}", f"Write `{example}`.")
