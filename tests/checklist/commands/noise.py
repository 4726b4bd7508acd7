"""Sensitivity and noise."""

from tests.checklist.record import Figure, Place, Row

SENSITIVITY = r"L1 sensitivity (\d+)"
SCALE = r"Laplace noise of scale ([\d.]+)"

RECORDS = (
    Row(
        number=24,
        places=(Place("slides", "distribution"), Place("2006", "2"), Place("2011", "achieving")),
        says="Lap(b) has variance 2b², and exceeds b·t in absolute value with probability e^(−t).",
        lives="every answer without δ; `--raw` keeps negative counts",
        language="python",
        command="""
import hubbub
with hubbub.open() as h:  # nobody has no rows, so its 10,000 counts are noise alone
    noise = [n for _, n in h.query("SELECT x, COUNT(*) AS n FROM nobody GROUP BY x", epsilon="0.1", raw=True).rows]
print("variance", sum(n * n for n in noise) / len(noise))
print("share beyond 3b", sum(abs(n) >= 30 for n in noise) / len(noise))
""",
        figures=(
            Figure("variance", r"variance ([\d.]+)", (170, 230), "2b² = 200; 199.8 on the integers; sd 4.5"),
            Figure("share beyond 3b", r"beyond 3b ([\d.]+)", (0.041, 0.064), "e^(−3) = 0.050; 0.052 on the integers"),
        ),
    ),
    Row(
        number=25,
        places=(Place("slides", "mechanism", "rounding"),),
        says="Rounding after the noise is free, but noise that is drawn in floating point leaks through its last bits.",
        lives="`hubbub attack floats`; [attacks.md](attacks.md)",
        command="hubbub attack floats -e 1 --seed 1 --json",
        figures=(
            Figure("textbook noise, right", "$.findings.0.score.share", (0.8, 1), "more than the 0.731 of ε = 1"),
            Figure("hubbub, right", "$.findings.1.score.share", (0.4, 0.77), "at most 0.731; sd 0.007"),
        ),
    ),
    Row(
        number=26,
        places=(Place("2006", "2", "Example 1"),),
        says="A sum of bits with Lap(1/ε) added is private and off by 1/ε on average.",
        lives="`SELECT SUM(…)`",
        language="python",
        command="""
import hubbub
with hubbub.open() as h:  # 10,000 sums of no bits
    sums = [n for _, n in h.query("SELECT x, SUM(yes) AS n FROM nobody GROUP BY x", epsilon="0.1", raw=True).rows]
print("mean absolute error", sum(map(abs, sums)) / len(sums))
""",
        figures=(
            Figure("mean absolute error", r"error ([\d.]+)", (9.4, 10.6), "1/ε = 10; 9.98 on the integers; sd 0.1"),
        ),
    ),
    Row(
        number=27,
        places=(
            Place("2006", "3", "Definition 2"),
            Place("slides", "sensitivity"),
            Place("2011", "achieving", "Definition 2"),
        ),
        says="The sensitivity of a function is the largest L1 distance between its values on neighboring datasets.",
        lives="`hubbub plan` states it; `hubbub audit release` replays the query on simulated neighboring datasets",
        command="""
hubbub query "SELECT female, SUM(visits) AS n FROM health_replace GROUP BY female" -e 1 --receipt receipt.json
hubbub plan "SELECT female, SUM(visits) AS n FROM health_replace GROUP BY female" -e 1
hubbub audit release 2
""",
        figures=(
            Figure("L1 sensitivity", SENSITIVITY, "160", "a row moves from one sum to the other: 80 + 80"),
            Figure("audit", r"^(verified): release 2", "verified", "no simulated pair moves further"),
        ),
    ),
    Row(
        number=28,
        places=(Place("2006", "3", "Example 3"),),
        says="A histogram of any size has sensitivity 2 if rows are replaced and 1 if they are added or removed.",
        lives="`relation:` in hubbub.yaml; `hubbub plan`",
        command="""
hubbub plan "SELECT SUM(female) AS n FROM health_replace" -e 1
hubbub plan "SELECT site, COUNT(*) AS n FROM health_replace GROUP BY site" -e 1
hubbub plan "SELECT site, COUNT(*) AS n FROM health_rows GROUP BY site" -e 1
""",
        figures=(
            Figure("sum, replace", f"sum of female .*{SENSITIVITY}", "1", "Example 3"),
            Figure("histogram, replace", f"(?s)scan health_replace.*?rows: .*?{SENSITIVITY}", "2", "Example 3"),
            Figure("histogram, add or remove", f"(?s)scan health_rows.*?{SENSITIVITY}", "1", "Dwork 2011"),
        ),
    ),
    Row(
        number=29,
        places=(
            Place("2006", "3.1", "Proposition 1"),
            Place("slides", "mechanism"),
            Place("2011", "achieving", "Theorem 2"),
        ),
        says="Adding Lap(Δ/ε) to every coordinate is ε-private.",
        lives="`hubbub plan`; `hubbub.mechanisms.laplace`",
        command="""
hubbub plan "SELECT COUNT(*) AS n FROM bits WHERE a = 1" -e 0.6931
hubbub explain -e 0.6931
""",
        figures=(
            Figure("b", SCALE, (1.4427, 1.4429), "1/ln 2 = 1.4427, for ε = 0.6931"),
            Figure("ratio of 100 to 101", r"factor of at most ([\d.]*\d)\.", "2", "e^ε = 2"),
        ),
        quick=True,
    ),
    Row(
        number=30,
        places=(Place("2006", "3.1", "Theorem 1"),),
        says="Adaptively chosen queries are private if refusals depend on the queries alone.",
        lives="budgets ([0003](decisions/0003-accounting.md)); `h.scope`",
        language="python",
        command="""
import hubbub
def refine(h, table, column):  # keep the half with the larger noisy count, until the budget refuses
    low, high, answers = 0, 1024, 0
    try:
        with h.scope(epsilon=1) as s:
            while True:
                middle = (low + high) // 2
                sql = f"SELECT COUNT_IF({column} < {middle}) AS l, COUNT_IF({column} >= {middle}) AS r FROM {table}"
                left, right = s.query(f"{sql} WHERE {column} >= {low} AND {column} < {high}", epsilon="0.125").rows[0]
                low, high = (low, middle) if left >= right else (middle, high)
                answers += 1
    except hubbub.BudgetError:
        return answers
with hubbub.open() as h:
    print("answers", refine(h, "nobody", "step"), refine(h, "health_rows", "income"))
""",
        figures=(Figure("answers before the refusal", r"answers ([\d ]+)", "8 8", "1/0.125 on any data"),),
    ),
    Row(
        number=31,
        places=(Place("slides", "accuracy"),),
        says="All K coordinates are within ln(K/δ)·Δ/ε at once with probability 1 − δ.",
        lives='`--intervals joint`, `intervals="joint"`; `hubbub plan` states the margin before the charge',
        command="""
hubbub plan "SELECT FLOOR(age / 6) AS band, COUNT(*) AS n FROM health_rows GROUP BY 1" -e 0.01 --intervals joint
""",
        figures=(
            Figure("margin of K = 11 counts", r"^n +±[\d,]+ +±([\d,]+)", "539", "ln(11/0.05)/0.01 = 539.4"),
            Figure("all at once", r"answers +\(([\d.]+)%", "95.11", "1 − 0.0489"),
        ),
    ),
    Row(
        number=32,
        places=(Place("slides", "notes"),),
        says="Gaussian noise gives (ε, δ)-privacy.",
        lives="chosen by the planner where a δ is given and it is smaller than Laplace noise",
        language="python",
        command="""
import hubbub, re
with hubbub.open() as h:
    estimate = h.estimates.ranges("nobody", "step", workload="prefixes", strategy="root", epsilon=1, delta="1e-5")
text = " ".join(estimate.derivation)
squared = float(re.search(r"√([\\d,]+) \\(L2\\)", text).group(1).replace(",", ""))
print("sigma", (float(re.search(r"variance ([\\d.e+]+)", text).group(1)) / squared) ** 0.5)
""",
        figures=(
            Figure(
                "σ per unit of L2 sensitivity at (1, 1e-5)",
                r"sigma ([\d.]+)",
                (3.7306, 4.8448),
                "at least 3.7306, exact for one answer; at most √(2·ln(1.25/δ))/ε = 4.845",
            ),
        ),
    ),
    Row(
        number=39,
        places=(Place("2011", "achieving", "symmetric noise"),),
        says="Noise that is never negative cannot be private.",
        lives="`hubbub explain one-sided`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain one-sided -e 1",
        figures=(
            Figure(
                "loss of one-sided noise", r"^one-sided geometric +(\S+)", "∞", "an answer that one dataset cannot have"
            ),
            Figure("its probability", r"^one-sided geometric +\S+ +([\d.]+%)", "63.2", "1 − e^(−1)"),
            Figure("two-sided noise", r"^two-sided \(hubbub\) +(\S+)", "1", "ε"),
        ),
    ),
    Row(
        number=40,
        places=(
            Place("2011", "privacy", "randomized response"),
            Place("2006", "4.1"),
            Place("2011", "how", "input perturbation"),
        ),
        says="A bit that is told truthfully with probability ¾ loses ln 3; the error of a count grows with √n.",
        lives="`hubbub survey`; [analyses.md](analyses.md#surveys)",
        command="""
hubbub survey check survey.yaml --people 10000
hubbub plan "SELECT COUNT(*) AS n FROM bits WHERE a = 1" -e 1.0986
""",
        figures=(
            Figure("probability of a lie", r"with probability ([\d.]+)", "0.25", "1/(1 + e^ε) at ε = ln 3"),
            Figure("error among 10,000 people", r"±([\d.]+)$", "169.7", "1.96 × √(n·p(1 − p))/(1 − 2p) = 1.96 × 86.6"),
            Figure("scale with a trusted curator", SCALE, "0.91", "1/ln 3"),
        ),
    ),
    Row(
        number=41,
        places=(Place("2011", "privacy", "logical AND"),),
        says="The AND of two randomized bits loses ln 9, not ln 3.",
        lives="`hubbub survey check`; [analyses.md](analyses.md#surveys)",
        command="hubbub survey check survey.yaml",
        figures=(
            Figure("ε of two answers", r"costs ε = ([\d.]+) in total", "2.197", "ln 9 = 2.1972"),
            Figure("odds", r"factor of at most ([\d.]*\d)\.", "9", "(9/16)/(1/16)"),
        ),
        quick=True,
    ),
    Row(
        number=99,
        places=(Place("2006", "1", "binomial noise"),),
        says="Binomial noise can take the place of Laplace noise, at a loss that depends on the tails.",
        lives="`CALL binomial_count`; [analyses.md](analyses.md#binomial-noise-binomial_count)",
        command="""
hubbub call binomial_count table=health_rows query='SELECT COUNT(*) FROM health_rows WHERE age > 40' -e 1 --plan
""",
        figures=(
            Figure("coins at (1, 5e-9)", r"([\d,]+) coins", "124", "least even N with δ ≤ 5e-9 over all outcomes"),
            Figure("margin", r"^value +±(\d+)", "11", "1.96·√124/2 = 10.9"),
        ),
    ),
)
