"""What the properties of the three planners are drawn from in common."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.builders import SliceBuilder, a_failure
from torchtpu_operator.plan.observed import FailureClass

MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

failures = st.builds(
    lambda failure, wait: a_failure(failure, retry_after=wait),
    st.sampled_from(FailureClass),
    st.sampled_from([None, 7.0]),
)
ages = st.sampled_from([0, 1, 30, 61, 100, 601, 2701, 20000])


def in_state(made: SliceBuilder, kind: str) -> SliceBuilder:
    """The slice as far as `kind` says."""
    match kind:
        case "asked":
            return made.asked("operation-1")
        case "ready":
            return made.ready()
        case "degraded":
            return made.degraded()
        case "failed":
            return made.failed()
        case "going":
            return made.ready().deleted()
    return made
