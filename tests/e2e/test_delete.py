"""`kubectl delete` in any state ends clean."""

import pytest

from tests.e2e.operated import Operated, a_job


@pytest.mark.parametrize("phase", ["Pending", "Provisioning", "Starting", "Running"])
def test_deleting_a_job_leaves_nothing(operated: Operated, namespace: str, phase: str) -> None:
    operated.apply(a_job("short-lived", namespace=namespace, entrypoint="sleep 600", stopGracePeriodSeconds=5))
    if phase != "Pending":
        operated.until_phase(namespace, "short-lived", phase)
    operated.delete_job(namespace, "short-lived")
    operated.until(
        "the job is gone", lambda: operated.get("torchtpujob", "short-lived", namespace=namespace) is None, seconds=60
    )
    operated.until_clean(seconds=90)  # KubeRay's own init container sits out its grace of 30 s
    assert not operated.items("rayclusters", namespace=namespace)
    operated.until("its pods are gone", lambda: not operated.items("pods", namespace=namespace), seconds=30)
