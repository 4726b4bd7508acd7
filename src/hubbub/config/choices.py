"""What the owner chose on the set-up page, for the first hubbub.yaml.

Tested in tests/config/test_template.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hubbub.core.schema import Kind

#: What analysts may do with a column, beside filters: sums within bounds (found or declared), groups, nothing more.
Use = Literal["auto", "bounds", "values", "filter", "hidden"]


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """One column; `values` are its two bounds, or the values to group by, as numbers or texts without quotes."""

    kind: Kind
    use: Use
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableChoice:
    """One table; numbers are as they are written.

    public     the table is about nobody, and nothing else applies
    column     equal values in it are one person; None if each row is one
    rows       the rows of one person that a query uses, in each of `groups` groups; None finds them privately
    cap        the part of `epsilon` that the first analyst may use
    """

    public: bool = False
    column: str | None = None
    groups: int | None = None
    rows: int | None = None
    columns: Mapping[str, ColumnChoice] = field(default_factory=dict)
    epsilon: str = "1"
    delta: str | None = None
    per_query: str | None = None
    cap: str = "1"


Choices = Mapping[str, TableChoice]
