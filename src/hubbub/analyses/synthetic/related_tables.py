"""The model of two related synthetic tables: both tables, files, and a report.

Tested in tests/analyses/synthetic/test_related.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from hubbub.analyses.synthetic.utility import ColumnUtility
from hubbub.answers.release import Release
from hubbub.errors import ParameterError


class RelatedTables:
    """Two synthetic tables with matching keys, their measurements and their utility."""

    def __init__(self, release: Release) -> None:
        """Use `hubbub.model`."""
        self.release = release
        self.model: Mapping[str, Any] = release.model
        self.names: Mapping[str, str] = release.model["names"]

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read a release of `synthetic_tables`."""
        return cls(release)

    def to_pandas(self) -> dict[str, Any]:
        """Give both tables as pandas DataFrames, by their names."""
        whole = self.release.to_pandas()
        people = 1 + len(self.model["columns"])
        key, number = whole.columns[0], whole.columns[people]
        above = whole.iloc[:, :people].drop_duplicates(key).reset_index(drop=True)
        below = whole[whole[number].notna()].reset_index(drop=True)
        below = below.drop(columns=list(whole.columns[1 : people + 1])).rename(columns={key: self.names["link"]})
        return {self.names["table"]: above, self.names["child"]: below}

    def write(self, folder: str | Path, form: str = "csv") -> tuple[Path, ...]:
        """Write a file for each table, as 'csv' or 'parquet'."""
        if form not in ("csv", "parquet"):
            raise ParameterError("HB172", "Unknown data format.", "Choose 'csv' or 'parquet'.")
        Path(folder).mkdir(parents=True, exist_ok=True)
        written = []
        for name, frame in self.to_pandas().items():
            path = Path(folder) / f"{name}.{form}"
            if form == "csv":
                frame.to_csv(path, index=False)
            else:
                frame.to_parquet(path, index=False)
            written.append(path)
        return tuple(written)

    @property
    def utility(self) -> dict[str, tuple[ColumnUtility, ...]]:
        """The private report on each table, by its name; the number of rows of a person is a column of the first."""
        return {
            self.names[table]: tuple(ColumnUtility(**each) for each in self.model[table]["utility"])
            for table in ("table", "child")
        }

    def report(self) -> str:
        """Write the report: the error of each column alone, and with the other columns, those of its person included.

        Distances are total variation distances: the share of rows that would have to change.
        """
        lines = []
        for name, columns in self.utility.items():
            lines.append(f"{name:<24} {'alone':>16} {'with others':>16}")
            for each in columns:
                wide = "–" if each.pairs is None else f"{each.pairs:.4f} ±{each.pairs_half:.4f}"
                lines.append(f"  {each.column:<22} {each.alone:>8.4f} ±{each.alone_half:.4f} {wide:>16}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.model[table]['rows']:,} {self.names[table]}" for table in ("table", "child"))
        return f"RelatedTables({counts})"
