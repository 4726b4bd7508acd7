"""Errors in finding the owner of a row: through keys, by time, of two entities, and in operators within a unit."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
from tests.campaigns.rig.bugs import BugCollection, mutate, swap, wrap, wrap_function

from hubbub.curator import keys
from hubbub.sql import owner_levels, owner_path, render, windows
from hubbub.sql.bind_match import Match
from hubbub.sql.relations import Filter, Join

OWNERS = BugCollection("owners of rows", ("schemas", "keys"))
bug = OWNERS.bug


def _rewritten(function: Any, old: str, new: str) -> None:
    """Plant an error in the SQL that a function writes."""
    wrap_function(function, lambda of, *given, **named: of(*given, **named).replace(old, new))


@bug("half of a composite key names the owner", "schemas")
def half_of_a_key() -> None:
    _rewritten(owner_path.owned_rows, ' AND s."number" = o."$key1"', "")


@bug("a row whose reference leads nowhere is kept", "schemas")
def existence_not_checked() -> None:
    _rewritten(owner_path.owned_rows, "INNER JOIN", "LEFT JOIN")


@bug("the reference itself is taken for the owner, whether there is such a person or not", "schemas")
def reference_is_owner() -> None:
    def around(of: Any, table: str, columns: Any, steps: Any, path: Any, dialect: Any) -> Any:
        if len(steps) != 1 or path.column not in steps[0].key:
            return of(table, columns, steps, path, dialect)
        held = replace(path, column=steps[0].columns[steps[0].key.index(path.column)])
        return of(table, columns, (), held, dialect)

    wrap_function(owner_path.owned_rows, around)


@bug("NULL is a privacy ID like any other", "schemas")
def null_owner() -> None:
    mutate("hubbub.sql.render", 'f"{owner} IS NOT NULL"', '"TRUE"')


@bug("a left join takes the owner from its right side", "schemas")
def owner_of_the_right_side() -> None:
    def around(of: Any, rel: Any, dialect: Any) -> str:
        text: str = of(rel, dialect)
        return text.replace('SELECT l."$unit"', 'SELECT r."$unit"', 1) if rel.unit and rel.kind == "left" else text

    wrap_function(render._join, around)


@bug("a join on the privacy ID and a column compares the column alone", "schemas")
def owners_not_compared() -> None:
    mutate("hubbub.sql.render", "UNIT)] if rel.unit else []", "UNIT)] if rel.unit and not tests else []")


@bug("a subquery sees the rows of other units", "schemas")
def subquery_of_others() -> None:
    wrap(Match, "group", lambda of, self, *given: of(replace(self, unit=self.unit and not self.pairs), *given))


@bug("a left join with a comparison finds matches among the rows of everybody", "schemas")
def range_matches_of_everybody() -> None:
    wrap(Match, "group", lambda of, self, *given: of(replace(self, unit=self.unit and not self.tests), *given))


@bug("a window is partitioned by what the query names, without the unit", "schemas")
def window_of_others() -> None:
    wrap_function(windows._over, lambda of, function, _, *given, **named: of(function, [], *given, **named))


@bug("the rows of a full join without a match lose their owner", "schemas")
def owner_without_match() -> None:
    def around(of: Any, rel: Any, dialect: Any) -> str:
        lone = rel.inputs[-1].input
        if not (isinstance(lone, Filter) and isinstance(lone.input, Join)):
            return str(of(rel, dialect))
        first, second = (of(replace(rel, inputs=(part,)), dialect) for part in rel.inputs)
        second = second.replace('"$unit"', 'NULL AS "$unit"', 1)
        return f"{first} UNION ALL {second}"

    wrap_function(render._union, around)


@bug("the value at an extreme is looked up among the rows of all units", "schemas")
def extreme_of_others() -> None:
    def around(of: Any, function: Any, owner: Any, *given: Any, **named: Any) -> Any:
        return of(function, [] if function.column.name.startswith("first_") else owner, *given, **named)

    wrap_function(windows._over, around)


@bug("groups within a unit are formed across units", "schemas")
def groups_of_others() -> None:
    def around(of: Any, rel: Any, dialect: Any) -> str:
        text: str = of(rel, dialect)
        grouped = re.search(r" GROUP BY 1(, [\d, ]+)$", text)
        if grouped is None:
            return text
        named = text[: grouped.start()].replace('SELECT "$unit"', 'SELECT min("$unit") AS "$unit"', 1)
        return f"{named} GROUP BY {grouped[1][2:]}"

    wrap_function(render._per_unit, around)


@bug("a period of one person is that of everybody", "schemas")
def period_of_everybody() -> None:
    wrap_function(
        owner_path.period_owner,
        lambda of, period, dialect: (of(period, dialect)[0].replace('"person"', "0"), of(period, dialect)[1]),
    )


@bug("the time of a period is forgotten: a row without it has an owner", "schemas")
def timeless_rows() -> None:
    wrap_function(
        owner_path.period_owner,
        lambda of, period, dialect: (of(period, dialect)[0], f"{dialect.identifier(period.column)} IS NOT NULL"),
    )


@bug("the second owner of a row is forgotten when rows are bounded", "schemas")
def second_owner_forgotten() -> None:
    def around(of: Any, *given: Any, **named: Any) -> Any:
        first, second = of(*given, **named)
        return first, max(first.max(initial=0), second.max(initial=0)) + 1 + np.arange(len(second))

    wrap_function(owner_levels._numbered, around)


@bug("a row without its second owner is kept", "schemas")
def no_second_owner() -> None:
    _rewritten(render._scan, '"doctor" IS NOT NULL', "TRUE")


@bug("a key that is not unique is taken for one", "keys")
def keys_not_checked() -> None:
    swap(keys.has_duplicates, lambda table, engine: False)  # noqa: ARG005 - keeps the signature


@bug("only the key of the table itself is checked, not those on the way to its owners", "keys")
def keys_on_the_way() -> None:
    wrap_function(keys.tables_behind, lambda of, table: of(table)[:1])
