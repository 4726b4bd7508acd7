"""`hubbub demo`: three private answers over bundled data, what they cost, what is refused; then the same, served.

The data is the RAND Health Insurance Experiment (README.md here). Everything is real: the demo has a hubbub.yaml, a
ledger in a temporary folder, and asks like any analyst.
"""

import shutil
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel

from hubbub.answers import render, terminal
from hubbub.answers.options import Options
from hubbub.answers.release import shown_left
from hubbub.core.numbers import brief
from hubbub.curator.session import Session, open_session
from hubbub.demo.serving import serve
from hubbub.errors import HubbubError, ParameterError

HERE = Path(__file__).parent
FILES = ("hubbub.yaml", "health.csv")


@dataclass(frozen=True, slots=True)
class Step:
    """One question of the tour: what it asks, in words and in SQL, and what to look at."""

    words: str
    sql: str
    options: Options
    remark: str


STEPS = (
    Step(
        "How many people saw a doctor more than 10 times in some year?",
        "SELECT COUNT(DISTINCT person) AS people FROM health WHERE visits > 10",
        {"epsilon": "0.1"},
        "One person more or fewer moves this count by at most 1, and the noise hides that much.",
    ),
    Step(
        "Do people go to the doctor less when they pay more of the bill themselves?",
        "SELECT coinsurance, COUNT(*) AS person_years, AVG(visits) AS visits FROM health GROUP BY coinsurance",
        {"epsilon": "1", "groups": 1},
        "Each person is in one plan, so --groups 1 costs nothing and makes the noise five times smaller.",
    ),
    Step(
        "What does half of the people spend at most, all years together?",
        "SELECT MEDIAN(LEAST(GREATEST(total, 0), 10000)) AS dollars"
        " FROM (SELECT person, SUM(spending) AS total FROM health GROUP BY person)",
        {"epsilon": "0.5", "rows": 1},
        "What is grouped by the person stays exact inside the curator; only the median leaves: one row each, --rows 1.",
    ),
)
REFUSED = "SELECT * FROM health WHERE person = 125024"


def command(options: Namespace, console: Console) -> int:
    """Run the demo from the command line."""
    if options.into is not None:
        return _into(Path(options.into), console)
    with TemporaryDirectory(prefix="hubbub-demo-") as folder:
        lay_out(Path(folder))
        with open_session(Path(folder) / "hubbub.yaml") as session:
            _tour(session, console)
        serve(Path(folder), console, once=options.once)
    console.print(_NEXT)
    return 0


def _tour(session: Session, console: Console) -> None:
    about = terminal.facts(
        (
            ("Data", "the RAND Health Insurance Experiment: 20,190 person-years of 5,912 people (bundled)"),
            ("Protected", "each [bold]person[/], with all of that person's rows"),
            (
                "Promise",
                "all answers together, for ever, cost at most ε = 3. Somebody who is 50/50 about one person"
                " being in the data, whatever else they know, can become at most 95% sure.",
            ),
        )
    )
    console.print(Panel(about, title="hubbub demo", title_align="left", border_style="cyan"))
    _budget(session, console, "Budget before")
    for number, step in enumerate(STEPS, 1):
        console.print(f"\n[bold cyan]{number}  {step.words}[/]")
        _indented(console, f"[dim]{escape(step.sql)}[/]")
        estimate = session.estimate(step.sql, **step.options)
        before = ", ".join(f"{each.name} {render.margin(each)}" for each in estimate.expected)
        price = f"costs ε = {step.options['epsilon']}, 19 times in 20 within {escape(before)}"
        _indented(console, f"[cyan]Before[/] {price}\n")
        _indented(console, render.rows(session.query(step.sql, **step.options)))
        _indented(console, f"\n{escape(step.remark)}")
    again = session.query(STEPS[0].sql, **STEPS[0].options)
    console.print("\n[bold cyan]4  The first question once more[/]")
    _indented(console, render.rows(again))
    _indented(console, f"\nThe very same answer, {escape(again.price())}.")
    console.print("\n[bold cyan]5  What about person 125024?[/]")
    _indented(console, f"[dim]{escape(REFUSED)}[/]")
    try:
        session.query(REFUSED, epsilon="0.1")
    except HubbubError as refusal:
        _indented(console, terminal.problem(refusal))
    console.print()
    _budget(session, console, "Budget after")


def _indented(console: Console, what: RenderableType) -> None:
    console.print(Padding(what, (0, 0, 0, 3)))


def _budget(session: Session, console: Console, title: str) -> None:
    (found,) = session.budget()
    state = next(state for state in found.caps if state.scope == "analyst")
    rows = [(title, f"ε = {shown_left(state.left)} of {brief(state.epsilon)} is left")]
    console.print(terminal.facts(rows))


def _into(folder: Path, console: Console) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (folder / name).exists():
            raise ParameterError("HB137", f"{folder / name} exists.", "Choose another folder.")
    lay_out(folder)
    console.print(f"{' and '.join(FILES)} are in {escape(str(folder))}. {_TRY}")
    return 0


def lay_out(folder: Path) -> None:
    """Copy the demo's data and its hubbub.yaml into a folder."""
    for name in FILES:
        shutil.copyfile(HERE / name, folder / name)


_TRY = """Try, in there:
  hubbub check
  hubbub query "SELECT year, COUNT(*) FROM health GROUP BY year" --epsilon 0.2 --rows 1
  hubbub budget"""

_NEXT = """
[bold]Go on[/]
  hubbub demo --into my-demo   this data and its hubbub.yaml, to play with
  hubbub init your.parquet     your own data: a hubbub.yaml with blanks to fill in
  hubbub --help                everything else"""
