"""Signed reports: what the key signed, and nothing else."""

import json
from pathlib import Path

import pytest

from hubbub.audit.report import load_private_key, load_public_keys, public_key_path, sign_report, verify_report
from hubbub.errors import AuditError

FACTS = {
    "time": "2026-11-16T00:00:00Z",
    "sound": True,
    "parts": [{"name": "mechanisms", "problems": []}],
    "seconds": 1.5,
}


def test_a_report_says_after_checking_what_was_signed(tmp_path: Path) -> None:
    key = load_private_key(tmp_path / "audit.key", make=True)
    text = sign_report(FACTS, key)
    found = verify_report(text, load_public_keys(tmp_path / "audit.pub"))
    assert {name: found[name] for name in FACTS} == FACTS
    assert (
        verify_report(json.dumps(json.loads(text)), load_public_keys(tmp_path / "audit.pub")) == found
    )  # blanks do not matter
    assert load_private_key(tmp_path / "audit.key", make=False).private_bytes_raw() == key.private_bytes_raw()
    assert (tmp_path / "audit.key").stat().st_mode & 0o777 == 0o600


def test_any_change_to_a_report_is_found(tmp_path: Path) -> None:
    """Every character of it is changed once; what still reads as the same facts is the same report."""
    text = sign_report(FACTS, load_private_key(tmp_path / "audit.key", make=True))
    public, honest = load_public_keys(tmp_path / "audit.pub"), json.loads(text)
    found = 0
    for place in range(len(text)):
        for other in ("0", "x", " "):
            spoiled = text[:place] + other + text[place + 1 :]
            try:
                same = json.loads(spoiled) == honest
            except ValueError:
                same = False
            if same:
                continue
            with pytest.raises(AuditError, match=r"HB63[89]"):
                verify_report(spoiled, public)
            found += 1
    assert found > 1000


def test_another_key_is_not_this_one(tmp_path: Path) -> None:
    text = sign_report(FACTS, load_private_key(tmp_path / "one" / "audit.key", make=True))
    load_private_key(tmp_path / "two" / "audit.key", make=True)
    with pytest.raises(AuditError, match="HB639"):
        verify_report(text, load_public_keys(tmp_path / "two" / "audit.pub"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"report": 1, "signature": ""}', "[" * 5000, '{"report": {}}']
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    load_private_key(tmp_path / "audit.key", make=True)
    with pytest.raises(AuditError, match=r"HB63[89]"):
        verify_report(text, load_public_keys(tmp_path / "audit.pub"))


def test_keys_that_are_missing_open_to_others_or_damaged_are_told(tmp_path: Path) -> None:
    place = tmp_path / "audit.key"
    with pytest.raises(AuditError, match="HB635"):
        load_private_key(place, make=False)
    with pytest.raises(AuditError, match="HB637"):
        load_public_keys(public_key_path(place))
    load_private_key(place, make=True)
    place.chmod(0o644)
    with pytest.raises(AuditError, match="HB636"):
        load_private_key(place, make=True)
    place.chmod(0o600)
    place.write_text("not a key")
    with pytest.raises(AuditError, match="HB636"):
        load_private_key(place, make=True)
    with pytest.raises(AuditError, match="HB635"):
        load_private_key(place / "below", make=True)  # a file is no folder
