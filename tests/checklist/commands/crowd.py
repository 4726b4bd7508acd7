"""Rows 76–94, 101–103 and 105: the crowd sanitizers of 2005, which are not differentially private."""

from tests.checklist.record import Place, Row

RECORDS = (
    Row(
        number=76,
        places=(Place("2005", "2", "Definition 1"),),
        says="A guess isolates a row if fewer than t rows lie within c times its distance.",
    ),
    Row(
        number=77,
        places=(Place("2005", "4.1"),),
        says="An adversary who names a ball isolates somewhere if, and only if, one who names its center does.",
    ),
    Row(
        number=78,
        places=(Place("2005", "3", "perfect sanitization"),),
        says="No useful sanitizer is perfect: some auxiliary information lets its output help an isolator.",
    ),
    Row(
        number=79,
        places=(Place("2005", "4", "recursive histogram"),),
        says="Cells with 2t rows or more are halved in every dimension, and exact counts are published.",
    ),
    Row(
        number=80,
        places=(Place("2005", "4", "Theorem 1, Proposition 2"),),
        says="On uniform data, the chance to isolate falls exponentially with the dimension.",
    ),
    Row(
        number=81,
        places=(Place("2005", "4.2", "Lemma 1"),),
        says="A ball of too little or too much mass isolates with probability at most ε.",
    ),
    Row(
        number=82,
        places=(Place("2005", "4.2", "Lemma 2"),),
        says="Growing a ball by a constant multiplies the mass in a cell exponentially in the dimension.",
    ),
    Row(
        number=83,
        places=(Place("2005", "4", "Remark 2"),),
        says="Without smooth data, histograms isolate with constant probability.",
    ),
    Row(
        number=84,
        places=(Place("2005", "4", "Remark 4"),),
        says="An adversary who knows half of the rows isolates hardly more.",
    ),
    Row(
        number=85,
        places=(Place("2005", "5"),),
        says="Each row is moved within, onto, or by Gaussian noise as wide as the radius of its t nearest neighbors.",
    ),
    Row(
        number=86,
        places=(Place("2005", "5.1", "Theorem 2"),),
        says="The best clusters of sanitized rows have at most three times the diameter.",
    ),
    Row(
        number=87,
        places=(Place("2005", "5.1", "privacy"),),
        says="Two rows that hide each other, or one row among known ones, are rarely isolated in high dimension.",
    ),
    Row(
        number=88,
        places=(Place("2005", "5.1", "lower bound"),),
        says="A published row isolates its original with probability Ω(e^(−d)/log(n/t)).",
    ),
    Row(
        number=89,
        places=(Place("2005", "5.2", "Theorem 3"),),
        says="Mixtures of Gaussians are learned from sanitized rows by projection and single linkage.",
    ),
    Row(
        number=90,
        places=(Place("2005", "5.2", "Lemmas 3 and 4"),),
        says="The systematic and the random error of that projection are bounded.",
    ),
    Row(
        number=91,
        places=(Place("2005", "6", "Lemma 5"),),
        says="Noise as wide as the cells of a histogram of the other half hides a row in high dimension.",
    ),
    Row(
        number=92,
        places=(Place("2005", "7", "few attributes"),),
        says="A guess in k of d attributes isolates if it is nearer by a factor φ(k) = 2^(d/k).",
    ),
    Row(
        number=93,
        places=(Place("2005", "1.2", "k-anonymity"),),
        says="k-anonymity and suppression of low counts leak by what they choose to show.",
    ),
    Row(
        number=94,
        places=(Place("2005", "7", "changing data"),),
        says="Sanitizing again whenever data change lets the noise be averaged out.",
    ),
    Row(
        number=101,
        places=(Place("2005", "4", "Remark 4, attributes"),),
        says="The adversary may know some attributes of a row.",
    ),
    Row(
        number=102,
        places=(Place("2005", "4", "Remark 4, mixtures"),),
        says="The histogram hides rows of mixtures of cubes, too.",
    ),
    Row(
        number=103,
        places=(Place("2005", "7", "utility"), Place("2005", "5")),
        says="What survives sanitizing: histograms, covariance, and the validity of tests.",
    ),
    Row(
        number=105,
        places=(Place("2005", "7", "categorical data"),),
        says="Categories need a metric before they can be sanitized.",
    ),
)
