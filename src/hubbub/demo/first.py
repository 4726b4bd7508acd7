"""One private count of people, from the question to its meaning."""

from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.prompt import Prompt
from rich.table import Table

from hubbub.accounting.filters import Budget, admits, headroom
from hubbub.accounting.price import ZERO, Price, price
from hubbub.core import numbers, reals
from hubbub.core.schema import Kind
from hubbub.engines.base import Place, View
from hubbub.engines.duckdb import DuckDB, Limits
from hubbub.errors import BudgetError, HubbubError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

BUDGET = Budget(Fraction(1), Fraction(0))
LEVEL = Fraction(95, 100)

_QUESTION = "How many people saw a doctor more than 10 times in some year?"
_SQL = "SELECT count(DISTINCT person) AS people FROM health WHERE visits > 10"
_VIEW = View(
    "health", Place("csv", Path(__file__).parent / "health.csv"), (("person", Kind.INTEGER), ("visits", Kind.INTEGER))
)


def run(console: Console, *, epsilon: numbers.Number, again: bool) -> int:
    """Ask once, and on a terminal offer to ask again until the demo's budget is spent."""
    about = _facts(
        ("Question", f"[bold]{_QUESTION}[/]\n[dim]{_SQL}[/]"),
        ("Data", "20,190 rows of 5,912 people (RAND Health Insurance Experiment, bundled)"),
        ("Protected", "each [bold]person[/], with all of that person's rows. One person more or fewer moves this"
                      " count by at most 1, and the noise hides that much."),
        ("Budget", f"ε = {numbers.brief(BUDGET.epsilon)} for everything that is ever asked here"),
    )  # fmt: skip
    console.print(Panel(about, title="hubbub demo", title_align="left", border_style="cyan"))
    engine = DuckDB([_VIEW], limits=Limits(memory=500, threads=1))
    try:
        spent = _ask(console, engine, epsilon, ZERO)
        while again and (left := headroom(BUDGET, spent)) > 0:
            hint = f"\nAsk again at another ε (at most {numbers.brief(left)}; Enter ends)"
            typed = Prompt.ask(hint, console=console, default="", show_default=False)
            if not typed:
                break
            try:
                spent = _ask(console, engine, typed, spent)
            except HubbubError as error:
                console.print(f"[red]{error}[/]")
    finally:
        engine.close()
    console.print(
        "\n[bold]Next[/]  hubbub demo --epsilon 1      the same question, dearer and sharper\n"
        "      hubbub demo --epsilon 0.01   cheaper and vaguer\n"
        "      hubbub --help                what else there is"
    )
    return 0


def _ask(console: Console, engine: DuckDB, epsilon: numbers.Number, spent: Price) -> Price:
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
    loss = mechanism.loss.epsilon
    margin = int(mechanism.error(LEVEL))
    cost = price(mechanism.event)
    if not admits(BUDGET, spent, cost):
        raise BudgetError(
            "HB201", f"this costs ε={numbers.brief(loss)} and {numbers.brief(headroom(BUDGET, spent))} is left."
            " Nothing was run or charged.", "Ask at a smaller ε.",
        )  # fmt: skip
    spent += cost
    console.print()
    console.print(_facts(("Before", f"it costs ε = {numbers.brief(loss)}; 19 times in 20 it is within ±{margin}")))
    noisy = engine.run(_SQL).through(lambda found: mechanism.sample(int(found["people"][0]), system()))
    low, high = max(noisy - margin, 0), max(noisy + margin, 0)
    odds = reals.exp(loss)[1]
    sure = f"{float(odds / (1 + odds)):.1%}"
    after = _facts(
        ("Answer", f"[bold green]{max(noisy, 0)}[/] people (95 % interval {low} to {high})"),
        ("Meaning", "somebody who was 50/50 about one person being among them, whatever else they know, can be at"
                    f" most {sure} sure after seeing this answer"),
        ("Budget", f"ε = {numbers.brief(headroom(BUDGET, spent))} of {numbers.brief(BUDGET.epsilon)} is left"),
    )  # fmt: skip
    console.print(after)
    return spent


def _facts(*rows: tuple[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", min_width=9)
    grid.add_column()
    for row in rows:
        grid.add_row(*row)
    return grid
