"""Sessions, commands, the client and the ledger, used wrongly: HB120 to HB203, and HB3xx."""

from tests.project.error_examples.world import Example, python, sh, without

EXAMPLES: dict[str, Example] = {
    "HB120": python('h.describe("vists")'),
    "HB121": python('hubbub.open("hubbub.yaml", analyst="anna")'),
    "HB122": python("""from hubbub.config.policy import parse_policy

parse_policy((folder / "hubbub.yaml").read_text()).caps("ana", "staff")"""),
    "HB123": python('h.query("SELECT COUNT(*) FROM visits", epsilon="0.1", key="k" * 300)'),
    "HB124": python("""h.query("SELECT COUNT(*) FROM visits", epsilon="0.1", key="monday")
h.query("SELECT AVG(age) FROM visits", epsilon="0.1", key="monday")"""),
    "HB768": python('h.query("SELECT COUNT(*) FROM visits", epsilon="0.1", key="monday", fresh=True)'),
    "HB125": sh('hubbub admin forfeit --by olga --reason " " --yes'),
    "HB126": sh('hubbub query "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1 --export result.xlsx'),
    "HB130": without("pandas", 'h.query("SELECT COUNT(*) AS n FROM visits", epsilon="0.1").to_pandas()'),
    "HB131": python('h.query("SELECT COUNT(*) AS n FROM visits", epsilon="0.1").plot("visits")'),
    "HB132": python('h.estimate("SELECT COUNT(*) FROM visits")'),
    "HB133": sh("hubbub query @report.sql --epsilon 0.1"),
    "HB134": sh("hubbub verify visits.csv"),
    "HB135": sh('hubbub admin forfeit --by olga --reason "the disk is lost"'),
    "HB114": without(
        "matplotlib",
        """from hubbub.config import load
from hubbub.reports.assessments import DOCUMENTS
from hubbub.reports.facts import read
from hubbub.reports.forms import pdf

h.query("SELECT COUNT(*) AS n FROM visits", epsilon="0.1")
pdf(DOCUMENTS["methods"](read(load(folder / "hubbub.yaml")), {}))""",
    ),
    "HB115": sh("""hubbub query "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1
hubbub report methods --out methods.docx"""),
    "HB116": sh("""hubbub query "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1
hubbub report registry --about hubbub.yaml"""),
    "HB129": sh("hubbub report registry --about about.yaml"),
    "HB136": sh("hubbub audit ledger --since yesterday"),
    "HB137": sh("hubbub demo --into ."),
    "HB138": python('h.estimate("SELECT COUNT(*) AS n FROM visits", epsilon="0.1", weights={"m": 2})'),
    "HB139": python("""from hubbub.answers.options import from_json

from_json({"epsilom": "0.1"})"""),
    "HB143": sh("hubbub analyst revoke 0123456789ab"),
    "HB144": sh("hubbub analyst token ana --days 100000"),
    "HB145": sh("hubbub analyst add ben --cap visits:0.5"),
    "HB146": python("h.release(12)"),
    "HB147": python("h.estimate(\"CALL moments(table => 'visits', columns => ['age'])\", within=2)"),
    "HB148": sh("hubbub call kmeans visits --epsilon 0.1"),
    "HB149": sh("hubbub query 'SELECT COUNT(*) FROM visits' --epsilon 0.1 --server https://data.example.org"),
    "HB159": sh("hubbub profile visits"),
    "HB151": python("""release = h.query("SELECT COUNT(*) FROM visits", epsilon="0.1")
hubbub.model(release)"""),
    "HB167": python('h.query("SELECT COUNT(*) FROM visits", epsilon="0.1", free=True)'),
    "HB836": python("""from hubbub.frames import count

h.table("visits").filter("age > 30").agg(n=count())"""),
    "HB171": python("""from hubbub.analyses.tables.ranges import Ranges

release = h.query("CALL ranges(table => 'visits', column => 'age')", epsilon="0.5")
hubbub.model(release).quantile(50)"""),
    "HB172": sh("hubbub publish 'SELECT COUNT(*) FROM visits' --to out"),
    "HB174": sh("hubbub explain"),
    "HB691": sh("hubbub explain game --set mechanism=magic"),
    "HB692": sh("hubbub explain beliefs --n 100"),
    "HB693": sh("hubbub explain beliefs --plot beliefs.png"),
    "HB694": sh("hubbub explain game --set secret=2*"),
    "HB180": python('hubbub.connect("data.example.org", token="hub_0123456789ab_secret")'),
    "HB181": python('hubbub.connect("http://data.example.org", token="hub_0123456789ab_secret")'),
    "HB182": python('hubbub.connect("https://data.example.org", token="two words")'),
    "HB183": python('hubbub.connect("https://data.example.org", token="hub_0123456789ab_secret", ca="visits.csv")'),
    "HB185": python("""import hubbub.dbapi

connection = hubbub.dbapi.connect(path="hubbub.yaml", analyst="ana")
connection.cursor().execute("SET hubbub.epsilom = 0.1")"""),
    "HB186": python("""import hubbub.dbapi

connection = hubbub.dbapi.connect(path="hubbub.yaml", analyst="ana")
connection.cursor().execute("SELECT * FROM hubbub.budgets")"""),
    "HB187": python("""import hubbub.dbapi

connection = hubbub.dbapi.connect(path="hubbub.yaml", analyst="ana", epsilon=0.1)
connection.close()
connection.cursor()"""),
    "HB188": python("""import hubbub.dbapi

connection = hubbub.dbapi.connect(path="hubbub.yaml", analyst="ana", epsilon=0.1)
connection.cursor().execute("SELECT COUNT(*) FROM visits WHERE age > ?", 65)"""),
    "HB189": python("""import hubbub.dbapi

connection = hubbub.dbapi.connect(path="hubbub.yaml", analyst="ana", epsilon=0.1)
connection.cursor().executemany("SELECT COUNT(*) FROM visits WHERE age > ?", [[18], [65]])"""),
    "HB190": python("""import hubbub.dbapi

connection = hubbub.dbapi.connect(path="hubbub.yaml", analyst="ana", epsilon=0.1)
connection.cursor().fetchall()"""),
    "HB191": python("""h.sample_and_aggregate(
    "x = 1", table="visits", columns=["cost"], bounds=(0, 1000), epsilon="0.1"
)"""),
    "HB193": python("""h.sample_and_aggregate(
    "def f(rows): return 1", table="visits", columns=["cost"], bounds=(1000, 0), epsilon="0.1"
)"""),
    "HB194": python("""h.release(
    lambda rows: rows["cost"].sum(), table="visits", columns=["cost"], sensitivity=1000, epsilon="0.1"
)"""),
    "HB196": python("""from hubbub.analyses.programs.kmeans import KMeans

KMeans.of(h.query("SELECT COUNT(*) FROM visits", epsilon="0.1"))"""),
    "HB201": python('h.query("SELECT COUNT(*) FROM visits", epsilon=5)'),
    "HB202": python("""with h.scope(epsilon="0.1") as scope:
    scope.query("SELECT COUNT(*) FROM visits", epsilon="0.2")"""),
    "HB203": python("""with h.scope(epsilon="0.1") as scope:
    pass
scope.query("SELECT COUNT(*) FROM visits", epsilon="0.1")"""),
    "HB801": python('hubbub.connect("http://127.0.0.1:9", token="hub_0123456789ab_secret", retries=0)'),
}
