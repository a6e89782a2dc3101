"""What must be there before the operator can act: our CRDs at the version that we serve, and our own rights.

Missing things are named and waited for: a restart loop would only make the message harder to find.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from torchtpu_operator.clients.kinds import CLASSES, GROUP, JOBS, NAMESPACES, SLICES, VERSION
from torchtpu_operator.clients.kube import KubeApi
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.health import Health
from torchtpu_operator.controller.permissions import PERMISSIONS, Permission

log = logging.getLogger(__name__)

_AGAIN = 5.0


async def until_ready(api: KubeApi, *, health: Health, namespace: str) -> None:
    """Returns when nothing is missing any more."""
    await _until(_missing_crds, api, health=health, concern="crds", namespace=namespace)
    await _until(_missing_permissions, api, health=health, concern="permissions", namespace=namespace)


async def kube_system_uid(api: KubeApi) -> str:
    """The identity of the cluster. Raises KubeError."""
    namespace = await api.get(NAMESPACES, "kube-system")
    if namespace is None:
        raise KubeError("there is no namespace kube-system", call="GET /api/v1/namespaces/kube-system", status=404)
    return str(namespace["metadata"]["uid"])


async def _until(
    check: Callable[[KubeApi, str], Awaitable[str]], api: KubeApi, *, health: Health, concern: str, namespace: str
) -> None:
    told = ""
    while True:
        try:
            problem = await check(api, namespace)
        except KubeError as error:
            problem = f"the Kubernetes API does not answer: {error}"
        health.set(concern, problem)
        if not problem:
            return
        if problem != told:
            log.error("cannot start yet, trying again every %.0f s: %s", _AGAIN, problem)
            told = problem
        await asyncio.sleep(_AGAIN)


async def _missing_crds(api: KubeApi, namespace: str) -> str:
    del namespace
    served = await api.served(GROUP, VERSION)
    missing = [kind.plural for kind in (JOBS, SLICES, CLASSES) if kind.plural not in served]
    if not missing:
        return ""
    names = ", ".join(f"{plural}.{GROUP}" for plural in missing)
    return f"CRDs not served at {VERSION}: {names}; install the chart's CRDs of this operator version"


async def _missing_permissions(api: KubeApi, namespace: str) -> str:
    held = await asyncio.gather(*(_has(api, permission, namespace) for permission in PERMISSIONS))
    missing = [permission for permission, has in zip(PERMISSIONS, held, strict=True) if not has]
    if not missing:
        return ""
    return f"the operator's service account may not {'; '.join(_line(permission) for permission in missing)}"


async def _has(api: KubeApi, permission: Permission, namespace: str) -> bool:
    where = namespace if permission.own_namespace else None
    allowed = await asyncio.gather(
        *(
            api.may(verb=verb, group=group, resource=resource, namespace=where)
            for group, resource, verb in permission.each()
        )
    )
    return all(allowed)


def _line(permission: Permission) -> str:
    resource = f"{permission.resource}.{permission.group}" if permission.group else permission.resource
    return f"{', '.join(permission.verbs)} {resource} ({permission.why})"
