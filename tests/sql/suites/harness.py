"""Ask hubbub the questions of a suite through one curator, on one engine, and collect what is not as expected."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import yaml
from tests.sql.suites.compare import differences
from tests.sql.suites.questions import HERE, SuiteQuestion, waiting

from hubbub.curator.session import Session, open_session
from hubbub.errors import HubbubError

#: Each question costs this; caps are at most 10⁶.
EPSILON = 4000
BUDGET = {"epsilon": 1e6, "delta": 1e-3}


@dataclass(frozen=True)
class Ground:
    """A schema on one engine: a session that answers privately, and plain DuckDB beside it."""

    engine: str
    session: Session
    exact: duckdb.DuckDBPyConnection
    waiting: Mapping[str, str]

    def complaints(self, asked: Sequence[SuiteQuestion]) -> Iterator[str]:
        """Ask each question, and say what is not as its header expects; one that still waits must not be."""
        for question in asked:
            heard = list(self._complaints(question))
            if question.id in self.waiting:
                heard = [] if heard else ["is as expected: remove it from WAITING"]
            yield from (f"{question.id}: {complaint}" for complaint in heard)

    def _complaints(self, question: SuiteQuestion) -> Iterator[str]:
        code = question.refused_by(self.engine)
        try:
            release = self.session.query(question.text, epsilon=EPSILON, **question.asked)
        except HubbubError as error:
            if error.code != code:
                yield f"refused: {error}"
            return
        if code is not None:
            yield f"answered, though {code} is expected: {release.rows[:3]}"
            return
        values = question.asked["parameters"]
        yield from differences(question, release, self.exact.execute(question.exact, values or None).fetchall())


@contextmanager
def opened(
    folder: Path, schema: str, engine: str, connection: duckdb.DuckDBPyConnection, sources: Mapping[str, str]
) -> Iterator[Ground]:
    """Open a session on the tables of a schema; `sources` says where an engine has them."""
    declared = yaml.safe_load((HERE / schema / "hubbub.yaml").read_text())
    caps: dict[str, dict[str, float]] = {}
    for name, entry in declared["datasets"].items():
        entry["source"] = sources[name]
        if not entry.get("public"):
            entry["budget"] = BUDGET
            caps[name] = BUDGET
    declared["analysts"] = {"ana": caps}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hubbub.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    exact = connection.cursor()
    exact.execute("SET schema = 'plain'; SET TimeZone = 'UTC'")
    with open_session(folder / "hubbub.yaml", analyst="ana") as session:
        yield Ground(engine, session, exact, waiting())


def files(connection: duckdb.DuckDBPyConnection, names: Sequence[str], folder: Path) -> dict[str, str]:
    """Write each table to a Parquet file."""
    for name in names:
        connection.execute(f"COPY main.{name} TO '{folder}/{name}.parquet'")
    return {name: str(folder / f"{name}.parquet") for name in names}
