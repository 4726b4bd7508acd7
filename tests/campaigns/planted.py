"""Fault injection: plant errors one at a time; every error must be detected, and correct code must raise no alarm.

Each error is a patch in the memory of its own child process; files are not changed. At full scale all detectors of a
package run on each of its errors, and the table of errors × detectors is written to docs/planted.md. At small scale ten
errors are planted (HUBBUB_TURN chooses which, from 0), and only the detector that surely detects each of them runs.

Only a complaint counts as a detection. A detector that raises, dies or takes too long has detected nothing: a reader
must be able to distinguish an error of the product from an error of its test.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.planted
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.campaigns.rig import detect_contract, detect_ledger, detect_noise, detect_owners, detect_plans
from tests.campaigns.rig.bugs import Bug
from tests.campaigns.rig.bugs_analyses import ANALYSED
from tests.campaigns.rig.bugs_noise import NOISE
from tests.campaigns.rig.bugs_owners import OWNERS
from tests.campaigns.rig.bugs_path import PATH
from tests.campaigns.rig.bugs_sql import SQL

TABLE = Path(__file__).parents[2] / "docs" / "planted.md"
BUGS: tuple[Bug, ...] = (*NOISE.bugs, *SQL.bugs, *OWNERS.bugs, *PATH.bugs, *ANALYSED.bugs)
PATIENCE = 900.0  # time limit in seconds for one child
AT_ONCE = 10  # number of errors at small scale
GOAL = 0.98

Check = Callable[[], list[str]]


def detectors() -> dict[str, Check]:
    """Return every detector by name; they are imported before any fork and run in child processes only."""
    found: dict[str, Check] = {
        **detect_noise.CHECKS,
        **detect_plans.CHECKS,
        **detect_owners.CHECKS,
        **detect_ledger.CHECKS,
        **detect_contract.CHECKS,
    }
    for name, module in (("audit", "tests.campaigns.audit"), ("grey box", "tests.campaigns.grey_box")):
        if find_spec(module) is not None:
            found[name] = import_module(module).detect
    return found


@dataclass
class Detection:
    """The complaints of the detectors, and the detectors that crashed."""

    complaints: dict[str, list[str]]
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def caught(self) -> bool:
        """Whether there is a complaint."""
        return any(self.complaints.values())


def examine(bug: Bug | None, checks: Mapping[str, Check]) -> Detection:
    """Plant an error (or none) in a child process and return the complaints of each detector there."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with suppress(BaseException), os.fdopen(writer, "w") as out:
            json.dump(asdict(_looked(bug, checks)), out)
        os._exit(0)
    os.close(writer)
    said = _read(reader, child)
    os.waitpid(child, 0)
    return Detection(**json.loads(said)) if said else Detection({}, dict.fromkeys(checks, "died, or took too long"))


def _looked(bug: Bug | None, checks: Mapping[str, Check]) -> Detection:
    seen = Detection({})
    if bug is not None:
        bug.plant()
    for name, check in checks.items():
        try:
            seen.complaints[name] = check()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no complaint
            seen.broken[name] = f"{type(error).__name__}: {error}"[:300]
    return seen


def _read(reader: int, child: int) -> str:
    """Read the output of the child; kill it after the time limit."""
    said, until = b"", time.monotonic() + PATIENCE
    with os.fdopen(reader, "rb", buffering=0) as stream:
        while True:
            if not select.select([stream], [], [], max(0.0, until - time.monotonic()))[0]:
                os.kill(child, signal.SIGKILL)
                break
            part = stream.read(1 << 16)
            if not part:
                break
            said += part
    return said.decode()


def chosen(*, full: bool, turn: int) -> list[tuple[Bug, tuple[str, ...]]]:
    """Choose the errors, each with its detectors; at small scale the turn chooses them."""
    if full:
        return [(bug, bug.looks) for bug in BUGS]
    steps = -(-len(BUGS) // AT_ONCE)
    return [(bug, bug.seen_by[:1]) for bug in BUGS[turn % steps :: steps]]


def table(rows: Iterable[tuple[Bug, Detection]], names: Iterable[str], when: str) -> str:
    """Write the table of errors × detectors for the documentation."""
    rows, names = list(rows), list(names)
    caught = sum(seen.caught for _, seen in rows)
    lines = [
        "# Planted errors",
        "",
        "Fault injection: errors that a careless author could make, and the detectors that find them. Each error is a "
        "small patch in the memory of its own process; then detectors check the patched product. ● detected; × the "
        "detector crashed, which does not count; – the detector did not run. On the unchanged code no detector "
        "complains or crashes.",
        "",
        f"{len(rows)} errors, {caught} caught ({100 * caught / len(rows):.1f}%), {when}: "
        "`HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.planted`.",
        "",
        "| detector | description |",
        "|---|---|",
        *(f"| {name} | {_about(check)} |" for name, check in detectors().items() if name in names),
    ]
    for room in dict.fromkeys(bug.room for bug, _ in rows):
        own = [(bug, seen) for bug, seen in rows if bug.room == room]
        looking = [name for name in names if any(name in {**seen.complaints, **seen.broken} for _, seen in own)]
        lines += ["", f"## Errors in {room}", "", f"| error | {' | '.join(looking)} |", f"|---|{':-:|' * len(looking)}"]
        lines += [f"| {bug.name} | {' | '.join(_mark(seen, name) for name in looking)} |" for bug, seen in own]
    return "\n".join(lines) + "\n"


def _mark(seen: Detection, name: str) -> str:
    if name in seen.broken:
        return "×"
    return "–" if name not in seen.complaints else "●" if seen.complaints[name] else ""


def _about(check: Check) -> str:
    # a detector that is a campaign is described by its module
    about = sys.modules[check.__module__].__doc__ if check.__name__ == "detect" else check.__doc__
    return (about or "").strip().split("\n")[0].rstrip(".").replace("|", "/")


def body(report: Report) -> None:
    known = detectors()
    turn = int(os.environ.get("HUBBUB_TURN") or 0)
    plan = chosen(full=report.full, turn=turn)
    looking = [name for name in known if any(name in names for _, names in plan)]
    clean = examine(None, {name: known[name] for name in looking})
    alarms = {name: heard[0] for name, heard in clean.complaints.items() if heard} | clean.broken
    for name, complaint in alarms.items():
        report.say(f"alarm on right code: {name}: {complaint}")
    rows = []
    for bug, names in report.progress(plan, "planted errors"):
        seen = examine(bug, {name: known[name] for name in names})
        rows.append((bug, seen))
        if not seen.caught:
            report.say(f"not caught: {bug.name} {seen.broken or ''}")
        elif report.full and not any(seen.complaints.get(name) for name in bug.seen_by):
            report.say(f"caught by others than said: {bug.name}: {[n for n, c in seen.complaints.items() if c]}")
    caught = sum(seen.caught for _, seen in rows)
    report.figure("errors", len(rows))
    report.figure("caught", caught)
    report.figure("broken", sum(len(seen.broken) for _, seen in rows))
    report.target("share_caught", caught / len(rows), at_least=GOAL)
    report.target("alarms_on_right_code", len(alarms), at_most=0)
    report.target("known_errors", len(BUGS), at_least=50)
    if report.full:
        TABLE.write_text(table(rows, looking, f"{datetime.now(UTC):%d %B %Y}"))


if __name__ == "__main__":
    run(body)
