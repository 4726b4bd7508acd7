"""Summarize in plain words the privacy guarantees of a hubbub.yaml, and what each column can be used for."""

from fractions import Fraction

from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import Policy
from hubbub.config import Config
from hubbub.config.dataset import DatasetConfig
from hubbub.core.numbers import brief
from hubbub.core.schema import Column, Kind
from hubbub.core.unit import Relation
from hubbub.semantics.odds import EVEN, certainty

#: An integer column within bounds has a public key set if it has at most this many keys.
MAX_KEYS = 1_000_000


def protected_unit(dataset: DatasetConfig) -> str:
    """Describe the privacy unit and its contribution bounds."""
    unit = dataset.table.unit
    if unit is None:
        return "nobody: this table is public"
    if unit.column is None:
        return "each row (a person with several rows is protected less)"
    entity = f" (one {unit.entity})" if unit.entity else ""
    if unit.auto:
        found = f"each query finds how many of them to use, up to {unit.rows:,}"
        return f"each {unit.column}{entity} with all of its rows; {found}"
    rows = "1 row" if unit.rows == 1 else f"{unit.rows} rows"
    groups = "1 group" if unit.groups == 1 else f"each of {unit.groups} groups"
    total = "" if unit.rows_total is None else f", and at most {unit.rows_total:,} in all groups together"
    return f"each {unit.column}{entity} with all of its rows; a query uses at most {rows} in {groups}{total}"


def hidden_fact(dataset: DatasetConfig) -> str:
    """Describe what the neighbor relation hides."""
    whom = dataset.table.unit.column if dataset.table.unit and dataset.table.unit.column else "row"
    arrivals = "; the number of arrivals in its streams is public" if dataset.table.arrivals else ""
    if dataset.table.relation is Relation.ADD_REMOVE:
        return f"whether any one {whom} is in the data{arrivals}"
    return f"the contents of any one {whom} (not how many there are){arrivals}"


def guarantee(budget: Budget) -> str:
    """Bound the certainty of someone who starts out 50% sure, and state how often it is exceeded.

    >>> guarantee(Budget(Fraction(1), Fraction(0))), guarantee(Budget(Fraction(6), Fraction(0)))
    ('73.2%', '99.8%')
    >>> guarantee(Budget(Fraction(1), Fraction(1, 10**6)))
    '75.1%, except with probability 1.06e-05'
    """
    return certainty(EVEN, epsilon=budget.epsilon, delta=budget.delta)


def caps(policy: Policy, dataset: str) -> list[tuple[str, Budget]]:
    """List the caps on a dataset, each with the people it applies to."""
    rows = []
    for cap in policy.datasets[dataset]:
        everyone = "all analysts, in total" if cap.per is None else f"all analysts, per {cap.per}"
        rows.append(("one query" if cap.scope == "query" else everyone, cap.budget))
    for name, (members, shared) in policy.groups.items():
        if dataset in shared:
            rows.append((f"{name} ({', '.join(members)})", shared[dataset].budget))
    rows += [(name, own[dataset].budget) for name, own in policy.analysts.items() if dataset in own]
    return rows


def column_uses(column: Column) -> tuple[str, str, str]:
    """Say whether a column can be used in filters, in GROUP BY, and in sums and averages, or why not."""
    if column.hidden:
        return "no", "no", "no"
    bounds, dated = column.bounds, column.kind in (Kind.DATE, Kind.TIMESTAMP)
    width = (bounds.high - bounds.low) if bounds is not None and column.kind in (Kind.INTEGER, Kind.DATE) else None
    if column.values is not None or (width is not None and width < MAX_KEYS):
        group = "yes"
    elif dated:
        group = "by part of the date" if bounds is None else "by day, month, …"
    else:
        group = "needs δ"
    if not column.kind.numeric:
        return "yes", group, "–"
    return "yes", group, "no: no bounds" if bounds is None else f"yes, {brief(bounds.low)} to {brief(bounds.high)}"


def joinable_tables(config: Config) -> list[str]:
    """Say which private tables can be joined because they declare the same entity."""
    units = {name: dataset.table.unit for name, dataset in config.datasets.items() if dataset.table.unit is not None}
    sentences = []
    for entity in sorted({unit.entity for unit in units.values() if unit.entity}):
        names = [name for name, unit in units.items() if unit.entity == entity]
        if len(names) > 1:
            sentences.append(
                f"{' and '.join(names)} protect the same {entity}: equal values in their privacy ID columns mean the "
                f"same {entity}, so these tables can be joined on them."
            )
    return sentences


def warnings(config: Config) -> list[str]:
    """List settings that are allowed but rarely intended."""
    messages = []
    alone = [
        (name, dataset.table.unit.column)
        for name, dataset in config.datasets.items()
        if dataset.table.unit is not None and dataset.table.unit.column is not None and not dataset.table.unit.entity
    ]
    for column in dict.fromkeys(column for _, column in alone):
        names = [name for name, other in alone if other == column]
        if len(names) > 1:
            messages.append(
                f"{' and '.join(names)} all use the privacy ID column {column} but declare no `entity`, so they cannot "
                f"be joined. If equal values mean the same person, write `unit: {{column: {column}, entity: person}}`."
            )
    for name, dataset in config.datasets.items():
        if dataset.table.public:
            continue
        for cap in config.policy.datasets[name]:
            if cap.scope == "dataset" and cap.budget.epsilon > 10:
                messages.append(f"{name}: a budget of ε = {brief(cap.budget.epsilon)} protects people very little.")
            if cap.scope == "dataset" and cap.budget.delta > Fraction(1, 10**5):
                messages.append(f"{name}: δ = {brief(cap.budget.delta)} should be far below 1 / (number of people).")
        has_cap = any(name in own for own in config.policy.analysts.values())
        if not has_cap and not any(name in shared for _, shared in config.policy.groups.values()):
            messages.append(f"{name}: no analyst can query it. Add a cap under analysts.")
        if not any(c.bounds or c.values for c in dataset.table.columns if not c.hidden):
            messages.append(f"{name}: no column has bounds or values, so little more than row counts can be queried.")
    return messages
