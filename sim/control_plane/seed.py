"""Remembers KubeRay's CRDs as the apiserver has stored them, so that the next bench does not compute them again.

Their schemas are 3 MB: taking them in costs the apiserver 8 CPU seconds and 150 MB. What it stored in one bench is
put into the etcd of the next one before its apiserver starts. Everything else, uids included, is every bench's own.
"""

import base64
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3

from sim.control_plane.api_client import ApiClient, wait_until
from sim.control_plane.daemon import Daemon, StartError
from sim.control_plane.pki import KeyPair
from sim.control_plane.programs import Address
from sim.tools import PROGRAMS

CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ETCD_PREFIX = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
_ETCD_SECONDS = 60.0


def seed_path(cache: Path) -> Path:
    """One file per pair of versions: what an apiserver stores is its own affair."""
    keys = [program.key for program in PROGRAMS if program.name in ("kubernetes", "kuberay")]
    return cache / "tools" / f"stored-crds-{'-'.join(sorted(keys))}.json"


def read_seed(path: Path) -> dict[str, str]:
    """CRD name -> its JSON in etcd; empty when there is no seed yet."""
    try:
        seed: dict[str, str] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return seed


def save_seed(path: Path, client: ApiClient, names: list[str]) -> None:
    """Keep what the apiserver stored for these CRDs. Raises ApiError and OSError."""
    seed = {name: json.dumps(build_stored_object(client.get(f"{CRD_PATH}/{name}"))) for name in names}
    # A name that no other bench has: process numbers are the same in all of them.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".stored-crds-", delete=False) as scratch:
        scratch.write(json.dumps(seed))
    Path(scratch.name).replace(path)


def build_stored_object(crd: Mapping[str, Any]) -> dict[str, Any]:
    """An object as etcd holds it: the resource version is etcd's revision, not part of the value."""
    metadata = {key: value for key, value in crd["metadata"].items() if key != "resourceVersion"}
    return {**crd, "metadata": metadata}


def plant(seed: Mapping[str, str], etcd: Daemon, *, address: Address, ca: Path, pair: KeyPair) -> None:
    """Put the objects into an etcd that is starting. Raises StartError if it does not come up, or refuses."""
    pool = urllib3.PoolManager(ca_certs=str(ca), cert_file=str(pair.certificate), key_file=str(pair.key))

    def is_ready() -> bool:
        try:
            return pool.request("GET", f"https://{address}/health", timeout=2.0, retries=False).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    with pool:
        wait_until(is_ready, what="etcd", seconds=_ETCD_SECONDS, check=etcd.check, every=0.02)
        for name, value in seed.items():
            body = {"key": _encoded(_ETCD_PREFIX + name), "value": _encoded(value)}
            answer = pool.request("POST", f"https://{address}/v3/kv/put", json=body, timeout=30.0, retries=False)
            if answer.status != 200:
                raise StartError(f"etcd refuses {name}: {answer.status} {answer.data[:500]!r}")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
