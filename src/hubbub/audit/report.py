"""Sign audit reports with a key of this installation, and verify them with its public key.

The Ed25519 key is in a file next to the ledger that only its owner can read. The public key is next to it; give it to
the readers of the reports.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hubbub.accounting.chain import canonical
from hubbub.errors import AuditError
from hubbub.private_files import create_folder, replace_text

FORMAT = 1
_BYTES = 32  # length of either key


def load_private_key(path: Path, *, make: bool) -> Ed25519PrivateKey:
    """Read the key, or create it if `make` is set; write its public key next to it."""
    if not path.exists():
        if not make:
            raise AuditError(
                "HB635",
                f"There is no signing key at {path}.",
                "Run `hubbub audit self` as the service's user to create one, or choose another: --key FILE.",
            )
        _write(path, os.urandom(_BYTES).hex(), 0o600)
    try:
        if path.stat().st_mode & 0o077:
            raise AuditError("HB636", f"Other users can read the key {path}.", f"Run: chmod 600 {path}")
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text().strip()))
    except (OSError, ValueError):
        raise AuditError(
            "HB636", f"The key {path} cannot be read.", "The file must contain one line of 64 hexadecimal digits."
        ) from None
    public = public_key_path(path)
    if not public.exists():
        _write(public, _hex(key.public_key()), 0o644)
    return key


def public_key_path(path: Path) -> Path:
    """Return the path of the public key: audit.pub for audit.key."""
    return path.with_suffix(".pub")


def load_public_keys(path: Path) -> list[Ed25519PublicKey]:
    """Read the public keys of an installation, the newest first: those before a rotation stay in the file."""
    try:
        lines = path.read_text().split()
        if not lines:
            raise ValueError(path)
        return [Ed25519PublicKey.from_public_bytes(bytes.fromhex(line)) for line in lines]
    except (OSError, ValueError):
        raise AuditError(
            "HB637",
            f"{path} is not a public key.",
            "Pass the file audit.pub of the installation that wrote the report: --public FILE.",
        ) from None


def rotate(path: Path) -> Path:
    """Replace the signing key and put its public key first in audit.pub; return the path of that file.

    The old private key is gone afterwards. What it signed stays valid, because its public key stays in the file: a key
    that leaked has to be removed from there by hand.
    """
    public = public_key_path(path)
    load_private_key(path, make=True)
    former = public.read_text().split()
    key = Ed25519PrivateKey.generate()
    try:
        # the public key first: a crash in between leaves one more key than needed, never a report without its key
        replace_text(public, "\n".join([_hex(key.public_key()), *former]) + "\n")
        public.chmod(0o644)
        replace_text(path, key.private_bytes_raw().hex() + "\n")
    except OSError as error:
        raise AuditError(
            "HB635", f"{path} cannot be written ({error.strerror}).", "Run this as the user of the service."
        ) from None
    return public


def sign_report(facts: Mapping[str, Any], key: Ed25519PrivateKey) -> str:
    """Return a report with its signature, as JSON.

    Theorem (Signed report). Without the key, nobody can make a text that `verify_report` accepts under its public key,
    other than those that were signed (Ed25519 is unforgeable: Bernstein, Duif, Lange, Schwabe and Yang 2012). The
    signature covers the canonical form: whitespace and the order of keys may differ, and nothing else.
    Tested   tests/audit/test_report.py::test_any_change_to_a_report_is_found
    """
    report = {"format": FORMAT, **facts, "key": _hex(key.public_key())}
    signature = key.sign(canonical(report).encode()).hex()
    return json.dumps({"report": report, "signature": signature}, indent=1, ensure_ascii=False) + "\n"


def verify_report(text: str, keys: Sequence[Ed25519PublicKey]) -> dict[str, Any]:
    """Return the facts of a report if the one of these keys that it names signed it; otherwise raise HB638 or HB639."""
    try:
        document = json.loads(text)
        report, signature = document["report"], bytes.fromhex(document["signature"])
        if document.keys() != {"report", "signature"} or report["format"] != FORMAT:
            raise ValueError
        key = next((key for key in keys if _hex(key) == report.get("key")), keys[0])
        key.verify(signature, canonical(report).encode())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise AuditError(
            "HB638", "This is not an audit report.", "Pass a file written by `hubbub audit self`."
        ) from None
    except InvalidSignature:
        raise AuditError(
            "HB639",
            "The report was changed, or it was signed with another key.",
            "Do not trust it. Compare its key with the installation's audit.pub.",
        ) from None
    facts: dict[str, Any] = report
    return facts


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _write(path: Path, text: str, mode: int) -> None:
    try:
        create_folder(path.parent)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(file, "w") as out:
            out.write(text + "\n")
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        if isinstance(error, FileExistsError) and path.is_file():
            return  # another process has just created it: use that one
        raise AuditError(
            "HB635", f"{path} cannot be written ({error.strerror}).", "Choose another location: --key FILE."
        ) from None
