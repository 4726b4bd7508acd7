"""Rows 63–75, 96, 98, 104, 106 and 109: separations and attacks."""

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
        number=65,
        places=(Place("2011", "how", "large query sets"),),
        says="Two counts of many people, with and without Mr. X, reveal his secret.",
        lives="`hubbub attack differencing`, page *Lab*; [attacks.md](attacks.md)",
        command="hubbub attack differencing -e 1 --seed 1 --json",
        figures=(
            Figure("unprotected, right", "$.findings.0.score.share", "1", "both counts are exact"),
            Figure("hubbub, everyone else known", "$.findings.4.score.share", (0.6, 0.78), "at most 0.731; sd 0.01"),
            Figure("largest posterior odds", "$.findings.3.facts.largest posterior odds", (1, 2.71829), "e^ε"),
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
        command="hubbub attack reconstruction -e 1 --seed 1 --set people=256 --set databases=1 --set noise=0.5 --json",
        figures=(
            Figure("exact sums, right", "$.findings.0.score.share", "1", "a square system has one solution"),
            Figure("noise of sd 8, right", "$.findings.1.score.share", (0.82, 0.98), "0.91 by simulation; sd 0.018"),
            Figure("a fifth wild, least absolute", "$.findings.3.score.share", (0.65, 1), "far above ½ (Dwork 2011)"),
            Figure("hubbub, right", "$.findings.4.score.share", (0.3, 0.87), "at most 0.731; sd 0.028"),
        ),
    ),
    Row(
        number=68,
        places=(Place("2011", "how", "√n"),),
        says="Sampling error, about √n, is the yardstick of noise.",
    ),
    Row(
        number=69,
        places=(Place("2011", "how", "query auditing"),),
        says="A refusal can disclose what an answer would.",
        lives="`hubbub attack refusal`; [attacks.md](attacks.md)",
        command="hubbub attack refusal -e 1 --seed 1 --json",
        figures=(
            Figure(
                "auditor that looks at the data, right", "$.findings.0.score.share", "1", "a refusal names the maximum"
            ),
            Figure("simulatable auditor, right", "$.findings.1.score.share", (0.38, 0.62), "½; sd 0.022"),
            Figure(
                "hubbub's refusals are the same on both datasets",
                "$.findings.2.facts.same refusals on both datasets",
                "yes",
                "they depend on queries alone",
            ),
        ),
    ),
    Row(
        number=70,
        places=(Place("2011", "how", "subsampling"), Place("2011", "privacy", "subsampling")),
        says="Publishing a random sample of the rows protects nobody in it.",
    ),
    Row(
        number=71,
        places=(Place("2011", "how", "averaging"),),
        says="Fresh noise on a repeated query averages out.",
        lives="`hubbub attack averaging`; [attacks.md](attacks.md)",
        command="hubbub attack averaging -e 1 --seed 1 --json",
        figures=(
            Figure(
                "fresh noise without accounting, right",
                "$.findings.0.score.share",
                (0.999, 1),
                "2,000 answers: sd 0.03",
            ),
            Figure("hubbub, repeated query, right", "$.findings.1.score.share", (0.6, 0.83), "at most 0.731; sd 0.02"),
            Figure(
                "distinct answers to 20 repetitions",
                "$.findings.1.facts.distinct answers",
                "1",
                "a replay is the same answer",
            ),
        ),
    ),
    Row(
        number=72,
        places=(Place("2011", "how", "query-keyed subsamples"),),
        says="A sample that is determined by the text of a query is redrawn by rewording it.",
        lives="`hubbub attack subsampling`; [attacks.md](attacks.md)",
        command="hubbub attack subsampling -e 1 --seed 1 --json",
        figures=(
            Figure("toy system, many wordings", "$.findings.1.score.share", (0.98, 1), "1,000 samples average out"),
            Figure("hubbub, many wordings", "$.findings.2.score.share", (0.3, 0.88), "at most 0.731; sd 0.031"),
        ),
    ),
    Row(
        number=73,
        places=(Place("2011", "what", "linkage"),),
        says="Birth date, sex and postal code identify most people in a table without names.",
        lives="`hubbub attack linkage`; [attacks.md](attacks.md)",
        command="hubbub attack linkage health.csv --quasi site,age,female,education,income -e 1 --seed 1",
        figures=(
            Figure(
                "unique in site, age, sex, education, income",
                r"([\d.]+)% of the 20,190 rows are unique",
                "88.7",
                "counted over the file",
            ),
            Figure("without income", r"female and education, ([\d.]+)% are unique", "13.8", "counted over the file"),
        ),
    ),
    Row(
        number=74,
        places=(Place("2011", "what", "token-based hashing"),),
        says="Hashed words are recovered from their frequencies.",
        lives="`hubbub attack tokens`; [attacks.md](attacks.md)",
    ),
    Row(
        number=75,
        places=(Place("2005", "5", "independent noise"),),
        says="Independent noise comes off correlated columns, because principal components survive it.",
        lives="`hubbub attack spectral`; [attacks.md](attacks.md)",
        command="hubbub attack spectral -e 1 --seed 1 --json",
        figures=(
            Figure("mean error as published, in sd", "$.findings.0.facts.error", (1.5, 1.7), "2·√(2/π) = 1.596"),
            Figure(
                "filtered", "$.findings.1.facts.error", (0.2, 0.6), "2·√(2/π)·√(2/32) = 0.40 if two factors explain all"
            ),
            Figure("hubbub, filtered, right", "$.findings.3.score.share", (0.3, 0.86), "at most 0.731; sd 0.026"),
        ),
    ),
    Row(
        number=96,
        places=(Place("2006", "4", "remark 2"),),
        says="m sampled pairs of a record and its answer give an accuracy of n/√m.",
    ),
    Row(
        number=98,
        places=(Place("2006", "1.2"),),
        says="Differential privacy yields protection against isolation: an isolator gains a factor of at most e^ε.",
        lives="`hubbub attack isolator`, page *Lab*; [meaning.md](meaning.md), [attacks.md](attacks.md)",
        command="hubbub attack isolator -e 1 --seed 5 --set people=100 --json",
        figures=(
            Figure("exact counts, isolated", "$.findings.0.score.share", "1", "only the true corner fits the counts"),
            Figure("hubbub, isolated", "$.findings.1.score.share", (0.08, 0.4246), "at most 0.3398; sd 0.021"),
            Figure("maximum", "$.findings.1.ceiling", "0.3398", "e/8"),
        ),
    ),
    Row(
        number=104,
        places=(Place("2005", "7", "several databases"), Place("2014", "1", "composition")),
        says="Releases about the same people compose: two k-anonymous tables together identify, two private ones add"
        " their ε.",
    ),
    Row(
        number=106,
        places=(Place("2005", "1.2", "swapping"),),
        says="Swapping values between similar records is a protection without a guarantee.",
    ),
    Row(
        number=109,
        places=(Place("2011", "how", "sublinear queries"),),
        says="A number of queries that is sublinear in n can be answered with noise below √n.",
    ),
)
