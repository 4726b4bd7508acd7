"""Invalid hubbub.yaml files: HB400 to HB437, HB465 to HB481, and HB730 to HB737."""

from tests.project.error_examples.world import Example, python, sh, yaml


def visits(columns: str = "{}", *, unit: str = "row", rest: str = "", top: str = "") -> Example:
    """A short hubbub.yaml over visits.csv."""
    return yaml(
        "version: 1\ndatasets:\n  visits:\n    source: visits.csv\n"
        f"    unit: {unit}\n    columns: {columns}\n{rest}    budget: {{epsilon: 2}}\n{top}"
    )


def owned(unit: str, key: str = "patient") -> Example:
    """Visits that belong to the owner of another table's row."""
    return yaml(
        "version: 1\ndatasets:\n  visits:\n    source: visits.csv\n"
        f"    unit: {unit}\n    columns: {{patient: {{type: integer}}, region: {{type: text}}}}\n"
        "    budget: {epsilon: 2}\n  patients:\n    source: patients.csv\n    unit: {column: patient}\n"
        + (f"    key: {key}\n" if key else "")
        + "    columns: {patient: {type: integer}}\n    budget: {epsilon: 2}\n"
    )


def by_block(blocks: str, *, unit: str = "{column: patient, per: {month: day}}", rest: str = "") -> Example:
    """Visits with a budget for each month."""
    return yaml(
        "version: 1\ndatasets:\n  visits:\n    source: visits.csv\n"
        f"    unit: {unit}\n    columns: {{day: {{type: date}}, age: {{type: integer}}}}\n{rest}    blocks: {blocks}\n"
    )


EXAMPLES: dict[str, Example] = {
    "HB400": yaml("version: 1\ndatasets:\n  visits: {source: visits.csv\n"),
    "HB401": visits(top="analyst:\n  ana: {visits: {epsilon: 1}}\n"),
    "HB402": yaml(
        "version: 1\ndatasets:\n  visits:\n    source: visits.csv\n    unit: row\n"
        "    columns: {age: {bounds: [0, 110]}}\n"
    ),
    "HB403": yaml("version: 1\ndatasets: [visits.csv]\n"),
    "HB404": visits(top="analysts:\n  ana: {visits: {epsilon: 0}}\n"),
    "HB405": visits(top="analysts:\n  ana: {vists: {epsilon: 1}}\n"),
    "HB406": visits(top="analysts:\n  ana: {visits: {epsilon: 5}}\n"),
    "HB470": visits(rest="    share: all\n"),
    "HB471": visits(rest="    reuse: never\n"),
    "HB407": visits(top="groups:\n  team: {members: [], visits: {epsilon: 1}}\n"),
    "HB408": visits(top="analysts:\n  ana maria: {visits: {epsilon: 1}}\n"),
    "HB409": yaml("version: 2\ndatasets:\n  regions: {source: regions.csv, public: true}\n"),
    "HB410": yaml("version: 1\ndatasets:\n  visits: {source: visits.xlsx, unit: row, budget: {epsilon: 1}}\n"),
    "HB769": yaml("version: 1\ndatasets:\n  visits: {source: 'mysql://db/clinic', unit: row, budget: {epsilon: 1}}\n"),
    "HB411": yaml("version: 1\ndatasets:\n  visits: {source: vists.csv, unit: row, budget: {epsilon: 1}}\n"),
    "HB435": python(
        '(folder / "lake" / "january").mkdir(parents=True)\n'
        "from hubbub.engines.base import locate\nfrom hubbub.engines.multi_engine import read_schema\n"
        'read_schema(locate("lake/", "source", base=folder, name="lake"))'
    ),
    "HB436": python(
        "import duckdb\n"
        'for month, cost in (("2026-01", "1"), ("2026-02", "\'one\'")):\n'
        '    path = folder / "lake" / f"month={month}" / "0.parquet"\n'
        "    path.parent.mkdir(parents=True)\n"
        "    duckdb.sql(f\"COPY (SELECT {cost} AS cost) TO '{path}'\")\n"
        "from hubbub.engines.base import locate\nfrom hubbub.engines.multi_engine import read_schema\n"
        'read_schema(locate("lake/", "source", base=folder, name="lake"))'
    ),
    "HB412": python(
        '(folder / "visits.csv").write_text("patient,age,Age\\n1,34,34\\n")\nhubbub.open("hubbub.yaml", analyst="ana")'
    ),
    "HB413": visits(unit="{column: person}"),
    "HB414": visits("{weight: {bounds: [0, 200]}}"),
    "HB415": visits("{region: {values: [North, North]}}"),
    "HB416": visits("{age: {bounds: [110, 0]}}"),
    "HB417": visits(top="engine: {memory: 10}\n"),
    "HB418": yaml(
        "version: 1\ndatasets:\n  visits:\n    source: visits.csv\n    unit: row\n"
        "    columns: {age: {bounds: [0, 110]}}\n"
        "    budget: {epsilon: }\n"
    ),
    "HB419": sh("hubbub init visits.csv"),
    "HB420": visits(top="server: {host: data example org}\n"),
    "HB421": visits(top="server: {host: 0.0.0.0}\n"),
    "HB425": visits(top="server: {tls: {certificate: server.pem}}\n"),
    "HB437": visits(rest="    arrivals: hidden\n"),
    "HB465": visits(rest="    size: {rows: many}\n"),
    "HB466": yaml("version: 1\ndatasets:\n  regions: {source: regions.csv, public: true, size: {rows: 2}}\n"),
    "HB475": visits(
        top="analysts: {eva: {visits: {epsilon: 1}}}\n"
        "groups: {team: {members: [ana], visits: {epsilon: 1}}}\n"
        "projects: {hip: {members: [eva], group: team, until: 2027-01-01, visits: {epsilon: 0.5}}}\n"
    ),
    "HB476": by_block("{column: day, by: decade, from: 2024-01, budget: {epsilon: 2}}"),
    "HB477": by_block("{column: age, by: month, from: 2024-01, budget: {epsilon: 2}}"),
    "HB478": by_block("{column: day, by: month, budget: {epsilon: 2}}"),
    "HB479": by_block(
        "{column: day, by: month, from: 2024-01, budget: {epsilon: 2}}", unit="row", rest="    relation: replace\n"
    ),
    "HB480": by_block("{column: day, by: month, from: 2024-01, budget: {epsilon: 2}}", unit="{column: patient}"),
    "HB481": yaml(
        "version: 1\ndatasets:\n  visits:\n    source: visits.csv\n    unit: {via: patient, of: patients}\n"
        "    columns: {patient: {type: integer}}\n    budget: {epsilon: 2}\n  patients:\n    source: visits.csv\n"
        "    unit: {column: patient}\n    key: patient\n    columns: {patient: {type: integer}, day: {type: date}}\n"
        "    blocks: {column: day, by: month, from: 2024-01, budget: {epsilon: 2}}\n    budget: {epsilon: 2}\n"
    ),
    "HB730": owned("{via: patient, of: patients}", key=""),
    "HB731": owned("{via: region, of: patients}"),
    "HB733": owned("{via: patient, of: visits}"),
    "HB736": visits("{day: {type: date}}", unit="{column: patient, per: day}"),
    "HB737": sh("hubbub init --database . --person patients --output shop.yaml"),
    "HB734": python("""from hubbub.config import load
from hubbub.curator.opening import key_problems

config = folder / "hubbub.yaml"
config.write_text(config.read_text().replace("source: patients.csv", "source: patients.csv\\n    key: patient"))
(folder / "patients.csv").write_text("patient,sex\\n1,f\\n1,f\\n")
raise key_problems(load(config), ["patients"])[0]"""),
}
