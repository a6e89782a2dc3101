"""When a job that broke off is started again."""

from pydantic import Field

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiEnum, ApiModel


class Backoff(ApiModel):
    """Wait between two attempts: doubled with every restart of the job so far, up to a limit."""

    initial_seconds: int = Field(
        default=10,
        description="Wait before the first restart, in seconds. Its clock starts when the attempt has ended; lost "
        "slices are replaced meanwhile.",
        ge=0,
        le=86400,
    )
    max_seconds: int = Field(default=600, description="Longest wait before a restart, in seconds.", ge=0, le=86400)


class ExitCodeOperator(ApiEnum):
    """How the exit code is compared."""

    IN = "In", "the exit code is one of values"
    NOT_IN = "NotIn", "the exit code is none of values"


class OnExitCodes(ApiModel):
    """Matches the exit code of the rank that failed first."""

    operator: ExitCodeOperator = Field(description="How the exit code is compared with values.")
    values: tuple[int, ...] = Field(
        description="Exit codes, each 1 to 255. Example: [42, 137].", min_length=1, max_length=255
    )


class FailureAction(ApiEnum):
    """What a failure means."""

    FAIL = "Fail", "the job fails at once"
    RESTART = "Restart", "the job is restarted, which counts in maxRestarts"
    IGNORE = "Ignore", "the job is restarted, which counts in maxDisruptions"


class FailureRule(ApiModel):
    """What to do about failures with certain exit codes."""

    action: FailureAction = Field(description="What happens when the rule matches.")
    on_exit_codes: OnExitCodes = Field(description="Exit codes of the entrypoint that the rule is about.")


class FailurePolicy(ApiModel):
    """When a job that broke off is started again. A failure is the program's, a disruption the platform's; an attempt
    that ends by suspend or by a deadline counts as neither."""

    max_restarts: int = Field(
        default=0,
        description="Restarts after failures of the entrypoint, over the life of the job. 0: the first failure ends it.",
        ge=0,
        le=1000000,
    )
    max_disruptions: int = Field(
        default=20,
        description="Restarts after disruptions, over the life of the job: preemption, maintenance, a lost host or "
        "head, and the first two starts in a row that break before the program runs.",
        ge=0,
        le=1000000,
    )
    backoff: Backoff = Field(default=Backoff(), description="Wait between two attempts.")
    no_progress_seconds: int | None = Field(
        default=None,
        description="End an attempt, as a failure, when no rank has printed a line or touched the file "
        "$TORCHTPU_HEARTBEAT_FILE for so many seconds; the stacks of all ranks go to the log first. Its clock starts "
        "with the program, and again with each sign of life. Not with launcher Driver. A change reaches the program "
        "with its next attempt. Unset: never. Example: 1800.",
        ge=60,
        le=constants.MAX_INT,
    )
    rules: tuple[FailureRule, ...] = Field(
        default=(),
        description="Rules by exit code; the first one that matches decides. Without a match, or without an exit code: "
        "Restart. Example: [{action: Fail, onExitCodes: {operator: In, values: [2]}}].",
        max_length=20,
    )
