"""The Kubernetes API through `kubernetes.aio`: raw dicts in and out, one time limit, one error, our field manager.

The package's generic `ApiClient` is used for every kind: its per-kind classes drop the answer of an apply that creates
(HTTP 201), and differ between the core group and the others.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, Protocol

import aiohttp
from kubernetes.aio.client import ApiClient

from torchtpu_operator.clients.calls import CallSeen, shortened, unseen
from torchtpu_operator.clients.kinds import ACCESS_REVIEWS, Kind
from torchtpu_operator.clients.kube_errors import NO_ANSWER, KubeError, refused

log = logging.getLogger(__name__)

Obj = dict[str, Any]

FIELD_MANAGER = "torchtpu-operator"
_APPLY, _MERGE, _JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json"
_PAGE = 500
_WARNINGS_KEPT = 200


class KubeApi(Protocol):
    """What observers and executor need of the Kubernetes API; `Kube` says what each method does."""

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> Obj | None: ...

    async def list(self, kind: Kind, *, namespace: str | None = None, labels: str = "") -> list[Obj]: ...

    async def create(self, kind: Kind, obj: Mapping[str, Any], *, dry_run: bool = False) -> Obj: ...

    async def replace(self, kind: Kind, obj: Mapping[str, Any]) -> Obj: ...

    async def merge(self, kind: Kind, name: str, patch: Mapping[str, Any], *, namespace: str | None = None) -> Obj: ...

    async def apply(self, kind: Kind, obj: Mapping[str, Any], *, subresource: str | None = None) -> Obj: ...

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        uid: str,
        namespace: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Obj | None: ...

    async def may(self, *, verb: str, group: str, resource: str, namespace: str | None = None) -> bool: ...

    async def served(self, group: str, version: str) -> frozenset[str]: ...


class Kube:
    """Every method raises `KubeError`; every method but `get` and `delete` raises it for 404 too."""

    def __init__(
        self,
        client: ApiClient,
        *,
        field_manager: str = FIELD_MANAGER,
        timeout: float = 10.0,
        seen: CallSeen = unseen,
    ) -> None:
        client.user_agent = field_manager
        self._client, self._manager, self._timeout, self._seen = client, field_manager, timeout, seen
        self._warned: set[str] = set()

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> Obj | None:
        """The live object; None where there is none (404, also where the kind is not installed)."""
        try:
            return await self._request("GET", "get", kind, namespace=namespace, name=name)
        except KubeError as error:
            if error.is_absent:
                return None
            raise

    async def list(self, kind: Kind, *, namespace: str | None = None, labels: str = "") -> list[Obj]:
        """All objects (of all namespaces by default), read in pages; the items carry no apiVersion and kind."""
        items: list[Obj] = []
        token = ""
        while True:
            query = {"limit": str(_PAGE), "labelSelector": labels, "continue": token}
            page = await self._request("GET", "list", kind, namespace=namespace, query=query)
            items += page.get("items") or []
            token = page.get("metadata", {}).get("continue") or ""
            if not token:
                return items

    async def create(self, kind: Kind, obj: Mapping[str, Any], *, dry_run: bool = False) -> Obj:
        """POST. A dry run is strict about unknown fields, so that a misspelt one is named instead of dropped."""
        query = {"fieldManager": self._manager}
        if dry_run:
            query |= {"dryRun": "All", "fieldValidation": "Strict"}
        namespace = obj["metadata"].get("namespace")
        verb = "dry-run" if dry_run else "create"
        return await self._request("POST", verb, kind, namespace=namespace, query=query, body=obj)

    async def replace(self, kind: Kind, obj: Mapping[str, Any]) -> Obj:
        """PUT of a whole object; it carries metadata.resourceVersion."""
        meta = obj["metadata"]
        return await self._request(
            "PUT",
            "replace",
            kind,
            namespace=meta.get("namespace"),
            name=meta["name"],
            query={"fieldManager": self._manager},
            body=obj,
        )

    async def merge(self, kind: Kind, name: str, patch: Mapping[str, Any], *, namespace: str | None = None) -> Obj:
        """JSON merge patch; a deciding one carries metadata.resourceVersion (409 if the object has changed)."""
        return await self._request(
            "PATCH",
            "merge",
            kind,
            namespace=namespace,
            name=name,
            query={"fieldManager": self._manager},
            body=patch,
            content=_MERGE,
        )

    async def apply(self, kind: Kind, obj: Mapping[str, Any], *, subresource: str | None = None) -> Obj:
        """Server-side apply, taking ownership of every field in `obj`.

        On a missing main object it would create one; give metadata.uid to get 409 instead.
        """
        meta = obj["metadata"]
        return await self._request(
            "PATCH",
            f"apply-{subresource}" if subresource else "apply",
            kind,
            namespace=meta.get("namespace"),
            name=meta["name"],
            subresource=subresource,
            query={"fieldManager": self._manager, "force": "true"},
            body=obj,
            content=_APPLY,
        )

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        uid: str,
        namespace: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Obj | None:
        """DELETE of exactly this object; the terminating object, or None where it is gone (404 is success).

        Another uid or resourceVersion than given is a 409.
        """
        preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        body: Obj = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": preconditions,
        }
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            answer = await self._request("DELETE", "delete", kind, namespace=namespace, name=name, body=body)
        except KubeError as error:
            if error.is_absent:
                return None
            raise
        meta = answer.get("metadata") or {}
        return answer if meta.get("uid") == uid and meta.get("deletionTimestamp") else None

    async def may(self, *, verb: str, group: str, resource: str, namespace: str | None = None) -> bool:
        """Whether our own account has this right (SelfSubjectAccessReview); `resource` may be `name/subresource`."""
        plural, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
        if namespace:
            attributes["namespace"] = namespace
        review = {
            "apiVersion": ACCESS_REVIEWS.api_version,
            "kind": ACCESS_REVIEWS.name,
            "metadata": {},
            "spec": {"resourceAttributes": attributes},
        }
        return bool((await self.create(ACCESS_REVIEWS, review)).get("status", {}).get("allowed"))

    async def served(self, group: str, version: str) -> frozenset[str]:
        """Plural names that the apiserver serves in this group and version; empty where it does not know them."""
        try:
            document = await self._call("GET", "discover", f"/apis/{group}/{version}")
        except KubeError as error:
            if error.is_absent:
                return frozenset()
            raise
        return frozenset(resource["name"] for resource in document.get("resources", ()))

    async def _request(
        self,
        method: str,
        verb: str,
        kind: Kind,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = _JSON,
    ) -> Obj:
        path = kind.path(namespace=namespace, name=name, subresource=subresource)
        return await self._call(method, verb, path, query=query, body=body, content=content)

    async def _call(
        self,
        method: str,
        verb: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = _JSON,
    ) -> Obj:
        call = f"{method} {path}"
        code = "no-answer"
        try:
            _, url, headers, sent, _ = await self._client.param_serialize(
                method,
                path,
                query_params=[(key, value) for key, value in (query or {}).items() if value],
                header_params={"Accept": _JSON, "Content-Type": content},
                body=body,
                auth_settings=["BearerToken"],
            )
            response = await self._client.call_api(
                method, url, header_params=headers, body=sent, _request_timeout=self._timeout
            )
            text = (await response.read()).decode()
            code = str(response.status)
            if not 200 <= response.status <= 299:
                raise refused(call=call, status=response.status, body=text, headers=response.headers)
            self._warn(call, response.headers.getall("Warning", ()))
            answer: Obj = json.loads(text)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            # No answer, or one cut short by something in between: it may have taken effect.
            words = str(error) or type(error).__name__
            raise KubeError(shortened(f"no answer: {words}"), call=call, status=NO_ANSWER) from error
        finally:
            self._seen(target="kubernetes", verb=verb, code=code)
        return answer

    def _warn(self, call: str, warnings: tuple[str, ...]) -> None:
        """The apiserver's warnings tell of fields that it dropped (an old CRD) and of APIs about to go; say each once."""
        for warning in warnings:
            if warning not in self._warned and len(self._warned) < _WARNINGS_KEPT:
                self._warned.add(warning)
                log.warning("the apiserver warns: %s", warning, extra={"call": call})
