"""Random queries over the tables of `random_schema`, by the operator that they are about."""

import random
from dataclasses import dataclass

from hubbub.errors import QueryError

#: All columns of notes, so that ties in an order are rows that are alike.
ALL = "day, code, n, ok"
#: Rows with a key k and a number y; {u} is the privacy ID column of people, {p} a condition on notes.
ROWS: dict[str, tuple[str, ...]] = {
    "joins along keys": (
        "SELECT region AS k, x AS y FROM items JOIN orders USING (part, number)",
        "SELECT region AS k, x AS y FROM orders o JOIN items i ON i.number = o.number AND o.part = i.part AND x > 1",
        "SELECT region AS k, age AS y FROM items i JOIN orders o USING (part, number) JOIN people p ON o.person = p.id",
        "SELECT region AS k, x AS y FROM people p JOIN orders o ON o.person = p.id JOIN items i USING (part, number)",
        "SELECT o.region AS k, q.price AS y FROM orders o JOIN orders q ON o.person = q.person",
        "SELECT region AS k, i.x AS y FROM items i LEFT JOIN orders o ON i.part = o.part AND i.number = o.number",
        "SELECT region AS k, x AS y FROM orders o LEFT JOIN items i ON i.part = o.part AND i.number = o.number",
        "SELECT region AS k, j.x AS y FROM items i JOIN items j USING (part, number) JOIN orders USING (part, number)",
    ),
    "comma and NATURAL joins": (
        "SELECT region AS k, x AS y FROM items i, orders o WHERE i.part = o.part AND i.number = o.number AND price < 5",
        "SELECT region AS k, age AS y FROM orders o, people p WHERE o.person = p.id AND sex = 'f'",
        "SELECT region AS k, x AS y FROM items NATURAL JOIN orders",
        "SELECT zone AS k, n AS y FROM notes NATURAL JOIN wards",
        "SELECT zone AS k, n AS y FROM notes, wards WHERE notes.code = wards.code AND ok",
        "SELECT n.code AS k, age AS y FROM notes n, people p WHERE n.who = p.{u}",
    ),
    "EXISTS and IN": (
        "SELECT region AS k, price AS y FROM orders o WHERE {not} EXISTS (SELECT 1 FROM items i WHERE i.part = o.part "
        "AND i.number = o.number AND i.x > 1)",
        "SELECT 'A' AS k, x AS y FROM items i WHERE EXISTS (SELECT 1 FROM items j WHERE j.part = i.part "
        "AND j.number = i.number AND j.x <> i.x)",
        "SELECT region AS k, price AS y FROM orders WHERE (part, number) IN (SELECT part, number FROM items "
        "GROUP BY part, number HAVING count(*) > 1)",
        "SELECT sex AS k, age AS y FROM people p WHERE {not} EXISTS (SELECT 1 FROM notes WHERE who = p.{u} AND {p})",
        "SELECT sex AS k, age AS y FROM people p WHERE p.{u} {not} IN (SELECT who FROM notes WHERE {p})",
        "SELECT sex AS k, age AS y FROM people p WHERE age {not} IN (SELECT n FROM notes WHERE who = p.{u})",
        "SELECT sex AS k, age AS y FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id "
        "AND EXISTS (SELECT 1 FROM items i WHERE i.part = o.part AND i.number = o.number))",
        "SELECT code AS k, n AS y FROM notes v WHERE (v.n {not} IN (SELECT n FROM notes b WHERE b.who = v.who "
        "AND b.code = 'A')) IS NULL",
        "SELECT code AS k, n AS y FROM notes v WHERE {not} EXISTS (SELECT 1 FROM notes b WHERE b.who = v.who "
        "AND b.day < v.day)",
        "SELECT code AS k, n AS y FROM notes WHERE code {not} IN (SELECT code FROM wards WHERE zone = 'x')",
    ),
    "scalar subqueries": (
        "SELECT sex AS k, (SELECT max(n) FROM notes WHERE who = p.{u} AND {p}) AS y FROM people p",
        "SELECT sex AS k, age AS y FROM people p WHERE (SELECT count(*) FROM notes WHERE who = p.{u}) = 0",
        "SELECT code AS k, n AS y FROM notes v WHERE n > (SELECT avg(n) FROM notes b WHERE b.who = v.who)",
        "SELECT 'A' AS k, x AS y FROM items i WHERE i.x > (SELECT avg(j.x) FROM items j WHERE j.part = i.part "
        "AND j.number = i.number)",
        "SELECT sex AS k, age AS y FROM people WHERE age > (SELECT max(beds) FROM wards)",
    ),
    "windows and QUALIFY": (
        *(
            f"SELECT code AS k, {function} OVER (PARTITION BY who ORDER BY {ALL}{frame}) AS y FROM notes"
            for function, frame in (
                ("lag(n)", ""),
                ("lead(n, 2, 7)", ""),
                ("first_value(n)", ""),
                ("last_value(n)", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
                ("last_value(n)", ""),
                ("last_value(n IGNORE NULLS)", ""),
                ("first_value(n IGNORE NULLS)", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
                ("lag(n IGNORE NULLS)", ""),
                ("lead(n IGNORE NULLS)", ""),
                ("sum(n)", " ROWS 2 PRECEDING"),
                ("ntile(3)", ""),
            )
        ),
        "SELECT code AS k, row_number() OVER (PARTITION BY who ORDER BY day) AS y FROM notes WHERE {p}",
        "SELECT code AS k, dense_rank() OVER (PARTITION BY who, ok ORDER BY n DESC) AS y FROM notes",
        "SELECT code AS k, count(*) OVER (PARTITION BY who) AS y FROM notes",
        "SELECT lag(code) OVER (PARTITION BY who ORDER BY day) AS k, n AS y FROM notes",
        "SELECT code AS k, n AS y FROM notes QUALIFY row_number() OVER (PARTITION BY who ORDER BY day) = 1",
        "SELECT code AS k, n AS y FROM notes QUALIFY rank() OVER (PARTITION BY who, code ORDER BY n) <= 2",
        "SELECT code AS k, count(*) AS y FROM notes GROUP BY who, code "
        "QUALIFY rank() OVER (PARTITION BY who ORDER BY count(*) DESC) = 1",
        "SELECT 'A' AS k, row_number() OVER (PARTITION BY part, number ORDER BY x) AS y FROM items",
        "SELECT region AS k, sum(price) OVER (PARTITION BY person ORDER BY price ROWS 1 PRECEDING) AS y FROM orders",
    ),
    "set operations": (
        "SELECT who, code AS k, n AS y FROM notes WHERE {p} {set} SELECT who, code, n FROM notes WHERE {p}",
        "SELECT who, n AS y, 'A' AS k FROM notes {set} SELECT {u}, age, 'B' FROM people",
        "SELECT code AS k, n AS y FROM notes UNION ALL SELECT region, price FROM orders",
        "SELECT sex AS k, age AS y FROM people WHERE {u} IN (SELECT who FROM notes WHERE code = 'A' {set} "
        "SELECT who FROM notes WHERE code = 'B')",
        "SELECT code AS k, n AS y FROM hours UNION ALL SELECT code, 3 FROM hours WHERE n > 1",
    ),
    "DISTINCT and groups of a unit": (
        "SELECT DISTINCT ON (who) who, code AS k, n AS y FROM notes ORDER BY who, day DESC",
        "SELECT DISTINCT ON (who, code) who, code AS k, n AS y FROM notes WHERE {p} ORDER BY who, code, day",
        "SELECT DISTINCT who, code AS k, n AS y FROM notes",
        "SELECT code AS k, max(n) AS y FROM notes GROUP BY who, code HAVING count(*) > 1",
        "SELECT CASE WHEN bool_or(ok) THEN 'A' ELSE 'B' END AS k, min(n) AS y FROM notes GROUP BY who",
        "SELECT 'A' AS k, count(*) AS y FROM items GROUP BY part, number",
        "SELECT 'A' AS k, sum(x) AS y FROM (SELECT DISTINCT part, number, x FROM items) GROUP BY part, number",
    ),
    "values at an extreme": (
        "SELECT ARG_MIN(code, day) AS k, ARG_MAX(n, day) AS y FROM notes GROUP BY who",
        "SELECT code AS k, MAX_BY(n, day) FILTER (WHERE {p}) AS y FROM notes GROUP BY who, code",
        "SELECT ARG_MAX_NULL(region, price) AS k, MIN(price) AS y FROM orders GROUP BY person",
        "SELECT 'A' AS k, ARG_MIN(x, x) AS y FROM items GROUP BY part, number",
        "SELECT sex AS k, (SELECT ARG_MAX(n, day) FROM notes WHERE who = p.{u} AND {p}) AS y FROM people p",
    ),
    "full joins and rows without a match": (
        "SELECT coalesce(v.code, sex) AS k, coalesce(n, age) AS y FROM people p FULL JOIN notes v ON p.{u} = v.who",
        "SELECT a.code AS k, a.n + b.n AS y FROM notes a FULL JOIN notes b ON a.who = b.who AND a.n = b.n AND "
        "a.day = b.day",
        "SELECT coalesce(a.code, b.code) AS k, n AS y FROM (SELECT who, code, n FROM notes WHERE {p}) a FULL JOIN "
        "(SELECT who, code, n FROM notes WHERE {p}) b USING (who, n)",
        "SELECT coalesce(sex, code) AS k, n AS y FROM people p FULL JOIN notes v ON p.{u} = v.who AND p.age = v.n",
        "SELECT region AS k, coalesce(x, price) AS y FROM orders FULL JOIN items USING (part, number)",
        "SELECT code AS k, CASE WHEN p.{u} IS NULL THEN 1 ELSE n END AS y FROM people p FULL JOIN (SELECT who, code, n "
        "FROM notes WHERE {p}) v ON p.{u} = v.who",
        "SELECT sex AS k, age AS y FROM people p LEFT JOIN notes v ON p.{u} = v.who AND {p} WHERE v.who IS NULL",
        "SELECT region AS k, price AS y FROM orders o LEFT JOIN items i ON o.part = i.part AND o.number = i.number "
        "WHERE i.number IS NULL",
        "SELECT sex AS k, count(v.who) AS y FROM people p LEFT JOIN notes v ON p.{u} = v.who GROUP BY p.{u}, sex",
    ),
    "left joins with a comparison": (
        "SELECT sex AS k, coalesce(n, age) AS y FROM people p LEFT JOIN notes v ON p.{u} = v.who AND v.n {than} p.age",
        "SELECT a.code AS k, coalesce(b.n, 0) AS y FROM notes a LEFT JOIN notes b ON a.who = b.who AND b.day {than} "
        "a.day",
        "SELECT sex AS k, age AS y FROM people p LEFT JOIN notes v ON p.{u} = v.who AND v.n {than} p.age AND {p} "
        "WHERE v.who IS NULL",
        "SELECT sex AS k, count(v.who) AS y FROM people p LEFT JOIN notes v ON v.who = p.{u} AND p.age {than} v.n "
        "AND p.age > 2 GROUP BY p.{u}, sex",
        "SELECT region AS k, coalesce(x, price) AS y FROM orders o LEFT JOIN items i ON o.part = i.part "
        "AND o.number = i.number AND i.x {than} o.price",
    ),
    "LATERAL": (
        "SELECT sex AS k, l.n AS y FROM people p CROSS JOIN LATERAL (SELECT v.n FROM notes v WHERE v.who = p.{u} ORDER "
        "BY v.day, v.code, v.n, v.ok LIMIT 2) AS l",
        "SELECT sex AS k, coalesce(l.n, age) AS y FROM people p LEFT JOIN LATERAL (SELECT v.n FROM notes v WHERE "
        "v.who = p.{u} ORDER BY v.day DESC, v.code, v.n, v.ok LIMIT 1) AS l ON TRUE",
        "SELECT sex AS k, l.c AS y FROM people p, LATERAL (SELECT count(*) AS c FROM notes v WHERE v.who = p.{u}) AS l",
    ),
    "semi and anti joins": (
        "SELECT code AS k, n AS y FROM notes {semi} JOIN wards USING (code)",
        "SELECT sex AS k, age AS y FROM people {semi} JOIN notes ON people.{u} = notes.who AND people.age = notes.n",
        "SELECT sex AS k, age AS y FROM people {semi} JOIN (SELECT who FROM notes WHERE {p}) b ON people.{u} = b.who",
        "SELECT region AS k, price AS y FROM orders {semi} JOIN items USING (part, number)",
    ),
    "public subqueries": (
        "SELECT g.zone AS k, n AS y FROM notes JOIN (SELECT code, max(zone) AS zone FROM wards GROUP BY code) g "
        "USING (code)",
        "SELECT notes.code AS k, n AS y FROM notes JOIN (SELECT code, sum(beds) AS b FROM wards GROUP BY code) g "
        "ON notes.code = g.code AND n < b",
        "SELECT code AS k, n AS y FROM notes LEFT JOIN (SELECT DISTINCT code, zone FROM wards) g USING (code)",
        "SELECT zone AS k, n AS y FROM hours JOIN (SELECT DISTINCT code, zone FROM wards) g USING (code)",
    ),
    "periods": (
        "SELECT code AS k, n AS y FROM hours",
        "SELECT code AS k, extract(hour FROM moment) AS y FROM hours WHERE n > 1",
        "SELECT zone AS k, n AS y FROM hours LEFT JOIN wards USING (code)",
        "SELECT code AS k, n AS y FROM hours WHERE code IN (SELECT code FROM wards WHERE zone = 'x')",
    ),
}
#: Whole queries: groups that nobody declared, public rows that stay, and rows with two owners.
WHOLE: dict[str, tuple[str, ...]] = {
    "lists of groups": (
        "SELECT part FROM items GROUP BY part",
        "SELECT DISTINCT part FROM orders JOIN items USING (part, number) WHERE x > 0",
        "SELECT part, count(*) FROM orders JOIN people ON person = id GROUP BY part",
        "SELECT part, sum(DISTINCT x), count(DISTINCT x) FROM items GROUP BY part",
        "SELECT day FROM (SELECT day FROM notes QUALIFY rank() OVER (PARTITION BY who ORDER BY n) <= 2) GROUP BY day",
    ),
    "public LEFT JOIN private": (
        "SELECT w.code, count(n) FROM wards w LEFT JOIN notes v ON v.code = w.code GROUP BY w.code",
        "SELECT zone, sum(v.n + w.beds), count(DISTINCT v.n) FROM wards w LEFT JOIN notes v USING (code) GROUP BY zone",
        "SELECT w.code, w.zone, count(price) FROM wards w LEFT JOIN orders o ON o.region = w.code GROUP BY 1, 2",
        "SELECT w.code, count(h.n) FROM wards w LEFT JOIN hours h ON h.code = w.code AND h.n > w.beds GROUP BY w.code",
    ),
    "two owners": (
        "SELECT count(*) FROM visits",
        "SELECT code, count(*), sum(cost) FROM visits WHERE cost > 0 GROUP BY code",
        "SELECT d.code, count(*) FROM visits v JOIN doctors d ON v.doctor = d.doctor GROUP BY d.code",
        "SELECT sum(grade) FROM doctors d JOIN visits v USING (doctor) WHERE v.cost < 9",
        "SELECT zone, count(cost) FROM visits JOIN wards USING (code) GROUP BY zone",
        "SELECT sum(c) FROM (SELECT code, cost + 1 AS c FROM visits WHERE code <> 'A')",
    ),
}
FAMILIES = (*ROWS, *WHOLE)
CLAMPED = "least(greatest(y, 0), 9)"
AGGREGATES = (
    "count(*)",
    "count(y)",
    f"sum({CLAMPED})",
    f"avg({CLAMPED})",
    f"sum(DISTINCT {CLAMPED})",
    f"avg(DISTINCT {CLAMPED})",
    f"count(DISTINCT {CLAMPED})",
    f"var_pop({CLAMPED})",
    f"median({CLAMPED})",
    f"max({CLAMPED})",
    f"sum({CLAMPED}) FILTER (WHERE y > 1)",
)
CONDITIONS = ("code = 'A'", "n > 1", "ok", "n IS NULL", "day > DATE '2024-01-01'", "(code <> 'B' OR ok)", "TRUE")


@dataclass(frozen=True)
class RandomQuery:
    """A query, and the operator that it is about."""

    family: str
    text: str

    @property
    def lists(self) -> bool:
        """Whether the query lists groups that nobody declared, which needs δ."""
        return self.family == "lists of groups"


def random_schema_query(rng: random.Random, unit: str, family: str) -> RandomQuery:
    """Return one random query about an operator, over a schema whose privacy ID is this column of people."""
    if family in WHOLE:
        return RandomQuery(family, rng.choice(WHOLE[family]))
    rows = rng.choice(ROWS[family]).replace("{u}", unit)
    for mark, choices in (
        ("{p}", CONDITIONS),
        ("{not}", ("", "NOT")),
        ("{semi}", ("SEMI", "ANTI")),
        ("{set}", ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")),
        ("{than}", ("<", "<=", ">", ">=", "<>")),
    ):
        while mark in rows:
            rows = rows.replace(mark, rng.choice(choices), 1)
    aggregates = ", ".join(rng.sample(AGGREGATES, rng.randint(1, 3)))
    group = " GROUP BY k" if rng.random() < 0.7 else ""
    return RandomQuery(family, f"SELECT {aggregates} FROM ({rows}) AS s{group}")


def check_schema_refusal(error: QueryError, query: RandomQuery, dialect: str) -> None:
    """Raise the error unless a random query is refused for a known reason."""
    reasons = {
        "HB569": True,  # a condition may exclude all values of a key or of a selection
        "HB574": dialect != "duckdb",
    }
    if not reasons.get(error.code):
        raise AssertionError(f"{query.text}: {error}") from error
