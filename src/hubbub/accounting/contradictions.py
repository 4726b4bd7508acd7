"""Find what in a policy contradicts itself: caps that can never be reached, projects and shares that cannot be kept.

Tested in tests/accounting/test_policy.py and tests/accounting/test_fairness.py.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hubbub.accounting.policy import Cap, Policy


class UnreachableCap(NamedTuple):
    """A value of a cap above that of another cap. The paths are those in hubbub.yaml."""

    path: str
    value: Fraction
    limit_path: str
    limit: Fraction


def unreachable_caps(policy: "Policy") -> Iterator[UnreachableCap]:
    """Find caps that can never be reached because another cap is smaller: one of the two is a mistake."""
    for caps in (
        *policy.datasets.values(),
        *[own.values() for own in policy.analysts.values()],
        *[shared.values() for _, shared in policy.groups.values()],
    ):
        for cap in caps:
            for limit in _limits(cap, policy.datasets[cap.dataset]):
                if cap.budget.epsilon > limit.budget.epsilon:
                    yield _epsilon_above(cap, limit)
                if cap.budget.delta > limit.budget.delta:
                    paths = f"{_path(cap)}.delta", f"{_path(limit)}.delta"
                    yield UnreachableCap(paths[0], cap.budget.delta, paths[1], limit.budget.delta)
    for members, group_caps in policy.groups.values():
        for member in members:
            for dataset, shared in group_caps.items():
                own = policy.analysts[member].get(dataset, shared)
                if own.budget.epsilon > shared.budget.epsilon:  # δ is not compared: it may be inherited
                    yield _epsilon_above(own, shared)


def _limits(cap: "Cap", of_dataset: Iterable["Cap"]) -> list["Cap"]:
    """Give the caps of a dataset that every other one is within: the lasting one, and that on each block.

    What lasts, or is renewed by the date of charges, is about all blocks and may exceed the cap on one.
    """
    about_all = cap.scope == "dataset" and cap.block is None
    return [each for each in of_dataset if each.lasting or (each.block is not None and not about_all)]


def _epsilon_above(cap: "Cap", limit: "Cap") -> UnreachableCap:
    path = _path(cap) if cap.scope == "query" else f"{_path(cap)}.epsilon"
    return UnreachableCap(path, cap.budget.epsilon, f"{_path(limit)}.epsilon", limit.budget.epsilon)


def _path(cap: "Cap") -> str:
    """Give the place of a cap in hubbub.yaml."""
    if cap.scope in ("analyst", "group"):
        return f"{cap.scope}s.{cap.name}.{cap.dataset}"
    path = f"datasets.{cap.dataset}.{'budget' if cap.block is None else 'blocks.budget'}"
    if cap.scope == "query":
        return f"{path}.per_query"
    return path if cap.per is None else f"{path}.renewal"


class Unfair(NamedTuple):
    """A project or a division of a cap that cannot be kept. The path is that in hubbub.yaml."""

    path: str
    why: str
    remedy: str


def unfair(policy: "Policy") -> Iterator[Unfair]:
    """Find projects outside of their groups, promises above a group's cap, and needs of people who share nothing."""
    for name, project in policy.projects.items():
        members, caps = policy.groups.get(project.group, ((), {}))
        if project.group not in policy.groups:
            yield Unfair(f"projects.{name}.group", f"is {project.group!r}, which is no group", "Name a group.")
            continue
        outside = sorted(set(project.members) - set(members))
        if outside:
            remedy = f"Add them to groups.{project.group}.members, or remove them from the project."
            yield Unfair(f"projects.{name}.members", f"lists {', '.join(outside)}, not in {project.group}", remedy)
        if not project.caps or not project.caps.keys() <= caps.keys():
            remedy = "A project divides a budget that its group has: give the group one first."
            yield Unfair(f"projects.{name}", f"has a cap on a dataset on which {project.group} has none", remedy)
    for group, (members, caps) in policy.groups.items():
        for cap in caps.values():
            yield from _overpromised(policy, group, members, cap)
    for cap in (*_of_datasets(policy), *[cap for _, caps in policy.groups.values() for cap in caps.values()]):
        yield from _unfairly_shared(policy, cap)


def _overpromised(policy: "Policy", group: str, members: Iterable[str], cap: "Cap") -> Iterator[Unfair]:
    """Find what is wrong with the projects of a group on one dataset."""
    busy: set[str] = set()
    projects = [(n, p) for n, p in policy.projects.items() if p.group == group and cap.dataset in p.caps]
    for name, project in projects:
        twice = sorted(busy & set(project.members))
        if twice:
            remedy = "A charge counts against one project: remove the project that has ended, or the member."
            why = f"lists {', '.join(twice)}, who is in another project on {cap.dataset}"
            yield Unfair(f"projects.{name}.members", why, remedy)
        busy |= set(project.members)
        own = project.caps[cap.dataset].budget
        if own.delta > cap.budget.delta:
            yield Unfair(f"projects.{name}.{cap.dataset}.delta", f"exceeds that of {group}", "Lower it.")
    promised = sum((project.caps[cap.dataset].budget.epsilon for _, project in projects), Fraction(0))
    if promised > cap.budget.epsilon or (promised == cap.budget.epsilon and set(members) - busy):
        why = f"leaves nothing for the others of the group, because projects on {cap.dataset} have as much"
        remedy = "Lower the budgets of its projects, or remove those that have ended."
        yield Unfair(f"groups.{group}.{cap.dataset}.epsilon", why, remedy)


def _of_datasets(policy: "Policy") -> list["Cap"]:
    return [cap for caps in policy.datasets.values() for cap in caps]


def _unfairly_shared(policy: "Policy", cap: "Cap") -> Iterator[Unfair]:
    if cap.fair is None:
        return
    path = f"{_path(cap)}.fair"
    if cap.scope == "dataset" and cap.block is None and any(c.block is not None for c in policy.datasets[cap.dataset]):
        remedy = "Write `fair` under blocks.budget: caps of analysts hold in each block."
        yield Unfair(path, "is about all blocks together", remedy)
    for name, part in cap.fair.needs:
        if name not in policy.sharers(cap):
            yield Unfair(f"{path}.needs.{name}", "names nobody who shares this budget", "Name an analyst who does.")
        if not 0 < part < 1:
            yield Unfair(f"{path}.needs.{name}", "is not a part of the budget", "Write a number between 0 and 1.")


def check_recorded(policy: "Policy") -> None:
    """Raise an error for a recorded policy that hubbub.yaml cannot contain."""
    for problem in unfair(policy):
        raise ValueError(f"The recorded policy has {problem.path}, which {problem.why}.")
    for excess in unreachable_caps(policy):
        raise ValueError(f"The recorded policy has {excess.path} above {excess.limit_path}.")
