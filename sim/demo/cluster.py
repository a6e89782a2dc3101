"""Reads the bench's cluster for the demo. The cores are Ray's: the caller looks once a second at most."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from sim.bench import Bench, BenchError
from sim.demo.snapshot import Snapshot, parse_events, parse_node, parse_pods
from torchtpu_operator.api import TorchTPUJob, TPUSlice
from torchtpu_operator.api.constants import GROUP, JOB_PLURAL, SLICE_PLURAL, VERSION

EVENT_COMPONENT = "torchtpu-operator"
"""reportingComponent of the operator's events."""

_SECONDS = 10.0
_LOG_SECONDS = 3600.0
"""Longest silence of a followed log."""
_GROUP_PATH = f"/apis/{GROUP}/{VERSION}"


class ClusterError(Exception):
    """The apiserver does not answer, or refuses."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        """`status` is the HTTP code, 0 without an answer."""
        super().__init__(message)
        self.status = status


class ClusterReader:
    """By the administrator's kubeconfig. `read` and `follow_log` may be called from different threads."""

    def __init__(self, bench: Bench, *, namespace: str, job: str) -> None:
        self._bench, self._namespace, self._job = bench, namespace, job
        configuration = client.Configuration()
        config.load_kube_config(str(bench.kubeconfig), client_configuration=configuration)
        self._api = client.ApiClient(configuration)

    def read(self) -> Snapshot:
        """Raises ClusterError."""
        namespace = f"/api/v1/namespaces/{self._namespace}"
        # Events about cluster-scoped objects lie in the namespace `default`.
        events = [*self._items(f"{namespace}/events"), *self._items("/api/v1/namespaces/default/events")]
        job = self._find(f"{_GROUP_PATH}/namespaces/{self._namespace}/{JOB_PLURAL}/{self._job}")
        return Snapshot(
            at=datetime.now(UTC),
            job=TorchTPUJob.from_object(job) if job is not None else None,
            slices=tuple(TPUSlice.from_object(each) for each in self._items(f"{_GROUP_PATH}/{SLICE_PLURAL}")),
            nodes=tuple(parse_node(each) for each in self._items("/api/v1/nodes")),
            pods=parse_pods(self._items(f"{namespace}/pods"), job=self._job),
            events=parse_events(
                list({each["metadata"]["uid"]: each for each in events}.values()), component=EVENT_COMPONENT
            ),
            pools=self._pools(),
        )

    def follow_log(self, pod: str, *, container: str) -> Iterator[str]:
        """Lines of a container's log as they come, until it ends. Raises ClusterError."""
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod}/log"
        answer = self._call(path, {"container": container, "follow": "true"}, seconds=_LOG_SECONDS)
        rest = b""
        try:
            for piece in answer.stream(65536):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
        except HTTPError as error:
            raise ClusterError(f"the log of {pod} broke off: {error}") from error
        finally:
            answer.release_conn()

    def operator_pods(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        """Raises ClusterError."""
        return self._items(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})

    def _pools(self) -> dict[str, str] | None:
        try:
            return {pool["name"]: pool["status"] for pool in self._bench.status()["pools"]}
        except BenchError:
            return None

    def _find(self, path: str) -> dict[str, Any] | None:
        try:
            return self._get(path)
        except ClusterError as error:
            if error.status != 404:
                raise
            return None

    def _items(self, path: str, query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        found = self._get(path, query)
        kind, version = str(found["kind"]).removesuffix("List"), found["apiVersion"]
        # Lists leave out what each item is.
        return [{"apiVersion": version, "kind": kind, **each} for each in found["items"]]

    def _get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._call(path, query or {}, seconds=_SECONDS).data)
        return found

    def _call(self, path: str, query: dict[str, str], *, seconds: float) -> Any:
        try:
            method, url, headers, _, _ = self._api.param_serialize(
                "GET", path, query_params=list(query.items()), header_params={"Accept": "application/json"}
            )
            answer = self._api.call_api(method, url, header_params=headers, _request_timeout=seconds).response
        except HTTPError as error:
            raise ClusterError(f"GET {path}: no answer: {error}") from error
        if answer.status != 200:
            raise ClusterError(f"GET {path}: {answer.status} {answer.data[:300]!r}", status=answer.status)
        return answer
