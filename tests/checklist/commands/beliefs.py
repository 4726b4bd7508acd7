"""What an adversary can come to believe."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=11,
        places=(Place("2014", "2", "Theorem 2.2"), Place("2014", "3.2")),
        says="ε-privacy bounds the statistical difference between the beliefs of games 0 and i; tanh(ε/2) is exact.",
        lives="`hubbub explain beliefs`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain beliefs -e 1",
        figures=(
            Figure("bound", r"^ε-private ⇒ beliefs within +([\d.]+)", (0.4621, 0.4623), "tanh(½) = 0.46212"),
            Figure(
                "attained", r"^ε-private ⇒ beliefs within +[\d.]+ +([\d.]+)", "0.462", "response on an exclusive or"
            ),
            Figure("printed", r"^ε-private ⇒ beliefs within +[\d.]+ +[\d.]+ +([\d.]+)", (1.718, 1.719), "e − 1"),
        ),
    ),
    Row(
        number=12,
        places=(Place("2014", "2", "Theorem 2.2, converse"),),
        says="If no belief moves by more than s, the mechanism is 4·artanh(s)-private.",
        lives="`hubbub explain beliefs`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain beliefs -e 0.4",
        figures=(
            Figure(
                "s of randomized response",
                r"changes beliefs by s = ([\d.]*\d)",
                (0.0996, 0.0997),
                "tanh(0.1) = 0.09967",
            ),
            Figure("4·artanh(s)", r"beliefs within s ⇒ private at +([\d.]+)", (0.4, 0.4001), "ε = 0.4"),
            Figure(
                "printed: 3s",
                r"beliefs within s ⇒ private at +[\d.]+ +[\d.]+ +([\d.]+)",
                "0.299",
                "less than 0.4: false",
            ),
        ),
    ),
    Row(
        number=13,
        places=(Place("2014", "2", "Definition 2.3, Theorem 2.4(1)"), Place("2014", "3.4")),
        says="With δ below ε²/n, (ε, δ)-privacy bounds beliefs by e^(3ε) − 1 + 2√(nδ), except with probability 4√(nδ).",
        lives="`hubbub explain approximate`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain approximate -e 0.1 --delta 1e-12 --n 1000000",
        figures=(
            Figure("as printed", r"^as printed +([\d.]+)", "0.352", "e^0.3 − 1 + 2√(nδ) = 0.3519"),
            Figure("except with probability", r"^as printed +[\d.]+ +([\d.]+)", "0.004", "4√(nδ)"),
            Figure("ours", r"^this one +([\d.]+)", (0.04996, 0.3519), "between tanh(ε/2) and the printed bound"),
        ),
    ),
    Row(
        number=14,
        places=(Place("2014", "2", "Theorem 2.4(2)"),),
        says="The converse with δ, (3ε, 2δ) in print, fails for randomized response at ε = 0.4.",
        lives="`hubbub explain converse`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain converse",
        figures=(
            Figure("corrected", r"^corrected: 4·artanh\(s\) +([\d.]+)", (0.4, 0.4003), "4·artanh(0.0997) = 0.40014"),
            Figure("printed", r"2.4\(2\): 3s +([\d.]+)", "0.299", "3 × 0.0997"),
            Figure(
                "δ of the counterexample at 3s",
                r"its δ is ([\d.]*\d)",
                (0.05, 0.06),
                "(e^0.4 − e^0.2991)/(1 + e^0.4) = 0.0575; 0 as printed",
            ),
        ),
    ),
    Row(
        number=22,
        places=(Place("2014", "A.2", "equations 4 and 5"),),
        says="A test of level α whether a person is in the data has power at most e^ε·α + δ.",
        lives="`hubbub explain`; [meaning.md](meaning.md)",
        command="hubbub explain -e 1 --json",
        figures=(
            Figure("power at level 5%", "$.power", "0.1359", "e·0.05"),
            Figure("best guess", "$.guess", "0.7311", "e/(1 + e)"),
        ),
        quick=True,
    ),
    Row(
        number=23,
        places=(Place("2011", "dalenius"), Place("2014", "2", "Example 1")),
        says="Learning about the world is no breach: the smoking study, Dalenius's goal and Turing's height.",
        lives="`hubbub explain smoking`, `dalenius`, `height`; [meaning.md](meaning.md)",
        command="""
hubbub explain smoking
hubbub explain height
""",
        figures=(
            Figure(
                "one row changes a belief by at most",
                r"one row changes any belief by at most ([\d.]+) percent",
                "24.5",
                "tanh(¼), rounded up",
            ),
            Figure(
                "Turing's height, mm",
                r"(?:height|Turing)[^:]*: (\d+) mm",
                (1650, 1750),
                "the mean + 50 = 1700; margin 7",
            ),
        ),
    ),
    Row(
        number=107,
        places=(Place("2011", "dalenius", "one-time pad"),),
        says="Any useful answer can serve as a one-time pad: with the right auxiliary information it reveals a secret.",
        lives="`hubbub explain pad`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain pad -e 0.5",
        figures=(
            Figure(
                "right guesses with the release",
                r"^ *0.5 +([\d.]+%)",
                (90, 93),
                "even or odd bucket of width 20, noise of scale 2",
            ),
            Figure("without it", r"best guess at her secret is right with ([\d.]+%)", "50", "a one-time pad"),
        ),
    ),
    Row(
        number=108,
        places=(Place("2011", "privacy", "consequences"),),
        says="Joining the data makes no event, such as a raised premium, more than e^ε times as likely.",
        lives="`hubbub explain insurer`, `hubbub explain`, data sheets; [meaning.md](meaning.md)",
        command="""
hubbub explain insurer -e 1
hubbub explain -e 1
""",
        figures=(
            Figure("10% becomes at most", r"^ +10.0% +([\d.]+%)", "27.2", "10% × e"),
            Figure("factor", r"Joining the data makes .* more than ([\d.]+) times", "2.72", "e"),
        ),
    ),
    Row(
        number=112,
        places=(Place("2014", "2", "Remark 1, information"),),
        says="Semantic privacy can be measured in bits learned about a person.",
        lives="`hubbub explain information`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain information -e 1",
        figures=(
            Figure(
                "bits about a yes-or-no fact",
                r"yes-or-no fact +([\d.]+)",
                "0.1601",
                "1 − H(e/(1 + e)) = 0.1601 for randomized response",
            ),
            Figure("by the definition alone", r"ε·log₂e = ([\d.]*\d)", "1.443", "1/ln 2"),
        ),
    ),
)
