"""The one way a status is written: server-side apply of the whole status, under the version it was planned from."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from torchtpu_operator.api import to_dict
from torchtpu_operator.clients.kinds import Kind
from torchtpu_operator.clients.kube import KubeApi


def build_status(kind: Kind, raw: Mapping[str, Any], status: BaseModel) -> dict[str, Any]:
    """The body of the apply. uid and resourceVersion make it fail on a namesake and on what we have not seen."""
    meta = raw["metadata"]
    metadata = {"name": meta["name"], "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    if meta.get("namespace"):
        metadata["namespace"] = meta["namespace"]
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "status": to_dict(status)}


async def write_status(api: KubeApi, kind: Kind, raw: Mapping[str, Any], status: BaseModel) -> dict[str, Any]:
    """The object as it is after the write. Raises KubeError: 409 where it has changed, 404 where it is gone."""
    return await api.apply(kind, build_status(kind, raw, status), subresource="status")
