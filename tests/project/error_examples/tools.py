"""Streams, surveys, sanitizers, audits and attacks, used wrongly: HB530 to HB539, HB620 to HB666, HB684 to HB686."""

from tests.project.error_examples.world import Example, python, sh, without

EXAMPLES: dict[str, Example] = {
    "HB530": sh("hubbub stream make seen --kind density --universe 0-99 --epsilon 1"),
    "HB531": sh("hubbub stream read seen"),
    "HB532": python("""h.stream("visits", "seen", kind="density", universe=(0, 99), epsilon="0.5")
(state,) = folder.glob("hubbub-streams/**/seen.stream")
state.write_bytes(b"something else")
h.stream("visits", "seen", kind="density", universe=(0, 99), epsilon="0.5")"""),
    "HB533": sh("""hubbub stream make seen --kind density --universe 0:99 --epsilon 1
hubbub stream feed seen --tail arrivals.log"""),
    "HB534": sh("""hubbub stream make seen --kind density --universe 0:99 --epsilon 1
hubbub stream answer seen
hubbub stream answer seen"""),
    "HB535": sh("hubbub survey check hubbub.yaml"),
    "HB536": sh("""hubbub survey init survey.yaml
hubbub survey answer survey.yaml --set smoke=yes"""),
    "HB537": sh("""hubbub survey init survey.yaml
hubbub survey estimate survey.yaml responses.jsonl"""),
    "HB538": python("""from hubbub.surveys.estimate import estimate_joint
from hubbub.surveys.survey import TEMPLATE, Survey

survey = Survey.parse(TEMPLATE)
estimate_joint(survey, [survey.questions[0].name], [])"""),
    "HB539": sh("""hubbub survey init survey.yaml
hubbub survey page survey.yaml --to http://example.org/responses"""),
    "HB620": sh("hubbub sanitize visits.csv --columns age,age --with histogram"),
    "HB621": sh("hubbub sanitize visits.csv --columns age --bounds age=110:0 --with histogram"),
    "HB622": sh("hubbub sanitize visits.csv --columns age,cost --with cross"),
    "HB623": sh("hubbub sanitize visits.csv --columns age,cost --with histogram --c 0.5"),
    "HB624": sh("hubbub sanitize visits.csv --columns age,cost --with magic"),
    "HB625": sh("hubbub sanitize visits.csv --columns age,cost --with histogram --to visits.csv"),
    "HB626": sh("hubbub sanitize visits.csv --with histogram"),
    "HB684": sh("hubbub sanitize study cube"),
    "HB685": sh("hubbub sanitize study cubes --set cubes=many"),
    "HB686": sh("hubbub sanitize visits.csv --columns age,ward --with ball --compare 1"),
    "HB630": python("""import numpy as np
from hubbub.audit.black_box import epsilon_at_least

epsilon_at_least(np.zeros(10), np.ones(10), alarm=0.01, generator=np.random.default_rng(1))"""),
    "HB633": sh("hubbub audit self --seconds 1 --out missing/report.json"),
    "HB635": python("""from hubbub.audit.report import load_private_key

load_private_key(folder / "audit.key", make=False)"""),
    "HB636": python("""from hubbub.audit.report import load_private_key

(folder / "audit.key").write_text("00" * 32)
(folder / "audit.key").chmod(0o644)
load_private_key(folder / "audit.key", make=False)"""),
    "HB637": sh("hubbub audit check-report report.json --public visits.csv"),
    "HB638": python("""from hubbub.audit.report import load_private_key, verify_report

key = load_private_key(folder / "audit.key", make=True).public_key()
verify_report("{}", [key])"""),
    "HB639": python("""from hubbub.audit.report import load_private_key, sign_report, verify_report

key = load_private_key(folder / "audit.key", make=True)
verify_report(sign_report({"sound": False}, key).replace("false", "true"), [key.public_key()])"""),
    "HB640": sh("hubbub attack linkages visits.csv"),
    "HB641": sh("hubbub attack linkage vists.csv"),
    "HB642": sh("hubbub attack averaging visits.csv"),
    "HB643": sh("hubbub attack linkage visits.csv --set speed=3"),
    "HB644": sh("hubbub attack linkage visits.csv --quasi region,sex"),
    "HB646": sh("hubbub attack linkage visits.csv --quasi region,age --report report.docx"),
    "HB647": without(
        "matplotlib",
        """from hubbub.attacks.report_pdf import pdf

pdf(None, None)""",
    ),
    "HB651": sh("hubbub attack isolation visits.csv"),
    "HB659": without(
        "scipy",
        """import numpy as np
from hubbub.attacks.decoding import least_worst, subsets

questions = subsets(people=10, count=20, generator=np.random.default_rng(1))
least_worst(questions, np.ones(20))""",
    ),
    "HB664": python("""h.stream("calls", "busy", kind="count", horizon=100, epsilon="0.1")"""),
    "HB634": python("""from hubbub.audit.replan import plan_again
from hubbub.curator.question import Question

plan_again(Question("CALL release(code => 'ab')", epsilon=1), {}, salt="", hashing="engine")"""),
}
