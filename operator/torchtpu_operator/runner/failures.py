"""How a run can end badly, with the reason, exit code and next step that a person reads."""

from .constants import (
    EXIT_BAD_CONFIG,
    EXIT_BAD_WORLD,
    EXIT_HOST_LOST,
    EXIT_NO_PROGRESS,
    EXIT_RESERVE_TIMEOUT,
    EXIT_RUNNER_ERROR,
    EXIT_STOPPED,
    REASON_BAD_CONFIG,
    REASON_CHIP_VISIBILITY,
    REASON_HOST_LOST,
    REASON_NO_PROGRESS,
    REASON_PLACEMENT_GROUP_TIMEOUT,
    REASON_PORT_IN_USE,
    REASON_RUNNER_ERROR,
    REASON_STOPPED,
    REASON_WORKER_DIED,
    REASON_WORKER_ENV_MISMATCH,
    REASON_WORKER_ID_CONFLICT,
    REASON_WORKER_INIT_TIMEOUT,
)

EXIT_CODES = {
    REASON_BAD_CONFIG: EXIT_BAD_CONFIG,
    REASON_PLACEMENT_GROUP_TIMEOUT: EXIT_RESERVE_TIMEOUT,
    REASON_WORKER_INIT_TIMEOUT: EXIT_RESERVE_TIMEOUT,
    REASON_WORKER_ENV_MISMATCH: EXIT_BAD_WORLD,
    REASON_WORKER_ID_CONFLICT: EXIT_BAD_WORLD,
    REASON_CHIP_VISIBILITY: EXIT_BAD_WORLD,
    REASON_PORT_IN_USE: EXIT_BAD_WORLD,
    REASON_HOST_LOST: EXIT_HOST_LOST,
    REASON_WORKER_DIED: EXIT_HOST_LOST,
    REASON_NO_PROGRESS: EXIT_NO_PROGRESS,
    REASON_STOPPED: EXIT_STOPPED,
    REASON_RUNNER_ERROR: EXIT_RUNNER_ERROR,
}


class RunnerError(Exception):
    """The run ends without a verdict of the entrypoint; `reason` is one of constants.REASONS."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def exit_code(self) -> int:
        """Exit code of the Ray job's driver."""
        return EXIT_CODES[self.reason]
