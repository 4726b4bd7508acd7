"""Rejected queries: each error has a code, a position, a message and a remedy."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from hubbub.core.schema import Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.bind import bind

Tables = Mapping[str, Table]

#: Query, code, and part of the message. A bar marks the expected position in the text.
REFUSED: list[tuple[str, str, str]] = [
    # individual rows
    ("SELECT |age, income FROM people", "HB510", "individual rows"),
    ("SELECT |* FROM people", "HB510", "individual rows"),
    ("SELECT |age FROM people ORDER BY age LIMIT 1", "HB510", "individual rows"),
    ("SELECT |person, count(*) FROM people GROUP BY person", "HB510", "individual rows"),
    ("SELECT count(*) FROM people GROUP BY |person", "HB516", "one group per person"),
    ("SELECT health, |age FROM people GROUP BY health", "HB511", "must appear in GROUP BY"),
    ("SELECT health, count(*) FROM people GROUP BY health ORDER BY |age", "HB511", "must appear in GROUP BY"),
    ("SELECT health, count(*) FROM people GROUP BY health HAVING |age > 3", "HB511", "must appear in GROUP BY"),
    ("SELECT DISTINCT |health FROM people", "HB510", "only lists groups"),
    ("SELECT health FROM people GROUP BY |health", "HB510", "only lists groups"),
    ("SELECT |age FROM (SELECT age FROM people)", "HB510", "individual rows"),
    # functions
    ("SELECT count(*) FROM people WHERE |error('x') = 1", "HB504", "not supported"),
    ("SELECT |read_text('/etc/passwd') FROM people", "HB504", "not supported"),
    ("SELECT |geomean(age) FROM people", "HB504", "The function 'geomean' is not supported"),
    ("SELECT count(|read_text('/etc/passwd')) FROM people", "HB504", "not supported"),
    ("SELECT count(|getenv('HOME')) FROM people", "HB504", "not supported"),
    ("SELECT count(|random()) FROM people", "HB504", "not supported"),
    ("SELECT count(*) FROM people WHERE |regexp_matches(health, '(a+)+')", "HB508", "regular expression"),
    ("SELECT count(*) FROM people WHERE |health ~ '(?i)x'", "HB508", "regular expression"),
    ("SELECT count(|replace(health, '', 'x')) FROM people", "HB508", "replace"),
    ("SELECT count(|replace(health, 'o', '123456789')) FROM people", "HB508", "replace"),
    ("SELECT count(|strptime(health, '%c')) FROM people", "HB508", "format"),
    ("SELECT count(|seen - seen) FROM people", "HB508", "interval"),
    ("SELECT count(|current_setting('threads')) FROM people", "HB504", "not supported"),
    ("SELECT count(*) FROM |duckdb_settings()", "HB503", "table or a subquery"),
    ("SELECT count(*) FROM |information_schema.tables", "HB505", "no table"),
    ("SELECT count(cast(|age AS DECIMAL(2,5))) FROM people", "HB508", "decimals"),
    ("SELECT count(cast(|age AS UUID)) FROM people", "HB504", "CAST"),
    ("SELECT count(|repeat(health, 1000000)) FROM people", "HB508", "a constant from 0 to 16"),
    # names
    ("SELECT count(*) FROM |nosuch", "HB505", "no table"),
    ("SELECT count(|nosuch) FROM people", "HB506", "no column"),
    ("SELECT count(|notes) FROM people", "HB506", "no column"),
    ('SELECT count(*) FROM people WHERE site = |"North"', "HB506", "no column"),
    ("SELECT |avg(day) FROM people", "HB508", "takes numbers, not date values"),
    ("SELECT count(*) FROM people WHERE |notes = 'x'", "HB506", "no column"),
    ("SELECT count(|people.notes) FROM people", "HB506", "no column"),
    ('SELECT count(|"AGE") FROM people', "HB506", "no column"),
    ('SELECT count(*) FROM |"PEOPLE"', "HB505", "no table"),
    ("SELECT count(|p.age) FROM people", "HB506", "no column"),
    ("SELECT count(|year) FROM people JOIN visits USING (person)", "HB507", "ambiguous"),
    ("SELECT |avg(age) AS a, avg(income) AS a FROM people", "HB507", "named 'a'"),
    ("SELECT count(*) FROM people JOIN |people USING (person)", "HB507", "same name"),
    ("SELECT |n FROM (SELECT count(*) AS m FROM people)", "HB506", "no column"),
    # windows, limits, subqueries
    ("SELECT |sum(age) OVER (PARTITION BY person) FROM people", "HB510", "individual rows"),
    ("SELECT count(*) FROM (SELECT age FROM people LIMIT |10)", "HB517", "LIMIT"),
    ("SELECT count(*) FROM (SELECT age FROM people ORDER BY |age)", "HB517", "ORDER"),
    ("SELECT count(*) FROM people LIMIT |age", "HB506", "no column"),
    ("SELECT count(*) FROM people LIMIT |1.5", "HB508", "whole number"),
    (
        "SELECT count(*) FROM people p WHERE age > (SELECT |avg(cost) FROM visits v WHERE v.cost = p.age)",
        "HB740",
        "everybody",
    ),
    ("SELECT count(*) FROM people p WHERE EXISTS (SELECT |1 FROM visits v WHERE v.cost = p.age)", "HB740", "other"),
    ("SELECT count(*) FROM people WHERE |health IN (SELECT health FROM people)", "HB740", "other people"),
    ("SELECT count(*) FROM people WHERE |person IN (SELECT doctor FROM doctors)", "HB514", "same people"),
    ("SELECT count(*) FROM people WHERE |person IN (SELECT age FROM people)", "HB514", "same entity"),
    (
        "SELECT count(*) FROM people JOIN (SELECT health, count(*) FROM people GROUP BY |health) h USING (health)",
        "HB514",
        "belong to no single person",
    ),
    ("SELECT count(*) FROM (SELECT DISTINCT |health FROM people)", "HB514", "belong to no single person"),
    ("WITH RECURSIVE |c AS (SELECT 1 FROM people) SELECT count(*) FROM c", "HB503", "RECURSIVE"),
    # joins and unions
    ("SELECT count(*) FROM people p JOIN |visits v ON p.age = v.cost", "HB513", "different people"),
    ("SELECT count(*) FROM people p JOIN |visits v ON p.person <> v.person", "HB513", "different people"),
    ("SELECT count(*) FROM people p JOIN |visits v ON p.person = v.person OR p.age = 3", "HB513", "different people"),
    ("SELECT count(*) FROM people p JOIN |doctors d ON p.person = d.doctor", "HB513", "same people"),
    ("SELECT count(*) FROM people CROSS JOIN |visits", "HB513", "different people"),
    ("SELECT count(*) FROM people, |visits", "HB513", "different people"),
    ("SELECT count(*) FROM people p, |visits v WHERE p.year = v.year", "HB513", "different people"),
    ("SELECT count(*) FROM people p, |visits v WHERE p.year > v.year", "HB513", "different people"),
    ("SELECT count(*) FROM logs, |sites", "HB513", "cannot duplicate"),
    ("SELECT count(*) FROM people p, |people p WHERE age > 3", "HB507", "same name"),
    ("SELECT count(*) FROM doctors NATURAL JOIN |visits", "HB513", "share no column"),
    ("SELECT count(*) FROM people p, LATERAL (SELECT |*) AS x", "HB503", "no name"),
    (
        "SELECT count(*) FROM people p, LATERAL (SELECT |age AS a FROM people q WHERE q.age > p.age) AS x",
        "HB503",
        "another way",
    ),
    (
        "SELECT count(*) FROM people p, LATERAL (SELECT |age FROM people q WHERE q.person = p.person LIMIT 1) AS x",
        "HB503",
        "ORDER BY",
    ),
    ("SELECT t, count(*) FROM people p, |UNNEST(p.health) AS u(t) GROUP BY t", "HB503", "is not a list"),
    ("SELECT count(*) FROM people FULL JOIN |sites USING (site)", "HB513", "belong to no person"),
    ("SELECT count(*) FROM sites LEFT JOIN |people USING (site)", "HB513", "belong to no person"),
    ("SELECT count(*) FROM people RIGHT JOIN |sites USING (site)", "HB513", "belong to no person"),
    (
        "SELECT count(*) FROM people p LEFT JOIN sites s ON p.site = s.site AND |p.age > 3",
        "HB513",
        "two private tables",
    ),
    ("SELECT count(*) FROM people p LEFT JOIN |sites s ON p.age > s.beds", "HB513", "does not compare"),
    ("SELECT count(*) FROM people p JOIN sites s ON |p.health = s.site", "HB508", "compares a column"),
    ("SELECT count(*) FROM logs a JOIN |logs b USING (site)", "HB513", "row-level privacy"),
    ("SELECT count(*) FROM logs a JOIN |sites s ON a.page = s.city", "HB513", "cannot duplicate rows"),
    ("SELECT count(*) FROM logs a JOIN |sites s ON a.site = s.site + 0", "HB513", "cannot duplicate rows"),
    (
        "SELECT count(*) FROM people p LEFT JOIN visits v ON p.person = v.person WHERE |v.person > 3",
        "HB516",
        "may be missing",
    ),
    ("SELECT count(*) FROM (SELECT |age FROM people UNION SELECT age FROM people)", "HB743", "different people"),
    ("SELECT count(*) FROM (SELECT |x FROM logs UNION ALL SELECT x FROM logs)", "HB519", "cannot duplicate rows"),
    ("SELECT count(*) FROM (SELECT |site FROM people UNION ALL SELECT site FROM sites)", "HB519", "public"),
    ("SELECT count(*) FROM (SELECT |site FROM people UNION ALL SELECT site FROM doctors)", "HB519", "same people"),
    ("SELECT count(*) FROM (SELECT |age FROM people UNION ALL SELECT age, year FROM people)", "HB519", "numbers"),
    ("SELECT count(*) FROM (SELECT |age FROM people UNION ALL SELECT health FROM people)", "HB519", "different types"),
    ("SELECT |age FROM people UNION ALL SELECT visits.cost FROM visits", "HB519", "outermost"),
    ("SELECT count(*) FROM |sites", "HB520", "only public tables"),
    # the unit
    ("SELECT count(*) FROM people WHERE |person = 125024", "HB516", "privacy ID column"),
    ("SELECT sum(|person) FROM people", "HB516", "privacy ID column"),
    ("SELECT count(*) FROM people GROUP BY |person % 10", "HB516", "privacy ID column"),
    # aggregates
    ("SELECT max(|avg(age)) FROM people", "HB512", "not allowed in"),
    ("SELECT count(*) FROM people WHERE |count(*) > 3", "HB512", "not allowed in"),
    ("SELECT count(*) FROM people GROUP BY |count(*)", "HB512", "not allowed in"),
    ("SELECT |median(DISTINCT age) FROM people", "HB512", "DISTINCT"),
    ("SELECT |count(DISTINCT person, year) FROM people", "HB512", "a combination"),
    ("SELECT |quantile_cont(age, 1.5) FROM people", "HB512", "level"),
    ("SELECT |quantile_cont(age, year) FROM people", "HB512", "level"),
    ("SELECT 1 + |quantile_cont(age, [0.1, 0.2]) FROM people", "HB512", "level"),
    ("SELECT |lower(health) FILTER (WHERE age > 3), count(*) FROM people", "HB512", "FILTER"),
    ("SELECT |sum(health) FROM people", "HB508", "takes numbers"),
    ("SELECT |sum(spending) FROM people", "HB515", "needs bounds"),
    ("SELECT |avg(ln(age)) FROM people", "HB515", "needs bounds"),
    ("SELECT |avg(1 / age) FROM people", "HB515", "needs bounds"),
    ("SELECT |avg(n) FROM (SELECT person, count(*) n FROM people GROUP BY person)", "HB515", "needs bounds"),
    ("SELECT |mode(income) FROM people", "HB515", "list of values"),
    (
        "SELECT avg(m) FROM (SELECT person, |median(age) m FROM people GROUP BY person)",
        "HB512",
        "groups by the privacy ID",
    ),
    ("SELECT avg(m) FROM (SELECT person, |sum(spending) m FROM people GROUP BY person)", "HB515", "needs bounds"),
    ("SELECT count(*) FROM people GROUP BY ROLLUP(|health), ROLLUP(health)", "HB503", "twice"),
    ("SELECT count(*) FROM people GROUP BY CUBE(|year, age, health, site, female, income, spending)", "HB518", "CUBE"),
    ("SELECT count(*) FROM (SELECT person FROM people GROUP BY ROLLUP(|person))", "HB503", "outermost"),
    # kinds and constants
    ("SELECT count(*) FROM people WHERE |age", "HB508", "must be boolean"),
    ("SELECT count(*) FROM people WHERE |age = 'x'", "HB508", "cannot be applied"),
    ("SELECT count(*) FROM people WHERE |health > age", "HB508", "cannot be applied"),
    ("SELECT count(*) FROM people WHERE |age > 'old'", "HB508", "cannot be applied"),
    ("SELECT count(*) FROM people WHERE (|age, year) IN ((1, 2, 3))", "HB508", "different lengths"),
    ("SELECT count(*) FROM people WHERE |age = NULL", "HB508", "NULL"),
    ("SELECT count(*) FROM people WHERE |age IN (NULL)", "HB508", "NULL"),
    ("SELECT count(*) FROM people WHERE |age IN (year, 3)", "HB508", "must be a constant"),
    ("SELECT count(*) FROM people WHERE |day = '2020-02-30'", "HB508", "not a valid date"),
    ("SELECT count(*) FROM people WHERE |health LIKE notes", "HB506", ""),
    ("SELECT count(*) FROM people WHERE |health LIKE health", "HB508", "must be a constant"),
    ("SELECT count(*) FROM people WHERE |health LIKE '%a%b%c%d%e%f%g%h%i%'", "HB508", "at most 8"),
    ("SELECT count(*) FROM people WHERE |health LIKE 'a\\%'", "HB508", "backslash"),
    ("SELECT count(*) FROM people WHERE |health ILIKE 'É%'", "HB508", "ASCII"),
    ("SELECT count(*) FROM people WHERE age = |9007199254740993", "HB508", "exactly as a double"),
    ("SELECT count(*) FROM people WHERE income > |1e400", "HB508", "too large"),
    ("SELECT count(*) FROM people WHERE age = |" + "9" * 50, "HB508", "too many digits"),
    ("SELECT count(*) FROM people WHERE |day + INTERVAL 300 YEAR > day", "HB508", "200 years"),
    ("SELECT count(*) FROM people WHERE |day + income * INTERVAL 1 DAY > day", "HB508", "whole number"),
    ("SELECT count(|substr(health, -1)) FROM people", "HB508", "starts at 1"),
    ("SELECT count(substr(health, |9223372036854775807)) FROM people", "HB508", ""),
    ("SELECT count(|round(income, 400)) FROM people", "HB508", "15 places"),
    ("SELECT count(|date_trunc('millennium', day)) FROM people", "HB504", "unit of time"),
    ("SELECT count(extract(century FROM |day)) FROM people", "HB504", "date part"),
    ("SELECT count(*) FROM people ORDER BY |'x'", "HB508", "no effect"),
    ("SELECT count(*) FROM people ORDER BY |7", "HB506", "no item"),
    ("SELECT count(*) FROM people WHERE |age = ?", "HB509", "has no value"),
    ("SELECT count(*) FROM people WHERE |age = $2", "HB509", "has no value"),
]


def refusal(tables: Tables, text: str, **options: object) -> QueryError:
    with pytest.raises(QueryError) as caught:
        bind(text, tables=tables, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(("marked", "code", "reason"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_a_refusal_says_what_where_why_and_what_instead(clinic: Tables, marked: str, code: str, reason: str) -> None:
    error = refusal(clinic, marked.replace("|", ""))
    assert (error.code, reason in error.message) == (code, True), str(error)
    assert error.position is not None
    assert error.remedy
    assert "Nothing was run or charged." in str(error)
    assert len(str(error)) < 900


@pytest.mark.parametrize(
    ("marked", "code"),
    [(text, code) for text, code, _ in REFUSED if "||" not in text],
    ids=[text for text, _, _ in REFUSED],
)
def test_the_place_is_the_one_meant(clinic: Tables, marked: str, code: str) -> None:
    """A line break in place of the bar moves the position to the second line."""
    error = refusal(clinic, marked.replace("|", "\n"))
    assert error.code == code
    assert error.position is not None
    assert error.position[0] == 2, f"{marked}: {error.position}"


def test_hidden_columns_are_as_if_they_did_not_exist(clinic: Tables) -> None:
    hidden, absent = (refusal(clinic, f"SELECT count({name}) FROM people") for name in ("notes", "nates"))
    assert hidden.message.replace("notes", "nates") == absent.message
    assert hidden.remedy == absent.remedy
    assert "notes" not in hidden.remedy


def test_words_of_the_query_are_quoted_in_bounded_length(clinic: Tables) -> None:
    assert len(str(refusal(clinic, f'SELECT count("{"x" * 5000}") FROM people'))) < 900


def test_parameters_must_fit(clinic: Tables) -> None:
    text = "SELECT count(*) FROM people WHERE health = ?"
    for value in (None, 1.5, b"x", "a\0b", "\ud800", "x" * 20_000, [1], Fraction(10) ** 301, object()):
        assert refusal(clinic, text, parameters=[value]).code == "HB509"
    assert refusal(clinic, text, parameters=["a", "b"]).code == "HB509"
    both = "SELECT count(*) FROM people WHERE health = ? AND health = $1"
    assert refusal(clinic, both, parameters=["a", "b"]).code == "HB509"
    assert refusal(clinic, text.replace("?", "$1") + " AND age > $3", parameters=["a", 1, 2]).code == "HB509"


def test_tables_of_one_entity_under_different_relations_do_not_meet(clinic: Tables) -> None:
    tables = {**clinic, "visits": replace(clinic["visits"], relation=Relation.REPLACE)}
    error = refusal(tables, "SELECT count(*) FROM people JOIN visits USING (person)")
    assert (error.code, "relations" in error.message) == ("HB513", True)


def test_tables_meet_on_the_entity_and_not_on_the_name(clinic: Tables) -> None:
    """Columns of equal names may belong to different entities, and columns of different names to one entity."""
    other = replace(clinic["visits"], unit=PrivacyUnit("person", entity="customer"))
    text = "SELECT count(*) FROM people p JOIN visits v ON p.person = v.person"
    assert refusal({**clinic, "visits": other}, text).code == "HB513"
    one = replace(clinic["people"], unit=PrivacyUnit("person", entity="customer"))
    assert bind(text, tables={**clinic, "visits": other, "people": one}).aggregates


def test_units_of_different_kinds_do_not_meet(clinic: Tables) -> None:
    """Comparing a number with a text would cast every text, which could fail."""
    columns = tuple(replace(c, kind=Kind.TEXT) if c.name == "person" else c for c in clinic["visits"].columns)
    tables = {**clinic, "visits": replace(clinic["visits"], columns=columns)}
    assert refusal(tables, "SELECT count(*) FROM people JOIN visits USING (person)").code == "HB513"


def test_expressions_that_grow_without_end_are_refused(clinic: Tables) -> None:
    """Each WITH doubles the text of the one before: thirty of them would exhaust memory."""
    parts = ["c0 AS (SELECT health AS x FROM people)"]
    parts += [f"c{i} AS (SELECT x || x AS x FROM c{i - 1})" for i in range(1, 30)]
    error = refusal(clinic, f"WITH {', '.join(parts)} SELECT count(x) FROM c29")
    assert (error.code, "too large" in error.message) == ("HB518", True)


def test_guards_that_double_the_text_are_refused_before_it_is_written(clinic: Tables) -> None:
    nested = "spending"
    for _ in range(20):
        nested = f"sqrt({nested})"
    assert refusal(clinic, f"SELECT count({nested}) FROM people").code == "HB518"


def test_queries_that_read_too_many_tables_are_refused(clinic: Tables) -> None:
    parts = ["c0 AS (SELECT person, age FROM people)"]
    parts += [f"c{i} AS (SELECT a.person, a.age FROM c{i - 1} a JOIN c{i - 1} b USING (person))" for i in range(1, 8)]
    assert refusal(clinic, f"WITH {', '.join(parts)} SELECT count(*) FROM c7").code == "HB518"


def test_long_lists_have_a_limit(clinic: Tables) -> None:
    for count, fine in ((1_000, True), (1_001, False)):
        text = f"SELECT count(*) FROM people WHERE age IN ({', '.join(map(str, range(count)))})"
        if fine:
            assert bind(text, tables=clinic).aggregates
        else:
            assert refusal(clinic, text).code == "HB508"


def test_long_chains_of_conditions_are_read(clinic: Tables) -> None:
    """Chains of AND and OR are flat; chains of arithmetic are deep and therefore limited."""
    text = "SELECT count(*) FROM people WHERE " + " OR ".join(f"age = {n}" for n in range(1_000))
    assert bind(text, tables=clinic).aggregates
    deep = "SELECT count(*) FROM people WHERE age > " + " + ".join(["age"] * 500)
    assert refusal(clinic, deep).code == "HB500"


def test_an_unknown_column_is_answered_with_all_columns_but_the_hidden_ones(clinic: Tables) -> None:
    people = clinic["people"]
    many = tuple(replace(people.columns[1], name=f"measurement_{place:02}") for place in range(40))
    wide = {**clinic, "people": replace(people, columns=(*people.columns, *many))}
    remedy = refusal(wide, "SELECT count(nosuch) FROM people").remedy
    listed = remedy.removeprefix("Columns of people: ").removesuffix(".").split(", ")
    assert listed == [column.name for column in (*people.columns, *many) if not column.hidden]
    assert any(column.hidden for column in people.columns)
