"""Invalid hubbub.yaml files: HB400 to HB437."""

from tests.project.error_examples.world import Example, python, sh, yaml


def visits(columns: str = "{}", *, unit: str = "row", rest: str = "", top: str = "") -> Example:
    """A short hubbub.yaml over visits.csv."""
    return yaml(
        "version: 1\ndatasets:\n  visits:\n    source: visits.csv\n"
        f"    unit: {unit}\n    columns: {columns}\n{rest}    budget: {{epsilon: 2}}\n{top}"
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
    "HB407": visits(top="groups:\n  team: {members: [], visits: {epsilon: 1}}\n"),
    "HB408": visits(top="analysts:\n  ana maria: {visits: {epsilon: 1}}\n"),
    "HB409": yaml("version: 2\ndatasets:\n  regions: {source: regions.csv, public: true}\n"),
    "HB410": yaml("version: 1\ndatasets:\n  visits: {source: visits.xlsx, unit: row, budget: {epsilon: 1}}\n"),
    "HB411": yaml("version: 1\ndatasets:\n  visits: {source: vists.csv, unit: row, budget: {epsilon: 1}}\n"),
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
}
