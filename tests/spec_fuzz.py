"""Random jobs from around the edges of the schema: a good job with some fields taken from pools of odd values."""

import copy
import random
from collections.abc import Iterator
from typing import Any

from tests.spec_cases import Document, job, pod
from torchtpu_operator.api.template_rules import RESERVED_ENV
from torchtpu_operator.tpu import CATALOGUE

_TEXT: list[Any] = ["", " ", "a", "A", "-", "a" * 300, "ü", "a\nb", "4x4", "${A}", None, 0, 1.5, True, [], {}]
_NUMBERS: list[Any] = [-1, 0, 1, 2, 59, 60, 61, 3600, 3601, 10**7, 2**40, "1", 1.5, None, True, [], {}]
_ENV: list[Any] = [
    [],
    [{"name": "A"}],
    [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
    [{"name": "A", "value": 1}],
    [{"value": "1"}],
    [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    [{"name": "A", "valueFrom": "x"}],
    [{"name": "A", "new": 1}],
    "A=1",
    None,
]
_CONTAINERS: list[Any] = [
    [],
    [{"name": "ray"}],
    [{"name": "ray"}, {"name": "ray"}],
    [{"image": "a"}],
    [{"name": "log", "image": "a", "args": ["x"], "command": ["y"]}],
    [{"name": "log", "image": None}],
    [{"name": "ray", "args": []}],
    [{"name": "ray", "resources": {"limits": {"google.com/tpu": 4}}}],
    [{"name": "ray", "resources": {"requests": {"cpu": "4", "memory": 1.5}}}],
    [{"name": "ray", "resources": {"claims": [{"name": "a"}]}}],
    [{"name": "ray", "volumeMounts": [{"name": "a", "mountPath": "/a"}], "stdin": True}],
    {"name": "ray"},
    None,
]
_TEMPLATES: list[Any] = [
    {},
    {"spec": {}},
    {"metadata": {}},
    {"metadata": {"labels": {"a": "b", "torchtpu.dev/x": "y"}}},
    {"metadata": {"labels": {"a": 1}}},
    {"metadata": {"name": "x"}},
    {"spec": {"nodeSelector": {"cloud.google.com/gke-tpu-topology": "4x4", "a": "b"}}},
    {"spec": {"nodeSelector": {"a": None}}},
    {"spec": {"restartPolicy": ""}},
    {"spec": {"hostNetwork": True, "volumes": None, "priority": "x"}},
    {"other": 1},
    None,
    "x",
]
_POOLS: dict[str, list[Any]] = {
    "accelerator": [*CATALOGUE, "V6E", "v6e-8", "tpu7x", "v5litepod-16", "xyz-", "-8", *_TEXT],
    "topology": ["2x2", "2x4", "4x2", "2x2x1", "2x2x2", "4x4x8", "8x8x8", "1x1", "2x2x3", "4X4", "4x4x4x4", *_TEXT],
    "numSlices": [1, 2, 16, 17, *_NUMBERS],
    "chipsPerHost": [1, 4, 8, *_NUMBERS],
    "launcher": ["PerDevice", "PerHost", "Driver", "driver", *_TEXT],
    "entrypoint": ["torchrun a", "python a.py", "a;torchrun b", "x && accelerate launch y", "\ttorchrun", *_TEXT],
    "image": ["a/b:c", *_TEXT],
    "rayVersion": ["2.60.0", "2.57.9", "2.59.0", "2.60", "v2.60.0", "10.0.0rc1", "2.60.0.dev0", *_TEXT],
    "sliceClassName": _TEXT,
    "offers": [["a"], ["a", "a"], ["a", "b"], [1], *_TEXT],
    "workingDir": [{"configMap": {"name": "c"}}, {"uri": "gs://a/b.zip"}, {"uri": "x"}, {"other": 1}, *_TEXT],
    "runtimeEnv": [{"env_vars": {"RANK": "1", "A": "2"}}, {"pip": ["a"]}, {"working_dir": "x"}, {"env_vars": [1]}, {}],
    "env": [*_ENV, *([{"name": name, "value": "1"}] for name in sorted(RESERVED_ENV)[:4])],
    "template": [*_TEMPLATES, *(pod(containers=each) for each in _CONTAINERS)],
    "head": [{"template": each} for each in _TEMPLATES] + [{"template": pod(containers=each)} for each in _CONTAINERS],
    "worker": [{"template": pod(initContainers=each)} for each in _CONTAINERS]
    + [{}, {"template": None}, None, {"a": 1}],
    "suspend": [True, False, "true", None, 1],
    "managedBy": ["kueue.x-k8s.io/multikueue", *_TEXT],
    "failurePolicy": [
        {},
        {"maxRestarts": 3, "backoff": {"initialSeconds": 700}},
        {"backoff": {"maxSeconds": 5}},
        {"noProgressSeconds": 10},
        {"rules": [{"action": "Fail", "onExitCodes": {"operator": "In", "values": [1, 2]}}]},
        {"rules": [{"action": "Stop", "onExitCodes": {"operator": "In", "values": []}}]},
        {"rules": [{"action": "Fail"}]},
        *_TEXT,
    ],
    "budget": [{"chipHours": each} for each in [1, 0, -1, "1", "1.5", "x", "0", "0.0", 1.5, None, True]]
    + [{}, None, 5],
    "stopGracePeriodSeconds": _NUMBERS,
    "queueDeadlineSeconds": _NUMBERS,
    "capacityDeadlineSeconds": _NUMBERS,
    "activeDeadlineSeconds": _NUMBERS,
    "logRetentionSeconds": _NUMBERS,
    "ttlSecondsAfterFinished": _NUMBERS,
    "checkpointDir": ["gs://a/b", *_TEXT],
    "priorityClassName": ["research", *_TEXT],
    "somethingElse": [1],
}


def random_jobs(seed: int, count: int) -> Iterator[Document]:
    """`count` jobs, the same for the same seed."""
    dice = random.Random(seed)
    for _ in range(count):
        fields = dice.sample(sorted(_POOLS), k=dice.choice([1, 1, 2, 3, 5]))
        name = dice.choice(["a", "llama-ft", "llama-ft", "llama-ft", "a" * 53, "A", "1a", "a.b", "a-"])
        yield job(name=name, **{field: copy.deepcopy(dice.choice(_POOLS[field])) for field in fields})
