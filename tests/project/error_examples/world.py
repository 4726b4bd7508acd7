"""What an example of an error is, and the deployment that the examples are about."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A text that raises one code.

    `sql` is estimated over the tables of WORLD, `yaml` replaces its hubbub.yaml, `python` runs with `h` (a session over
    WORLD), `hubbub` and `folder` at hand, and `sh` runs commands in the folder of WORLD.
    """

    kind: str
    text: str
    missing: str = ""  #: a package that is not installed

    @property
    def about(self) -> str:
        """What the reader sees."""
        if self.missing:
            return f"Python, where {self.missing} is not installed"
        return {"sql": "estimated at ε = 0.1", "yaml": "hubbub.yaml", "python": "Python", "sh": "command"}[self.kind]


def sql(text: str) -> Example:
    """A query that is refused."""
    return Example("sql", text)


def yaml(text: str) -> Example:
    """A hubbub.yaml that is refused."""
    return Example("yaml", text)


def python(text: str) -> Example:
    """Statements, the last of which fails."""
    return Example("python", text)


def without(package: str, text: str) -> Example:
    """Statements that fail where a package is not installed."""
    return Example("python", text, package)


def sh(text: str) -> Example:
    """Commands, the last of which fails."""
    return Example("sh", text)


#: The files of the examples' deployment.
WORLD = {
    "visits.csv": (
        "patient,region,age,cost,fee,day,ward,notes\n"
        "1,North,34,120.5,12,2024-01-05,A3,\n"
        "1,North,34,80,8,2024-02-01,B1,\n"
        "2,South,71,310,31,2024-01-09,A3,\n"
    ),
    "patients.csv": "patient,sex\n1,f\n2,m\n",
    "staff.csv": "id,region\n1,North\n",
    "calls.csv": "caller,callee,minutes\n1,2,3.5\n2,3,10\n",
    "regions.csv": "region,population\nNorth,1000\nSouth,2000\n",
    "prices.csv": "region,price\nNorth,10\nNorth,12\nSouth,11\n",
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
      fee: {type: real}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
      ward: {type: text}
      notes: {hidden: true}
    budget: {epsilon: 2, delta: 1e-6}
  patients:
    source: patients.csv
    unit: {column: patient, entity: patient}
    columns:
      patient: {type: integer}
      sex: {values: [f, m]}
    budget: {epsilon: 2}
  staff:
    source: staff.csv
    unit: {column: id, entity: employee}
    columns:
      id: {type: integer}
      region: {values: [North, South]}
    budget: {epsilon: 2}
  calls:
    source: calls.csv
    unit: row
    relation: replace
    columns:
      caller: {type: integer, bounds: [1, 5]}
      callee: {type: integer, bounds: [1, 5]}
      minutes: {type: real, bounds: [0, 60]}
    budget: {epsilon: 2}
  regions: {source: regions.csv, public: true, unique: region, columns: {population: {type: integer}}}
  prices: {source: prices.csv, public: true, columns: {price: {type: real}}}
analysts:
  ana: {visits: {epsilon: 1}, patients: {epsilon: 1}, calls: {epsilon: 1}}
""",
}
