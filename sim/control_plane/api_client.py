"""The few requests to the apiserver that bring a cluster up, before any client library could discover it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3

from sim.control_plane.daemon import StartError
from sim.control_plane.pki import KeyPair

_SECONDS = 60.0
"""For one request; a megabyte of schema takes a loaded machine ten."""

_FIELD_MANAGER = "torchtpu-bench"


class ApiError(Exception):
    """The apiserver refused; `status` is its HTTP code, 0 when there was no answer."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class ApiClient:
    """Synchronous, by client certificate. Safe to use from several threads."""

    def __init__(self, url: str, *, ca: Path, pair: KeyPair) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(
            ca_certs=str(ca), cert_file=str(pair.certificate), key_file=str(pair.key), maxsize=8
        )

    def get(self, path: str) -> Any:
        """The object or list. Raises ApiError."""
        return self._request("GET", path).json()

    def create(self, path: str, manifest: dict[str, Any] | bytes) -> Any:
        """POST an object (bytes: its YAML). Raises ApiError; 409 if it exists."""
        if isinstance(manifest, bytes):
            headers = {"Content-Type": "application/yaml"}
            return self._request("POST", path, body=manifest, headers=headers).json()
        return self._request("POST", path, json=manifest).json()

    def apply(self, path: str, manifest: dict[str, Any] | bytes) -> Any:
        """Server-side apply of an object (bytes: its YAML), forced. Raises ApiError."""
        query = f"?fieldManager={_FIELD_MANAGER}&force=true"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        if isinstance(manifest, bytes):
            return self._request("PATCH", path + query, body=manifest, headers=headers).json()
        return self._request("PATCH", path + query, json=manifest, headers=headers).json()

    def is_ready(self, path: str = "/readyz") -> bool:
        try:
            answer = self._pool.request("GET", self._url + path, timeout=2.0, retries=False)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200

    def _request(self, method: str, path: str, **arguments: Any) -> urllib3.BaseHTTPResponse:
        try:
            answer = self._pool.request(method, self._url + path, timeout=_SECONDS, retries=False, **arguments)
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(f"{method} {path}: {error}", status=0) from error
        if answer.status >= 400:
            message = f"{method} {path}: {answer.status} {answer.data.decode(errors='replace')[:2000]}"
            raise ApiError(message, status=answer.status)
        return answer


def wait_until(
    condition: Callable[[], bool], *, what: str, seconds: float, check: Callable[[], None], every: float = 0.05
) -> None:
    """Poll until true. `check` may raise earlier; StartError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        check()
        if time.monotonic() > deadline:
            raise StartError(f"{what} is not ready after {seconds:.0f} s")
        time.sleep(every)
