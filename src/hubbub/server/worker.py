"""One of several server processes that share an address: what it knows of the others.

Tested in tests/cli/test_serve_workers.py.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from hubbub.config import Config

MAX_WORKERS = 64


@dataclass(frozen=True)
class Worker:
    """A worker's place among `count`.

    name      unique, also after a restart; `former` is the name of the worker that had this place before and has ended
    folder    what all workers share while they run: the board, and a Unix socket for each
    secret    tells requests that a worker passed on from others
    guard     the supervisor's lock of a SQLite ledger, an open file; None for PostgreSQL
    """

    number: int
    count: int
    name: str
    folder: Path
    secret: str = field(repr=False)
    guard: int | None = None
    former: str | None = None

    @property
    def board(self) -> Path:
        """The path of the board."""
        return self.folder / "board.db"

    def socket_path(self, number: int) -> str:
        """Return the path of a worker's Unix socket."""
        return str(self.folder / f"{number}.sock")

    def share(self, total: int, least: int = 1) -> int:
        """Return this worker's share of a limit that holds for all workers together."""
        return max(least, total // self.count)

    def divide(self, config: Config) -> Config:
        """Give this worker's engine its share of the memory and the disk."""
        return replace(config, limits=replace(config.limits, processes=self.count))
