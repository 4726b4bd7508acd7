"""Definitions of privacy, and what follows from them."""

from tests.checklist.record import Figure, Place, Row

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
        lives="`hubbub explain indistinguishable`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain indistinguishable",
        figures=(
            Figure("largest log-ratio", r"largest log-ratio of these answers is ([\d.]*\d)", "1.099", "ln 3 = 1.0986"),
            Figure("ratio", r"^ +1 +0.25 +0.75 +(\d)", "3", "¾ against ¼"),
        ),
        quick=True,
    ),
    Row(
        number=2,
        places=(Place("2014", "1.1", "Definition 1.2"),),
        says="The factor e^ε may be exceeded by a probability of δ in all.",
        lives="`hubbub explain indistinguishable`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain indistinguishable -e 1 --delta 1e-5 --set mechanism=gaussian",
        figures=(
            Figure("variance", r"variance ([\d.]*\d)", (13.917, 14.2), "σ = 3.7306 is the least at (1, 1e-5): 13.917"),
        ),
    ),
    Row(
        number=3,
        places=(Place("2006", "2", "Definition 1, transcripts"),),
        says="The guarantee holds for the whole transcript, whichever queries follow from earlier answers.",
        lives="`hubbub budget`, `hubbub explain --dataset`; [0003](decisions/0003-accounting.md)",
        language="python",
        command="""
import hubbub
with hubbub.open() as h:  # the second query depends on the first answer
    first = h.query("SELECT COUNT(*) AS n FROM bits WHERE a = 1", epsilon="0.1").rows[0][0]
    column = "b" if first > 500 else "c"
    h.query(f"SELECT COUNT(*) AS n FROM bits WHERE {column} = 1", epsilon="0.2")
    print(h.budget())
""",
        figures=(
            Figure("spent", r"spent ([\d.]+) of ε=100, δ=1e-05, [\d.]+ remaining, for you on bits", "0.3", "0.1 + 0.2"),
        ),
    ),
    Row(
        number=4,
        places=(Place("2011", "privacy"),),
        says="Usual values of ε are 0.01, 0.1, ln 2 and ln 3.",
        lives="`hubbub explain`: its table compares ε with usual values and deployments",
        command="""
for e in 0.01 0.1 0.6931 1.0986; do hubbub explain -e $e | sed -n "s/.* odds of any fact/$e: odds/p"; done
""",
        figures=(
            Figure("0.01: factor of the odds", r"^0.01: .* at most ([\d.]*\d)", "1.02", "e^0.01 = 1.0101, rounded up"),
            Figure("0.1", r"^0.1: .* at most ([\d.]*\d)", "1.11", "e^0.1 = 1.1052, rounded up"),
            Figure("ln 2", r"^0.6931: .* at most ([\d.]*\d)", "2", "e^ε"),
            Figure("ln 3", r"^1.0986: .* at most ([\d.]*\d)", "3", "e^ε"),
        ),
    ),
    Row(
        number=5,
        places=(Place("2006", "2", "Example 2"), Place("2014", "2", "Remark 1")),
        says="A small statistical difference protects nobody: publishing one random record has a difference of 1/n and"
        " no finite ε.",
        lives="`hubbub explain difference`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain difference --n 100",
        figures=(
            Figure("statistical difference", r"statistical difference of neighbors +([\d.]+)", "0.01", "1/n"),
            Figure("ε", r"^ε +(\S+)", "∞", "an output that one dataset cannot have"),
        ),
    ),
    Row(
        number=6,
        places=(Place("2006", "2"),),
        says="Leakage is inherent: with ε far below 1/n, answers about any two datasets of n rows are almost alike.",
        lives="`hubbub explain`, and a warning in `hubbub plan`; [meaning.md](meaning.md)",
        command="hubbub explain -e 0.0001 --n 1000",
        figures=(
            Figure(
                "right guesses about all data",
                r"at most ([\d.]+) of 100 guesses can tell",
                "52.5",
                "½ + ½·tanh(nε/2) = ½ + ½·0.04996",
            ),
        ),
    ),
    Row(
        number=7,
        places=(Place("2006", "A", "Definition 5"), Place("2011", "privacy")),
        says="A group of k people loses at most k·ε.",
        lives="`hubbub explain composition`, page *Explain*; [meaning.md](meaning.md)",
        command="""
hubbub explain -e 0.1 --family 10
hubbub explain composition -e 0.5 --set size=2
""",
        figures=(
            Figure("ε of 10 people at 0.1 each", r"group of 10 people.* as if ε were ([\d.]*\d)", "1", "k·ε"),
            Figure("2 people, Laplace noise, by enumeration", r"^group of 2 +(\S+)", "1", "k·ε, attained"),
        ),
    ),
    Row(
        number=8,
        places=(Place("2006", "A", "Definition 4, Claim 2"),),
        says="A private mechanism can be simulated without a person's row within ε, and a simulatable one is private"
        " within 2ε.",
        lives="`hubbub explain simulator`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain simulator -e 1",
        figures=(
            Figure("simulator that fills in a default", r"fills in the default +([\d.]+)", (0, 1), "at most ε = 1"),
            Figure(
                "what the simulator implies",
                r"what the simulator implies +([\d.]+)",
                (1, 2),
                "at least the loss, 1; at most 2ε",
            ),
        ),
    ),
    Row(
        number=9,
        places=(Place("2006", "A", "Definition 6, Claim 3"),),
        says="Privacy is equivalent to this: an adversary who knows all other rows changes their belief about the last"
        " one by a factor of at most e^ε.",
        lives="`hubbub explain informed`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain informed",
        figures=(
            Figure("½ becomes", r"answer 1 makes them ([\d.]+%) sure", "75", "¾ at ln 3"),
            Figure("factor of a rare fact", r"0.0001%.* (\S+)$", "3", "tends to 3 as the belief is extreme"),
        ),
    ),
    Row(
        number=10,
        places=(Place("2014", "2", "equations 1 and 2"),),
        says="In game 0 the adversary updates a prior by the answer; in game i by the answer that leaves person i out.",
        lives="`hubbub explain game`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain game",
        figures=(
            Figure("game 0: the secret", r"^secret +50.0% +50.0% +([\d.]+%)", "73.1", "e/(1 + e)"),
            Figure("game 1", r"^secret +50.0% +50.0% +[\d.]+% +([\d.]+)%", "50", "the answer does not use Alice's bit"),
            Figure("game 0: database 10", r"^10 +25.0% +25.0% +([\d.]+)%", "53.4", "(e/(1 + e))²"),
        ),
    ),
)
