"""From a RayCluster to its head: the dashboard's address from status, the token from its Secret by a live GET."""

import base64
import binascii
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from torchtpu_operator.clients.kinds import SECRETS, Kind
from torchtpu_operator.clients.kube_errors import KubeError, call_failed
from torchtpu_operator.clients.ray_jobs import RayHead
from torchtpu_operator.plan.observed import CallFailed, FailureClass

T = TypeVar("T")
Obj = Mapping[str, Any]

_TOKEN_VARIABLE = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable
_KEPT = 512
_SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_NAME, _PORT = "dashboard", 8265


class SecretApi(Protocol):
    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> dict[str, Any] | None: ...


class RayHeads:
    """Remembers tokens by RayCluster uid, in memory only; a head that refuses one has it read again."""

    def __init__(self, api: SecretApi) -> None:
        self._api = api
        self._tokens: OrderedDict[str, str] = OrderedDict()

    async def ask(self, cluster: Obj, call: Callable[[RayHead], Awaitable[T | CallFailed]]) -> T | CallFailed:
        """Call the cluster's head; once more with the Secret read afresh if it refuses the token."""
        head = await self._head(cluster)
        if isinstance(head, CallFailed):
            return head
        answer = await call(head)
        if not (isinstance(answer, CallFailed) and answer.failure is FailureClass.PERMISSION):
            return answer
        self._tokens.pop(cluster["metadata"]["uid"], None)
        fresh = await self._head(cluster)
        if isinstance(fresh, CallFailed):
            return fresh
        return answer if fresh.token == head.token else await call(fresh)

    async def _head(self, cluster: Obj) -> RayHead | CallFailed:
        meta, status = cluster["metadata"], cluster.get("status") or {}
        service = (status.get("head") or {}).get("serviceName") or ""
        if not _SERVICE.fullmatch(service):
            return CallFailed(
                call=f"RayCluster {meta['name']}",
                failure=FailureClass.TRANSIENT,
                message="KubeRay has not made the head's service yet",
            )
        token = await self._token(cluster)
        if isinstance(token, CallFailed):
            return token
        return RayHead(namespace=meta["namespace"], service=service, port=_port(cluster), token=token)

    async def _token(self, cluster: Obj) -> str | CallFailed | None:
        """None where the cluster runs without token authentication."""
        uid, namespace = cluster["metadata"]["uid"], cluster["metadata"]["namespace"]
        if uid in self._tokens:
            return self._tokens[uid]
        reference = next(_token_references(cluster), None)
        if reference is None:
            return None
        name, key = reference["name"], reference["key"]
        try:
            secret = await self._api.get(SECRETS, name, namespace=namespace)
        except KubeError as error:
            return call_failed(error)
        try:
            token = base64.b64decode((secret or {})["data"][key], validate=True).decode().strip()
        except (KeyError, binascii.Error, UnicodeDecodeError):
            return CallFailed(
                call=f"GET Secret {name}",
                failure=FailureClass.NOT_FOUND,
                message=f"Secret {namespace}/{name} with the Ray token (key {key}) is gone or unreadable",
            )
        self._tokens[uid] = token
        while len(self._tokens) > _KEPT:
            self._tokens.popitem(last=False)
        return token


def _token_references(cluster: Obj) -> Iterator[Mapping[str, str]]:
    for container in _head_containers(cluster):
        for variable in container.get("env") or ():
            if variable["name"] == _TOKEN_VARIABLE and (
                source := (variable.get("valueFrom") or {}).get("secretKeyRef")
            ):
                yield source


def _port(cluster: Obj) -> int:
    for container in _head_containers(cluster):
        for port in container.get("ports") or ():
            if port.get("name") == _PORT_NAME:
                return int(port["containerPort"])
    return _PORT


def _head_containers(cluster: Obj) -> list[Mapping[str, Any]]:
    group = (cluster.get("spec") or {}).get("headGroupSpec") or {}
    return list(((group.get("template") or {}).get("spec") or {}).get("containers") or ())
