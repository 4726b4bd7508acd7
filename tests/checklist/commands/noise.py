"""Rows 24–41, 95, 99 and 100: sensitivity and noise."""

from tests.checklist.record import Place, Row

RECORDS = (
    Row(
        number=24,
        places=(Place("slides", "distribution"), Place("2006", "2"), Place("2011", "achieving")),
        says="Lap(b) has variance 2b², and exceeds b·t in absolute value with probability e^(−t).",
    ),
    Row(
        number=25,
        places=(Place("slides", "mechanism", "rounding"),),
        says="Rounding after the noise is free, but noise that is drawn in floating point leaks through its last bits.",
    ),
    Row(
        number=26,
        places=(Place("2006", "2", "Example 1"),),
        says="A sum of bits with Lap(1/ε) added is private and off by 1/ε on average.",
    ),
    Row(
        number=27,
        places=(
            Place("2006", "3", "Definition 2"),
            Place("slides", "sensitivity"),
            Place("2011", "achieving", "Definition 2"),
        ),
        says="The sensitivity of a function is the largest L1 distance between its values on neighboring datasets.",
    ),
    Row(
        number=28,
        places=(Place("2006", "3", "Example 3"),),
        says="A histogram of any size has sensitivity 2 if rows are replaced and 1 if they are added or removed.",
    ),
    Row(
        number=29,
        places=(
            Place("2006", "3.1", "Proposition 1"),
            Place("slides", "mechanism"),
            Place("2011", "achieving", "Theorem 2"),
        ),
        says="Adding Lap(Δ/ε) to every coordinate is ε-private.",
    ),
    Row(
        number=30,
        places=(Place("2006", "3.1", "Theorem 1"),),
        says="Adaptively chosen queries are private if refusals depend on the queries alone.",
    ),
    Row(
        number=31,
        places=(Place("slides", "accuracy"),),
        says="All K coordinates are within ln(K/δ)·Δ/ε at once with probability 1 − δ.",
    ),
    Row(
        number=32,
        places=(Place("slides", "notes"),),
        says="Gaussian noise gives (ε, δ)-privacy.",
    ),
    Row(
        number=33,
        places=(Place("slides", "applying", "counting query"), Place("2011", "achieving", "logical AND")),
        says="A count has sensitivity 1, also of those who are over 50 and smoke.",
    ),
    Row(
        number=34,
        places=(Place("slides", "applying", "vectors"),),
        says="A vector of d queries needs Lap(d·Δ/ε) in each, or an uneven split of ε.",
    ),
    Row(
        number=35,
        places=(Place("slides", "sensitivity", "averages"),),
        says="The average of a bit has sensitivity 1/|x| where the number of rows is public.",
    ),
    Row(
        number=36,
        places=(Place("2011", "achieving", "query sequences"),),
        says="A sequence of queries costs the sum of its sensitivities; a pair has standard deviation 2√2/ε each.",
    ),
    Row(
        number=37,
        places=(Place("2011", "achieving", "histogram queries"), Place("slides", "applying", "histograms")),
        says="A histogram or contingency table has sensitivity 1, so each cell gets Lap(1/ε).",
    ),
    Row(
        number=38,
        places=(Place("2006", "3.2", "disjoint analyses"),),
        says="Analyses of disjoint parts cost twice their maximum if rows are replaced, and their maximum otherwise.",
    ),
    Row(
        number=39,
        places=(Place("2011", "achieving", "symmetric noise"),),
        says="Noise that is never negative cannot be private.",
    ),
    Row(
        number=40,
        places=(
            Place("2011", "privacy", "randomized response"),
            Place("2006", "4.1"),
            Place("2011", "how", "input perturbation"),
        ),
        says="A bit that is told truthfully with probability ¾ loses ln 3; the error of a count grows with √n.",
    ),
    Row(
        number=41,
        places=(Place("2011", "privacy", "logical AND"),),
        says="The AND of two randomized bits loses ln 9, not ln 3.",
    ),
    Row(
        number=95,
        places=(Place("2006", "2", "public n"),),
        says="If rows are replaced, the number of rows is public.",
    ),
    Row(
        number=99,
        places=(Place("2006", "1", "binomial noise"),),
        says="Binomial noise can take the place of Laplace noise, at a loss that depends on the tails.",
    ),
    Row(
        number=100,
        places=(Place("slides", "accuracy", "simultaneous"),),
        says="The accuracy of a whole answer is that of its largest error.",
    ),
)
