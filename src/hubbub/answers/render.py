"""Estimates, releases and budgets, printed to a terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hubbub.answers import terminal
from hubbub.answers.budget import BudgetOverview, printable
from hubbub.answers.estimate import Estimate, Expected, margin, significant
from hubbub.answers.release import AFTER_NOTES, Release
from hubbub.answers.sampling import noise_sentences
from hubbub.core.numbers import brief, readable, round_down

_MAX_ROWS = 1000


def estimate(estimate: Estimate, console: Console, *, certainty: str, sql: bool = False) -> None:
    """Print the privacy cost and the expected accuracy of a query."""
    if estimate.sandbox:
        console.print(f"[bold yellow]{escape(estimate.sandbox)}[/]")
    if not estimate.epsilon:
        console.print(terminal.facts([("Cost", f"[bold]{escape(estimate.derivation[0])}[/]")]))
        return
    cost = f"ε = {brief(estimate.epsilon)}" + (f", δ = {brief(estimate.delta)}" if estimate.delta else "")
    rows = [
        ("Cost", f"[bold]{cost}[/] on {escape(', '.join(estimate.datasets))}; this estimate is free"),
        ("Meaning", f"someone 50% sure of a fact about one person can end up at most {certainty}"),
        ("Answer", f"{_cells(estimate.cells)}{estimate.noise.capitalize()} noise"),
    ]
    rows += [("Noise", escape(estimate.choice))] if estimate.choice else []
    budget = escape(estimate.budget())
    rows.append(("Budget", budget if estimate.admitted else f"[red]{budget}[/]"))
    if estimate.groups is not None:
        rows.append(("Groups", escape(estimate.groups.sentence())))
    if estimate.free is not None:
        rows.append(("Free", escape(estimate.offer())))
    if estimate.intervals:
        rows.append(("Intervals", escape(estimate.intervals)))
    if estimate.target:
        rows.append(("Target", escape(estimate.target)))
    rows += [("[yellow]Warning[/]", f"[yellow]{escape(warning)}[/]") for warning in estimate.warnings]
    console.print(terminal.facts(rows))
    console.print()
    console.print(
        terminal.table(
            ("Margin of error (95%)", *(f"at ε = {brief(epsilon)}" for epsilon, _ in estimate.scaling)),
            [
                (_label(column), *(f"±{significant(errors[index].plus_minus)}" for _, errors in estimate.scaling))
                for index, column in enumerate(estimate.expected)
            ],
            right=range(1, 1 + len(estimate.scaling)),
        )
    )
    console.print()
    bounds = "" if estimate.left_out is None else estimate.left_out.sentence()
    stated = [(name, escape(said)) for name, said in (("Rules", estimate.disclosure), ("Bounds", bounds)) if said]
    if stated:
        console.print(terminal.facts(stated))
    console.print(
        terminal.facts([("" if index else "Details", escape(line)) for index, line in enumerate(estimate.derivation)])
    )
    if sql:
        for text in estimate.sql:
            console.print(f"\n[dim]{escape(text)}[/]")


def _label(expected: Expected) -> str:
    label = f"{expected.name}, rows off in rank" if expected.unit == "rank" else expected.name
    return label if expected.rows is None else f"{label}, for a group of {expected.rows:,} rows"


def rows(release: Release) -> Table:
    """Return the values of a release as a table, each with its ±."""
    numbers = [index for index, output in enumerate(release.outputs) if output.kind in ("integer", "real")]
    return terminal.table(release.columns, release.texts(_MAX_ROWS), right=numbers)


def release(release: Release, console: Console) -> None:
    """Print a release, its privacy cost and the position of its charge in the ledger."""
    if release.sandbox:
        console.print(f"[bold yellow]{escape(release.sandbox)}[/]")
    console.print(rows(release))
    if len(release.ratio) > _MAX_ROWS:
        console.print(
            f"… {len(release.ratio) - _MAX_ROWS:,} more rows; use --csv to print all, or --export to write a file"
        )
    console.print()
    if not release.epsilon and "derived" not in release.receipt:
        data = [("Data", f"version {_versions(release)}")] if release.receipt["data"] else []
        console.print(terminal.facts([("Cost", escape(release.cost())), *data]))
        return
    facts = [("±", release.intervals_note)]
    facts += [("" if index else "Noise", escape(line)) for index, line in enumerate(noise_sentences(release))]
    if release.left_out is not None:
        facts.append(("Bounds", escape(release.left_out.sentence())))
    if release.disclosure:
        facts.append(("Rules", escape(release.disclosure)))
    notes = [note for note in release.notes if note not in (release.sandbox, release.disclosure)]
    facts += [("Note" if note.startswith(AFTER_NOTES) else "Groups", escape(note)) for note in notes]
    facts.append(("Cost", escape(release.cost())))
    if not release.sandbox:
        charge = release.receipt["ledger"][0]
        facts.append(("Receipt", f"charge {charge['sequence']} in the ledger, data version {_versions(release)}"))
    console.print(terminal.facts(facts))


def _versions(release: Release) -> str:
    return ", ".join(f"{data['version']} of {escape(data['dataset'])}" for data in release.receipt["data"])


def budget(overview: BudgetOverview, console: Console) -> None:
    """Print the budget of one analyst on one dataset."""
    console.print(
        f"[bold]{escape(overview.dataset)}[/]: {escape(overview.analyst)} can spend up to"
        f" [bold]ε = {round_down(overview.largest)}[/] on {escape(overview.next_query)}"
    )
    rows = []
    for state in overview.caps:
        total, delta = readable(state.epsilon), state.delta
        spent = "–" if state.scope == "query" else "?" if state.spent is None else readable(state.spent)
        rows.append(
            (overview.describe_cap(state), spent, total, round_down(state.left), brief(delta) if delta else "0")
        )
    console.print(terminal.table(("Cap", "Spent ε", "Total ε", "Remaining ε", "δ"), rows, right=(1, 2, 3, 4)))
    if overview.more is not None:
        last = escape(printable(overview.last or ""))
        console.print(f"about {overview.more:,} more queries like your last one: [dim]{last}[/]")
    if overview.blocks:
        lines = [
            (
                block.name,
                "?" if block.spent is None else brief(block.spent),
                "closed" if block.closed else round_down(block.left),
                "" if block.more is None else f"{block.more:,}",
            )
            for block in overview.blocks
        ]
        heads = ("Block", "Spent ε", "Largest ε of one query", "Queries like your last one")
        console.print(terminal.table(heads, lines, right=(1, 2, 3)))
    for note in overview.notes():
        console.print(f"[dim]{note}[/]")
    console.print()


__all__ = ["budget", "estimate", "margin", "release", "rows"]


def _cells(count: int) -> str:
    """Return the number of groups, if it is known before the query runs."""
    return f"{count:,} group{'s' if count != 1 else ''}, " if count else ""
