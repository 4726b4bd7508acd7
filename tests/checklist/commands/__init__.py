"""The commands of `make checklist`: for each row of `ROWS`, what a user types and the figure that shows the construct.

To add a row, replace its open record (or append one) in the file of its topic:

    Row(
        number=40,
        places=(Place("2011", "6", "randomized response"), Place("2006", "4.1")),
        says="A bit that is told truthfully with probability ¾ loses ln 3.",
        lives="`hubbub survey`; [analyses.md](analyses.md)",
        command="hubbub survey plan coins.yaml --json",
        figures=(Figure("ε", "$.epsilon", "1.0986", "ln 3"),),
    )

- Type what a user would: `hubbub …`, or Python with `import hubbub` (`language="python"`; print the figure). Nothing
  that a user could not reach: no `hubbub.mechanisms`, no test code. `server=True` starts a server first and sets
  HUBBUB_URL and HUBBUB_TOKEN (an analyst's), for `curl` and pages.
- The command runs in its own copy of tests/checklist/data (hubbub.yaml with generous budgets, and the tables that
  `tests.checklist.folder` writes there: add yours to both), with an empty ledger. It must end within seconds.
- Figures come from the paper or from arithmetic of your own, never from the program. What is drawn at random needs a
  range that a right program leaves with probability 1e-6 at most; prefer what is exact (`plan`, receipts, seeds).
- Cite by author and year; `PAPERS` in `tests.checklist.papers` has the sections.
- Try it: `make checklist ARGS="--row 40"`. `make papers` runs all rows and writes docs/papers.md and figures.json.
"""

from tests.checklist.commands import (
    attacks,
    beliefs,
    definitions,
    graphs,
    isolation,
    lemmas,
    mechanisms,
    noise,
    programs,
    queries,
    sanitizers,
    separations,
)
from tests.checklist.record import Row

TOPICS = (
    definitions,
    beliefs,
    lemmas,
    noise,
    queries,
    mechanisms,
    graphs,
    programs,
    separations,
    attacks,
    isolation,
    sanitizers,
)

COMMANDS: dict[int, Row] = {
    row.number: row for topic in TOPICS for row in sorted(topic.RECORDS, key=lambda r: r.number)
}
