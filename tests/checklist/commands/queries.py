"""Counts, sums, averages and sequences of queries."""

from tests.checklist.record import Figure, Place, Row

SENSITIVITY = r"L1 sensitivity (\d+)"
SCALE = r"Laplace noise of scale ([\d.]+)"

RECORDS = (
    Row(
        number=33,
        places=(Place("slides", "applying", "counting query"), Place("2011", "achieving", "logical AND")),
        says="A count has sensitivity 1, also of those who are over 50 and smoke.",
        lives="`hubbub plan`",
        command="hubbub plan \"SELECT COUNT(*) AS n FROM health_rows WHERE age > 50 AND health = 'poor'\" -e 1",
        figures=(
            Figure("L1 sensitivity", SENSITIVITY, "1", "one row, one count"),
            Figure("scale", SCALE, "1", "1/ε"),
        ),
    ),
    Row(
        number=34,
        places=(Place("slides", "applying", "vectors"),),
        says="A vector of d queries needs Lap(d·Δ/ε) in each, or an uneven split of ε.",
        lives="`hubbub plan`, `--weight`",
        command="""
hubbub plan "SELECT SUM(a) AS a, SUM(b) AS b, SUM(c) AS c FROM bits" -e 1
hubbub plan "SELECT SUM(a) AS a, SUM(b) AS b, SUM(c) AS c FROM bits" -e 1 --weight a=2
""",
        figures=(
            Figure("even", f"sum of a .*{SCALE}", "3", "d/ε = 3"),
            Figure("uneven, first", f"sum of a .*ε=0.5: {SCALE}", "2", "ε split as ½, ¼, ¼"),
            Figure("uneven, others", f"sum of c .*ε=0.25: {SCALE}", "4", "ε split as ½, ¼, ¼"),
        ),
    ),
    Row(
        number=35,
        places=(Place("slides", "sensitivity", "averages"),),
        says="The average of a bit has sensitivity 1/|x| where the number of rows is public.",
        lives="`relation: replace` with `unit: row`: AVG divides a noisy sum by the public number of rows",
        command="""
hubbub plan "SELECT AVG(COALESCE(female, 0)) AS share FROM health_replace" -e 1
hubbub query "SELECT AVG(COALESCE(female, 0)) AS share FROM health_replace" -e 1
""",
        figures=(
            Figure("L1 sensitivity of the sum", f"sum of .*{SENSITIVITY}", "1", "1/|x| of the average"),
            Figure("scale of the sum", SCALE, "1", "all of ε = 1: the count has no noise"),
        ),
    ),
    Row(
        number=36,
        places=(Place("2011", "achieving", "query sequences"),),
        says="A sequence of queries costs the sum of its sensitivities; a pair has standard deviation 2√2/ε each.",
        lives="`hubbub budget`, `hubbub explain --dataset`; [0003](decisions/0003-accounting.md)",
        command="""
hubbub plan "SELECT COUNT(*) AS n, SUM(a) AS s FROM bits" -e 1
python -c "
import hubbub
with hubbub.open() as h:
    for k in range(100):
        h.query(f'SELECT COUNT(*) AS n FROM health_rows WHERE income < {k}', epsilon='0.1')"
hubbub explain --dataset health_rows
""",
        figures=(
            Figure("scale of each of a pair", SCALE, "2", "2/ε, so that the standard deviation is 2√2/ε"),
            Figure(
                "ε of 100 answers at 0.1, δ = 1e-5",
                r"total privacy cost is ε = ([\d.]+)",
                (4.2203, 5.852),
                "at least 4.2203, exact for a fixed list; at most 5.852 by advanced composition; the sum is 10",
            ),
        ),
    ),
    Row(
        number=37,
        places=(Place("2011", "achieving", "histogram queries"), Place("slides", "applying", "histograms")),
        says="A histogram or contingency table has sensitivity 1, so each cell gets Lap(1/ε).",
        lives="`GROUP BY`; `hubbub call tabulate`; [analyses.md](analyses.md)",
        command="""
hubbub call tabulate table=bits columns=a,b -e 1 --plan
hubbub plan "SELECT income // 3000 AS bin, COUNT(*) AS n FROM health_rows GROUP BY bin" -e 1
""",
        figures=(
            Figure("scale of a 4-cell table", SCALE, "1", "1/ε, so that the root mean squared error is √2/ε"),
            Figure("bins of income", r"^Answer +(\d+) groups", "11", "0 to 30,000 in steps of 3,000"),
            Figure("scale of 11 bins", f"rows: .*{SCALE}", "1", "1/ε, not 11/ε"),
        ),
    ),
    Row(
        number=38,
        places=(Place("2006", "3.2", "disjoint analyses"),),
        says="Analyses of disjoint parts cost twice their maximum if rows are replaced, and their maximum otherwise.",
        lives="`GROUP BY`; `hubbub plan`",
        command="""
hubbub plan "SELECT site, SUM(visits) AS n FROM health_replace GROUP BY site" -e 1
hubbub plan "SELECT site, SUM(visits) AS n FROM health_rows GROUP BY site" -e 1
""",
        figures=(
            Figure("six sums of 0 to 80, replace", f"(?s)scan health_replace.*?{SENSITIVITY}", "160", "2·max S(f)"),
            Figure("six sums of 0 to 80, add or remove", f"(?s)scan health_rows.*?{SENSITIVITY}", "80", "max S(f)"),
        ),
    ),
    Row(
        number=68,
        places=(Place("2011", "how", "√n"),),
        says="Sampling error, about √n, is the yardstick of noise.",
        lives="every answer of `hubbub query`",
        command="""
hubbub query "SELECT COUNT(*) AS n FROM health_rows WHERE female = 1" -e 1
hubbub query "SELECT AVG(age) AS age FROM health_rows" -e 1
""",
        figures=(
            Figure(
                "sampling error of a count", r"n: the noise is .* sampling error of ±([\d,]+)", "200", "1.96·√10,439"
            ),
            Figure("noise beside it", r"n: the noise is ([\d.]+) times", "0.015", "±3 against ±200"),
            Figure(
                "of an average",
                r"sampling error, which is at most ±([\d.]+)",
                "0.44",
                "1.96·√(25.2·39.8/n): all ages 0 or 65",
            ),
        ),
    ),
    Row(
        number=95,
        places=(Place("2006", "2", "public n"),),
        says="If rows are replaced, the number of rows is public.",
        lives="`COUNT(*)` and `AVG` with `unit: row`, `relation: replace`; `hubbub check`, page of the dataset",
        command="""
hubbub query "SELECT COUNT(*) AS n FROM health_replace"
hubbub check | sed -n '/^health_replace/,/public$/p'
""",
        figures=(
            Figure("rows", r"^ *([\d,]+)$", "20,190", "the rows of health.csv"),
            Figure("cost", r"Cost +(free)", "free", "no charge, no noise"),
        ),
    ),
    Row(
        number=100,
        places=(Place("slides", "accuracy", "simultaneous"),),
        says="The accuracy of a whole answer is that of its largest error.",
        lives='`--intervals joint`, `intervals="joint"`; page of a release',
        command="""
hubbub query "SELECT site, COUNT(*) AS n FROM health_rows GROUP BY site" -e 0.1 --intervals joint
""",
        figures=(
            Figure("± of each of 6 counts", r"±(\d+)", "48", "ln(6/0.05)/0.1 = 47.9"),
            Figure("all at once", r"answers \(([\d.]+)%", "95.10", "(1 − 0.05/6)⁶"),
        ),
    ),
)
