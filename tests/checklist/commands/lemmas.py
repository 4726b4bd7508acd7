"""Beliefs where there is a δ, and local sensitivity: the lemmas of 2014."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=15,
        places=(Place("2014", "3.1", "Lemma 3.3(1, 3, 4)"), Place("2014", "A.1")),
        says="Pointwise closeness implies indistinguishability; joint distributions add δ + δ₁.",
        lives="`hubbub explain lemma`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain lemma",
        figures=(
            Figure(
                "part 1: δ of sets", r"^1: closeness .*points +([\d.]+)", (0, 0.0348), "at most the mass of exceptions"
            ),
            Figure(
                "parts 3, 4: δ of joint distributions",
                r"^3, 4: .*distributions +([\d.]+)",
                (0.0199, 0.02),
                "1 − (1 − δ)(1 − δ₁) = 0.0199 ≤ δ + δ₁",
            ),
        ),
    ),
    Row(
        number=16,
        places=(Place("2014", "3.1", "Lemma 3.3(2)"), Place("2014", "A.1", "part 2")),
        says="(ε, δ)-close distributions are pointwise within e^(2ε), except on a mass proportional to δ.",
        lives="`hubbub explain lemma`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain lemma -e 0.5 --delta 0.01",
        figures=(
            Figure("mass of the exceptions", r"^2: .*2ε +([\d.]+)", "0.0348", "δ(1 + e^(−1))/(1 − e^(−½)) = 0.03476"),
            Figure("printed", r"^2: .*2ε +[\d.]+ +[\d.]+ +([\d.]+)", "0.0243", "2δ/(ε·e^ε): too small"),
        ),
    ),
    Row(
        number=17,
        places=(Place("2014", "3.1", "Lemma 3.3(5)"),),
        says="(ε, δ)-close distributions have a statistical difference of at most (e^ε − 1 + 2δ)/(e^ε + 1).",
        lives="`hubbub explain lemma`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain lemma -e 0.5 --delta 0.01",
        figures=(
            Figure("bound", r"^5: statistical difference +[\d.]+ +([\d.]+)", "0.2525", "(e^½ − 1 + 0.02)/(e^½ + 1)"),
            Figure("printed", r"^5: statistical difference +[\d.]+ +[\d.]+ +([\d.]+)", "0.6587", "e^½ − 1 + 0.01"),
        ),
    ),
    Row(
        number=18,
        places=(Place("2014", "3.3", "Lemma 3.4"),),
        says="If joint distributions are close, so are most conditional ones, at 3ε.",
        lives="`hubbub explain conditioning`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain conditioning",
        figures=(
            Figure(
                "bound",
                r"^bound +([\d.]+)",
                "0.0401",
                "(1 + e^ε)δ/d + δ + δ(1 + e^(−2ε))/(1 − e^(−ε)) = 0.0201 + 0.0001 + 0.0199",
            ),
            Figure(
                "answers that break it", r"^answers that break .*example +([\d.]+)", (0, 0.0401), "at most the bound"
            ),
            Figure("printed", r"^as printed +([\d.]+)", "0.0398", "2δ/d + 2δ/(ε·e^ε)"),
        ),
    ),
    Row(
        number=19,
        places=(Place("2014", "4", "Definition 4.1, Theorem 4.2"),),
        says="Where only most datasets have close neighbors, beliefs are bounded for priors that expect such datasets.",
        lives="`hubbub explain local`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain local",
        figures=(
            Figure("δ₂", r"δ₂ = δ \+ δ₁ = (\S+) everywhere", "4e-12", "1e-12 + 3e-12"),
            Figure("except with probability", r"^3e-12 +[\d.]+ +([\d.]+)", "0.008", "4√(nδ₂)"),
        ),
    ),
    Row(
        number=20,
        places=(Place("2014", "4", "Definition 4.3, Corollary 4.4"),),
        says="Noise that is calibrated to local sensitivity protects under such priors, and leaks under differential"
        " privacy.",
        lives="`hubbub explain local-sensitivity`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain local-sensitivity -e 0.5 --set gap=8",
        figures=(
            Figure(
                "noise for sensitivity 1: loss on split data", r"^a sensitivity of 1 +\d+ +([\d.]+)", "4", "8 × 0.5"
            ),
            Figure("noise for the worst case", r"^the worst case, 8 +\d+ +([\d.]+)", "0.5", "ε"),
        ),
    ),
    Row(
        number=21,
        places=(Place("2014", "A.2"),),
        says="A belief that ignores the real data can be surprised without bound by an (ε, δ)-private answer.",
        lives="`hubbub explain oblivious`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain oblivious -e 0.5 --delta 1e-6 --n 100",
        figures=(
            Figure(
                "likelihood ratio",
                r"^Gaussian with the variance as printed.*² +([\d.]+)",
                "0.165",
                "exp((1 − 2n)/(2σ²)), σ² = ln(1/δ)/ε²",
            ),
            Figure(
                "posterior",
                r"^Gaussian with the variance as printed.*² +[\d.]+ +([\d.]+%)",
                "85.8",
                "1/(1 + 0.1652)",
            ),
        ),
    ),
    Row(
        number=114,
        places=(Place("2014", "3.1", "point-wise privacy"),),
        says="The chance that the odds move by more than e^ε is not δ; for Gaussian noise it is many times δ.",
        lives="`hubbub explain`, `hubbub check`, data sheets; [meaning.md](meaning.md)",
        command="hubbub explain -e 1 --delta 1e-5",
        figures=(
            Figure(
                "chance of odds beyond e",
                r"Gaussian noise of this ε and δ, it is ([\d.e-]*\d)",
                (1.6e-4, 1.65e-4),
                "Φ(1/(2σ) − σ) at σ = 3.7306: 1.61e-4",
            ),
        ),
    ),
    Row(
        number=115,
        places=(Place("2014", "3.4", "sharper"),),
        says="The bound on beliefs of Theorem 2.4 can be sharpened by splitting the loss at ε + η.",
        lives="`hubbub explain approximate`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain approximate -e 1 --delta 1e-12 --n 1000000",
        figures=(Figure("ours", r"^this one +([\d.]+)", (0.4621, 0.55), "above tanh(½); the earlier bound had 0.906"),),
    ),
    Row(
        number=117,
        places=(Place("2014", "4", "Theorem 4.2, constant"),),
        says="Theorem 4.2 prints √(nδ₂) where Theorem 2.4 has 2√(nδ); their common proof gives the former.",
        lives="`hubbub explain local`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain local",
        figures=(
            Figure("what the proof gives", r"so here ([\d.]*\d) in all", "0.3519", "e^0.3 − 1 + √(10⁶ × 4e-12)"),
            Figure("ours", r"^3e-12 +([\d.]+)", (0.04996, 0.3519), "between tanh(ε/2) and the printed bound"),
        ),
    ),
)
