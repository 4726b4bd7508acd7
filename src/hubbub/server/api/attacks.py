"""Routes of the attack lab: the attacks, and studies of them on simulated, bundled, or uploaded tables."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from hubbub.attacks.study_worker import BUNDLED, MADE_UP, UPLOAD
from hubbub.attacks.upload import MAX_BYTES
from hubbub.server.api.route import ApiRoute, PrincipalParam, ServiceParam, error_responses
from hubbub.server.api.schemas import Exact, Number, ProblemDetails, ProgressForm, RequestModel
from hubbub.server.attack_lab import MAX_EPSILONS, StudyRequest, StudyRun
from hubbub.server.problems import PaddedJson, problem

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Number = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]
_Setting = bool | int | float | Annotated[str, Field(max_length=1000)]


class StudyBody(RequestModel):
    """An attack on a table, unprotected and against hubbub at several ε. Datasets of this server cannot be used."""

    attack: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,59}$", examples=["differencing"])
    epsilons: list[Number] = Field(min_length=1, max_length=MAX_EPSILONS, examples=[["0.1", "1", "10"]])
    table: str = Field(
        MADE_UP,
        max_length=60,
        examples=[MADE_UP],
        description=f"`{MADE_UP}`, `{UPLOAD}` (send it as `csv`), or a bundled table: {', '.join(BUNDLED)}.",
    )
    csv: str | None = Field(
        None,
        max_length=MAX_BYTES,
        examples=[None],
        description="The table to attack, as CSV with a header line. It is kept in memory only, until the study ends.",
    )
    settings: dict[Annotated[str, Field(max_length=60)], _Setting] = Field(
        default_factory=dict,
        max_length=30,
        examples=[{}],
        description="Settings that differ from the attack's defaults.",
    )

    def request(self) -> StudyRequest:
        """Return the study to run."""
        csv = None if self.csv is None else self.csv.encode()
        return StudyRequest(self.attack, tuple(self.epsilons), self.table, csv, self.settings)


class AttackForm(BaseModel):
    """An attack: its summary, whether it takes a table, and its settings with their defaults."""

    name: str
    summary: str
    table: Literal["no", "may", "must"]
    settings: dict[str, bool | int | float | str | list[str]]


class AttackList(BaseModel):
    """All attacks."""

    attacks: list[AttackForm]


class ScoreForm(BaseModel):
    """How often the attack succeeded, with a 95% confidence interval, and the success rate of blind guessing."""

    right: int
    trials: int
    chance: float
    share: float
    low: float
    high: float


class FindingForm(BaseModel):
    """The result against one target. `epsilon` and `ceiling` are null if the target has no privacy guarantee."""

    target: str
    epsilon: Exact | None
    score: ScoreForm
    ceiling: float | None
    facts: dict[str, float | int | str]


class StudyForm(BaseModel):
    """The results of a study."""

    attack: str
    title: str
    words: list[str]
    findings: list[FindingForm]


class RunForm(BaseModel):
    """A study that is queued, running, or finished."""

    id: str
    attack: str
    table: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: ProgressForm | None = None
    study: StudyForm | None = None
    problem: ProblemDetails | None = None


class RunList(BaseModel):
    """The caller's recent studies, newest first."""

    runs: list[RunForm]


@router.get("/attacks", operation_id="attacks", responses={200: {"model": AttackList}, **error_responses()})
def attacks(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List the available attacks."""
    attacks = [
        {"name": attack.name, "summary": attack.summary, "table": attack.table, "settings": dict(attack.settings)}
        for attack in service.attacks.catalog(principal)
    ]
    return PaddedJson({"attacks": attacks})


@router.get("/attacks/runs", operation_id="attack_runs", responses={200: {"model": RunList}, **error_responses()})
def attack_runs(request: Request, service: ServiceParam, principal: PrincipalParam) -> Response:
    """List the caller's recent studies. They are kept in memory only."""
    return PaddedJson({"runs": [_form(run, request) for run in service.attacks.runs(principal)]})


@router.post(
    "/attacks/runs",
    operation_id="begin_attack",
    status_code=202,
    responses={
        202: {
            "model": RunForm,
            "description": "The study is queued.",
            "headers": {"Location": {"description": "URL of the study.", "schema": {"type": "string"}}},
        },
        **error_responses(),
    },
)
def begin_attack(request: Request, service: ServiceParam, principal: PrincipalParam, body: StudyBody) -> Response:
    """Run an attack in a separate process. Each caller can have one unfinished study."""
    run = service.attacks.begin(principal, body.request())
    return PaddedJson(_form(run, request), status_code=202, headers={"Location": f"/api/v1/attacks/runs/{run.id}"})


@router.get(
    "/attacks/runs/{number}", operation_id="attack_run", responses={200: {"model": RunForm}, **error_responses()}
)
def attack_run(request: Request, service: ServiceParam, principal: PrincipalParam, number: _Number) -> Response:
    """Return a study: its progress, or its findings or problem once it has ended."""
    return PaddedJson(_form(service.attacks.run(principal, number), request))


@router.delete(
    "/attacks/runs/{number}", operation_id="cancel_attack", responses={200: {"model": RunForm}, **error_responses()}
)
def cancel_attack(request: Request, service: ServiceParam, principal: PrincipalParam, number: _Number) -> Response:
    """Cancel a study."""
    return PaddedJson(_form(service.attacks.cancel(principal, number), request))


def _form(run: StudyRun, request: Request) -> dict[str, Any]:
    form: dict[str, Any] = {"id": run.id, "attack": run.attack.name, "table": run.table, "state": run.state}
    if run.state == "running" and (step := run.progress) is not None:
        form["progress"] = {"done": step[0], "what": step[1]}
    if run.state == "done" and run.study is not None:
        form["study"] = run.study.to_json()
    if run.state == "failed" and run.problem is not None:
        form["problem"] = problem(run.problem, request.state.request_id)
    return form
