"""Edits of a job that runs, in fields that change only while it is suspended: what is a change, and what is none.

The apiserver compares objects by the fields that their schema has, and lists with keys without their order.
"""

from typing import Any

from tests.spec_cases import pod
from torchtpu_operator.api.job_rules import NEVER, WHILE_SUSPENDED

Spec = dict[str, Any]


def _ray(**fields: Any) -> Spec:
    return {"template": pod(containers=[{"name": "ray", **fields}])}


def _volume(**source: Any) -> Spec:
    return {"template": pod(volumes=[{"name": "data", **source}])}


def _env(*entries: Any) -> Spec:
    return {"env": [{"name": name, "value": value} for name, value in entries]}


_SECRET: Spec = {"secretKeyRef": {"name": "hf", "key": "token"}}
_TEMPLATE = WHILE_SUSPENDED.format(field="template")
_ENV = WHILE_SUSPENDED.format(field="env")
_RUNTIME_ENV = WHILE_SUSPENDED.format(field="runtimeEnv")

# sentence -> (fields before, the same fields after, what is said; nothing: taken, and the job runs on)
EDITS: dict[str, tuple[Spec, Spec, str]] = {
    "another volume under the same name": (
        _volume(emptyDir={}),
        _volume(persistentVolumeClaim={"claimName": "data"}),
        _TEMPLATE,
    ),
    "another claim": (
        _volume(persistentVolumeClaim={"claimName": "a"}),
        _volume(persistentVolumeClaim={"claimName": "b"}),
        _TEMPLATE,
    ),
    "a bucket for a folder of the host": (
        _volume(csi={"driver": "gcsfuse.csi.storage.gke.io"}),
        _volume(hostPath={"path": "/data"}),
        _TEMPLATE,
    ),
    "one field of the pod in the place of another": (
        {"template": pod(serviceAccountName="trainer")},
        {"template": pod(hostNetwork=True)},
        _TEMPLATE,
    ),
    "one field of the container in the place of another": (
        _ray(securityContext={"privileged": True}),
        _ray(lifecycle={}),
        _TEMPLATE,
    ),
    "one field of an init container in the place of another": (
        {"template": pod(initContainers=[{"name": "a", "image": "a", "tty": True}])},
        {"template": pod(initContainers=[{"name": "a", "image": "a", "stdin": True}])},
        _TEMPLATE,
    ),
    "one field of a mount in the place of another": (
        _ray(volumeMounts=[{"name": "d", "mountPath": "/d", "readOnly": True}]),
        _ray(volumeMounts=[{"name": "d", "mountPath": "/d", "subPath": "a"}]),
        _TEMPLATE,
    ),
    "one field of a toleration in the place of another": (
        {"template": pod(tolerations=[{"key": "a", "value": "b"}])},
        {"template": pod(tolerations=[{"key": "a", "operator": "Exists"}])},
        _TEMPLATE,
    ),
    "another effect of a toleration": (
        {"template": pod(tolerations=[{"key": "a", "effect": "NoSchedule"}])},
        {"template": pod(tolerations=[{"key": "a", "effect": "NoExecute"}])},
        _TEMPLATE,
    ),
    "a ConfigMap for a Secret": (
        {"env": [{"name": "A", "valueFrom": _SECRET}]},
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "hf", "key": "token"}}}]},
        _ENV,
    ),
    "another key of the Secret": (
        {"env": [{"name": "A", "valueFrom": _SECRET}]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "other"}}}]},
        _ENV,
    ),
    "a ConfigMap for a Secret in the overlay": (
        _ray(env=[{"name": "A", "valueFrom": _SECRET}]),
        _ray(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "hf", "key": "token"}}}]),
        _TEMPLATE,
    ),
    "a null, which takes away what lies below": (
        {"template": pod(hostNetwork=True)},
        {"template": pod(hostNetwork=True, affinity=None)},
        _TEMPLATE,
    ),
    "conda for pip": ({"runtimeEnv": {"pip": ["a"]}}, {"runtimeEnv": {"conda": "a"}}, _RUNTIME_ENV),
    "another package": ({"runtimeEnv": {"pip": ["a"]}}, {"runtimeEnv": {"pip": ["b"]}}, _RUNTIME_ENV),
    "the order of packages, which is pip's": (
        {"runtimeEnv": {"pip": ["a", "b"]}},
        {"runtimeEnv": {"pip": ["b", "a"]}},
        _RUNTIME_ENV,
    ),
    "another value of a variable": (_env(("A", "1")), _env(("A", "2")), _ENV),
    "another variable": (_env(("A", "1")), _env(("B", "1")), _ENV),
    "the order of variables": (_env(("A", "1"), ("B", "2")), _env(("B", "2"), ("A", "1")), ""),
    "the order of volumes and mounts": (
        {
            "template": pod(
                volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
                containers=[
                    {
                        "name": "ray",
                        "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}],
                    },
                    {"name": "log", "image": "a"},
                ],
            )
        },
        {
            "template": pod(
                volumes=[{"name": "b", "emptyDir": {}}, {"name": "a", "emptyDir": {}}],
                containers=[
                    {"name": "log", "image": "a"},
                    {
                        "name": "ray",
                        "volumeMounts": [{"name": "b", "mountPath": "/b"}, {"name": "a", "mountPath": "/a"}],
                    },
                ],
            )
        },
        "",
    ),
    "the order of offers, which is the class's": ({"offers": ["a", "b"]}, {"offers": ["b", "a"]}, ""),
    "another offer": ({"offers": ["a", "b"]}, {"offers": ["a", "c"]}, NEVER.format(field="offers")),
}
