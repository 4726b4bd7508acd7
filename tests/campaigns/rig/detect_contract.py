"""Detector of analyses with too little noise: a search for their worst neighbors."""

import os
from collections.abc import Callable, Iterator
from itertools import islice

from tests.contract.subjects import Tried, every

#: At small scale one in this many analyses is checked; the contract tests check all.
_SOME = 24
_named: list[str] = []


def look_at(*names: str) -> None:
    """Restrict the detector to the analyses that contain the error."""
    _named.extend(names)


def contract() -> list[str]:
    """Search for the worst neighbors of each analysis: noise covers them, and is as tight as known."""
    return list(islice((said for tried in _chosen() for said in tried.complaints()), 1))


def _chosen() -> Iterator[Tried]:
    some = 1 if _named or os.environ.get("HUBBUB_CAMPAIGN") == "full" else _SOME
    chosen = (each for each in every() if not _named or any(each.name.startswith(name) for name in _named))
    return islice(chosen, 0, None, some)


CHECKS: dict[str, Callable[[], list[str]]] = {"contract": contract}
