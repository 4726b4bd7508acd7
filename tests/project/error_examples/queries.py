"""Queries that are refused: HB500 to HB575."""

from tests.project.error_examples.world import Example, python, sql

EXAMPLES: dict[str, Example] = {
    "HB500": sql(""),
    "HB501": sql("SELECT COUNT(*) FROM visits WHERE age >"),
    "HB502": sql("DELETE FROM visits"),
    "HB503": sql("SELECT DISTINCT region FROM visits"),
    "HB504": sql("SELECT AVG(random()) FROM visits"),
    "HB505": sql("SELECT COUNT(*) FROM vists"),
    "HB506": sql("SELECT AVG(weight) FROM visits"),
    "HB507": sql("SELECT AVG(age) AS a, AVG(cost) AS a FROM visits"),
    "HB508": sql("SELECT COUNT(*) FROM visits WHERE age = 'old'"),
    "HB509": python('h.estimate("SELECT COUNT(*) FROM visits WHERE age > ?", epsilon="0.1")'),
    "HB510": sql("SELECT age, cost FROM visits"),
    "HB511": sql("SELECT region, age, COUNT(*) FROM visits GROUP BY region"),
    "HB512": sql("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3"),
    "HB513": sql("SELECT COUNT(*) FROM visits v JOIN patients p ON v.region = p.sex"),
    "HB514": sql("SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"),
    "HB515": sql("SELECT AVG(fee) FROM visits"),
    "HB516": sql("SELECT COUNT(*) FROM visits WHERE patient = 17"),
    "HB517": sql("SELECT AVG(cost) FROM (SELECT cost FROM visits ORDER BY cost LIMIT 10)"),
    "HB518": sql("SELECT COUNT(*) FROM visits GROUP BY CUBE (region, age, cost, fee, day, ward, age + 1)"),
    "HB519": sql("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM patients"),
    "HB524": python(
        'joins = " ".join(f"JOIN visits v{i} USING (patient)" for i in range(12))\n'
        'h.estimate(f"SELECT COUNT(*) FROM visits {joins}", epsilon="0.1")'
    ),
    "HB526": python(
        'x = "fee"\nfor _ in range(14):\n    x = f"GREATEST(0.5, fee - {x})"\n'
        'h.estimate(f"SELECT COUNT(*) FROM visits WHERE {x} > 1", epsilon="0.1")'
    ),
    "HB527": python(
        'tests = " OR ".join(f"ward LIKE \'%{i}_%_%\'" for i in range(260))\n'
        'h.estimate(f"SELECT COUNT(*) FROM visits WHERE {tests}", epsilon="0.1")'
    ),
    "HB528": python(
        'x = " || ".join(["ward"] * 20)\nh.estimate(f"SELECT COUNT(*) FROM visits WHERE {x} = \'a\'", epsilon="0.1")'
    ),
    "HB549": python(
        'columns = ", ".join(f"AVG(cost + {i}) AS a{i}" for i in range(60))\n'
        'h.estimate(f"SELECT {columns} FROM visits GROUP BY age, day", epsilon="0.1")'
    ),
    "HB550": sql("SELECT COUNT(*) FROM patients JOIN visits USING (patient) GROUP BY age, day, floor(cost)"),
    "HB551": sql("SELECT ward, COUNT(*) FROM patients JOIN visits USING (patient) GROUP BY ward"),
    "HB553": sql("CALL ranges(table => 'calls', column => 'caller', noise => 'gaussian')"),
    "HB556": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon="0.1", rows=10)'),
    "HB557": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon="1e-9")'),
    "HB560": sql("SELECT age, day, MEDIAN(cost) FROM visits GROUP BY age, day, region"),
    "HB561": sql("SELECT QUANTILE_CONT(age, 0.12345) FROM visits"),
    "HB564": sql("SELECT ward, COUNT(*) FROM visits GROUP BY ROLLUP (ward)"),
    "HB565": sql("SELECT age, region FROM visits GROUP BY age, region, day ORDER BY COUNT(*) DESC LIMIT 10000"),
    "HB566": python('h.estimate("SELECT AVG(cost) FROM visits GROUP BY day", within="0.0000001")'),
    "HB567": python('h.estimate("SELECT MEDIAN(age) FROM visits", within=2)'),
    "HB568": sql(
        "SELECT COUNT(*) FROM visits a JOIN visits b USING (patient) JOIN visits c USING (patient) "
        "JOIN visits d USING (patient) JOIN visits e USING (patient) GROUP BY a.ward || b.ward"
    ),
    "HB569": sql("SELECT age, COUNT(*) FROM visits WHERE age > 500 GROUP BY age"),
    "HB572": sql("CALL mean_vector(table => 'visits', columns => ['age'], noise => 'euclidean')"),
    "HB577": python(
        "path = folder / 'hubbub.yaml'\n"
        "path.write_text(path.read_text().replace('bounds: [0, 1000]', 'bounds: auto'))\n"
        "other = hubbub.open(path, analyst='ana')\n"
        "other.estimate('SELECT ward, SUM(cost) FROM visits GROUP BY ward', epsilon='0.1')"
    ),
    "HB584": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon="0.1", intervals="all")'),
    "HB585": python('h.estimate("SELECT MEDIAN(age) FROM visits", epsilon="0.1", intervals="joint")'),
    "HB579": python('h.query("SELECT CAST(region AS INTEGER) AS n FROM regions")'),
}
