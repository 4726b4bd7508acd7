"""Queries that are refused: HB500 to HB575, and spellings of other dialects: HB746 to HB752."""

from tests.project.error_examples.world import Example, python, sh, sql

EXAMPLES: dict[str, Example] = {
    "HB500": sql(""),
    "HB501": sql("SELECT COUNT(*) FROM visits WHERE age >"),
    "HB502": sql("DELETE FROM visits"),
    "HB503": sql("WITH RECURSIVE v AS (SELECT age FROM visits) SELECT COUNT(*) FROM v"),
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
    "HB514": sql(
        "SELECT AVG(n) FROM visits JOIN (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) USING (region)"
    ),
    "HB515": sql("SELECT AVG(fee) FROM visits"),
    "HB516": sql("SELECT COUNT(*) FROM visits WHERE patient = 17"),
    "HB517": sql("SELECT AVG(cost) FROM (SELECT cost FROM visits ORDER BY cost LIMIT 10)"),
    "HB518": sql("SELECT COUNT(*) FROM visits GROUP BY CUBE (region, age, cost, fee, day, ward, age + 1)"),
    "HB519": sql("SELECT cost FROM visits UNION ALL SELECT age FROM patients"),
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
    "HB599": python(
        'config = folder / "hubbub.yaml"\n'
        'rows = "source: visits.csv\\n    size: {rows: 100000000000}"\n'
        'engine = "engine: {memory: 1000, disk: 10000}\\n"\n'
        'config.write_text(engine + config.read_text().replace("source: visits.csv", rows))\n'
        'hubbub.open(config, analyst="ana").estimate("SELECT SUM(cost) FROM visits", epsilon="0.1")'
    ),
    "HB549": python(
        'columns = ", ".join(f"SUM(cost + {i}) AS s{i}" for i in range(8))\n'
        'h.estimate(f"SELECT {columns} FROM visits GROUP BY age, day, floor(cost / 10)", epsilon="0.1", delta=0)'
    ),
    "HB550": sql("SELECT COUNT(*) FROM patients JOIN visits USING (patient) GROUP BY age, day, floor(cost)"),
    "HB551": sql("SELECT ward, COUNT(*) FROM patients JOIN visits USING (patient) GROUP BY ward"),
    "HB553": sql("CALL ranges(table => 'calls', column => 'caller', noise => 'gaussian')"),
    "HB556": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon="0.1", rows=10)'),
    "HB557": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon="1e-9")'),
    "HB560": sql("SELECT age, day, MEDIAN(cost) FROM visits GROUP BY age, day, region"),
    "HB561": sql("SELECT QUANTILE_CONT(age, 0.12345) FROM visits"),
    "HB564": sql(
        "SELECT a.ward, a.n / b.n AS r FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)) AS a, "
        "(SELECT COUNT(*) AS n FROM visits) AS b"
    ),
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
    "HB746": python(
        'x = "cost"\nfor _ in range(20):\n    x = f"GREATEST({x}, 5)"\n'
        'h.estimate(f"SELECT COUNT(*) FROM visits WHERE {x} > 7", epsilon="0.1", dialect="bigquery")'
    ),
    "HB747": python(
        'h.estimate("SELECT COUNT(*) FROM visits WHERE DATEPART(week, day) = 3", epsilon="0.1", dialect="tsql")'
    ),
    "HB770": python('h.query("SELECT regoin FROM regions")'),
    "HB579": python('h.query("SELECT CAST(region AS INTEGER) AS n FROM regions")'),
    "HB738": sql(
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient "
        "AND w.day > v.day AND w.cost > v.cost)"
    ),
    "HB739": sql("SELECT COUNT(*) FROM patients p WHERE (SELECT cost FROM visits v WHERE v.patient = p.patient) > 100"),
    "HB740": sql("SELECT COUNT(*) FROM visits v WHERE cost > (SELECT AVG(cost) FROM visits w WHERE w.ward = v.ward)"),
    "HB785": sql("SELECT COUNT(*) FROM visits WHERE region = (SELECT MODE(region) FROM visits)"),
    "HB786": sql(
        "SELECT COUNT(*) FROM (SELECT patient, SUM(cost) > (SELECT AVG(cost) FROM visits) AS dear FROM visits "
        "GROUP BY patient) AS t WHERE dear"
    ),
    "HB741": sql("SELECT AVG(d) FROM (SELECT patient, cost - LAG(cost) OVER (ORDER BY day) AS d FROM visits)"),
    "HB742": sql("SELECT AVG(d) FROM (SELECT patient, LAG(cost) OVER (PARTITION BY patient) AS d FROM visits)"),
    "HB743": sql("SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM visits WHERE age > 60)"),
    "HB754": sql(
        " UNION ALL ".join(f"SELECT COUNT(*) FROM visits WHERE age > {age}" for age in range(20)),
    ),
    "HB755": python(
        '(folder / "codes.csv").write_text("region\\n" + "\\n".join(f"r{i}" for i in range(10_001)))\n'
        'text = (folder / "hubbub.yaml").read_text()\n'
        'text = text.replace("datasets:", "datasets:\\n  codes: {source: codes.csv, public: true}", 1)\n'
        '(folder / "hubbub.yaml").write_text(text)\n'
        'counts = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"\n'
        'sql = f"SELECT n FROM codes JOIN ({counts}) AS counts USING (region)"\n'
        'hubbub.open(folder / "hubbub.yaml", analyst="ana").estimate(sql, epsilon="0.1")'
    ),
    "HB756": sql("SELECT AVG(total) FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region)"),
    "HB757": python(
        'h.estimate("SELECT COUNT(*) / (SELECT COUNT(*) FROM visits) AS share FROM visits WHERE age > 60",'
        ' epsilon="0.1", intervals="joint")'
    ),
    "HB758": python('h.query("SELECT n FROM release(visits)")'),
    "HB790": sql("CALL batch(queries => ['CALL stream(table => ''visits'')'])"),
    "HB840": sql("CALL batch(queries => ['SELECT COUNT(*) FROM visits'], weights => [1, 2])"),
    "HB842": sh("hubbub study plan study.yaml"),
    "HB843": python(
        "(folder / 'study.yaml').write_text('title: Visits\\nepsilon: 0.1\\nparts:\\n  all: {sequel: SELECT 1}\\n')\n"
        "h.study('study.yaml')"
    ),
    "HB844": python(
        "part = 'all: {sql: SELECT COUNT(*) AS n FROM visits}'\n"
        "(folder / 'study.yaml').write_text(f'title: Visits\\nepsilon: 0.1\\nparts: {{{part}}}')\n"
        "h.study('study.yaml').run()['every']"
    ),
    "HB845": sh("hubbub study run study.yaml --to report.docx"),
    "HB791": python(
        "path = folder / 'hubbub.yaml'\n"
        "path.write_text(path.read_text().replace('version: 1', 'version: 1\\nmax_cells: 3', 1))\n"
        "counts = ['SELECT region, COUNT(*) AS n FROM visits GROUP BY region', "
        "'SELECT region, COUNT(*) AS n FROM visits WHERE age > 60 GROUP BY region']\n"
        "with hubbub.open(path, analyst='ana').batch(epsilon='0.1') as b:\n"
        "    for sql in counts:\n"
        "        b.query(sql)"
    ),
    "HB793": python("batch = h.batch(epsilon='0.1')\nbatch.query('SELECT COUNT(*) FROM visits').result()"),
    "HB781": sql('SELECT region, COUNT(*) AS "$row", SUM(COUNT(*)) OVER () AS total FROM visits GROUP BY region'),
}
