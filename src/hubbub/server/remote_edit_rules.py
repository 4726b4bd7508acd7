"""Confines: what of hubbub.yaml cannot be changed from outside, by whoever holds an owner's token.

A token is stolen more easily than a machine. Whoever changes hubbub.yaml through the server may say who learns how
much; where data is read from, where the ledger is and how the server is reached stays with those who can edit the file
on the machine itself. All of this is decided before any file that the new text names is looked at: what a check says of
a file would tell that it is there, and what its columns are.
"""

from collections.abc import Mapping
from pathlib import Path

from hubbub.accounting import policy_config as contract
from hubbub.accounting.anchor import at_home
from hubbub.engines.base import SERVERS, Place, locate
from hubbub.errors import ConfigError, HubbubError

#: Parts that say how the server is reached and where its ledger is.
_FIXED = ("ledger", "server")
#: Where ledger, tokens and secrets are, unless `ledger:` says so otherwise.
_LEDGER = "hubbub-ledger/ledger.db"
#: What is kept beside the ledger.
_OWN = ("server.db", "server.key", "versions.json", "anchor")
_REMEDY = "Edit hubbub.yaml on the server itself."


def trespasses(now: str, then: str, base: Path) -> list[HubbubError]:
    """Say what of a new text reaches beyond the folder `base` of hubbub.yaml, or beyond what the text of now allows."""
    try:
        before, after = (contract.mapping(contract.load(text), "") for text in (now, then))
    except HubbubError:
        # what cannot be read says nothing yet: the check of the new text tells why, before it looks at any file
        return _unreadable(now)
    found: list[HubbubError] = [
        ConfigError("HB432", f"`{part}:` cannot be changed through the server.", _REMEDY)
        for part in _FIXED
        if (before.get(part) or {}) != (after.get(part) or {})
    ]
    known, kept = set(_places(before, base).values()), _kept(before, base)
    for name, place in _places(after, base).items():
        if place not in known and (place.form in SERVERS or not _inside(place.path, base, kept)):
            found.append(
                ConfigError(
                    "HB432",
                    f"datasets.{name}.source names another place than those of hubbub.yaml's own folder.",
                    _REMEDY,
                )
            )
    return found


def _unreadable(now: str) -> list[HubbubError]:
    try:
        contract.mapping(contract.load(now), "")
    except HubbubError:
        return [ConfigError("HB432", "hubbub.yaml is broken as it is, and cannot be changed from here.", _REMEDY)]
    return []


def _places(document: Mapping[str, object], base: Path) -> dict[str, Place]:
    """Find where the datasets are; a source that is not well written is for the check to refuse, and reads nothing."""
    found: dict[str, Place] = {}
    entries = document.get("datasets")
    for name, entry in (entries if isinstance(entries, dict) else {}).items():
        try:
            found[str(name)] = locate(contract.mapping(entry, "").get("source"), "", base=base, name=str(name))
        except HubbubError:
            continue
    return found


def _kept(document: Mapping[str, object], base: Path) -> list[Path]:
    """Name what is not data: the ledger, with tokens and secrets beside it, and the files of the server."""
    ledger, server = (_texts(document.get(part)) for part in _FIXED)
    whole = document.get("server")
    tls = _texts(whole.get("tls") if isinstance(whole, dict) else None)
    database = ledger.get("database", _LEDGER)
    folder = (base / (_LEDGER if "://" in database else database)).parent
    beside = (
        [folder] if folder.resolve() != base.resolve() else [folder / each for each in (Path(database).name, *_OWN)]
    )
    named = [
        ledger.get("anchor"),
        ledger.get("seeds"),
        server.get("secret_file"),
        tls.get("certificate"),
        tls.get("key"),
    ]
    home = at_home(base / (_LEDGER if "://" in database else database))
    every = (*beside, home, (base / _LEDGER).parent, *(base / each for each in named if each))
    return [each.resolve() for each in every]


def _texts(value: object) -> dict[str, str]:
    entries = value if isinstance(value, dict) else {}
    return {str(name): each for name, each in entries.items() if isinstance(each, str)}


def _inside(path: Path, base: Path, kept: list[Path]) -> bool:
    """Say whether a path leads to a file of the folder, links followed, and to none that is kept back."""
    target = path.resolve()
    # by the beginning of the name, since a database has its log beside it
    return target.is_relative_to(base.resolve()) and not any(
        target.is_relative_to(each) or (target.parent == each.parent and target.name.startswith(each.name))
        for each in kept
    )
