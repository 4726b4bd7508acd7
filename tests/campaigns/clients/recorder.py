"""Record what clients ask the catalog, and what it could not answer: fixtures of tests/gateway/test_questions.py."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hubbub.errors import HubbubError
from hubbub.gateway.asker import Asker
from hubbub.gateway.result import PgResult
from hubbub.gateway.route import Route

FILE = Path(__file__).parents[2] / "gateway" / "questions.json"
_MOST = 60


@dataclass
class Questions:
    """The questions of each user, in their order, and those that were refused."""

    asked: dict[str, list[str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def write(self, users: Mapping[str, str]) -> None:
        """Keep the questions of each client; a client that was not there keeps its former ones."""
        kept: dict[str, list[str]] = json.loads(FILE.read_text()) if FILE.exists() else {}
        found = {name: list(dict.fromkeys(self.asked.get(user, [])))[:_MOST] for name, user in users.items()}
        kept |= {name: listed for name, listed in found.items() if len(listed) > 1}
        FILE.write_text(json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n")


@contextmanager
def recording() -> Iterator[Questions]:
    """Record while the block lasts; every service of this process is recorded."""
    questions = Questions()
    answer = Asker._asked_catalog

    def recorded(asker: Asker, found: Route, parameters: Sequence[Any]) -> PgResult:
        if "hubbub.releases" not in found.sql:  # the campaign asks this itself
            questions.asked.setdefault(asker._user, []).append(found.sql)
        try:
            return answer(asker, found, parameters)
        except HubbubError as error:
            questions.refused.append(f"{error.code}: {found.sql}")
            raise

    with patch.object(Asker, "_asked_catalog", recorded):
        yield questions
