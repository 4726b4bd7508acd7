"""Rows 1–10: definitions of privacy and what follows from them."""

from tests.checklist.record import Place, Row

RECORDS = (
    Row(
        number=1,
        places=(
            Place("2006", "2", "Definition 1"),
            Place("slides", "definition"),
            Place("2011", "privacy", "Definition 1"),
            Place("2014", "1.1", "Definition 1.1"),
        ),
        says="The probabilities of any output under neighboring datasets differ by a factor of at most e^ε.",
    ),
    Row(
        number=2,
        places=(Place("2014", "1.1", "Definition 1.2"),),
        says="The factor e^ε may be exceeded by a probability of δ in all.",
    ),
    Row(
        number=3,
        places=(Place("2006", "2", "Definition 1, transcripts"),),
        says="The guarantee holds for the whole transcript, whichever queries follow from earlier answers.",
    ),
    Row(
        number=4,
        places=(Place("2011", "privacy"),),
        says="Usual values of ε are 0.01, 0.1, ln 2 and ln 3.",
    ),
    Row(
        number=5,
        places=(Place("2006", "2", "Example 2"), Place("2014", "2", "Remark 1")),
        says="A small statistical difference protects nobody: publishing one random record has a difference of 1/n and"
        " no finite ε.",
    ),
    Row(
        number=6,
        places=(Place("2006", "2"),),
        says="Leakage is inherent: with ε far below 1/n, answers about any two datasets of n rows are almost alike.",
    ),
    Row(
        number=7,
        places=(Place("2006", "A", "Definition 5"), Place("2011", "privacy")),
        says="A group of k people loses at most k·ε.",
    ),
    Row(
        number=8,
        places=(Place("2006", "A", "Definition 4, Claim 2"),),
        says="A private mechanism can be simulated without a person's row within ε, and a simulatable one is private"
        " within 2ε.",
    ),
    Row(
        number=9,
        places=(Place("2006", "A", "Definition 6, Claim 3"),),
        says="Privacy is equivalent to this: an adversary who knows all other rows changes their belief about the last"
        " one by a factor of at most e^ε.",
    ),
    Row(
        number=10,
        places=(Place("2014", "2", "equations 1 and 2"),),
        says="In game 0 the adversary updates a prior by the answer; in game i by the answer that leaves person i out.",
    ),
)
