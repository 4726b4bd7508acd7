"""A ledger that cannot be used, and a deployment that was changed under it: HB3xx and HB42x."""

from tests.project.error_examples.world import Example, python, sh, yaml


def ledger(change: str) -> Example:
    """The ledger is changed while it is closed, and opened again."""
    return python(f'h.close()\n{change}\nhubbub.open("hubbub.yaml", analyst="ana")')


def anchor(change: str) -> Example:
    """The anchor of the ledger is changed while it is closed."""
    return python(
        "from hubbub.accounting.anchor import default_path\n\n"
        'h.close()\nanchor = default_path(folder / "hubbub-ledger" / "ledger.db")\n'
        f'{change}\nhubbub.open("hubbub.yaml", analyst="ana")'
    )


def server(settings: str) -> Example:
    """A short hubbub.yaml with settings of the server."""
    return yaml(
        "version: 1\ndatasets:\n  visits: {source: visits.csv, unit: row, budget: {epsilon: 2}}\n"
        f"server: {{{settings}}}\n"
    )


EXAMPLES: dict[str, Example] = {
    "HB302": sh("hubbub verify ledger"),
    "HB304": ledger('import sqlite3\n\nsqlite3.connect("hubbub-ledger/ledger.db").execute("PRAGMA user_version = 99")'),
    "HB305": ledger('import sqlite3\n\nsqlite3.connect("hubbub-ledger/ledger.db").execute("DROP TABLE keys")'),
    "HB306": ledger('(folder / "hubbub-ledger" / "ledger.db").write_bytes(b"not a database" * 1000)'),
    "HB307": ledger('(folder / "hubbub-ledger" / "ledger.db").unlink()'),
    "HB308": anchor("anchor.unlink()"),
    "HB309": anchor("anchor.unlink()\nanchor.mkdir()"),
    "HB310": anchor('anchor.write_bytes(b"not an anchor" * 1000)'),
    "HB312": python("""config = folder / "hubbub.yaml"
config.write_text(config.read_text().replace("visits: {epsilon: 1}", "visits: {epsilon: 0.5}"))
hubbub.open(config, analyst="ana").close()
h.query("SELECT COUNT(*) FROM visits", epsilon="0.1")"""),
    "HB314": python("""h.close()
h.query("SELECT COUNT(*) FROM visits", epsilon="0.1")"""),
    "HB318": python("""(folder / "visits.csv").unlink()
h.query("SELECT COUNT(*) FROM visits", epsilon="0.1")"""),
    "HB735": python("""config = folder / "hubbub.yaml"
config.write_text(config.read_text().replace("source: patients.csv", "source: patients.csv\\n    key: sex"))
(folder / "patients.csv").write_text("patient,sex\\n1,f\\n2,f\\n")
with hubbub.open(config, analyst="ana") as shop:
    shop.query("SELECT COUNT(*) FROM patients", epsilon="0.1")"""),
    "HB327": sh("hubbub admin failures --clear ana visits --by olga"),
    "HB333": sh("""hubbub query 'SELECT COUNT(*) FROM visits' --epsilon 0.1
hubbub admin anchor --by olga --reason "moved to another disk" --yes"""),
    "HB422": server("secret_file: server.key"),
    "HB423": server("secret_file: visits.csv"),
    "HB424": python("""from hubbub.server.settings import read

read({}, base=folder, folder=folder, environment={"HUBBUB_PROT": "8321"})"""),
    "HB426": python("""from hubbub.server import config_editor

draft = config_editor.read(folder / "hubbub.yaml")
config_editor.edit(folder / "hubbub.yaml", config_editor.put_analyst("ben", {}))
config_editor.apply(folder / "hubbub.yaml", draft.text + "# mine", expected=draft.hash)"""),
    "HB430": python("""from fractions import Fraction
from hubbub.server import config_editor

groups = "groups:\\n  interns: {members: [eva], visits: {epsilon: 1}}\\n"
config_editor.changed(
    (folder / "hubbub.yaml").read_text() + groups, config_editor.raise_cap("eva", "visits", Fraction(1))
)"""),
    "HB431": Example("sh", "hubbub serve", missing="uvicorn"),
    "HB432": python("""from hubbub.server.remote_edit_rules import violations

text = (folder / "hubbub.yaml").read_text()
for violation in violations(text, text.replace("staff.csv", "/srv/staff.csv"), folder):
    raise violation"""),
    "HB433": python("""h.query("SELECT COUNT(*) FROM calls WHERE minutes > 5", epsilon="0.1")
config = folder / "hubbub.yaml"
config.write_text(config.read_text().replace("relation: replace", "relation: add_remove"))
hubbub.open(config, analyst="ana")"""),
    "HB434": python("""config = folder / "hubbub.yaml"
text = config.read_text()
config.write_text(text.replace("ana:", "ben:"))
hubbub.open(config, analyst="ben").close()
config.write_text(text)
hubbub.open(config, analyst="ana")"""),
}
