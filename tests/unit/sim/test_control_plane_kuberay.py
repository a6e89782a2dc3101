"""KubeRay's kinds reach the apiserver, also a slow one."""

from typing import Any

import pytest

from sim.control_plane import kuberay
from sim.control_plane.api_client import ApiError

CRDS = {"rayclusters.ray.io": b"a", "rayjobs.ray.io": b"b"}


class Client:
    """Answers with these statuses in turn; 201 accepts."""

    def __init__(self, *statuses: int, discovery: Any = None) -> None:
        self._statuses, self._discovery = list(statuses), discovery
        self.posted: list[bytes] = []

    def create(self, path: str, manifest: bytes) -> None:
        assert path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self.posted.append(manifest)
        if (status := self._statuses.pop(0)) != 201:
            raise ApiError("refused", status=status)

    def get(self, path: str) -> Any:
        assert path == "/apis/ray.io/v1"
        if isinstance(self._discovery, int):
            raise ApiError("refused", status=self._discovery)
        return self._discovery


ACCEPTED = {
    "at once": ((201, 201), [b"a", b"b"]),
    "those that exist stay": ((409, 201), [b"a", b"b"]),
    "no answer: again, and it had taken effect": ((0, 409, 201), [b"a", b"a", b"b"]),
    "the apiserver's own time-out: again": ((201, 504, 201), [b"a", b"b", b"b"]),
}


@pytest.mark.parametrize(("statuses", "want"), ACCEPTED.values(), ids=ACCEPTED)
def test_kinds_are_created(statuses: tuple[int, ...], want: list[bytes]) -> None:
    client = Client(*statuses)
    kuberay.create_crds(client, CRDS)
    assert client.posted == want


REFUSED = {"a refusal is final": (422,), "time-outs end": (0, 0, 504, 504)}


@pytest.mark.parametrize("statuses", REFUSED.values(), ids=REFUSED)
def test_a_refusal_names_the_kind(statuses: tuple[int, ...]) -> None:
    client = Client(*statuses)
    with pytest.raises(ApiError, match=r"^rayclusters\.ray\.io: refused$"):
        kuberay.create_crds(client, CRDS)
    assert len(client.posted) == len(statuses)


SERVED = {
    "all kinds": ({"resources": [{"name": "rayclusters"}, {"name": "rayjobs"}, {"name": "rayjobs/status"}]}, True),
    "one of them": ({"resources": [{"name": "rayclusters"}]}, False),
    "the group without a kind": ({"resources": None}, False),
    "no group": (404, False),
    "the group is not computed yet": (503, False),
}


@pytest.mark.parametrize(("discovery", "want"), SERVED.values(), ids=SERVED)
def test_served(discovery: Any, want: bool) -> None:
    assert kuberay.is_served(Client(discovery=discovery), CRDS) is want
