"""Reports that cannot be changed unnoticed: signed with a key of this installation, checked with its public half.

The key is an Ed25519 key in a file beside the ledger that only its owner can read; the public half lies beside it, and
can be given to whoever reads the reports.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hubbub.accounting.chain import canonical
from hubbub.errors import AuditError
from hubbub.private_files import make_folder

FORMAT = 1
_BYTES = 32  # of either half


def private_key(path: Path, *, make: bool) -> Ed25519PrivateKey:
    """Read the key, or make one where there is none and that is wanted; its public half is written beside it."""
    if not path.exists():
        if not make:
            raise AuditError(
                "HB635",
                f"there is no key at {path} to sign a report with.",
                "Run `hubbub audit self` once as the service's user: it makes one. Or name another: --key FILE.",
            )
        _write(path, os.urandom(_BYTES).hex(), 0o600)
    try:
        if path.stat().st_mode & 0o077:
            raise AuditError("HB636", f"others can read the key {path}.", f"chmod 600 {path}")
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text().strip()))
    except (OSError, ValueError):
        raise AuditError(
            "HB636", f"the key {path} cannot be read.", "It is one line of 64 hexadecimal digits."
        ) from None
    public = public_half(path)
    if not public.exists():
        _write(public, _hex(key.public_key()), 0o644)
    return key


def public_half(path: Path) -> Path:
    """Say where the public half of a key is: audit.key has audit.pub."""
    return path.with_suffix(".pub")


def public_key(path: Path) -> Ed25519PublicKey:
    """Read a public half."""
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(path.read_text().strip()))
    except (OSError, ValueError):
        raise AuditError(
            "HB637",
            f"{path} is not the public half of a key.",
            "Give the file audit.pub of the installation that wrote the report: --public FILE.",
        ) from None


def signed(facts: Mapping[str, Any], key: Ed25519PrivateKey) -> str:
    """Write a report with its signature, as JSON.

    Theorem (Signed report). Whoever does not hold the key cannot make a text that `checked` accepts under its public
    half, other than those that were signed (Ed25519 is unforgeable: Bernstein, Duif, Lange, Schwabe and Yang 2012). The
    signature is over the canonical form: blanks and the order of keys do not matter, and nothing else may differ.
    Tested   tests/audit/test_report.py::test_any_change_to_a_report_is_found
    """
    report = {"format": FORMAT, **facts, "key": _hex(key.public_key())}
    signature = key.sign(canonical(report).encode()).hex()
    return json.dumps({"report": report, "signature": signature}, indent=1, ensure_ascii=False) + "\n"


def checked(text: str, key: Ed25519PublicKey) -> dict[str, Any]:
    """Give what a report says, if this key signed it; else HB638."""
    try:
        document = json.loads(text)
        report, signature = document["report"], bytes.fromhex(document["signature"])
        if document.keys() != {"report", "signature"} or report["format"] != FORMAT:
            raise ValueError
        key.verify(signature, canonical(report).encode())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise AuditError("HB638", "this is not a report of an audit.", "Give what `hubbub audit self` wrote.") from None
    except InvalidSignature:
        raise AuditError(
            "HB639",
            "the report was changed, or another key signed it.",
            "Compare the key in it with the installation's audit.pub. Do not trust what it says.",
        ) from None
    found: dict[str, Any] = report
    return found


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _write(path: Path, text: str, mode: int) -> None:
    try:
        make_folder(path.parent)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(file, "w") as out:
            out.write(text + "\n")
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        if isinstance(error, FileExistsError) and path.is_file():
            return  # another process made it just now: that one holds
        raise AuditError(
            "HB635", f"{path} cannot be written ({error.strerror}).", "Name another place: --key FILE."
        ) from None
