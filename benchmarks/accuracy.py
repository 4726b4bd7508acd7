"""How exact the analyses are on real data, several seeds each, beside the peers that can be run.

Each room measures its own in benchmarks/accuracy_<room>.py. Plots go to the folder that HUBBUB_PLOTS names.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.accuracy
"""

import importlib
from pathlib import Path

from tests.campaigns.frame import Report, run


def body(report: Report) -> None:
    for script in sorted(Path(__file__).parent.glob("accuracy_*.py")):
        report.say(script.stem.removeprefix("accuracy_"))
        importlib.import_module(f"benchmarks.{script.stem}").measure(report)


if __name__ == "__main__":
    run(body)
