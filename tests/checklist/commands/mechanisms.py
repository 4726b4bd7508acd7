"""Selection, metric spaces, and noise that follows the data."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=42,
        places=(Place("slides", "noisy max"),),
        says="Reporting only the index of the largest of m noisy counts costs one ε.",
        lives="`CALL choose(…, method => 'noisy_max')`, `h.choose`; [analyses.md](analyses.md)",
        command="""
hubbub call choose candidates=votes.candidate score='SELECT COUNT(*) FROM votes WHERE candidate = $1' \\
    method=noisy_max -e 1 --plan
hubbub call choose candidates=health_rows.site score='SELECT COUNT(*) FROM health_rows WHERE site = $1' \\
    method=noisy_max -e 1 --json
""",
        figures=(
            Figure(
                "rate where rows are replaced",
                r"noisy max with rate ([\d.]+)",
                "0.5",
                "Lap(2/ε): Lap(1/ε) would cost 1.98",
            ),
            Figure(
                "95% bound on the gap",
                r"score below the best +±(\d+)",
                (10, 21),
                "2·ln(10/0.05)·2/ε = 21.2 for Lap(2/ε)",
            ),
            Figure("most common site", r'"rows": \[\[1, (\d)', "1", "426 rows more than the next"),
        ),
    ),
    Row(
        number=43,
        places=(Place("slides", "example"),),
        says="The most-liked page can be selected at one ε, although a person may like many pages.",
        lives="`ORDER BY … LIMIT`: one selection; [analyses.md](analyses.md)",
        command="""
hubbub plan "SELECT site FROM health GROUP BY site ORDER BY COUNT(*) DESC LIMIT 1" -e 1
hubbub query "SELECT site FROM health GROUP BY site ORDER BY COUNT(*) DESC LIMIT 1" -e 1 --json
""",
        figures=(
            Figure(
                "sensitivity of the selection",
                r"each of sensitivity (\d+): 1 selections",
                "5",
                "the rows of a person in one group, not in all six",
            ),
            Figure("most common site", r'"rows": \[\[(\d)', "1", "4,462 rows, 426 more than the next: e^(−85)"),
        ),
    ),
    Row(
        number=44,
        places=(Place("2011", "selection", "exponential mechanism"),),
        says="Selecting y with probability in proportion to exp(ε·u/(2Δu)) is private, and seldom far from the best.",
        lives="`CALL choose(…)`, `h.choose`; [analyses.md](analyses.md)",
        language="python",
        command="""
import hubbub
score = "SELECT COUNT(*) FROM votes WHERE candidate = $1"  # candidate k has k votes, k = 1, …, 10
with hubbub.open() as h:
    estimate = h.estimates.choose("votes.candidate", score, method="exponential", epsilon=1)
    chosen = [h.choose("votes.candidate", score, method="exponential", epsilon=1, key=f"draw {i}") for i in range(100)]
print(*estimate.derivation, sep="\\n")
print("95% regret", estimate.expected[0].plus_minus)
print("mean regret", sum(10 - release.rows[0][0] for release in chosen) / 100)
""",
        figures=(
            Figure("rate", r"rate ([\d.]+) per unit", "0.5", "ε/(2Δu); as printed it would be 1"),
            Figure(
                "95% bound on the regret",
                r"95% regret ([\d.]+)",
                "10",
                "(2Δ/ε)·ln(10/0.05) = 10.6, a whole number of votes",
            ),
            Figure("mean regret", r"mean regret ([\d.]+)", (0.5, 2.7), "1.474 for weights e^(k/2); sd 0.2"),
        ),
    ),
    Row(
        number=45,
        places=(Place("2011", "selection", "hyperplane"),),
        says="A hyperplane can be selected by the number of points that it classifies correctly.",
        lives="`CALL hyperplane(…)`; [analyses.md](analyses.md#hyperplanes-hyperplane)",
        command="""
hubbub call hyperplane table=health_rows columns=age,visits target=female -e 1 --plan
hubbub call hyperplane table=health_rows columns=age,visits target=female -e 1 --json
""",
        figures=(
            Figure(
                "95% bound on rows lost",
                r"at best +±(\d+)",
                "12",
                "(1/0.9)·ln(2912/0.05) = 12.2: u is monotone, 90% of ε",
            ),
            Figure(
                "rows on the right side",
                r'"rows": \[\[.*?, ([\d.]+)\]\]',
                (0.52, 0.56),
                "above 0.517, the share of women",
            ),
        ),
    ),
    Row(
        number=46,
        places=(Place("2006", "3.3", "equation 4"),),
        says="In a metric space, an output with density in proportion to exp(−ε·d/(2S)) is private.",
        lives="`h.release(…, metric=Space)`; [analyses.md](analyses.md#user-defined-functions)",
        language="python",
        command="""
import hubbub
from hubbub.mechanisms.metric import Space
week = Space.of([[min((i - j) % 7, (j - i) % 7) for j in range(7)] for i in range(7)])
line = Space.of([[abs(i - j) for j in range(7)] for i in range(7)])
days = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"]
with hubbub.open() as h:
    for name, space in (("week", week), ("line", line)):
        release = h.release(lambda rows: "We", table="bits", columns=["a"], metric=space, points=days, sensitivity=3,
                            total=True, epsilon=1)
        print(name, release.receipt["event"]["parts"][0][0]["rate"])
""",
        figures=(
            Figure("rate on a circle", r"week (\S+)", "1/3", "ε/S: the normalizer is constant"),
            Figure("rate on a line", r"line (\S+)", "1/6", "ε/(2S)"),
        ),
    ),
    Row(
        number=47,
        places=(Place("2006", "3.3", "Hamming cube"),),
        says="A string of bits is private if each bit is flipped with probability 1/(1 + e^(ε/S)).",
        lives='`h.release(…, metric="hamming")`; [analyses.md](analyses.md#user-defined-functions)',
        language="python",
        command="""
import hubbub
with hubbub.open() as h:
    release = h.release(lambda rows: [0] * 10000, table="bits", columns=["a"], metric="hamming", outputs=10000,
                        sensitivity=1, total=True, epsilon=1)
print("flipped", sum(bit for _, bit in release.rows) / 10000)
""",
        figures=(
            Figure(
                "share of bits flipped",
                r"flipped ([\d.]+)",
                (0.2467, 0.2911),
                "1/(1 + e) = 0.2689, sd 0.0044; as printed it would be 0",
            ),
        ),
    ),
    Row(
        number=48,
        places=(Place("2006", "3.2", "mean"),),
        says="The mean of vectors of norm γ has sensitivity 2γ/n.",
        lives="`CALL mean_vector(…)`; [analyses.md](analyses.md)",
        command="hubbub call mean_vector table=health_replace columns=age,education -e 1 --plan",
        figures=(
            Figure("γ", r"γ = ([\d.]*\d)", "45", "32.5 + 12.5, half of each range"),
            Figure("margin at n = 1,000", r"mean of age, .* ±([\d.]+)", "0.27", "(2γ/n)·ln 20 = 0.2696"),
        ),
    ),
    Row(
        number=49,
        places=(Place("2006", "3.2", "covariance"),),
        says="The covariance matrix of vectors of norm γ has sensitivity 6γ²/n.",
        lives="`CALL covariance(…)`; [analyses.md](analyses.md)",
        command="""
hubbub call covariance table=health_replace columns=age,education -e 1 --plan
hubbub call covariance table=health_replace columns=age -e 1 --plan
""",
        figures=(
            Figure("two columns", r"moves it by (\S+) in L1, γ = 45", "6γ²/n", "6; 8 as printed"),
            Figure("one column", r"moves it by (\S+) in L1, γ = 32.5", "4γ²/n", "4"),
            Figure("margin at n = 1,000", r"^covariance, .* ±([\d.]+)", "36", "(6·45²/n)·ln 20 = 36.4"),
        ),
    ),
    Row(
        number=97,
        places=(Place("2006", "3.3", "continuous spaces"),),
        says="The metric mechanism works on R^k with a norm.",
        lives="`CALL mean_vector(…, norm => 'l2', noise => 'euclidean')`; [analyses.md](analyses.md)",
        command="""
hubbub call mean_vector table=health_replace columns=age,education norm=l2 noise=euclidean -e 1 --plan
hubbub call mean_vector table=health_replace columns=age,education norm=l2 noise=euclidean -e 20
""",
        figures=(
            Figure("γ", r"γ = ([\d.]*\d)", "34.82", "√(32.5² + 12.5²)"),
            Figure(
                "margin at n = 1,000",
                r"mean of age, .* ±([\d.]+)",
                (0.2, 0.35),
                "density ∝ exp(−ε‖·‖/(2γ/n)): 3.6 × 0.0696 for one coordinate",
            ),
        ),
    ),
    Row(
        number=110,
        places=(Place("2011", "selection", "any utility"),),
        says="The exponential mechanism takes any score of bounded sensitivity.",
        lives="`CALL choose(…)`, `h.choose`; [analyses.md](analyses.md)",
        command="""
hubbub call choose candidates=health_rows.site 'score=SELECT SUM(visits) FROM health_rows WHERE site = $1' -e 1 --plan
hubbub call choose candidates=health_rows.site 'score=SELECT SUM(visits) FROM health_rows WHERE site = $1' -e 1 --json
""",
        figures=(
            Figure("sensitivity of the score", r"moves a score by at most (\d+)", "80", "the bound of visits"),
            Figure("charged", r'"epsilon": "(\S+?)"', "1", "one ε, with a receipt"),
        ),
    ),
    Row(
        number=113,
        places=(Place("2014", "4", "footnote 3"), Place("2014", "3.1", "Section 3")),
        says="Noise may depend on the data if its own dependence is smooth, or tested privately first.",
        lives="`CALL median(…)`, `CALL triangle_count(…, sensitivity => 'smooth')`; [analyses.md](analyses.md)",
        command="""
hubbub call median table=health_rows column=income -e 1 --delta 1e-6 --plan
hubbub call median table=health_rows column=income -e 1 --delta 1e-6
""",
        figures=(
            Figure(
                "noise by the global sensitivity", r"global sensitivity would be ±([\d,]+)", "30000", "the whole range"
            ),
            Figure("median income", r"^ *([\d,]+) [±(]", (7000, 9000), "7,976"),
        ),
    ),
)
