"""Studies: planned for free, charged once, continued after an end, and reported as one document from facts."""

import json
import re
from pathlib import Path

import pytest

import hubbub
from hubbub.answers.study import Study, StudyReport
from hubbub.answers.study_file import EXAMPLE
from hubbub.audit.receipt import check_receipt
from hubbub.cli import main
from hubbub.curator.batch import PreparedBatch
from hubbub.demo import lay_out
from hubbub.errors import ParameterError, QueryError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study")
    lay_out(path)
    text = (path / "hubbub.yaml").read_text(encoding="utf-8")
    text = text.replace("budget: {epsilon: 3,", "budget: {epsilon: 30,").replace(
        "health: {epsilon: 3}", "health: {epsilon: 30}"
    )
    (path / "hubbub.yaml").write_text(text.replace("per_query: 1", "per_query: 20"), encoding="utf-8")
    (path / "study.yaml").write_text(EXAMPLE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def report(folder: Path) -> StudyReport:
    with hubbub.open(folder / "hubbub.yaml") as h:
        study = h.study(folder / "study.yaml")
        before = len(h.releases())
        plan = study.plan()
        assert len(h.releases()) == before
        assert [each.part.name for each in plan.parts] == ["visits", "ages", "rating"]
        report = study.run()
        assert len(h.releases()) == before + 1
        assert report.release.receipt["charge"]["epsilon"] == "1/2"
        assert not report.replayed
        return report


def test_each_part_gets_what_its_plan_says(folder: Path, report: StudyReport) -> None:
    """Half of ε goes to the part of weight 2: its margins are those of the same query at half the price."""
    with hubbub.open(folder / "hubbub.yaml") as h:
        study = h.study(folder / "study.yaml")
        parts = {each.part.name: each for each in study.plan().parts}
        alone = h.estimate(study.file.parts[0].query, epsilon="0.25", delta=0)
        whole = study.plan()
    assert [each.plus_minus for each in parts["visits"].expected] == [each.plus_minus for each in alone.expected]
    assert [each.name for each in parts["visits"].expected] == ["years", "visits"]
    assert "visits (0.5 of ε): years ±" in repr(whole)
    assert whole.to_json()["parts"][1]["part"] == "ages"  # type: ignore[index]
    assert list(report) == ["visits", "ages", "rating"]
    assert report["ages"].columns == ("whom", "years")
    assert hubbub.model(report["rating"]).classes == ("excellent", "good", "fair", "poor")
    assert check_receipt(json.loads(json.dumps(report.release.document()))).sound


def test_the_same_study_is_free(folder: Path, report: StudyReport) -> None:
    changed = EXAMPLE.replace("Use of health services", "Another title").replace(
        "coinsurance, COUNT", "coinsurance,  COUNT"
    )
    (folder / "other.yaml").write_text(changed, encoding="utf-8")
    with hubbub.open(folder / "hubbub.yaml") as h:
        again = h.study(folder / "other.yaml").run()
        assert again.replayed
        assert again["visits"].rows == report["visits"].rows
        assert again.file.title == "Another title"
        fresh = h.study(folder / "study.yaml").run(fresh=True)
        assert not fresh.replayed
        assert fresh["visits"].rows != report["visits"].rows


def test_a_killed_run_continues_without_another_charge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "killed.yaml"
    path.write_text(EXAMPLE.replace("epsilon: 0.5", "epsilon: 0.25"), encoding="utf-8")
    drawn: list[str] = []
    whole = PreparedBatch._summary

    def killed(prepared: PreparedBatch, answers: object) -> object:
        drawn.append(json.dumps(answers))
        if len(drawn) == 1:
            raise KeyboardInterrupt
        return whole(prepared, answers)  # type: ignore[arg-type]

    monkeypatch.setattr(PreparedBatch, "_summary", killed)
    with hubbub.open(folder / "hubbub.yaml") as h:
        with pytest.raises(KeyboardInterrupt):
            h.study(path).run()
        charges = len(h.releases())
        report = h.study(path).run()
        assert len(h.releases()) == charges
    assert drawn[0] == drawn[1], "the same noise"
    assert report["ages"].rows


def test_the_document_states_facts_of_the_release(report: StudyReport, tmp_path: Path) -> None:
    text = report.markdown()
    release = report.release
    (charge,) = release.receipt["ledger"]
    for words in (
        "# Use of health services",
        "## Visits by coinsurance",
        "The privacy unit is all rows with the same value of person",
        "if one such unit were added or removed",
        "ε = 0.5, δ = 0",
        "Mechanisms applied to the data: 5 × laplace",
        "Each person counts with at most 5 rows",
        "visits is clamped to 0 to 80",
        f"Charge {charge['sequence']} on health, ledger entry with hash {charge['hash']}",
        str(release.receipt["answer"]),
        "95% confidence intervals for the privacy noise only",
        "Who rates their health as good?, naive\\_bayes: counts: ",
    ):
        assert words in text, words
    for name in report:
        for row in report[name].texts():
            assert "| " + " | ".join(each.replace("<", "\\<") for each in row) + " |" in text
    page = report.page()
    assert page.count("<svg") == 3
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page)
    report.write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    with pytest.raises(ParameterError, match="Cannot write a study"):
        report.write(tmp_path / "report.docx")
    with pytest.raises(ParameterError, match="no part 'age'"):
        report["age"]


def test_a_text_of_the_file_cannot_write_markup(folder: Path, report: StudyReport) -> None:
    del report  # the same study, paid before
    nasty = EXAMPLE.replace("title: Ages", "title: <script>alert(1)</script>")
    (folder / "nasty.yaml").write_text(nasty, encoding="utf-8")
    with hubbub.open(folder / "hubbub.yaml") as h:
        page = h.study(folder / "nasty.yaml").run().page()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_errors_name_file_line_and_part(folder: Path) -> None:
    cases = {
        "FROM health GROUP BY coinsurance": ("FROM heath GROUP BY coinsurance", 8, "visits"),
        "analysis: naive_bayes": ("analysis: naive_baies", 19, "rating"),
        "bins: 4": ("bins: 4000", 19, "rating"),
        "analysis: naive_bayes\n": ("analysis: stream\n", 19, "rating"),
    }
    with hubbub.open(folder / "hubbub.yaml") as h:
        for old, (new, line, part) in cases.items():
            path = folder / "wrong.yaml"
            path.write_text(EXAMPLE.replace(old, new), encoding="utf-8")
            for act in (Study.plan, Study.run):
                with pytest.raises((QueryError, ParameterError)) as refused:
                    act(h.study(path))
                assert refused.value.message.startswith(f"{path}, line {line}: {part}"), refused.value
                assert refused.value.message.count("Nothing was run or charged.") <= 1


def test_commands_plan_and_run(
    folder: Path, report: StudyReport, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["study", "plan", "study.yaml"]) == 0
    assert "ages (0.25 of ε): years ±" in capsys.readouterr().out
    assert main(["study", "plan", "study.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Use of health services"
    assert main(["study", "run", "study.yaml", "--to", "out.html", "--receipt", "out.json"]) == 0
    assert "free, from the ledger" in capsys.readouterr().out
    assert (folder / "out.html").read_text(encoding="utf-8") == report.page()
    assert main(["verify", "out.json"]) == 0
    capsys.readouterr()
    assert main(["study", "run", "study.yaml"]) == 0
    assert capsys.readouterr().out == report.markdown()
    assert main(["study", "run", "study.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"]["ages"]["columns"] == ["whom", "years"]
    assert main(["study", "run", "study.yaml", "--to", "out.docx"]) == 1
    assert "HB845" in capsys.readouterr().err
    assert main(["study", "example", "new.yaml"]) == 0
    assert (folder / "new.yaml").read_text(encoding="utf-8") == EXAMPLE
    assert main(["study", "example", "new.yaml"]) == 1
    capsys.readouterr()
    assert main(["study", "example"]) == 0
    assert capsys.readouterr().out == EXAMPLE


def test_a_study_beyond_the_budget_is_refused_before_it_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "dear.yaml").write_text(EXAMPLE.replace("epsilon: 0.5", "epsilon: 25"), encoding="utf-8")
    assert main(["study", "plan", "dear.yaml"]) == 1
    assert "over budget" in capsys.readouterr().out
    assert main(["study", "run", "dear.yaml", "--to", "dear.html"]) == 1
    assert not (folder / "dear.html").exists()
