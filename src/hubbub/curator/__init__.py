"""The curator: from a query to a release. The only part that has access to both data and ledger.

    text → bind → plan → charge (durable) → seed → run → noise → finish → record → release

Everything before the charge is computed from the query, the declarations and the ledger, so its errors may give
details. After the charge every failure is one constant message.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from hubbub.accounting.calls import Charge, ChargeRequest, Remark
from hubbub.accounting.failures import Failures
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.status import BudgetStatus, budget_status, spending
from hubbub.accounting.store import EntryFilter
from hubbub.analyses.base import EngineRun, PreparedAnalysis, Progress, Setting
from hubbub.analyses.registry import prepare
from hubbub.analyses.threshold import Comparison
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate
from hubbub.answers.left_out import LeftOut
from hubbub.answers.profile import Profile
from hubbub.answers.release import Release
from hubbub.config import Config
from hubbub.config.dataset import DEFAULT_FAILURES
from hubbub.core import call as calls
from hubbub.core import chunked_json, deadline, numbers
from hubbub.core.events import Event, from_facts
from hubbub.core.odds import SMALL
from hubbub.core.schema import Table
from hubbub.curator import history as past
from hubbub.curator import receipt as receipts
from hubbub.curator import replay, streams, thresholds
from hubbub.curator.draws import Draw, Draws, no_draw, run_hash
from hubbub.curator.estimate import make_estimate
from hubbub.curator.left_out import PUBLISHED, Profiles
from hubbub.curator.public_query import PublicQuery, check_size, public_query
from hubbub.curator.public_rows import PublicRowsQuery, count_rows, public_rows_query
from hubbub.curator.query import PreparedQuery, prepare_query
from hubbub.curator.question import Question
from hubbub.curator.versions import Versions
from hubbub.engines.base import Engine, UnreachableError
from hubbub.engines.multi_engine import engine_for
from hubbub.engines.registry import engine_named
from hubbub.errors import HubbubError, LedgerError, QueryError, RunError, SpentError
from hubbub.sql import partition_selection
from hubbub.sql import release_size as size
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.epsilon_search import solve

#: Receives the ledger's key of a charge before it is made, and returns the key to charge under.
Claim = Callable[[str], str]

_log = logging.getLogger("hubbub.curator")

#: Replaces the salt in SQL that is shown: knowing which rows of a unit are kept would help to add a row that is kept.
_UNSALTED = "…"


def ignore_progress(_: float, __: str) -> None:
    """Ignore the progress of a run."""


def never_cancelled() -> bool:
    """Never cancel."""
    return False


class Curator:
    """Answers all analysts of one hubbub.yaml. Thread-safe."""

    def __init__(
        self,
        config: Config,
        tables: Mapping[str, Table],
        *,
        ledger: Ledger,
        engine: Engine,
        versions: Versions,
        draws: Draws,
        salt: str,
    ) -> None:
        """Use `hubbub.open`."""
        self.config = config
        self.tables = tables
        self.ledger = ledger
        self.engine = engine
        self._versions = versions
        self._draws = draws
        self._salt = salt
        with ledger.snapshot() as snapshot:
            self._first_format = replay.FirstFormat(snapshot)
            self._earlier = replay.EarlierCharges(snapshot)
        self._failures = Failures()
        self._profiles = Profiles()

    def query(
        self,
        analyst: str,
        question: Question,
        *,
        key: str | None = None,
        claim: Claim | None = None,
        progress: Progress = ignore_progress,
        cancelled: Callable[[], bool] = never_cancelled,
        held: bool = False,
        publish: bool = False,
    ) -> Release:
        """Answer a query at a privacy cost; the same query on the same data is answered from the ledger for free.

        A run that ended without a release is repeated, with the same noise, by the next call with the same charge.
        `cancelled` tells whether the end was requested, which does not count as a failure. `claim` receives the
        ledger's key before the charge and returns the key to use: an earlier one if this call retries a request. A
        stream is bought by `streams.buy`, which calls this method again while its folder is `held`. The data owner's
        own process may `publish` a profile: it is then shown to every analyst of the dataset.

        Theorem (Charge before data). Whatever an analyst can observe of this call depends on the private data only
        through the released noisy integers of a plan whose event was durably charged before the engine ran, and
        through whether the run failed: once a charge, as often as the owner allows.
        Proof    Up to `charge` nothing is read but text, declarations, ledger and the data's version; the answer
                 is a function of the noisy integers (`finish`), and every exception after the charge is replaced by one
                 constant (`RunError`). The first recorded release of a charge is the only one that leaves, and all runs
                 of a charge draw the same words (`Draws`).
        Assumes  versions may be known (they count updates); time is not observed here.
        Tested   tests/curator/test_path.py::test_the_charge_is_durable_before_the_engine_runs
                 tests/curator/test_path.py::test_every_failure_after_the_charge_is_one_constant
        """
        if thresholds.is_comparison(question):
            return self._compare(analyst, question, key=key, progress=progress, cancelled=cancelled)
        public = self._public_query(analyst, question)
        if public is not None:
            return self._answer_public(public)
        planned = self._plan(analyst, question, salt=self._salt)
        self._refuse_failing(analyst, planned)
        key = thresholds.session_key(question) or key
        if streams.buys_stream(question) and not held:
            return streams.buy(
                self,
                planned,
                analyst=analyst,
                key=key,
                charge=lambda name: self.query(
                    analyst, question, key=name, claim=claim, progress=progress, cancelled=cancelled, held=True
                ),
            )
        text = question.text()
        versions = self._data_versions(planned)
        left_out = self._profiles.state(planned.left_out(), versions)
        earlier = None if key is not None else self._earlier_event(analyst, planned, question, text, versions)
        with thresholds.named(question):
            charges = self._charge(
                analyst, planned, text, versions, key, claim, publish=publish, event=earlier or planned.event
            )
        stored = charges[0].release
        if stored is None and earlier is not None:
            raise AssertionError("an earlier event is charged only where its release is recorded")
        if stored is None:
            stored = self._answer(
                planned, text, charges, versions, left_out, progress=progress, cancelled=cancelled, silent=held
            )
        self._draws.seeds.erase(charges[0].entry)
        release = self._release(stored, analyst, replayed=charges[0].release is not None)
        return release.jointly() if question.joint else release

    def _compare(
        self,
        analyst: str,
        question: Question,
        *,
        key: str | None,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> Release:
        """Answer one question of a session of above threshold, which was charged before."""
        planned = self._plan_comparison(analyst, question, salt=self._salt, key=key)
        self._refuse_failing(analyst, planned)
        versions = self._data_versions(planned)
        left_out = self._profiles.state(planned.left_out(), versions)

        def ask(compared: Comparison, text: str, name: str) -> Release:
            charges = self._charge(analyst, compared, text, versions, name, None, publish=False, event=compared.event)
            stored = charges[0].release or self._answer(
                compared, text, charges, versions, left_out, progress=progress, cancelled=cancelled
            )
            self._draws.seeds.erase(charges[0].entry)
            return self._release(stored, analyst, replayed=charges[0].release is not None)

        return thresholds.compare(
            self.ledger,
            thresholds.folder(self.config),
            planned,
            analyst=analyst,
            question=question,
            versions=versions,
            recorded=lambda entry: self.release(entry.sequence, analyst=analyst),
            ask=ask,
        )

    def _plan_comparison(self, analyst: str, question: Question, *, salt: str, key: str | None = None) -> Comparison:
        """Plan a question of a session with the terms of the session."""
        if key is not None:
            raise QueryError("HB672", "A comparison takes no key.", "Leave it out: an answer can be read again.")
        self.datasets(analyst)
        planned = self._plan(analyst, thresholds.for_session(self.ledger, analyst, question), salt=salt)
        if not isinstance(planned, Comparison):
            raise TypeError("not a comparison")
        return planned

    def estimate(self, analyst: str, question: Question) -> Estimate:
        """Estimate the privacy cost and the errors of a query; free, and without reading private data."""
        if thresholds.is_comparison(question):
            return thresholds.estimate(self._plan_comparison(analyst, question, salt=_UNSALTED))
        public = self._public_query(analyst, question)
        if public is not None:
            return public.estimate()
        planned = self._plan(analyst, question, salt=_UNSALTED)
        self._refuse_failing(analyst, planned)
        units, rows = self._sizes(planned)
        return make_estimate(
            planned,
            statuses=[self._status(analyst, table.name) for table in planned.private],
            within=str(question.within or "").strip(),
            left_out=self._profiles.state(planned.left_out()),
            units=units,
            # a join multiplies rows, so that the profile of one table does not tell how many there are
            rows=rows if len(planned.tables) == 1 else None,
        )

    def _sizes(self, planned: PreparedAnalysis) -> tuple[int | None, int | None]:
        """Give the numbers of privacy units and rows of the dataset, if it has a profile or they are public."""
        if len(planned.private) == 1 and planned.private[0].public_rows and planned.epsilon <= SMALL:
            # counted only where the number may show that nothing can be learned
            rows = self.public_rows(planned.private[0].name)
            return rows, rows
        profiles = [self._profiles.find(table.name) for table in planned.private]
        profile = next((each for each in profiles if each is not None), None)
        return (None, None) if profile is None else (round(profile.units().value), round(profile.rows().value))

    def profile(self, dataset: str) -> Profile | None:
        """Give the newest profile of a dataset that its owner published, if there is one; free."""
        with self.ledger.snapshot() as snapshot:
            self._profiles.take_in(snapshot)
        found = self._profiles.find(dataset)
        if found is None or dataset not in self.tables:
            return None
        return found.only({column.name for column in self.tables[dataset].columns if not column.hidden})

    def budget(self, analyst: str, *, exact: bool = False) -> tuple[BudgetOverview, ...]:
        """Show the spent and the remaining budget of each dataset that the analyst can query.

        What others spent is shown as precisely as the owner chose; `exact` is for the owner.
        """
        mine = [name for name in self.datasets(analyst) if not self.tables[name].public]
        return tuple(self._status(analyst, name, exact=exact).overview() for name in mine)

    def spending(self, dataset: str, *, limit: int) -> dict[str, list[tuple[datetime, Fraction]]]:
        """Give the spent ε of each analyst on a dataset after each of its newest charges; for the owner."""
        with self.ledger.snapshot() as snapshot:
            return spending(snapshot, self.config.policy, dataset, self.ledger.time(), limit=limit)

    def releases(
        self, analyst: str | None, *, limit: int = 100, before: int | None = None, unseen: past.Unseen = frozenset()
    ) -> tuple[PastCharge, ...]:
        """List charges of one analyst, or of all if None, newest first; `before` continues an earlier list.

        Charges in `unseen` are listed without their releases.
        """
        limit = numbers.integer(limit, "limit", 1, 1000)
        with self.ledger.snapshot() as snapshot:
            which = EntryFilter(kind="charge", analyst=analyst, before=before)
            return past.list_charges(snapshot, which, limit, self.config.policy, unseen)

    def release(self, number: int, *, analyst: str | None, unseen: past.Unseen = frozenset()) -> Release:
        """Give the release of a charge for free: of this analyst, or of any analyst if None."""
        with self.ledger.snapshot() as snapshot:
            self._profiles.take_in(snapshot)
            stored = past.find_release(snapshot, number, analyst, unseen)
        return self._release(stored, analyst, replayed=True)

    def recall(self, analyst: str, key: str) -> Release | None:
        """Give the release of the charge under this key of the ledger (see `Claim`) for free, if there is one."""
        charge = self.ledger.recall(analyst, key)
        stored = None if charge is None else charge.release
        return None if stored is None else self._release(stored, analyst, replayed=True)

    def datasets(self, analyst: str) -> tuple[str, ...]:
        """List the datasets that an analyst can query: public tables, and those with a cap for the analyst."""
        policy = self.config.policy
        if analyst not in policy.analysts:
            policy.caps(analyst, next(iter(policy.datasets), ""))  # raises, with the nearest name
        grouped = {d for members, caps in policy.groups.values() if analyst in members for d in caps}
        mine = set(policy.analysts[analyst]) | grouped
        return tuple(name for name, table in self.tables.items() if table.public or name in mine)

    def under(self, config: Config, tables: Mapping[str, Table], engine: Engine) -> "Curator":
        """Give a curator for another hubbub.yaml with the same ledger, seeds and versions."""
        curator = Curator(
            config,
            tables,
            ledger=self.ledger,
            engine=engine,
            versions=self._versions,
            draws=self._draws,
            salt=self._salt,
        )
        curator._failures, curator._profiles = self._failures, self._profiles
        return curator

    def close(self) -> None:
        """Close data and ledger."""
        self.engine.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _public_query(self, analyst: str, question: Question) -> PublicQuery | PublicRowsQuery | None:
        """Read a query that needs only public tables, or only the public number of rows; None for every other query."""
        tables = {name: self.tables[name] for name in self.datasets(analyst)}
        with deadline.limit_planning():
            public = any(table.public for table in tables.values())
            query = public_query(question, tables, most=self.config.max_cells) if public else None
            return query or self._public_rows_query(question, tables)

    def _public_rows_query(self, question: Question, tables: Mapping[str, Table]) -> PublicRowsQuery | None:
        if calls.is_call(question.sql) or not any(table.public_rows for table in tables.values()):
            return None
        query = bind(question.sql, tables=tables, parameters=question.values(), dialect=question.dialect)
        return public_rows_query(query, question, self._render_options(query.tables, _UNSALTED))

    def public_rows(self, dataset: str) -> int | None:
        """Give the number of rows of a dataset where it is public, and None elsewhere; free."""
        table = self.tables[dataset]
        return count_rows(table, engine_for(self.engine, [dataset])) if table.public_rows else None

    def _answer_public(self, query: PublicQuery | PublicRowsQuery) -> Release:
        """Answer a query on public tables, or for the public number of rows, exactly and for free."""
        if isinstance(query, PublicRowsQuery):
            name = query.table.name
            return query.answer(engine_for(self.engine, [name]).run, self._version(name))
        views = [self.config.datasets[table.name].view for table in query.tables]
        versions = {table.name: self._version(table.name) for table in query.tables}
        release = query.answer(views, lambda name: engine_for(self.engine, [name]), versions, self.config.limits)
        return check_size(release, most=self.config.max_cells)

    def _plan(self, analyst: str, question: Question, *, salt: str) -> PreparedAnalysis:
        """Plan a query without reading data, in bounded time."""
        with deadline.limit_planning():
            return self._plan_in_time(analyst, question, salt=salt)

    def _plan_in_time(self, analyst: str, question: Question, *, salt: str) -> PreparedAnalysis:
        visible = {name: self.tables[name] for name in self.datasets(analyst)}
        if calls.is_call(question.sql):
            return self._prepare_call(analyst, question, visible, salt)
        query = bind(question.sql, tables=visible, parameters=question.values(), dialect=question.dialect)
        selects_groups = bool(query.keys) and not query.top and partition_selection.needed(query)
        delta = self._delta(analyst, query.tables, question, selects_groups=selects_groups)
        if question.wants_accuracy():
            epsilon = solve(query, within=question.within or 0, delta=delta, **question.planner_options(query))
        else:
            epsilon = question.requested_epsilon()
        options = self._render_options(query.tables, salt)
        planned = prepare_query(query, question, options, epsilon=epsilon, delta=delta)
        size.check(planned.plan, most=self.config.max_cells)
        return planned

    def _render_options(self, tables: Iterable[Table], salt: str) -> RenderOptions:
        """Give the SQL dialect of the engine that has these tables, with hash and salt."""
        engine = engine_for(self.engine, [table.name for table in tables])
        return RenderOptions(salt, self.config.hashing, engine_named(engine.dialect).load_dialect())

    def _prepare_call(
        self, analyst: str, question: Question, visible: Mapping[str, Table], salt: str
    ) -> PreparedAnalysis:
        """Prepare a call with the δ and the SQL dialect of the tables that the prepared analysis reads."""
        question.refuse_for_call()
        call = calls.parse_call(question.sql)

        def prepared(tables: Sequence[Table]) -> PreparedAnalysis:
            delta, options = self._delta(analyst, tables, question), self._render_options(tables, salt)
            limits = (question.groups, question.rows, self.config.max_cells)
            return prepare(
                call, Setting(visible, question.requested_epsilon(), delta, options, *limits), question.user_function
            )

        table = visible.get(str(call.arguments.get("table")))
        planned = prepared([] if table is None else [table])
        # a condition may read other tables
        return planned if planned.tables == (table,) else prepared(planned.tables)

    def _delta(
        self, analyst: str, tables: Iterable[Table], question: Question, *, selects_groups: bool = False
    ) -> Fraction:
        """Give the δ that a plan may use: that of the caps, or less if the query requests it."""
        names = [table.name for table in tables if table.unit is not None]
        caps = [cap for name in names for cap in self.config.policy.caps(analyst, name)]
        least = min((cap.budget.delta for cap in caps), default=Fraction(0))
        return question.allowed_delta(least, selects_groups=selects_groups)

    def _charge(
        self,
        analyst: str,
        planned: PreparedAnalysis,
        text: str,
        versions: Mapping[str, str],
        key: str | None,
        claim: Claim | None,
        *,
        publish: bool,
        event: Event,
    ) -> list[Charge]:
        """Charge every private dataset that the plan reads; return when all charges are durable."""
        key = self._key(analyst, planned, text, versions, event) if key is None else f"key {key}"
        key, tables = f"{PUBLISHED} {key}" if publish else key, planned.private
        if claim is not None:
            key = claim(f"{key} {tables[0].name}").removesuffix(f" {tables[0].name}")
        requests = [
            ChargeRequest(analyst, table.name, versions[table.name], event, text, f"{key} {table.name}")
            for table in tables
        ]
        return self.ledger.charge_all(requests)

    def _key(
        self, analyst: str, planned: PreparedAnalysis, text: str, versions: Mapping[str, str], event: Event
    ) -> str:
        """Give the ledger's key for this query on this version of the data."""
        earlier = self._first_format.key(analyst, text, event=event, tables=planned.tables, versions=versions)
        return earlier or replay.key(
            text, event=event, epsilon=planned.epsilon, tables=planned.tables, versions=versions
        )

    def _earlier_event(
        self, analyst: str, planned: PreparedAnalysis, question: Question, text: str, versions: Mapping[str, str]
    ) -> Event | None:
        """Give the event under which an earlier version charged this query and recorded a release, if one did."""
        if not isinstance(planned, PreparedQuery):
            return None
        # without groups to select, a query may have used no δ where it could have used some
        deltas = {self._delta(analyst, planned.tables, question), planned.delta}
        charges = [{"epsilon": str(planned.epsilon), "delta": str(delta)} for delta in deltas]
        names = [table.name for table in planned.private]
        with self.ledger.snapshot() as snapshot:
            for entry in self._earlier.find(snapshot, analyst, text, names[0], versions[names[0]]):
                event = from_facts(json.loads(entry.facts))
                if event == planned.event:
                    return None
                if entry.key == f"{self._key(analyst, planned, text, versions, event)} {names[0]}":
                    body = snapshot.body(entry.sequence)
                    if body is not None and chunked_json.loads(body)["receipt"]["charge"] in charges:
                        return event
        return None

    def _answer(
        self,
        planned: PreparedAnalysis,
        text: str,
        charges: Sequence[Charge],
        versions: Mapping[str, str],
        left_out: LeftOut,
        *,
        progress: Progress,
        cancelled: Callable[[], bool] = never_cancelled,
        silent: bool = False,
    ) -> bytes:
        """Run, add noise, record; every failure becomes one constant error. A `silent` run draws no noise."""

        def released() -> bytes | None:
            with self.ledger.snapshot() as snapshot:
                return snapshot.body(charges[0].sequence)

        rendering = (self._salt, self.config.hashing, engine_for(self.engine, versions).dialect)
        fingerprint = run_hash(planned, text, versions, rendering)
        draw = no_draw() if silent else self._draws.begin(charges, fingerprint, lambda: released() is not None)
        if draw is None:
            return released() or b""
        failure = ""
        spent: SpentError | None = None
        try:
            paper = receipts.receipt(
                planned, query=text, charges=[c.entry for c in charges], versions=versions, left_out=left_out
            )
            body = self._run(planned, draw, paper, progress)
            # a retry uses the noise of the first run, so it must have read the same data
            if not draw.retried or self._data_versions(planned) == versions:
                return self.ledger.record(charges[0], body)
            spent = self._draws.spoil(charges[0].entry)
        except Exception as error:  # noqa: BLE001 - its text may contain data
            failure = type(error).__name__
        # raised outside of the handler, so that no error with data in it becomes the context of this one
        if spent is not None:
            raise spent
        _log.info("Charge %d has no release: %s", charges[0].sequence, failure)
        if not cancelled():
            self._note_failure(charges)
        raise RunError

    def _run(self, planned: PreparedAnalysis, draw: Draw, paper: Mapping[str, Any], progress: Progress) -> bytes:
        """Run the analysis on the engine and encode its release."""
        engine = engine_for(self.engine, [table.name for table in planned.tables])
        published = planned.run(EngineRun(engine.run, draw.source, progress))
        ratio = published.ratio
        if published.left_out is not None:
            paper = {**paper, "left_out": published.left_out.to_json()}
        if published.rows is not None:
            paper = {**paper, "rows": published.rows}
        if ratio is None:
            ratio = [None] * (len(published.outputs[0].values) if published.outputs else 0)
        return receipts.encode(published.outputs, ratio, paper, published.model)

    def _refuse_failing(self, analyst: str, planned: PreparedAnalysis) -> None:
        """Reject an analyst whose runs failed too often on a dataset that the plan reads."""
        with self.ledger.snapshot() as snapshot:
            self._failures.take_in(snapshot)
            self._profiles.take_in(snapshot)
        for table in planned.private:
            declared = self.config.datasets.get(table.name)
            self._failures.refuse(analyst, table.name, DEFAULT_FAILURES if declared is None else declared.failures)

    def _note_failure(self, charges: Sequence[Charge]) -> None:
        failed = [Remark(each.entry.analyst, each.entry.dataset, each.sequence) for each in charges]
        try:
            self._failures.note(self.ledger, failed)
        except HubbubError as error:  # it still counts in this process
            _log.warning("The failure of charge %d could not be recorded: %s", charges[0].sequence, error.code)

    def _data_versions(self, planned: PreparedAnalysis) -> dict[str, str]:
        """Give the versions of all tables that a plan reads."""
        return {table.name: self._version(table.name) for table in planned.tables}

    def _version(self, name: str) -> str:
        try:
            fingerprint = self.engine.fingerprint(name)
        except UnreachableError as error:
            why, remedy = f": {error.why}", f"Contact the data owner. {error.remedy}"
        except OSError:
            why, remedy = "", "Contact the data owner."
        else:
            return self._versions.name(name, fingerprint)
        raise LedgerError("HB318", f"The data of {name} cannot be read{why}. Nothing was run or charged.", remedy)

    def _release(self, stored: bytes, analyst: str | None, *, replayed: bool) -> Release:
        """Decode a stored release; for an analyst, with the remaining budget."""
        columns, ratio, model, paper = receipts.decode(stored)
        epsilon, delta = (Fraction(paper["charge"][name]) for name in ("epsilon", "delta"))
        left = None
        if analyst is not None:
            mine = [each["dataset"] for each in paper["ledger"] if each["dataset"] in self.datasets(analyst)]
            left = min((self._status(analyst, name).left() for name in mine), default=None)
        left_out = LeftOut.from_receipt(paper)
        if left_out is not None:
            left_out = self._profiles.state(left_out, {each["dataset"]: each["version"] for each in paper["data"]})
        return Release(columns, ratio, epsilon, delta, paper, left, replayed, model, left_out)

    def _status(self, analyst: str, dataset: str, *, exact: bool = False) -> BudgetStatus:
        with self.ledger.snapshot() as snapshot:
            return budget_status(snapshot, self.config.policy, analyst, dataset, self.ledger.time(), exact=exact)
