"""What a refusal tells people to write is accepted: each row is a query, its code, and the rewriting of its remedy."""

from collections.abc import Iterator

import pytest
from tests.project.error_examples.world import WORLD

import hubbub
from hubbub.curator.session import Session
from hubbub.errors import QueryError

#: A refused query; its code; what its remedy says, with the names of the refused query's tables; what is then accepted.
REWRITINGS = (
    (
        "SELECT SUM(f) FROM (SELECT v.patient, w.fee AS f FROM visits v ASOF JOIN visits w ON v.patient = w.patient "
        "AND v.day >= w.day)",
        "HB503",
        "SELECT a.id, a.day, ARG_MAX(b.x, b.day) AS x FROM a JOIN b ON a.id = b.id AND b.day <= a.day "
        "GROUP BY a.id, a.day",
        "SELECT COUNT(x) FROM (SELECT a.patient, a.day, ARG_MAX(b.cost, b.day) AS x FROM visits a JOIN visits b ON "
        "a.patient = b.patient AND b.day <= a.day GROUP BY a.patient, a.day)",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT patient, STRING_AGG(ward, ',') AS w FROM visits GROUP BY patient) WHERE w = 'A3'",
        "HB504",
        "SELECT id, COUNT(*) FILTER (WHERE code = 'A') AS n FROM visits GROUP BY id",
        "SELECT COUNT(*) FROM (SELECT patient, COUNT(*) FILTER (WHERE ward = 'A3') AS n FROM visits GROUP BY patient) "
        "WHERE n > 0",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT patient, LIST(ward) AS w FROM visits GROUP BY patient)",
        "HB503",
        "EXISTS (SELECT 1 FROM …)",
        "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient = p.patient AND "
        "ward = 'A3')",
    ),
    (
        "SELECT AVG(AGE(day, DATE '2020-01-01')) FROM visits",
        "HB504",
        "MONTHS_BETWEEN(a, b)",
        "SELECT AVG(MONTHS_BETWEEN(day, DATE '2020-01-01')) FROM visits",
    ),
    (
        "SELECT AVG(AGE(day, DATE '2020-01-01')) FROM visits",
        "HB504",
        "date_diff('day', b, a)",
        "SELECT AVG(date_diff('day', DATE '2020-01-01', day)) FROM visits",
    ),
    (
        "SELECT COUNT(DISTINCT patient, region) FROM visits",
        "HB512",
        "SELECT COUNT(*) FROM (SELECT DISTINCT id, year FROM visits)",
        "SELECT COUNT(*) FROM (SELECT DISTINCT patient, region FROM visits)",
    ),
    (
        "SELECT COUNT(*) FROM visits v FULL JOIN regions r ON v.region = r.region",
        "HB513",
        "FROM visits v LEFT JOIN sites s ON v.site = s.site",
        "SELECT COUNT(*) FROM visits v LEFT JOIN regions r ON v.region = r.region",
    ),
    (
        "SELECT COUNT(*) FROM visits v FULL JOIN regions r ON v.region = r.region",
        "HB513",
        "SELECT s.site, COUNT(v.cost) FROM sites s LEFT JOIN visits v ON v.site = s.site GROUP BY s.site",
        "SELECT r.region, COUNT(v.cost) FROM regions r LEFT JOIN visits v ON v.region = r.region GROUP BY r.region",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE region IN (SELECT region FROM visits GROUP BY region)",
        "HB514",
        "WHERE k IN (SELECT k FROM … GROUP BY k HAVING COUNT(*) > 50)",
        "SELECT COUNT(*) FROM visits WHERE region IN (SELECT region FROM visits GROUP BY region HAVING COUNT(*) > 50)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward)",
        "HB514",
        "aggregate in the outermost query",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    ),
    (
        "SELECT a.ward, a.n / b.n AS r FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)) AS a, "
        "(SELECT COUNT(*) AS n FROM visits) AS b",
        "HB564",
        "GROUP BY ward and",
        "SELECT a.ward, a.n / b.n AS r FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS a, "
        "(SELECT COUNT(*) AS n FROM visits) AS b",
    ),
    (
        "SELECT a.ward, a.n / b.n AS r FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)) AS a, "
        "(SELECT COUNT(*) AS n FROM visits) AS b",
        "HB564",
        "the grouping sets as the outermost query",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)",
    ),
    (
        "SELECT AVG(s) FROM (SELECT patient, SUM(cost) OVER (PARTITION BY patient ORDER BY CAST(day AS TIMESTAMP) "
        "RANGE INTERVAL 30 DAY PRECEDING) AS s FROM visits)",
        "HB742",
        "ORDER BY CAST(t AS DATE) RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW",
        "SELECT AVG(LEAST(s, 900)) FROM (SELECT patient, SUM(cost) OVER (PARTITION BY patient ORDER BY CAST(day AS "
        "DATE) RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW) AS s FROM visits)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE ward SIMILAR TO 'A%'",
        "HB747",
        "REGEXP_LIKE(x, '^(a|b)[0-9]+$')",
        "SELECT COUNT(*) FROM visits WHERE REGEXP_LIKE(ward, '^(a|b)[0-9]+$')",
    ),
    (
        "WITH RECURSIVE v AS (SELECT age FROM visits) SELECT COUNT(*) FROM v",
        "HB503",
        "FROM generate_series(0, 23) AS t(hour)",
        "SELECT hour, COUNT(*) FROM visits JOIN generate_series(0, 23) AS t(hour) ON age = hour GROUP BY hour",
    ),
    (
        "SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT w.day FROM visits w WHERE w.patient = v.patient "
        "AND w.day < v.day ORDER BY w.day DESC LIMIT 1) AS f",
        "HB503",
        "LATERAL (SELECT v.day FROM visits v WHERE v.id = p.id ORDER BY v.day LIMIT 1)",
        "SELECT COUNT(day) FROM patients p CROSS JOIN LATERAL (SELECT v.day FROM visits v WHERE v.patient = p.patient "
        "ORDER BY v.day LIMIT 1) AS f",
    ),
    (
        "SELECT AVG(d) FROM (SELECT patient, LAG(cost) OVER (PARTITION BY patient) AS d FROM visits)",
        "HB742",
        "LAG(x) OVER (PARTITION BY id ORDER BY day)",
        "SELECT AVG(d) FROM (SELECT patient, LAG(cost) OVER (PARTITION BY patient ORDER BY day) AS d FROM visits)",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM patients p WHERE p.sex = v.ward)",
        "HB740",
        "WHERE b.patient = a.patient",
        "SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM patients p WHERE p.patient = v.patient)",
    ),
    (
        'SELECT COUNT(*) FROM visits WHERE ward = "A3"',
        "HB506",
        "Text is written in single quotes",
        "SELECT COUNT(*) FROM visits WHERE ward = 'A3'",
    ),
    (
        "SELECT AVG(fee) FROM visits",
        "HB515",
        "GREATEST(0, LEAST(x, 100))",
        "SELECT AVG(GREATEST(0, LEAST(fee, 100))) FROM visits",
    ),
    (
        "SELECT AVG(fee) FROM visits",
        "HB515",
        "WHERE x BETWEEN 0 AND 100",
        "SELECT AVG(fee) FROM visits WHERE fee BETWEEN 0 AND 100",
    ),
    (
        "SELECT MEDIAN(CAST(ward AS DATE)) FROM visits",
        "HB515",
        "WHERE x BETWEEN DATE '2020-01-01' AND DATE '2024-12-31'",
        "SELECT MEDIAN(x) FROM (SELECT CAST(ward AS DATE) AS x FROM visits) "
        "WHERE x BETWEEN DATE '2020-01-01' AND DATE '2024-12-31'",
    ),
    (
        "SELECT AVG(day) FROM visits",
        "HB508",
        "DATE_DIFF('day', DATE '2024-01-01', x)",
        "SELECT AVG(DATE_DIFF('day', DATE '2024-01-01', day)) FROM visits "
        "WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'",
    ),
    (
        "SELECT region, ANY_VALUE(age) FROM visits GROUP BY region",
        "HB512",
        "MODE(x)",
        "SELECT region, MODE(age) FROM visits GROUP BY region",
    ),
    (
        "SELECT cost FROM visits UNION ALL SELECT cost FROM visits",
        "HB519",
        "SELECT … FROM (… UNION ALL …)",
        "SELECT SUM(cost) FROM (SELECT cost FROM visits UNION ALL SELECT cost FROM visits)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3",
        "HB512",
        "subquery that groups by the privacy ID",
        "SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) WHERE n > 3",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE",
        "HB503",
        "Write the date",
        "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-03-01'",
    ),
    (
        "SELECT SUM(n) FROM visits v, UNNEST(v.ward) AS t(n)",
        "HB503",
        "`tags: {elements: 8}`",
        "SELECT COUNT(ward) FROM visits",
    ),
    (
        "SELECT COUNT(x - y) FROM (SELECT CAST(day AS TIMESTAMP) AS x, CAST(day AS TIMESTAMP) AS y FROM visits)",
        "HB508",
        "EXTRACT(EPOCH FROM a - b)",
        "SELECT COUNT(EXTRACT(EPOCH FROM x - y)) FROM (SELECT CAST(day AS TIMESTAMP) AS x, CAST(day AS TIMESTAMP) AS y "
        "FROM visits)",
    ),
    (
        "SELECT ENTROPY(region) FROM visits",
        "HB504",
        "SELECT -SUM(p * LN(p)) AS entropy FROM (SELECT COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS p FROM visits GROUP "
        "BY region)",
        "SELECT -SUM(p * LN(p)) AS entropy FROM (SELECT COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS p FROM visits GROUP "
        "BY region)",
    ),
    (
        "SELECT MAD(age) FROM visits",
        "HB504",
        "MEDIAN(ABS(x - 3))",
        "SELECT MEDIAN(ABS(age - 30)) FROM visits",
    ),
    (
        "SELECT SKEWNESS(age) FROM visits",
        "HB504",
        "AVG(GREATEST(-99, LEAST(99, POWER((x - 3) / 5, 3))))",
        "SELECT AVG(GREATEST(-99, LEAST(99, POWER((age - 30) / 20, 3)))) FROM visits",
    ),
    (
        "SELECT FIRST(region) FROM visits",
        "HB504",
        "Use MODE(x)",
        "SELECT MODE(region) FROM visits",
    ),
    (
        "SELECT APPROX_TOP_K(ward, 3) FROM visits",
        "HB504",
        "SELECT x, COUNT(*) AS n FROM … GROUP BY x ORDER BY n DESC LIMIT 3",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 3",
    ),
    (
        "SELECT FORMAT_DATE('%Y-%m', day) AS m, COUNT(*) FROM visits GROUP BY m",
        "HB504",
        "STRFTIME(d, '%Y-%m')",
        "SELECT STRFTIME(day, '%Y-%m') AS m, COUNT(*) FROM visits GROUP BY m",
    ),
    (
        "SELECT MODE(ward) FROM visits",
        "HB515",
        "SELECT x, COUNT(*) FROM … GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 1",
    ),
    (
        "SELECT region FROM regions WHERE region NOT IN (SELECT region FROM visits)",
        "HB514",
        "SELECT p.k, COUNT(t.x) AS n FROM public_table p LEFT JOIN private_table t ON t.k = p.k GROUP BY p.k HAVING "
        "COUNT(t.x) < 1",
        "SELECT p.region, COUNT(t.cost) AS n FROM regions p LEFT JOIN visits t ON t.region = p.region GROUP BY "
        "p.region HAVING COUNT(t.cost) < 1",
    ),
    (
        "SELECT q, COUNT(*) FROM (SELECT patient, NTILE(4) OVER (ORDER BY age) AS q FROM visits) GROUP BY q",
        "HB741",
        "QUANTILE_CONT(x, [0.25, 0.5, 0.75])",
        "SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) FROM visits",
    ),
    (
        "SELECT NTILE(4) OVER (ORDER BY age) AS q, COUNT(*) FROM visits GROUP BY region",
        "HB511",
        "use a subquery and PARTITION BY the privacy ID",
        "SELECT COUNT(*) FROM (SELECT patient, NTILE(4) OVER (PARTITION BY patient ORDER BY age) AS q FROM visits) "
        "WHERE q = 1",
    ),
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("clinic")
    for name, text in WORLD.items():
        (folder / name).write_text(text)
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


@pytest.mark.parametrize(("refused", "code", "says", "accepted"), REWRITINGS)
def test_the_rewriting_of_a_refusal_is_accepted(
    session: Session, refused: str, code: str, says: str, accepted: str
) -> None:
    with pytest.raises(QueryError) as caught:
        session.estimate(refused, epsilon="0.1", delta="1e-7")
    assert caught.value.code == code, str(caught.value)
    assert says in " ".join(caught.value.remedy.split()), caught.value.remedy
    session.estimate(accepted, epsilon="0.1", delta="1e-7")
