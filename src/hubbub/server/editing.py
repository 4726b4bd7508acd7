"""Editing hubbub.yaml: what the owner wrote stays as it was written, comments included, but for the change itself.

A change is a function on the document. It is made twice: on the text, keeping its looks, and on the plain document; the
new text must read as the second. So whatever the keeper of comments gets wrong is refused, not written. A new file is
checked whole before it takes the old one's place, in one step, and the old one is kept beside it.
"""

import difflib
import fcntl
import io
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from hubbub.accounting import policy_config as contract
from hubbub.accounting.filters import Budget
from hubbub.config import Config, examine
from hubbub.core import numbers
from hubbub.errors import ConfigError, HubbubError
from hubbub.private_files import open_private
from hubbub.server import remote_edit_rules as confines
from hubbub.server import settings

LONGEST = 1_000_000  # characters of a hubbub.yaml

Document = dict[str, Any]
Change = Callable[[Document], None]


class Draft(NamedTuple):
    """The text of hubbub.yaml as it is, and its hash: what an edit must start from."""

    text: str
    hash: str


@dataclass(frozen=True)
class Checked:
    """What a new text would be: the config, or all that is wrong; and how it differs from the one in force."""

    config: Config | None
    problems: tuple[HubbubError, ...]
    diff: str


def read(path: Path) -> Draft:
    """Read the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "HB410", f"{path} cannot be read.", "Check the path, the rights and that it is UTF-8."
        ) from error
    return Draft(text, digest(text))


def digest(text: str) -> str:
    """Give the hash of a text, the one that the config made of it has too."""
    return sha256(text.encode()).hexdigest()


def check(path: Path, text: str, *, confined: bool = False) -> Checked:
    """Say what would come of this text; nothing is changed. See `confines` for one that comes from outside."""
    now = read(path).text
    difference = difflib.unified_diff(now.splitlines(), text.splitlines(), "now", "then", lineterm="")
    if len(text) > LONGEST:
        problem = ConfigError("HB400", f"the text has more than {LONGEST} characters.", "Shorten it.")
        return Checked(None, (problem,), "")
    config, problems = _examined(path, text, now if confined else None)
    return Checked(config, tuple(problems), "\n".join(difference))


def rewrite(
    path: Path,
    make: Callable[[str], str],
    *,
    expected: str | None = None,
    accept: Callable[[Config], None] | None = None,
    confined: bool = False,
) -> str:
    """Make a new text of the present one, check it, and put it in its place; or raise, and nothing is written.

    `expected` is the hash of the text that somebody looked at (HB426 where it is another by now). `accept` is called
    when all is checked, before anything is written: what it raises keeps the file as it is. `confined` is for a text
    that comes from outside: see `confines`. Gives the new hash.
    """
    with _alone(path):
        now = read(path)
        if expected is not None and now.hash != expected:
            raise ConfigError(
                "HB426",
                "hubbub.yaml was changed since you read it. Nothing was written.",
                "Read it again and redo the edit.",
            )
        text = make(now.text)
        config, problems = _examined(path, text, now.text if confined else None)
        if config is None:
            raise problems[0]
        if accept is not None:
            accept(config)
        if text != now.text:
            _replace(path, text)
        return digest(text)


def apply(path: Path, text: str, *, expected: str) -> str:
    """Put this text in the place of the one with the hash `expected`, or raise ConfigError; give the new hash."""
    return rewrite(path, lambda _: text, expected=expected)


def edit(path: Path, change: Change, *, accept: Callable[[Config], None] | None = None) -> str:
    """Make one change to the file as it is now, or raise ConfigError; give the new hash."""
    return rewrite(path, lambda text: changed(text, change), accept=accept)


def changed(text: str, change: Change) -> str:
    """Make a change to a text, keeping the rest as it is written."""
    plain = contract.mapping(contract.load(text), "")
    wanted = deepcopy(plain)
    change(wanted)
    if wanted == plain:
        return text
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 10_000
    out = io.StringIO()
    try:
        styled = yaml.load(text)
        change(styled)
        yaml.dump(styled, out)
    except YAMLError as error:
        raise _by_hand() from error
    if contract.load(out.getvalue()) != wanted:
        raise _by_hand()
    return out.getvalue()


def put_analyst(name: str, caps: Mapping[str, Budget]) -> Change:
    """Add an analyst with these caps, one for each dataset; one who is there keeps the caps on other datasets."""

    def change(document: Document) -> None:
        entry = _entry(_part(document, "analysts"), name)
        for dataset, budget in caps.items():
            entry[dataset] = _cap(budget)

    return change


def remove_analyst(name: str) -> Change:
    """Remove an analyst, from groups too; a group that has nobody left goes with the last."""

    def change(document: Document) -> None:
        groups = document.get("groups") or {}
        known = name in (document.get("analysts") or {})
        for group in list(groups):
            members = groups[group]["members"]
            if name in members:
                known = True
                members.remove(name)
                if not members:
                    del groups[group]
        if not known:
            contract.unknown("HB405", f"analysts.{name}", name, "analyst", document.get("analysts") or {})
        (document.get("analysts") or {}).pop(name, None)
        if name in (document.get("returning") or []):
            document["returning"].remove(name)
        for part in ("analysts", "groups", "returning"):
            if part in document and not document[part]:
                del document[part]

    return change


def raise_cap(analyst: str, dataset: str, by: Fraction) -> Change:
    """Raise an analyst's own cap, or give a first one. The check of the new file keeps it below the other caps."""

    def change(document: Document) -> None:
        groups = {name: terms for name, terms in (document.get("groups") or {}).items() if analyst in terms["members"]}
        known = document.get("analysts") or {}
        if analyst not in known and not groups:
            contract.unknown("HB405", f"analysts.{analyst}", analyst, "analyst", known)
        entry = _entry(_part(document, "analysts"), analyst)
        if dataset in entry:
            before = numbers.exact(entry[dataset]["epsilon"], f"analysts.{analyst}.{dataset}.epsilon")
            entry[dataset]["epsilon"] = _number(before + by)
            return
        for group, terms in groups.items():
            if dataset in terms:
                raise ConfigError(
                    "HB430",
                    f"{analyst} has no cap on {dataset} but that of the group {group}.",
                    "Raise the group's cap; a cap of the analyst's own would be one more limit.",
                )
        entry[dataset] = _cap(Budget(by, Fraction(0)))

    return change


def put_group(name: str, members: Sequence[str], caps: Mapping[str, Budget]) -> Change:
    """Make a group what this says."""

    def change(document: Document) -> None:
        entry = _entry(_part(document, "groups"), name)
        for dataset in [key for key in entry if key != "members" and key not in caps]:
            del entry[dataset]
        entry["members"] = _flow(CommentedSeq(members))
        for dataset, budget in caps.items():
            entry[dataset] = _cap(budget)

    return change


def remove_group(name: str) -> Change:
    """Remove a group: its members keep their own caps."""

    def change(document: Document) -> None:
        groups = document.get("groups") or {}
        if name not in groups:
            contract.unknown("HB405", f"groups.{name}", name, "group", groups)
        del groups[name]
        if not groups:
            del document["groups"]

    return change


def _part(document: Document, name: str) -> Document:
    if document.get(name) is None:
        document[name] = CommentedMap()
    return contract.mapping(document[name], name)


def _entry(part: Document, name: str) -> Document:
    if part.get(name) is None:
        part[name] = _flow(CommentedMap())
    return contract.mapping(part[name], name)


def _cap(budget: Budget) -> Document:
    terms = {"epsilon": budget.epsilon, "delta": budget.delta}
    written: Document = _flow(CommentedMap({name: _number(value) for name, value in terms.items() if value}))
    return written


def _flow(node: Any) -> Any:
    """Write it on one line."""
    node.fa.set_flow_style()
    return node


def _number(value: Fraction) -> int | float | str:
    """Give what YAML shall hold, so that it reads back as exactly this."""
    if value.denominator == 1:
        return int(value)
    near = float(value)
    if Fraction(repr(near)) != value:
        return str(value)
    return repr(near) if "e" in repr(near) else near  # 1e-06 is text to YAML 1.1 and a number to 1.2


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other editors out, in whatever process."""
    try:
        guard = open_private(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield
    finally:
        os.close(guard)


def _replace(path: Path, text: str) -> None:
    target = path.resolve()  # what a link points to is replaced, not the link
    draft = _write(target, text)
    try:
        _keep(target)
        draft.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    with suppress(
        OSError
    ):  # it is replaced; where the folder cannot be synced, a power failure may bring the old one back
        _sync(target.parent)


def _examined(path: Path, text: str, now: str | None) -> tuple[Config | None, list[HubbubError]]:
    """Check all of it, as if it stood in the file's place: the data, the policy and the server's part.

    With `now`, the text in force, what reaches beyond its confines is refused before any file is looked at.
    """
    if now is not None and (beyond := confines.trespasses(now, text, path.parent)):
        return None, beyond
    draft = _write(path, text)
    try:
        config, problems = examine(draft)
    finally:
        draft.unlink()
    problems = [*problems, *settings.problems(text, path.parent)]
    return (None if problems else config), problems


def _write(path: Path, text: str) -> Path:
    """Write a text beside the file, durably, with the file's own rights."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise _unwritable(path, error) from error
    return draft


def _keep(path: Path) -> None:
    """Keep the old file beside the new one."""
    link = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    link.hardlink_to(path)
    link.replace(path.with_name(f"{path.name}.previous"))


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        "HB428",
        f"{path} cannot be replaced ({error.strerror}).",
        "Give the server the right to write its folder (a single mounted file cannot be replaced), or edit it by hand.",
    )


def _by_hand() -> ConfigError:
    return ConfigError(
        "HB429", "this hubbub.yaml cannot be changed here without changing other parts of it.", "Edit it by hand."
    )
