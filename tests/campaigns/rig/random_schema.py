"""Random datasets of several tables: owners through keys, by time and by two entities; with NULL and dangling keys.

Every row knows by construction which units it belongs to. A neighbor has other rows of some units, or none.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

import duckdb

from hubbub.core.schema import Bounds, Column, Kind, OwnerPath, Period, PrivacyUnit, Reference, Table
from hubbub.core.unit import Relation

CODES = ("A", "B", "C")
NINE = Bounds(Fraction(0), Fraction(9))
KEY = (Column("part", Kind.TEXT), Column("number", Kind.INTEGER))
TO_PEOPLE = Reference(("person",), "people", ("id",), (Kind.INTEGER,))
TO_ORDERS = Reference(("part", "number"), "orders", ("part", "number"), (Kind.TEXT, Kind.INTEGER))
#: The columns of each table with the type of an engine.
TYPES = {
    "people": {"id": "BIGINT", "house": "BIGINT", "sex": "VARCHAR", "age": "BIGINT"},
    "orders": {"part": "VARCHAR", "number": "BIGINT", "person": "BIGINT", "region": "VARCHAR", "price": "BIGINT"},
    "items": {"part": "VARCHAR", "number": "BIGINT", "x": "BIGINT", "ok": "BOOLEAN"},
    "notes": {"who": "BIGINT", "code": "VARCHAR", "day": "DATE", "n": "BIGINT", "ok": "BOOLEAN"},
    "hours": {"person": "BIGINT", "moment": "TIMESTAMP", "code": "VARCHAR", "n": "BIGINT"},
    "visits": {"person": "BIGINT", "doctor": "BIGINT", "code": "VARCHAR", "cost": "BIGINT"},
    "doctors": {"doctor": "BIGINT", "code": "VARCHAR", "grade": "BIGINT"},
}
#: Units are numbered: houses (or people) from 0, doctors from 100, periods from 200.
DOCTORS, PERIODS = 100, 200
#: Two periods of each length that follow one another, and the minutes in which both surely lie.
STARTS = {
    "hour": (datetime(2024, 2, 29, 23), datetime(2024, 3, 1, 0), 60),
    "day": (datetime(2024, 2, 29), datetime(2024, 3, 1), 24 * 60),
    "week": (datetime(2024, 2, 26), datetime(2024, 3, 4), 7 * 24 * 60),
    "month": (datetime(2024, 2, 1), datetime(2024, 3, 1), 29 * 24 * 60),
}
WARDS = Table(
    "wards",
    (
        Column("code", Kind.TEXT, values=CODES),
        Column("zone", Kind.TEXT, values=("x", "y")),
        Column("beds", Kind.INTEGER, NINE),
    ),
    None,
    size=4,
    repeats={"code": 2, "zone": 2, "beds": 2},
)

#: The rows of wards, which are public.
WARD_ROWS = "VALUES ('A', 'x', 1), ('A', 'y', 2), ('B', 'y', NULL), (NULL, 'x', 3)"

Row = tuple[object, ...]


@dataclass(frozen=True)
class RandomSchema:
    """Declared tables; their rows are in `<table>_rows0`, and in another order in `<table>_rows1`."""

    tables: Mapping[str, Table]
    unit: str  #: the privacy ID column of people
    relation: Relation
    houses: tuple[int, ...]
    doctors: tuple[int, ...]
    periods: tuple[int, ...]
    per: str

    @property
    def bases(self) -> list[str]:
        """The tables that hold the rows of all neighbors."""
        return [f"{name}_{rows}" for name in TYPES for rows in ("rows0", "rows1")]

    @property
    def units(self) -> tuple[int, ...]:
        """All units of all entities."""
        return (*self.houses, *self.doctors, *self.periods)

    def views(self, rows: str, gone: frozenset[int]) -> dict[str, str]:
        """Return the SELECT of each table without the units in `gone`, or with their replacements."""
        return {
            name: f"SELECT {', '.join(columns)} FROM {name}_{rows} WHERE {self._kept('a', gone)} "
            f"AND {self._kept('b', gone)}"
            for name, columns in TYPES.items()
        }

    def _kept(self, owner: str, gone: frozenset[int]) -> str:
        listed = ", ".join(map(str, sorted(gone))) or "-1"
        if self.relation is Relation.REPLACE:
            return f"({owner} IS NULL OR alternative_{owner} = CASE WHEN {owner} IN ({listed}) THEN 1 ELSE 0 END)"
        return f"({owner} IS NULL OR (alternative_{owner} = 0 AND {owner} NOT IN ({listed})))"

    def movable(self, rng: random.Random, text: str) -> list[int]:
        """Choose units of the entities that a query reads."""
        if "hours" in text:
            return rng.sample(self.periods, min(len(self.periods), 3))
        if "visits" in text:
            return [rng.choice(self.houses), *rng.sample(self.doctors, min(len(self.doctors), 2))]
        return rng.sample(self.houses, min(len(self.houses), 2))

    def owner(self, unit: int) -> tuple[int, object]:
        """Return the place and the value of a unit among the owners of a row."""
        if unit >= PERIODS:
            person, which = divmod(unit - PERIODS, 2)
            return 0, f"{person}@{STARTS[self.per][which]}"
        return (0, unit) if unit < DOCTORS else (1, unit)


def declared(unit: str, relation: Relation, per: str, bounds: tuple[int, int]) -> dict[str, Table]:
    """Declare the tables; people belong to their house, or to themselves (`id`)."""
    groups, rows = bounds
    names = {"house": ("people.house", "people.house"), "id": ("person", "people.id")}[unit]
    first, second = (OwnerPath(steps, unit, Kind.INTEGER) for steps in ((TO_PEOPLE,), (TO_ORDERS, TO_PEOPLE)))
    period = Period("person", Kind.INTEGER, per, "moment", Kind.TIMESTAMP)
    code, ok = Column("code", Kind.TEXT, values=CODES), Column("ok", Kind.BOOLEAN)

    def own(column: str, **how: object) -> PrivacyUnit:
        return PrivacyUnit(column, groups, rows, entity="house", **how)  # type: ignore[arg-type]

    def table(name: str, owner: PrivacyUnit, *columns: Column, **more: object) -> Table:
        return Table(name, columns, owner, relation, **more)  # type: ignore[arg-type]

    both = (
        PrivacyUnit(names[0], 8, 8, "house", auto=True, path=first),
        PrivacyUnit("doctor", 8, 8, "doctor", auto=True),
    )
    private = (
        table(
            "people",
            own(unit),
            *(Column("id", Kind.INTEGER), Column("house", Kind.INTEGER)),
            *(Column("sex", Kind.TEXT, values=("f", "m")), Column("age", Kind.INTEGER, NINE)),
            unique=("id",),
        ),
        table(
            "orders",
            own(names[0], path=first),
            *KEY,
            *(Column("person", Kind.INTEGER), Column("region", Kind.TEXT, values=CODES)),
            Column("price", Kind.INTEGER, NINE),
            unique=("part", "number"),
        ),
        table("items", own(names[1], path=second), *KEY, Column("x", Kind.INTEGER, NINE), ok),
        table("notes", own("who"), Column("who", Kind.INTEGER), code, Column("day", Kind.DATE), _number("n"), ok),
        table(
            "hours",
            PrivacyUnit(period.name, groups, rows, entity="person", period=period),
            *(Column("person", Kind.INTEGER, hidden=True), Column("moment", Kind.TIMESTAMP), code, _number("n")),
        ),
        table(
            "visits",
            both[0],
            *(Column("person", Kind.INTEGER), Column("doctor", Kind.INTEGER), code, _number("cost")),
            others=both[1:],
        ),
        table(
            "doctors",
            PrivacyUnit("doctor", 1, 2, entity="doctor"),
            *(Column("doctor", Kind.INTEGER), code, _number("grade")),
        ),
    )
    return {each.name: each for each in (*private, WARDS)}


def _number(name: str) -> Column:
    return Column(name, Kind.INTEGER, NINE)


def random_schema(rng: random.Random, connection: duckdb.DuckDBPyConnection) -> RandomSchema:
    """Declare tables and fill them; neighbors are views of the same rows."""
    unit, per, relation = rng.choice(("house", "id")), rng.choice(tuple(STARTS)), rng.choice(list(Relation))
    houses = tuple(range(rng.choice((1, 2, 3, 3, 4))))
    doctors = tuple(range(DOCTORS, DOCTORS + rng.choice((1, 2))))
    periods = tuple(range(PERIODS, PERIODS + 2 * rng.choice((1, 2))))
    bounds = rng.choice((1, 2, 4)), rng.choice((1, 2, 5))
    rows = _keyed_rows(rng, unit, houses, doctors)
    rows["hours"] = [each for period in periods for each in _period_rows(rng, period, per)]
    rows["hours"] += [(*_NOBODY, None, STARTS[per][0], "A", 1), (*_NOBODY, 0, None, "A", 2)]
    for name, columns in TYPES.items():
        kinds = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        written = [each for row in rows[name] for each in [row] * rng.choice((1, 1, 1, 2 if _repeats(name) else 1))]
        for place in ("rows0", "rows1"):
            rng.shuffle(written)
            connection.execute(
                f"CREATE OR REPLACE TABLE {name}_{place} "
                f"(a BIGINT, alternative_a BIGINT, b BIGINT, alternative_b BIGINT, {kinds})"
            )
            if written:
                marks = ", ".join([f"({', '.join('?' * (len(columns) + 4))})"] * len(written))
                values = [value for row in written for value in row]
                connection.execute(f"INSERT INTO {name}_{place} VALUES {marks}", values)
    return RandomSchema(declared(unit, relation, per, bounds), unit, relation, houses, doctors, periods, per)


#: The units of a row that belongs to nobody.
_NOBODY: Row = (None, None, None, None)


def _repeats(name: str) -> bool:
    """Tell whether a table may have the same row twice: one with a key may not."""
    return name not in ("people", "orders")


def _keyed_rows(rng: random.Random, unit: str, houses: Iterable[int], doctors: tuple[int, ...]) -> dict[str, list[Row]]:
    """Draw the rows of each house and its replacement, which has the same keys, and rows of nobody."""
    rows: dict[str, list[Row]] = {name: [] for name in TYPES}
    # parts and numbers alone occur with several owners, so that half of a key names nobody
    pairs = [(part, number) for part in "abc" for number in range(6)]
    rng.shuffle(pairs)
    people = list[int]()
    for house in houses:
        ids = (house,) if unit == "id" else (10 * house, 10 * house + 1)
        keys = [pairs.pop() for _ in range(3)]
        people += ids
        for alternative in (0, 1):
            _add_house(rng, rows, (house, alternative), ids, keys, house if unit == "house" else None)
            for _ in range(rng.choice((1, 3, 6))):
                doctor = rng.choice((*doctors, None))
                seen = (None, None) if doctor is None else (doctor, rng.choice((0, 0, 1)))
                rows["visits"].append((house, alternative, *seen, rng.choice(ids), doctor, *_seen(rng)))
    _add_nobody(rng, rows, unit, pairs, rng.choice(people))
    for doctor in doctors:
        for alternative in (0, 1):
            graded = [(doctor, alternative, None, None, doctor, *_seen(rng)) for _ in range(rng.choice((0, 1, 2)))]
            rows["doctors"] += graded
            visited = (None, None, doctor, alternative, rng.choice((99, 98, None)), doctor, *_seen(rng))
            rows["visits"].append(visited)
    return rows


def _add_house(
    rng: random.Random,
    rows: dict[str, list[Row]],
    unit: tuple[int, int],
    ids: tuple[int, ...],
    keys: list[tuple[str, int]],
    home: int | None,
) -> None:
    """Add the people of one house or its replacement, their orders, the items of these, and notes."""
    mine: Row = (*unit, None, None)
    for person in ids:
        if rng.random() < 0.9:
            rows["people"].append((*mine, person, home, rng.choice("fm"), _drawn(rng)))
    for key in keys[: rng.randint(0, 3)]:
        rows["orders"].append((*mine, *key, rng.choice(ids), rng.choice((*CODES, None)), _drawn(rng)))
    for _ in range(rng.choice((0, 1, 3, 6))):
        rows["items"].append((*mine, *rng.choice(keys), _drawn(rng), rng.choice((True, False, None))))
    for _ in range(rng.choice((0, 1, 3, 6))):
        rows["notes"].append((*mine, unit[0], *_noted(rng)))


def _add_nobody(
    rng: random.Random, rows: dict[str, list[Row]], unit: str, pairs: list[tuple[str, int]], somebody: int
) -> None:
    """Add rows without an owner: NULL privacy IDs and references, and references to rows that do not exist."""
    # people without an id belong to their house, if houses are the units
    nameless = (0, 0, None, None) if unit == "house" else _NOBODY
    rows["people"] += [(*nameless, None, 0, "f", 1), (*_NOBODY, None, None, "m", 2)]
    if unit == "house":
        rows["people"].append((*_NOBODY, 99, None, "f", 3))
    rows["orders"] += [(*_NOBODY, *pairs.pop(), person, "A", _drawn(rng)) for person in (99, 98, None)]
    rows["orders"] += [(*_NOBODY, None, 1, somebody, "B", 1), (*_NOBODY, "a", None, somebody, "B", 1)]
    keys = [row[4:6] for row in rows["orders"]]
    for key in (*rng.sample(keys, min(3, len(keys))), pairs.pop(), (None, 1), ("a", None)):
        rows["items"].append((*_NOBODY, *key, _drawn(rng), True))
    rows["notes"] += [(*_NOBODY, None, *_noted(rng)) for _ in range(2)]
    rows["doctors"].append((*_NOBODY, None, "A", 1))


def _drawn(rng: random.Random) -> int | None:
    return rng.choice((None, 0, 1, 2, 2, 9, -50, 2**62))


def _noted(rng: random.Random) -> Row:
    day = f"2024-01-{rng.choice((1, 2, 2, 28)):02}"
    return (rng.choice((*CODES, None)), day, _drawn(rng), rng.choice((True, False, None)))


def _seen(rng: random.Random) -> Row:
    return (rng.choice((*CODES, None)), _drawn(rng))


def _period_rows(rng: random.Random, unit: int, per: str) -> Iterable[Row]:
    person, which = divmod(unit - PERIODS, 2)
    *starts, minutes = STARTS[per]
    for alternative in (0, 1):
        for _ in range(rng.choice((0, 1, 3, 5))):
            late = timedelta(minutes=rng.choice((0, 1, minutes // 2, minutes - 1)))
            moment = starts[which] + late
            yield (unit, alternative, None, None, person, moment, rng.choice((*CODES, None)), _drawn(rng))
