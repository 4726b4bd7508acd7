"""The service over one hubbub.yaml: its parts side by side, each a set of methods that take the principal first.

The HTTP API and the pages call these methods and nothing below them; `roles.allowed` checks the role at each method.

Tested in tests/server/test_roles.py.
"""

import os
import threading
from pathlib import Path
from typing import Self

from hubbub.accounting.declarations import last_absence
from hubbub.config import load
from hubbub.config.document import parse_yaml
from hubbub.curator.opening import folder_of, is_postgres
from hubbub.server import settings as settings_
from hubbub.server.accounts import Accounts, IdentityProvider
from hubbub.server.administration_service import AdministrationService
from hubbub.server.attack_lab import MAX_RUNNING, Lab
from hubbub.server.attack_service import AttackService, CrowdService
from hubbub.server.audit_service import AuditService
from hubbub.server.board import Board, SharedFigures, SharedQueries
from hubbub.server.catalog_service import CatalogService
from hubbub.server.comment_service import CommentService
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.free_pool import FreePool, ReservedThreads
from hubbub.server.job_registry import JobRegistry
from hubbub.server.limits import RateLimit
from hubbub.server.metrics import Metrics
from hubbub.server.news_service import NewsService
from hubbub.server.publication_service import PublicationService
from hubbub.server.query_pool import QueryPool
from hubbub.server.query_service import QueryService
from hubbub.server.review_service import ReviewService
from hubbub.server.sandbox_service import SandboxService
from hubbub.server.saved_service import SavedService
from hubbub.server.schedule_service import ScheduleService
from hubbub.server.scheduler import Scheduler
from hubbub.server.settings import Settings
from hubbub.server.state import State
from hubbub.server.stream_service import StreamService
from hubbub.server.telemetry import Telemetry
from hubbub.server.worker import Worker

#: Seconds that running queries get to finish when the server stops.
PATIENCE = 20.0
#: Failed sign-in attempts allowed per address and minute.
_ATTEMPTS = 20


class Service:
    """Opens everything that a hubbub.yaml names. Safe to use from many threads; close it once.

    service.catalog         identity, datasets, budgets, releases, the meaning of ε
    service.queries         estimates, queries, jobs
    service.administration  hubbub.yaml, analysts, groups, tokens, budget requests
    service.audit           ledger history, verification, metrics
    service.streams         streams that were paid for
    service.attacks         the attack lab
    service.crowd           studies of the crowd sanitizers, in the same lab
    service.publications    public pages of releases
    service.reviews         answers that wait for approval
    service.sandbox         any question on made-up rows, free
    service.saved           saved questions and dashboards
    service.comments        comments on releases
    service.news            what changed since an analyst's last visit
    service.schedules       queries that run once for each block; `service.scheduler` runs them
    """

    def __init__(self, path: Path, settings: Settings, worker: Worker | None = None) -> None:
        """Open everything, alone or as one of several workers."""
        self.settings = settings
        self.worker = worker
        self.board = None if worker is None else Board(worker.board)
        self.current = CurrentCurator(path, worker)
        try:
            self.state = State.open(self.current.config)
        except BaseException:
            self.current.close()
            raise
        self.accounts = Accounts(self.state, analysts=self.current.analysts, oidc=_provider(settings))
        self.accounts.withdraw()
        self.current.withdraw = self.accounts.withdraw
        self._revoke_returned()
        self.requests_limit = RateLimit(settings.per_minute, board=self.board, kind="requests")
        self.attempts_limit = RateLimit(_ATTEMPTS, board=self.board, kind="attempts")
        self.metrics = Metrics()
        self.telemetry = None if settings.telemetry is None else Telemetry(settings.telemetry)
        self.pool, self.free_pool, figures = _pools(settings, worker, self.board)
        self.reserved = ReservedThreads()
        self.lab = Lab(running=max(1, min(MAX_RUNNING, settings.workers // 2)))
        self.registry = _registry(self, worker)
        self.catalog = CatalogService(self.current, self.pool)
        self.queries = QueryService(self.current, self.state, self.pool, self.registry)
        self.administration = AdministrationService(self.current, self.state, self.accounts)
        self.audit = AuditService(self.current, self.pool, self.metrics, figures, self.telemetry)
        self.streams = StreamService(self.current, self.state)
        self.attacks = AttackService(self.lab)
        self.crowd = CrowdService(self.lab)
        self.publications = PublicationService(self.current, self.catalog, self.state, self.accounts)
        self.reviews = ReviewService(self.current)
        self.sandbox = SandboxService(self.current, self.pool)
        accounts = self.accounts
        self.schedules = ScheduleService(self.current, self.pool, self.state.attempts, accounts.shut_out)
        self.saved = SavedService(self.state, self.accounts)
        self.comments = CommentService(self.catalog, self.state, self.accounts)
        self.news = NewsService(self.catalog, self.state, self.accounts)
        self.scheduler = Scheduler(self.current, self.queries, self.state.attempts, accounts.clock, accounts.shut_out)
        self._closing = threading.Lock()
        self._closed = False

    @classmethod
    def open(cls, path: Path, *, host: str | None = None, port: int | None = None, pg_port: int | None = None) -> Self:
        """Open a hubbub.yaml with settings from the file, the environment, and the command line."""
        return cls(path, read_settings(path, host=host, port=port, pg_port=pg_port))

    def close(self) -> None:
        """Refuse new work, let running queries finish or fail, and release all resources."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self.scheduler.stop()
                self.lab.close()
                self.pool.close(patience=PATIENCE)
                self.scheduler.join()
                if self.registry is not None:
                    self.registry.close()
                self.sandbox.close()
                self.current.close()
                self.state.close()
                if self.board is not None:
                    self.audit.share_figures()
                    self.board.close()
                if self.telemetry is not None:
                    self.telemetry.close()

    def _revoke_returned(self) -> None:
        """Revoke old access of analysts who were removed and added again while no server was running."""
        with self.current.curator.ledger.snapshot() as snapshot:
            for name in self.current.config.policy.returning:
                since = last_absence(snapshot, name)
                if since is not None:
                    self.accounts.returned(name, since // 1_000_000)


def read_settings(
    path: Path, *, host: str | None = None, port: int | None = None, pg_port: int | None = None
) -> Settings:
    """Read the settings from a hubbub.yaml, the environment, and the command line."""
    document = parse_yaml(path.read_text(encoding="utf-8"))
    folder = folder_of(load(path))
    return settings_.read(
        document, base=path.parent, folder=folder, environment=os.environ, host=host, port=port, pg_port=pg_port
    )


def _pools(
    settings: Settings, worker: Worker | None, board: Board | None
) -> tuple[QueryPool, FreePool, SharedFigures | None]:
    """Create the pools; several workers share the threads and the queue that the settings allow."""
    if worker is None or board is None:
        pool = QueryPool(workers=settings.workers, queue=settings.queue, quantum=settings.quantum)
        return pool, FreePool(threads=settings.free_workers, seconds=settings.free_seconds), None
    board.retire(worker.former or "")
    pool = QueryPool(
        workers=worker.share(settings.workers),
        queue=worker.share(settings.queue, 0),
        quantum=settings.quantum,
        shared=SharedQueries(board, worker.name),
        prefix=f"{worker.number:02x}",
    )
    free = FreePool(threads=worker.share(settings.free_workers, 2), seconds=settings.free_seconds)
    return pool, free, SharedFigures(board, worker.name)


def _registry(service: Service, worker: Worker | None) -> JobRegistry | None:
    """Return the registry of jobs, if others may be asked about them."""
    if worker is not None:
        return JobRegistry(service.state, service.accounts.clock, name=worker.name, former=worker.former)
    return JobRegistry(service.state, service.accounts.clock) if is_postgres(service.current.config) else None


def _provider(settings: Settings) -> IdentityProvider | None:
    if settings.oidc is None:
        return None
    from hubbub.server.oidc import Oidc

    return Oidc(settings.oidc)
