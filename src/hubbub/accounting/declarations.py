"""Declarations in the chain: whom each charge promised to protect, and which changes would break such a promise.

A policy's entry in the ledger holds what hubbub.yaml declared about each dataset, and a charge names its policy by
hash; so every charge is bound to the declarations it was made under. A budget adds up losses that are all about one
kind of unit under one relation. Whoever changes that, with charges there, would add up different things under one cap.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hubbub.accounting.chain import Entry
from hubbub.accounting.policy import Policy, total_of
from hubbub.accounting.store import Filter, Snapshot
from hubbub.errors import ConfigError

Declaration = Mapping[str, Any]


def weakened(before: Declaration, now: Declaration) -> str | None:
    """Say how `now` breaks what charges under `before` promised; None where it does not.

    Theorem (One promise per budget). Let every two declarations under which a dataset was charged, one after the
    other, pass here. Then all its charges are about the same neighbors: one unit column, read as one type, under one
    relation. So their losses may be added, and the sum is what one unit of that dataset loses.
    Proof    Public data, unit column, its type and the relation decide which datasets are neighbors, and each of
             them must stay. Contribution bounds and columns' facts decide how much noise is bought for a loss, and not
             the loss. An entity says which units of other tables are the same person: a first one adds that statement,
             another one would withdraw it from joins that were charged.
    Assumes  values of the unit's column keep their meaning when the data changes: the owner's word.
    Charges  nothing by itself.
    Tested   tests/accounting/test_declarations.py::test_every_pair_of_declarations_is_weaker_or_has_equal_neighbors
             tests/accounting/test_declarations.py::test_a_change_after_a_charge_is_refused_and_leaves_no_entry
    """
    if before["public"] or now["public"]:
        return "the dataset would be public" if now["public"] and not before["public"] else None
    old, new = before["unit"], now["unit"]
    if old["column"] != new["column"]:
        return f"the unit would change from {_unit(old)} to {_unit(new)}"
    if old["kind"] != new["kind"]:
        return f"the unit's column would change from {old['kind']} to {new['kind']}"
    if before["relation"] != now["relation"]:
        return f"the relation would change from {before['relation']} to {now['relation']}"
    if old["entity"] and old["entity"] != new["entity"]:
        return f"the entity would change from {old['entity']} to {new['entity'] or 'none'}"
    return None


def problems(snapshot: Snapshot, policy: Policy, fresh: Iterable[Entry] = ()) -> list[ConfigError]:
    """Say why a ledger cannot go on under a policy; `fresh` are entries that follow the snapshot's.

    It reads every policy of the ledger, so it is for changes of the policy and not for each charge.
    """
    policies = [*_policies(snapshot.entries(Filter(kind="policy")), fresh)]
    if not policies or policies[-1][0] == policy.hash:
        return []
    facts = dict(policies)
    found = []
    for name, entry in _last_charges(snapshot, fresh).items():
        before, now = facts.get(entry.config, {}).get("declarations", {}).get(name), policy.declarations.get(name)
        why = None if before is None or now is None else weakened(before, now)
        if why is not None:
            found.append(_refusal(name, why))
    former = {name for _, each in policies for name in each["analysts"]} - set(policies[-1][1]["analysts"])
    back = sorted(former & set(policy.analysts) - set(policy.returning))
    return found + [_taken(name) for name in back]


def _policies(stored: Iterable[Entry], fresh: Iterable[Entry]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    for entries in (stored, fresh):
        for entry in entries:
            if entry.kind == "policy":
                yield entry.config, json.loads(entry.facts)


def _last_charges(snapshot: Snapshot, fresh: Iterable[Entry]) -> dict[str, Entry]:
    """Find the newest charge (or forfeit) of each dataset that has one."""
    totals = snapshot.totals()
    newest: dict[str, Entry] = {}
    for label, total in totals.items():
        name = total_of(label)
        entry = None if name is None else next(snapshot.entries(Filter(), after=total.sequence - 1), None)
        if name is not None and entry is not None:
            newest[name] = entry
    stored = max((total.sequence for total in totals.values()), default=0)
    for entries in (snapshot.entries(Filter(kind="charge"), after=stored), fresh):
        newest |= {entry.dataset: entry for entry in entries if entry.kind == "charge"}
    return newest


def absent(snapshot: Snapshot, analyst: str) -> int | None:
    """Give the time of the newest policy that did not name an analyst (microseconds since 1970), if there is one."""
    for entry in snapshot.entries(Filter(kind="policy"), newest_first=True):
        if analyst not in json.loads(entry.facts)["analysts"]:
            return entry.time
    return None


def summary(facts: str) -> str:
    """Say in a line whom a policy protects."""
    said = []
    for name, each in sorted(json.loads(facts).get("declarations", {}).items()):
        whom = "public" if each["public"] else f"{_unit(each['unit'])}, {each['relation']}"
        told = ", arrivals public" if each.get("arrivals") else ""
        said.append(f"{name} ({whom}{told})")
    return "; ".join(said)


def _unit(unit: Mapping[str, Any]) -> str:
    if unit["column"] is None:
        return "row"
    return f"{unit['column']} ({unit['entity']})" if unit["entity"] else str(unit["column"])


def _refusal(name: str, why: str) -> ConfigError:
    return ConfigError(
        "HB433",
        f"{name} was charged under another promise: {why}. The earlier charges would count under a cap that "
        "no longer says what they cost. Nothing was changed.",
        f"Restore the declaration of {name}, or give the dataset a new name. A new name starts a new budget, and "
        f"people in both lose what both spend.",
    )


def _taken(name: str) -> ConfigError:
    return ConfigError(
        "HB434",
        f"{name} was removed as an analyst, and a removed name is not given again: its new holder would have "
        "the releases, streams and keys of the former one. Nothing was changed.",
        f"Choose another name. If it is the same person, say so in hubbub.yaml: `returning: [{name}]`. Old tokens stay "
        "revoked.",
    )
