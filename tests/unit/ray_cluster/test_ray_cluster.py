"""The manifests of an attempt: golden files for whole RayClusters, single questions for the rest."""

import base64
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from torchtpu_operator.api import TorchTPUJob
from torchtpu_operator.api.pod import PodTemplate
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.api.validate import parse
from torchtpu_operator.plan import ray_cluster
from torchtpu_operator.plan.observed import RayJobSeen
from torchtpu_operator.plan.ray_cluster import ImageMissingError, WorkerPool
from torchtpu_operator.plan.ray_pods import worker_cpu, worker_memory_gib
from torchtpu_operator.plan.runner_files import runner_modules
from torchtpu_operator.runner import constants as runner
from torchtpu_operator.runner.settings import read_settings
from torchtpu_operator.tpu import CATALOGUE, resolve

GOLDEN = Path(__file__).parents[2] / "golden" / "ray_cluster"
UID = "11111111-2222-3333-4444-555555555555"


def jobs() -> dict[str, TorchTPUJob]:
    found = {}
    for document in yaml.safe_load_all((GOLDEN / "jobs.yaml").read_text()):
        job = parse(document)
        assert isinstance(job, TorchTPUJob)
        found[job.metadata.name] = job
    return found


JOBS = jobs()
ANY = JOBS["per-device-v6e-4x4"]


def build(job: TorchTPUJob, *, defaults: JobDefaults | None = None, attempt: int = 1) -> dict[str, Any]:
    pools = [WorkerPool(name=f"pool-{index}") for index in range(job.spec.num_slices)]
    return ray_cluster.build_ray_cluster(job, defaults=defaults or JobDefaults(), pools=pools, attempt=attempt)


def changed(job: TorchTPUJob, **spec: Any) -> TorchTPUJob:
    document = job.to_object()
    document["spec"] |= spec
    return TorchTPUJob.from_object(document)


def without_runner_files(manifest: dict[str, Any]) -> dict[str, Any]:
    """The list of the runner's modules is a question of its own."""
    for template in templates(manifest):
        for volume in template["spec"]["volumes"]:
            if volume["name"] == "torchtpu-runner":
                volume["configMap"]["items"] = "every module of the runner, and the entrypoint"
    return manifest


def templates(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest["spec"]
    return [spec["headGroupSpec"]["template"], *(group["template"] for group in spec["workerGroupSpecs"])]


def main_container(template: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = template["spec"]["containers"][0]
    assert container["name"] == "ray"
    return container


def env_of(template: dict[str, Any]) -> dict[str, Any]:
    entries = main_container(template)["env"]
    assert len({entry["name"] for entry in entries}) == len(entries)
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in entries}


@pytest.mark.parametrize("name", JOBS)
def test_golden_manifest(name: str, rewrite_golden: bool) -> None:
    manifest = without_runner_files(build(JOBS[name]))
    path = GOLDEN / f"{name}.yaml"
    if rewrite_golden:
        path.write_text(yaml.safe_dump(manifest, sort_keys=False, width=120))
    assert manifest == yaml.safe_load(path.read_text())


def test_runner_volume_holds_every_module_and_the_entrypoint() -> None:
    volume = templates(build(ANY))[0]["spec"]["volumes"][0]
    config_map = ray_cluster.build_runner_config_map(ANY, attempt=1)
    paths = {item["key"]: item["path"] for item in volume["configMap"]["items"]}
    assert (volume["configMap"]["name"], paths, set(config_map["data"])) == (
        config_map["metadata"]["name"],
        {name: f"torchtpu_runner/{name}" for name in runner_modules()} | {"entrypoint": "entrypoint"},
        set(paths),
    )


def test_entrypoint_arrives_as_it_was_written() -> None:
    text = "cat <<'E' | python - \"$HOME\" && false\nprint('$(NAME) $$')\nE\n" + "x" * 50_000
    config_map = ray_cluster.build_runner_config_map(changed(ANY, entrypoint=text), attempt=1)
    assert (config_map["data"]["entrypoint"], config_map["immutable"]) == (text, True)


def test_token_is_in_the_secret_that_the_pods_read() -> None:
    secret = ray_cluster.build_auth_secret(ANY, attempt=1, token="s3cret")
    reference = env_of(templates(build(ANY))[1])["RAY_AUTH_TOKEN"]["secretKeyRef"]
    assert (reference, base64.b64decode(secret["data"][reference["key"]])) == (
        {"name": secret["metadata"]["name"], "key": "auth_token"},
        b"s3cret",
    )


def test_another_attempt_shares_no_name_with_the_first() -> None:
    first, second = build(ANY, attempt=1), build(ANY, attempt=2)
    names = [
        {
            manifest["metadata"]["name"],
            env_of(templates(manifest)[1])["TPU_NAME"],
            templates(manifest)[0]["spec"]["volumes"][0]["configMap"]["name"],
        }
        for manifest in (first, second)
    ]
    assert names[0] & names[1] == set()
    assert env_of(templates(second)[0])[runner.ENV_RESTARTS] == "1"


def test_what_is_kept_of_an_attempt_that_broke_off() -> None:
    failed = RayJobSeen(
        submission_id="x",
        status="FAILED",
        exit_code=1,
        result={"reason": "EntrypointFailed", "exitCode": 7, "rank": 0, "pod": "w-0", "lastLines": ["unused"]},
        last_lines=("Traceback", "ValueError: ü"),
    )
    kept = ray_cluster.build_failure_config_map(ANY, failed, attempt=2)
    assert kept["metadata"]["name"] == f"{build(ANY, attempt=2)['metadata']['name']}-failure"
    assert kept["metadata"]["ownerReferences"][0]["kind"] == "TorchTPUJob"
    assert kept["data"] == {
        "reason": "EntrypointFailed",
        "exitCode": "7",
        "rank": "0",
        "pod": "w-0",
        "lastLines": "Traceback\nValueError: ü\n",
    }


def test_operator_sets_just_what_the_runner_knows_of() -> None:
    """Every reserved name of the operator is set somewhere, and nothing of the runner's namespace besides."""
    everything = changed(
        JOBS["driver-v6e-4x4"],
        checkpointDir="gs://a/b",
        accelerator="v7x",
        topology="2x2x2",
        numSlices=2,
        failurePolicy={"noProgressSeconds": 600},
    )
    names = {name for template in templates(build(everything)) for name in env_of(template)}
    ours = {name for name in names if name.startswith(("TORCHTPU_", "TPU_"))} | {
        runner.ENV_RAY_TRAIN_CALLBACKS,
        runner.ENV_RAY_TPU_RESOURCE_PER_CHIP,
    }
    assert (ours, names >= ours) == (set(runner.OPERATOR_ENV), True)


def test_v7x_counts_devices_on_every_ray_process() -> None:
    manifest = build(JOBS["single-host-v7x-2x2x1"])
    group = manifest["spec"]["workerGroupSpecs"][0]
    assert (
        [env_of(template)["RAY_TPU_RESOURCE_PER_CHIP"] for template in templates(manifest)],
        group["rayStartParams"],
        main_container(group["template"])["resources"]["limits"]["google.com/tpu"],
    ) == (["2", "2"], {"resources": '"{\\"TPU\\": 8}"'}, "4")


def test_sixteen_slices_are_sixteen_groups_on_sixteen_pools() -> None:
    groups = build(changed(ANY, numSlices=16))["spec"]["workerGroupSpecs"]
    assert [
        (g["groupName"], g["numOfHosts"], g["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-nodepool"])
        for g in groups
    ] == [(f"s{index}", 4, f"pool-{index}") for index in range(16)]


def test_taints_of_the_class_are_tolerated() -> None:
    pool = WorkerPool(name="pool-0", taints=(("team", "ml", "NoSchedule"),))
    manifest = ray_cluster.build_ray_cluster(ANY, defaults=JobDefaults(), pools=[pool], attempt=1)
    assert templates(manifest)[1]["spec"]["tolerations"] == [
        {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "torchtpu.dev/slice", "operator": "Equal", "value": "pool-0", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
    ]


def test_overlay_of_the_class_lies_under_the_job_s() -> None:
    template = PodTemplate.model_validate(
        {
            "metadata": {"labels": {"from": "class", "tier": "a"}},
            "spec": {"containers": [{"name": "ray", "env": [{"name": "A", "value": "class"}]}]},
        }
    )
    job = changed(ANY, env=[{"name": "A", "value": "job"}], template={"metadata": {"labels": {"from": "job"}}})
    head = templates(build(job, defaults=JobDefaults(template=template)))[0]
    labels = head["metadata"]["labels"]
    assert (labels["from"], labels["tier"], env_of(head)["A"]) == ("job", "a", "job")


def test_what_is_the_operator_s_stays_even_against_an_old_overlay() -> None:
    """A class may have been stored before a name was reserved: rules judge writes, not what is stored."""
    template = PodTemplate.model_validate(
        {
            "metadata": {"labels": {"torchtpu.dev/job": "other"}},
            "spec": {
                "restartPolicy": "Always",
                "nodeSelector": {"cloud.google.com/gke-nodepool": "other"},
                "volumes": [{"name": "torchtpu-runner", "emptyDir": {}}],
                "containers": [
                    {"name": "first", "image": "a"},
                    {
                        "name": "ray",
                        "command": ["sleep"],
                        "env": [{"name": "TPU_NAME", "value": "other"}, {"name": "TORCHTPU_SLICES", "value": "[]"}],
                        "resources": {"limits": {"google.com/tpu": 1}},
                    },
                ],
            },
        }
    )
    plain, overlaid = (build(ANY, defaults=JobDefaults(template=t)) for t in (None, template))
    worker, wanted = templates(overlaid)[1], templates(plain)[1]
    first = worker["spec"]["containers"].pop()
    assert (first, worker["metadata"]["labels"]) == ({"name": "first", "image": "a"}, wanted["metadata"]["labels"])
    assert env_of(worker) == env_of(wanted)
    worker["spec"]["containers"][0]["env"] = wanted["spec"]["containers"][0]["env"]
    assert worker["spec"] == wanted["spec"]


PYTHON_PATHS = {
    "an image without one": ({}, {}, "/opt/torchtpu"),
    "the image's own": ({}, {"PYTHONPATH": "/app:/lib"}, "/opt/torchtpu:/app:/lib"),
    "a folder of code": (
        {"workingDir": {"configMap": {"name": "code"}}},
        {"PYTHONPATH": "/app"},
        "/opt/torchtpu:/opt/torchtpu-job/code:/app",
    ),
}


@pytest.mark.parametrize(("spec", "image", "want"), PYTHON_PATHS.values(), ids=PYTHON_PATHS)
def test_runner_goes_before_what_the_image_has_on_its_python_path(
    spec: dict[str, Any], image: dict[str, str], want: str
) -> None:
    told = []
    for template in templates(build(changed(ANY, **spec))):
        (before,) = template["spec"]["containers"][0]["args"]
        command = ["bash", "-c", f"{before} && printf %s $PYTHONPATH"]
        told.append(subprocess.run(command, env=image, check=True, capture_output=True, text=True).stdout)
    assert set(told) == {want}


def test_python_path_of_the_user_stays_as_it_is() -> None:
    source = {"configMapKeyRef": {"name": "paths", "key": "python"}}
    head = templates(build(changed(ANY, env=[{"name": "PYTHONPATH", "valueFrom": source}])))[0]
    assert env_of(head)["PYTHONPATH"] == source


BOUNDS = {
    "least": {"stopGracePeriodSeconds": 0, "failurePolicy": {"noProgressSeconds": 60}},
    "highest": {"stopGracePeriodSeconds": 3600, "failurePolicy": {"noProgressSeconds": 2**31 - 1}},
    "unset": {},
}


@pytest.mark.parametrize("spec", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_runner_reads_what_the_operator_writes(job: TorchTPUJob, spec: dict[str, Any]) -> None:
    env = {name: value for name, value in env_of(templates(build(changed(job, **spec)))[0]).items() if value}
    settings = read_settings(env)
    policy = spec.get("failurePolicy", {})
    assert (settings.stop_grace_seconds, settings.no_progress_seconds) == (
        spec.get("stopGracePeriodSeconds", job.spec.stop_grace_period_seconds),
        policy.get("noProgressSeconds"),
    )


def test_reference_in_a_path_is_no_reference() -> None:
    head = templates(build(changed(ANY, checkpointDir="gs://a/$(date)")))[0]
    assert env_of(head)["TORCHTPU_CHECKPOINT_DIR"] == "gs://a/$$(date)"


def test_image_of_the_class_is_taken_when_the_job_has_none() -> None:
    job = TorchTPUJob.from_object({**ANY.to_object(), "spec": {**ANY.to_object()["spec"], "image": None}})
    manifest = build(job, defaults=JobDefaults(image="example.com/ray:1", ray_version="2.61.0"))
    assert {main_container(template)["image"] for template in templates(manifest)} == {"example.com/ray:1"}
    with pytest.raises(ImageMissingError, match=r"jobDefaults\.image"):
        build(job)


def test_worker_fits_the_smallest_machine_of_its_kind() -> None:
    for name, generation in CATALOGUE.items():
        for topology, choices in generation.shapes.items():
            for chips in choices:
                shape = resolve(name, topology, chips_per_host=chips)
                assert 0 < worker_cpu(shape) < shape.vcpu - 1
                assert 0 < worker_memory_gib(shape) * 2**30 < shape.memory_gb * 10**9 - 2 * 2**30


def test_every_shape_is_made_of_as_many_pods_with_as_many_chips() -> None:
    for name, generation in CATALOGUE.items():
        for topology, choices in generation.shapes.items():
            for chips in choices:
                job = changed(ANY, accelerator=name, topology=topology, chipsPerHost=chips)
                (group,) = build(job)["spec"]["workerGroupSpecs"]
                limit = int(main_container(group["template"])["resources"]["limits"]["google.com/tpu"])
                whole = math.prod(int(edge) for edge in topology.split("x"))
                assert (limit, group["numOfHosts"] * limit, group["replicas"]) == (chips, whole, 1)


RESOURCES = {
    "a request alone raises our limit with it": (
        {"requests": {"cpu": 8, "memory": "32Gi"}},
        {"requests": {"cpu": 8, "memory": "32Gi"}, "limits": {"memory": "32Gi"}},
    ),
    "a limit alone is the request too": (
        {"limits": {"cpu": "500m", "memory": "2Gi"}},
        {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"cpu": "500m", "memory": "2Gi"}},
    ),
    "both stand as they are": (
        {"requests": {"memory": "8Gi"}, "limits": {"memory": "16Gi"}},
        {"requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"memory": "16Gi"}},
    ),
    "another resource is added": (
        {"requests": {"ephemeral-storage": "10Gi"}},
        {"requests": {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "10Gi"}, "limits": {"memory": "4Gi"}},
    ),
}


@pytest.mark.parametrize(("asked", "want"), RESOURCES.values(), ids=RESOURCES)
def test_resources_of_the_head(asked: dict[str, Any], want: dict[str, Any]) -> None:
    overlay = {"template": {"spec": {"containers": [{"name": "ray", "resources": asked}]}}}
    assert main_container(templates(build(changed(ANY, head=overlay)))[0])["resources"] == want


RUNNER = "export PYTHONPATH=/opt/torchtpu${PYTHONPATH:+:$PYTHONPATH}; exec python -m torchtpu_runner"
RAY_S_OWN = {
    "working_dir": "gs://acme/code.zip",
    "pip": ["--extra-index-url https://pypi.acme.dev/simple", "einops==0.8.1", "./wheels/acme.whl"],
    "py_modules": ["gs://acme/lib.zip"],
    "excludes": ["*.ckpt"],
    "config": {"setup_timeout_seconds": 1800, "eager_install": False},
    "from_the_future": {"a": [1, None]},
}
SUBMISSIONS = {
    "Ray's own words pass as they are": (changed(ANY, runtimeEnv=RAY_S_OWN), runner.RUNNER_COMMAND, RAY_S_OWN),
    "PerDevice: the runner": (ANY, RUNNER, {}),
    "Driver: what runs the user's own text": (JOBS["driver-v6e-4x4"], f"{RUNNER}.command", {}),
    "a zip as working directory, and the user's own runtime_env": (
        changed(ANY, workingDir={"uri": "gs://a/b.zip"}, runtimeEnv={"pip": ["einops"], "env_vars": {"A": "1"}}),
        RUNNER,
        {"working_dir": "gs://a/b.zip", "pip": ["einops"], "env_vars": {"A": "1"}},
    ),
}


@pytest.mark.parametrize(("job", "entrypoint", "runtime_env"), SUBMISSIONS.values(), ids=SUBMISSIONS)
def test_submission(job: TorchTPUJob, entrypoint: str, runtime_env: dict[str, Any]) -> None:
    assert (ray_cluster.ray_entrypoint(job), ray_cluster.build_runtime_env(job)) == (entrypoint, runtime_env)


HASHES = {
    "another image ends an attempt": ({"image": "example.com/ray:2"}, False),
    "another overlay ends an attempt": ({"template": {"spec": {"hostNetwork": True}}}, False),
    "another deadline does not": ({"activeDeadlineSeconds": 60}, True),
    "suspend does not by itself": ({"suspend": True}, True),
}


@pytest.mark.parametrize(("spec", "same"), HASHES.values(), ids=HASHES)
def test_attempt_hash(spec: dict[str, Any], same: bool) -> None:
    assert (ray_cluster.attempt_hash(changed(ANY, **spec)) == ray_cluster.attempt_hash(ANY)) is same
