"""The list of scheduled queries: a private file beside the ledger. Their answers are releases in the ledger.

Tested in tests/curator/test_schedule.py.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

from hubbub.accounting.chain import canonical
from hubbub.accounting.policy import is_name
from hubbub.core.blocks import Blocks, start
from hubbub.curator.question import Question
from hubbub.errors import LedgerError, ParameterError
from hubbub.private_files import locked, replace_text

FILE = "schedules.json"
#: Format 1 has no `wait`: its queries run as soon as a block has ended.
FORMAT, _OLD = 2, 1
#: Scheduled queries of one analyst. Each is planned before it runs, so that their number bounds the work.
MAX_SCHEDULES = 50
#: Days to wait after the end of a block, at most.
MAX_WAIT = 366


@dataclass(frozen=True, slots=True)
class Schedule:
    """One scheduled query of an analyst; names are unique per analyst.

    first  the first block that it runs for
    wait   the days after the end of a block until it runs, so that late rows can arrive
    """

    name: str
    analyst: str
    dataset: str
    sql: str
    epsilon: str
    first: str
    wait: int = 0

    def runs_on(self, blocks: Blocks, block: int) -> date:
        """Return the first day on which it runs for a block."""
        return start(blocks.by, block + 1) + timedelta(days=self.wait)

    def key(self, block: str) -> str:
        """Give the idempotency key of the run for one block: another query under the same name has other keys."""
        terms = canonical([self.analyst, self.dataset, self.sql, self.epsilon])
        return f"schedule {sha256(terms.encode()).hexdigest()[:32]} {block}"

    def question(self, blocks: Blocks, block: int) -> Question:
        """Give the query for one block: $1 is its first day, and $2 the day after its last."""
        ends = (start(blocks.by, block), start(blocks.by, block + 1))
        return Question(self.sql, epsilon=self.epsilon, parameters=ends)


class Schedules:
    """The scheduled queries of one ledger."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def list(self, analyst: str | None = None) -> tuple[Schedule, ...]:
        """List the scheduled queries of one analyst, or of all, by their names."""
        with self._locked() as known:
            found = [each for each in known.values() if analyst in (None, each.analyst)]
        return tuple(sorted(found, key=lambda each: (each.name, each.analyst)))

    def find(self, name: str, analyst: str | None = None) -> Schedule:
        """Find one by its name, and by its analyst if several have one of this name."""
        mine = self.list(analyst)
        found = [each for each in mine if each.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            owners = ", ".join(each.analyst for each in found)
            raise ParameterError(
                "HB797", f"Several analysts have a scheduled query named {name!r}.", f"Name one of them: {owners}."
            )
        names = ", ".join(each.name for each in mine) or "none"
        raise ParameterError("HB797", f"There is no scheduled query named {name!r}.", f"Scheduled: {names}.")

    def add(self, schedule: Schedule) -> None:
        """Add one under a new name."""
        with self._locked() as known:
            if (schedule.analyst, schedule.name) in known or not is_name(schedule.name):
                raise ParameterError(
                    "HB797",
                    f"{schedule.name!r} is in use, or is not a valid name.",
                    "Choose another name: letters, digits, or any of . _ @ + -.",
                )
            if sum(each.analyst == schedule.analyst for each in known.values()) >= MAX_SCHEDULES:
                raise ParameterError(
                    "HB797",
                    f"{schedule.analyst} has {MAX_SCHEDULES} scheduled queries, the maximum.",
                    "Remove one of them.",
                )
            known[schedule.analyst, schedule.name] = schedule

    def remove(self, name: str, analyst: str | None = None) -> None:
        """Remove one; its answers stay in the ledger."""
        found = self.find(name, analyst)
        with self._locked() as known:
            known.pop((found.analyst, found.name), None)

    @contextmanager
    def _locked(self) -> Iterator[dict[tuple[str, str], Schedule]]:
        """Yield the scheduled queries by analyst and name, and save changes atomically."""
        try:
            with locked(self._path.with_suffix(".lock")):
                text = self._path.read_text() if self._path.exists() else json.dumps({"format": FORMAT, "queries": []})
                content = json.loads(text)
                if content["format"] not in (FORMAT, _OLD):
                    raise ValueError(content["format"])
                read = [Schedule(**each) for each in content["queries"]]
                known = {(each.analyst, each.name): each for each in read}
                yield known
                if [*known.values()] != read:
                    content = {"format": FORMAT, "queries": [asdict(each) for each in known.values()]}
                    replace_text(self._path, json.dumps(content))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                "HB798",
                f"The list of scheduled queries {self._path} cannot be used. Nothing was charged.",
                "Make it writable for this user, or remove it and add the queries again: their answers stay.",
            ) from error
