"""The questions of a registry of deployments, of an evaluation of a guarantee, and of an impact assessment.

The subjects follow the public descriptions of the Differential Privacy Deployments Registry (2025, three tiers), of
NIST SP 800-226 (2025) and of Article 35(7) of the General Data Protection Regulation; the wording is our own.

Tested in tests/reports/test_documents.py.
"""

from collections.abc import Mapping

from hubbub.core.unit import Relation
from hubbub.reports import shared
from hubbub.reports.document import Document, DocumentItem, Section, budgets, per_dataset, spent, told
from hubbub.reports.facts import Deployment
from hubbub.reports.shared import LEDGER, LIMITS, THREATS, YAML

About = Mapping[str, str]
_ACCOUNTED = "privacy losses, Gaussian variances and Rényi divergences"


def registry(deployment: Deployment, about: About) -> Document:
    """Return an entry for a registry of deployments, by tier."""
    datasets = deployment.datasets
    tier1 = (
        told("curator", "Which organization is the data curator?", about),
        told("intended_use", "What is the data product meant for?", about),
        told("description", "What is the data product?", about),
        told("publication_date", "When was it first published?", about),
        told("links", "Where can more be read?", about),
    )
    tier2 = (
        shared.flavor("flavor", "Which flavor of differential privacy holds?", deployment),
        per_dataset("unit", "What is the privacy unit?", deployment, [(each, each.unit) for each in datasets], YAML),
        per_dataset(
            "parameters", "What are the privacy loss parameters?", deployment, [(d, budgets(d)) for d in datasets], YAML
        ),
        per_dataset("spent", "What was spent so far?", deployment, [(d, spent(d)) for d in datasets], LEDGER),
        shared.model("model", "What is the deployment model?"),
        DocumentItem(
            "access", "Is it static or interactive?", ("Interactive: analysts choose queries adaptively.",), (LEDGER,)
        ),
    )
    tier3 = (
        per_dataset(
            "domain",
            "What is the data domain?",
            deployment,
            [(d, "; ".join(d.bounds) or "no declared column") for d in datasets],
            YAML,
        ),
        _unprotected(deployment),
        per_dataset(
            "hidden", "What exactly is hidden about a unit?", deployment, [(d, d.hidden) for d in datasets], YAML
        ),
        shared.mechanisms("mechanisms", "Which mechanisms were used?", deployment),
        DocumentItem(
            "post_processing",
            "What post-processing is applied?",
            ("Counts are shown clamped at 0 and averages within their bounds, unless raw estimates are requested.",),
            ("docs/sql.md",),
        ),
        shared.accounting("composition", "How does privacy loss compose?", deployment),
        shared.implementation("implementation", "Which software is used?", deployment),
        *_attack_surface(),
        shared.audits("verification", "How was it verified?", deployment),
        shared.trusted("trust", "Who is trusted with what?"),
        shared.not_covered("limits", "What is not covered?", deployment),
        told("rationale", "Why were these parameters chosen?", about),
    )
    sections = (Section("Tier 1", tier1), Section("Tier 2", tier2), Section("Tier 3", tier3))
    return Document("registry", "Entry for a registry of deployments", deployment, sections)


def _unprotected(deployment: Deployment) -> DocumentItem:
    lines = ["Declarations: names of tables and columns, bounds, keys, budgets, and the number of updates of the data."]
    if deployment.public:
        lines.append(f"Public tables, exactly: {', '.join(deployment.public)}.")
    known = [each.name for each in deployment.datasets if each.relation is Relation.REPLACE and each.rows_are_units]
    if known:
        lines.append(f"The number of rows of {', '.join(known)}, whose neighbors replace a row.")
    blocks = [each.name for each in deployment.datasets if each.blocks]
    if blocks:
        lines.append(f"Which blocks of {', '.join(blocks)} an update of the data changed.")
    return DocumentItem("unprotected", "What is released without protection?", tuple(lines), (YAML, LIMITS))


def _attack_surface() -> tuple[DocumentItem, ...]:
    return (
        DocumentItem(
            "floating_point",
            "How are floating-point attacks prevented?",
            ("No noise is sampled in floating point: noise and sums are exact integers.",),
            ("hubbub attack floats",),
        ),
        DocumentItem(
            "timing",
            "How are timing attacks addressed?",
            (
                "A sample takes a fixed amount of work. Answers over the network leave on a fixed time grid, which"
                " hides running times up to its step.",
            ),
            (LIMITS, "hubbub attack timing"),
        ),
        DocumentItem(
            "collusion",
            "What if analysts collude?",
            ("Caps on the whole dataset, or on each block of it, bound what all analysts learn together.",),
            (YAML, "docs/theorems.md"),
        ),
        DocumentItem(
            "budget_control",
            "How is the budget enforced?",
            (
                "Each charge is durable before the data is read; crashes, retries, races and restored backups cannot"
                " overspend it, and an anchor outside of the ledger shows restored copies.",
            ),
            (LEDGER, THREATS),
        ),
    )


def nist(deployment: Deployment, about: About) -> Document:
    """Return answers to what NIST SP 800-226 asks of a guarantee, from its parameters down to its data."""
    datasets = deployment.datasets
    guarantee = (
        per_dataset("epsilon", "How strong is the guarantee?", deployment, [(d, budgets(d)) for d in datasets], YAML),
        per_dataset(
            "unit",
            "What is the unit of privacy, and is it a person?",
            deployment,
            [(d, d.unit) for d in datasets],
            YAML,
        ),
        shared.flavor("definition", "Which definition is used, and what are neighbors?", deployment),
        shared.accounting("composition", "Do all releases together stay within the budget?", deployment),
        per_dataset("spent", "How much of it is spent?", deployment, [(d, spent(d)) for d in datasets], LEDGER),
        told("epsilon_reason", "Why is this ε acceptable for these people?", about),
    )
    algorithms = (
        shared.mechanisms("mechanisms", "Which algorithms were used?", deployment),
        per_dataset(
            "clipping",
            "Are bounds chosen without looking at the data?",
            deployment,
            [(d, "; ".join(d.bounds) or "none are declared") for d in datasets],
            YAML,
        ),
        DocumentItem(
            "empty_groups",
            "Can the presence of a group reveal someone?",
            ("Declared groups are all shown. Others are shown only if a noisy number of people passes a threshold.",),
            ("docs/decisions/0041-discovered-groups-and-delta.md",),
        ),
        DocumentItem(
            "correctness",
            "How is the implementation known to be correct?",
            ("Losses are enumerated exactly in tests, and sampled outputs are audited against the stated loss.",),
            ("docs/theorems.md", "docs/campaigns.md"),
        ),
        *_attack_surface(),
    )
    utility = (
        DocumentItem(
            "accuracy",
            "Do users know how far a number can be off?",
            ("Every number has a 95% confidence interval, or the answer says why there is none.",),
            ("docs/concepts/margin-of-error.md",),
        ),
        told("bias", "Which groups of people are served worse by noise or bounds?", about),
    )
    exposure = (
        shared.model("trust_model", "What is the trust model?"),
        shared.trusted("trusted", "Who is trusted with what?"),
        told("access_control", "Who can reach the raw data, and how is that controlled?", about),
        told("collection", "How is the data collected, and what do people know about it?", about),
        shared.audits("verification", "What was verified?", deployment),
        shared.not_covered("limits", "What is not covered?", deployment),
    )
    sections = (
        Section("The guarantee", guarantee),
        Section("Algorithms and correctness", algorithms),
        Section("Utility and bias", utility),
        Section("Trust and exposure", exposure),
    )
    return Document("nist", "Evaluation of the differential privacy guarantee", deployment, sections)


def dpia(deployment: Deployment, about: About) -> Document:
    """Return the parts of a data protection impact assessment that the deployment can answer, and the open ones."""
    datasets = deployment.datasets
    description = (
        told("controller", "Who is the controller, and who is the contact?", about),
        told("purpose", "What is the purpose of the processing?", about),
        told("legal_basis", "What is its legal basis?", about),
        per_dataset(
            "data",
            "Which personal data is processed?",
            deployment,
            [(d, "; ".join(d.bounds) or "no column can be queried") for d in datasets],
            YAML,
        ),
        told("retention", "How long is the data kept?", about),
        told("recipients", "Who receives results?", about),
    )
    necessity = (
        told("necessity", "Why is the processing necessary and proportionate?", about),
        DocumentItem(
            "minimization",
            "How is the data minimized?",
            ("Analysts see no rows: only aggregates with noise leave.",),
            ("docs/sql.md",),
        ),
    )
    risks = (
        per_dataset(
            "disclosure",
            "What can a recipient learn about one person?",
            deployment,
            [(d, budgets(d)) for d in datasets],
            YAML,
        ),
        DocumentItem(
            "reidentification",
            "Can people be singled out, linked or reconstructed from results?",
            ("The budget bounds every such attack, whatever else the attacker knows; known attacks can be run.",),
            ("hubbub attack", "docs/attacks.md"),
        ),
        shared.not_covered("residual", "Which risks remain?", deployment),
    )
    measures = (
        shared.accounting("budget", "How is disclosure limited?", deployment),
        shared.audits("verification", "How is that verified?", deployment),
        shared.trusted("security", "Who is trusted, and against whom is the data protected?"),
        told("rights", "How are the rights of data subjects met?", about),
        told("consulted", "Who was consulted?", about),
    )
    sections = (
        Section("Description of the processing", description),
        Section("Necessity and proportionality", necessity),
        Section("Risks to data subjects", risks),
        Section("Measures", measures),
    )
    return Document("dpia", "Data protection impact assessment", deployment, sections)


def methods(deployment: Deployment, about: About) -> Document:
    """Return a methods section for a paper or a release."""
    items = []
    for facts in deployment.datasets:
        used = ", ".join(name for name, _ in facts.mechanisms) or "no mechanism yet"
        accounted = _ACCOUNTED if facts.budget.delta else "privacy losses"
        text = (
            f"Results on {facts.name} were released with differential privacy using {deployment.software}. The privacy"
            f" unit is {facts.unit}. Hidden is {facts.hidden}. Noise came from {used}. So far {spent(facts)}."
            f" Budgets: {budgets(facts)} Intervals are 95% confidence intervals for the privacy noise. Costs were"
            f" accounted as {accounted}."
        )
        items.append(DocumentItem(facts.name, f"How were results on {facts.name} produced?", (text,), (LEDGER, YAML)))
    items.append(told("citation", "How should it be cited?", about))
    return Document("methods", "Methods", deployment, (Section("Methods", tuple(items)),))


def data_sheet(deployment: Deployment, about: About) -> Document:
    """Return a data sheet: what each dataset is, what is protected, and what it may be used for."""
    sections = []
    for facts in deployment.datasets:
        name = facts.name
        items = (
            told(f"{name}.motivation", "Why was the dataset created, and by whom?", about),
            told(f"{name}.composition", "What does a row stand for, and how was it collected?", about),
            DocumentItem(f"{name}.columns", "Which columns can be queried?", facts.bounds, (YAML,)),
            DocumentItem(f"{name}.unit", "What is protected?", (f"{facts.unit}; hidden is {facts.hidden}",), (YAML,)),
            DocumentItem(f"{name}.budget", "How much may be learned?", (budgets(facts),), (YAML,)),
            DocumentItem(f"{name}.spent", "How much was learned so far?", (spent(facts),), (LEDGER,)),
            told(f"{name}.uses", "What should it be used for, and what not?", about),
            told(f"{name}.maintenance", "Who maintains it, and how often does it change?", about),
        )
        sections.append(Section(name, items))
    return Document("data-sheet", "Data sheet", deployment, tuple(sections))


DOCUMENTS = {"registry": registry, "nist": nist, "dpia": dpia, "data-sheet": data_sheet, "methods": methods}
