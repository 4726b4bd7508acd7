"""Carry several sums of a pair of unit and cell as one double, because one number is added up and sorted faster.

Tested in tests/sql/test_packed_sums.py and tests/sql/test_groups_first.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hubbub.sql.dialects.base import Dialect

#: Doubles hold all integers up to 2⁵³.
_EXACT = 1 << 53


@dataclass(frozen=True, slots=True)
class PackedField:
    """A sum within a packed number: its first bit, its bits, and what is added to each row so that none is negative."""

    first: int
    bits: int
    raised: int


@dataclass(frozen=True, slots=True)
class PackedSums:
    """How sums of at most `rows` rows lie in one number, whose highest field is the number of rows.

    Theorem (Packed sums). For a pair with at most `rows` rows the number is below the threshold and its fields are the
    exact number of rows and the exact sums. For a pair with more rows it is at least the threshold.
    Proof    Let 2ᵏ be the unit of the highest field. A row adds 2ᵏ and an integer of at least 0 to each other field,
             and what `rows` rows add to a field is less than its size, so none reaches the next one. The threshold is
             (rows + 1)·2ᵏ ≤ 2⁵³. For up to `rows` rows every partial sum, in whatever order, is an integer below it:
             additions of doubles are exact. For more rows, partial sums over j rows are at least min(j, rows + 1)·2ᵏ:
             this holds for one row, and if it holds for two parts then the sum of both is at least that value of the
             whole, which is a double, and rounding is monotone.
    Assumes  each measure adds between its `low` and its `high`, or NULL for 0; the engine adds doubles by IEEE 754.
    Tested   tests/sql/test_packed_sums.py::test_fields_are_exact_up_to_the_bound_and_more_rows_are_seen
    """

    rows: int
    top: int
    fields: Mapping[int, PackedField]

    @property
    def threshold(self) -> int:
        """The least number of a pair with more than `rows` rows."""
        return (self.rows + 1) << self.top

    def row(self, dialect: Dialect) -> str:
        """Write what a row adds, from its values v0, v1, …"""
        constant = (1 << self.top) + sum(field.raised << field.first for field in self.fields.values())
        terms = [f"coalesce(v{i}, 0) * {dialect.number(1 << field.first)}" for i, field in self.fields.items()]
        return " + ".join([dialect.number(constant), *terms])

    def count(self, packed: str) -> str:
        """Write the number of rows in a packed number, as an integer."""
        return f"({packed} >> {self.top})"

    def sum(self, place: int, packed: str) -> str:
        """Write the sum of one measure in a packed number, as an integer."""
        field = self.fields[place]
        taken = f"(({packed} >> {field.first}) & {(1 << field.bits) - 1})"
        return f"{taken} - {field.raised} * {self.count(packed)}" if field.raised else taken


def packed(ranges: Mapping[int, tuple[int, int]], rows: int) -> PackedSums | None:
    """Pack the sums of as many measures as fit, by the range of what a row adds; None if not even the rows fit."""
    fields: dict[int, PackedField] = {}
    top = 0
    for place, (low, high) in ranges.items():
        raised = max(0, -low)
        bits = (rows * (max(0, high) + raised)).bit_length()
        if (rows + 1) << (top + bits) <= _EXACT:
            fields[place] = PackedField(top, bits, raised)
            top += bits
    return PackedSums(rows, top, fields) if (rows + 1) << top <= _EXACT else None
