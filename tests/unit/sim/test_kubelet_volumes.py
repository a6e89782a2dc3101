"""Files of volumes, and how they change under a running container."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.kubelet import atomic_folder
from sim.kubelet.projection import File, Files, TokenRequest, VolumeError, project, token_requests
from sim.kubelet.sources import FetchedSources

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"b": 'say "hi"', "a": "1"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]},
}
SOURCES = FetchedSources(
    config_maps={"cm": {"a": b"1", "b": b"2"}, "gone": None}, secrets={"sec": {"k": b"s"}, "gone": None}
)
TOKEN = TokenRequest(audience="", seconds=3607)


def _files(**modes_and_contents: tuple[bytes, int]) -> Files:
    return {name: File(content=content, mode=mode) for name, (content, mode) in modes_and_contents.items()}


PROJECTIONS: dict[str, tuple[dict[str, Any], Files]] = {
    "a whole ConfigMap": ({"configMap": {"name": "cm"}}, _files(a=(b"1", 0o644), b=(b"2", 0o644))),
    "items choose, rename and set modes": (
        {"configMap": {"name": "cm", "defaultMode": 0o755, "items": [{"key": "a", "path": "x/y", "mode": 0o400}]}},
        {"x/y": File(content=b"1", mode=0o400)},
    ),
    "an optional source that is missing": ({"secret": {"secretName": "gone", "optional": True}}, {}),
    "an optional key that is missing": (
        {"configMap": {"name": "cm", "optional": True, "items": [{"key": "z", "path": "z"}]}},
        {},
    ),
    "labels": (
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        _files(labels=(b'a="1"\nb="say \\"hi\\""', 0o644)),
    ),
    "a resource of a container": (
        {
            "downwardAPI": {
                "items": [{"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu", "containerName": "main"}}]
            }
        },
        _files(cpu=(b"2", 0o644)),
    ),
    "what every pod gets for the apiserver": (
        {
            "projected": {
                "defaultMode": 0o644,
                "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                    {"configMap": {"name": "cm", "items": [{"key": "a", "path": "ca.crt"}]}},
                    {
                        "downwardAPI": {
                            "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                        }
                    },
                ],
            }
        },
        {
            "token": File(content=b"jwt", mode=0o644),
            "ca.crt": File(content=b"1", mode=0o644),
            "namespace": File(content=b"ns", mode=0o644),
        },
    ),
}


@pytest.mark.parametrize(("volume", "want"), PROJECTIONS.values(), ids=PROJECTIONS)
def test_projection(volume: dict[str, Any], want: Files) -> None:
    tokens = dict.fromkeys(token_requests(volume), "jwt")
    assert project({"name": "v", **volume}, pod=POD, sources=SOURCES, tokens=tokens, allocatable={}) == want


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a ConfigMap that is missing": ({"configMap": {"name": "gone"}}, 'configmap "gone" not found'),
    "a key that is missing": (
        {"secret": {"secretName": "sec", "items": [{"key": "z", "path": "z"}]}},
        "secret references non-existent config key: z",
    ),
    "a kind that the bench lacks": ({"nfs": {}}, "volume v: the simulated kubelet has no volumes of kind nfs"),
}


@pytest.mark.parametrize(("volume", "want"), REFUSED.values(), ids=REFUSED)
def test_refused_volume_says_why(volume: dict[str, Any], want: str) -> None:
    with pytest.raises(VolumeError) as caught:
        project({"name": "v", **volume}, pod=POD, sources=SOURCES, tokens={}, allocatable={})
    assert str(caught.value) == want


def test_token_requests_have_kubernetes_defaults() -> None:
    volume = {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "cm"}}]}}
    assert token_requests(volume) == [TokenRequest(audience="", seconds=3600)]


def _seen(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What a container sees: every visible path with content and mode."""
    found = {}
    for entry in folder.iterdir():
        if entry.name.startswith(".."):
            continue
        for path in [entry, *entry.rglob("*")]:
            if path.is_file():
                found[str(path.relative_to(folder))] = (path.read_bytes(), path.stat().st_mode & 0o7777)
    return found


names = st.sampled_from(["a", "b", "c", "d/e", "d/f", "g/h/i"])
contents = st.builds(
    lambda text, mode: File(content=text, mode=mode), st.binary(max_size=5), st.sampled_from([0o600, 0o644, 0o755])
)


@given(st.lists(st.dictionaries(names, contents, max_size=5), min_size=1, max_size=4))
def test_a_folder_always_shows_exactly_the_last_files(
    tmp_path_factory: pytest.TempPathFactory, states: list[Files]
) -> None:
    folder = tmp_path_factory.mktemp("volume")
    for files in states:
        atomic_folder.write(folder, files)
        assert _seen(folder) == {path: (file.content, file.mode) for path, file in files.items()}


def test_the_same_files_again_change_nothing(tmp_path: Path) -> None:
    files = _files(a=(b"1", 0o644))
    changes = [atomic_folder.write(tmp_path / "v", files) for _ in range(2)]
    target = (tmp_path / "v" / "..data").readlink()
    assert (changes, atomic_folder.write(tmp_path / "v", _files(a=(b"2", 0o644)))) == ([True, False], True)
    assert (tmp_path / "v" / "..data").readlink() != target


def test_an_fs_group_may_read_every_file(tmp_path: Path) -> None:
    atomic_folder.write(tmp_path, _files(a=(b"1", 0o400)), group=os.getgid())
    assert _seen(tmp_path) == {"a": (b"1", 0o440)}
