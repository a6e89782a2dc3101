"""`kubectl delete` in any state ends clean."""

from tests.e2e.operated import Operated, a_job

PHASES = ("Pending", "Provisioning", "Starting", "Running")


def test_deleting_a_job_leaves_nothing_in_whatever_phase_it_is(operated: Operated, namespace: str) -> None:
    """One job for each phase, at the same time: most of this is waiting for grace periods."""
    jobs = {phase: f"deleted-{phase.lower()}" for phase in PHASES}
    operated.apply(
        *(
            # a program that ends at once does not use up its grace
            a_job(
                name,
                namespace=namespace,
                entrypoint="sleep 600",
                stopGracePeriodSeconds=600 if phase == "Running" else 5,
            )
            for phase, name in jobs.items()
            if phase != "Pending"
        )
    )
    operated.apply(a_job(jobs["Pending"], namespace=namespace))
    operated.delete_job(namespace, jobs["Pending"])
    left = {phase: name for phase, name in jobs.items() if phase != "Pending"}

    def deleted() -> bool:
        for job in operated.items("torchtpujobs", namespace=namespace):
            phase, name = job.get("status", {}).get("phase"), job["metadata"]["name"]
            if left.get(phase) == name:
                operated.delete_job(namespace, name)
                del left[phase]
            assert phase != "Failed", f"{name} failed: {job['status']['message']}\n{operated.picture()}"
        return not left

    operated.until("each job was deleted in its phase", deleted, seconds=240, every=0.2)
    operated.until("the jobs are gone", lambda: not operated.items("torchtpujobs", namespace=namespace), seconds=60)
    operated.until_clean(seconds=90)  # KubeRay's own init container sits out its grace of 30 s
    assert not operated.items("rayclusters", namespace=namespace)
    operated.until("the pods are gone", lambda: not operated.items("pods", namespace=namespace), seconds=60)
