"""Propose, from the constraints of a database, to which person each table's rows belong.

Tested in tests/config/test_proposal.py.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.engines.constraints import CatalogTable, ForeignKey
from hubbub.errors import ConfigError

_LIKELY = re.compile(r"(person|people|patient|customer|client|user|member|subject|student|employee)s?$")


@dataclass(frozen=True, slots=True)
class Proposal:
    """The tables of a database, by their names there, and what is proposed for them.

    names      the name of each dataset
    sources    its source, as in hubbub.yaml
    person     the table of the protected people; None if there is none that could be it
    owned      the tables whose rows have an owner, each with the reference to it (None for the person's table)
    choices    of tables with several references to people that are equally near: all of them
    others     further references of an owned table that lead to people as well
    notes      what the owner should know, for the terminal
    """

    tables: Mapping[str, CatalogTable]
    names: Mapping[str, str]
    sources: Mapping[str, str]
    person: str | None
    given: bool
    owned: Mapping[str, ForeignKey | None]
    choices: Mapping[str, tuple[ForeignKey, ...]] = field(default_factory=dict)
    others: Mapping[str, tuple[ForeignKey, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def propose(located: Sequence[tuple[str, CatalogTable]], *, person: str | None) -> Proposal:
    """Find the owner of each table's rows by the shortest way along foreign keys to the person's table."""
    tables = {table.name: table for _, table in located}
    names = _names(tables)
    chosen = _likely_person(tables) if person is None else _named(person, tables, names)
    distances = {} if chosen is None else _distances(chosen, tables)
    owned: dict[str, ForeignKey | None] = {} if chosen is None else {chosen: None}
    choices: dict[str, tuple[ForeignKey, ...]] = {}
    others: dict[str, tuple[ForeignKey, ...]] = {}
    for name in sorted(distances, key=lambda table: (distances[table], table)):
        mine = tuple(way for way in tables[name].references if way.table == name)
        others |= {name: mine} if mine else {}
        if name == chosen:
            continue
        ways = [way for way in _ways(tables[name], tables) if way.table in distances and way.table != name]
        nearest = [way for way in ways if distances[way.table] == distances[name] - 1]
        if len(nearest) == 1:
            owned[name] = nearest[0]
            others |= {name: (*mine, *(way for way in ways if way is not nearest[0]))} if len(ways) > 1 else {}
        else:
            choices[name] = tuple(nearest)
    sources = {table.name: source for source, table in located}
    notes = _notes(tables, names, chosen, owned, choices, given=person is not None)
    return Proposal(tables, names, sources, chosen, person is not None, owned, choices, others, notes)


def _names(tables: Mapping[str, CatalogTable]) -> dict[str, str]:
    """Name each dataset after its table, with the schema where two tables would have the same name."""

    def short(name: str) -> str:
        return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or "data"

    plain = {name: short(name.rpartition(".")[2]) for name in tables}
    return {n: plain[n] if list(plain.values()).count(plain[n]) == 1 else short(n) for n in tables}


def _named(person: str, tables: Mapping[str, CatalogTable], names: Mapping[str, str]) -> str:
    matches = [name for name in tables if person in (name, name.rpartition(".")[2], names[name])]
    if len(matches) != 1:
        known = ", ".join(sorted(names.values()))
        why = "There is no table" if not matches else "There are several tables"
        raise ConfigError("HB737", f"{why} named {person!r} in the database.", f"--person takes one of: {known}.")
    if not tables[matches[0]].keys:
        raise ConfigError(
            "HB737",
            f"{person} has no primary key, so other tables cannot refer to its rows.",
            "Add a PRIMARY KEY or UNIQUE constraint to it, or name another table with --person.",
        )
    return matches[0]


def _likely_person(tables: Mapping[str, CatalogTable]) -> str | None:
    """Choose the table to which most tables lead; of several, the one whose name sounds like people."""
    ranks = {
        name: (len(_distances(name, tables)), bool(_LIKELY.search(name.lower())))
        for name, table in tables.items()
        if table.keys
    }
    named = {name for name, (_, likely) in ranks.items() if likely}
    eligible = named or {name for name, (reached, _) in ranks.items() if reached > 1}
    return max(sorted(eligible), key=lambda name: ranks[name], default=None)


def _ways(table: CatalogTable, tables: Mapping[str, CatalogTable]) -> list[ForeignKey]:
    """Return the references of a table to the first key of another, in the order of that key's columns."""
    ways = []
    for reference in table.references:
        target = tables.get(reference.table)
        if target is None or not target.keys or target.problem or set(target.keys[0]) != set(reference.key):
            continue
        order = [reference.key.index(column) for column in target.keys[0]]
        ways.append(ForeignKey(tuple(reference.columns[i] for i in order), reference.table, target.keys[0]))
    return ways


def _distances(person: str, tables: Mapping[str, CatalogTable]) -> dict[str, int]:
    """Count the references between each table and the person's."""
    distances = {person: 0}
    while True:
        found = {
            name: min(distances[way.table] for way in ways) + 1
            for name, table in tables.items()
            if name not in distances and not table.problem
            for ways in [[way for way in _ways(table, tables) if way.table in distances]]
            if ways
        }
        if not found:
            return distances
        distances |= found


def _notes(
    tables: Mapping[str, CatalogTable],
    names: Mapping[str, str],
    person: str | None,
    owned: Mapping[str, ForeignKey | None],
    choices: Mapping[str, tuple[ForeignKey, ...]],
    *,
    given: bool,
) -> tuple[str, ...]:
    notes = []
    if person is None:
        notes.append("No table of people was found. Name it: --person TABLE")
    elif not given:
        notes.append(f"Proposed as the table of people: {names[person]}. If that is wrong, pass --person TABLE.")
    if choices:
        listed = ", ".join(names[name] for name in choices)
        notes.append(f"Several references lead to people, so the unit is blank: {listed}.")
    apart = [name for name in tables if name not in owned and name not in choices]
    behind = about_people(tables, {*owned, *choices})
    by_other_keys = [name for name in apart if name in behind]
    if by_other_keys:
        listed = ", ".join(names[name] for name in by_other_keys)
        notes.append(f"Commented out, because they refer to people by another key than the first: {listed}.")
    unknown = [names[name] for name in apart if name not in by_other_keys]
    if unknown:
        notes.append(f"Commented out, because no foreign key leads to people: {', '.join(unknown)}.")
    return tuple(notes)


def about_people(tables: Mapping[str, CatalogTable], known: Collection[str]) -> dict[str, ForeignKey]:
    """Return the tables beside the known ones whose rows lead to people by whatever keys, each with a reference."""
    ways: dict[str, ForeignKey] = {}
    while True:
        reached = {*known, *ways}
        more = {
            name: way
            for name, table in tables.items()
            if name not in reached
            for way in [next((way for way in table.references if way.table in reached), None)]
            if way is not None
        }
        if not more:
            return ways
        ways |= more
