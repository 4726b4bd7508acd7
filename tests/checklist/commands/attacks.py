"""Attacks on protections without a guarantee."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
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
        lives="`hubbub attack tokens`, page *Lab*; [attacks.md](attacks.md)",
        command="hubbub attack tokens -e 1 --seed 1 --json",
        figures=(
            Figure(
                "words recovered by rank", "$.findings.0.score.share", (0.05, 0.5), "far above blind guessing, 0.01"
            ),
            Figure("by neighbors", "$.findings.1.score.share", (0.6, 1), "most of the 100 most common words"),
            Figure("hubbub, right", "$.findings.2.score.share", (0.6, 0.78), "at most 0.731; sd 0.01"),
        ),
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
        number=93,
        places=(Place("2005", "1.2", "k-anonymity"),),
        says="k-anonymity and suppression of low counts leak by what they choose to show.",
        lives="`hubbub attack homogeneity`, page *Lab*; [attacks.md](attacks.md)",
        command="hubbub attack homogeneity health.csv --quasi site,age --set sensitive=health -e 1 --seed 1 --json",
        figures=(
            Figure(
                "5-anonymous: the rest of the group is known",
                "$.findings.2.score.share",
                "1",
                "the published group has one secret left",
            ),
            Figure(
                "counts below 5 suppressed",
                "$.findings.3.score.share",
                "1",
                "whether a count is hidden tells the fifth",
            ),
            Figure("hubbub, right", "$.findings.4.score.share", (0.7, 0.747), "at most 0.731; sd 0.003"),
        ),
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
        lives="`hubbub attack intersection`, `hubbub explain composition`, `hubbub sanitize study databases`",
        command="""
hubbub attack intersection -e 1 --seed 1
hubbub explain composition -e 0.5 --set second=0.5
""",
        figures=(
            Figure("one 5-anonymous table, right", r"1 table: ([\d.]+%) of", (25, 42), "blind guessing has 22.8"),
            Figure("two tables intersected", r"2 tables intersected: ([\d.]+%) of", (48, 67), "more than one table"),
            Figure(
                "two private releases",
                r"2 releases, everyone else known: ([\d.]+%)",
                (50, 91),
                "at most 88.1 at ε = 2; sd 0.7",
            ),
            Figure("ε of both", r"^both releases +(\S+)", "1", "0.5 + 0.5"),
        ),
    ),
    Row(
        number=106,
        places=(Place("2005", "1.2", "swapping"),),
        says="Swapping values between similar records is a protection without a guarantee.",
        lives="`hubbub attack swapping`, page *Lab*; [attacks.md](attacks.md)",
        command="hubbub attack swapping -e 1 --seed 1",
        figures=(
            Figure("nothing swapped, right", r"nothing swapped: ([\d.]+%)", (90, 98), "most rows are unique"),
            Figure("10% swapped", r"swapped in 10% of the rows: ([\d.]+%)", (85, 94), "½·0.1 less"),
            Figure("hubbub", r"everyone else known: ([\d.]+%)", (65, 78.5), "at most 73.1; sd 1"),
        ),
    ),
)
