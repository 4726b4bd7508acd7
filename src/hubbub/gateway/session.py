"""The conversation with a signed-in client: simple and extended queries, portals, COPY, and errors up to the next Sync.

Tested in tests/gateway/test_session.py.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from fractions import Fraction
from typing import Any

from hubbub.core.numbers import brief
from hubbub.errors import HubbubError, LedgerError, ParameterError
from hubbub.gateway import copy, failures, statements, wire
from hubbub.gateway.asker import Asker
from hubbub.gateway.lexer import split
from hubbub.gateway.outbox import Outbox
from hubbub.gateway.portals import Portal, Prepared, Row, data_rows, describe_rows, show_columns
from hubbub.gateway.result import Notice, PgResult
from hubbub.gateway.values import STRING, decode
from hubbub.gateway.wire import Body
from hubbub.server.query_pool import clock

#: Limits of one connection: prepared statements, their characters, portals, and rows that portals hold.
MAX_PREPARED, MAX_TEXT, MAX_PORTALS, MAX_HELD_ROWS = 1000, 8 << 20, 100, 2_000_000


class PgSession:
    """Answers the messages of one client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asker: Asker) -> None:
        self._reader = reader
        self._out = Outbox(writer)
        self._asker = asker
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._in_transaction = False
        self._spent = Fraction(0)
        self._skipping = False
        self._current = ""
        self.busy = False
        self.closing = False

    def cancel(self) -> None:
        """Cancel the query that runs."""
        self._asker.cancel()

    async def run(self) -> None:
        """Answer messages until the client ends."""
        self._out.add(self._ready())
        while not self.closing:
            await self._out.flush()
            received = await wire.read_message(self._reader, wire.MAX_MESSAGE)
            if received is None or received[0] == b"X":
                return
            self.busy = True
            try:
                await self._answer(*received, arrived=clock())
            finally:
                self.busy = False

    async def _answer(self, kind: bytes, body: Body, *, arrived: float) -> None:
        if kind == b"S":
            body.end()
            self._sync()
            return
        if kind == b"H":
            return  # everything is written before the next message is awaited
        if self._skipping:
            return
        if kind == b"Q":
            await self._simple(body.text(), arrived)
            self._out.add(self._ready())
            return
        handle = self._handlers().get(kind)
        if handle is None:
            raise wire.violation(f"unexpected message {kind!r}")
        try:
            await handle(body, arrived)
        except Exception as error:  # noqa: BLE001 - what is not known becomes one constant
            self._out.add(failures.error(error, sql=self._current))
            self._skipping = True

    def _handlers(self) -> dict[bytes, Callable[[Body, float], Awaitable[None]]]:
        return {
            b"P": self._parse,
            b"B": self._bind,
            b"D": self._describe,
            b"E": self._execute,
            b"C": self._close,
            b"d": self._ignore,
            b"c": self._ignore,
            b"f": self._ignore,
        }

    async def _ignore(self, body: Body, arrived: float) -> None:
        """Ignore data of a COPY that was refused."""

    def _sync(self) -> None:
        self._skipping = False
        if not self._in_transaction:
            self._portals.clear()
        self._out.add(self._ready())

    def _ready(self) -> bytes:
        return wire.ready(b"T" if self._in_transaction else b"I")

    # Simple queries.

    async def _simple(self, text: str, arrived: float) -> None:
        self._current = text
        try:
            listed = split(text)
            if not listed:
                self._out.add(wire.EMPTY_QUERY)
            for each in listed:
                statement = statements.read_one(each)
                prepared = Prepared(text, statement, ())
                portal = Portal(prepared)
                await self._run(portal, arrived)
                await self._send(portal, None, describe=True)
                arrived = clock()
        except Exception as error:  # noqa: BLE001
            self._out.add(failures.error(error, sql=text))
        if not self._in_transaction:
            self._portals.clear()

    # Extended queries.

    async def _parse(self, body: Body, _: float) -> None:
        name, text = body.text(), body.text()
        kinds = [body.int32() & 0xFFFFFFFF for _ in range(body.count())]
        body.end()
        self._current = text
        if name and name in self._prepared:
            raise ParameterError("HB812", f"The prepared statement {name[:63]} exists already.", "Close it first.")
        size = sum(len(each.text) for each in self._prepared.values()) + len(text)
        if len(self._prepared) >= MAX_PREPARED or size > MAX_TEXT:
            raise ParameterError("HB819", "This connection has too many prepared statements.", "Close some of them.")
        listed = split(text)
        if len(listed) > 1:
            raise ParameterError("HB809", "Only one statement can be prepared at once.", "Prepare each by itself.")
        statement = statements.read_one(listed[0]) if listed else None
        ask = _ask_of(statement)
        if ask is not None:
            kinds = await self._asker.free(self._asker.parameter_types, ask.sql, kinds)
        self._prepared[name] = Prepared(text, statement, kinds)
        self._out.add(wire.PARSE_COMPLETE)

    async def _bind(self, body: Body, _: float) -> None:
        portal_name, name = body.text(), body.text()
        forms = [body.int16() for _ in range(body.count())]
        values = [body.value() for _ in range(body.count())]
        formats = [body.int16() for _ in range(body.count())]
        body.end()
        prepared = self._find(name)
        self._current = prepared.text
        if portal_name and portal_name in self._portals:
            raise ParameterError("HB812", f"The portal {portal_name[:63]} exists already.", "Close it first.")
        if len(self._portals) >= MAX_PORTALS:
            raise ParameterError("HB819", "This connection has too many portals.", "Close some of them.")
        if len(values) != len(prepared.kinds) or len(forms) not in (0, 1, len(values)):
            raise wire.violation(f"{len(values)} parameters were sent for {len(prepared.kinds)}")
        if any(form not in (0, 1) for form in (*forms, *formats)):
            raise wire.violation("a format is neither text nor binary")
        forms = forms * len(values) if len(forms) == 1 else forms or [0] * len(values)
        parameters = tuple(
            decode(value, oid, form) for value, oid, form in zip(values, prepared.kinds, forms, strict=True)
        )
        self._portals[portal_name] = Portal(prepared, parameters, formats, prepared.columns)
        self._out.add(wire.BIND_COMPLETE)

    async def _describe(self, body: Body, arrived: float) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            prepared = self._find(name)
            await self._learn_columns(prepared)
            oids = struct.pack(f">h{len(prepared.kinds)}I", len(prepared.kinds), *prepared.kinds)
            self._out.add(wire.message(b"t", oids))
            if prepared.columns is None and isinstance(prepared.statement, statements.Ask):
                raise ParameterError(
                    "HB809",
                    "The columns of this query are known only when it has run, so it cannot be described before.",
                    "Send it as a simple query, without preparing it.",
                )
            self._out.add(describe_rows(prepared.columns, ()))
            return
        portal = self._portal(name)
        prepared = portal.prepared
        if portal.columns is None:
            await self._learn_columns(prepared)
            portal.columns = prepared.columns
        if portal.columns is None and isinstance(prepared.statement, statements.Ask):
            await self._run(portal, arrived)
        self._out.add(describe_rows(portal.columns, portal.formats))

    async def _learn_columns(self, prepared: Prepared) -> None:
        if prepared.described:
            return
        self._current = prepared.text
        statement = prepared.statement
        match statement:
            case statements.Ask():
                prepared.columns = await self._asker.columns(statement, prepared.kinds)
            case statements.Explain():
                prepared.columns = (("item", STRING), ("value", STRING))
            case statements.Show():
                prepared.columns = show_columns(statement)
            case statements.Fetch():
                portal = self._portals.get(statement.name)
                if portal is not None and not statement.move:
                    await self._learn_columns(portal.prepared)
                    prepared.columns = portal.prepared.columns
        prepared.described = True

    async def _execute(self, body: Body, arrived: float) -> None:
        name, most = body.text(), body.int32()
        body.end()
        portal = self._portal(name)
        self._current = portal.prepared.text
        if portal.prepared.statement is None:
            self._out.add(wire.EMPTY_QUERY)
            return
        await self._run(portal, arrived)
        await self._send(portal, most if most > 0 else None, describe=False)

    async def _close(self, body: Body, _: float) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        held: dict[str, Any] = self._prepared if kind == b"S" else self._portals
        held.pop(name, None)
        self._out.add(wire.CLOSE_COMPLETE)

    def _find(self, name: str) -> Prepared:
        if name not in self._prepared:
            raise ParameterError("HB812", "There is no such prepared statement.", "Prepare it first.")
        return self._prepared[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise ParameterError(
                "HB816", "There is no such portal or cursor.", "Declare it first, in the same transaction."
            )
        return self._portals[name]

    # Both.

    async def _run(self, portal: Portal, arrived: float) -> None:
        """Run the statement of a portal, once."""
        if portal.result is not None:
            return
        portal.result = await self._result(portal, arrived)
        self._spent += portal.result.spent
        if portal.columns is None:
            portal.columns = portal.result.columns
        held = sum(len(each.result.rows) for each in self._portals.values() if each.result is not None)
        if held > MAX_HELD_ROWS:
            self._portals.clear()
            raise ParameterError(
                "HB819", "The open portals of this connection hold too many rows.", "Close some of them."
            )
        if not self._asker.variables.quiet:
            for notice in portal.result.notices:
                self._out.add(failures.notice(notice))

    async def _result(self, portal: Portal, arrived: float) -> PgResult:
        statement = portal.prepared.statement
        if _ask_of(statement) is not None and not isinstance(statement, statements.Declare):
            await self._asker.check()
        match statement:
            case statements.Ask():
                return await self._asker.run(statement, portal.parameters, arrived, portal.columns)
            case statements.Copy():
                return await self._asker.run(statement.query, portal.parameters, arrived, None)
            case statements.Explain():
                return await self._asker.explain(statement.query, portal.parameters)
            case statements.Declare():
                self._declare(statement)
                return PgResult(None, tag="DECLARE CURSOR")
            case statements.Fetch():
                return await self._fetch(statement, arrived)
        return self._own(statement)

    async def _send(self, portal: Portal, most: int | None, *, describe: bool) -> None:
        """Send rows of a result that is there: all that are left, or the next `most`."""
        result, statement = portal.result, portal.prepared.statement
        if result is None:
            raise AssertionError("the statement has run")
        columns = portal.columns
        if columns is None or result.columns is None:
            self._out.add(wire.complete(result.tag))
            return
        if isinstance(statement, statements.Copy):
            await self._out.add_all(copy.response(statement, columns, result.rows))
            self._out.add(wire.complete(f"COPY {len(result.rows)}"))
            return
        if describe:
            self._out.add(describe_rows(columns, portal.formats))
        end = len(result.rows) if most is None else min(len(result.rows), portal.sent + most)
        part = result.rows[portal.sent : end]
        portal.sent = end
        await self._out.add_all(data_rows(part, columns, portal.formats))
        if end < len(result.rows):
            self._out.add(wire.PORTAL_SUSPENDED)
        elif result.tag in ("SELECT", "FETCH"):
            self._out.add(wire.complete(f"{result.tag} {len(part)}"))
        else:
            self._out.add(wire.complete(result.tag))

    def _declare(self, statement: statements.Declare) -> None:
        if statement.name in self._portals or len(self._portals) >= MAX_PORTALS:
            raise ParameterError("HB812", f"The cursor {statement.name[:63]} exists already.", "Close it first.")
        self._portals[statement.name] = Portal(Prepared(statement.query.sql, statement.query, ()))

    async def _fetch(self, statement: statements.Fetch, arrived: float) -> PgResult:
        portal = self._portal(statement.name)
        if not isinstance(portal.prepared.statement, statements.Ask):
            raise ParameterError("HB816", "There is no such portal or cursor.", "Declare it first.")
        if portal.columns is None and portal.result is None:
            portal.columns = portal.prepared.columns
        await self._run(portal, arrived)
        rows = () if portal.result is None else portal.result.rows
        end = len(rows) if statement.rows is None else min(len(rows), portal.sent + statement.rows)
        part = rows[portal.sent : end]
        portal.sent = end
        if statement.move:
            return PgResult(None, tag=f"MOVE {len(part)}")
        return PgResult(portal.columns, part, tag="FETCH")

    def _own(self, statement: statements.Statement | None) -> PgResult:
        """Run a statement that needs no service."""
        match statement:
            case statements.SetVariable():
                announced = self._asker.variables.change(statement.name, statement.value)
                if announced is not None:
                    self._out.add(wire.parameter_status(*announced))
                if statement.tag == "DISCARD ALL":
                    self._prepared.clear()
                    self._portals = {}
                return PgResult(None, tag=statement.tag)
            case statements.Show():
                return self._show(statement)
            case statements.PgTransaction():
                return self._transaction(statement.tag)
            case statements.Close():
                held: dict[str, Any] = self._portals if statement.tag.startswith("CLOSE") else self._prepared
                if statement.name is None:
                    held.clear()
                elif held.pop(statement.name, None) is None:
                    raise ParameterError("HB812", "There is no such cursor or prepared statement.", "Check its name.")
                return PgResult(None, tag=statement.tag)
            case statements.Nothing():
                return PgResult(None, tag=statement.tag)
        raise AssertionError("no other statement")

    def _show(self, statement: statements.Show) -> PgResult:
        variables = self._asker.variables
        if statement.name == "all":
            rows: list[Row] = [(name, value, "") for name, value in variables.listed()]
            return PgResult(show_columns(statement), rows, tag="SHOW")
        value = variables.get(statement.name)
        if value is None:
            raise ParameterError("HB185", f"There is no setting {statement.name[:60]}.", "SHOW ALL lists the settings.")
        return PgResult(show_columns(statement), [(value,)], tag="SHOW")

    def _transaction(self, tag: str) -> PgResult:
        """Accept statements about transactions: nothing is ever changed, and a charge stays."""
        notices: tuple[Notice, ...] = ()
        if tag in ("BEGIN", "START TRANSACTION"):
            if not self._in_transaction:
                self._spent = Fraction(0)
            self._in_transaction = True
        elif tag in ("COMMIT", "ROLLBACK"):
            if tag == "ROLLBACK" and self._spent and self._in_transaction:
                text = f"ROLLBACK does not undo charges: ε = {brief(self._spent)} stays spent."
                notices = (Notice(text, severity="WARNING", state="01000"),)
            self._in_transaction, self._spent = False, Fraction(0)
            self._portals = {}
        return PgResult(None, tag="ROLLBACK" if tag == "ROLLBACK TO" else tag, notices=notices)

    async def end(self, error: HubbubError | None = None) -> None:
        """Tell the client why the connection ends."""
        problem = error or LedgerError(
            "HB815", "The server is shutting down.", "Connect again in a minute. Repeating a query is free."
        )
        self._out.add(failures.error(problem, severity="FATAL"))
        await self._out.flush()


def _ask_of(statement: statements.Statement | None) -> statements.Ask | None:
    match statement:
        case statements.Ask():
            return statement
        case statements.Explain() | statements.Copy() | statements.Declare():
            return statement.query
    return None
