"""The operator is killed with SIGKILL at every stage of one job: it ends well, submitted once, and leaves nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.e2e.operated import Operated, example

Status = dict[str, Any]


def _attempt(status: Status) -> Status:
    found: Status = status.get("attempt", {})
    return found


STAGES: dict[str, Callable[[Status], bool]] = {
    "Pending": lambda status: status.get("phase") in ("Pending", "Provisioning"),
    "Provisioning": lambda status: status.get("phase") in ("Provisioning", "Starting") and bool(status.get("slices")),
    "Starting": lambda status: bool(_attempt(status).get("startedAt")),
    "just before the submission": lambda status: bool(_attempt(status).get("submitRecordedAt")),
    "just after the submission": lambda status: bool(_attempt(status).get("submittedAt")),
    "Running": lambda status: status.get("phase") in ("Running", "Finishing", "Succeeded"),
    "Finishing": lambda status: bool(_attempt(status).get("endedAt")),
}


def test_a_job_survives_the_death_of_the_operator_at_every_stage(operated: Operated, namespace: str) -> None:
    name = "hello-v6e-2x4"
    entrypoint = 'echo "started on $RANK" && sleep 20'
    operated.apply(*example("hello-v6e-2x4.yaml", namespace=namespace, entrypoint=entrypoint))

    def look(reached: Callable[[Status], bool]) -> bool:
        return reached(operated.job(namespace, name).get("status", {}))

    for stage, reached in STAGES.items():
        operated.until(f"the job reaches: {stage}", partial(look, reached), seconds=120, every=0.1)
        operated.kill_operator()
    job = operated.until_phase(namespace, name, "Succeeded", seconds=180)
    assert job["status"]["attempt"]["number"] == 1, "no attempt was lost to the operator's death"
    assert job["status"].get("disruptions", 0) == job["status"].get("restarts", 0) == 0
    heads = operated.items("pods", namespace=namespace, selector="ray.io/node-type=head")
    log = operated.bench.kubectl("logs", "-n", namespace, heads[0]["metadata"]["name"], "-c", "ray", "--tail=-1")
    for rank in range(8):
        assert log.count(f"started on {rank}\n") == 1, "the Ray job was submitted once"
    operated.until_clean(seconds=60)
