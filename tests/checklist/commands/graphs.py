"""Graphs, and functions that few reads approximate."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=50,
        places=(Place("2006", "3.2", "distance from a property"),),
        says="The number of rows that must change for a property to hold has sensitivity 1.",
        lives="`CALL graph_distance(…)`; [analyses.md](analyses.md#graphs)",
        command="""
hubbub call graph_distance table=karate ends=a,b property=acyclic -e 20
hubbub call graph_distance table=karate ends=a,b property=acyclic -e 1 --plan
""",
        figures=(
            Figure(
                "edges to remove until no cycle is left",
                r"^ *(\d+) [(±]",
                "45",
                "78 edges − 34 nodes + 1; noise is 0 but for 1e-8",
            ),
            Figure("scale at ε = 1", r"Laplace noise of scale (\d+)", "1", "sensitivity 1"),
        ),
    ),
    Row(
        number=51,
        places=(Place("2006", "3.2", "minimum cut"),),
        says="The weight of a minimum cut has sensitivity 1 for edge weights in [0, 1].",
        lives="`CALL min_cut(…)`; [analyses.md](analyses.md#graphs)",
        command="""
hubbub call min_cut table=karate ends=a,b -e 20
hubbub call min_cut table=karate ends=a,b -e 1 --plan
""",
        figures=(
            Figure(
                "minimum cut of the karate club",
                r"^ *(\d+) [(±]",
                "1",
                "one member has one friend; noise is 0 but for 1e-8",
            ),
            Figure("scale at ε = 1", r"Laplace noise of scale (\d+)", "1", "sensitivity 1"),
        ),
    ),
    Row(
        number=52,
        places=(Place("2006", "3.2", "minimum spanning tree"),),
        says="The weight of a minimum spanning tree has sensitivity 1 for edge weights in [0, 1].",
        lives="`CALL spanning_tree(…)`; [analyses.md](analyses.md#graphs)",
        command="""
hubbub call spanning_tree table=karate ends=a,b -e 20
hubbub call spanning_tree table=karate ends=a,b -e 1 --plan
""",
        figures=(
            Figure(
                "spanning tree of the karate club",
                r"^ *(\d+) [(±]",
                "33",
                "34 nodes, unit weights; noise is 0 but for 1e-8",
            ),
            Figure("scale at ε = 1", r"Laplace noise of scale (\d+)", "1", "sensitivity 1"),
        ),
    ),
    Row(
        number=53,
        places=(Place("2006", "3.2", "Lemma 1"),),
        says="A function that a few random reads approximate has low sensitivity.",
        lives="`sensitivity_from_samples`, for `h.release`; [analyses.md](analyses.md#user-defined-functions)",
        language="python",
        command="""
import hubbub
from hubbub.analyses.functions.sample_complexity import sensitivity_from_samples
print("sensitivity", sensitivity_from_samples(reads="0.1", succeeds="0.9", within=3))
try:
    print("at the bound", sensitivity_from_samples(reads="0.1", succeeds="0.55", within=3))
except hubbub.HubbubError:
    print("at the bound", "refused")
""",
        figures=(
            Figure("sensitivity", r"sensitivity (\S+)", "6", "2σ"),
            Figure(
                "success with probability (1 + α)/2",
                r"at the bound (\S+)",
                "refused",
                "the printed lemma is false there",
            ),
        ),
    ),
    Row(
        number=54,
        places=(Place("2006", "3.2", "converse of Lemma 1"),),
        says="The converse is false: the distance from a Reed–Solomon code has sensitivity 1 and cannot be told from"
        " few reads.",
        lives="`hubbub explain reed-solomon`, page *Explain*; [meaning.md](meaning.md)",
        command="hubbub explain reed-solomon",
        figures=(
            Figure("sensitivity over all words", r"moves the answer by at most (\d+)", "1", "one letter, one step"),
            Figure(
                "two letters of a word of the code", r"^ +2 +(\w+)", "uniform", "fewer reads than k + 1 tell nothing"
            ),
            Figure("two letters at distance 2", r"^ +2 +\w+ +(\w+)", "uniform", "the same"),
        ),
    ),
    Row(
        number=116,
        places=(Place("2006", "3.2", "graph properties"),),
        says="The distance from being poorly clustered, or from being no expander, has sensitivity 1.",
        lives="`CALL graph_distance(…)`; [analyses.md](analyses.md#graphs)",
        command="""
hubbub call graph_distance table=triangles ends=a,b property=non_expansive threshold=1/4 -e 20
hubbub call graph_distance table=triangles ends=a,b property=poorly_clustered threshold=0 most=3 -e 20
""",
        figures=(
            Figure("non-expansive", r"^ *(\d+) [(±]", "1", "without the bridge, a triangle has no edge to the outside"),
            Figure("poorly clustered", r"(?s)distance.*distance\s+(\d+) [(±]", "2", "one edge of each triangle"),
        ),
    ),
)
