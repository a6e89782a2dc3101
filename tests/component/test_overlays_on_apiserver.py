"""Pod overlays held against the real thing: kubectl's strategic merge, and an apiserver that judges every merged pod."""

import itertools
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sim import tools
from sim.control_plane import ApiServer
from tests.doubles.cluster_rig import install_crds, install_kuberay, wait_served
from tests.overlays import OVERLAYS, PAIRS, REFUSED_BY_ADMISSION, jobs
from torchtpu_operator.api import TorchTPUJob
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.api.validate import parse
from torchtpu_operator.plan.ray_cluster import WorkerPool, build_ray_cluster
from torchtpu_operator.plan.strategic_merge import merge

pytestmark = pytest.mark.timeout(180)

Json = dict[str, Any]
_KEYS = {
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "hostAliases": "ip",
} | dict.fromkeys(("containers", "initContainers", "env", "volumes", "imagePullSecrets", "resourceClaims"), "name")


def ray_cluster(document: Json) -> Json:
    job = parse({**document, "metadata": {**document["metadata"], "uid": "11111111-2222-3333-4444-555555555555"}})
    assert isinstance(job, TorchTPUJob)
    return build_ray_cluster(job, defaults=JobDefaults(), pools=[WorkerPool(name="pool-0")], attempt=1)


def pods(cluster: Json) -> dict[str, Json]:
    spec = cluster["spec"]
    templates = {
        "head": spec["headGroupSpec"]["template"],
        "worker": spec["workerGroupSpecs"][0]["template"],
    }
    return {
        role: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": role, "namespace": "default"},
            "spec": template["spec"],
        }
        for role, template in templates.items()
    }


def by_kubectl(base: Json, patch: Json, folder: Path) -> Json:
    file = folder / "pod.json"
    file.write_text(json.dumps(base))
    command = [str(tools.path("kubectl")), "patch", "--local", "-f", str(file), "--type=strategic", "-o", "json"]
    done = subprocess.run([*command, "-p", json.dumps(patch)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def as_kubectl_apply_would_send(base: Any, patch: Any, key: str = "") -> Any:
    """The patch with what kubectl apply adds from its memory of the last one: the choice that is taken back.

    `$retainKeys` for the lists that have it, null for the others.
    """
    if isinstance(patch, dict) and isinstance(base, dict):
        out = {name: as_kubectl_apply_would_send(base.get(name), value, name) for name, value in patch.items()}
        if key in ("readinessProbe", "livenessProbe", "startupProbe", "preStop", "postStart"):
            handlers = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}
            out |= dict.fromkeys((base.keys() & handlers) - patch.keys()) if patch.keys() & handlers else {}
        return out
    if isinstance(patch, list) and isinstance(base, list) and key in _KEYS:
        there = {entry[_KEYS[key]]: entry for entry in base}
        sent = []
        for entry in patch:
            before = there.get(entry[_KEYS[key]])
            if key in ("volumes", "resourceClaims"):
                sent.append({"$retainKeys": sorted(entry), **entry} if before else entry)
            elif key == "env" and before:
                sent.append({**dict.fromkeys(before.keys() - entry.keys()), **entry})
            else:
                sent.append(as_kubectl_apply_would_send(before, entry))
        return sent
    return patch


def in_one_order(value: Any, key: str = "") -> Any:
    """kubectl puts the patch's entries first; order is a question of its own (unit tests)."""
    if isinstance(value, dict):
        return {name: in_one_order(entry, name) for name, entry in value.items()}
    if isinstance(value, list):
        entries = [in_one_order(entry) for entry in value]
        return sorted(entries, key=lambda entry: str(entry[_KEYS[key]])) if key in _KEYS else entries
    return value


BASE = pods(ray_cluster(dict(jobs())["nothing"]))["worker"]


@pytest.mark.parametrize("overlay", OVERLAYS.values(), ids=OVERLAYS)
def test_a_merge_is_kubectl_s(overlay: Json, tmp_path: Path) -> None:
    base = BASE
    wanted = by_kubectl(base, as_kubectl_apply_would_send(base, overlay), tmp_path)
    assert in_one_order(merge(base, overlay)) == in_one_order(wanted)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_an_overlay_over_another_is_kubectl_s(pair: tuple[Json, Json], tmp_path: Path) -> None:
    under, over = pair
    base = merge(BASE, under)
    wanted = by_kubectl(base, as_kubectl_apply_would_send(base, over), tmp_path)
    assert in_one_order(merge(base, over)) == in_one_order(wanted)


def test_any_two_overlays_over_each_other_are_kubectl_s(tmp_path: Path) -> None:
    """Class and job write without knowing of each other: a sample of all pairs."""
    pairs = random.Random(20261130).sample(list(itertools.permutations(OVERLAYS, 2)), k=25)
    differing = []
    for under, over in pairs:
        ours, theirs = BASE, BASE
        for name in (under, over):
            theirs = by_kubectl(theirs, as_kubectl_apply_would_send(theirs, OVERLAYS[name]), tmp_path)
            ours = merge(ours, OVERLAYS[name])
        if in_one_order(ours) != in_one_order(theirs):
            differing.append((under, over))
    assert differing == []


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> Iterator[ApiServer]:
    install_crds(api_server)
    install_kuberay(api_server)
    wait_served(api_server, "torchtpujobs.torchtpu.dev", "rayclusters.ray.io")
    api_server.kubectl("create", "serviceaccount", "trainer")
    yield api_server
    api_server.kubectl("delete", "serviceaccount", "trainer")


def test_every_overlay_s_job_cluster_and_pods_pass_the_apiserver(server: ApiServer) -> None:
    """Unknown fields refused: what is misspelt in an overlay is found here, before anything is spent."""
    made: dict[str, str] = {}
    items = []
    for number, (overlay, document) in enumerate(jobs()):
        cluster = ray_cluster(document)
        for role, obj in {"job": document, "cluster": cluster, **pods(cluster)}.items():
            name = f"{role}-{number}-x"
            made[name] = overlay
            meta = {key: value for key, value in obj["metadata"].items() if key != "uid"}
            items.append({**obj, "metadata": {**meta, "name": name, "namespace": "default"}})
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    refused: list[str] = []
    try:
        server.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    except subprocess.CalledProcessError as error:
        refused = error.stderr.splitlines()
    found = {name: line for line in refused for name in made if f'"{name}"' in line}
    unexpected = [line for line in refused if line not in found.values()]
    others = {made[name]: line for name, line in found.items() if made[name] not in REFUSED_BY_ADMISSION}
    assert (unexpected, others, {made[name] for name in found}) == ([], {}, REFUSED_BY_ADMISSION)
