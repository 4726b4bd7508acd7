"""What the scripts share: the rows of the task, and a record of what each step did. It needs Python alone.

Each script is what a newcomer would write after the tool's own introduction. Between `# task:` and the next mark are
the lines of a task; a `# wrong:` mark begins a typical first try that is wrong. `measure.py` counts them.
"""

import csv
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
EDUCATION = ("basic", "school", "university")


def write_rows(folder: Path) -> None:
    """Write people.csv, one row for each of 1,000 people, and visits.csv, with one to five rows for each of them."""
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person", "age", "education"])
        rows.writerows([n, 18 + n * 37 % 60, EDUCATION[n * 7 % 3]] for n in range(1000))
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person", "cost"])
        rows.writerows([n, 10 + n * 13 % 90] for n in range(1000) for _ in range(1 + n % 5))


def attempt(step: str, run: Callable[[], Any]) -> None:
    """Run a step and print, as a line of JSON, whether the tool refused it, warned, or let it pass."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result, outcome, said = str(run()), "passed", ""
        except Exception as error:  # noqa: BLE001 - each tool has its own; whatever it says is the finding
            result, outcome, said = "", "refused", f"{type(error).__name__}: {error}"
    private = [each for each in warned if "rivacy" in type(each.message).__name__]
    if outcome == "passed" and private:
        outcome, said = "warned", str(private[0].message)
    print(json.dumps({"step": step, "outcome": outcome, "said": said, "result": result}))


if not (HERE / "people.csv").exists():
    write_rows(HERE)
