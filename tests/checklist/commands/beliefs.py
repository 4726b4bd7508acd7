"""Rows 11–23, 107, 108, 112, 114, 115 and 117: what an adversary can come to believe."""

from tests.checklist.record import Place, Row

RECORDS = (
    Row(
        number=11,
        places=(Place("2014", "2", "Theorem 2.2"), Place("2014", "3.2")),
        says="ε-privacy bounds the statistical difference between the beliefs of games 0 and i; tanh(ε/2) is exact.",
    ),
    Row(
        number=12,
        places=(Place("2014", "2", "Theorem 2.2, converse"),),
        says="If no belief moves by more than s, the mechanism is 4·artanh(s)-private.",
    ),
    Row(
        number=13,
        places=(Place("2014", "2", "Definition 2.3, Theorem 2.4(1)"), Place("2014", "3.4")),
        says="With δ below ε²/n, (ε, δ)-privacy bounds beliefs by e^(3ε) − 1 + 2√(nδ), except with probability 4√(nδ).",
    ),
    Row(
        number=14,
        places=(Place("2014", "2", "Theorem 2.4(2)"),),
        says="The converse with δ, (3ε, 2δ) in print, fails for randomized response at ε = 0.4.",
    ),
    Row(
        number=15,
        places=(Place("2014", "3.1", "Lemma 3.3(1, 3, 4)"), Place("2014", "A.1")),
        says="Pointwise closeness implies indistinguishability; joint distributions add δ + δ₁.",
    ),
    Row(
        number=16,
        places=(Place("2014", "3.1", "Lemma 3.3(2)"), Place("2014", "A.1", "part 2")),
        says="(ε, δ)-close distributions are pointwise within e^(2ε), except on a mass proportional to δ.",
    ),
    Row(
        number=17,
        places=(Place("2014", "3.1", "Lemma 3.3(5)"),),
        says="(ε, δ)-close distributions have a statistical difference of at most (e^ε − 1 + 2δ)/(e^ε + 1).",
    ),
    Row(
        number=18,
        places=(Place("2014", "3.3", "Lemma 3.4"),),
        says="If joint distributions are close, so are most conditional ones, at 3ε.",
    ),
    Row(
        number=19,
        places=(Place("2014", "4", "Definition 4.1, Theorem 4.2"),),
        says="Where only most datasets have close neighbors, beliefs are bounded for priors that expect such datasets.",
    ),
    Row(
        number=20,
        places=(Place("2014", "4", "Definition 4.3, Corollary 4.4"),),
        says="Noise that is calibrated to local sensitivity protects under such priors, and leaks under differential"
        " privacy.",
    ),
    Row(
        number=21,
        places=(Place("2014", "A.2"),),
        says="A belief that ignores the real data can be surprised without bound by an (ε, δ)-private answer.",
    ),
    Row(
        number=22,
        places=(Place("2014", "A.2", "equations 4 and 5"),),
        says="A test of level α whether a person is in the data has power at most e^ε·α + δ.",
    ),
    Row(
        number=23,
        places=(Place("2011", "dalenius"), Place("2014", "2", "Example 1")),
        says="Learning about the world is no breach: the smoking study, Dalenius's goal and Turing's height.",
    ),
    Row(
        number=107,
        places=(Place("2011", "dalenius", "one-time pad"),),
        says="Any useful answer can serve as a one-time pad: with the right auxiliary information it reveals a secret.",
    ),
    Row(
        number=108,
        places=(Place("2011", "privacy", "consequences"),),
        says="Joining the data makes no event, such as a raised premium, more than e^ε times as likely.",
    ),
    Row(
        number=112,
        places=(Place("2014", "2", "Remark 1, information"),),
        says="Semantic privacy can be measured in bits learned about a person.",
    ),
    Row(
        number=114,
        places=(Place("2014", "3.1", "point-wise privacy"),),
        says="The chance that the odds move by more than e^ε is not δ; for Gaussian noise it is many times δ.",
    ),
    Row(
        number=115,
        places=(Place("2014", "3.4", "sharper"),),
        says="The bound on beliefs of Theorem 2.4 can be sharpened by splitting the loss at ε + η.",
    ),
    Row(
        number=117,
        places=(Place("2014", "4", "Theorem 4.2, constant"),),
        says="Theorem 4.2 prints √(nδ₂) where Theorem 2.4 has 2√(nδ); the factor 2 belongs in both.",
    ),
)
