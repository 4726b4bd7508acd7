"""Secrets in an archive: only with their passphrase, only in their archive, and unchanged."""

from pathlib import Path

import pytest

from hubbub.deployment import sealed
from hubbub.errors import DeploymentError

FILES = {"server.key": b"k" * 43, "streams/of-1/seen.stream": bytes(range(256))}
PHRASE = "correct horse battery staple"


def test_sealed_files_are_unsealed_and_do_not_show() -> None:
    content = sealed.seal(FILES, PHRASE, "a1")
    assert sealed.unseal(content, PHRASE, "a1") == FILES
    assert b"kkkk" not in content
    assert b"a2tra2tr" not in content, "nor in base64"
    assert sealed.seal(FILES, PHRASE, "a1") != content, "salt and nonce are new each time"


@pytest.mark.parametrize(("phrase", "name", "changed"), [(PHRASE + "r", "a1", 0), (PHRASE, "a2", 0), (PHRASE, "a1", 1)])
def test_another_passphrase_archive_or_byte_is_refused(phrase: str, name: str, changed: int) -> None:
    content = bytearray(sealed.seal(FILES, PHRASE, "a1"))
    content[-1] ^= changed
    with pytest.raises(DeploymentError, match="HB884"):
        sealed.unseal(bytes(content), phrase, name)


def test_a_passphrase_is_long_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "passphrase"
    path.write_text(PHRASE + "\n")
    path.chmod(0o600)
    assert sealed.read_passphrase(path) == PHRASE
    path.chmod(0o640)
    with pytest.raises(DeploymentError, match=r"HB883.*other users"):
        sealed.read_passphrase(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(DeploymentError, match="shorter than 20"):
        sealed.read_passphrase(path)
    with pytest.raises(DeploymentError, match="cannot be read"):
        sealed.read_passphrase(tmp_path / "missing")
