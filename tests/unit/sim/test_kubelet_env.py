"""Environment and command lines of containers."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.kubelet.env import ConfigError, build_command, build_container_env, expand
from sim.kubelet.sources import FetchedSources

POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u-1",
        "labels": {"ray.io/replica-host-index": "2"},
        "annotations": {"note": "hello"},
    },
    "spec": {
        "nodeName": "node-a",
        "serviceAccountName": "runner",
        "containers": [{"name": "main", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}],
    },
    "status": {"podIP": "10.244.1.9", "podIPs": [{"ip": "10.244.1.9"}], "hostIP": "10.245.0.3"},
}
SOURCES = FetchedSources(
    config_maps={"cm": {"a": b"1", "b": b"2"}, "gone": None}, secrets={"sec": {"token": b"hunter2"}, "gone": None}
)
SERVICE = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}

EXPANSIONS = {
    "a known name": ("x-$(A)-y", "x-1-y"),
    "an unknown name stays": ("$(NOPE)", "$(NOPE)"),
    "two dollars escape": ("$$(A)", "$(A)"),
    "a value is not expanded again": ("$(B)", "$(A)"),
    "no closing bracket": ("$(A", "$(A"),
    "a lone dollar at the end": ("a$", "a$"),
    "a dollar before a letter": ("$A", "$A"),
    "nothing between the brackets": ("$()", "$()"),
}


@pytest.mark.parametrize(("text", "want"), EXPANSIONS.values(), ids=EXPANSIONS)
def test_expand(text: str, want: str) -> None:
    assert expand(text, {"A": "1", "B": "$(A)"}) == want


@given(st.text(alphabet="ab(){} ", max_size=30))
def test_text_without_a_dollar_is_never_changed(text: str) -> None:
    assert expand(text, {"a": "z"}) == text


@given(st.text(alphabet="aA$()", max_size=20))
def test_doubled_dollars_come_back_single(text: str) -> None:
    assert expand(text.replace("$", "$$"), {"a": "z", "A": "z"}) == text


@dataclass(frozen=True, kw_only=True)
class Case:
    env: list[dict[str, Any]] = field(default_factory=list)
    env_from: list[dict[str, Any]] = field(default_factory=list)
    want: dict[str, str]


def _field(path: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


ENVIRONMENTS = {
    "plain values, the later of two wins": Case(
        env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], want={"A": "2"}
    ),
    "earlier values and service variables are seen, later ones are not": Case(
        env=[
            {"name": "A", "value": "$(B)-$(KUBERNETES_SERVICE_HOST)"},
            {"name": "B", "value": "b"},
            {"name": "C", "value": "$(B)"},
        ],
        want={"A": "$(B)-10.96.0.1", "B": "b", "C": "b"},
    ),
    "own fields": Case(
        env=[
            {"name": "NAME", **_field("metadata.name")},
            {"name": "ID", **_field("metadata.labels['ray.io/replica-host-index']")},
            {"name": "NOTE", **_field("metadata.annotations['note']")},
            {"name": "NONE", **_field("metadata.labels['none']")},
            {"name": "IP", **_field("status.podIP")},
            {"name": "HOST", **_field("status.hostIP")},
            {"name": "ACCOUNT", **_field("spec.serviceAccountName")},
        ],
        want={
            "NAME": "p",
            "ID": "2",
            "NOTE": "hello",
            "NONE": "",
            "IP": "10.244.1.9",
            "HOST": "10.245.0.3",
            "ACCOUNT": "runner",
        },
    ),
    "resources are rounded up, an unset limit is the node's": Case(
        env=[
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "MILLI", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "MIB", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "DISK", "valueFrom": {"resourceFieldRef": {"resource": "limits.ephemeral-storage"}}},
        ],
        want={"CPU": "2", "MILLI": "1500", "MIB": "1024", "DISK": "107374182400"},
    ),
    "keys of ConfigMaps and Secrets": Case(
        env=[
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}},
            {"name": "T", "valueFrom": {"secretKeyRef": {"name": "sec", "key": "token"}}},
        ],
        want={"A": "1", "T": "hunter2"},
    ),
    "what is optional and missing is not set": Case(
        env=[
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "zzz", "optional": True}}},
            {"name": "T", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "token", "optional": True}}},
        ],
        env_from=[{"secretRef": {"name": "gone", "optional": True}}],
        want={},
    ),
    "whole sources with a prefix, own entries win": Case(
        env=[{"name": "P_a", "value": "own"}],
        env_from=[{"configMapRef": {"name": "cm"}, "prefix": "P_"}],
        want={"P_a": "own", "P_b": "2"},
    ),
    "an entry without value is empty": Case(env=[{"name": "E"}], want={"E": ""}),
}


@pytest.mark.parametrize("case", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_environment(case: Case) -> None:
    container = {**POD["spec"]["containers"][0], "env": case.env, "envFrom": case.env_from}
    env = build_container_env(
        container,
        pod=POD,
        sources=SOURCES,
        service_env=SERVICE,
        node_allocatable={"ephemeral-storage": "100Gi", "cpu": "8"},
    )
    assert env == {**SERVICE, **case.want}


MISSING = {
    "a ConfigMap": ({"configMapKeyRef": {"name": "gone", "key": "a"}}, 'configmap "gone" not found'),
    "a Secret": ({"secretKeyRef": {"name": "gone", "key": "a"}}, 'secret "gone" not found'),
    "a key": ({"secretKeyRef": {"name": "sec", "key": "a"}}, "couldn't find key a in Secret ns/sec"),
}


@pytest.mark.parametrize(("source", "want"), MISSING.values(), ids=MISSING)
def test_what_is_required_and_missing_says_so(source: dict[str, Any], want: str) -> None:
    container = {"name": "main", "env": [{"name": "A", "valueFrom": source}]}
    with pytest.raises(ConfigError) as caught:
        build_container_env(container, pod=POD, sources=SOURCES, service_env={}, node_allocatable={})
    assert str(caught.value) == want


COMMANDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing given: the image's": ({}, ["enter", "go"]),
    "args replace the image's command": ({"args": ["$(A)"]}, ["enter", "1"]),
    "command replaces both": ({"command": ["run", "$(A)"]}, ["run", "1"]),
    "command and args": ({"command": ["run"], "args": ["x"]}, ["run", "x"]),
}


@pytest.mark.parametrize(("container", "want"), COMMANDS.values(), ids=COMMANDS)
def test_command(container: dict[str, Any], want: list[str]) -> None:
    assert build_command(container, entrypoint=["enter"], command=["go"], values={"A": "1"}) == want
