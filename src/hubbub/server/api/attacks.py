"""Routes of the Attack lab: what attacks there are, and studies of them on made-up tables or one that is sent along."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from hubbub.attacks.study_worker import BUNDLED, MADE_UP, UPLOAD
from hubbub.attacks.upload import MOST_BYTES
from hubbub.server.api.routing import ApiRoute, Asking, Serving, refusals
from hubbub.server.api.schemas import Exact, Given, Number, Problem, ProgressForm
from hubbub.server.attack_lab import MOST_EPSILONS, Run, Wanted
from hubbub.server.problems import Padded, problem

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Number = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]
_Setting = bool | int | float | Annotated[str, Field(max_length=1000)]


class Order(Given):
    """An attack on a table, and against hubbub at several ε. No dataset of this server can be named."""

    attack: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,59}$", examples=["differencing"])
    epsilons: list[Number] = Field(min_length=1, max_length=MOST_EPSILONS, examples=[["0.1", "1", "10"]])
    table: str = Field(
        MADE_UP,
        max_length=60,
        examples=[MADE_UP],
        description=f"`{MADE_UP}`, `{UPLOAD}` with `csv`, or one that comes with hubbub: {', '.join(BUNDLED)}.",
    )
    csv: str | None = Field(
        None,
        max_length=MOST_BYTES,
        examples=[None],
        description="The table to attack, as CSV with a line of names. It stays in memory until the study ends.",
    )
    settings: dict[Annotated[str, Field(max_length=60)], _Setting] = Field(
        default_factory=dict, max_length=30, examples=[{}], description="Other settings than an attack's own."
    )

    def wanted(self) -> Wanted:
        """Make an order of it."""
        sent = None if self.csv is None else self.csv.encode()
        return Wanted(self.attack, tuple(self.epsilons), self.table, sent, self.settings)


class AttackForm(BaseModel):
    """An attack: what it shows, whether it takes a table, and its settings with their defaults."""

    name: str
    summary: str
    table: Literal["no", "may", "must"]
    settings: dict[str, bool | int | float | str | list[str]]


class Attacks(BaseModel):
    """All attacks."""

    attacks: list[AttackForm]


class ScoreForm(BaseModel):
    """How often the attack was right, with its 95% interval, and what blind guessing gets."""

    right: int
    trials: int
    chance: float
    share: float
    low: float
    high: float


class FindingForm(BaseModel):
    """An attack on one target; without an ε and a ceiling where that promises nothing."""

    target: str
    epsilon: Exact | None
    score: ScoreForm
    ceiling: float | None
    facts: dict[str, float | int | str]


class StudyForm(BaseModel):
    """What an attack achieved."""

    attack: str
    title: str
    words: list[str]
    findings: list[FindingForm]


class RunForm(BaseModel):
    """A study on its way, or at its end."""

    id: str
    attack: str
    table: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: ProgressForm | None = None
    study: StudyForm | None = None
    problem: Problem | None = None


class Runs(BaseModel):
    """Somebody's last studies, the newest first."""

    runs: list[RunForm]


@router.get("/attacks", operation_id="attacks", responses={200: {"model": Attacks}, **refusals()})
def attacks(service: Serving, principal: Asking) -> Response:
    """List the attacks that can be run."""
    found = [
        {"name": each.name, "summary": each.summary, "table": each.table, "settings": dict(each.settings)}
        for each in service.attacks(principal)
    ]
    return Padded({"attacks": found})


@router.get("/attacks/runs", operation_id="attack_runs", responses={200: {"model": Runs}, **refusals()})
def attack_runs(request: Request, service: Serving, principal: Asking) -> Response:
    """List one's last studies; they are kept in memory, a few of each visitor."""
    return Padded({"runs": [_form(run, request) for run in service.attack_runs(principal)]})


@router.post(
    "/attacks/runs",
    operation_id="begin_attack",
    status_code=202,
    responses={
        202: {
            "model": RunForm,
            "description": "It is in line.",
            "headers": {"Location": {"description": "Where to ask for it.", "schema": {"type": "string"}}},
        },
        **refusals(),
    },
)
def begin_attack(request: Request, service: Serving, principal: Asking, body: Order) -> Response:
    """Run an attack, in a process of its own; one at a time."""
    run = service.begin_attack(principal, body.wanted())
    return Padded(_form(run, request), status_code=202, headers={"Location": f"/api/v1/attacks/runs/{run.id}"})


@router.get("/attacks/runs/{number}", operation_id="attack_run", responses={200: {"model": RunForm}, **refusals()})
def attack_run(request: Request, service: Serving, principal: Asking, number: _Number) -> Response:
    """Say how far a study is; its findings or its problem, once it has ended."""
    return Padded(_form(service.attack_run(principal, number), request))


@router.delete(
    "/attacks/runs/{number}", operation_id="cancel_attack", responses={200: {"model": RunForm}, **refusals()}
)
def cancel_attack(request: Request, service: Serving, principal: Asking, number: _Number) -> Response:
    """Stop a study."""
    return Padded(_form(service.cancel_attack(principal, number), request))


def _form(run: Run, request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {"id": run.id, "attack": run.attack.name, "table": run.table, "state": run.state}
    if run.state == "running" and (step := run.progress) is not None:
        found["progress"] = {"done": step[0], "what": step[1]}
    if run.state == "done" and run.study is not None:
        found["study"] = run.study.form()
    if run.state == "failed" and run.problem is not None:
        found["problem"] = problem(run.problem, request.state.request_id)
    return found
