"""A study with a server: the same plan and the same report as embedded."""

from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import KINDS, Awaited, Opener

from hubbub.answers.study_file import EXAMPLE
from hubbub.errors import QueryError


def _study(session: Any, path: Path) -> tuple[Any, Any]:
    """Give the functions that plan and run a study of a session of each kind."""
    if isinstance(session, Awaited):
        study = session._session.study(path)
        return lambda: session._runner.run(study.plan()), lambda: session._runner.run(study.run())
    study = session.study(path)
    return study.plan, study.run


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_is_planned_and_run(opener: Opener, tmp_path: Path, kind: str) -> None:
    session = opener(kind)
    path = tmp_path / "study.yaml"
    text = EXAMPLE.replace("education", "visits")
    path.write_text(text, encoding="utf-8")
    plan, run = _study(session, path)
    assert [float(each.share) for each in plan().parts] == [0.5, 0.25, 0.25]
    report = run()
    assert report["ages"].columns == ("whom", "years")
    assert "## Methods" in report.markdown()
    assert run().replayed
    path.write_text(text.replace("bins: 4", "bines: 4"), encoding="utf-8")
    for act in _study(session, path):
        with pytest.raises(QueryError, match=r"study\.yaml, line 19: rating: naive_bayes has no argument called bines"):
            act()
