"""The curator: from a question to a release, in one straight line. The only place that holds both data and ledger.

    text → bind → plan → charge (durable) → seed → run → noise → finish → record → release

Everything up to the charge is computed from the text, the declarations and the ledger; its errors may be frank. After
the charge every failure is one constant message.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from hubbub.accounting.calls import Charge, Remark, Request
from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.failures import Failures
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.status import BudgetStatus, budget_status
from hubbub.accounting.store import EntryFilter
from hubbub.analyses.base import EngineRun, PreparedAnalysis, Progress, Setting
from hubbub.analyses.registry import prepare
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.config import Config
from hubbub.config.dataset import DEFAULT_FAILURES
from hubbub.core import call as calls
from hubbub.core import deadline, numbers
from hubbub.core.schema import Table
from hubbub.curator import history as past
from hubbub.curator import receipt as receipts
from hubbub.curator import replay, streams
from hubbub.curator.draws import Draw, Draws, made_of, nothing
from hubbub.curator.estimate import make_estimate
from hubbub.curator.query import prepare_query
from hubbub.curator.question import Question
from hubbub.curator.versions import Versions
from hubbub.engines.base import Engine, UnreachableError
from hubbub.engines.multi_engine import engine_for
from hubbub.engines.registry import engine_named
from hubbub.errors import HubbubError, LedgerError, RunError, SpentError
from hubbub.sql import release_size as size
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.epsilon_search import solve

#: Told the ledger's key of a charge before it is made; says which key to charge under.
Claim = Callable[[str], str]

_log = logging.getLogger("hubbub.curator")

#: Stands for the salt in a text that is shown: who knew which rows of a unit are kept could place a row among them.
_UNSALTED = "…"


def unheard(_: float, __: str) -> None:
    """Tell nobody how far it is."""


def never() -> bool:
    """Nobody cancels."""
    return False


class Curator:
    """Answers every analyst of one hubbub.yaml. Safe to use from many threads."""

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
        self._failures = Failures()

    def query(
        self,
        analyst: str,
        question: Question,
        *,
        key: str | None = None,
        claim: Claim | None = None,
        progress: Progress = unheard,
        cancelled: Callable[[], bool] = never,
        held: bool = False,
    ) -> Release:
        """Answer a question at a price; the same question on the same data is answered from the ledger for free.

        A run that did not come to its release is repeated, with the same noise, by the next call that has its charge;
        `cancelled` says whether its end was wanted, and is no failure. `claim` is told, before the charge, the ledger's
        key of the charge that the answer will belong to, and says which to use: an earlier one, where this is another
        try of a request that was made before. A stream begins with its purchase (`streams.buy`), which calls this once
        more while its place is `held`.

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
        planned = self._plan(analyst, question, salt=self._salt)
        self._refuse_failing(analyst, planned)
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
        charges, versions = self._charge(analyst, planned, text, key, claim)
        stored = charges[0].release
        if stored is None:
            stored = self._answer(planned, text, charges, versions, progress=progress, cancelled=cancelled, silent=held)
        self._draws.seeds.erase(charges[0].entry)
        return self._release(stored, analyst, replayed=charges[0].release is not None)

    def estimate(self, analyst: str, question: Question) -> Estimate:
        """Say what a question would cost and how exact its answer would be; free, and without a look at the data."""
        planned = self._plan(analyst, question, salt=_UNSALTED)
        self._refuse_failing(analyst, planned)
        statuses = [self._standings(analyst, table.name) for table in planned.private]
        loss = privacy_cost(planned.event)
        admitted = all(status.admits(loss) for status in statuses)
        largest = min(status.largest(admitted=admitted) for status in statuses)
        return make_estimate(planned, admitted=admitted, largest=largest)

    def budget(self, analyst: str, *, exact: bool = False) -> tuple[BudgetOverview, ...]:
        """Say what is spent and left, for each dataset that the analyst may ask about.

        What others spent is told as the owner chose; `exact` is for the owner.
        """
        mine = [name for name in self.datasets(analyst) if not self.tables[name].public]
        return tuple(self._standings(analyst, name, exact=exact).overview() for name in mine)

    def releases(
        self, analyst: str | None, *, limit: int = 100, before: int | None = None, unseen: past.Unseen = frozenset()
    ) -> tuple[PastCharge, ...]:
        """List charges, the newest first: an analyst's, or everybody's where none is named; `before` goes on.

        The releases of those in `unseen` do not show.
        """
        limit = numbers.integer(limit, "limit", 1, 1000)
        with self.ledger.snapshot() as snapshot:
            return past.listed(snapshot, EntryFilter(kind="charge", analyst=analyst, before=before), limit, unseen)

    def release(self, number: int, *, analyst: str | None, unseen: past.Unseen = frozenset()) -> Release:
        """Give what a charge paid for once more, at no cost: one of the analyst's, or any where none is named."""
        with self.ledger.snapshot() as snapshot:
            stored = past.found(snapshot, number, analyst, unseen)
        return self._release(stored, analyst, replayed=True)

    def recall(self, analyst: str, key: str) -> Release | None:
        """Give what the charge under this key of the ledger (see `Claim`) paid for, if it did; free."""
        charge = self.ledger.recall(analyst, key)
        stored = None if charge is None else charge.release
        return None if stored is None else self._release(stored, analyst, replayed=True)

    def datasets(self, analyst: str) -> tuple[str, ...]:
        """List what an analyst may ask about: public tables, and those with a cap."""
        policy = self.config.policy
        if analyst not in policy.analysts:
            policy.caps(analyst, next(iter(policy.datasets), ""))  # raises, with the nearest name
        grouped = {d for members, caps in policy.groups.values() if analyst in members for d in caps}
        mine = set(policy.analysts[analyst]) | grouped
        return tuple(name for name, table in self.tables.items() if table.public or name in mine)

    def under(self, config: Config, tables: Mapping[str, Table], engine: Engine) -> "Curator":
        """Give a curator of another hubbub.yaml on the same ledger, noise and versions."""
        curator = Curator(
            config,
            tables,
            ledger=self.ledger,
            engine=engine,
            versions=self._versions,
            draws=self._draws,
            salt=self._salt,
        )
        curator._failures = self._failures
        return curator

    def close(self) -> None:
        """Let go of data and ledger."""
        self.engine.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _plan(self, analyst: str, question: Question, *, salt: str) -> PreparedAnalysis:
        """Bind and price a question: pure, whatever it ends in, and in bounded time."""
        with deadline.limit_planning():
            return self._plan_in_time(analyst, question, salt=salt)

    def _plan_in_time(self, analyst: str, question: Question, *, salt: str) -> PreparedAnalysis:
        visible = {name: self.tables[name] for name in self.datasets(analyst)}
        if calls.is_call(question.sql):
            return self._prepare_call(analyst, question, visible, salt)
        query = bind(question.sql, tables=visible, parameters=question.values(), dialect=question.dialect)
        delta = self._delta(analyst, query.tables, question)
        if question.wants_accuracy():
            epsilon = solve(query, within=question.within or 0, delta=delta, **question.shape(query))
        else:
            epsilon = question.price()
        options = self._render_options(query.tables, salt)
        planned = prepare_query(query, question, options, epsilon=epsilon, delta=delta)
        size.check(planned.plan, most=self.config.max_cells)
        return planned

    def _render_options(self, tables: Iterable[Table], salt: str) -> RenderOptions:
        """Choose how a plan over these tables is written: in the words of the engine that sees them all."""
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
            return prepare(call, Setting(visible, question.price(), delta, options, *limits), question.own)

        table = visible.get(str(call.arguments.get("table")))
        planned = prepared([] if table is None else [table])
        # a condition may read other tables
        return planned if planned.tables == (table,) else prepared(planned.tables)

    def _delta(self, analyst: str, tables: Iterable[Table], question: Question) -> Fraction:
        """Give the δ that a plan may use: that of the caps, unless the question says less."""
        names = [table.name for table in tables if table.unit is not None]
        caps = [cap for name in names for cap in self.config.policy.caps(analyst, name)]
        return question.allowed(min((cap.budget.delta for cap in caps), default=Fraction(0)))

    def _charge(
        self, analyst: str, planned: PreparedAnalysis, text: str, key: str | None, claim: Claim | None
    ) -> tuple[list[Charge], dict[str, str]]:
        """Charge every private dataset that the plan reads; returns only when all charges are durable."""
        versions = self._states(planned)
        key = self._key(analyst, planned, text, versions) if key is None else f"key {key}"
        tables = planned.private
        if claim is not None:
            key = claim(f"{key} {tables[0].name}").removesuffix(f" {tables[0].name}")
        requests = [
            Request(analyst, table.name, versions[table.name], planned.event, text, f"{key} {table.name}")
            for table in tables
        ]
        return self.ledger.charge_all(requests), versions

    def _key(self, analyst: str, planned: PreparedAnalysis, text: str, versions: Mapping[str, str]) -> str:
        """Name the charge of this question on this state of the data."""
        earlier = self._first_format.key(analyst, text, event=planned.event, tables=planned.tables, versions=versions)
        return earlier or replay.key(
            text, event=planned.event, epsilon=planned.epsilon, tables=planned.tables, versions=versions
        )

    def _answer(
        self,
        planned: PreparedAnalysis,
        text: str,
        charges: Sequence[Charge],
        versions: Mapping[str, str],
        *,
        progress: Progress,
        cancelled: Callable[[], bool] = never,
        silent: bool = False,
    ) -> bytes:
        """Run, add noise, record: whatever fails in here, the analyst hears one constant. A `silent` run draws none."""

        def released() -> bytes | None:
            with self.ledger.snapshot() as snapshot:
                return snapshot.body(charges[0].sequence)

        made = made_of(planned, text, versions)
        draw = nothing() if silent else self._draws.begin(charges, made, lambda: released() is not None)
        if draw is None:
            return released() or b""
        failure = ""
        spent: SpentError | None = None
        try:
            paper = receipts.receipt(planned, query=text, charges=[c.entry for c in charges], versions=versions)
            body = self._run(planned, draw, paper, progress)
            # the first run is on whatever it finds; another one with its noise must have found the same
            if not draw.retried or self._states(planned) == versions:
                return self.ledger.record(charges[0], body)
            spent = self._draws.spoil(charges[0].entry)
        except Exception as error:  # noqa: BLE001 - its text may hold a cell of the data
            failure = type(error).__name__
        # raised out here, so that no error with data in it hangs on to this one
        if spent is not None:
            raise spent
        _log.info("charge %d has no release: %s", charges[0].sequence, failure)
        if not cancelled():
            self._note_failure(charges)
        raise RunError

    def _run(self, planned: PreparedAnalysis, draw: Draw, paper: Mapping[str, Any], progress: Progress) -> bytes:
        """Ask the engine, draw, and write the release."""
        engine = engine_for(self.engine, [table.name for table in planned.tables])
        published = planned.run(EngineRun(engine.run, draw.source, progress))
        ratio = published.ratio
        if ratio is None:
            ratio = [None] * (len(published.outputs[0].values) if published.outputs else 0)
        return receipts.encode(published.outputs, ratio, paper, published.model)

    def _refuse_failing(self, analyst: str, planned: PreparedAnalysis) -> None:
        """Refuse an analyst whose runs failed too often on a dataset that is asked about."""
        with self.ledger.snapshot() as snapshot:
            self._failures.take_in(snapshot)
        for table in planned.private:
            declared = self.config.datasets.get(table.name)
            self._failures.refuse(analyst, table.name, DEFAULT_FAILURES if declared is None else declared.failures)

    def _note_failure(self, charges: Sequence[Charge]) -> None:
        failed = [Remark(each.entry.analyst, each.entry.dataset, each.sequence) for each in charges]
        try:
            self._failures.note(self.ledger, failed)
        except HubbubError as error:  # it counts in this process all the same
            _log.warning("the failure of charge %d is not written down: %s", charges[0].sequence, error.code)

    def _states(self, planned: PreparedAnalysis) -> dict[str, str]:
        """Give the versions of all tables that a plan reads."""
        return {table.name: self._version(table.name) for table in planned.tables}

    def _version(self, name: str) -> str:
        try:
            fingerprint = self.engine.fingerprint(name)
        except UnreachableError as error:
            why, remedy = f": {error.why}", f"Tell its owner. {error.remedy}"
        except OSError:
            why, remedy = "", "Tell its owner."
        else:
            return self._versions.name(name, fingerprint)
        raise LedgerError("HB318", f"the data of {name} cannot be reached{why}. Nothing was run or charged.", remedy)

    def _release(self, stored: bytes, analyst: str | None, *, replayed: bool) -> Release:
        """Make a release of what the ledger keeps; for an analyst, with what is left to spend now."""
        columns, ratio, model, paper = receipts.decode(stored)
        epsilon, delta = (Fraction(paper["charge"][name]) for name in ("epsilon", "delta"))
        left = None
        if analyst is not None:
            mine = [each["dataset"] for each in paper["ledger"] if each["dataset"] in self.datasets(analyst)]
            left = min((self._standings(analyst, name).left() for name in mine), default=None)
        return Release(columns, ratio, epsilon, delta, paper, left, replayed, model)

    def _standings(self, analyst: str, dataset: str, *, exact: bool = False) -> BudgetStatus:
        with self.ledger.snapshot() as snapshot:
            return budget_status(snapshot, self.config.policy, analyst, dataset, self.ledger.time(), exact=exact)
