"""Read the blocks of a dataset, and state what they promise: `blocks: {column: visited_on, by: month, from: 2025-01}`.

Tested in tests/config/test_blocks.py.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import cast, get_args

from hubbub.config.document import KEYS, check_keys, expect_mapping, reject, reject_unknown
from hubbub.core.blocks import MAX_BLOCKS, WITHIN, BlockLength, Blocks, block_number, number
from hubbub.core.schema import Column, Kind, Table
from hubbub.core.unit import Relation

_EARLIEST, _LATEST = date(1900, 1, 1), date(2199, 12, 31)
_DAY = len("2025-01-31")
_EXAMPLE = "Write `blocks: {column: visited_on, by: month, from: 2025-01, budget: {epsilon: 2}}`."


def block_column(entry: Mapping[str, object]) -> tuple[str, ...]:
    """Return the column that decides the block of a row, if the dataset has blocks."""
    value = entry.get("blocks")
    column = value.get("column") if isinstance(value, dict) else None
    return (column,) if isinstance(column, str) else ()


def read_blocks(entry: Mapping[str, object], path: str, columns: tuple[Column, ...], *, public: bool) -> Blocks | None:
    """Read the blocks of a dataset whose columns are known."""
    if "blocks" not in entry:
        return None
    where = f"{path}.blocks"
    if public:
        reject("HB476", where, "is not allowed on a public dataset", "Remove it: public data needs no budget.")
    terms = expect_mapping(entry["blocks"], where)
    check_keys(terms, where, KEYS["datasets.*.blocks"])
    kinds = {column.name: column.kind for column in columns}
    column, by = terms.get("column"), terms.get("by")
    if not isinstance(column, str) or column not in kinds:
        reject_unknown("HB477", f"{where}.column: {column}", str(column), "column of the source", kinds)
    if kinds[column] not in (Kind.DATE, Kind.TIMESTAMP):
        why = f"names {column}, of type {kinds[column].value}: only a date or timestamp decides the block of a row"
        reject("HB477", f"{where}.column", why, f"Declare `{column}: {{type: date}}`, or name another column.")
    if by not in get_args(BlockLength):
        reject("HB476", f"{where}.by", f"is {by!r}", "Write day, week, month or year.")
    length = cast(BlockLength, by)
    if "from" not in terms:
        why = "is missing: which blocks exist must follow from the calendar, not from the data"
        reject("HB478", f"{where}.from", why, f"Name the first block. {_EXAMPLE}")
    first = _block(terms["from"], length, f"{where}.from")
    last = None if terms.get("until") is None else _block(terms["until"], length, f"{where}.until")
    most = number(length, _LATEST) if last is None else last
    if not first <= most:
        reject("HB478", f"{where}.until", "is before `from`", "Name the last block, or remove `until`.")
    if last is not None and last - first >= MAX_BLOCKS:
        reject("HB478", where, f"has more than {MAX_BLOCKS:,} blocks", "Use longer blocks, such as `by: month`.")
    return Blocks(column, length, first, last, lasting="budget" in entry)


def _block(value: object, by: BlockLength, where: str) -> int:
    """Read a block by its name, or by a day in it."""
    text, block = str(value), None
    with suppress(ValueError):
        block = number(by, date.fromisoformat(text)) if len(text) == _DAY else block_number(by, text)
    if block is None or not number(by, _EARLIEST) <= block <= number(by, _LATEST):
        example = {"day": "2025-01-31", "week": "2025-W05", "month": "2025-01", "year": "2025"}[by]
        reject("HB478", where, f"is {text!r}, which is no {by} from 1900 to 2199", f"Write it like {example}.")
    return block


def in_one_block(table: Table) -> bool:
    """Tell whether all rows of a privacy unit lie in one block, by the declarations alone.

    Theorem (One block for each unit). Then no privacy unit has rows in two blocks.
    Proof    A row that is its own unit has one time. A period of a person whose time is that of the blocks is a set of
             rows with times in one hour, day, week or month, and `WITHIN` lists the lengths of blocks of which each
             contains every such period that it meets: hours and days are parts of weeks, months and years, months of
             years, and weeks of nothing longer.
    Assumes  a neighbor has one unit more or fewer: `relation: replace` could move a unit to another block.
    Tested   tests/config/test_blocks.py::test_a_unit_in_one_block_by_its_declaration_is_in_one_block
    """
    blocks, unit = table.blocks, table.unit
    if blocks is None or unit is None or table.others or table.relation is not Relation.ADD_REMOVE:
        return False
    if unit.column is None:
        return True
    period = unit.period
    return period is not None and period.time == blocks.column and period.per in WITHIN[blocks.by]


def check_promise(table: Table, path: str) -> None:
    """Refuse blocks whose promise cannot be stated."""
    blocks, unit = table.blocks, table.unit
    if blocks is None or unit is None:
        return
    if table.relation is not Relation.ADD_REMOVE:
        why = "cannot be used with `relation: replace`: a person who is replaced could move to another block"
        reject("HB479", f"{path}.blocks", why, "Use `relation: add_remove`, or remove `blocks`.")
    if not in_one_block(table) and not blocks.lasting:
        whom = unit.column if unit.period is None else unit.period.column
        fits = [per for per in ("month", "week", "day", "hour") if per in WITHIN[blocks.by]]
        reject(
            "HB480",
            f"{path}.blocks",
            f"promises nothing that lasts: the rows of one {whom} can be in any number of blocks, whose budgets add up",
            f"Add `budget: {{epsilon: …}}` to {table.name}: it limits all blocks together. Or protect one "
            f"{fits[0]} of a {whom}: `unit: {{column: {whom}, per: {{{fits[0]}: {blocks.column}}}}}`.",
        )


def promises(table: Table) -> tuple[str, ...]:
    """State in words what the budgets of blocks promise, for each block and for all time."""
    blocks, unit = table.blocks, table.unit
    if blocks is None or unit is None:
        return ()
    by, until = blocks.by, "" if blocks.last is None else f" to {blocks.declaration()['until']}"
    exist = f"{blocks.declaration()['from']}{until or ' to today'}"
    which = f"each {by} of {blocks.column} (UTC) is a block: {exist}. Rows with another date, or none, are never read"
    spends = f"a query spends in each block that its conditions on {blocks.column} allow; without one, in all blocks"
    if in_one_block(table):
        what = "row" if unit.column is None else f"{unit.period.per} of one {unit.period.column}" if unit.period else ""
        each = f"one {what} is in one block, so the budget of one block is the whole promise to it, however many follow"
        lasting = "the lasting budget limits all blocks together" if blocks.lasting else "new blocks bring new budget"
        person = "" if unit.column is None else f"; a person with rows in k {by}s loses up to k times as much"
        return (which, spends, f"{each}; {lasting}{person}")
    whom = unit.column or "row"
    each = f"one {whom} can be in many blocks: k blocks cost up to k times the budget of one"
    return (which, spends, f"{each}, and never more than the lasting budget, which all queries share")
