"""ConfigMaps, Secrets and tokens of a pod, fetched as its node."""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sim.kubelet.api import ApiClient, ApiError
from sim.kubelet.projection import TokenRequest

Json = dict[str, Any]

_GRAPH_WAIT: Final = 0.1
_GRAPH_TRIES: Final = 30
_ROTATE_AT: Final = 0.8


@dataclass(frozen=True, kw_only=True)
class References:
    """Names of the objects that a pod's env and volumes mention."""

    config_maps: frozenset[str]
    secrets: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class FetchedSources:
    """Implements `env.Sources`; None for an object that does not exist."""

    config_maps: Mapping[str, Mapping[str, bytes] | None] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, bytes] | None] = field(default_factory=dict)

    def config_map(self, name: str) -> Mapping[str, bytes] | None:
        return self.config_maps.get(name)

    def secret(self, name: str) -> Mapping[str, bytes] | None:
        return self.secrets.get(name)


def env_references(container: Json) -> References:
    """What a container's environment needs."""
    sources = [entry.get("valueFrom") or {} for entry in container.get("env") or ()]
    froms = container.get("envFrom") or ()
    return References(
        config_maps=frozenset(
            [s["configMapKeyRef"]["name"] for s in sources if "configMapKeyRef" in s]
            + [f["configMapRef"]["name"] for f in froms if "configMapRef" in f]
        ),
        secrets=frozenset(
            [s["secretKeyRef"]["name"] for s in sources if "secretKeyRef" in s]
            + [f["secretRef"]["name"] for f in froms if "secretRef" in f]
        ),
    )


def volume_references(volume: Json) -> References:
    """What a volume needs."""
    parts = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    secrets = [part["secret"] for part in parts if "secret" in part]
    return References(
        config_maps=frozenset(part["configMap"]["name"] for part in parts if "configMap" in part),
        secrets=frozenset(secret.get("secretName") or secret["name"] for secret in secrets),
    )


async def fetch(api: ApiClient, *, namespace: str, references: References) -> FetchedSources:
    """Read the objects. Raises ApiUnreachableError, or ApiError for anything but absence."""
    return FetchedSources(
        config_maps={name: await _fetch(api, namespace, "configmaps", name) for name in references.config_maps},
        secrets={name: await _fetch(api, namespace, "secrets", name) for name in references.secrets},
    )


async def _fetch(api: ApiClient, namespace: str, kind: str, name: str) -> Mapping[str, bytes] | None:
    # The Node authorizer learns of a pod's references a moment after the binding: forbidden may mean not yet.
    for attempt in range(_GRAPH_TRIES):
        try:
            found = await api.get(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        except ApiError as error:
            if error.code == 404:
                return None
            if error.code != 403 or attempt == _GRAPH_TRIES - 1:
                raise
            await asyncio.sleep(_GRAPH_WAIT)
        else:
            if kind == "secrets":
                return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
            binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
            return {**binary, **{key: value.encode() for key, value in (found.get("data") or {}).items()}}
    return None


@dataclass(frozen=True, kw_only=True)
class _Token:
    text: str
    rotate: datetime


class Tokens:
    """ServiceAccount tokens of one pod, asked for when first needed and again when most of their time is over.

    The time comes from the answer's status: the apiserver may issue a JWT that lives longer than what it promises.
    """

    def __init__(self, api: ApiClient, pod: Json) -> None:
        self._api, self._pod = api, pod
        self._tokens: dict[TokenRequest, _Token] = {}

    async def get(self, request: TokenRequest) -> str:
        """A valid token. Raises ApiError or ApiUnreachableError."""
        now = datetime.now(UTC)
        known = self._tokens.get(request)
        if known is None or now >= known.rotate:
            known = self._tokens[request] = await self._request(request, now=now)
        return known.text

    async def _request(self, request: TokenRequest, *, now: datetime) -> _Token:
        metadata, spec = self._pod["metadata"], self._pod["spec"]
        account = spec.get("serviceAccountName") or "default"
        answer = await self._api.create(
            f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": [request.audience] if request.audience else [],
                    "expirationSeconds": request.seconds,
                    "boundObjectRef": {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": metadata["name"],
                        "uid": metadata["uid"],
                    },
                },
            },
        )
        ends = datetime.fromisoformat(answer["status"]["expirationTimestamp"].replace("Z", "+00:00"))
        return _Token(
            text=answer["status"]["token"], rotate=now + timedelta(seconds=(ends - now).total_seconds() * _ROTATE_AT)
        )
