"""What documents state, that unanswered questions stay open, and which limits they list."""

from dataclasses import replace
from typing import Any

import pytest

from hubbub.accounting.verify import LedgerProblem
from hubbub.config import Config, load
from hubbub.core.unit import Relation
from hubbub.reports.assessments import DOCUMENTS
from hubbub.reports.document import Document
from hubbub.reports.facts import read


def document(config: Config, kind: str, **about: str) -> Document:
    return DOCUMENTS[kind](read(config), about)


def answer(written: Document, name: str) -> str:
    (item,) = [item for item in written.items if item.name == name]
    return "\n".join(item.answer)


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_statement_has_evidence_and_every_question_one_name(config: Config, kind: str) -> None:
    written = document(config, kind)
    items = list(written.items)
    assert len({item.name for item in items}) == len(items)
    assert all(item.evidence for item in items if item.answered)
    assert not [item for item in items if not item.answered and item.evidence]


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_what_only_people_know_is_open_until_they_say_it(config: Config, kind: str) -> None:
    open_questions = document(config, kind).unanswered
    assert open_questions
    first = open_questions[0].name
    written = document(config, kind, **{first: "A text of ours."})
    assert answer(written, first) == "A text of ours."
    assert len(written.unanswered) == len(open_questions) - 1
    assert document(config, kind, **{first: "  "}).unanswered == open_questions


def test_the_registry_entry_states_the_parameters(config: Config) -> None:
    written = document(config, "registry")
    assert "ε = 5, δ = 1e-06 for all analysts, in total" in answer(written, "parameters")
    assert answer(written, "spent").startswith("ε = 1.75 in 3 charges by 2 analysts")
    assert "each row" in answer(written, "unit")
    assert "approximate (ε, δ)-differential privacy" in answer(written, "flavor")
    assert [section.title for section in written.sections] == ["Tier 1", "Tier 2", "Tier 3"]


def test_what_is_not_protected_follows_from_the_declarations(config: Config) -> None:
    """Under `replace` the number of rows is public where rows are units; that of people is not (decision 0045)."""
    deployment = read(config)
    (facts,) = deployment.datasets

    def unprotected(**changes: Any) -> str:
        changed = replace(deployment, datasets=(replace(facts, **changes),))
        return answer(DOCUMENTS["registry"](changed, {}), "unprotected")

    assert "number of rows" in unprotected(relation=Relation.REPLACE, rows_are_units=True)
    assert "number of" not in unprotected(relation=Relation.REPLACE, rows_are_units=False).partition("updates")[2]
    assert "number of rows" not in unprotected(relation=Relation.ADD_REMOVE)
    assert "Which blocks of people" in unprotected(blocks=("each month is a block",))
    assert "Which blocks" not in unprotected()


def test_limits_follow_from_what_is_declared(config: Config) -> None:
    limits = answer(document(config, "nist"), "limits")
    assert "the privacy unit is the row" in limits
    assert "with δ = 1e-06" in limits
    assert "two owners" not in limits
    config.path.write_text(config.path.read_text().replace(", delta: 1e-6", ""))
    assert "δ" not in answer(document(load(config.path), "nist"), "limits")


def test_a_ledger_that_does_not_verify_is_called_so(config: Config) -> None:
    deployment = read(config)
    spoiled = replace(deployment.verification, problems=(LedgerProblem("chain", "entry 3 was changed"),))
    written = DOCUMENTS["dpia"](replace(deployment, verification=spoiled), {})
    assert "NOT VERIFIED: entry 3 was changed" in answer(written, "verification")
