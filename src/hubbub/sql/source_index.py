"""Earlier releases arranged so that a query finds the few that can help it, however many there are.

Nothing here reads a noisy number. Tested in tests/sql/test_source_index.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from hubbub.core.chunked_json import dumps
from hubbub.core.schema import Column
from hubbub.sql.atoms import Grouping, expression_columns
from hubbub.sql.coarser import query_grouping
from hubbub.sql.cuts import Cut, Cuts, cuts
from hubbub.sql.measured import Described
from hubbub.sql.overlaps import MOST_ROWS, MOST_SETS
from hubbub.sql.terms import MOST_VIEWS, Source

#: The most sources that one sum is computed from and that are as exact as each other.
MOST_ALIKE = max(MOST_VIEWS, MOST_SETS)
#: What has to be equal in a source and a query.
_SAME = ("of", "tables", "public", "given")


@dataclass
class _Told:
    """A grouping, what it tells apart, and the sources that have it."""

    cuts: Cuts
    numbers: set[int]


@dataclass
class _Shelf:
    """The sources about the same rows of the same data, with bounds or without.

    under    the numbers of sources by one of their conditions, or None for those without conditions
    waiting  sources whose groupings were not looked at yet
    told     the groupings of sources that may overlap, by their forms
    at       the forms of those that have a cut
    loose    the forms of those that may tell any values of a column apart
    """

    sources: dict[int, Source] = field(default_factory=dict)
    under: dict[str | None, set[int]] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    told: dict[str, _Told] = field(default_factory=dict)
    at: dict[Cut, set[str]] = field(default_factory=dict)
    loose: dict[str, set[str]] = field(default_factory=dict)

    def add(self, source: Source) -> None:
        self.sources[source.number] = source
        self.under.setdefault(min(source.conditions, default=None), set()).add(source.number)
        if not source.shared:
            self.waiting.add(source.number)

    def remove(self, source: Source) -> None:
        del self.sources[source.number]
        self.under[min(source.conditions, default=None)].discard(source.number)
        self.waiting.discard(source.number)
        for form in source.forms:
            told = self.told.get(form)
            if told is None:
                continue
            told.numbers.discard(source.number)
            if not told.numbers:
                del self.told[form]
                for cut in told.cuts.every:
                    self.at[cut].discard(form)
                for name in told.cuts.loose:
                    self.loose[name].discard(form)

    def within(self, conditions: Set[str]) -> Iterator[int]:
        """Yield the sources all of whose rows fulfill no other conditions than these."""
        for name in (None, *conditions):
            for number in self.under.get(name, ()):
                if self.sources[number].conditions <= conditions:
                    yield number

    def look(self, columns: Mapping[str, Column]) -> None:
        """Look at the groupings of new sources."""
        for number in sorted(self.waiting):
            source = self.sources[number]
            for form, each in zip(source.forms, source.groupings, strict=True):
                if each.size <= MOST_ROWS:
                    self._tell(form, each, columns).numbers.add(number)
        self.waiting.clear()

    def _tell(self, form: str, each: Grouping, columns: Mapping[str, Column]) -> _Told:
        if form not in self.told:
            found = cuts(each, columns, wanted=False)
            self.told[form] = _Told(found, set())
            for cut in found.every:
                self.at.setdefault(cut, set()).add(form)
            for name in found.loose:
                self.loose.setdefault(name, set()).add(form)
        return self.told[form]


class SourceIndex:
    """The releases of one analyst on one dataset in one version. Not thread-safe."""

    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}
        self._of: dict[int, _Shelf] = {}
        self.changes = 0  #: how often a source was added or removed

    def add(self, source: Source) -> None:
        """Add a source."""
        shelf = self._shelves.setdefault(_key(source.facts, by_row=source.facts["bounds"] is None), _Shelf())
        shelf.add(source)
        self._of[source.number] = shelf
        self.changes += 1

    def remove(self, number: int) -> None:
        """Remove a source, if it is there."""
        shelf = self._of.pop(number, None)
        if shelf is not None:
            shelf.remove(shelf.sources[number])
            self.changes += 1

    def shelf(self, key: str) -> _Shelf:
        """Give the sources that have the same of everything that has to be equal."""
        return self._shelves.get(key) or _Shelf()


def _key(facts: Mapping[str, Any], *, by_row: bool) -> str:
    return dumps([*(facts[name] for name in _SAME), by_row], sort_keys=True)


def candidates(
    described: Described, data: Mapping[str, Any], indexes: Iterable[tuple[SourceIndex, Set[int]]]
) -> list[Source]:
    """List the sources that can help a query, in order; `data` are the facts that the meaning of sums depends on.

    Each index comes with the numbers that must not be used. What is left out is what `derive` could not use: sources
    with a condition that the query does not have, unless they may overlap with it as `cuts` says.
    """
    key = _key({"of": described.rows.of, "given": list(described.given), **data}, by_row=described.by_row)
    shelves = [(index.shelf(key), hidden) for index, hidden in indexes]
    conditions = described.rows.where.keys()
    found = {number: shelf for shelf, hidden in shelves for number in shelf.within(conditions) if number not in hidden}
    if described.by_row and len(described.plan.cells) == 1:
        columns = expression_columns(described.plan.tables[0].columns)
        for shelf, _ in shelves:
            shelf.look(columns)
        (groups,) = described.plan.cells
        keys = [described.keys[place] for place in groups.places]
        own = query_grouping(described.rows.where.values(), keys, groups)
        wanted = cuts(own, columns, wanted=True)
        found |= {
            number: shelf
            for shelf, told in _overlapping(wanted, [shelf for shelf, _ in shelves])
            for number in told.numbers
        }
    hidden_numbers = set[int]().union(*(hidden for _, hidden in shelves))
    sources = [found[number].sources[number] for number in sorted(found) if number not in hidden_numbers]
    return list(_first_of_each_kind(sources))


def _first_of_each_kind(sources: Sequence[Source]) -> Iterator[Source]:
    """Leave out what no choice has room for: of sources that differ in nothing but their numbers, the first are used.

    So one more release of a query that was asked very often changes no offer, and offers that were made stay known.
    """
    kinds = Counter[str]()
    for each in sources:
        kinds[each.kind] += not each.shared
        if kinds[each.kind] <= MOST_ALIKE:
            yield each


def _overlapping(wanted: Cuts, shelves: Sequence[_Shelf]) -> list[tuple[_Shelf, _Told]]:
    """List the groupings of which the query may be a linear combination, by the theorem "Cuts"."""
    at = Counter[Cut]()
    loose = frozenset().union(*(names for shelf in shelves for names, forms in shelf.loose.items() if forms))
    for cut in wanted.sharp:
        if cut[0] not in loose and not any(shelf.at.get(cut) for shelf in shelves):
            return []
    at.update(wanted.every)
    loose |= wanted.loose
    alive = [(shelf, told) for shelf in shelves for told in shelf.told.values()]
    for shelf in shelves:
        at.update({cut: len(forms) for cut, forms in shelf.at.items()})
    while True:
        kept = [each for each in alive if all(at[cut] > 1 or cut[0] in loose for cut in each[1].cuts.sharp)]
        if len(kept) == len(alive):
            break
        alive = kept
        at = Counter(wanted.every)
        loose = wanted.loose.union(*(told.cuts.loose for _, told in alive))
        for _, told in alive:
            at.update(told.cuts.every)
    open_cuts = [cut for cut in wanted.sharp if at[cut] < 2 and cut[0] not in loose]
    return [] if open_cuts else alive
