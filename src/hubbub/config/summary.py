"""Summarize in plain words the privacy guarantees of a hubbub.yaml, and what each column can be used for."""

from fractions import Fraction

from hubbub.accounting.fairness import parts
from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import Cap, Policy
from hubbub.config import Config
from hubbub.config.dataset import DatasetConfig
from hubbub.core.numbers import brief, readable
from hubbub.core.schema import Column, Kind
from hubbub.core.unit import Relation, period_guarantee
from hubbub.semantics.odds import EVEN, certainty

#: An integer column within bounds has a public key set if it has at most this many keys.
MAX_KEYS = 1_000_000


def protected_unit(dataset: DatasetConfig) -> str:
    """Describe the privacy unit and its contribution bounds."""
    period = period_guarantee(dataset.table.unit.column or "") if dataset.table.unit is not None else ""
    return f"{_unit(dataset)}; {period}" if period else _unit(dataset)


def _unit(dataset: DatasetConfig) -> str:
    unit = dataset.table.unit
    if unit is None:
        return "nobody: this table is public"
    if unit.column is None:
        return "each row (a person with several rows is protected less)"
    entity = f" (entity: {unit.entity})" if unit.entity and unit.entity != unit.column else ""
    if unit.path is not None:
        steps = [f"{', '.join(step.columns)} (a key of {step.table})" for step in unit.path.steps]
        entity += f", found through {' and '.join(steps)},"
    if dataset.table.others:
        owners = " and ".join(f"each {owner.column} (entity: {owner.entity})" for owner in dataset.table.owners)
        return f"{owners}, each with all of its rows; each query finds how much of one of them counts"
    if unit.auto:
        found = f"each query finds how many of them to use, up to {unit.rows:,}"
        return f"each {unit.column}{entity} with all of its rows; {found}"
    rows = "1 row" if unit.rows == 1 else f"{unit.rows} rows"
    groups = "1 group" if unit.groups == 1 else f"each of {unit.groups} groups"
    total = "" if unit.rows_total is None else f", and at most {unit.rows_total:,} in all groups together"
    return f"each {unit.column}{entity} with all of its rows; a query uses at most {rows} in {groups}{total}"


def hidden_fact(dataset: DatasetConfig) -> str:
    """Describe what the neighbor relation hides."""
    whom = " or ".join(unit.column or "row" for unit in dataset.table.owners) or "row"
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
        everyone = everyone if cap.block is None else "all analysts, in each block"
        rows.append(("one query" if cap.scope == "query" else everyone, cap.budget))
    for name, (members, shared) in policy.groups.items():
        if dataset in shared:
            rows.append((f"{name} ({', '.join(members)}){_in_block(shared[dataset])}", shared[dataset].budget))
    for name, project in policy.projects.items():
        if dataset in project.caps:
            who = f"{name} of {project.group} ({', '.join(project.members)}), until {project.until}"
            rows.append((f"{who}{_in_block(project.caps[dataset])}", project.caps[dataset].budget))
    for name, own in policy.analysts.items():
        if dataset in own:
            rows.append((f"{name}{_in_block(own[dataset])}", own[dataset].budget))
    return rows


def shares_in_words(policy: Policy, dataset: str) -> list[str]:
    """Say how shared caps on a dataset are divided."""
    sentences = []
    shared = [caps[dataset] for _, caps in policy.groups.values() if dataset in caps]
    for cap in (*policy.datasets[dataset], *shared):
        if cap.fair is not None:
            divided = parts(policy.sharers(cap), dict(cap.fair.needs))
            each = ", ".join(f"{name} {percent(part)}" for name, part in sorted(divided.items()))
            until = f" until {cap.fair.until}" if cap.fair.until else ""
            whose = "the budget of everybody" if cap.scope == "dataset" else f"the budget of {cap.name}"
            sentences.append(f"{dataset}: {whose} is divided{until}: {each}. Nobody can use the part of another.")
    for name, project in policy.projects.items():
        if dataset in project.caps:
            amount = brief(project.caps[dataset].budget.epsilon)
            sentences.append(
                f"{dataset}: until {project.until}, {project.group} leaves ε = {amount} of its budget to the project "
                f"{name}. Every charge of its members counts against it. What they do not use returns to the group."
            )
    return sentences


def percent(part: Fraction) -> str:
    """Write a part of a budget.

    >>> percent(Fraction(1, 3))
    '33.3%'
    """
    return f"{float(100 * part):.3g}%"


def _in_block(cap: Cap) -> str:
    return "" if cap.block is None else ", in each block"


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
    return (
        "yes",
        group,
        "no: no bounds" if bounds is None else f"yes, {column.range_text}",
    )


def joinable_tables(config: Config) -> list[str]:
    """Say which private tables can be joined because they declare the same entity."""
    owners = {name: {unit.entity for unit in dataset.table.owners} for name, dataset in config.datasets.items()}
    sentences = []
    for entity in sorted(set().union(*owners.values()) - {""}):
        names = [name for name, entities in owners.items() if entity in entities]
        if len(names) > 1:
            sentences.append(
                f"{' and '.join(names)} protect the same {entity}: equal values in their privacy ID columns mean the "
                f"same {entity}, so these tables can be joined on them{_along_keys(config, names)}."
            )
    return sentences


def _along_keys(config: Config, names: list[str]) -> str:
    """Say which of these tables can also be joined along a declared key."""
    tables = [config.datasets[name].table for name in names]
    paths = [(table.name, table.unit.path) for table in tables if table.unit is not None]
    ways = [f"{name} with {path.tables[0]}" for name, path in paths if path is not None]
    return f", and along their keys ({', '.join(ways)})" if ways else ""


def _sharing(name: str, dataset: DatasetConfig) -> list[str]:
    """Say what the caps of analysts mean where their releases are shared."""
    if dataset.share == "none":
        return []
    others = "all analysts" if dataset.share == "everyone" else "the analysts of a group"
    return [
        f"{name}: {others} see what is released to one of them (share: {dataset.share}). The cap of an analyst limits "
        "what is released at their request; what they learn is limited by the caps of all of them, and by the budget "
        "of the dataset."
    ]


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
        messages += [
            f"{name}: the collation of {column} treats different texts as equal, for example in upper and lower case. "
            "hubbub compares text byte by byte, so GROUP BY and WHERE tell them apart. To group as the database does, "
            f"use a view with lower({column})."
            for column in dataset.loose
        ]
        if dataset.table.public:
            continue
        messages += _sharing(name, dataset)
        for cap in config.policy.datasets[name]:
            if cap.scope == "dataset" and cap.budget.epsilon > 10:
                messages.append(f"{name}: a budget of ε = {readable(cap.budget.epsilon)} protects people very little.")
            if cap.scope == "dataset" and cap.budget.delta > Fraction(1, 10**5):
                messages.append(f"{name}: δ = {brief(cap.budget.delta)} should be far below 1 / (number of people).")
        has_cap = any(name in own for own in config.policy.analysts.values())
        if not has_cap and not any(name in shared for _, shared in config.policy.groups.values()):
            messages.append(f"{name}: no analyst can query it. Add a cap under analysts.")
        if not any(c.bounds or c.values for c in dataset.table.columns if not c.hidden):
            messages.append(f"{name}: no column has bounds or values, so little more than row counts can be queried.")
    return messages
