"""Read the policy in hubbub.yaml: the budgets of datasets, analysts and groups.

Unknown names, budgets of 0, and caps that contradict each other are rejected with their place in the file. A cap
without a δ has the δ of its dataset.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from difflib import get_close_matches
from fractions import Fraction
from typing import cast

from hubbub.accounting.contradictions import unfair, unreachable_caps
from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import PROJECT_KEYS, Cap, FairShares, Policy, ProjectCaps, basis, is_name
from hubbub.accounting.review_rule import MAX_PEOPLE, ReviewRule
from hubbub.answers.budget import CapDisplay, CapScope
from hubbub.config.document import (
    KEYS,
    NAME_RULE,
    check_keys,
    expect_mapping,
    expect_names,
    parse_yaml,
    reject,
    reject_unknown,
)
from hubbub.core import numbers
from hubbub.errors import ConfigError, ParameterError

_ZERO_CAP = "A cap of 0 allows nothing. To give an analyst no access to a dataset, omit the cap."


@dataclass(frozen=True, slots=True)
class LedgerPaths:
    """The places of the ledger, its anchor, its seeds and its witness in hubbub.yaml, relative to that file."""

    database: str | None
    anchor: str | None
    seeds: str | None = None
    witness: str | None = None


def parse_policy(text: str) -> Policy:
    """Read the policy in the text of hubbub.yaml."""
    return read_policy(parse_yaml(text))


def ledger_paths(document: object) -> LedgerPaths:
    """Read the paths of the ledger and its anchor."""
    entries = expect_mapping(expect_mapping(document, "").get("ledger", {}), "ledger")
    check_keys(entries, "ledger", KEYS["ledger"])
    for key, value in entries.items():
        if not isinstance(value, str) or not value:
            reject("HB403", f"ledger.{key}", "is not a path", "Write a path.")
    keys = ("database", "anchor", "seeds", "witness")
    return LedgerPaths(*(cast(str | None, entries.get(key)) for key in keys))


def read_policy(document: object) -> Policy:
    """Read the policy in a parsed hubbub.yaml."""
    top = expect_mapping(document, "")
    check_keys(top, "", KEYS[""])
    ledger_paths(top)
    version = top.get("version", "missing")
    if version != 1 or isinstance(version, bool):
        reject("HB409", "version", f"is {version}, but this hubbub reads version 1", "Write `version: 1`.")
    datasets: dict[str, tuple[Cap, ...]] = {}
    public: set[str] = set()
    for name, value in expect_names(top.get("datasets"), "datasets").items():
        caps = _dataset_caps(name, value)
        if caps is None:
            public.add(name)
        else:
            datasets[name] = caps
    if not datasets and not public:
        reject("HB402", "datasets", "is empty", "Add a dataset with a budget.")
    analysts: dict[str, dict[str, Cap]] = {}
    for name, value in expect_names(top.get("analysts", {}), "analysts").items():
        analysts[name] = _caps(value, f"analysts.{name}", "analyst", name, datasets, public)
    groups: dict[str, tuple[tuple[str, ...], dict[str, Cap]]] = {}
    for name, value in expect_names(top.get("groups", {}), "groups").items():
        path = f"groups.{name}"
        group = expect_mapping(value, path)
        members = _members(group, path, analysts)
        terms = {key: cap for key, cap in group.items() if key != "members"}
        if not terms:
            example = f"`{next(iter(datasets), 'visits')}: {{epsilon: 1}}`"
            reject("HB402", path, "has no cap", f"Add one, such as {example}.")
        groups[name] = (members, _caps(terms, path, "group", name, datasets, public))
    for members, _ in groups.values():
        for member in members:
            analysts.setdefault(member, {})
    projects = _projects(top, datasets, analysts, public)
    policy = Policy(
        datasets,
        analysts,
        groups,
        returning=_returning(top, analysts),
        show=_show(top),
        projects=projects,
        reviews=_reviews(top, public),
    )
    _check(policy)
    return policy


def _projects(
    top: Mapping[str, object],
    datasets: Mapping[str, tuple[Cap, ...]],
    analysts: Mapping[str, object],
    public: set[str],
) -> dict[str, ProjectCaps]:
    """Read the projects: some members of a group who share a part of its caps until a day."""
    projects: dict[str, ProjectCaps] = {}
    for name, value in expect_names(top.get("projects", {}), "projects").items():
        path = f"projects.{name}"
        project = expect_mapping(value, path)
        if not isinstance(project.get("group"), str):
            reject("HB475", f"{path}.group", "names no group", "Write the group whose budget the project shares.")
        until = _day(project.get("until"), f"{path}.until")
        terms = {key: cap for key, cap in project.items() if key not in PROJECT_KEYS}
        group, caps = str(project["group"]), _caps(terms, path, "project", name, datasets, public)
        caps = {dataset: replace(cap, group=group, until=until) for dataset, cap in caps.items()}
        projects[name] = ProjectCaps(group, _members(project, path, analysts), until, caps)
    return projects


def _day(value: object, path: str) -> date:
    """Read a day; YAML reads most of them as dates already."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            value = None
    if not isinstance(value, date) or isinstance(value, datetime):
        reject("HB475", path, "is not a day", "Write the first day on which it has ended, such as 2027-01-01.")
    return value


def _fair(value: object, path: str) -> FairShares | None:
    """Read whether analysts who share a cap have equal shares of it."""
    if isinstance(value, bool):
        return FairShares() if value else None
    if not isinstance(value, dict):
        reject("HB475", path, "is neither true, false nor a mapping", "Write `fair: true`.")
    terms = expect_mapping(value, path)
    check_keys(terms, path, KEYS["fair"])
    until = _day(terms["until"], f"{path}.until") if "until" in terms else None
    needs = expect_names(terms["needs"], f"{path}.needs") if "needs" in terms else {}
    parts = {name: _number(part, f"{path}.needs.{name}", numbers.epsilon) for name, part in needs.items()}
    return FairShares(until, tuple(sorted(parts.items())))


def _check(policy: Policy) -> None:
    for path, why, remedy in unfair(policy):
        reject("HB475", path, why, remedy)
    for path, value, limit_path, limit in unreachable_caps(policy):
        why = f"is {numbers.brief(value)}, which exceeds {limit_path} ({numbers.brief(limit)}) and can never be reached"
        reject("HB406", path, why, "Lower the first value or raise the second.")


def _returning(top: Mapping[str, object], analysts: Mapping[str, object]) -> tuple[str, ...]:
    names = top.get("returning", [])
    if not isinstance(names, list):
        reject("HB407", "returning", "is not a list of analysts", "Write `returning: [ana]`.")
    for name in names:
        if not isinstance(name, str) or name not in analysts:
            reject_unknown("HB407", f"returning: {name}", str(name), "analyst", analysts)
    return tuple(sorted(set(names)))


def _show(top: Mapping[str, object]) -> dict[str, CapDisplay]:
    """Read how shared budgets are shown to analysts, for each dataset that does not use the default `rounded`."""
    chosen: dict[str, CapDisplay] = {}
    for name, value in expect_mapping(top["datasets"], "datasets").items():
        budget = expect_mapping(expect_mapping(value, name).get("budget", {}), name)
        blocks = expect_mapping(expect_mapping(value, name).get("blocks") or {}, name)
        of_blocks = expect_mapping(blocks.get("budget") or {}, name)
        show = of_blocks.get("show", budget.get("show", "rounded"))
        if show not in ("rounded", "exact", "hidden"):
            path = f"datasets.{name}.{'blocks.' if 'show' in of_blocks else ''}budget.show"
            reject("HB403", path, f"is {show!r}", "Write `rounded`, `exact` or `hidden`.")
        if show != "rounded":
            chosen[name] = "exact" if show == "exact" else "hidden"
    return chosen


def _reviews(top: Mapping[str, object], public: set[str]) -> dict[str, ReviewRule]:
    """Read which answers of each dataset are reviewed before they are shown."""
    rules: dict[str, ReviewRule] = {}
    for name, value in expect_mapping(top["datasets"], "datasets").items():
        path, terms = f"datasets.{name}.review", expect_mapping(value, name).get("review", False)
        if name in public and "review" in expect_mapping(value, name):
            reject("HB406", path, "is not allowed on a public dataset", "Remove `review` or `public`.")
        if isinstance(terms, bool):
            rules |= {name: ReviewRule()} if terms else {}
            continue
        entry = expect_mapping(terms, path)
        check_keys(entry, path, KEYS["datasets.*.review"])
        calls, people = entry.get("calls", False), entry.get("people", 1)
        if not isinstance(calls, bool):
            reject("HB403", f"{path}.calls", f"is {calls!r}", "Write true or false.")
        if not isinstance(people, int) or isinstance(people, bool) or not 1 <= people <= MAX_PEOPLE:
            why = f"is {people!r}, which is not between 1 and {MAX_PEOPLE}"
            reject("HB403", f"{path}.people", why, "Write how many people must approve: `people: 2`.")
        above = _number(entry["above"], f"{path}.above", numbers.epsilon) if "above" in entry else None
        rules[name] = ReviewRule(above, calls, people)
    return rules


def _dataset_caps(name: str, value: object) -> tuple[Cap, ...] | None:
    """Read the caps of a dataset; None if it is public."""
    path = f"datasets.{name}"
    entry = expect_mapping(value, path)
    check_keys(entry, path, KEYS["datasets.*"])
    is_public = entry.get("public", False)
    if not isinstance(is_public, bool):
        reject("HB403", f"{path}.public", "is neither true nor false", "Write true or false.")
    if is_public:
        if "budget" in entry:
            reject("HB406", f"{path}.budget", "is not allowed on a public dataset", "Remove `budget` or `public`.")
        return None
    if "blocks" in entry:
        return _block_caps(name, entry)
    if "budget" not in entry:
        reject("HB402", f"{path}.budget", "is missing", "Write `budget: {epsilon: …}`, or `public: true`.")
    return tuple(_lasting_caps(name, entry))


def _block_caps(name: str, entry: Mapping[str, object]) -> tuple[Cap, ...]:
    """Read the caps of a dataset with blocks: those on all of them together, if there are some, and on each of them."""
    path = f"datasets.{name}.blocks"
    blocks = expect_mapping(entry["blocks"], path)
    if "budget" not in blocks:
        reject("HB402", f"{path}.budget", "is missing", "Write the budget of each block: `budget: {epsilon: 2}`.")
    path += ".budget"
    terms = expect_mapping(blocks["budget"], path)
    check_keys(terms, path, KEYS["datasets.*.blocks.budget"])
    caps = _lasting_caps(name, entry) if "budget" in entry else []
    inherited = next((cap.budget.delta for cap in caps if cap.lasting), Fraction(0))
    fair = _fair(terms.get("fair", False), f"{path}.fair")
    of_block = Cap("dataset", name, name, _budget(terms, path, inherited), block="", fair=fair)
    of_query = next((cap.budget.epsilon for cap in caps if cap.scope == "query"), None)
    if "per_query" in terms:
        of_query = _number(terms["per_query"], f"{path}.per_query", numbers.epsilon)
    query = () if of_query is None else (Cap("query", "one", name, Budget(of_query, of_block.budget.delta)),)
    return (*query, *(cap for cap in caps if cap.scope != "query"), of_block)


def _lasting_caps(name: str, entry: Mapping[str, object]) -> list[Cap]:
    """Read the caps on everything that is charged to a dataset."""
    path = f"datasets.{name}.budget"
    terms = expect_mapping(entry["budget"], path)
    check_keys(terms, path, KEYS["datasets.*.budget"])
    lifetime = _budget(terms, path, Fraction(0))
    caps = [Cap("dataset", name, name, lifetime, fair=_fair(terms.get("fair", False), f"{path}.fair"))]
    if "per_query" in terms:
        epsilon = _number(terms["per_query"], f"{path}.per_query", numbers.epsilon)
        caps.insert(0, Cap("query", "one", name, Budget(epsilon, lifetime.delta)))
    if "renewal" in terms:
        path += ".renewal"
        renewal = expect_mapping(terms["renewal"], path)
        check_keys(renewal, path, KEYS["datasets.*.budget.renewal"])
        per = renewal.get("per")
        if per not in ("day", "month"):
            reject("HB403", f"{path}.per", f"is {per!r}", "Write `day` or `month`.")
        caps.append(Cap("dataset", name, name, _budget(renewal, path, lifetime.delta), per))
    return caps


def _budget(terms: Mapping[str, object], path: str, inherited: Fraction) -> Budget:
    if "epsilon" not in terms:
        reject("HB402", f"{path}.epsilon", "is missing", "Write the budget, such as `epsilon: 1`.")
    epsilon = _number(terms["epsilon"], f"{path}.epsilon", numbers.epsilon)
    return Budget(epsilon, _number(terms["delta"], f"{path}.delta", numbers.delta) if "delta" in terms else inherited)


def _caps(
    value: object, path: str, scope: CapScope, name: str, datasets: Mapping[str, tuple[Cap, ...]], public: set[str]
) -> dict[str, Cap]:
    caps = {}
    for dataset, entry in expect_mapping(value, path).items():
        where = f"{path}.{dataset}"
        if dataset in public:
            reject("HB406", where, "is a cap on a public dataset", "Remove it: public data needs no budget.")
        if dataset not in datasets:
            reject_unknown("HB405", where, dataset, "dataset", datasets)
        terms = expect_mapping(entry, where)
        check_keys(terms, where, KEYS["groups.*.*" if scope == "group" else "cap"])
        whole, fair = basis(datasets[dataset]), _fair(terms.get("fair", False), f"{where}.fair")
        budget = _budget(terms, where, whole.budget.delta)
        caps[dataset] = Cap(scope, name, dataset, budget, block=whole.block, fair=fair)
    return caps


def _members(group: Mapping[str, object], path: str, analysts: Mapping[str, object]) -> tuple[str, ...]:
    members = group.get("members")
    if not isinstance(members, list) or not members:
        reject("HB407", f"{path}.members", "lists no analysts", "List the analysts: `members: [ana, ben]`.")
    for index, member in enumerate(members):
        if not is_name(member):
            reject("HB408", f"{path}.members[{index}]", f"is {member!r}, which is not a valid name", NAME_RULE)
        if members.count(member) > 1:
            reject("HB407", f"{path}.members", f"lists {member} twice", "List each analyst once.")
        # a typo here would leave an analyst outside the group's limit, so reject near matches
        near = [] if member in analysts else get_close_matches(member, analysts, 1, 0.75)
        if near:
            reject(
                "HB407",
                f"{path}.members[{index}]",
                f"is {member!r}, but analysts lists {near[0]!r}",
                f"Write {near[0]!r}. If {member!r} is another analyst, add `{member}: {{}}` under analysts.",
            )
    return tuple(members)


def _number(value: object, path: str, accept: Callable[..., Fraction]) -> Fraction:
    try:
        return accept(value, path)
    except ParameterError as error:
        remedy = error.remedy
        if value == 0 and not isinstance(value, bool):
            remedy = "Omit delta: the default is 0." if path.endswith("delta") else _ZERO_CAP
        raise ConfigError("HB404", error.message, remedy) from error
