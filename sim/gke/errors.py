"""What a call to the simulated GKE is refused with: Google's canonical codes and GKE's own wording."""

from enum import IntEnum


class Code(IntEnum):
    """google.rpc.Code, by number as in operation errors and by name as in gRPC."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16
    UNIMPLEMENTED = 12


class GkeError(Exception):
    """A call that GKE refused: nothing was created or changed (but see the lost-answer fault)."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


def invalid(message: str) -> GkeError:
    return GkeError(Code.INVALID_ARGUMENT, message)


def not_found(path: str) -> GkeError:
    return GkeError(Code.NOT_FOUND, f"Not found: {path}.")


def already_exists(path: str) -> GkeError:
    return GkeError(Code.ALREADY_EXISTS, f"Already exists: {path}.")


def busy(operation: str) -> GkeError:
    return GkeError(Code.FAILED_PRECONDITION, f"Cluster is running incompatible operation {operation}.")


def too_many_operations(limit: int) -> GkeError:
    return GkeError(
        Code.RESOURCE_EXHAUSTED,
        f"Too many operations: the cluster hits the concurrent operations quota {limit}. "
        "Please wait for running operations to finish and try again.",
    )
