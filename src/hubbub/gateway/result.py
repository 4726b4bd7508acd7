"""The result of a statement: columns with types, rows, and what the client is told beside them.

Tested in tests/gateway/test_session.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.gateway.values import PgType

PgColumns = tuple[tuple[str, PgType], ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark for the client."""

    text: str
    detail: str = ""
    severity: str = "NOTICE"
    state: str = "00000"


@dataclass(frozen=True, slots=True)
class PgResult:
    """Rows with their columns, or only a `tag` if there are no columns; `spent` is what was charged for them."""

    columns: PgColumns | None
    rows: Sequence[tuple[Any, ...]] = ()
    tag: str = "SELECT"
    notices: tuple[Notice, ...] = ()
    spent: Fraction = Fraction(0)
