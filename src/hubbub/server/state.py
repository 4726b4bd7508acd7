"""What the server keeps beside the ledger: tokens, requests for budget, retries, jobs, sessions that were ended.

    state.tokens    who may come in: a token is kept as a hash only
    state.requests  what analysts asked the owner for, each decided once
    state.retries   which charge a client's Idempotency-Key belongs to, written before the charge
    state.jobs      questions that are polled for, each seen by its analyst alone
    state.ended     sessions of the pages that were signed out of
    state.feeds     which streams a feeder's token may feed

Nothing here decides on a budget. Times are seconds since 1970.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

from hubbub.config import Config
from hubbub.curator.opening import folder_of, is_postgres
from hubbub.errors import ParameterError
from hubbub.server.database import Database, Postgres, Sqlite

Role = Literal["owner", "analyst", "auditor", "feeder"]
ROLES: tuple[Role, ...] = get_args(Role)
Verdict = Literal["granted", "refused"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]

MOST_OPEN = 20  # requests of one analyst that wait for the owner

_FIELDS = "id, name, role, digest, created, expires, revoked, used"
_REQUEST = "id, analyst, dataset, epsilon, reason, created, state, decided, decider, note"
_FIND_TOKEN = f"SELECT {_FIELDS} FROM tokens WHERE id = ?"  # noqa: S608
_LIST_TOKENS = f"SELECT {_FIELDS} FROM tokens WHERE COALESCE(?, name) = name ORDER BY created DESC, id"  # noqa: S608
# PostgreSQL wants to know the type of what it selects; the count keeps an analyst from filling the table
_ADD_REQUEST = (
    "INSERT INTO requests (analyst, dataset, epsilon, reason, created, state) "  # noqa: S608
    "SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), 'open' "
    f"WHERE (SELECT count(*) FROM requests WHERE analyst = ? AND state = 'open') < {MOST_OPEN} RETURNING {_REQUEST}"
)
_HOLDERS = "SELECT DISTINCT name FROM tokens WHERE role = 'analyst' AND revoked IS NULL"
_FIND_REQUEST = f"SELECT {_REQUEST} FROM requests WHERE id = ?"  # noqa: S608
_LIST_REQUESTS = (
    f"SELECT {_REQUEST} FROM requests WHERE id < ? AND COALESCE(?, analyst) = analyst ORDER BY id DESC LIMIT ?"  # noqa: S608
)
_DECIDE = (
    "UPDATE requests SET state = ?, decided = ?, decider = ?, note = ? "  # noqa: S608
    f"WHERE id = ? AND state = 'open' RETURNING {_REQUEST}"
)
_FIND_JOB = "SELECT id, analyst, server, state, created, changed, result FROM jobs WHERE id = ? AND analyst = ?"


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token: never the secret. `used` is the day of its last use."""

    id: str
    name: str
    role: Role
    digest: bytes
    created: int
    expires: int
    revoked: int | None = None
    used: str | None = None

    def form(self) -> dict[str, object]:
        """Give what may be shown of it."""
        return {
            "id": self.id,
            "name": self.name,
            "role": self.role,
            "created": self.created,
            "expires": self.expires,
            "revoked": self.revoked,
            "used": self.used,
        }


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """An analyst's request for more budget, and what became of it."""

    id: int
    analyst: str
    dataset: str
    epsilon: Fraction
    reason: str
    created: int
    state: Literal["open", "granted", "refused"]
    decided: int | None = None
    decider: str | None = None
    note: str | None = None

    def form(self) -> dict[str, object]:
        """Give it as plain values."""
        return {
            "id": self.id,
            "analyst": self.analyst,
            "dataset": self.dataset,
            "epsilon": str(self.epsilon),
            "reason": self.reason,
            "created": self.created,
            "state": self.state,
            "decided": self.decided,
            "decider": self.decider,
            "note": self.note,
        }


class Claim(NamedTuple):
    """What an Idempotency-Key was first used for: the hash of the body, and the key of the charge in the ledger."""

    digest: str
    ledger_key: str


@dataclass(frozen=True, slots=True)
class Job:
    """A question that is polled for; `result` is what its end is to show, as text. `server` is who works on it."""

    id: str
    analyst: str
    server: str
    state: JobState
    created: int
    changed: int
    result: str | None = None


class Tokens:
    """The tokens, by their ids."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, token: Token) -> None:
        """Keep a new one."""
        self._database.write(
            "INSERT INTO tokens (id, name, role, digest, created, expires) VALUES (?, ?, ?, ?, ?, ?)",
            (token.id, token.name, token.role, token.digest, token.created, token.expires),
        )

    def find(self, id_: str) -> Token | None:
        """Find one by its id."""
        rows = self._database.read(_FIND_TOKEN, (id_,))
        return Token(*rows[0]) if rows else None

    def list(self, name: str | None = None) -> list[Token]:
        """Give all, or those of one name, the newest first."""
        return [Token(*row) for row in self._database.read(_LIST_TOKENS, (name,))]

    def revoke(self, id_: str, at: int) -> None:
        """Close one for good; a second time changes nothing."""
        rows = self._database.write(
            "UPDATE tokens SET revoked = COALESCE(revoked, ?) WHERE id = ? RETURNING id", (at, id_)
        )
        if not rows:
            raise ParameterError("HB143", "there is no token with that id.", "hubbub analyst list shows them.")

    def revoke_all(self, name: str, role: Role, at: int) -> int:
        """Close all that one person has in a role, and say how many that were."""
        return len(
            self._database.write(
                "UPDATE tokens SET revoked = ? WHERE name = ? AND role = ? AND revoked IS NULL RETURNING id",
                (at, name, role),
            )
        )

    def holders(self) -> set[str]:
        """Name the analysts who have a token that was not revoked."""
        return {str(row[0]) for row in self._database.read(_HOLDERS, ())}

    def note_use(self, id_: str, day: str) -> None:
        """Remember the day of a use; written once a day."""
        self._database.write("UPDATE tokens SET used = ? WHERE id = ? AND (used IS NULL OR used < ?)", (day, id_, day))


class Requests:
    """Requests for more budget."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, analyst: str, dataset: str, epsilon: Fraction, reason: str, at: int) -> BudgetRequest:
        """Keep a new one; each analyst may have some open, not many."""
        rows = self._database.write(_ADD_REQUEST, (analyst, dataset, str(epsilon), reason, at, analyst))
        if not rows:
            raise ParameterError(
                "HB142", f"{MOST_OPEN} of your requests are still open.", "Wait until the owner has looked at them."
            )
        return _request(rows[0])

    def find(self, id_: int) -> BudgetRequest | None:
        """Find one by its number."""
        rows = self._database.read(_FIND_REQUEST, (id_,))
        return _request(rows[0]) if rows else None

    def list(self, analyst: str | None = None, *, limit: int = 100, before: int | None = None) -> list[BudgetRequest]:
        """Give all, or those of one analyst, the newest first; those with a number below `before`."""
        rows = self._database.read(_LIST_REQUESTS, (2**62 if before is None else before, analyst, limit))
        return [_request(row) for row in rows]

    def decide(self, id_: int, verdict: Verdict, *, by: str, note: str, at: int) -> BudgetRequest:
        """Decide an open request. Of several who decide at once, one succeeds and the others hear that it is decided.

        Decide before the cap is raised, not after: a crash in between then costs the analyst a second request, and
        never raises a cap twice.
        """
        rows = self._database.write(_DECIDE, (verdict, at, by, note, id_))
        if rows:
            return _request(rows[0])
        if self.find(id_) is None:
            raise ParameterError("HB140", "there is no request with that number.", "See the list of requests.")
        raise ParameterError("HB141", "this request was decided before.", "Look at it again; nothing was changed.")

    def reopen(self, id_: int) -> None:
        """Take back a grant that could not be written to hubbub.yaml."""
        self._database.write(
            "UPDATE requests SET state = 'open', decided = NULL, decider = NULL, note = NULL "
            "WHERE id = ? AND state = 'granted'",
            (id_,),
        )


class Retries:
    """What each Idempotency-Key of a client stands for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, analyst: str, header: str, digest: str, ledger_key: str) -> Claim:
        """Write down what a header stands for, durably, or give what it stands for already. Nothing changes it."""
        rows = self._database.write(
            "INSERT INTO retries (analyst, header, digest, ledger_key) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (analyst, header) DO NOTHING RETURNING digest, ledger_key",
            (analyst, header, digest, ledger_key),
        )
        return Claim(*rows[0]) if rows else self._found(analyst, header)

    def find(self, analyst: str, header: str) -> Claim | None:
        """Look what a header stands for."""
        rows = self._database.read(
            "SELECT digest, ledger_key FROM retries WHERE analyst = ? AND header = ?", (analyst, header)
        )
        return Claim(*rows[0]) if rows else None

    def _found(self, analyst: str, header: str) -> Claim:
        claim = self.find(analyst, header)
        if claim is None:
            raise AssertionError("a claim that was in the way is there")
        return claim


class Jobs:
    """Questions that are polled for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, job: Job) -> None:
        """Keep a job, or what became of it. What has ended stays as it ended."""
        self._database.write(
            "INSERT INTO jobs (id, analyst, server, state, created, changed, result) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET state = excluded.state, changed = excluded.changed, "
            "result = excluded.result WHERE jobs.analyst = excluded.analyst AND jobs.state IN ('queued', 'running')",
            (job.id, job.analyst, job.server, job.state, job.created, job.changed, job.result),
        )

    def get(self, analyst: str, id_: str) -> Job | None:
        """Find a job of this analyst; another's is not there."""
        rows = self._database.read(_FIND_JOB, (id_, analyst))
        return Job(*rows[0]) if rows else None

    def touch(self, server: str, at: int) -> None:
        """Say that a server still works on its jobs."""
        self._database.write(
            "UPDATE jobs SET changed = ? WHERE server = ? AND state IN ('queued', 'running')", (at, server)
        )

    def abandon(self, before: int, at: int, result: str) -> int:
        """Fail the jobs that no server has touched since, and say how many that were."""
        return len(
            self._database.write(
                "UPDATE jobs SET state = 'failed', changed = ?, result = ? "
                "WHERE state IN ('queued', 'running') AND changed < ? RETURNING id",
                (at, result, before),
            )
        )


class Ended:
    """Sessions of the pages that were signed out of, for as long as their cookies would still be good.

    An analyst who was removed stands here too, under a name that no session has, for as long as any session lasts.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session: str, until: int, at: int) -> None:
        """End a session; those that are over anyhow are forgotten."""
        self._database.write("DELETE FROM ended WHERE until < ?", (at,))
        self._database.write(
            "INSERT INTO ended (session, until) VALUES (?, ?) "
            "ON CONFLICT (session) DO UPDATE SET until = excluded.until WHERE excluded.until > ended.until",
            (session, until),
        )

    def has(self, session: str, at: int = 0) -> bool:
        """Say whether a session was ended, and its cookie would still be good at that time."""
        return bool(self._database.read("SELECT 1 FROM ended WHERE session = ? AND until >= ?", (session, at)))


class Feeds:
    """Which streams the token of a feeder may feed: each by its analyst and its name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, token: str, analyst: str, stream: str) -> None:
        """Let a token feed a stream."""
        self._database.write(
            "INSERT INTO feeds (token, analyst, stream) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (token, analyst, stream),
        )

    def of(self, token: str) -> frozenset[tuple[str, str]]:
        """Give what a token may feed."""
        rows = self._database.read("SELECT analyst, stream FROM feeds WHERE token = ?", (token,))
        return frozenset((str(analyst), str(stream)) for analyst, stream in rows)


class State:
    """All of it, over one database. Safe to use from many threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tokens = Tokens(database)
        self.requests = Requests(database)
        self.retries = Retries(database)
        self.jobs = Jobs(database)
        self.ended = Ended(database)
        self.feeds = Feeds(database)

    @classmethod
    def open(cls, config: Config) -> "State":
        """Open what belongs to a hubbub.yaml: the ledger's PostgreSQL database, or a file beside its SQLite file."""
        if is_postgres(config):
            return cls(Postgres(config.places.database or ""))
        return cls(Sqlite(folder_of(config) / "server.db"))

    def writable(self) -> None:
        """Write a row and take it away, durably; raise LedgerError where nothing can be written."""
        self._database.write(
            "INSERT INTO ended (session, until) VALUES ('readiness', -1) ON CONFLICT (session) DO UPDATE SET until = -1"
        )
        self._database.write("DELETE FROM ended WHERE until < 0")

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()


def _request(row: tuple[object, ...]) -> BudgetRequest:
    number, analyst, dataset, epsilon, *rest = row
    return BudgetRequest(number, analyst, dataset, Fraction(str(epsilon)), *rest)  # type: ignore[arg-type]
