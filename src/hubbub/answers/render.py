"""How estimates, answers and budgets look in a terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hubbub.answers import terminal
from hubbub.answers.budget import BudgetOverview, printable
from hubbub.answers.estimate import Estimate, Expected, margin, significant
from hubbub.answers.release import Release
from hubbub.core.numbers import brief, round_down

_SHOWN = 200


def estimate(found: Estimate, console: Console, *, sureness: str, sql: bool = False) -> None:
    """Show what a question would cost and how exact its answer would be."""
    price = f"ε = {brief(found.epsilon)}" + (f", δ = {brief(found.delta)}" if found.delta else "")
    rows = [
        ("Cost", f"[bold]{price}[/] on {escape(', '.join(found.datasets))}; nothing is charged for this plan"),
        ("Means", f"by this answer alone, somebody 50/50 about one person gets to at most {sureness}"),
        ("Answer", f"{_cells(found.cells)}{found.noise.capitalize()} noise"),
    ]
    if found.admitted:
        rows.append(("Admitted", f"yes; the most for one query now is ε = {round_down(found.largest)}"))
    else:
        rows.append(("Admitted", f"[red]no: it would be refused; up to ε = {round_down(found.largest)} would pass[/]"))
    console.print(terminal.facts(rows))
    console.print()
    console.print(
        terminal.table(
            ("19 times in 20 within", *(f"at ε = {brief(epsilon)}" for epsilon, _ in found.scaling)),
            [
                (_expected(each), *(f"±{significant(expected[place].plus_minus)}" for _, expected in found.scaling))
                for place, each in enumerate(found.expected)
            ],
            right=range(1, 1 + len(found.scaling)),
        )
    )
    console.print()
    console.print(
        terminal.facts([("Why" if place == 0 else "", escape(line)) for place, line in enumerate(found.derivation)])
    )
    if sql:
        for text in found.sql:
            console.print(f"\n[dim]{escape(text)}[/]")


def _expected(each: Expected) -> str:
    what = f"{each.name}, rows off in rank" if each.unit == "rank" else each.name
    return what if each.rows is None else f"{what}, for a group of {each.rows:,} rows"


def rows(found: Release) -> Table:
    """Show the values of an answer, each with its ±."""
    numbers = [place for place, output in enumerate(found.outputs) if output.kind in ("integer", "real")]
    return terminal.table(found.columns, found.texts()[:_SHOWN], right=numbers)


def release(found: Release, console: Console) -> None:
    """Show an answer, its price and where its receipt is."""
    console.print(rows(found))
    if len(found.ratio) > _SHOWN:
        console.print(f"… {len(found.ratio) - _SHOWN:,} more rows: --csv shows all")
    console.print()
    about = [("±", "95% intervals of the noise; what sampling leaves open comes on top")]
    known = [ratio for ratio in found.ratio if ratio is not None]
    if known:
        about.append(("Noise", _noise(max(known))))
    about.append(("Cost", escape(found.price())))
    charge = found.receipt["ledger"][0]
    about.append(("Receipt", f"charge {charge['sequence']} in the ledger, data version {_versions(found)}"))
    console.print(terminal.facts(about))


def _noise(ratio: float) -> str:
    if ratio <= 1:
        return f"at most {ratio:.2g} of the sampling error of a count of that size"
    return f"up to {ratio:.2g} times the sampling error: small groups say little at this ε"


def _versions(found: Release) -> str:
    return ", ".join(f"{each['version']} of {escape(each['dataset'])}" for each in found.receipt["data"])


def budget(found: BudgetOverview, console: Console) -> None:
    """Show what one analyst has on one dataset."""
    console.print(
        f"[bold]{escape(found.dataset)}[/]: {escape(found.analyst)} can spend up to"
        f" [bold]ε = {round_down(found.largest)}[/] in one more query"
    )
    rows = []
    for state in found.caps:
        total, delta = brief(state.epsilon), state.delta
        spent = "–" if state.scope == "query" else "?" if state.spent is None else brief(state.spent)
        rows.append((found.describe_cap(state), spent, total, round_down(state.left), brief(delta) if delta else "0"))
    console.print(terminal.table(("cap", "spent ε", "of", "left", "δ"), rows, right=(1, 2, 3, 4)))
    if found.more is not None:
        console.print(f"about {found.more:,} more like your last: [dim]{escape(printable(found.last or ''))}[/]")
    console.print()


__all__ = ["budget", "estimate", "margin", "release", "rows"]


def _cells(count: int) -> str:
    """Say how many cells are answered, where that is known before an analysis runs."""
    return f"{count:,} cell{'s' if count != 1 else ''}, " if count else ""
