"""A folder with a small dataset, three analysts, a large budget, and server settings."""

import csv
import json
import random
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict
from tests.campaigns.rig.server_process import Reply

from hubbub.accounting.chain import canonical
from hubbub.config import load
from hubbub.server.accounts import Accounts
from hubbub.server.state import Role, State

ANALYSTS = ("ana", "ben", "cy")
PEOPLE = 500
PRICE = "0.01"

_YAML = """\
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {{age: {{type: real, bounds: [0, 110]}}, ward: {{values: [a, b, c]}}}}
    budget: {{epsilon: {epsilon}}}
analysts:
{analysts}
{ledger}
server: {{quantum: {quantum}, workers: {workers}, queue: 256, per_minute: 1000000}}
"""


class ServerFolder:
    """The folder of a campaign's server."""

    def __init__(
        self, folder: Path, *, dsn: str | None = None, epsilon: str = "100000", quantum: str = "0", workers: int = 4
    ) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.config = folder / "hubbub.yaml"
        chance = random.Random(1)
        with (folder / "visits.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("age", "ward"))
            writer.writerows((chance.randint(0, 110), chance.choice("abc")) for _ in range(PEOPLE))
        ledger = ""
        if dsn is not None:
            (folder / "anchor").mkdir()
            ledger = f"ledger: {{database: {json.dumps(url(dsn))}, anchor: anchor/ledger.anchor}}"
        analysts = "\n".join(f"  {name}: {{visits: {{epsilon: {epsilon}}}}}" for name in ANALYSTS)
        self.config.write_text(
            _YAML.format(epsilon=epsilon, analysts=analysts, ledger=ledger, quantum=quantum, workers=workers)
        )
        roles: dict[str, Role] = dict.fromkeys(ANALYSTS, "analyst")
        self.tokens = issue(self.config, roles | {"olga": "owner", "udo": "auditor"})

    def question(self, number: int, *, own_key: bool) -> dict[str, str]:
        """Return a new query, with an idempotency key or without."""
        sql = f"SELECT ward, COUNT(*) AS n FROM visits WHERE age > {number}.5 / 1000 GROUP BY ward"
        return {"sql": sql, "epsilon": PRICE} | ({"key": f"mine-{number}"} if own_key else {})


def issue(config: Path, roles: Mapping[str, Role]) -> dict[str, str]:
    """Create a token for each of these names."""
    found = load(config)
    state = State.open(found)
    try:
        accounts = Accounts(state, analysts=lambda: found.policy.analysts.keys())
        return {name: accounts.issue(name, role, 1).text for name, role in roles.items()}
    finally:
        state.close()


def url(dsn: str) -> str:
    """Return the URL of a PostgreSQL server on a Unix socket, as in hubbub.yaml."""
    parts = conninfo_to_dict(dsn)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"


def kept(reply: Reply) -> bytes:
    """Return the part of a response that the ledger stores, in canonical form."""
    found = reply.json()
    return canonical({"answer": found["answer"], "receipt": found["receipt"]}).encode()


def charge(answer: bytes) -> tuple[int, str]:
    """Return the number and the hash of the charge of an answer."""
    (entry,) = json.loads(answer)["receipt"]["ledger"]
    return entry["sequence"], entry["hash"]
