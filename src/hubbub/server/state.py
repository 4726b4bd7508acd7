"""What the server stores besides the ledger.

    state.tokens    tokens, as hashes only
    state.requests  analysts' requests for more budget, each decided once
    state.retries   the charge that belongs to a client's Idempotency-Key, written before the charge
    state.jobs      background jobs, visible to their analyst only
    state.ended     sessions of the pages that were signed out
    state.feeds     the streams that a feeder token may feed
    state.publications  who published or withdrew which release, and when
    state.attempts  scheduled queries that were tried and have no answer
    state.comments  comments on releases
    state.questions, state.dashboards  what analysts saved
    state.visits    when each analyst last opened the home page, and their caps then

No budget decision depends on these tables. Times are seconds since 1970.
"""

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

from hubbub.config import Config
from hubbub.curator.opening import folder_of, is_postgres
from hubbub.errors import ParameterError
from hubbub.server.attempts import AttemptTable
from hubbub.server.comments import CommentTable
from hubbub.server.database import Database, PostgresDatabase, SqliteDatabase
from hubbub.server.saved import DashboardTable, QuestionTable, VisitTable

Role = Literal["owner", "analyst", "auditor", "feeder", "steward"]
ROLES: tuple[Role, ...] = get_args(Role)
Decision = Literal["granted", "refused"]
PublicationKind = Literal["requested", "declined", "published", "withdrawn"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]

MAX_OPEN = 20  # open requests of one analyst

_FIELDS = "id, name, role, digest, created, expires, revoked, used, verifier"
_REQUEST = "id, analyst, dataset, epsilon, reason, created, state, decided, decider, note"
_FIND_TOKEN = f"SELECT {_FIELDS} FROM tokens WHERE id = ?"  # noqa: S608
_LIST_TOKENS = f"SELECT {_FIELDS} FROM tokens WHERE COALESCE(?, name) = name ORDER BY created DESC, id"  # noqa: S608
# PostgreSQL needs the types of selected parameters; the count keeps an analyst from filling the table
_ADD_REQUEST = (
    "INSERT INTO requests (analyst, dataset, epsilon, reason, created, state) "  # noqa: S608
    "SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), 'open' "
    f"WHERE (SELECT count(*) FROM requests WHERE analyst = ? AND state = 'open') < {MAX_OPEN} RETURNING {_REQUEST}"
)
_HOLDERS = "SELECT DISTINCT name FROM tokens WHERE role = 'analyst' AND revoked IS NULL"
_SHUT_OUT = (
    "SELECT name FROM tokens WHERE role = 'analyst' GROUP BY name "
    "HAVING max(revoked) IS NOT NULL AND max(CASE WHEN revoked IS NULL AND expires > ? THEN 1 ELSE 0 END) = 0"
)
_FIND_REQUEST = f"SELECT {_REQUEST} FROM requests WHERE id = ?"  # noqa: S608
_LIST_REQUESTS = (
    f"SELECT {_REQUEST} FROM requests WHERE id < ? AND COALESCE(?, analyst) = analyst ORDER BY id DESC LIMIT ?"  # noqa: S608
)
_DECIDE = (
    "UPDATE requests SET state = ?, decided = ?, decider = ?, note = ? "  # noqa: S608
    f"WHERE id = ? AND state = 'open' RETURNING {_REQUEST}"
)
_ACTION = "id, page, release, title, notes, action, who, at"
_FIND_JOB = "SELECT id, analyst, server, state, created, changed, result FROM jobs WHERE id = ? AND analyst = ?"


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A stored token, without its secret. `used` is the day of its last use; `verifier` is what `scram` checks with."""

    id: str
    name: str
    role: Role
    digest: bytes
    created: int
    expires: int
    revoked: int | None = None
    used: str | None = None
    verifier: bytes | None = None

    def to_json(self) -> dict[str, object]:
        """Return the fields that may be shown."""
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
    """An analyst's request for more budget and the decision on it."""

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

    def to_json(self) -> dict[str, object]:
        """Return plain values."""
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
    """The first use of an Idempotency-Key: the hash of the request and the key of its charge in the ledger."""

    digest: str
    ledger_key: str


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A background job. `server` is the server that runs it; `result` is its outcome as text."""

    id: str
    analyst: str
    server: str
    state: JobState
    created: int
    changed: int
    result: str | None = None


class TokenTable:
    """Tokens by id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def is_local(self) -> bool:
        """Whether finding a token waits for nothing but a file of this machine."""
        return self._database.is_local

    def add(self, token: TokenRecord) -> None:
        """Store a new token."""
        self._database.write(
            "INSERT INTO tokens (id, name, role, digest, created, expires, verifier) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (token.id, token.name, token.role, token.digest, token.created, token.expires, token.verifier),
        )

    def find(self, id_: str) -> TokenRecord | None:
        """Return a token by id."""
        rows = self._database.read(_FIND_TOKEN, (id_,))
        return TokenRecord(*rows[0]) if rows else None

    def list(self, name: str | None = None) -> list[TokenRecord]:
        """Return all tokens, or those of one name, newest first."""
        return [TokenRecord(*row) for row in self._database.read(_LIST_TOKENS, (name,))]

    def revoke(self, id_: str, at: int) -> None:
        """Revoke a token permanently; a second call changes nothing."""
        rows = self._database.write(
            "UPDATE tokens SET revoked = COALESCE(revoked, ?) WHERE id = ? RETURNING id", (at, id_)
        )
        if not rows:
            raise ParameterError(
                "HB143", "There is no token with this id.", "Run `hubbub analyst list` to see all tokens."
            )

    def revoke_all(self, name: str, role: Role, at: int) -> int:
        """Revoke all tokens of a name and role; return how many were revoked."""
        return len(
            self._database.write(
                "UPDATE tokens SET revoked = ? WHERE name = ? AND role = ? AND revoked IS NULL RETURNING id",
                (at, name, role),
            )
        )

    def holders(self) -> set[str]:
        """Return the analysts who have a token that was not revoked."""
        return {str(row[0]) for row in self._database.read(_HOLDERS, ())}

    def shut_out(self, at: int) -> set[str]:
        """Return the analysts who have revoked tokens, and none that is still valid."""
        return {str(row[0]) for row in self._database.read(_SHUT_OUT, (at,))}

    def note_verifier(self, id_: str, verifier: bytes) -> None:
        """Store what checks proofs of a token that was made without it."""
        self._database.write("UPDATE tokens SET verifier = ? WHERE id = ? AND verifier IS NULL", (verifier, id_))

    def note_use(self, id_: str, day: str) -> None:
        """Record the day of a use, at most once per day."""
        self._database.write("UPDATE tokens SET used = ? WHERE id = ? AND (used IS NULL OR used < ?)", (day, id_, day))


class RequestTable:
    """Requests for more budget."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, analyst: str, dataset: str, epsilon: Fraction, reason: str, at: int) -> BudgetRequest:
        """Store a new request; each analyst may have at most MAX_OPEN open ones."""
        rows = self._database.write(_ADD_REQUEST, (analyst, dataset, str(epsilon), reason, at, analyst))
        if not rows:
            raise ParameterError(
                "HB142",
                f"You have {MAX_OPEN} open requests, the maximum.",
                "Wait until the data owner has decided some of them.",
            )
        return _request(rows[0])

    def find(self, id_: int) -> BudgetRequest | None:
        """Return a request by its number."""
        rows = self._database.read(_FIND_REQUEST, (id_,))
        return _request(rows[0]) if rows else None

    def list(self, analyst: str | None = None, *, limit: int = 100, before: int | None = None) -> list[BudgetRequest]:
        """Return requests with a number below `before`, newest first: all, or those of one analyst."""
        rows = self._database.read(_LIST_REQUESTS, (2**62 if before is None else before, analyst, limit))
        return [_request(row) for row in rows]

    def decide(self, id_: int, verdict: Decision, *, by: str, note: str, at: int) -> BudgetRequest:
        """Decide an open request. If several decide at once, one succeeds and the others get HB141.

        Decide before raising the cap: a crash in between then costs the analyst a second request and never raises a
        cap twice.
        """
        rows = self._database.write(_DECIDE, (verdict, at, by, note, id_))
        if rows:
            return _request(rows[0])
        if self.find(id_) is None:
            raise ParameterError("HB140", "There is no request with this number.", "Check the list of requests.")
        raise ParameterError(
            "HB141", "This request has already been decided. Nothing was changed.", "Reload the list of requests."
        )

    def reopen(self, id_: int) -> None:
        """Reopen a granted request whose cap could not be written to hubbub.yaml."""
        self._database.write(
            "UPDATE requests SET state = 'open', decided = NULL, decider = NULL, note = NULL "
            "WHERE id = ? AND state = 'granted'",
            (id_,),
        )


class RetryTable:
    """The charges that belong to Idempotency-Keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, analyst: str, header: str, digest: str, ledger_key: str) -> Claim:
        """Durably store the charge key of a header, or return the one stored first; it never changes."""
        rows = self._database.write(
            "INSERT INTO retries (analyst, header, digest, ledger_key) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (analyst, header) DO NOTHING RETURNING digest, ledger_key",
            (analyst, header, digest, ledger_key),
        )
        return Claim(*rows[0]) if rows else self._stored(analyst, header)

    def find(self, analyst: str, header: str) -> Claim | None:
        """Return the claim of a header."""
        rows = self._database.read(
            "SELECT digest, ledger_key FROM retries WHERE analyst = ? AND header = ?", (analyst, header)
        )
        return Claim(*rows[0]) if rows else None

    def _stored(self, analyst: str, header: str) -> Claim:
        claim = self.find(analyst, header)
        if claim is None:
            raise AssertionError("a conflicting claim exists")
        return claim


class JobTable:
    """Background jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, job: JobRecord) -> None:
        """Store a job or its new state; a job that has ended is not changed."""
        self._database.write(
            "INSERT INTO jobs (id, analyst, server, state, created, changed, result) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET state = excluded.state, changed = excluded.changed, "
            "result = excluded.result WHERE jobs.analyst = excluded.analyst AND jobs.state IN ('queued', 'running')",
            (job.id, job.analyst, job.server, job.state, job.created, job.changed, job.result),
        )

    def get(self, analyst: str, id_: str) -> JobRecord | None:
        """Return a job of this analyst; another analyst's job is not found."""
        rows = self._database.read(_FIND_JOB, (id_, analyst))
        return JobRecord(*rows[0]) if rows else None

    def touch(self, server: str, at: int) -> None:
        """Record that a server is still running its jobs."""
        self._database.write(
            "UPDATE jobs SET changed = ? WHERE server = ? AND state IN ('queued', 'running')", (at, server)
        )

    def abandon_all(self, server: str, at: int, result: str) -> None:
        """Fail the jobs of a server that has ended."""
        self._database.write(
            "UPDATE jobs SET state = 'failed', changed = ?, result = ? "
            "WHERE state IN ('queued', 'running') AND server = ?",
            (at, result, server),
        )

    def abandon(self, before: int, at: int, result: str) -> int:
        """Fail the jobs that no server has touched since `before`; return how many."""
        return len(
            self._database.write(
                "UPDATE jobs SET state = 'failed', changed = ?, result = ? "
                "WHERE state IN ('queued', 'running') AND changed < ? RETURNING id",
                (at, result, before),
            )
        )


class EndedSessionTable:
    """Sessions of the pages that were signed out, until their cookies expire.

    A removed analyst is listed too, under a name that no session has, until every old session has expired.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session: str, until: int, at: int) -> None:
        """End a session, and delete entries that have expired."""
        self._database.write("DELETE FROM ended WHERE until < ?", (at,))
        self._database.write(
            "INSERT INTO ended (session, until) VALUES (?, ?) "
            "ON CONFLICT (session) DO UPDATE SET until = excluded.until WHERE excluded.until > ended.until",
            (session, until),
        )

    def has(self, session: str, at: int = 0) -> bool:
        """Return whether a session was ended and its cookie had not expired at that time."""
        return bool(self._database.read("SELECT 1 FROM ended WHERE session = ? AND until >= ?", (session, at)))


class FeedTable:
    """The streams that a feeder token may feed, by analyst and name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, token: str, analyst: str, stream: str) -> None:
        """Allow a token to feed a stream."""
        self._database.write(
            "INSERT INTO feeds (token, analyst, stream) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (token, analyst, stream),
        )

    def of(self, token: str) -> frozenset[tuple[str, str]]:
        """Return the streams that a token may feed."""
        rows = self._database.read("SELECT analyst, stream FROM feeds WHERE token = ?", (token,))
        return frozenset((str(analyst), str(stream)) for analyst, stream in rows)


@dataclass(frozen=True, slots=True)
class PublicationAction:
    """What was done to a public page: by whom and when. `page` is the last part of its address."""

    id: int
    page: str
    release: int
    title: str
    notes: str
    action: PublicationKind
    who: str
    at: int

    def to_json(self) -> dict[str, object]:
        """Return the JSON form."""
        return asdict(self)


class PublicationTable:
    """Publications and withdrawals of releases: rows are only added, so the table is also their audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, page: str, *, release: int, title: str, notes: str, action: PublicationKind, who: str, at: int
    ) -> PublicationAction:
        """Record an action."""
        rows = self._database.write(
            f"INSERT INTO publications ({_ACTION[4:]}) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING {_ACTION}",  # noqa: S608
            (page, release, title, notes, action, who, at),
        )
        return PublicationAction(*rows[0])

    def last(self, page: str) -> PublicationAction | None:
        """Return the last action on a page."""
        rows = self._database.read(
            f"SELECT {_ACTION} FROM publications WHERE page = ? ORDER BY id DESC LIMIT 1",  # noqa: S608
            (page,),
        )
        return PublicationAction(*rows[0]) if rows else None

    def public(self, release: int) -> PublicationAction | None:
        """Return the last action on a release that made its page public, or took it off."""
        rows = self._database.read(
            f"SELECT {_ACTION} FROM publications WHERE release = ? AND action IN ('published', 'withdrawn')"  # noqa: S608
            " ORDER BY id DESC LIMIT 1",
            (release,),
        )
        return PublicationAction(*rows[0]) if rows else None

    def list(
        self, *, release: int | None = None, limit: int = 100, before: int | None = None
    ) -> list[PublicationAction]:
        """Return actions with a number below `before`, newest first: all, or those on one release."""
        rows = self._database.read(
            f"SELECT {_ACTION} FROM publications WHERE id < ? AND release = COALESCE(?, release)"  # noqa: S608
            " ORDER BY id DESC LIMIT ?",
            (2**62 if before is None else before, release, limit),
        )
        return [PublicationAction(*row) for row in rows]


class State:
    """All tables in one database. Safe to use from many threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tokens = TokenTable(database)
        self.requests = RequestTable(database)
        self.retries = RetryTable(database)
        self.jobs = JobTable(database)
        self.ended = EndedSessionTable(database)
        self.feeds = FeedTable(database)
        self.publications = PublicationTable(database)
        self.attempts = AttemptTable(database)
        self.comments = CommentTable(database)
        self.questions = QuestionTable(database)
        self.dashboards = DashboardTable(database)
        self.visits = VisitTable(database)

    @classmethod
    def open(cls, config: Config) -> "State":
        """Open the state of a hubbub.yaml: the ledger's PostgreSQL database, or a file beside its SQLite file."""
        if is_postgres(config):
            return cls(PostgresDatabase(config.places.database or ""))
        return cls(SqliteDatabase(folder_of(config) / "server.db"))

    def writable(self) -> None:
        """Durably write and delete a row; raise LedgerError if the database is not writable."""
        self._database.write(
            "INSERT INTO ended (session, until) VALUES ('readiness', -1) ON CONFLICT (session) DO UPDATE SET until = -1"
        )
        self._database.write("DELETE FROM ended WHERE until < 0")

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _request(row: tuple[object, ...]) -> BudgetRequest:
    number, analyst, dataset, epsilon, *rest = row
    return BudgetRequest(number, analyst, dataset, Fraction(str(epsilon)), *rest)  # type: ignore[arg-type]
