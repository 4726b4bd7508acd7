"""The lab: queues studies of attacks and of crowd sanitizers, runs a few at a time, and keeps their results in memory.

An attack reads raw rows, so it can never name a dataset of the server: a study gets a bundled table, a simulated one,
or an uploaded one, and runs in a separate process (`attacks.study_process`). Each principal has one unfinished study,
and sees only their own results.
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
from typing import Any, TypeVar

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.catalogue import Attack, find_attack
from hubbub.attacks.study_process import StudyProcess, no_result_error
from hubbub.attacks.study_worker import BUNDLED, MADE_UP, UPLOAD
from hubbub.attacks.upload import decode_upload
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.crowd.studies.base import CrowdStudy
from hubbub.crowd.studies.catalogue import StudyEntry, find_study
from hubbub.errors import AccessError, AttackError, HubbubError, LedgerError
from hubbub.server.problems import not_found
from hubbub.server.state import JobState

Setting = bool | int | float | str
R = TypeVar("R", bound="LabRun")

#: Limits of a study: seconds and bytes of memory.
SECONDS = 180
MEMORY = 2 << 30
#: Maximum number of concurrent studies; with the server they fit into the memory of packaging/hubbub.service.
MAX_RUNNING = 2
#: Maximum number of ε values in one study.
MAX_EPSILONS = 12
_WAITING = 8
_KEPT, _KEPT_EACH = 100, 5
_CHILD = partial(StudyProcess, seconds=SECONDS, memory=MEMORY)


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """A study to run: an attack on a table, against hubbub at these ε."""

    attack: str
    epsilons: tuple[numbers.Number, ...]
    table: str = MADE_UP
    csv: bytes | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CrowdRequest:
    """A study of the crowd sanitizers to run, on rows that it simulates."""

    study: str
    settings: Mapping[str, Setting] = field(default_factory=dict)


class LabRun:
    """What studies of both kinds have in common."""

    owner: str
    child: StudyProcess
    id: str
    state: JobState
    progress: tuple[float, str] | None
    study: AttackStudy | CrowdStudy | None
    problem: HubbubError | None

    @property
    def ended(self) -> bool:
        """Whether the study has finished, failed, or was cancelled."""
        return self.state not in ("queued", "running")

    def advance(self, done: float, what: str) -> None:
        """Record progress."""
        self.progress = (done, what)


@dataclass(eq=False)
class CrowdRun(LabRun):
    """One study of a crowd sanitizer: queued, running, or finished."""

    owner: str
    entry: StudyEntry
    settings: Mapping[str, Setting]
    child: StudyProcess
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    state: JobState = "queued"
    progress: tuple[float, str] | None = None
    study: CrowdStudy | None = None
    problem: HubbubError | None = None


@dataclass(eq=False)
class StudyRun(LabRun):
    """One study of an attack: queued, running, or finished."""

    owner: str
    attack: Attack
    epsilons: tuple[Fraction, ...]
    settings: Mapping[str, Setting]
    table: str  #: description of the table
    child: StudyProcess
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    state: JobState = "queued"
    progress: tuple[float, str] | None = None
    study: AttackStudy | None = None
    problem: HubbubError | None = None

    @property
    def epsilon_text(self) -> str:
        """The values of ε as text."""
        return ", ".join(map(brief, self.epsilons))

    def terms(self) -> dict[str, str]:
        """Return the parameters of the study for a report."""
        settings = ", ".join(f"{name} = {value}" for name, value in self.settings.items())
        return {"Table": self.table, "ε": self.epsilon_text, "Settings": settings or "defaults"}


class Lab:
    """Runs studies, a few at a time. Safe to use from many threads; close it once."""

    def __init__(self, *, running: int, child: Callable[[], StudyProcess] = _CHILD) -> None:
        self._child = child
        self._slots = running + _WAITING
        self._pool = ThreadPoolExecutor(max_workers=running, thread_name_prefix="hubbub-lab")
        self._runs: dict[str, LabRun] = {}
        self._mutex = threading.Lock()
        self._stopping = False

    def begin(self, owner: str, request: StudyRequest) -> StudyRun:
        """Queue an attack, or raise an error."""
        run, order = self._prepare(owner, request)
        self._queue(run, order, AttackStudy.read)
        return run

    def begin_crowd(self, owner: str, request: CrowdRequest) -> CrowdRun:
        """Queue a study of a crowd sanitizer, or raise an error."""
        entry = find_study(request.study)
        run = CrowdRun(owner, entry, dict(request.settings), self._child())
        self._queue(run, {"crowd": entry.name, "settings": dict(request.settings), "csv": None}, CrowdStudy.read)
        return run

    def _queue(self, run: LabRun, order: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Any]) -> None:
        with self._mutex:
            if self._stopping:
                raise LedgerError("HB319", "The server is shutting down.", "Try again in a minute.")
            unfinished = [other for other in self._runs.values() if not other.ended]
            if any(other.owner == run.owner for other in unfinished):
                raise AccessError(
                    "HB725", "You already have an unfinished study.", "Wait until it finishes, or cancel it.", 5
                )
            if len(unfinished) >= self._slots:
                raise AccessError("HB725", "Too many studies are waiting.", "Try again in a minute.", 60)
            self._forget(run.owner)
            self._runs[run.id] = run
            self._pool.submit(self._work, run, order, read)

    def find(self, owner: str, number: str, kind: type[R]) -> R:
        """Return a run of this owner and kind."""
        run = self._runs.get(number)
        if not isinstance(run, kind) or run.owner != owner:
            raise not_found("study with this id; only your most recent ones are kept, until the server restarts")
        return run

    def snapshot(self, owner: str, number: str, kind: type[R]) -> R:
        """Return a copy of a run of this owner, which does not change while it is rendered."""
        run = self.find(owner, number, kind)
        with self._mutex:
            return copy(run)

    def latest(self, owner: str, kind: type[R]) -> tuple[R, ...]:
        """Return the runs of this owner and kind, newest first."""
        with self._mutex:
            runs = [run for run in reversed(self._runs.values()) if isinstance(run, kind)]
        return tuple(run for run in runs if run.owner == owner)

    def cancel(self, run: LabRun) -> None:
        """Cancel a run that is queued or running."""
        with self._mutex:
            if run.ended:
                return
            run.state = "cancelled"
        run.child.kill()

    def close(self) -> None:
        """Cancel all runs and stop."""
        with self._mutex:
            self._stopping = True
            runs = list(self._runs.values())
        for run in runs:
            self.cancel(run)
        self._pool.shutdown(wait=True)

    def _prepare(self, owner: str, request: StudyRequest) -> tuple[StudyRun, dict[str, Any]]:
        attack = find_attack(request.attack)
        if not 0 < len(request.epsilons) <= MAX_EPSILONS:
            raise AttackError(
                "HB643", f"A study takes 1 to {MAX_EPSILONS} values of ε.", "Use values such as 0.1, 1, 10."
            )
        epsilons = sorted({numbers.epsilon(value) for value in request.epsilons})
        if (request.table == UPLOAD) != (request.csv is not None):
            raise AttackError("HB645", "No table was uploaded.", "Upload a CSV file or choose another table.")
        if request.table not in (MADE_UP, UPLOAD, *BUNDLED):
            raise AttackError("HB642", "Unknown table.", f"Choose {MADE_UP!r} or upload a table.")
        if attack.table == "no" and request.table != MADE_UP:
            raise AttackError(
                "HB642", f"{attack.name} simulates its own table and takes no other.", "Remove the table."
            )
        if attack.table == "must" and request.table == MADE_UP:
            raise AttackError("HB642", f"{attack.name} needs a table.", "Choose or upload one.")
        settings = dict(request.settings)
        order = {
            "attack": attack.name,
            "epsilons": list(map(str, epsilons)),
            "settings": settings,
            "table": request.table,
            "csv": None if request.csv is None else decode_upload(request.csv),
        }
        return StudyRun(owner, attack, tuple(epsilons), settings, _describe(request), self._child()), order

    def _work(self, run: LabRun, order: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Any]) -> None:
        """Run one study and store its result."""
        with self._mutex:
            if run.ended:
                return
            run.state = "running"
        study, problem = None, None
        try:
            study = run.child.run(order, run.advance, read)
        except HubbubError as error:
            problem = error
        except Exception:  # noqa: BLE001 - no one waits for this thread, and the text may hold data
            problem = no_result_error()
        with self._mutex:
            if not run.ended:
                run.study, run.problem = study, problem
                run.state = "failed" if study is None else "done"

    def _forget(self, owner: str) -> None:
        """Drop the oldest studies of this owner and of all; the caller holds the mutex."""
        ended = [run for run in self._runs.values() if run.ended]
        theirs = [run for run in ended if run.owner == owner]
        for run in {*theirs[: max(0, len(theirs) - _KEPT_EACH + 1)], *ended[: max(0, len(ended) - _KEPT + 1)]}:
            del self._runs[run.id]


def _describe(request: StudyRequest) -> str:
    if request.csv is not None:
        digest = sha256(request.csv).hexdigest()
        return f"uploaded, {len(request.csv):,} bytes, SHA-256 {digest}"
    return "simulated by the attack" if request.table == MADE_UP else f"{request.table}, bundled with hubbub"
