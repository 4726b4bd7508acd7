"""Declarations of datasets in the ledger: reject changes that break the guarantee of earlier charges.

A policy entry holds the declaration of each dataset, and a charge names its policy by hash; so every charge is bound
to the declarations in force. A budget adds up losses about one kind of privacy unit under one neighbor relation. If
either changed after a charge, different things would be added up under one cap.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hubbub.accounting.chain import Entry
from hubbub.accounting.policy import Policy, dataset_of_total
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.errors import ConfigError

Declaration = Mapping[str, Any]


def broken_guarantee(before: Declaration, now: Declaration) -> str | None:
    """Say how `now` breaks the guarantee of charges under `before`; None if it does not.

    Theorem (One promise per budget). Let every two declarations under which a dataset was charged, one after the
    other, pass here. Then all its charges are about the same neighbors: one unit column, read as one type, under one
    relation. So their losses may be added, and the sum is what one unit of that dataset loses. Totals by block are of
    the same blocks all along, and a lasting total beside them has every charge.
    Proof    Public data, unit column, its type and the relation decide which datasets are neighbors, and each of
             them must stay. Where rows have their owner through references, these decide as well; if they are declared
             for a column that was the unit before, or no longer, that column names the owner all along. Contribution
             bounds and columns' facts decide how much noise is bought for a loss, and not the loss. An entity says
             which units of other tables are the same person: a first one adds that statement, another one would
             withdraw it from joins that were charged.
    Assumes  values of the unit's column keep their meaning when the data changes: the owner ensures this.
    Charges  nothing by itself.
    Tested   tests/accounting/test_declarations.py::test_every_pair_of_declarations_is_weaker_or_has_equal_neighbors
             tests/accounting/test_declarations.py::test_a_change_after_a_charge_is_refused_and_leaves_no_entry
    """
    if before["public"] or now["public"]:
        return "the dataset would become public" if now["public"] and not before["public"] else None
    old, new = before["unit"], now["unit"]
    if old["column"] != new["column"]:
        return f"the privacy unit would change from {_unit(old)} to {_unit(new)}"
    if old.get("path") and new.get("path") and old["path"] != new["path"]:
        return "the references through which its rows have their owner would change"
    if old.get("period") != new.get("period"):
        return "the column whose time decides the period would change"
    if old["kind"] != new["kind"]:
        return f"the type of the privacy ID column would change from {old['kind']} to {new['kind']}"
    if before["relation"] != now["relation"]:
        return f"the neighbor relation would change from {before['relation']} to {now['relation']}"
    blocks = _other_blocks(before.get("blocks"), now.get("blocks"))
    if blocks is not None:
        return blocks
    if old["entity"] and old["entity"] != new["entity"]:
        return f"the entity would change from {old['entity']} to {new['entity'] or 'none'}"
    return None


def _other_blocks(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> str | None:
    """Say how blocks would change so that totals miss earlier charges: only which of them exist may change."""
    if (before is None) != (now is None):
        return "earlier charges were made without blocks" if before is None else "earlier charges were made by block"
    if before is None or now is None:
        return None
    if (before["column"], before["by"]) != (now["column"], now["by"]):
        old, new = (f"each {each['by']} of {each['column']}" for each in (before, now))
        return f"its blocks would change from {old} to {new}"
    if "lasting" in now and "lasting" not in before:
        return "earlier charges were made without a lasting budget, whose total would miss them"
    return None


def problems(snapshot: Snapshot, policy: Policy, fresh: Iterable[Entry] = ()) -> list[ConfigError]:
    """Say why a ledger cannot continue under a policy; `fresh` are entries after those of the snapshot.

    It reads every policy of the ledger, so it is meant for changes of the policy, not for each charge.
    """
    policies = [*_policies(snapshot.entries(EntryFilter(kind="policy")), fresh)]
    if not policies or policies[-1][0] == policy.hash:
        return []
    facts = dict(policies)
    errors = []
    for name, entry in _last_charges(snapshot, fresh).items():
        before, now = facts.get(entry.config, {}).get("declarations", {}).get(name), policy.declarations.get(name)
        why = None if before is None or now is None else broken_guarantee(before, now)
        if why is not None:
            errors.append(_broken(name, why))
    former = {name for _, document in policies for name in document["analysts"]} - set(policies[-1][1]["analysts"])
    returned = sorted(former & set(policy.analysts) - set(policy.returning))
    return errors + [_removed(name) for name in returned]


def _policies(stored: Iterable[Entry], fresh: Iterable[Entry]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    for entries in (stored, fresh):
        for entry in entries:
            if entry.kind == "policy":
                yield entry.config, json.loads(entry.facts)


def _last_charges(snapshot: Snapshot, fresh: Iterable[Entry]) -> dict[str, Entry]:
    """Give the newest charge or forfeit of each dataset that has one."""
    totals = snapshot.totals()
    newest: dict[str, Entry] = {}
    for label, total in totals.items():
        name = dataset_of_total(label)
        entry = None if name is None else next(snapshot.entries(EntryFilter(), after=total.sequence - 1), None)
        if name is not None and entry is not None:
            newest[name] = entry
    stored = max((total.sequence for total in totals.values()), default=0)
    for entries in (snapshot.entries(EntryFilter(kind="charge"), after=stored), fresh):
        newest |= {entry.dataset: entry for entry in entries if entry.kind == "charge"}
    return newest


def last_absence(snapshot: Snapshot, analyst: str) -> int | None:
    """Give the time (microseconds since 1970) of the newest policy without this analyst, if there is one."""
    for entry in snapshot.entries(EntryFilter(kind="policy"), newest_first=True):
        if analyst not in json.loads(entry.facts)["analysts"]:
            return entry.time
    return None


def summary(facts: str) -> str:
    """Describe in one line whom a policy protects."""
    parts = []
    for name, declared in sorted(json.loads(facts).get("declarations", {}).items()):
        whom = "public" if declared["public"] else f"{_unit(declared['unit'])}, {declared['relation']}"
        arrivals = ", arrivals public" if declared.get("arrivals") else ""
        parts.append(f"{name} ({whom}{arrivals})")
    return "; ".join(parts)


def _unit(unit: Mapping[str, Any]) -> str:
    if unit["column"] is None:
        return "row"
    return f"{unit['column']} ({unit['entity']})" if unit["entity"] else str(unit["column"])


def _broken(name: str, why: str) -> ConfigError:
    return ConfigError(
        "HB433",
        f"{name} was charged under a different guarantee: {why}. The budget would then mix charges that cannot be "
        "added up. Nothing was changed.",
        f"Restore the declaration of {name}, or rename the dataset. A new name starts a new budget, and people in both "
        "datasets lose privacy to both.",
    )


def _removed(name: str) -> ConfigError:
    return ConfigError(
        "HB434",
        f"The analyst {name} was removed, and a removed name cannot be reused: its new holder would get "
        "the releases, streams and keys of the former one. Nothing was changed.",
        f"Choose another name. If it is the same person, add `returning: [{name}]` to hubbub.yaml. Old tokens stay "
        "revoked.",
    )
