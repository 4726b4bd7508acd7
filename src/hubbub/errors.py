"""Every error that hubbub raises, as one tree.

HubbubError
├── ParameterError    HB1xx  a number or an option that cannot be accepted
├── BudgetError       HB2xx  a cap would be passed
├── LedgerError       HB3xx  the ledger cannot be used, or must not be trusted
├── ConfigError       HB4xx  hubbub.yaml says something that cannot be
├── QueryError        HB5xx  a query that cannot be answered privately, refused before anything is charged
├── MechanismError    HB6xx  a mechanism is used outside what it promises
├── CrowdError        HB62x  a crowd sanitizer cannot be used on these points or with these settings
├── AuditError        HB63x  an audit cannot be made, signed or read
├── AttackError       HB64x, HB65x  an attack cannot be run on this table or with these settings
├── StreamError       HB66x, HB531 to HB534  a stream cannot be bought, fed or read
├── AccessError       HB7xx  who asks is not known (HB70x), may not do this (HB71x), or must wait (HB72x)
├── ServerError       HB8xx  a server cannot be reached, or does not answer as one
└── RunError          HB9xx  the engine failed after the charge: one constant message
    └── SpentError    HB901, HB902  a charge that has no release and can have none

Each carries a stable code, a public message that never holds a value from the data, and a remedy.
"""


class HubbubError(Exception):
    """The root: a stable code, a public message and what to do about it."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        self.code = code
        self.message = message
        self.remedy = remedy
        super().__init__(code, message, remedy)

    def __str__(self) -> str:
        return f"{self.code} {self.message}" + (f"\n      {self.remedy}" if self.remedy else "")


class ParameterError(HubbubError):
    """A number or an option that cannot be accepted."""


class BudgetError(HubbubError):
    """A cap would be passed; nothing was run or charged."""


class LedgerError(HubbubError):
    """The ledger cannot be used, or must not be trusted."""


class ConfigError(HubbubError):
    """hubbub.yaml says something that cannot be."""


class MechanismError(HubbubError):
    """A mechanism is used outside what it promises."""


class CrowdError(HubbubError):
    """A crowd sanitizer cannot be used on these points or with these settings."""


class AuditError(HubbubError):
    """An audit cannot be made, signed or read."""


class AttackError(HubbubError):
    """An attack cannot be run on this table or with these settings."""


class StreamError(HubbubError):
    """A stream cannot be bought, fed or read."""


class AccessError(HubbubError):
    """Who asks is not known, may not do this, or must wait; `wait` is how many seconds."""

    def __init__(self, code: str, message: str, remedy: str = "", wait: int = 0) -> None:
        self.wait = wait
        super().__init__(code, message, remedy)


class ServerError(HubbubError):
    """A server cannot be reached, or what answers is none of ours."""


_ANEW = "A new answer costs a new charge: pass a new key (key=, or --fresh on the command line)."


class RunError(HubbubError):
    """Something failed after the charge. It takes no argument: the message is the same whatever it was."""

    def __init__(self) -> None:
        super().__init__(
            "HB900",
            "the query could not be completed. Its charge stays, since the data was touched.",
            "Ask again without a new key: while the data is unchanged, this run is repeated on the same charge, with "
            "the same noise. Once the data has changed (a crash of its database server counts as a change), a question "
            "without a key is a new one, with a charge of its own. Failures are counted; the owner reviews them.",
        )


class SpentError(RunError):
    """A charge without a release whose noise cannot be drawn again. What is said does not depend on the data."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        HubbubError.__init__(self, code, message, remedy)

    @classmethod
    def lost(cls) -> "SpentError":
        """Make the error of a charge whose seed is not here."""
        return cls(
            "HB901",
            "this charge was made before, and its noise cannot be drawn here. The charge stands.",
            "Another server may still be computing the answer: ask again shortly. If a crash or a restart ended that "
            f"run, the charge is spent. {_ANEW}",
        )

    @classmethod
    def changed(cls) -> "SpentError":
        """Make the error of a charge whose data or declarations are not those of its first run."""
        return cls(
            "HB902",
            "the data or its declarations changed after this charge was made. The charge stands and is spent: "
            "the same noise on other data would reveal the difference.",
            _ANEW,
        )


class QueryError(HubbubError):
    """A query that cannot be answered privately; decided from its text and the declarations alone, at no cost.

    HB500 to HB529 come from reading and binding the text, later ones from planning. `position` is (line, column) of
    the words concerned, both counted from 1.
    """

    def __init__(self, code: str, message: str, remedy: str = "", position: tuple[int, int] | None = None) -> None:
        self.position = position
        place = f"line {position[0]}, column {position[1]}: " if position else ""
        super().__init__(code, f"{place}{message} Nothing was run or charged.", remedy)


def client_alone() -> ParameterError:
    """Make the refusal to open data where only the client is installed."""
    return ParameterError(
        "HB184", "this is the client alone: it has no engine to open data with.", "Install it: pip install hubbub"
    )
