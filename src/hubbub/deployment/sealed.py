"""Secrets of a deployment in an archive: encrypted under a passphrase that is kept in a file of its own.

The key is derived with scrypt, and the content encrypted and authenticated with AES-256-GCM. The name of the archive
is authenticated with it, so that the secrets of one archive cannot be put into another.

Tested in tests/deployment/test_sealed.py.
"""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from hubbub.errors import DeploymentError

_MAGIC = b"hubbub-sealed-1\n"
_SALT, _NONCE = 16, 12
_COST = 1 << 15
MIN_PASSPHRASE = 20  # characters


def read_passphrase(path: Path) -> str:
    """Read the passphrase from a file that only this user can read, or refuse it (HB883)."""
    try:
        text = path.read_text(encoding="utf-8").strip()
        open_to_others = path.stat().st_mode & 0o077
    except (OSError, UnicodeDecodeError):
        raise _refused(f"{path} cannot be read") from None
    if open_to_others:
        raise _refused(f"other users can read {path}")
    if len(text) < MIN_PASSPHRASE:
        raise _refused(f"the passphrase in {path} is shorter than {MIN_PASSPHRASE} characters")
    return text


def seal(files: Mapping[str, bytes], passphrase: str, archive: str) -> bytes:
    """Encrypt some files for one archive."""
    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    content = json.dumps({name: base64.b64encode(each).decode() for name, each in files.items()}).encode()
    return _MAGIC + salt + nonce + AESGCM(_key(passphrase, salt)).encrypt(nonce, content, archive.encode())


def unseal(sealed: bytes, passphrase: str, archive: str) -> dict[str, bytes]:
    """Decrypt the files of an archive, or refuse them (HB884)."""
    rest = sealed.removeprefix(_MAGIC)
    salt, nonce, content = rest[:_SALT], rest[_SALT : _SALT + _NONCE], rest[_SALT + _NONCE :]
    try:
        if not sealed.startswith(_MAGIC):
            raise ValueError("magic")
        text = AESGCM(_key(passphrase, salt)).decrypt(nonce, content, archive.encode())
        return {name: base64.b64decode(each) for name, each in json.loads(text).items()}
    except (InvalidTag, ValueError, TypeError, AttributeError):
        raise DeploymentError(
            "HB884",
            "The secrets of this archive cannot be decrypted. Nothing was imported.",
            "Pass the file with the passphrase of the export: --secrets FILE. Without it, import without --secrets: "
            "new keys are created, and people sign in again.",
        ) from None


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=_COST, r=8, p=1).derive(passphrase.encode())


def _refused(why: str) -> DeploymentError:
    return DeploymentError(
        "HB883",
        f"The secrets cannot be encrypted or decrypted: {why}.",
        "Create a passphrase: head -c 32 /dev/urandom | base64 > passphrase; chmod 600 passphrase. Keep it away from "
        "the archive.",
    )
