"""Back-off: bounded, growing, spread, and the same after a restart; every kind of refusal has words and a next action."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_failure
from torchtpu_operator.plan.observed import FailureClass
from torchtpu_operator.plan.reasons import NEXT, REASONS, explain, reason_of
from torchtpu_operator.plan.retry import RULES, delay

classes = st.sampled_from(FailureClass)
counts = st.integers(1, 10_000)
uids = st.text(min_size=1, max_size=40)


def test_every_class_of_failure_has_its_rule_reason_and_next_action() -> None:
    assert (set(RULES), set(REASONS), set(NEXT)) == (set(FailureClass),) * 3


@settings(derandomize=True)
@given(classes, counts, uids)
def test_a_delay_is_bounded_and_never_hasty(failure: FailureClass, count: int, uid: str) -> None:
    rule = RULES[failure]
    seconds = delay(a_failure(failure), count=count, uid=uid)
    assert 0.8 * min(rule.first, rule.cap) <= seconds <= 1.2 * rule.cap


@settings(derandomize=True)
@given(classes, counts, uids)
def test_a_delay_is_a_function_of_uid_and_count(failure: FailureClass, count: int, uid: str) -> None:
    failed = a_failure(failure)
    assert delay(failed, count=count, uid=uid) == delay(failed, count=count, uid=uid)


@settings(derandomize=True)
@given(classes, counts, uids, st.floats(0, 3600))
def test_what_the_other_side_asks_for_is_waited_at_least(
    failure: FailureClass, count: int, uid: str, seconds: float
) -> None:
    assert delay(a_failure(failure, retry_after=seconds), count=count, uid=uid) >= seconds


def test_delays_double_up_to_the_cap() -> None:
    delays = [delay(a_failure(FailureClass.BUSY), count=count, uid="u") for count in (1, 2, 3, 4, 5, 6)]
    assert [0.8 * base <= each <= 1.2 * base for base, each in zip((5, 10, 20, 40, 60, 60), delays, strict=True)] == [
        True
    ] * 6


def test_a_fleet_does_not_knock_in_step() -> None:
    delays = {delay(a_failure(FailureClass.PERMISSION), count=5, uid=f"job-{number}") for number in range(100)}
    assert len(delays) > 95


def test_a_line_says_what_failed_what_was_said_and_what_to_do() -> None:
    denied = a_failure(FailureClass.PERMISSION, message=" denied ")
    assert (reason_of(denied).value, explain(denied)) == (
        "PermissionDenied",
        "CreateNodePool: denied (grant the operator's service account the permission that the message names)",
    )
