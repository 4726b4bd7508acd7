"""What a release is made of, and whether any of it is known to be vulnerable.

Writes a CycloneDX bill of materials from requirements/run.lock, with licences of what is installed here, and
audits every locked version: against files of advisories in OSV form (`--advisories`, a file or a folder), or else
against what the package index that pip is set up with says of each version. Exit 0: nothing is known. 1: something is.
2: nobody could look, which is said and is not a pass.

    make release-check ARGS="--advisories advisories/"
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==(?P<version>[^ ;\\]+)( *; *(?P<marker>[^\\]*[^\\ ]))? *\\?")


@dataclass
class Pin:
    """One locked version: where it is installed, the hashes of its files, and what asks for it."""

    name: str
    version: str
    marker: str
    hashes: list[str] = field(default_factory=list)
    asked_by: list[str] = field(default_factory=list)

    @property
    def reference(self) -> str:
        """The package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


class CouldNotLookError(Exception):
    """Nobody could be asked; the text says why."""


def locked(text: str) -> list[Pin]:
    """Read a lock file, as `uv pip compile` writes it."""
    pins: list[Pin] = []
    for line in text.splitlines():
        if match := _PIN.fullmatch(line):
            pins.append(Pin(match["name"].lower(), match["version"], match["marker"] or ""))
        elif (hashed := re.search(r"--hash=sha256:([0-9a-f]{64})", line)) and pins:
            pins[-1].hashes.append(hashed[1])
        elif asked := re.fullmatch(r" +# +(?:via +)?([A-Za-z0-9._-]+)(?: \(.*\))?", line):
            if asked[1] != "via":
                pins[-1].asked_by.append(asked[1].lower())
        elif line.strip() and not line.lstrip().startswith(("#", "-")):
            raise ValueError(f"{line!r} is no line of a lock file")
    if any(not pin.hashes for pin in pins) or not pins:
        raise ValueError("the lock file has pins without hashes, or none at all")
    return pins


def bill(pins: list[Pin], *, name: str, version: str) -> dict[str, Any]:
    """Write the bill of materials; the same lock gives the same bytes."""
    own = f"pkg:pypi/{name}@{version}"
    depends: dict[str, list[str]] = {own: [], **{pin.reference: [] for pin in pins}}
    for pin in pins:
        for asker in pin.asked_by:
            sources = [own] if asker == name else [other.reference for other in pins if other.name == asker]
            for source in sources:
                depends[source].append(pin.reference)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, own + ''.join(h for pin in pins for h in pin.hashes))}",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": own, "name": name, "version": version, "purl": own}
        },
        "components": [_component(pin) for pin in pins],
        "dependencies": [{"ref": ref, "dependsOn": sorted(set(of))} for ref, of in sorted(depends.items())],
    }


def _component(pin: Pin) -> dict[str, Any]:
    # one version has a file for each platform, so its hashes are properties and not the hashes of one thing
    properties = [{"name": "hubbub:sha256", "value": each} for each in pin.hashes]
    if pin.marker:
        properties.append({"name": "hubbub:marker", "value": pin.marker})
    component = {
        "type": "library",
        "bom-ref": pin.reference,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.reference,
        "properties": properties,
    }
    licence = licence_of(pin)
    if licence is not None:
        component["licenses"] = [licence]
    return component


def licence_of(pin: Pin) -> dict[str, Any] | None:
    """Read a package's licence, where that very version is installed here."""
    try:
        facts = metadata(pin.name)
    except PackageNotFoundError:
        return None
    if facts["Version"] != pin.version:
        return None
    if "License-Expression" in facts:
        return {"expression": facts["License-Expression"]}
    words = [each.rpartition(" :: ")[2] for each in facts.get_all("Classifier", []) if each.startswith("License ::")]
    named = "".join(facts.get_all("License", [])).strip().partition("\n")[0] or ", ".join(words)
    return {"license": {"name": named[:200]}} if named else None


def advised(pins: list[Pin], place: Path) -> list[str]:
    """Compare with advisories in OSV form: a file with one or a list of them, or a folder of such files."""
    files = sorted(place.rglob("*.json")) if place.is_dir() else [place]
    try:
        read = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    except (OSError, ValueError) as error:
        raise CouldNotLookError(f"the advisories {place} cannot be read: {type(error).__name__}") from None
    advisories = [each for content in read for each in (content if isinstance(content, list) else [content])]
    if not advisories:
        raise CouldNotLookError(f"there are no advisories in {place}")
    return [
        f"{pin.name} {pin.version}: {advisory['id']} {advisory.get('summary', '')}".strip()
        for pin in pins
        for advisory in advisories
        if "withdrawn" not in advisory and any(_affects(part, pin) for part in advisory.get("affected", ()))
    ]


def _affects(affected: dict[str, Any], pin: Pin) -> bool:
    package = affected.get("package", {})
    if package.get("ecosystem") != "PyPI" or _plain(package.get("name", "")) != _plain(pin.name):
        return False
    return pin.version in affected.get("versions", ()) or any(
        _within(events.get("events", ()), Version(pin.version))
        for events in affected.get("ranges", ())
        if events.get("type") == "ECOSYSTEM"
    )


def _within(events: Any, version: Version) -> bool:
    """Follow a range's events in their order; what cannot be compared counts as affected."""
    inside = False
    try:
        for event in events:
            if "introduced" in event and version >= Version(event["introduced"]):
                inside = True
            elif ("fixed" in event and version >= Version(event["fixed"])) or (
                "last_affected" in event and version > Version(event["last_affected"])
            ):
                inside = False
    except InvalidVersion:
        return True
    return inside


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def asked(pins: list[Pin]) -> list[str]:
    """Ask the package index that pip is set up with what it knows of each version."""
    base = _index()
    with ThreadPoolExecutor(8) as pool:
        return [line for lines in pool.map(lambda pin: list(_known(base, pin)), pins) for line in lines]


def _index() -> str:
    given = os.environ.get("PIP_INDEX_URL", "")
    if not given:
        words = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
        given = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    if given:
        parts = urlsplit(given)
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/simple')}/pypi"
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        raise CouldNotLookError("pip is not installed here, so no package index is known") from None
    return str(PyPI.pypi_url)


def _known(base: str, pin: Pin) -> Iterator[str]:
    try:
        with urllib.request.urlopen(f"{base}/{pin.name}/{pin.version}/json", timeout=20) as answer:  # noqa: S310
            content = json.load(answer)
        entries = content["vulnerabilities"]
    except (OSError, ValueError, KeyError) as error:
        why = f"{type(error).__name__}: {error}" if isinstance(error, OSError) else "it says nothing of vulnerabilities"
        raise CouldNotLookError(f"the package index did not say what it knows of {pin.name} ({why})") from None
    for entry in entries:
        if not entry.get("withdrawn"):
            yield f"{pin.name} {pin.version}: {entry.get('id')} fixed in {', '.join(entry.get('fixed_in') or ['none'])}"


def main(arguments: list[str]) -> int:
    """Write the bill, audit, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements" / "run.lock")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "hubbub.cdx.json")
    parser.add_argument("--advisories", type=Path, help="OSV advisories: a file or a folder (default: ask the index)")
    options = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = locked(options.lock.read_text(encoding="utf-8"))
    made = bill(pins, name=project["name"], version=project["version"])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    unknown = [part["name"] for part in made["components"] if "licenses" not in part]
    print(f"bill of materials: {len(pins)} locked versions in {options.out}")
    print(f"licences: {len(pins) - len(unknown)} known" + (f", not of {', '.join(unknown)}" if unknown else ""))
    try:
        problems = asked(pins) if options.advisories is None else advised(pins, options.advisories)
    except CouldNotLookError as error:
        print(f"COULD NOT LOOK for vulnerabilities: {error}. Give a file of advisories: --advisories", file=sys.stderr)
        return 2
    for problem in problems:
        print(f"VULNERABLE {problem}", file=sys.stderr)
    print(f"audit: {len(problems)} advisories concern the {len(pins)} locked versions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
