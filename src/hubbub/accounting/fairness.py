"""Fair shares of shared caps, and what projects leave to the others of a group.

A share limits a total that the ledger has anyway, or a difference of such totals. So entries and totals are the same
with and without shares, and a change of hubbub.yaml changes only what is admitted from then on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

from hubbub.accounting.cost import PrivacyCost
from hubbub.accounting.policy import DAY, Cap, Policy

_NOTHING, _ALL = Fraction(0), Fraction(1)


class ShareLimit(NamedTuple):
    """A limit on what is left of a total when others are taken from it; `cap` is of the scope `share` or `rest`."""

    cap: Cap
    of: Cap
    without: tuple[Cap, ...] = ()


def day_of(time: int) -> date:
    """Give the day of a charge (UTC)."""
    return date(1970, 1, 1) + timedelta(days=time // DAY)


def holds(cap: Cap, day: date) -> bool:
    """Say whether a cap limits charges on this day: that of a project does until it ends."""
    return cap.until is None or day < cap.until


def parts(names: Sequence[str], needs: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Divide 1 among people by max-min fairness; who needs less than an equal part gets that, and others get the rest.

    >>> parts(["ana", "ben", "cy"], {"ben": Fraction(1, 5)})
    {'ben': Fraction(1, 5), 'ana': Fraction(2, 5), 'cy': Fraction(2, 5)}
    """
    found: dict[str, Fraction] = {}
    left = _ALL
    for place, name in enumerate(sorted(names, key=lambda name: (needs.get(name, _ALL), name))):
        found[name] = min(needs.get(name, _ALL), left / (len(names) - place))
        left -= found[name]
    return found


def shares(policy: Policy, analyst: str, caps: Iterable[Cap], day: date) -> list[ShareLimit]:
    """Give the shares that limit a charge of an analyst, besides the caps that apply to it.

    A cap with `fair` is divided by `parts` among those who share it. Until the day it names, an analyst's own total on
    the dataset (of a block: on the block) stays within their part of the cap. While a project runs, the charges of
    its group that are not of a member of a running project stay within the part of the group's cap that the projects
    leave: for an analyst outside of them, the total of the group less the totals of the projects.

    Theorem (Fairness never admits more than the caps). With shares, a charge is admitted only if it is without them;
    so every promise of the caps holds with any shares, however they are changed. Whether a share admits follows from
    costs, times and the policy alone, so a refusal tells nothing about the data.
    Proof    A charge is admitted if every cap that holds and every share admit it: one more condition. It is added to
             the same totals as without shares, and a share has none. A project's cap that has ended limits nothing, and
             no promise is made by it: it lies within the caps of its group and its dataset, which hold at all times.
             A total is a sum of costs, a difference of totals follows from costs, and parts from the policy.
    Theorem (Nothing spent returns). The cap of a group admits the same with and without its projects, before and after
    they end. What a project did not use is in no total, so at its end it is left to the group; what it used is in the
    group's total for good.
    Proof    Members of a project are members of its group, and the group has a cap wherever the project has: the policy
             is otherwise refused. So each charge to a project's total is also one to the group's.
    Assumes  nothing else.
    Charges  nothing.
    Tested   tests/accounting/test_fairness.py::test_shares_never_admit_what_the_caps_refuse
             tests/accounting/test_fairness.py::test_the_end_of_a_project_returns_what_is_left_to_the_group_alone
    """
    applying = list(caps)
    own = {(cap.dataset, cap.block): cap for cap in applying if cap.scope == "analyst"}
    found: list[ShareLimit] = []
    for cap in applying:
        if cap.fair is not None and (cap.fair.until is None or day < cap.fair.until):
            part = parts(policy.sharers(cap), dict(cap.fair.needs))[analyst]
            if part < 1:
                share = replace(cap, scope="share", budget=cap.budget.part(part), fair=None)
                found.append(ShareLimit(share, own[cap.dataset, cap.block]))
        if cap.scope == "group":
            found += _rest(policy, analyst, cap, day)
    return found


def _rest(policy: Policy, analyst: str, cap: Cap, day: date) -> list[ShareLimit]:
    """Give the part of a group's cap that running projects leave to an analyst who is in none of them."""
    running = [
        (project, replace(project.caps[cap.dataset], block=cap.block))
        for project in policy.projects.values()
        if project.group == cap.name and cap.dataset in project.caps and day < project.until
    ]
    if not running or any(analyst in project.members for project, _ in running):
        return []
    promised = sum((own.budget.epsilon for _, own in running), _NOTHING)
    rest = replace(cap, scope="rest", budget=cap.budget.part(1 - promised / cap.budget.epsilon), fair=None)
    return [ShareLimit(rest, cap, tuple(own for _, own in running))]


def less(total: PrivacyCost, others: Iterable[PrivacyCost]) -> PrivacyCost:
    """Give what is left of a total without some of its parts; a part that is not in it takes away what there is."""
    return reduce(_less, others, total)


def _less(total: PrivacyCost, part: PrivacyCost) -> PrivacyCost:
    gaussian = None
    if total.gaussian is not None and part.gaussian is not None:
        gaussian = tuple([max(0, a - b) for a, b in zip(total.gaussian, part.gaussian, strict=True)])
    pure = None if total.pure is None or part.pure is None else max(_NOTHING, total.pure - part.pure)
    renyi = tuple([max(0, a - b) for a, b in zip(total.renyi, part.renyi, strict=True)])
    return PrivacyCost(pure, renyi, max(_NOTHING, total.delta - part.delta), gaussian)
