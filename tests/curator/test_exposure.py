"""The folder of a ledger copied and put back, moved, upgraded: what is refused, what goes on, what an owner is told."""

import shutil
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.accounting.anchor import FileAnchor, default_path, former_path
from hubbub.cli import main
from hubbub.config import load
from hubbub.curator import exposure as custody
from hubbub.curator.opening import exposed_files, storage_warnings
from hubbub.curator.session import open_session
from hubbub.errors import LedgerError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {age: {type: integer, bounds: [0, 110]}}
    budget: {epsilon: 1}
analysts: {ana: {visits: {epsilon: 1}}}
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def project(tmp_path: Path, state: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "visits.csv").write_text("age\n" + "".join(f"{i % 90}\n" for i in range(100)))
    (folder / "hubbub.yaml").write_text(YAML)
    return folder


def ask(project: Path, epsilon: str = "0.25") -> Fraction:
    """Ask once, and give what is left."""
    with open_session(project / "hubbub.yaml") as session:
        left = session.query("SELECT COUNT(*) AS n FROM visits", epsilon=epsilon, key=f"k{epsilon}").left
    assert left is not None
    return left


def refusal(project: Path) -> LedgerError:
    with pytest.raises(LedgerError) as refused, open_session(project / "hubbub.yaml"):
        pass
    return refused.value


def database(project: Path) -> Path:
    return project / "hubbub-ledger" / "ledger.db"


def test_a_copy_of_the_whole_folder_gives_no_budget_back(project: Path, tmp_path: Path) -> None:
    assert ask(project) == Fraction(3, 4)
    shutil.copytree(project, tmp_path / "backup")
    assert ask(project, "0.5") == Fraction(1, 4)
    shutil.rmtree(project)
    shutil.copytree(tmp_path / "backup", project)
    error = refusal(project)
    assert error.code == "HB307"
    assert "older copy" in error.message
    assert main(["verify", "ledger", "--config", str(project / "hubbub.yaml")]) == 1


def test_a_copy_under_another_name_is_no_second_budget(project: Path, tmp_path: Path) -> None:
    ask(project)
    shutil.copytree(project, tmp_path / "second")
    error = refusal(tmp_path / "second")
    assert error.code == "HB308"
    assert str(default_path(database(tmp_path / "second"))) in error.message
    assert "hubbub admin anchor" in error.remedy


def test_a_new_ledger_in_the_place_of_an_old_one_is_refused(project: Path) -> None:
    ask(project)
    shutil.rmtree(project / "hubbub-ledger")
    error = refusal(project)
    assert error.code == "HB307"
    assert "replaced" in error.message


def test_a_ledger_of_an_earlier_version_goes_on_and_is_then_protected(project: Path, tmp_path: Path) -> None:
    ask(project)
    # as an earlier version left it: the anchor beside the database and none at home
    former_path(database(project)).parent.mkdir()
    shutil.move(default_path(database(project)), former_path(database(project)))
    shutil.copytree(project, tmp_path / "backup")
    assert ask(project, "0.125") == Fraction(5, 8)
    assert default_path(database(project)).exists()
    assert any("earlier version" in text for text in storage_warnings(load(project / "hubbub.yaml")))
    shutil.rmtree(project)
    shutil.copytree(tmp_path / "backup", project)
    assert refusal(project).code == "HB307", "the old anchor came back with the folder, the new one did not"


def test_an_earlier_anchor_serves_a_home_that_does_not_last(project: Path, state: Path) -> None:
    ask(project)
    former_path(database(project)).parent.mkdir()
    shutil.move(default_path(database(project)), former_path(database(project)))
    for number in range(3):
        assert ask(project, f"0.0{number + 1}") < 1
        shutil.rmtree(state)  # a new container


def test_a_ledger_that_was_moved_gets_an_anchor_by_somebodys_word(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(project)
    shutil.move(project, tmp_path / "moved")
    moved = tmp_path / "moved"
    word = ["--config", str(moved / "hubbub.yaml"), "--by", "ana@clinic.example", "--reason", "a new disk"]
    assert refusal(moved).code == "HB308"
    assert main(["admin", "anchor", *word]) == 1
    assert "HB135" in capsys.readouterr().err
    assert refusal(moved).code == "HB308", "nothing was done"
    assert main(["admin", "anchor", *word, "--yes"]) == 0
    assert ask(moved, "0.5") == Fraction(1, 4), "what was spent stays spent"
    capsys.readouterr()
    assert main(["audit", "ledger", "--config", str(moved / "hubbub.yaml")]) == 0
    assert "ana@clinic.example" in capsys.readouterr().out
    assert main(["verify", "ledger", "--config", str(moved / "hubbub.yaml")]) == 0


def test_no_word_passes_over_an_anchor_that_is_there(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(project)
    shutil.copytree(project, tmp_path / "backup")
    ask(project, "0.5")
    shutil.rmtree(project)
    shutil.copytree(tmp_path / "backup", project)
    word = ["--config", str(project / "hubbub.yaml"), "--by", "mallory", "--reason", "none", "--yes"]
    before = FileAnchor(default_path(database(project))).read()
    assert main(["admin", "anchor", *word]) == 1
    assert "HB333" in capsys.readouterr().err
    assert FileAnchor(default_path(database(project))).read() == before
    assert refusal(project).code == "HB307"


def test_no_word_makes_a_damaged_ledger_right(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(project)
    default_path(database(project)).unlink()
    whole = database(project).read_bytes()
    edited = whole.replace(b"SELECT COUNT", b"SELECT count")
    assert edited != whole
    database(project).write_bytes(edited)
    word = ["--config", str(project / "hubbub.yaml"), "--by", "ana", "--reason", "none", "--yes"]
    assert main(["admin", "anchor", *word]) == 1
    assert "HB334" in capsys.readouterr().err
    assert not default_path(database(project)).exists()


def test_an_owner_is_told_what_would_restore_both(tmp_path: Path) -> None:
    ledger = tmp_path / "project" / "hubbub-ledger"
    inside = custody.anchor_warning(ledger, ledger / "anchor" / "x.anchor")
    near = custody.anchor_warning(ledger, tmp_path / "state" / "x.anchor")
    assert inside is not None
    assert "in the ledger's folder" in inside
    assert near is not None
    assert f"both below {tmp_path}" in near
    same = custody.anchor_warning(Path("/home"), Path("/var/lib/x.anchor"))
    assert same is not None
    assert "same user" in same, "both are root's"


def test_check_says_it_and_the_next_start_takes_wide_modes_away(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(project)
    folder = project / "hubbub-ledger"
    wide = [folder, database(project), folder / "versions.json", folder / "versions.lock"]
    for path in wide:
        path.chmod(0o777 if path.is_dir() else 0o666)
    folder.chmod(0o755)
    assert set(exposed_files(load(project / "hubbub.yaml"))) == set(wide)
    assert main(["check", "--config", str(project / "hubbub.yaml")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Other users can access" in said
    ask(project, "0.125")
    assert exposed_files(load(project / "hubbub.yaml")) == []
    assert [stat.S_IMODE(path.stat().st_mode) for path in wide] == [0o700, 0o600, 0o600, 0o600]
