"""Documents as files: signed JSON, Markdown and HTML whose texts are never markup, and a PDF."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.audit.report import load_public_keys, public_key_path, verify_report
from hubbub.config import Config
from hubbub.errors import AuditError, ParameterError
from hubbub.reports import forms
from hubbub.reports.assessments import DOCUMENTS
from hubbub.reports.facts import read


def test_json_is_signed_and_any_change_is_found(config: Config, tmp_path: Path) -> None:
    document = DOCUMENTS["registry"](read(config), {})
    key, target = tmp_path / "keys" / "audit.key", tmp_path / "registry.json"
    forms.write(document, target, key)
    facts = verify_report(target.read_text(), load_public_keys(public_key_path(key)))
    assert facts["document"] == "registry"
    assert facts["ledger"]["hash"] == read(config).head
    assert facts["unanswered"] == [item.name for item in document.unanswered]
    changed = json.loads(target.read_text())
    changed["report"]["sections"][1]["questions"][2]["answer"] = ["ε = 0.1"]
    with pytest.raises(AuditError, match="HB639"):
        verify_report(json.dumps(changed), load_public_keys(public_key_path(key)))


def test_texts_are_never_markup(config: Config) -> None:
    deployment = read(config)
    (facts,) = deployment.datasets
    hostile = replace(facts, unit="<script>alert(1)</script> **bold** [a](b)")
    document = DOCUMENTS["nist"](replace(deployment, datasets=(hostile,)), {"bias": "<b>us</b>"})
    page = forms.html(document)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>us" not in page
    text = forms.markdown(document)
    assert r"\<script\>" in text
    assert r"\*\*bold\*\*" in text


def test_every_answer_is_in_every_form(config: Config) -> None:
    document = DOCUMENTS["dpia"](read(config), {"purpose": "Planning of clinics."})
    text, page = forms.markdown(document), forms.html(document)
    assert "Planning of clinics." in text
    assert "Planning of clinics." in page
    assert text.count(forms.OPEN) == page.count(forms.OPEN) == len(document.unanswered)
    assert "http" not in page


def test_a_pdf_has_pages(config: Config, tmp_path: Path) -> None:
    forms.write(DOCUMENTS["methods"](read(config), {}), tmp_path / "methods.pdf", tmp_path / "audit.key")
    assert (tmp_path / "methods.pdf").read_bytes().startswith(b"%PDF-")


def test_unknown_forms_and_folders_are_refused(config: Config, tmp_path: Path) -> None:
    document = DOCUMENTS["methods"](read(config), {})
    with pytest.raises(ParameterError, match="HB115"):
        forms.write(document, tmp_path / "methods.docx", tmp_path / "audit.key")
    with pytest.raises(ParameterError, match="HB129"):
        forms.write(document, tmp_path / "none" / "methods.md", tmp_path / "audit.key")
