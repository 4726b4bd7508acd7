"""What notices an analysis that buys too little noise: the search for its worst neighbors."""

import os
from collections.abc import Callable, Iterator
from itertools import islice

from tests.contract.subjects import Tried, every

#: At small scale one of so many is looked at where nothing says which; the test of the contract looks at all.
_SOME = 24
_named: list[str] = []


def look_at(*names: str) -> None:
    """Say which analyses an error is in: those alone are looked at."""
    _named.extend(names)


def contract() -> list[str]:
    """Search for the worst neighbors: no noise covers less than they move, and each is used as far as is known."""
    return list(islice((said for tried in _chosen() for said in tried.complaints()), 1))


def _chosen() -> Iterator[Tried]:
    some = 1 if _named or os.environ.get("HUBBUB_CAMPAIGN") == "full" else _SOME
    chosen = (each for each in every() if not _named or any(each.name.startswith(name) for name in _named))
    return islice(chosen, 0, None, some)


CHECKS: dict[str, Callable[[], list[str]]] = {"contract": contract}
