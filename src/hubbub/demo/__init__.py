"""A guided tour on sample data: three private answers, a replay, a refusal; then the same data behind a server.

The data is the RAND Health Insurance Experiment (see README.md in this folder). Nothing is mocked: the demo has a
hubbub.yaml and a ledger in a temporary folder, and runs its queries like any analyst.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel

from hubbub.answers import render, terminal
from hubbub.answers.cell_text import format_remaining
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core.numbers import brief
from hubbub.curator.session import Session, open_session
from hubbub.demo.server import serve
from hubbub.errors import HubbubError, ParameterError

HERE = Path(__file__).parent
FILES = ("hubbub.yaml", "health.csv")


@dataclass(frozen=True, slots=True)
class Step:
    """One query of the tour: the question in words and in SQL, and a remark on its result."""

    question: str
    sql: str
    options: Options
    remark: str


STEPS = (
    Step(
        "How many people saw a doctor more than 10 times in some year?",
        "SELECT COUNT(DISTINCT person) AS people FROM health WHERE visits > 10",
        {"epsilon": "0.1"},
        "Adding or removing one person changes this count by at most 1, and the noise hides a change of that size.",
    ),
    Step(
        "Do people go to the doctor less when they pay more of the bill themselves?",
        "SELECT coinsurance, COUNT(*) AS person_years, AVG(visits) AS visits FROM health GROUP BY coinsurance",
        {"epsilon": "1", "groups": 1},
        "Each person is in only one plan, so --groups 1 loses nothing and makes the noise five times smaller.",
    ),
    Step(
        "What is the median of a person's total spending over all years?",
        "SELECT MEDIAN(LEAST(GREATEST(total, 0), 10000)) AS dollars"
        " FROM (SELECT person, SUM(spending) AS total FROM health GROUP BY person)",
        {"epsilon": "0.5", "rows": 1},
        "The totals per person stay inside the curator; only the median is released. One row per person: --rows 1.",
    ),
)
REFUSED = "SELECT * FROM health WHERE person = 125024"


def run(console: Console, *, once: bool) -> None:
    """Take the tour in a temporary folder, then serve until Ctrl-C unless `once` is set."""
    with TemporaryDirectory(prefix="hubbub-demo-") as folder:
        lay_out(Path(folder))
        with open_session(Path(folder) / "hubbub.yaml") as session:
            _tour(session, console)
        serve(Path(folder), console, once=once)
    console.print(_NEXT)


def tour(console: Console) -> list[tuple[str, Release]]:
    """Take the tour without a server; return its queries and their answers."""
    with TemporaryDirectory(prefix="hubbub-demo-") as folder:
        lay_out(Path(folder))
        with open_session(Path(folder) / "hubbub.yaml") as session:
            return _tour(session, console)


def _tour(session: Session, console: Console) -> list[tuple[str, Release]]:
    about = terminal.facts(
        (
            ("Data", "the RAND Health Insurance Experiment: 20,190 person-years of 5,912 people (bundled)"),
            ("Privacy unit", "a [bold]person[/], with all of that person's rows"),
            (
                "Guarantee",
                "all answers together never cost more than ε = 3. Someone who is 50% sure that a person is in the data"
                " can become at most 95% sure, whatever else they know.",
            ),
        )
    )
    console.print(Panel(about, title="hubbub demo", title_align="left", border_style="cyan"))
    _show_budget(session, console, "Budget before")
    answers = []
    for number, step in enumerate(STEPS, 1):
        console.print(f"\n[bold cyan]{number}  {step.question}[/]")
        _indented(console, f"[dim]{escape(step.sql)}[/]")
        estimate = session.estimate(step.sql, **step.options)
        margins = ", ".join(f"{output.name} {render.margin(output)}" for output in estimate.expected)
        cost = f"privacy cost ε = {step.options['epsilon']}; margin of error (95%): {escape(margins)}"
        _indented(console, f"[cyan]Estimate[/] {cost}\n")
        answers.append((step.sql, session.query(step.sql, **step.options)))
        _indented(console, render.rows(answers[-1][1]))
        _indented(console, f"\n{escape(step.remark)}")
    again = session.query(STEPS[0].sql, **STEPS[0].options)
    console.print("\n[bold cyan]4  The first query again[/]")
    _indented(console, render.rows(again))
    _indented(console, f"\nThe same answer, {escape(again.cost())}.")
    console.print("\n[bold cyan]5  What about person 125024?[/]")
    _indented(console, f"[dim]{escape(REFUSED)}[/]")
    try:
        session.query(REFUSED, epsilon="0.1")
    except HubbubError as refusal:
        _indented(console, terminal.problem(refusal))
    console.print()
    _show_budget(session, console, "Budget after")
    return answers


def _indented(console: Console, content: RenderableType) -> None:
    console.print(Padding(content, (0, 0, 0, 3)))


def _show_budget(session: Session, console: Console, title: str) -> None:
    (budget,) = session.budget()
    cap = next(cap for cap in budget.caps if cap.scope == "analyst")
    console.print(terminal.facts([(title, f"ε = {format_remaining(cap.left)} of {brief(cap.epsilon)} remaining")]))


def copy_files(folder: Path, console: Console) -> None:
    """Copy the demo's files to a folder and suggest first commands."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (folder / name).exists():
            raise ParameterError("HB137", f"{folder / name} already exists.", "Choose another folder.")
    lay_out(folder)
    console.print(f"Copied {' and '.join(FILES)} to {escape(str(folder))}. {_TRY}")


def lay_out(folder: Path) -> None:
    """Copy the demo's data and its hubbub.yaml into a folder."""
    for name in FILES:
        shutil.copyfile(HERE / name, folder / name)


_TRY = """Try these commands there:
  hubbub check
  hubbub query "SELECT year, COUNT(*) FROM health GROUP BY year" --epsilon 0.2 --rows 1
  hubbub budget"""

_NEXT = """
[bold]Next steps[/]
  hubbub demo --into my-demo   copy this data and its hubbub.yaml, to run your own queries
  hubbub init your.parquet     use your own data: write a hubbub.yaml with blanks to fill in
  hubbub --help                list all commands"""
