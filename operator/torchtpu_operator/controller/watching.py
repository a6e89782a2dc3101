# ruff: noqa: ARG002 - kopf's storages have signatures of their own
"""kopf watches and logs in, and nothing else: each event goes into a cache, and the cache wakes whom it concerns.

Only `on.event` is used: kopf's handlers for changes keep their state in annotations, race with its timers and retry nothing
that we need retried. It writes nothing to any object here.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import kopf
from kubernetes.aio.client import Configuration

from torchtpu_operator.api.constants import GROUP, LABEL_JOB_UID, NODE_LABEL_ACCELERATOR
from torchtpu_operator.clients.kinds import (
    CLASSES,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RAY_CLUSTERS,
    SLICES,
    Kind,
)
from torchtpu_operator.controller.caches import Caches

log = logging.getLogger(__name__)

CACHED: Mapping[Kind, str] = {
    JOBS: "",
    SLICES: "",
    CLASSES: "",
    NODES: NODE_LABEL_ACCELERATOR,
    PODS: LABEL_JOB_UID,
    NAMESPACES: "",
    PRIORITY_CLASSES: "",
}
"""What is kept in caches, and the label selector of each kind's lists and watches."""

SELECTORS: Mapping[Kind, str] = {**CACHED, RAY_CLUSTERS: LABEL_JOB_UID}

_CONNECTIONS = 64  # kopf's own session has no limit: 2,000 objects cost 1,860 TLS connections


class _NoDiffBase(kopf.DiffBaseStorage):
    """kopf computes and keeps an essence of every body even where only on.event is used; this takes a third of its CPU."""

    def build(self, *, body: Any, extra_fields: Any = None) -> Any:
        return {}

    def fetch(self, *, body: Any) -> Any:
        return None

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    def fetch(self, *, key: Any, body: Any) -> Any:
        return None

    def store(self, *, key: Any, record: Any, body: Any, patch: Any) -> None:
        pass

    def purge(self, *, key: Any, body: Any, patch: Any) -> None:
        pass

    def touch(self, *, body: Any, patch: Any, value: Any) -> None:
        pass

    def clear(self, *, essence: Any) -> Any:
        return essence


def build_registry(caches: Caches, configuration: Configuration) -> kopf.OperatorRegistry:
    """A registry of its own: kopf's default one has implicit logins."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure_kopf(settings)

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        # A new one each time: kopf refuses credentials equal to those that a single 401 made invalid, and ends.
        return kopf.AiohttpSession(server=configuration.host, aiohttp_session=kopf_session(configuration))

    for kind in CACHED:
        kopf.on.event(kind.group, kind.version, kind.plural, registry=registry)(_cached(caches, kind))

    @kopf.on.event(RAY_CLUSTERS.group, RAY_CLUSTERS.version, RAY_CLUSTERS.plural, registry=registry)
    async def ray_cluster_seen(labels: kopf.Labels, **_: Any) -> None:
        caches.wake_job_of(labels.get(LABEL_JOB_UID, ""))

    return registry


def _cached(caches: Caches, kind: Kind) -> Callable[..., Any]:
    cache = caches.of(kind)

    async def seen(event: Any, **_: Any) -> None:
        obj = event["object"]
        if event["type"] == "DELETED":
            cache.forget(obj)
        else:
            cache.remember(obj)

    seen.__name__ = f"{kind.plural}_seen"
    return seen


def configure_kopf(settings: kopf.OperatorSettings) -> None:
    settings.posting.enabled = False
    # Scanning stays on: with it off, a CRD that is installed later (KubeRay after us) is never watched.
    for kind, labels in SELECTORS.items():
        if labels:
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = labels
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 30
    settings.persistence.finalizer = f"{GROUP}/unused-by-kopf"  # kopf takes this name off every object
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()


def kopf_session(configuration: Configuration) -> aiohttp.ClientSession:
    """A bounded session that reads the token for each request: bound tokens rotate."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)

    async def bearer(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if token := await configuration.get_api_key_with_prefix("BearerToken"):
            request.headers["Authorization"] = token
        return await handler(request)

    connector = aiohttp.TCPConnector(ssl=context, limit=_CONNECTIONS)
    return aiohttp.ClientSession(connector=connector, middlewares=(bearer,))
