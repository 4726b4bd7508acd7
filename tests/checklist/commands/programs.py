"""Rows 55–62 and 111: private programs, synthetic data, streams and workloads."""

from tests.checklist.record import Place, Row

RECORDS = (
    Row(
        number=55,
        places=(Place("2011", "programs"),),
        says="Noisy sums alone suffice for principal components, decision trees, association rules and"
        " statistical-query learning.",
    ),
    Row(
        number=56,
        places=(Place("2011", "programs", "k-means"),),
        says="A round of k-means has sensitivity d + 1, so N rounds need Lap((d + 1)·N/ε).",
    ),
    Row(
        number=57,
        places=(Place("2011", "programs", "k-means, unknown rounds"),),
        says="If the number of rounds is not known, each may spend half of what is left.",
    ),
    Row(
        number=58,
        places=(Place("2011", "synthetic"),),
        says="A small database that is selected by the exponential mechanism approximates all counts of a class.",
    ),
    Row(
        number=59,
        places=(Place("2011", "synthetic", "limits"),),
        says="No synthetic table can answer too many sums too accurately.",
    ),
    Row(
        number=60,
        places=(Place("2011", "pan-privacy"),),
        says="The state of a stream can be private, too; that of a Count-Min sketch or a sample is not.",
    ),
    Row(
        number=61,
        places=(Place("2011", "pan-privacy", "density estimation"),),
        says="The share of a universe that appears in a stream can be estimated from one noisy bit for each element.",
    ),
    Row(
        number=62,
        places=(Place("2011", "geometry"),),
        says="Dependent queries need less noise than the sum of their sensitivities suggests.",
    ),
    Row(
        number=111,
        places=(Place("2011", "synthetic", "any concept class"),),
        says="The small database works for any class, with m = O(VC/γ²) rows.",
    ),
)
