"""Rows 63–75, 96, 98, 104, 106 and 109: separations and attacks."""

from tests.checklist.record import Place, Row

RECORDS = (
    Row(
        number=63,
        places=(Place("2006", "4", "Theorem 3"), Place("2006", "4.2")),
        says="A table that is published once reveals almost nothing about most parities; one private answer does.",
    ),
    Row(
        number=64,
        places=(Place("2006", "4.1", "Proposition 2, Lemma 2, Claim 1"),),
        says="Randomized response reveals exponentially little about a parity of d bits.",
    ),
    Row(
        number=65,
        places=(Place("2011", "how", "large query sets"),),
        says="Two counts of many people, with and without Mr. X, reveal his secret.",
    ),
    Row(
        number=66,
        places=(Place("2011", "how", "Theorem 1"),),
        says="If all subset sums are within E, a database that fits them is wrong in at most 4E places.",
    ),
    Row(
        number=67,
        places=(Place("2011", "how", "few queries"),),
        says="A few random sums for each person suffice to reconstruct a table, if their noise is below √n.",
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
    ),
    Row(
        number=72,
        places=(Place("2011", "how", "query-keyed subsamples"),),
        says="A sample that is determined by the text of a query is redrawn by rewording it.",
    ),
    Row(
        number=73,
        places=(Place("2011", "what", "linkage"),),
        says="Birth date, sex and postal code identify most people in a table without names.",
    ),
    Row(
        number=74,
        places=(Place("2011", "what", "token-based hashing"),),
        says="Hashed words are recovered from their frequencies.",
    ),
    Row(
        number=75,
        places=(Place("2005", "5", "independent noise"),),
        says="Independent noise comes off correlated columns, because principal components survive it.",
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
