"""Objects of our kinds in a real kube-apiserver, and its verdict beside that of Python."""

import json
import re
from collections.abc import Iterable
from typing import Any

import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from sim.control_plane import ApiServer
from sim.control_plane.api_client import wait_until
from tests.spec_cases import Document
from torchtpu_operator.api.crd import crd_files
from torchtpu_operator.api.validate import KINDS, InvalidObjectError, parse

_PREFIXES = ("Invalid value: ", "Forbidden: ", "Required value: ")
_TYPE = re.compile(r'^"object": (?!\S+ in body must )')
"""Older apiservers show the type of the object that a rule refuses; errors of type show it in all of them."""


class Api:
    """Create, patch and judge objects of our kinds."""

    def __init__(self, api_client: client.ApiClient, server: ApiServer) -> None:
        self.server = server
        self.objects = client.CustomObjectsApi(api_client)
        self.extensions = client.ApiextensionsV1Api(api_client)

    def install(self, crds: Iterable[Document] | None = None) -> None:
        """Apply these CRDs, today's by default, and wait until their kinds are served."""
        documents = [yaml.safe_load(text) for text in crd_files().values()] if crds is None else crds
        for crd in documents:
            self.server.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(crd))
        for kind in KINDS.values():
            self.wait_for(f"{kind.plural}.torchtpu.dev")

    def wait_for(self, crd: str) -> None:
        """`kubectl wait` fails on a CRD whose status has no conditions yet."""

        def established() -> bool:
            found = self.extensions.read_custom_resource_definition(crd).status
            conditions = (found.conditions if found else None) or ()
            return any(each.type == "Established" and each.status == "True" for each in conditions)

        wait_until(established, what=crd, seconds=60, check=lambda: None)
        wait_until(lambda: self._serves(crd), what=crd, seconds=60, check=lambda: None)

    def _serves(self, crd: str) -> bool:
        plural, _, group = crd.partition(".")
        version = "v1" if group == "ray.io" else "v1alpha1"
        try:
            self.objects.list_cluster_custom_object(group, version, plural)
        except ApiException as error:
            if error.status not in (404, 429):
                raise
            return False
        return True

    def create(self, document: Document, *, dry_run: bool = False) -> Document:
        arguments: dict[str, Any] = {"field_validation": "Strict"} | ({"dry_run": "All"} if dry_run else {})
        plural = KINDS[document["kind"]].plural
        namespace = document["metadata"].get("namespace")
        if namespace:
            made = self.objects.create_namespaced_custom_object(
                "torchtpu.dev", "v1alpha1", namespace, plural, document, **arguments
            )
        else:
            made = self.objects.create_cluster_custom_object("torchtpu.dev", "v1alpha1", plural, document, **arguments)
        return dict(made)

    def patch(self, document: Document, patch: Document, *, status: bool = False) -> Document:
        plural, meta = KINDS[document["kind"]].plural, document["metadata"]
        scope, where = ("namespaced", [meta["namespace"]]) if "namespace" in meta else ("cluster", [])
        call = getattr(self.objects, f"patch_{scope}_custom_object{'_status' if status else ''}")
        return dict(
            call(
                "torchtpu.dev",
                "v1alpha1",
                *where,
                plural,
                meta["name"],
                patch,
                _content_type="application/merge-patch+json",
            )
        )

    def delete(self, document: Document) -> None:
        plural, meta = KINDS[document["kind"]].plural, document["metadata"]
        if "namespace" in meta:
            self.objects.delete_namespaced_custom_object(
                "torchtpu.dev", "v1alpha1", meta["namespace"], plural, meta["name"]
            )
        else:
            self.objects.delete_cluster_custom_object("torchtpu.dev", "v1alpha1", plural, meta["name"])


def said_by_apiserver(api: Api, document: Document, *, whole: bool = False) -> tuple[str, ...]:
    try:
        api.create(document, dry_run=True)
    except ApiException as error:
        return (json.loads(error.body)["message"],) if whole else causes(error)
    return ()


def causes(error: ApiException) -> tuple[str, ...]:
    status = json.loads(error.body)
    found = status.get("details", {}).get("causes")
    assert found, status["message"]
    return tuple(f"{cause['field']}: {plain(cause['message'])}" for cause in found if cause["field"] != "<nil>")


def said_by_python(document: Document) -> tuple[str, ...]:
    try:
        parse(document)
    except InvalidObjectError as error:
        return tuple(f"{violation.path}: {plain(violation.message)}" for violation in error.violations)
    return ()


def plain(message: str) -> str:
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return _TYPE.sub("", message)
