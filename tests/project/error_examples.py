"""An example of each error code, as docs/errors.md shows it and tests/project/test_errors.py runs it.

Kinds: `sql` is estimated over the tables of WORLD; `yaml` replaces WORLD's hubbub.yaml; `python` runs with `h` (a session over WORLD) and
`hubbub` at hand. An error that needs a broken disk, a second server or the like names a test that produces it instead.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A text that raises one code."""

    kind: str
    text: str

    @property
    def language(self) -> str:
        return self.kind

    @property
    def about(self) -> str:
        return {"sql": "estimated at ε = 0.1", "yaml": "hubbub.yaml", "python": "Python"}[self.kind]


#: The files of the examples' deployment.
WORLD = {
    "visits.csv": "patient,region,age,cost,day\n1,North,34,120.5,2024-01-05\n1,North,34,80,2024-02-01\n2,South,71,310,2024-01-09\n",
    "patients.csv": "patient,sex\n1,f\n2,m\n",
    "staff.csv": "id,region\n1,North\n",
    "regions.csv": "region,population\nNorth,1000\nSouth,2000\n",
    "hubbub.yaml": """version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, entity: patient, groups: 2, rows: 5}
    columns:
      patient: {type: integer}
      region: {values: [North, South]}
      age: {type: integer, bounds: [0, 110]}
      cost: {type: real, bounds: [0, 1000]}
      day: {type: date, bounds: ["2024-01-01", "2024-12-31"]}
      notes: {hidden: true}
    budget: {epsilon: 2, delta: 1e-6}
  regions: {source: regions.csv, public: true}
analysts:
  ana: {visits: {epsilon: 1}}
""",
}

EXAMPLES: dict[str, Example] = {}

#: Codes whose example is a test: path::name.
TESTED: dict[str, str] = {}
