"""Blocks of a table: the rows of each day, week, month or year, with a budget of their own.

Which blocks exist follows from the calendar and the declaration alone, never from the data. A block is named by its
period: `2026-01-31`, `2026-W05`, `2026-01` or `2026`. All times are in UTC.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Self, get_args
from typing import Literal as Choice

from hubbub.core.wire import Json

BlockLength = Choice["day", "week", "month", "year"]

#: Lengths of periods that lie in one block of a length: every hour, day and week lies in one week.
WITHIN: Mapping[str, frozenset[str]] = {
    "day": frozenset({"hour", "day"}),
    "week": frozenset({"hour", "day", "week"}),
    "month": frozenset({"hour", "day", "month"}),
    "year": frozenset({"hour", "day", "month"}),
}
#: More blocks than this would make each charge slow.
MAX_BLOCKS = 5_000

_EPOCH = date(1970, 1, 1)
_MONDAY = date(1969, 12, 29)
_NAMES: Mapping[str, re.Pattern[str]] = {
    "day": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "week": re.compile(r"\d{4}-W\d\d", re.ASCII),
    "month": re.compile(r"\d{4}-\d\d", re.ASCII),
    "year": re.compile(r"\d{4}", re.ASCII),
}


def number(by: BlockLength, day: date) -> int:
    """Number the block of a day; the block of 1970-01-01 is number 0.

    >>> number("month", date(1970, 3, 31)), number("week", date(1970, 1, 5)), number("year", date(1969, 1, 1))
    (2, 1, -1)
    """
    match by:
        case "day":
            return (day - _EPOCH).days
        case "week":
            return (day - _MONDAY).days // 7
        case "month":
            return (day.year - 1970) * 12 + day.month - 1
        case "year":
            return day.year - 1970


def start(by: BlockLength, block: int) -> date:
    """Return the first day of a block.

    >>> start("month", 2), start("week", 1)
    (datetime.date(1970, 3, 1), datetime.date(1970, 1, 5))
    """
    match by:
        case "day":
            return _EPOCH + timedelta(days=block)
        case "week":
            return _MONDAY + timedelta(weeks=block)
        case "month":
            return date(1970 + block // 12, block % 12 + 1, 1)
        case "year":
            return date(1970 + block, 1, 1)


def block_name(by: BlockLength, block: int) -> str:
    """Name a block.

    >>> [block_name(by, number(by, date(2026, 1, 31))) for by in ("day", "week", "month", "year")]
    ['2026-01-31', '2026-W05', '2026-01', '2026']
    """
    first = start(by, block)
    match by:
        case "day":
            return first.isoformat()
        case "week":
            year, week, _ = first.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{first.year:04}-{first.month:02}"
        case "year":
            return f"{first.year:04}"


def block_number(by: BlockLength, name: str) -> int:
    """Return the number of a named block; ValueError if it is not the name of one.

    >>> block_number("week", "2026-W05") == number("week", date(2026, 1, 26))
    True
    """
    if _NAMES[by].fullmatch(name) is None:
        raise ValueError(name)
    match by:
        case "day":
            first = date.fromisoformat(name)
        case "week":
            first = date.fromisocalendar(int(name[:4]), int(name[6:]), 1)
        case "month":
            first = date(int(name[:4]), int(name[5:]), 1)
        case "year":
            first = date(int(name), 1, 1)
    return number(by, first)


@dataclass(frozen=True, slots=True)
class BlockSet:
    """Blocks of one length, as ascending ranges of their numbers with gaps between them; both ends included."""

    by: BlockLength
    ranges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        flat = [end for each in self.ranges for end in each]
        ordered = all(low <= high for low, high in self.ranges)
        apart = all(after - before > 1 for before, after in zip(flat[1::2], flat[2::2], strict=False))
        if self.by not in get_args(BlockLength) or not ordered or not apart:
            raise ValueError("ranges of blocks are in order, with gaps between them")

    @classmethod
    def of(cls, by: BlockLength, numbers: Iterable[int]) -> Self:
        """Return the set of these blocks.

        >>> BlockSet.of("month", [3, 1, 2, 7]).ranges
        ((1, 3), (7, 7))
        """
        ranges: list[tuple[int, int]] = []
        for block in sorted(set(numbers)):
            if ranges and ranges[-1][1] == block - 1:
                ranges[-1] = ranges[-1][0], block
            else:
                ranges.append((block, block))
        return cls(by, tuple(ranges))

    def __iter__(self) -> Iterator[int]:
        return (block for low, high in self.ranges for block in range(low, high + 1))

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)

    def names(self) -> list[str]:
        """Name the blocks, the earliest first."""
        return [block_name(self.by, block) for block in self]

    def between(self, low: int | None, high: int | None) -> Self:
        """Return the blocks whose numbers are between two ends."""
        clipped = ((a if low is None else max(a, low), b if high is None else min(b, high)) for a, b in self.ranges)
        return replace(self, ranges=tuple((a, b) for a, b in clipped if a <= b))

    def union(self, other: Self) -> Self:
        """Return the blocks of both."""
        return type(self).of(self.by, [*self, *other])

    def without(self, other: Iterable[int]) -> Self:
        """Return the blocks that are not in another set."""
        return type(self).of(self.by, set(self) - set(other))

    def text(self) -> str:
        """Name the ranges.

        >>> BlockSet("month", ((0, 2), (7, 7))).text()
        '1970-01 to 1970-03 and 1970-08'
        """
        ends = [[block_name(self.by, end) for end in dict.fromkeys(each)] for each in self.ranges]
        return " and ".join(" to ".join(each) for each in ends) or "none"

    def to_json(self) -> Json:
        """Return it as JSON values, as charges and receipts record it."""
        return {"by": self.by, "ranges": [[block_name(self.by, end) for end in each] for each in self.ranges]}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`; ValueError for anything else."""
        by = form["by"]
        if by not in get_args(BlockLength) or set(form) != {"by", "ranges"}:
            raise ValueError("not a set of blocks")
        return cls(by, tuple((block_number(by, low), block_number(by, high)) for low, high in form["ranges"]))


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a table as its owner declares them, and those that a query reads.

    column  the column whose time decides the block of a row
    first   the number of the first block; earlier rows are in no block, and no query reads them
    last    that of the last one; None: the one of today
    lasting whether the dataset has a cap on all blocks together
    read    the blocks that a scan reads, which are charged; a scan without it cannot be written
    """

    column: str
    by: BlockLength
    first: int
    last: int | None = None
    lasting: bool = False
    read: BlockSet | None = None

    def existing(self, today: date) -> BlockSet:
        """Return the blocks that exist today: those from the first to the last, or to the one of today."""
        last = number(self.by, today)
        if self.last is not None:
            last = min(self.last, last)
        return BlockSet(self.by, ((self.first, last),) if self.first <= last else ())

    def reading(self, read: BlockSet) -> Self:
        """Return the same blocks with those that are read."""
        return replace(self, read=read)

    def declaration(self) -> Json:
        """Return what the ledger records of the declaration; what is not declared is omitted."""
        form: Json = {"column": self.column, "by": self.by, "from": block_name(self.by, self.first)}
        form |= {} if self.last is None else {"until": block_name(self.by, self.last)}
        return form | ({"lasting": True} if self.lasting else {})

    @classmethod
    def declared(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `declaration`; ValueError for anything else."""
        by: BlockLength = form["by"]
        if by not in get_args(BlockLength) or form.get("lasting", True) is not True:
            raise ValueError("not a declaration of blocks")
        until = form.get("until")
        last = None if until is None else block_number(by, until)
        blocks = cls(form["column"], by, block_number(by, form["from"]), last, "lasting" in form)
        if blocks.declaration() != dict(form):
            raise ValueError("not a declaration of blocks")
        return blocks

    def to_json(self) -> Json:
        """Return it as JSON values."""
        return self.declaration() | ({} if self.read is None else {"read": self.read.to_json()})

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        read = form.get("read")
        declared = cls.declared({name: value for name, value in form.items() if name != "read"})
        return declared if read is None else declared.reading(BlockSet.from_json(read))
