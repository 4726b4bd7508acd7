"""What a hubbub.yaml promises, in plain words: to whom, how much, and what cannot be asked."""

from fractions import Fraction

from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import Policy
from hubbub.config import Config, Dataset
from hubbub.core.numbers import brief
from hubbub.core.schema import Column, Kind
from hubbub.core.unit import Relation
from hubbub.semantics.odds import guess, percent

#: A whole number within bounds is a key as well, where there are not more of them.
MOST_KEYS = 1_000_000


def sureness(epsilon: Fraction) -> str:
    """Say how sure somebody who was 50/50 can be at most: e^ε/(1 + e^ε), rounded up.

    >>> sureness(Fraction(1)), sureness(Fraction(6)), sureness(Fraction(40))
    ('73.2 %', '99.8 %', 'almost 100 %')
    """
    return percent(guess(epsilon=epsilon, delta=Fraction(0)))


def protected(dataset: Dataset) -> str:
    """Say who is protected."""
    unit = dataset.table.unit
    if unit is None:
        return "nobody: this table is public"
    if unit.column is None:
        return "each row by itself (somebody with several rows is protected less)"
    rows = "1 row" if unit.rows == 1 else f"{unit.rows} rows"
    groups = "1 group" if unit.groups == 1 else f"each of {unit.groups} groups"
    whose = f"each {unit.column}" + (f" (one {unit.entity})" if unit.entity else "")
    return f"{whose}, with all of its rows; at most {rows} in {groups} of a query count"


def neighbors(dataset: Dataset) -> str:
    """Say what is hidden."""
    whom = dataset.table.unit.column if dataset.table.unit and dataset.table.unit.column else "row"
    arrivals = "; how many arrivals its streams take is public" if dataset.table.arrivals else ""
    if dataset.table.relation is Relation.ADD_REMOVE:
        return f"whether any one {whom} is in the data at all{arrivals}"
    return f"what the data of any one {whom} is (not how many there are){arrivals}"


def reach(budget: Budget) -> str:
    """Say how much may be learned under a cap."""
    return sureness(budget.epsilon) + (f", but for a chance of {brief(budget.delta)}" if budget.delta else "")


def caps(policy: Policy, dataset: str) -> list[tuple[str, Budget]]:
    """List who may ask about a dataset, and how much."""
    found = []
    for cap in policy.datasets[dataset]:
        everybody = "everybody, ever" if cap.per is None else f"everybody, each {cap.per}"
        found.append(("by one query" if cap.scope == "query" else everybody, cap.budget))
    for name, (members, shared) in policy.groups.items():
        if dataset in shared:
            found.append((f"{name} ({', '.join(members)})", shared[dataset].budget))
    found += [(name, own[dataset].budget) for name, own in policy.analysts.items() if dataset in own]
    return found


def uses(column: Column) -> tuple[str, str, str]:
    """Say what a column is good for: (filter, group by, sum and average), each with the reason where it is not."""
    if column.hidden:
        return "no", "no", "no"
    bounds, dated = column.bounds, column.kind in (Kind.DATE, Kind.TIMESTAMP)
    days = (bounds.high - bounds.low) if bounds is not None and column.kind in (Kind.INTEGER, Kind.DATE) else None
    if column.values is not None or (days is not None and days < MOST_KEYS):
        group = "yes"
    elif dated:
        group = "by part of it" if bounds is None else "by day, month, …"
    else:
        group = "with δ"
    if not column.kind.numeric:
        return "yes", group, "–"
    return "yes", group, "no: no bounds" if bounds is None else f"yes, {brief(bounds.low)} to {brief(bounds.high)}"


def matched(config: Config) -> list[str]:
    """Say which private tables can be joined, and which could be if an entity were declared."""
    units = {name: each.table.unit for name, each in config.datasets.items() if each.table.unit is not None}
    said = []
    for entity in sorted({unit.entity for unit in units.values() if unit.entity}):
        names = [name for name, unit in units.items() if unit.entity == entity]
        if len(names) > 1:
            said.append(
                f"{' and '.join(names)} protect one {entity}: equal values of their unit columns are one {entity} to "
                f"every query, and can be joined on."
            )
    return said


def concerns(config: Config) -> list[str]:
    """Point at what is allowed but seldom meant."""
    found = []
    alone = [
        (name, each.table.unit.column)
        for name, each in config.datasets.items()
        if each.table.unit is not None and each.table.unit.column is not None and not each.table.unit.entity
    ]
    for column in dict.fromkeys(column for _, column in alone):
        names = [name for name, other in alone if other == column]
        if len(names) > 1:
            found.append(
                f"{' and '.join(names)}: all have the unit column {column}, and no `entity`, so they cannot be joined. "
                f"If equal values are one person, declare it: `unit: {{column: {column}, entity: person}}`."
            )
    for name, dataset in config.datasets.items():
        if dataset.table.public:
            continue
        for cap in config.policy.datasets[name]:
            if cap.scope == "dataset" and cap.budget.epsilon > 10:
                found.append(f"{name}: a budget of ε = {brief(cap.budget.epsilon)} promises little to anybody.")
            if cap.scope == "dataset" and cap.budget.delta > Fraction(1, 10**5):
                found.append(f"{name}: δ = {brief(cap.budget.delta)} should be far below 1 / (number of people).")
        asked = any(name in own for own in config.policy.analysts.values())
        if not asked and not any(name in shared for _, shared in config.policy.groups.values()):
            found.append(f"{name}: nobody may ask: add a cap under analysts.")
        if not any(c.bounds or c.values for c in dataset.table.columns if not c.hidden):
            found.append(f"{name}: no column has bounds or values, so rows can be counted and little else.")
    return found
