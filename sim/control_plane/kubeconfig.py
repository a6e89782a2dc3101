"""Kubeconfig files: complete in themselves, so that a copy works anywhere."""

import base64
from pathlib import Path
from typing import Any

import yaml

from sim.control_plane.pki import KeyPair


def build_kubeconfig(
    *, server: str, ca: bytes, user: dict[str, Any], cluster: str = "bench", namespace: str = "default"
) -> dict[str, Any]:
    """A kubeconfig with one context; `user` comes from `certificate_user` or `token_user`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": _encoded(ca)}}],
        "users": [{"name": cluster, "user": user}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster, "namespace": namespace}}],
        "current-context": cluster,
    }


def certificate_user(pair: KeyPair) -> dict[str, Any]:
    """Someone who shows a client certificate."""
    return {
        "client-certificate-data": _encoded(pair.certificate.read_bytes()),
        "client-key-data": _encoded(pair.key.read_bytes()),
    }


def token_user(token: str) -> dict[str, Any]:
    """Someone who shows a bearer token."""
    return {"token": token}


def write_kubeconfig(path: Path, config: dict[str, Any]) -> Path:
    """Write it so that nobody else reads the keys in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
