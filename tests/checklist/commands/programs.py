"""Private programs, synthetic data, streams and workloads."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=55,
        places=(Place("2011", "programs"),),
        says="Noisy sums alone suffice for principal components, decision trees, association rules and"
        " statistical-query learning.",
        lives="`CALL pca(…)`, `decision_tree`, `frequent_itemsets`, `perceptron`, `h.scope`;"
        " [analyses.md](analyses.md#programs)",
        language="python",
        command="""
import hubbub
with hubbub.open() as h:
    components = h.pca("health_rows", ["age", "education", "visits"], epsilon=1)
    tree = h.decision_tree("health_rows", ["age", "coinsurance"], "female", epsilon=1)
    itemsets = h.frequent_itemsets("health_rows", ["female", "site"], epsilon=1)
    perceptron = h.perceptron("health_rows", ["age", "visits"], "female", epsilon=5)
    print("misclassified", round(perceptron.model["wrong"]))
    print("first component", abs(components.rows[0][3]))
    print("women", {row[0]: row[2] for row in itemsets.rows}["female = 1"])
    mean = 50.0  # a statistical-query learner: gradient descent to the mean age, by noisy sums alone
    with h.scope(epsilon=1) as s:
        for _ in range(10):
            total = s.query(f"SELECT SUM(age - {mean}) AS g FROM health_rows", epsilon="0.1").rows[0][0]
            mean = round(mean + total / 20190 / 2, 2)
        print("mean age", mean, "left", s.left)
    print("cost", components.epsilon, tree.epsilon, itemsets.epsilon)
""",
        figures=(
            Figure("first component, age", r"first component ([\d.]+)", (0.99, 1), "0.9996 without noise"),
            Figure("women, from itemsets", r"women ([\d.]+)", (10300, 10580), "10,439; Laplace noise of scale 9"),
            Figure(
                "mean age after ten noisy gradients", r"mean age ([\d.]+)", (25.1, 25.4), "25.25 without noise; sd 0.02"
            ),
            Figure(
                "rows that the perceptron misclassifies", r"misclassified (\d+)", (9500, 9850), "9,615 without noise"
            ),
            Figure("left of the scope", r"left (\S+)", "0", "ten queries at 0.1"),
            Figure("cost of the three analyses", r"cost (.*)", "1 1 1", "what was asked for"),
        ),
    ),
    Row(
        number=56,
        places=(Place("2011", "programs", "k-means"),),
        says="A round of k-means has sensitivity d + 1, so N rounds need Lap((d + 1)·N/ε).",
        lives="`CALL kmeans(…, method => 'classic')`; [analyses.md](analyses.md#k-means-kmeans)",
        command="hubbub call kmeans table=bits columns=a,b k=2 method=classic rounds=5 -e 1 --plan",
        figures=(Figure("scale, d = 2, N = 5", r"Laplace noise of scale (\d+)", "15", "(d + 1)·N/ε"),),
    ),
    Row(
        number=57,
        places=(Place("2011", "programs", "k-means, unknown rounds"),),
        says="If the number of rounds is not known, each may spend half of what is left.",
        lives="`CALL kmeans(…, rounds => NULL)`; [analyses.md](analyses.md#k-means-kmeans)",
        command="""
hubbub call kmeans table=bits columns=a,b k=2 method=classic rounds=NULL -e 1 --plan
hubbub call kmeans table=bits columns=a,b k=2 method=classic rounds=NULL -e 1 --json
""",
        figures=(
            Figure(
                "scale of the first round",
                r"Laplace noise of scale (\d+)",
                "6",
                "(d + 1)/(ε/2); as printed it would be 1.5",
            ),
            Figure("charged", r'"epsilon": "(\S+?)"', "1", "Σ ε/2^i < ε"),
        ),
    ),
    Row(
        number=58,
        places=(Place("2011", "synthetic"),),
        says="A small database that is selected by the exponential mechanism approximates all counts of a class.",
        lives="`CALL small_database(…)`; [analyses.md](analyses.md#synthetic-data)",
        language="python",
        command="""
import hubbub, itertools
with hubbub.open() as h:
    drawn = [h.small_database("coins", ["p", "q", "r"], size=10, total=300, epsilon=1, key=f"draw {i}").rows
             for i in range(40)]
with open("coins.csv") as file:
    truth = [tuple(map(int, line.split(","))) for line in list(file)[1:]]
def share(rows, values):  # of a conjunction: 0, 1 or either for each bit
    return sum(all(v in (None, bit) for v, bit in zip(values, row)) for row in rows) / len(rows)
conjunctions = list(itertools.product((0, 1, None), repeat=3))[:-1]
errors = [max(abs(share(rows, c) - share(truth, c)) for c in conjunctions) for rows in drawn]
print(len(conjunctions), "conjunctions, mean largest error", sum(errors) / 40)
""",
        figures=(
            Figure(
                "mean largest error, n = 300",
                r"mean largest error ([\d.]+)",
                (0.05, 0.095),
                "0.071 over all 19,448 databases; sd 0.003",
            ),
        ),
    ),
    Row(
        number=59,
        places=(Place("2011", "synthetic", "limits"),),
        says="No synthetic table can answer too many sums too accurately.",
        lives="`hubbub attack synthetic`; [attacks.md](attacks.md)",
        command="hubbub attack synthetic -e 1 --seed 1 --json",
        figures=(
            Figure(
                "accurate table: bits recovered", "$.findings.1.score.share", (0.9, 1), "sums within 0.6 can be solved"
            ),
            Figure(
                "hubbub's table: bits recovered", "$.findings.2.score.share", (0.3, 0.88), "at most 0.731; sd 0.028"
            ),
        ),
    ),
    Row(
        number=60,
        places=(Place("2011", "pan-privacy"),),
        says="The state of a stream can be private, too; that of a Count-Min sketch or a sample is not.",
        lives="`hubbub stream`; [analyses.md](analyses.md#streams)",
        command="hubbub stream audit --epsilon 1",
        figures=(
            Figure("density: ε measured", r"density \(hubbub\) +1 +([\d.]+)", (0.3, 1), "at most the stated ε = 1"),
            Figure("Count-Min sketch", r"Count-Min sketch +none +(\w+)", "inf", "it stores arrivals"),
            Figure("sample", r"reservoir sample +none +(\w+)", "inf", "it stores arrivals"),
        ),
    ),
    Row(
        number=61,
        places=(Place("2011", "pan-privacy", "density estimation"),),
        says="The share of a universe that appears in a stream can be estimated from one noisy bit for each element.",
        lives="`hubbub stream make --kind density`; [analyses.md](analyses.md#streams)",
        command="""
hubbub stream make seen --kind density --universe 0:99999 --epsilon 2 --classic --dataset nobody
seq 0 29999 | hubbub stream feed seen
hubbub stream answer seen
""",
        figures=(
            Figure("density", r"^density +([\d.]+)", (0.26, 0.34), "0.30; sd 0.0063"),
            Figure("D₁", r"then one of ½ \+ ([\d.]+)", "0.25", "ε/4 at ε = 1, 2ε in all"),
        ),
    ),
    Row(
        number=62,
        places=(Place("2011", "geometry"),),
        says="Dependent queries need less noise than the sum of their sensitivities suggests.",
        lives="`CALL ranges(…)`; [analyses.md](analyses.md#ranges-and-running-totals-ranges)",
        command="""
hubbub call ranges table=nobody column=byte -e 1.41421356 --plan
hubbub call ranges table=nobody column=step workload=prefixes strategy=root -e 1 --delta 1e-5 --plan
hubbub call ranges table=nobody column=step workload=prefixes strategy=tree -e 1 --delta 1e-5 --plan
""",
        figures=(
            Figure(
                "all ranges of 256 bins, bin by bin",
                r"one by one would have ([\d.]+)",
                "9.27",
                "√((n + 2)/3) = √86, for variance 1",
            ),
            Figure(
                "optimized",
                r"all ranges have a root mean squared error of ([\d.]+)",
                (0, 5.8),
                "5.7 by the matrix mechanism",
            ),
            Figure(
                "1,024 running totals, by the square root",
                r"all prefixes have a root mean squared error of ([\d.]+)",
                (0, 14.31),
                "3.27 × σ of a single count, 4.3756",
            ),
        ),
    ),
    Row(
        number=111,
        places=(Place("2011", "synthetic", "any concept class"),),
        says="The small database works for any class, with m = O(VC/γ²) rows.",
        lives="`CALL small_database(…, predicates => […], accuracy => γ)`; [analyses.md](analyses.md#synthetic-data)",
        command="""
hubbub query "CALL small_database(table => 'coins', columns => ['p', 'q', 'r'], accuracy => 0.25, total => 300,
    predicates => ['p = 1 AND q = 1', 'r = 1 OR p = 0', 'p <> q'])" -e 1 --json
hubbub plan "CALL small_database(table => 'coins', columns => ['p', 'q', 'r'], accuracy => 0.25, total => 300,
    predicates => ['p = 1 AND q = 1', 'r = 1 OR p = 0', 'p <> q'])" -e 1
""",
        figures=(
            Figure("rows", r"databases of (\d+) rows", "15", "ln(2·3)/(2γ²) = 14.3"),
            Figure(
                "candidates",
                r"one of ([\d,]+) databases",
                "3876",
                "C(19, 4): the predicates tell 5 kinds of rows apart",
            ),
        ),
    ),
)
