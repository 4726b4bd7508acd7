"""Separations and reconstruction."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=63,
        places=(Place("2006", "4", "Theorem 3"), Place("2006", "4.2")),
        says="A table that is published once reveals almost nothing about most parities; one private answer does.",
        lives="`hubbub explain separation`, `hubbub attack separation`; [attacks.md](attacks.md)",
        command="hubbub explain separation -e 1",
        figures=(
            Figure(
                "limit for any table, 20 bits",
                r"which is ([\d.]+) for one person with 20 bits",
                "0.0015",
                "3·sinh(½)/√(2^20 − 1)",
            ),
            Figure(
                "mean error of one answer", r"mean error of ([\d.]+)", "0.851", "2e^(−ε)/(1 − e^(−2ε)) on the integers"
            ),
        ),
        quick=True,
    ),
    Row(
        number=64,
        places=(Place("2006", "4.1", "Proposition 2, Lemma 2, Claim 1"),),
        says="Randomized response reveals exponentially little about a parity of d bits.",
        lives="`hubbub explain separation`; [attacks.md](attacks.md)",
        command="hubbub explain separation -e 1",
        figures=(
            Figure("difference, 6 bits", r"parity of 6 bits is ([\d.]+)", "0.0261", "(e − 1)/(2^6 + e − 1)"),
            Figure("difference, 20 bits", r"20 bits it is ([\d.e-]+),", "1.6e-6", "(e − 1)/(2^20 + e − 1)"),
        ),
    ),
    Row(
        number=66,
        places=(Place("2011", "how", "Theorem 1"),),
        says="If all subset sums are within E, a database that fits them is wrong in at most 4E places.",
        lives="`hubbub attack exhaustive`; [attacks.md](attacks.md)",
        command="hubbub attack exhaustive -e 1 --seed 1 --set databases=10 --json",
        figures=(
            Figure("wrong bits at E = 1", "$.findings.1.facts.maximum wrong bits", (0, 4), "4E"),
            Figure("hubbub, right", "$.findings.2.score.share", (0, 0.97), "at most 0.731; sd 0.053"),
        ),
    ),
    Row(
        number=67,
        places=(Place("2011", "how", "few queries"),),
        says="A few random sums for each person suffice to reconstruct a table, if their noise is below √n.",
        lives="`hubbub attack reconstruction`; [attacks.md](attacks.md)",
        command="hubbub attack reconstruction -e 1 --seed 1 --set people=100 --set databases=1 --set noise=0.5 --json",
        figures=(
            Figure("exact sums, right", "$.findings.0.score.share", "1", "a square system has one solution"),
            Figure("noise of sd √n/2, right", "$.findings.1.score.share", (0.76, 1), "Φ(√7/2) = 0.907; sd 0.029"),
            Figure("a fifth wild, least absolute", "$.findings.3.score.share", (0.65, 1), "far above ½ (Dwork 2011)"),
            Figure("hubbub, right", "$.findings.4.score.share", (0.25, 0.95), "at most 0.731; sd 0.044"),
        ),
    ),
    Row(
        number=70,
        places=(Place("2011", "how", "subsampling"), Place("2011", "privacy", "subsampling")),
        says="Publishing a random sample of the rows protects nobody in it.",
        lives="`hubbub explain subsample`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain subsample --n 10 --set size=2",
        figures=(
            Figure("loss", r"^2 of 10 rows, in the clear +(\S+)", "∞", "a published row is certain"),
            Figure("statistical difference", r"^2 of 10 rows, in the clear +\S+ +([\d.]+)", "0.2", "m/n"),
        ),
    ),
    Row(
        number=96,
        places=(Place("2006", "4", "remark 2"),),
        says="m sampled pairs of a record and its answer give an accuracy of n/√m.",
        lives="`hubbub explain sampled-pairs`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain sampled-pairs",
        figures=(
            Figure("error with 100 of 10,000 pairs", r"^100 +([\d.]+)", "497.5", "n/(2√m)·√((n − m)/(n − 1)) = 497.5"),
            Figure("n/√m", r"^100 +\S+ +([\d,]+)", "1000", "10⁴/10"),
        ),
    ),
    Row(
        number=109,
        places=(Place("2011", "how", "sublinear queries"),),
        says="A number of queries that is sublinear in n can be answered with noise below √n.",
        lives="`hubbub explain few-queries`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain few-queries",
        figures=(
            Figure(
                "noise on each of 1,000 counts, n = 10⁶",
                r"^ +1,000 +([\d.]+)",
                (132, 140),
                "√1000 × 4.2247, exact σ at (1, 1e-6); √n = 1,000",
            ),
            Figure("noise/√n", r"^ +1,000 +\S+ +\S+ +([\d.]+)", (0.13, 0.14), "below 1"),
        ),
    ),
)
