"""What overlays may do to the pods of head and workers, and what they never do."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.kubelet.env import build_container_env
from tests.overlays import OVERLAYS, ray, spec
from tests.spec_cases import job
from torchtpu_operator.api import TorchTPUJob
from torchtpu_operator.api.pod import PodTemplate
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.api.validate import parse
from torchtpu_operator.plan.ray_cluster import WorkerPool, build_ray_cluster
from torchtpu_operator.plan.strategic_merge import merge
from torchtpu_operator.runner.constants import OPERATOR_ENV

Json = dict[str, Any]


def pods(overlay: Json, *, class_overlay: Json | None = None, **fields: Any) -> list[Json]:
    """Templates of head and worker under an overlay for both."""
    document = job(template=overlay, **fields)
    document["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    parsed = parse(document)
    assert isinstance(parsed, TorchTPUJob)
    defaults = JobDefaults(template=PodTemplate.model_validate(class_overlay) if class_overlay else None)
    manifest = build_ray_cluster(parsed, defaults=defaults, pools=[WorkerPool(name="pool-0")], attempt=1)["spec"]
    return [manifest["headGroupSpec"]["template"], manifest["workerGroupSpecs"][0]["template"]]


def main(template: Json) -> Json:
    container: Json = template["spec"]["containers"][0]
    assert container["name"] == "ray"
    return container


def owned(template: Json) -> Json:
    """What is the operator's, whatever lies over it."""
    container, pod = main(template), template["spec"]
    return {
        "env": {
            e["name"]: e for e in container["env"] if e["name"] in OPERATOR_ENV or e["name"].startswith("RAY_AUTH")
        },
        "start command": [container.get(field) for field in ("command", "args")],
        "chips": [container["resources"].get(kind, {}).get("google.com/tpu") for kind in ("requests", "limits")],
        "selector": {key: value for key, value in pod.get("nodeSelector", {}).items() if "gke" in key},
        "tolerated": [each for each in pod.get("tolerations", ()) if each.get("key") != "team"][:2],
        "restart policy": pod["restartPolicy"],
        "runner": [v for v in pod["volumes"] if v["name"] == "torchtpu-runner"],
        "mount": [m for m in container["volumeMounts"] if m["mountPath"] == "/opt/torchtpu"],
        "labels": {key: value for key, value in template["metadata"]["labels"].items() if key.startswith("torchtpu")},
        "waits for the head": [c["command"] for c in pod.get("initContainers", ()) if c["name"].startswith("torchtpu")],
    }


@pytest.mark.parametrize("overlay", OVERLAYS.values(), ids=OVERLAYS)
def test_what_is_the_operator_s_stays_under_every_overlay(overlay: Json) -> None:
    plain, got = pods({})[1], pods(overlay)[1]
    assert owned(got) == owned(plain)


@pytest.mark.parametrize("overlay", OVERLAYS.values(), ids=OVERLAYS)
def test_an_overlay_is_not_changed_by_being_laid(overlay: Json) -> None:
    before = json.dumps(overlay)
    pods(overlay)
    assert json.dumps(overlay) == before


def test_null_takes_away_what_lies_below() -> None:
    """Through the whole object, as the apiserver keeps it, and not in the merge alone."""
    below = spec(affinity={"podAffinity": {}}, dnsPolicy="None", securityContext={"fsGroup": 1, "runAsUser": 0})
    above = spec(affinity=None, dnsPolicy=None, securityContext={"fsGroup": None})
    probe = ray(livenessProbe=None)
    head, worker = pods(below, head={"template": above}, worker={"template": probe})
    fields = ("affinity", "dnsPolicy", "securityContext")
    assert [[template["spec"].get(field) for field in fields] for template in (head, worker)] == [
        [None, None, {"runAsUser": 0}],
        [{"podAffinity": {}}, "None", {"fsGroup": 1, "runAsUser": 0}],
    ]
    assert ["livenessProbe" in main(template) for template in (head, worker)] == [True, False]


class Everything:
    """ConfigMaps and Secrets in which every reserved name is set to nonsense."""

    def config_map(self, name: str) -> dict[str, bytes]:
        del name
        return dict.fromkeys({*OPERATOR_ENV, "RAY_AUTH_MODE", "PYTHONPATH", "FREE"}, b"nonsense")

    secret = config_map


def test_env_from_a_config_map_never_takes_the_place_of_what_the_operator_sets() -> None:
    """An explicit entry wins over envFrom in Kubernetes; so all that matters is explicit."""
    overlay = ray(envFrom=[{"configMapRef": {"name": "nonsense"}}])
    for plain, got in zip(pods({}), pods(overlay), strict=True):
        container = main(got)
        ours = {entry["name"] for entry in main(plain)["env"]}
        literal = {entry["name"]: entry["value"] for entry in main(plain)["env"] if "value" in entry}
        values = build_container_env(
            {**container, "env": [entry for entry in container["env"] if "value" in entry]},
            pod=got,
            sources=Everything(),
            service_env={},
            node_allocatable={},
        )
        assert ({name: values[name] for name in literal}, values["FREE"]) == (literal, "nonsense")
        assert ours <= {entry["name"] for entry in container["env"]}


ORDER = {
    "what is new comes last, so that it may refer to what is below": (["A", "B"], ["C", "D"], ["A", "B", "C", "D"]),
    "a change keeps its place": (["A", "B", "C"], ["B"], ["A", "B", "C"]),
    "what a changed one may refer to is placed before it": (["A", "B", "C"], ["X", "B"], ["A", "X", "B", "C"]),
    "what follows a changed one may refer to all": (["A", "B", "C"], ["A", "X"], ["A", "B", "C", "X"]),
    "the overlay's order is the stronger one": (["A", "B", "C"], ["C", "A"], ["B", "C", "A"]),
}


@pytest.mark.parametrize(("base", "overlay", "want"), ORDER.values(), ids=ORDER)
def test_order_of_named_things(base: list[str], overlay: list[str], want: list[str]) -> None:
    got = merge({"env": [{"name": n} for n in base]}, {"env": [{"name": n, "value": "1"} for n in overlay]})["env"]
    assert [(e["name"], "value" in e) for e in got] == [(name, name in overlay) for name in want]


NAMES = st.lists(st.sampled_from("ABCDEFGH"), unique=True)


@given(NAMES, NAMES)
def test_nothing_is_lost_doubled_or_put_before_what_it_may_refer_to(base: list[str], overlay: list[str]) -> None:
    merged = merge({"env": [{"name": n} for n in base]}, {"env": [{"name": n} for n in overlay]})["env"]
    got = [entry["name"] for entry in merged]
    kept = [name for name in base if name not in overlay]
    assert (sorted(got), [n for n in got if n in overlay], [n for n in got if n in kept]) == (
        sorted({*base, *overlay}),
        overlay,
        kept,
    )


def test_variables_refer_back_through_all_layers() -> None:
    layers: dict[str, Any] = {
        "class_overlay": ray(env=[{"name": "ROOT", "value": "/class"}, {"name": "OUT", "value": "$(ROOT)/out"}]),
        "env": [{"name": "ROOT", "value": "/job/$(TORCHTPU_ATTEMPT)"}],
    }
    overlay = ray(
        env=[
            {"name": "RUN", "value": "r1"},
            {"name": "OUT", "value": "$(ROOT)/$(RUN)"},
            {"name": "Z", "value": "$(OUT)"},
        ]
    )
    for template in pods(overlay, **layers):
        entries = [entry for entry in main(template)["env"] if "value" in entry]
        values = build_container_env(
            {"env": entries}, pod=template, sources=Everything(), service_env={}, node_allocatable={}
        )
        assert (values["ROOT"], values["OUT"], values["Z"]) == ("/job/1", "/job/1/r1", "/job/1/r1")


SHM = {
    "half of the default memory": ({}, "2Gi"),
    "half of the memory that the job asks for": (ray(resources={"limits": {"memory": "64Gi"}}), "32Gi"),
    "half of a request alone": (ray(resources={"requests": {"memory": "10e9"}}), "4Gi"),
    "half of little": (ray(resources={"limits": {"memory": "1000M"}}), "476Mi"),
    "what the overlay says": (OVERLAYS["a larger /dev/shm"], "200Gi"),
    "memory that is none stays for the apiserver to judge": (ray(resources={"limits": {"memory": "much"}}), None),
}


@pytest.mark.parametrize(("overlay", "want"), SHM.values(), ids=SHM)
def test_shared_memory_of_the_head_follows_its_memory(overlay: Json, want: str | None) -> None:
    head = pods(overlay)[0]
    volumes = {volume["name"]: volume for volume in head["spec"]["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in main(head)["volumeMounts"]}
    assert (mounts["/dev/shm"], volumes["torchtpu-shm"]["emptyDir"].get("sizeLimit")) == ("torchtpu-shm", want)


def test_shared_memory_of_one_s_own_takes_the_place_of_the_operator_s() -> None:
    for template in pods(OVERLAYS["a /dev/shm of one's own"]):
        mounts = {mount["mountPath"]: mount["name"] for mount in main(template)["volumeMounts"]}
        volumes = [volume["name"] for volume in template["spec"]["volumes"]]
        assert (mounts["/dev/shm"], volumes) == ("mine", ["torchtpu-runner", "mine"])


DNS = {
    "the host's network gets the cluster's DNS, or no worker would find the head": (
        spec(hostNetwork=True),
        "ClusterFirstWithHostNet",
    ),
    "who says otherwise is heard": (OVERLAYS["the host's network with another DNS"], "None"),
    "a pod's own network needs nothing": ({}, None),
}


@pytest.mark.parametrize(("overlay", "want"), DNS.values(), ids=DNS)
def test_dns_of_the_host_s_network(overlay: Json, want: str | None) -> None:
    assert [template["spec"].get("dnsPolicy") for template in pods(overlay)] == [want, want]


ODD: dict[str, Json] = {
    "volumes that are none": {"spec": {"volumes": None}},
    "mounts that are none": {"spec": {"containers": [{"name": "ray", "volumeMounts": None}]}},
    "image pull secrets that are no list": {"spec": {"imagePullSecrets": "pull"}},
    "ports of numbers": {"spec": {"containers": [{"name": "ray", "ports": [80]}]}},
    "an affinity that is no object": {"spec": {"affinity": "x"}},
    "a probe that is no object": {"spec": {"containers": [{"name": "ray", "readinessProbe": "x"}]}},
    "spread constraints of text": {"spec": {"topologySpreadConstraints": ["zone"]}},
}


@pytest.mark.parametrize("overlay", ODD.values(), ids=ODD)
def test_what_the_schema_lets_through_reaches_the_apiserver_as_it_is(overlay: Json) -> None:
    """A typed pod says what is wrong with it, before anything is spent; here nothing may break."""
    document = copy.deepcopy(overlay)
    head, worker = pods(document)
    assert owned(worker) == owned(pods({})[1])
    for field, value in overlay["spec"].items():
        if value is not None and field != "containers":
            assert (head["spec"][field], worker["spec"][field]) == (value, value)
