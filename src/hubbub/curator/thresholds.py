"""Sessions of above threshold: the ledger counts their answers, and one secret file keeps the noise of the threshold.

    CALL above_threshold(…)   an ordinary charge, under the key "above threshold NAME"
    CALL compare(…)           a charge of nothing, under the key "comparison NAME NUMBER", with a recorded answer

Each answer is an entry of the ledger, so a restored state gives no answer twice, and an auditor sees all of them.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from hubbub.accounting.blocks import closed_by
from hubbub.accounting.chain import Entry, canonical, facts_text
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.store import EntryFilter
from hubbub.analyses.threshold import Comparison, OpenSession, ThresholdTerms, threshold_noise
from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.config import Config
from hubbub.core import call as calls
from hubbub.core import chunked_json
from hubbub.core.events import Composed, SparseVectorEvent, from_facts
from hubbub.curator.question import Question
from hubbub.curator.replay import declared_hash
from hubbub.errors import ParameterError, QueryError, SpentError
from hubbub.noise import source
from hubbub.noise.source import SEED, SeededSource
from hubbub.private_files import create_folder, locked, open_private

_EMPTY = facts_text(Composed(()))
#: The end of the text of a comparison.
COMPARED = re.compile(r" -- session (?P<session>\d+), data [0-9a-f]{16}, state (?P<state>[0-9a-f]{32})$")


def is_comparison(question: Question) -> bool:
    """Return whether a query is CALL compare(…)."""
    return calls.is_call(question.sql) and calls.parse_call(question.sql).name == "compare"


def session_key(question: Question) -> str | None:
    """Give the ledger's key of CALL above_threshold(…): a name is charged once, whatever becomes of the data."""
    if not calls.is_call(question.sql):
        return None
    call = calls.parse_call(question.sql)
    return f"above threshold {call.arguments.get('name')}" if call.name == "above_threshold" else None


@contextmanager
def named(question: Question) -> Iterator[None]:
    """Refuse a session whose name was used for another one."""
    try:
        yield
    except ParameterError as error:
        if error.code != "HB124" or session_key(question) is None:
            raise
        raise QueryError(
            "HB676",
            "You have used this name for a session with other arguments.",
            "Choose another name, or repeat the call as it was to see the session.",
        ) from None


def folder(config: Config) -> Path:
    """Give the folder of the sessions' secrets, beside the ledger."""
    from hubbub.curator.opening import folder_of

    return folder_of(config) / "thresholds"


@dataclass(frozen=True, slots=True)
class ThresholdAnswer:
    """A comparison of a session in the ledger; `above` is None while it has no recorded answer."""

    number: int
    entry: Entry
    above: bool | None


@dataclass(frozen=True, slots=True)
class SessionState:
    """A charged session and its comparisons, as the ledger has them."""

    analyst: str
    entry: Entry
    terms: ThresholdTerms
    answers: tuple[ThresholdAnswer, ...]

    @property
    def hits(self) -> int:
        """The number of answers that were above."""
        return sum(answer.above is True for answer in self.answers)

    @property
    def next_number(self) -> int:
        """The number of the next comparison."""
        return max((answer.number for answer in self.answers), default=0) + 1

    @property
    def halted(self) -> bool:
        """Whether all hits or all questions are used up; it depends only on the ledger."""
        mechanism = self.terms.mechanism
        return self.hits >= mechanism.hits or self.next_number > mechanism.queries


def for_session(ledger: Ledger, analyst: str, question: Question) -> Question:
    """Give a comparison the cost and the contribution bounds of its session, with which it is planned."""
    if question.groups or question.rows:
        raise QueryError(
            "HB672", "A comparison uses the contribution bounds of its session.", "Leave out groups and rows."
        )
    terms = find(ledger, analyst, question).terms
    return replace(question, epsilon=terms.epsilon, delta=0, groups=terms.groups, rows=terms.rows)


def find(ledger: Ledger, analyst: str, question: Question) -> SessionState:
    """Find the session of a comparison in the ledger."""
    arguments = calls.parse_call(question.sql).arguments
    name, dataset = str(arguments.get("name")), str(arguments.get("table"))
    opened = ledger.recall(analyst, f"key above threshold {name} {dataset}")
    if opened is None or opened.release is None:
        raise _unknown(name, dataset)
    event = from_facts(json.loads(opened.entry.facts))
    # an analyst may have given this key to another query
    if not isinstance(event, Composed) or not any(isinstance(part, SparseVectorEvent) for part, _ in event.parts):
        raise _unknown(name, dataset)
    terms = ThresholdTerms.read(chunked_json.loads(opened.release)["answer"]["model"]["terms"])
    return SessionState(analyst, opened.entry, terms, tuple(_answers(ledger, opened.entry, analyst, name)))


def _answers(ledger: Ledger, opened: Entry, analyst: str, name: str) -> Iterator[ThresholdAnswer]:
    """Read the comparisons of a session, in order."""
    head, tail = f"key comparison {name} ", f" {opened.dataset}"
    which = EntryFilter(kind="charge", analyst=analyst, dataset=opened.dataset)
    with ledger.snapshot() as snapshot:
        for entry in snapshot.entries(which, after=opened.sequence):
            number = entry.key.removeprefix(head).removesuffix(tail)
            if not entry.key.startswith(head) or not number.isdecimal():
                continue
            body = snapshot.body(entry.sequence)
            # another query under such a key uses up the number, and is no answer
            own = entry.facts == _EMPTY and body is not None
            above = bool(chunked_json.loads(body)["answer"]["model"]["above"]) if own and body is not None else None
            yield ThresholdAnswer(int(number), entry, above)


#: Charges and answers a comparison under a text and a key.
Ask = Callable[[Comparison, str, str], Release]


def compare(
    ledger: Ledger,
    secrets: Path,
    planned: Comparison,
    *,
    analyst: str,
    question: Question,
    versions: dict[str, str],
    recorded: Callable[[Entry], Release],
    ask: Ask,
) -> Release:
    """Answer one question of a session, at most as often as was charged.

    Theorem (No more answers than were charged). However often processes crash, race or are restored from a backup of
    the state, a session records at most `hits` answers that are above and at most `questions` answers, all with one
    noise of the threshold; and one question on one version of the data has one answer.
    Proof    Answers are counted in the ledger, under a lock that is held from the count to the recorded answer. Where
             no lock is shared, two comparisons of one number have one key, which the ledger charges once, to the
             request that came first. The noise of the threshold is a function of a seed; the hash of both is part of
             every request, and a process with another seed, none, or another noise from it is refused. The seed is
             created only before the first comparison. A comparison without an answer is repeated with its own draws (A
             charge draws once) while it is the last one, and is never answered afterwards. Answers that an older copy
             of the ledger may have lost are not counted, so no session from before a forfeit is continued.
    Assumes  nobody but this user reads the folder; copies of it are not used on two machines at once; the ledger is not
             rolled back but by a recorded forfeit (its anchor tells).
    Tested   tests/curator/test_thresholds.py::test_a_session_halts_and_gives_nothing_afterwards
             tests/curator/test_thresholds.py::test_a_lost_or_exchanged_secret_ends_the_session
             tests/curator/test_thresholds.py::test_a_crash_repeats_the_draws_of_the_comparison
             tests/curator/test_thresholds.py::test_comparisons_at_once_record_no_more_hits_than_were_charged
             tests/curator/test_thresholds.py::test_a_session_from_before_a_forfeit_is_not_continued
             tests/curator/test_thresholds.py::test_another_noise_from_the_same_seed_ends_the_session
    """
    dataset = planned.private[0].name
    with _locked(secrets, find(ledger, analyst, question).entry) as path:
        session = find(ledger, analyst, question)
        planned.covers(session.terms)
        asked = f"{question.text()} -- session {session.entry.sequence}, data {_data(planned, versions)}"
        for answer in reversed(session.answers):
            same = _asked(answer.entry.query) == asked and answer.entry.version == versions[dataset]
            if same and answer.above is not None:
                return recorded(answer.entry)
            if same and answer is session.answers[-1] and answer.entry.facts == _EMPTY:
                _refuse_forfeited(ledger, session)
                with suppress(SpentError):  # its seed is lost: the number is used up
                    return _ask(session, answer.number, path, planned, asked, ask)
        session = find(ledger, analyst, question)
        if session.halted:
            erase(path)
            mechanism, used = session.terms.mechanism, session.next_number - 1
            raise QueryError(
                "HB673",
                f"Session {session.terms.name} has halted: it has used {used} of {mechanism.queries} questions and "
                f"{session.hits} of {mechanism.hits} answers that are above.",
                "Its answers can be read again for free. Open another session, at its full privacy cost.",
            )
        _refuse_forfeited(ledger, session)
        return _ask(session, session.next_number, path, planned, asked, ask)


def _ask(session: SessionState, number: int, path: Path, planned: Comparison, asked: str, ask: Ask) -> Release:
    """Charge nothing, under the number of the comparison and the hash of the secret state, and answer."""
    bar, state = _state(path, session)
    opened = OpenSession(session.entry.sequence, session.terms, number, session.hits, bar)
    text = f"{asked}, state {state}"
    release = ask(replace(planned, session=opened), text, f"comparison {session.terms.name} {number}")
    if release.model["above"] and release.model["hits_left"] == 0:
        erase(path)  # nothing will be compared with it any more
    return release


def estimate(planned: Comparison) -> Estimate:
    """Give the estimate of a comparison, which costs nothing more."""
    names, nothing = tuple(table.name for table in planned.private), Fraction(0)
    return Estimate(
        names,
        nothing,
        nothing,
        "no further",
        0,
        (),
        planned.derivation,
        admitted=True,
        largest=nothing,
        scaling=(),
        sql=(),
    )


def _asked(text: str) -> str:
    """Give the question of a stored text with its session and data, without the secret state."""
    return text.rpartition(", state ")[0]


def _data(planned: Comparison, versions: Mapping[str, str]) -> str:
    """Hash what an answer depends on besides the question: declarations, and versions also of public tables."""
    declared = declared_hash(planned.tables)
    return sha256(canonical([declared, dict(versions)]).encode()).hexdigest()[:16]


def _commitment(seed: bytes, bar: int) -> str:
    """Hash the secret state: another version of this program that makes another noise of the seed is refused."""
    return sha256(b"hubbub threshold\0" + seed + str(bar).encode()).hexdigest()[:32]


def _refuse_forfeited(ledger: Ledger, session: SessionState) -> None:
    """Refuse a session whose answers an older copy of the ledger may have lost."""
    with ledger.snapshot() as snapshot:
        notes = snapshot.entries(EntryFilter(kind="forfeit"), after=session.entry.sequence)
        facts = (json.loads(entry.facts) for entry in notes)
        if any(each["charged"] and not closed_by(each) for each in facts):
            raise QueryError(
                "HB674",
                f"Session {session.terms.name} is older than a forfeit: the ledger may have lost some of its answers.",
                "Open another session, at its full privacy cost.",
            )


@contextmanager
def _locked(secrets: Path, opened: Entry) -> Iterator[Path]:
    """Lock a session and give the path of its secret; the ledger's hash of the charge names it."""
    create_folder(secrets)
    path = secrets / f"{opened.hash.hex()}.seed"
    with locked(path.with_suffix(".lock")):
        yield path


def _state(path: Path, session: SessionState) -> tuple[int, str]:
    """Give the noise of the threshold and the hash of the secret state, created before the first comparison."""
    used = [answer.entry.query for answer in session.answers if answer.entry.facts == _EMPTY]
    if not used and not path.exists():
        file = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(file, "wb") as opened:
            opened.write(source.fresh_key())
            opened.flush()
            os.fsync(opened.fileno())
    seed = path.read_bytes() if path.exists() else b""
    if len(seed) == SEED:
        bar = threshold_noise(session.terms.mechanism, SeededSource(seed))
        state = _commitment(seed, bar)
        if all(text.rpartition(", state ")[2] == state for text in used):
            return bar, state
    raise QueryError(
        "HB674",
        f"The secret state of session {session.terms.name} is lost or belongs to another process.",
        "Ask where the session was opened, or open another session, at its full privacy cost.",
    )


def erase(path: Path) -> None:
    """Overwrite and remove the secret of a session that has halted."""
    with suppress(OSError):
        with path.open("r+b") as file:
            file.write(bytes(SEED))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()


def _unknown(name: str, dataset: str) -> QueryError:
    return QueryError(
        "HB675",
        f"You have no session named {name} on {dataset}.",
        f"Open one: CALL above_threshold(table => '{dataset}', name => '{name}', threshold => 100).",
    )
