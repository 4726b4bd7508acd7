"""The folder in which the commands of the checklist run: hubbub.yaml, the bundled health data and small tables."""

import csv
import itertools
import shutil
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

DATA = Path(__file__).parent / "data"


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _bits(folder: Path) -> None:
    """Write 1,000 people with three bits each, all eight kinds alike, over 50 or not, and a smoker or not."""
    kinds = list(itertools.product((0, 1), repeat=3))
    _write(folder / "bits.csv", ("person", "a", "b", "c"), ((i, *kinds[i % 8]) for i in range(1000)))


def _scores(folder: Path) -> None:
    """Write 55 votes: candidate k has k of them."""
    _write(folder / "votes.csv", ("candidate",), ((k,) for k in range(1, 11) for _ in range(k)))


def _coins(folder: Path) -> None:
    """Write 300 rows of three independent bits, which 40%, 40% and 10% have, rounded to whole rows."""
    counts = {
        (0, 0, 0): 97,
        (0, 0, 1): 11,
        (0, 1, 0): 65,
        (0, 1, 1): 7,
        (1, 0, 0): 65,
        (1, 0, 1): 7,
        (1, 1, 0): 43,
        (1, 1, 1): 5,
    }
    _write(folder / "coins.csv", ("p", "q", "r"), (bits for bits, count in counts.items() for _ in range(count)))


def _graph(folder: Path) -> None:
    """Write two triangles that one edge connects."""
    _write(folder / "triangles.csv", ("a", "b"), ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)))


def _grid(folder: Path) -> None:
    """Write the numbers from 0 to 999."""
    _write(folder / "grid.csv", ("x",), ((x,) for x in range(1000)))


def make_folder(folder: Path) -> Path:
    """Write what the commands need into an empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in DATA.iterdir():
        shutil.copy(path, folder)
    (folder / "health.csv").write_bytes((resources.files("hubbub") / "demo" / "health.csv").read_bytes())
    _bits(folder)
    _scores(folder)
    _coins(folder)
    _graph(folder)
    _grid(folder)
    return folder
