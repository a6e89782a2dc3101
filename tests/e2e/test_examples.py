"""The examples, as their users run them."""

import json
from typing import Any

from tests.e2e.operated import Operated, condition, example
from torchtpu_operator.api.timestamps import parse_time

LONGEST_NAME = "as-long-a-name-as-a-job-may-have-and-a-digit-at-its9"
RESOLVE = """
for host in ${TPU_WORKER_HOSTNAMES//,/ }; do getent hosts "$host" > /dev/null; done
getent hosts "$FQ_RAY_IP" > /dev/null
echo "all hosts resolve"
"""
WORLD, ORDER = "TORCHTPU_WORLD ", "TORCHTPU_ORDER "


def _head_log(operated: Operated, namespace: str) -> str:
    heads = operated.items("pods", namespace=namespace, selector="ray.io/node-type=head")
    return operated.bench.kubectl("logs", "-n", namespace, heads[0]["metadata"]["name"], "-c", "ray", "--tail=-1")


def _line(log: str, prefix: str) -> Any:
    return json.loads(next(line for line in log.splitlines() if line.startswith(prefix)).removeprefix(prefix))


def test_per_device_trains_on_16_workers_in_physical_order(operated: Operated, namespace: str) -> None:
    operated.apply(*example("train-v6e-4x4.yaml", namespace=namespace))
    seen: list[str] = []

    def over() -> bool:
        status = operated.job(namespace, "train-v6e-4x4").get("status", {})
        if (phase := status.get("phase")) and (not seen or seen[-1] != phase):
            seen.append(phase)
        return phase in ("Succeeded", "Failed")

    operated.until("the training is over", over, seconds=240, every=0.2)
    job = operated.job(namespace, "train-v6e-4x4")
    assert job["status"]["phase"] == "Succeeded", operated.picture()
    order = ["Pending", "Provisioning", "Starting", "Running", "Finishing", "Succeeded"]
    assert [phase for phase in order if phase in seen] == seen, "phases go one way"
    assert {"Provisioning", "Starting", "Running", "Succeeded"} <= set(seen)

    operated.bench.kubectl(
        "wait", "--for=condition=Complete", "torchtpujob/train-v6e-4x4", "-n", namespace, "--timeout=5s"
    )
    assert condition(job, "Ready")["status"] == "True"
    assert job["status"]["attempt"]["number"] == 1
    assert job["status"]["usage"]["chipSeconds"] > 0

    log = _head_log(operated, namespace)
    world = _line(log, WORLD)
    assert [(each["rank"], each["host"], each["device"]) for each in world["workers"]] == [
        (rank, rank // 4, rank % 4) for rank in range(16)
    ]
    losses = [float(line.split("loss ")[1].split()[0]) for line in log.splitlines() if "] epoch " in line]
    assert len(losses) == 5
    assert losses[-1] < losses[0] / 2

    events = operated.events(namespace, "train-v6e-4x4")
    story = ["AttemptStarted", "RayClusterReady", "JobSubmitted", "JobRunning", "AttemptSucceeded", "Completed"]
    counted = {reason: sum(each.get("count", 1) for each in events if each["reason"] == reason) for reason in story}
    assert counted == dict.fromkeys(story, 1), "each event tells its part of the story once"
    operated.until_clean(seconds=30)


def test_two_slices_are_one_world_and_their_workers_go_within_2_s_of_the_end(
    operated: Operated, namespace: str
) -> None:
    """Under the longest name that a job may have: names and DNS are cut from it."""
    objects = example("hello-v6e-2x4.yaml", namespace=namespace, numSlices=2)
    [asked] = [each for each in objects if each["kind"] == "TorchTPUJob"]
    asked["metadata"]["name"] = LONGEST_NAME
    asked["spec"]["entrypoint"] += RESOLVE
    operated.apply(*objects)
    job = operated.until_phase(namespace, LONGEST_NAME, "Succeeded", seconds=240)
    log = _head_log(operated, namespace)
    assert [(each["slice"], each["host"], each["device"]) for each in _line(log, WORLD)["workers"]] == [
        (rank // 8, rank % 8 // 4, rank % 4) for rank in range(16)
    ]
    assert (log.count("] my address is "), log.count("] all hosts resolve")) == (16, 16)
    cluster = operated.get("raycluster", job["status"]["attempt"]["rayCluster"], namespace=namespace)
    assert cluster is not None, "the head stays for its logs"
    assert [group["replicas"] for group in cluster["spec"]["workerGroupSpecs"]] == [0, 0]
    ended = parse_time(job["status"]["attempt"]["endedAt"])
    [ours] = [each for each in cluster["metadata"]["managedFields"] if each["manager"] == "torchtpu-operator"]
    assert (parse_time(ours["time"]) - ended).total_seconds() <= 2, (
        "our last write to the RayCluster took the hosts away"
    )


def test_unchanged_torch_trainer_runs_in_physical_order(operated: Operated, namespace: str) -> None:
    operated.apply(*example("driver-v6e-4x4.yaml", namespace=namespace))
    job = operated.until_phase(namespace, "driver-v6e-4x4", "Succeeded", seconds=400)
    assert job["status"]["attempt"]["number"] == 1
    log = _head_log(operated, namespace)
    assert all(f"epoch {epoch}  loss" in log for epoch in range(5)), "its output is in the head's log too"
    assert log.count(ORDER) == 1, "the callback writes there itself, and is not copied"
    order = _line(log, ORDER)
    assert order["after"] == [f"{rank // 4}:{rank % 4}" for rank in range(16)]
    assert sorted(order["before"]) == sorted(order["after"]), "the order that Ray Train had is reported too"


def test_a_driver_with_its_own_runtime_env_works(operated: Operated, namespace: str) -> None:
    operated.apply(*example("driver-runtime-env-v6e-2x2.yaml", namespace=namespace))
    operated.until_phase(namespace, "driver-runtime-env-v6e-2x2", "Succeeded", seconds=400)


def test_torchrun_gets_hosts_and_rendezvous_without_a_flag(operated: Operated, namespace: str) -> None:
    smaller = {"topology": "2x4", "chipsPerHost": 4, "entrypoint": "torchrun train.py --epochs 2"}
    operated.apply(*example("torchrun-v6e-4x4.yaml", namespace=namespace, **smaller))
    operated.until_phase(namespace, "torchrun-v6e-4x4", "Succeeded", seconds=300)
    log = _head_log(operated, namespace)
    places = log.split("ranks on host:device ")[1].split("\n")[0].split()
    losses = [float(line.split("loss ")[1]) for line in log.splitlines() if "] epoch " in line]
    assert (places, len(losses), losses[-1] < losses[0]) == (
        [f"{rank // 4}:{rank % 4}" for rank in range(8)],
        2,
        True,
    )
