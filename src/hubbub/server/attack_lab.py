"""The Attack lab: who may run which study, how many at once, and what is kept of them.

An attack reads raw rows. So no dataset of the server can be named here at all: a study gets a table that comes with
hubbub, one that it makes up, or the bytes that its owner sent, and runs in a process of its own (`attacks.child`).
Everybody has one at a time, few run at once, and the line is short. Only figures are kept, in memory, for whoever
asked for them.
"""

import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Any, Literal

from hubbub.attacks.base import Study
from hubbub.attacks.catalogue import Attack, find
from hubbub.attacks.study_process import Child, lost
from hubbub.attacks.study_worker import BUNDLED, MADE_UP, UPLOAD
from hubbub.attacks.upload import decoded
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import AccessError, AttackError, HubbubError, LedgerError
from hubbub.server.problems import missing

State = Literal["queued", "running", "done", "failed", "cancelled"]
Setting = bool | int | float | str

#: Seconds that a study may take, and bytes of memory.
SECONDS = 180
MEMORY = 2 << 30
#: Studies that run at once, however many queries do: with the server itself they fit into packaging/hubbub.service.
MOST_RUNNING = 2
#: Different ε that one study may try.
MOST_EPSILONS = 12
_WAITING = 8
_KEPT, _KEPT_EACH = 100, 5
_CHILD = partial(Child, seconds=SECONDS, memory=MEMORY)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants to see: an attack on a table, against hubbub at these ε."""

    attack: str
    epsilons: tuple[numbers.Number, ...]
    table: str = MADE_UP
    csv: bytes | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(eq=False)
class Run:
    """One study, from the line to its end."""

    owner: str
    attack: Attack
    epsilons: tuple[Fraction, ...]
    settings: Mapping[str, Setting]
    table: str  #: in words
    child: Child
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    state: State = "queued"
    progress: tuple[float, str] | None = None
    study: Study | None = None
    problem: HubbubError | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state not in ("queued", "running")

    @property
    def prices(self) -> str:
        """The ε, as they are written."""
        return ", ".join(map(brief, self.epsilons))

    def terms(self) -> dict[str, str]:
        """Say what was run, for a report."""
        said = {"Table": self.table, "ε": self.prices}
        return said | {"Settings": ", ".join(f"{n} = {v}" for n, v in self.settings.items()) or "as they come"}

    def advance(self, done: float, what: str) -> None:
        """Note how far it is."""
        self.progress = (done, what)


class Lab:
    """Runs studies, a few at once. Safe to use from many threads; close it once."""

    def __init__(self, *, running: int, child: Callable[[], Child] = _CHILD) -> None:
        self._child = child
        self._places = running + _WAITING
        self._pool = ThreadPoolExecutor(max_workers=running, thread_name_prefix="hubbub-lab")
        self._runs: dict[str, Run] = {}
        self._mutex = threading.Lock()
        self._stopping = False

    def begin(self, owner: str, wanted: Wanted) -> Run:
        """Put a study in line, or say why not."""
        run, order = self._prepared(owner, wanted)
        with self._mutex:
            if self._stopping:
                raise LedgerError("HB319", "the server is stopping.", "Try again in a minute.")
            unfinished = [each for each in self._runs.values() if not each.ended]
            if any(each.owner == owner for each in unfinished):
                raise AccessError("HB725", "you have an attack under way.", "Wait for its end, or cancel it.", 5)
            if len(unfinished) >= self._places:
                raise AccessError("HB725", "too many attacks are waiting.", "Try again in a minute.", 60)
            self._forget(owner)
            self._runs[run.id] = run
            self._pool.submit(self._work, run, order)
        return run

    def find(self, owner: str, number: str) -> Run:
        """Find somebody's own run."""
        run = self._runs.get(number)
        if run is None or run.owner != owner:
            raise missing("such attack, or no longer: studies are kept in memory, the last few of each visitor")
        return run

    def seen(self, owner: str, number: str) -> Run:
        """Give somebody's own run as it is now: what is shown of it must not change while it is shown."""
        run = self.find(owner, number)
        with self._mutex:
            return copy(run)

    def latest(self, owner: str) -> tuple[Run, ...]:
        """Give somebody's runs, the newest first."""
        with self._mutex:
            return tuple(run for run in reversed(self._runs.values()) if run.owner == owner)

    def cancel(self, run: Run) -> None:
        """Stop a run, or never begin it."""
        with self._mutex:
            if run.ended:
                return
            run.state = "cancelled"
        run.child.kill()

    def close(self) -> None:
        """Stop everything."""
        with self._mutex:
            self._stopping = True
            runs = list(self._runs.values())
        for run in runs:
            self.cancel(run)
        self._pool.shutdown(wait=True)

    def _prepared(self, owner: str, wanted: Wanted) -> tuple[Run, dict[str, Any]]:
        attack = find(wanted.attack)
        if not 0 < len(wanted.epsilons) <= MOST_EPSILONS:
            raise AttackError("HB643", f"a study takes 1 to {MOST_EPSILONS} values of ε.", "Such as 0.1, 1, 10.")
        prices = sorted({numbers.epsilon(each) for each in wanted.epsilons})
        if (wanted.table == UPLOAD) != (wanted.csv is not None):
            raise AttackError("HB645", "no table was sent.", "Send a CSV file, or choose another table.")
        if wanted.table not in (MADE_UP, UPLOAD, *BUNDLED):
            raise AttackError("HB642", "there is no such table here.", f"Choose {MADE_UP!r}, or send one.")
        if attack.table == "no" and wanted.table != MADE_UP:
            raise AttackError("HB642", f"{attack.name} takes no table: it makes one up.", "Leave the table out.")
        if attack.table == "must" and wanted.table == MADE_UP:
            raise AttackError("HB642", f"{attack.name} needs a table.", "Choose one, or send one.")
        settings = dict(wanted.settings)
        order = {
            "attack": attack.name,
            "epsilons": list(map(str, prices)),
            "settings": settings,
            "table": wanted.table,
            "csv": None if wanted.csv is None else decoded(wanted.csv),
        }
        return Run(owner, attack, tuple(prices), settings, _said(wanted), self._child()), order

    def _work(self, run: Run, order: Mapping[str, Any]) -> None:
        """Run one study, and note what came of it."""
        with self._mutex:
            if run.ended:
                return
            run.state = "running"
        study, problem = None, None
        try:
            study = run.child.run(order, run.advance)
        except HubbubError as error:
            problem = error
        except Exception:  # noqa: BLE001 - nobody waits for this thread, and its text may hold anything
            problem = lost()
        with self._mutex:
            if not run.ended:
                run.study, run.problem = study, problem
                run.state = "failed" if study is None else "done"

    def _forget(self, owner: str) -> None:
        """Forget the oldest studies, of this owner and of all; whoever calls this holds the mutex."""
        ended = [run for run in self._runs.values() if run.ended]
        own = [run for run in ended if run.owner == owner]
        for run in {*own[: max(0, len(own) - _KEPT_EACH + 1)], *ended[: max(0, len(ended) - _KEPT + 1)]}:
            del self._runs[run.id]


def _said(wanted: Wanted) -> str:
    if wanted.csv is not None:
        digest = sha256(wanted.csv).hexdigest()
        return f"sent along, {len(wanted.csv):,} bytes, SHA-256 {digest}"
    return "made up by the attack" if wanted.table == MADE_UP else f"{wanted.table}, which comes with hubbub"
