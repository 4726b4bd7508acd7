"""Statements of the papers that are wrong or ambiguous in print, and what holds instead."""

from dataclasses import dataclass

from tests.checklist.record import Paper


@dataclass(frozen=True)
class Erratum:
    """One statement: where it stands, what is printed, what holds, and the rows that show both."""

    paper: Paper
    place: str
    printed: str
    holds: str
    rows: tuple[int, ...]


ERRATA = (
    Erratum(
        "2005",
        "Lemma 4",
        "The random error exceeds its mean by c standard deviations with probability e^(−c²).",
        "The exponent is −c²/2: for k = 1 and c = 2 the probability is 0.0455, above the printed 0.0366.",
        (90,),
    ),
    Erratum(
        "2005",
        "Sections 4–6",
        "The sanitizers preserve privacy.",
        "They release exact counts or noise whose radius depends on the data, so their ε is infinite. They are labeled"
        " “not differentially private” wherever they appear.",
        (79, 85, 91),
    ),
    Erratum(
        "2006",
        "Section 2",
        "Neighbors differ in one entry; the slides and Dwork (2011) add or remove one row.",
        "A histogram has sensitivity 2 under the first relation and 1 under the second. The relation is declared"
        " (`relation: replace` or `add_remove`).",
        (1, 28, 38),
    ),
    Erratum(
        "2006",
        "Sections 2, 3.1",
        "Lap(λ) has standard deviation λ.",
        "It has standard deviation √2·λ; λ is its mean absolute deviation. (The same slip is in Kasiviswanathan and"
        " Smith 2014, Section 4.)",
        (24, 26),
    ),
    Erratum(
        "2006",
        "Equation 4",
        "h ∝ exp(ε·d/(2S)), used as h with ε/S.",
        "The exponent needs a minus sign (as printed, the mechanism moves away from the truth), and it is divided by S"
        " once, not twice.",
        (46,),
    ),
    Erratum(
        "2006",
        "Section 3.3, Hamming cube",
        "Flip each bit with probability ½ − ε/(2S).",
        "This costs about 2ε (0.2007 at S = 1, ε = 0.1). The probability that costs ε is 1/(1 + e^(ε/S)).",
        (47,),
    ),
    Erratum(
        "2006",
        "Section 3.2, covariance",
        "The covariance matrix has sensitivity 8γ²/n; a sign in equation 2 is flipped.",
        "6γ²/n is enough: the maximum is 6γ²(n − 1)/n² for two columns or more and 4γ²(n − 1)/n² for one.",
        (49,),
    ),
    Erratum(
        "2006",
        "Lemma 1",
        "A sampling algorithm that is right with probability at least β implies low sensitivity.",
        "It must be right with probability greater than β: at β itself, an algorithm that reads one entry or guesses"
        " one of two distant values is a counterexample.",
        (53,),
    ),
    Erratum(
        "2006",
        "Claim 1, Lemma 2",
        "The expected product of signs and the δ of Lemma 2.",
        "The expected product is −1/(2^d − 1), so the claim holds with factor 1; δ must be (2ε̃²/(α·2^d))^(1/3); and"
        " “δ-good” needs an absolute value.",
        (64,),
    ),
    Erratum(
        "slides",
        "Notes",
        "Gaussian noise of σ ~ Δf·ln(1/δ)/ε.",
        "The logarithm needs a root, and the sensitivity is L2. At (1, 1e-5): 11.5 as printed, 4.84 by the classic"
        " formula, 3.731 exactly.",
        (2, 32),
    ),
    Erratum(
        "slides",
        "reportNoisyMax",
        "With noise Lap(1/ε) it is ε-private.",
        "Only for counts that all move in one direction, under add/remove. If rows are replaced, the loss tends to 2ε"
        " (1.98 at ε = 1).",
        (42,),
    ),
    Erratum(
        "2011",
        "Differential privacy",
        "“Symmetric difference at most 1” covers both relations.",
        "Replacing a row has symmetric difference 2.",
        (1, 28),
    ),
    Erratum(
        "2011",
        "When noise makes no sense",
        "The exponential mechanism selects y with probability ∝ exp(u·ε/Δu).",
        "This costs up to 2ε (1.977 for 100 candidates at ε = 1). The exponent is ε·u/(2Δu), or ε·u/Δu if one row moves"
        " all scores in one direction.",
        (44, 45),
    ),
    Erratum(
        "2011",
        "k-means",
        "For an unknown number of rounds, noise of parameter (d + 1)(ε/2), then (d + 1)(ε/4), ….",
        "The fraction is inverted: the scales are (d + 1)/(ε/2), (d + 1)/(ε/4), ….",
        (56, 57),
    ),
    Erratum(
        "2011",
        "Pan-privacy",
        "The output is 4(θ − ½)/ε + Lap(1/(ε·|X|)).",
        "Once the state was seen, this noise is too small (a loss of 3.7 at ε = 1): it must be Lap(4/(ε²·|X|)), or be"
        " added to θ before scaling. The state itself needs ε ≤ 1.5936.",
        (61,),
    ),
    Erratum(
        "2011",
        "Achieving differential privacy",
        "The expected error of a count is √2/ε.",
        "This is the root of the mean square error; the mean absolute error is 1/ε.",
        (26, 37),
    ),
    Erratum(
        "2014",
        "Equation 6, Theorem 2.4(2)",
        "(½ + ε)/(½ − ε) ≤ e^(3ε).",
        "False for every ε > 0: the logarithm is at least 4ε. Randomized response at ε = 0.4 is 0.0997-semantically"
        " private, and 3 × 0.0997 < 0.4. What holds and is attained: s-semantic privacy implies 4·artanh(s)-privacy."
        " “ε/2-semantic implies 3ε” holds up to ε = 0.8586.",
        (12, 14),
    ),
    Erratum(
        "2014",
        "Theorem 2.2",
        "Printed with two different bounds.",
        "Both hold and neither is tight: the statistical difference is at most tanh(ε/2), attained by randomized"
        " response on an exclusive or.",
        (11,),
    ),
    Erratum(
        "2014",
        "Lemma 3.3(2)",
        "Exceptions of mass 2δ/e^ε, and 2δ/(ε·e^ε).",
        "Both are too small. The tight value is δ(1 + e^(−2ε))/(1 − e^(−ε)); the 2δ/ε that is used later holds up to"
        " ε = 1.4525.",
        (16, 18),
    ),
    Erratum(
        "2014",
        "Lemma 3.4",
        "Conditional distributions are (3ε, d)-close except with probability 2δ/d + 2δ/(ε·e^ε).",
        "False from about ε = ln 2 on: one of the two sets of bad answers is bounded under the wrong distribution. At"
        " ε = 1, δ = 0.001, d = 0.0999 a bad answer has probability 0.0245, not 0.0219. What holds:"
        " (1 + e^ε)δ/d + δ + δ(1 + e^(−2ε))/(1 − e^(−ε)).",
        (13, 18),
    ),
    Erratum(
        "2014",
        "Appendix 1.2",
        "Gaussian noise of σ² = ln(1/δ)/ε² is (ε, δ)-private.",
        "Not at (1, 1e-5), where δ is 4.3e-5; it is enough at ε = 0.1.",
        (21,),
    ),
    Erratum(
        "2014",
        "Theorem 4.2",
        "ε′ = e^(3ε) − 1 + √(nδ₂), where Theorem 2.4 has 2√(nδ).",
        "Their common proof gives √(nδ). Both hold wherever they say something; the bound of row 115 is below both.",
        (19, 117),
    ),
)
