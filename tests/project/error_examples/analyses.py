"""Calls of analyses that are refused: HB540 to HB548, HB576, HB580 to HB598 and HB670 to HB683."""

from tests.project.error_examples.world import Example, python, sql

EXAMPLES: dict[str, Example] = {
    "HB540": sql("CALL kmeans(table => 'visits', columns => [], k => 3)"),
    "HB541": sql("CALL kmeans(table => 'visits', columns => ['weight'], k => 3)"),
    "HB542": sql("CALL kmeans(table => 'visits', columns => ['fee'], k => 3)"),
    "HB543": sql("CALL decision_tree(table => 'visits', columns => ['age'], target => 'ward')"),
    "HB544": python(
        "h.estimate(\"CALL kmeans(table => 'visits', columns => ['age', 'cost'], k => 3)\", epsilon=\"1e-9\")"
    ),
    "HB545": sql(
        "CALL hyperplane(table => 'visits', columns => ['age', 'cost'], target => 'region', bins => 256, slopes => 16)"
    ),
    "HB546": sql("CALL kmeans(table => 'visits', columns => ['age'], k => 3, method => 'lloyd')"),
    "HB547": sql("CALL linear_regression(table => 'visits', columns => ['age', 'cost'], target => 'cost')"),
    "HB548": sql(
        "CALL logistic_regression(table => 'visits', columns => ['age'], target => 'region', positive => 'East')"
    ),
    "HB576": python(
        "path = folder / 'hubbub.yaml'\n"
        "path.write_text(path.read_text().replace('groups: 2, rows: 5', 'rows: auto'))\n"
        "other = hubbub.open(path, analyst='ana')\n"
        "other.estimate(\"CALL moments(table => 'visits', columns => ['age'])\", epsilon='0.1')"
    ),
    "HB580": sql("CALL kmeans(table => 'regions', columns => ['population'], k => 3)"),
    "HB581": sql("CALL kmeans(table => 'visits', columns => ['age'], k = 3)"),
    "HB582": sql("CALL k_means(table => 'visits', columns => ['age'], k => 3)"),
    "HB583": sql("CALL kmeans(table => 'visits', columns => ['age'], k => 'three')"),
    "HB587": sql("CALL tabulate(table => 'visits', columns => ['region', 'region'])"),
    "HB588": sql("CALL tabulate(table => 'visits', columns => ['ward'])"),
    "HB589": sql("CALL ranges(table => 'visits', column => {'column': 'age', 'missing': TRUE})"),
    "HB590": sql("CALL geography(table => 'visits', column => 'region', places => {'Country': ['North']})"),
    "HB592": sql("CALL synthetic(table => 'visits', columns => [{'column': 'region', 'quantiles': 4}])"),
    "HB594": sql("CALL small_database(table => 'visits', columns => ['region', 'age'], size => 100)"),
    "HB595": sql("CALL min_cut(table => 'calls', ends => ['caller', 'minutes'])"),
    "HB596": sql("CALL min_cut(table => 'calls', ends => ['caller', 'callee'], weight => 'minutes', step => 100)"),
    "HB597": sql("CALL release(table => 'visits')"),
    "HB598": python("""from hubbub.analyses.functions.declared_sensitivity import Universe

h.release(
    lambda rows: rows["cost"].sum(),
    table="visits",
    columns=["cost"],
    sensitivity=1,
    bounds=(0, 100),
    epsilon="0.1",
    check=Universe({"cost": [0.0, 100.0]}, 3),
)"""),
    "HB670": sql("CALL choose(candidates => [18, 65], score => 'SELECT AVG(cost) FROM visits WHERE age = $1')"),
    "HB672": sql("CALL above_threshold(table => 'visits', name => 'My alarm', threshold => 100)"),
    "HB673": python(
        "h.above_threshold('visits', 'alarm', 100000, questions=1, epsilon='0.1')\n"
        "h.compare('visits', 'alarm', 'SELECT COUNT(*) FROM visits WHERE age > 60')\n"
        "h.compare('visits', 'alarm', 'SELECT COUNT(*) FROM visits WHERE age > 70')"
    ),
    "HB674": python(
        "h.above_threshold('visits', 'alarm', 100000, epsilon='0.1')\n"
        "h.compare('visits', 'alarm', 'SELECT COUNT(*) FROM visits WHERE age > 60')\n"
        "for secret in folder.glob('hubbub-ledger/thresholds/*.seed'):\n"
        "    secret.unlink()\n"
        "h.compare('visits', 'alarm', 'SELECT COUNT(*) FROM visits WHERE age > 70')"
    ),
    "HB675": python("h.compare('visits', 'alarm', 'SELECT COUNT(*) FROM visits')"),
    "HB676": python(
        "h.above_threshold('visits', 'alarm', 100, epsilon='0.1')\n"
        "h.above_threshold('visits', 'alarm', 200, epsilon='0.1')"
    ),
    "HB671": sql("CALL choose(candidates => ['North'], score => 'SELECT COUNT(*) FROM visits WHERE region = $1')"),
    "HB678": sql("CALL median(table => 'visits', column => 'cost', sensitivity => 'propose')"),
    "HB679": sql("CALL median(table => 'visits', column => 'region')"),
    "HB680": sql("CALL triangle_count(table => 'calls', ends => ['caller', 'callee'])"),
    "HB681": sql("CALL graph_distance(table => 'calls', ends => ['caller', 'callee'], property => 'non_expansive')"),
    "HB682": sql("CALL small_database(table => 'visits', columns => ['region'], predicates => ['age >= 65'])"),
    "HB683": sql("CALL small_database(table => 'visits', columns => ['region'], size => 5, accuracy => 0.2)"),
}
