"""Choose the groups of a query: all that are declared, or those that are selected privately.

Tested in tests/sql/test_group_choice.py.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.sql import fanout, partition_selection
from hubbub.sql.joint_keys import joint_cells, occurring
from hubbub.sql.keys import MAX_CELLS, Domain, Groups, grouping_sets
from hubbub.sql.query import Query
from hubbub.sql.rules import DATED

#: Ranges of numbers and dates with more groups than this are selected privately where δ is available.
MANY = 10_000
#: A numeric key with more values than this is a range rather than a list.
_RANGE = 1_000


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """The groups of each grouping set, the query over the rows that can be in them, and why they were chosen."""

    query: Query
    groups: tuple[Groups, ...]
    reason: tuple[str, ...] = ()


def choose_groups(query: Query, delta: Fraction) -> GroupChoice:
    """Choose the groups of a query, or raise an error if there are too many.

    Declared groups cost no δ and are never missing, and their number does not change the noise. But a table of ten
    thousand rows, nearly all of them noise about nothing, tells less than one of the groups that have enough people.
    """
    if not query.keys or not delta:
        return GroupChoice(query, joint_cells(query))
    if partition_selection.needed(query):
        return _selected(query)
    if len(query.sets) == 1:
        (cells,) = (occurring(each, query.relation) for each in grouping_sets(query))
        if cells.size > MAX_CELLS or (cells.size > MANY and any(map(_is_range, cells.domains))):
            return _selected(
                query,
                f"the keys have {cells.size:,} possible groups, most of them surely empty: groups with enough units "
                "are selected privately instead",
            )
    return GroupChoice(query, joint_cells(query))


def _selected(query: Query, *reason: str) -> GroupChoice:
    # cells drop unlisted values of declared keys, and selected groups would not: the scan has to
    strict = replace(query, relation=fanout.strict(query.relation))
    return GroupChoice(strict, (partition_selection.groups(query),), reason)


def _is_range(domain: Domain) -> bool:
    return len(domain.values) > _RANGE and (domain.kind.numeric or domain.kind in DATED)
