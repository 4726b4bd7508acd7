"""Rows 42–54, 97, 110, 113 and 116: selection, metric spaces, graphs and local sensitivity."""

from tests.checklist.record import Place, Row

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
    ),
    Row(
        number=44,
        places=(Place("2011", "selection", "exponential mechanism"),),
        says="Selecting y with probability in proportion to exp(ε·u/(2Δu)) is private, and seldom far from the best.",
    ),
    Row(
        number=45,
        places=(Place("2011", "selection", "hyperplane"),),
        says="A hyperplane can be selected by the number of points that it classifies correctly.",
    ),
    Row(
        number=46,
        places=(Place("2006", "3.3", "equation 4"),),
        says="In a metric space, an output with density in proportion to exp(−ε·d/(2S)) is private.",
    ),
    Row(
        number=47,
        places=(Place("2006", "3.3", "Hamming cube"),),
        says="A string of bits is private if each bit is flipped with probability 1/(1 + e^(ε/S)).",
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
    ),
    Row(
        number=51,
        places=(Place("2006", "3.2", "minimum cut"),),
        says="The weight of a minimum cut has sensitivity 1 for edge weights in [0, 1].",
    ),
    Row(
        number=52,
        places=(Place("2006", "3.2", "minimum spanning tree"),),
        says="The weight of a minimum spanning tree has sensitivity 1 for edge weights in [0, 1].",
    ),
    Row(
        number=53,
        places=(Place("2006", "3.2", "Lemma 1"),),
        says="A function that a few random reads approximate has low sensitivity.",
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
