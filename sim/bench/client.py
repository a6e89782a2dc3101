"""Speaks with a running bench's admin endpoint."""

import http.client
import json
import socket
from typing import Any

from sim.bench.folder import BenchError, BenchFolder

_SECONDS = 300.0
"""For the slowest: KubeRay's installation on a loaded machine."""


class AdminClient:
    """One connection per request: the bench may be restarted in between."""

    def __init__(self, folder: BenchFolder) -> None:
        self._folder = folder

    def get(self, path: str) -> dict[str, Any]:
        """The JSON answer. Raises BenchError with the bench's own words, or if no bench answers."""
        return self._request("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """As `get`."""
        return self._request("POST", path, body)

    def _request(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        # Says that there is no bench better than a refused connection would.
        self._folder.read_state()
        connection = _UnixConnection(self._folder)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
        except OSError as error:
            raise BenchError(f"the bench in {self._folder.path} does not answer: {error}") from error
        finally:
            connection.close()
        if response.status == 400:
            raise BenchError(json.loads(text)["error"])
        if response.status != 200:
            raise BenchError(f"{method} {path}: {response.status} {text}")
        answer: dict[str, Any] = json.loads(text)
        return answer


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, folder: BenchFolder) -> None:
        super().__init__("bench", timeout=_SECONDS)
        self._folder = folder

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with self._folder.socket_path() as path:
            self.sock.connect(path)
