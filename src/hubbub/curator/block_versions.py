"""Versions of blocks: an append makes a new version of the blocks that it changes, and of no other one.

Tested in tests/curator/test_block_versions.py.
"""

from collections.abc import Mapping
from datetime import date
from hashlib import blake2b

from hubbub.core.blocks import Blocks, block_name, number
from hubbub.core.schema import Column, Kind, Table
from hubbub.curator.keys import current_version, tables_behind
from hubbub.curator.versions import BlockRows, Versions
from hubbub.engines.base import Arrays, Engine
from hubbub.engines.multi_engine import engine_for
from hubbub.engines.registry import engine_named
from hubbub.errors import RunError
from hubbub.sql.dialects.base import Dialect

#: The years in which blocks can be declared.
_YEARS = range(1900, 2200)
#: A row's hash is summed in so many parts of eight hexadecimal digits, which integers of 64 bits can add up.
_PARTS = 4
#: How often the rows of blocks are hashed again because the data has changed meanwhile.
_TRIES = 3


class _ChangedError(Exception):
    """The data changed while its blocks were hashed."""


def version_read(table: Table, tables: Mapping[str, Table], engine: Engine, versions: Versions) -> str:
    """Return the version of the data that a query reads: of its blocks, if the table has blocks.

    Theorem (Blocks keep their versions). Two queries that read the same blocks of a table in the same version read the
    same rows. A change of the data gives a new version to the queries that read a block with a changed row, and to no
    other ones.
    Proof    The version of a block is that of the table in a state in which the block had the same rows: when the
             version of the table changes, the rows of each block are hashed, and a block whose hash is that of the
             state before keeps its name; every other one takes the new name of the table. So equal names of a block
             stand for the rows that it had in one state of the table. The version of several blocks is their common
             name, or a hash of their names, which are random. A row in no block is hashed in none.
             Hashes are sums, in four parts of 32 bits, of SHA-256 over a secret salt and the texts of all columns that
             can be read, each with its length: a function of a block's rows with their multiplicities. Whoever chooses
             rows does not know the salt, so two different blocks agree with a chance of at most 2⁻¹²⁸.
             With rows whose owner is found in other tables, a change there is a change of every block.
    Assumes  an analyst may know which blocks were changed by an update, as it may know that there was one; the data
             does not change during a query. While blocks are hashed it may: the table's version is compared afterwards.
    Charges  nothing: it reads data, and tells when a block was last changed.
    Tested   tests/curator/test_block_versions.py::test_every_change_of_a_row_is_a_new_version_of_its_blocks_alone
             tests/curator/test_block_versions.py::test_a_name_stands_for_one_state_of_a_block_in_every_history
    """
    blocks = table.blocks
    if blocks is None or blocks.read is None:
        return current_version(table, tables, engine, versions)
    whole = ""
    for _ in range(_TRIES):
        whole = current_version(table, tables, engine, versions)

        def rows(salt: str, whole: str = whole) -> BlockRows:
            hashed = _block_rows(table, blocks, engine, salt)
            if current_version(table, tables, engine, versions) != whole:
                raise _ChangedError
            return hashed

        try:
            return versions.of_blocks(table.name, whole, blocks.read.names(), rows)
        except _ChangedError:
            continue
    return whole


def _block_rows(table: Table, blocks: Blocks, engine: Engine, salt: str) -> BlockRows:
    """Hash the rows of each block that has some; without rows, if the engine cannot hash them."""
    dialect: Dialect = engine_named(engine.dialect).load_dialect()
    kinds = {column.name: column.kind for column in table.columns}
    others = [engine.fingerprint(name).through(bytes.hex) for name in tables_behind(table)[1:]]
    behind = blake2b(repr((others, sorted(_columns(table)), blocks.column)).encode(), digest_size=32).hexdigest()
    try:
        found = engine_for(engine, [table.name]).run(
            _statement(table, dialect, Column(blocks.column, kinds[blocks.column]), salt)
        )
    except RunError:  # too slow, for example: then every change is one of all blocks
        return BlockRows(behind, None)
    return BlockRows(behind, found.through(lambda arrays: _by_block(blocks, arrays)))


def _columns(table: Table) -> set[str]:
    """Name the columns that the engine serves: hidden ones only where owners or other tables are found by them."""
    needed = table.references | {unit.column for unit in table.owners}
    return {column.name for column in table.columns if not column.hidden or column.name in needed}


def _statement(table: Table, dialect: Dialect, time: Column, salt: str) -> str:
    """Write the sums of the hashes of the rows of each day."""
    text = dialect.types[Kind.TEXT]
    parts = [dialect.text(salt)]
    for name in sorted(_columns(table)):
        value = f"CAST({dialect.identifier(name)} AS {text})"
        length = f"CAST(length({value}) AS {text})"
        parts.append(f"CASE WHEN {value} IS NULL THEN 'n' ELSE {length} || ':' || {value} END")
    row = dialect.sha256.format(" || ".join(parts))
    day = f"CAST(CAST({dialect.scanned(time)} AS {dialect.types[Kind.DATE]}) AS {text})"
    sums = [
        f"CAST(sum({dialect.hexadecimal.format(f'substr(h, {1 + 8 * part}, 8)')}) AS {text}) AS h{part}"
        for part in range(_PARTS)
    ]
    rows = f"SELECT {day} AS d, {row} AS h FROM {dialect.identifier(table.name)} AS s"  # noqa: S608 - quoted
    return f"SELECT d, CAST(count(*) AS {text}) AS n, {', '.join(sums)} FROM ({rows}) AS r GROUP BY d"  # noqa: S608


def _by_block(blocks: Blocks, arrays: Arrays) -> dict[str, str]:
    """Add up the sums of the days of each block."""
    names = ("n", *(f"h{part}" for part in range(_PARTS)))
    totals: dict[str, list[int]] = {}
    for place, day in enumerate(arrays["d"]):
        if not isinstance(day, str) or not day[:4].isdigit() or int(day[:4]) not in _YEARS:
            continue  # in no block
        total = totals.setdefault(block_name(blocks.by, number(blocks.by, date.fromisoformat(day))), [0] * len(names))
        for i, name in enumerate(names):
            total[i] += int(arrays[name][place])
    return {name: blake2b(repr(total).encode(), digest_size=16).hexdigest() for name, total in totals.items()}
