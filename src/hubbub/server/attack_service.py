"""The lab as part of the service: everyone may run attacks on simulated or uploaded tables, and studies of sanitizers.

Tested in tests/server/test_attack_lab.py.
"""

from hubbub.attacks.catalogue import ATTACKS, Attack
from hubbub.crowd.studies.catalogue import STUDIES, StudyEntry
from hubbub.server.accounts import Principal
from hubbub.server.attack_lab import CrowdRequest, CrowdRun, Lab, StudyRequest, StudyRun
from hubbub.server.roles import allowed


class AttackService:
    """Studies of attacks. Each principal sees only their own."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    @allowed("owner", "analyst", "auditor")
    def catalog(self, principal: Principal) -> tuple[Attack, ...]:
        """List the available attacks."""
        return tuple(ATTACKS.values())

    @allowed("owner", "analyst", "auditor")
    def begin(self, principal: Principal, request: StudyRequest) -> StudyRun:
        """Queue a study; each principal has at most one unfinished study."""
        return self._lab.begin(_owner(principal), request)

    @allowed("owner", "analyst", "auditor")
    def runs(self, principal: Principal) -> tuple[StudyRun, ...]:
        """List the principal's recent studies, newest first."""
        return self._lab.latest(_owner(principal), StudyRun)

    @allowed("owner", "analyst", "auditor")
    def run(self, principal: Principal, number: str) -> StudyRun:
        """Return one study as it is now."""
        return self._lab.snapshot(_owner(principal), number, StudyRun)

    @allowed("owner", "analyst", "auditor")
    def cancel(self, principal: Principal, number: str) -> StudyRun:
        """Cancel a study."""
        run = self._lab.find(_owner(principal), number, StudyRun)
        self._lab.cancel(run)
        return run


class CrowdService:
    """Studies of the crowd sanitizers, which are not differentially private. Each principal sees only their own."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    @allowed("owner", "analyst", "auditor")
    def catalog(self, principal: Principal) -> tuple[StudyEntry, ...]:
        """List the available studies."""
        return tuple(STUDIES.values())

    @allowed("owner", "analyst", "auditor")
    def begin(self, principal: Principal, request: CrowdRequest) -> CrowdRun:
        """Queue a study; each principal has at most one unfinished study or attack."""
        return self._lab.begin_crowd(_owner(principal), request)

    @allowed("owner", "analyst", "auditor")
    def runs(self, principal: Principal) -> tuple[CrowdRun, ...]:
        """List the principal's recent studies, newest first."""
        return self._lab.latest(_owner(principal), CrowdRun)

    @allowed("owner", "analyst", "auditor")
    def run(self, principal: Principal, number: str) -> CrowdRun:
        """Return one study as it is now."""
        return self._lab.snapshot(_owner(principal), number, CrowdRun)

    @allowed("owner", "analyst", "auditor")
    def cancel(self, principal: Principal, number: str) -> CrowdRun:
        """Cancel a study."""
        run = self._lab.find(_owner(principal), number, CrowdRun)
        self._lab.cancel(run)
        return run


def _owner(principal: Principal) -> str:
    return f"{principal.role} {principal.name}"
