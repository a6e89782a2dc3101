"""A validating admission webhook for a real apiserver: it denies what a test tells it to deny, and counts."""

import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from sim.control_plane import ApiServer
from sim.control_plane.pki import CertificateAuthority

Request = dict[str, Any]


@dataclass
class Webhook:
    denies: Callable[[Request], bool] = lambda _: False
    text: str = "no"
    denied: list[Request] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        asked = review["request"]
        deny = self.denies(asked)
        if deny:
            self.denied.append(asked)
        answer = {"uid": asked["uid"], "allowed": not deny, "status": {"message": self.text}}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer})


@contextlib.asynccontextmanager
async def a_webhook(server: ApiServer, folder: Path, *, group: str, resource: str) -> AsyncIterator[Webhook]:
    """Asked about every creation of one resource, dry runs included."""
    authority = CertificateAuthority(folder)
    pair = authority.issue("webhook", "webhook", addresses=["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    webhook = Webhook()
    app = web.Application()
    app.router.add_post("/", webhook.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    configuration = _configuration(port, authority.certificate.read_bytes(), group=group, resource=resource)
    server.kubectl("create", "-f", "-", input=json.dumps(configuration))
    try:
        yield webhook
    finally:
        server.kubectl("delete", "validatingwebhookconfiguration", configuration["metadata"]["name"])
        await runner.cleanup()


def _configuration(port: int, ca: bytes, *, group: str, resource: str) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "tpu.acme.dev"},
        "webhooks": [
            {
                "name": "tpu.acme.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": base64.b64encode(ca).decode()},
                "rules": [
                    {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}
                ],
            }
        ],
    }
