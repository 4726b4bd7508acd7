"""Rows 42–54, 97, 110, 113 and 116: selection, metric spaces, graphs and local sensitivity."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=42,
        places=(Place("slides", "noisy max"),),
        says="Reporting only the index of the largest of m noisy counts costs one ε.",
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
    ),
    Row(
        number=49,
        places=(Place("2006", "3.2", "covariance"),),
        says="The covariance matrix of vectors of norm γ has sensitivity 6γ²/n.",
    ),
    Row(
        number=50,
        places=(Place("2006", "3.2", "distance from a property"),),
        says="The number of rows that must change for a property to hold has sensitivity 1.",
        lives="`CALL graph_distance(…)`; [analyses.md](analyses.md#graphs)",
        command="""
hubbub call graph_distance table=karate ends=a,b property=acyclic -e 20
hubbub call graph_distance table=karate ends=a,b property=acyclic -e 1 --plan
""",
        figures=(
            Figure(
                "edges to remove until no cycle is left",
                r"^ *(\d+) [(±]",
                "45",
                "78 edges − 34 nodes + 1; noise is 0 but for 1e-8",
            ),
            Figure("scale at ε = 1", r"Laplace noise of scale (\d+)", "1", "sensitivity 1"),
        ),
    ),
    Row(
        number=51,
        places=(Place("2006", "3.2", "minimum cut"),),
        says="The weight of a minimum cut has sensitivity 1 for edge weights in [0, 1].",
        lives="`CALL min_cut(…)`; [analyses.md](analyses.md#graphs)",
        command="""
hubbub call min_cut table=karate ends=a,b -e 20
hubbub call min_cut table=karate ends=a,b -e 1 --plan
""",
        figures=(
            Figure(
                "minimum cut of the karate club",
                r"^ *(\d+) [(±]",
                "1",
                "one member has one friend; noise is 0 but for 1e-8",
            ),
            Figure("scale at ε = 1", r"Laplace noise of scale (\d+)", "1", "sensitivity 1"),
        ),
    ),
    Row(
        number=52,
        places=(Place("2006", "3.2", "minimum spanning tree"),),
        says="The weight of a minimum spanning tree has sensitivity 1 for edge weights in [0, 1].",
        lives="`CALL spanning_tree(…)`; [analyses.md](analyses.md#graphs)",
        command="""
hubbub call spanning_tree table=karate ends=a,b -e 20
hubbub call spanning_tree table=karate ends=a,b -e 1 --plan
""",
        figures=(
            Figure(
                "spanning tree of the karate club",
                r"^ *(\d+) [(±]",
                "33",
                "34 nodes, unit weights; noise is 0 but for 1e-8",
            ),
            Figure("scale at ε = 1", r"Laplace noise of scale (\d+)", "1", "sensitivity 1"),
        ),
    ),
    Row(
        number=53,
        places=(Place("2006", "3.2", "Lemma 1"),),
        says="A function that a few random reads approximate has low sensitivity.",
        lives="`sensitivity_from_samples`, for `h.release`; [analyses.md](analyses.md#user-defined-functions)",
        language="python",
        command="""
import hubbub
from hubbub.analyses.functions.sample_complexity import sensitivity_from_samples
print("sensitivity", sensitivity_from_samples(reads="0.1", succeeds="0.9", within=3))
try:
    print("at the bound", sensitivity_from_samples(reads="0.1", succeeds="0.55", within=3))
except hubbub.HubbubError:
    print("at the bound", "refused")
""",
        figures=(
            Figure("sensitivity", r"sensitivity (\S+)", "6", "2σ"),
            Figure(
                "success with probability (1 + α)/2",
                r"at the bound (\S+)",
                "refused",
                "the printed lemma is false there",
            ),
        ),
    ),
    Row(
        number=54,
        places=(Place("2006", "3.2", "converse of Lemma 1"),),
        says="The converse is false: the distance from a Reed–Solomon code has sensitivity 1 and cannot be told from"
        " few reads.",
    ),
    Row(
        number=97,
        places=(Place("2006", "3.3", "continuous spaces"),),
        says="The metric mechanism works on R^k with a norm.",
    ),
    Row(
        number=110,
        places=(Place("2011", "selection", "any utility"),),
        says="The exponential mechanism takes any score of bounded sensitivity.",
    ),
    Row(
        number=113,
        places=(Place("2014", "4", "footnote 3"), Place("2014", "3.1", "Section 3")),
        says="Noise may depend on the data if its own dependence is smooth, or tested privately first.",
    ),
    Row(
        number=116,
        places=(Place("2006", "3.2", "graph properties"),),
        says="The distance from being poorly clustered, or from being no expander, has sensitivity 1.",
    ),
)
