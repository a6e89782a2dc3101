"""Overlays by the rules of strategic merge."""

from typing import Any

import pytest

from torchtpu_operator.plan.strategic_merge import merge

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "maps merge": ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3, "z": 4}}, {"a": {"x": 1, "y": 3, "z": 4}}),
    "null removes": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "containers of one name merge field by field": (
        {"containers": [{"name": "ray", "image": "a", "tty": True}]},
        {"containers": [{"name": "ray", "image": "b"}, {"name": "log", "image": "c"}]},
        {"containers": [{"name": "ray", "image": "b", "tty": True}, {"name": "log", "image": "c"}]},
    ),
    "a variable of one name is replaced whole, in its place": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}, {"name": "C", "value": "3"}]},
        {
            "env": [
                {"name": "A", "valueFrom": {"fieldRef": {}}},
                {"name": "B", "value": "2"},
                {"name": "C", "value": "3"},
            ]
        },
    ),
    "a volume of one name is replaced whole": (
        {"volumes": [{"name": "a", "emptyDir": {}}]},
        {"volumes": [{"name": "a", "configMap": {"name": "x"}}]},
        {"volumes": [{"name": "a", "configMap": {"name": "x"}}]},
    ),
    "mounts merge by their path": (
        {"volumeMounts": [{"name": "a", "mountPath": "/x"}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/x"}, {"name": "c", "mountPath": "/y"}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/x"}, {"name": "c", "mountPath": "/y"}]},
    ),
    "other lists are replaced": ({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
    "tolerations are replaced": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
}


@pytest.mark.parametrize(("base", "overlay", "want"), CASES.values(), ids=CASES)
def test_merge(base: dict[str, Any], overlay: dict[str, Any], want: dict[str, Any]) -> None:
    assert merge(base, overlay) == want
