"""The apiserver as a kubelet speaks with it: JSON over aiohttp with a client certificate.

Plain aiohttp rather than the kubernetes package: objects go through as the dicts they are, unknown fields and all,
and the watches of many nodes cost no model classes.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import aiohttp

from sim.kubelet.settings import KeyPair

Json = dict[str, Any]
PatchKind = Literal["strategic-merge-patch", "merge-patch", "json-patch"]

_REQUEST_TIMEOUT: Final = aiohttp.ClientTimeout(total=15)
_WATCH_SECONDS: Final = 300
_LARGEST_LINE: Final = 16 * 1024 * 1024


class ApiError(Exception):
    """The apiserver refused. `code` is the HTTP status, `reason` Kubernetes' word for it."""

    def __init__(self, *, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code, self.reason, self.message = code, reason, message


class ApiUnreachableError(Exception):
    """No answer: try again."""


class ApiClient:
    """One identity's connection pool to the apiserver."""

    def __init__(self, *, url: str, ca: Path, identity: KeyPair) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        context.load_cert_chain(identity.certificate, identity.key)
        self._url = url.rstrip("/")
        self._context = context
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._context, limit=16), read_bufsize=_LARGEST_LINE
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, **query: str) -> Json:
        return await self._call("GET", path, query=query)

    async def create(self, path: str, body: Json) -> Json:
        return await self._call("POST", path, body=body)

    async def replace(self, path: str, body: Json) -> Json:
        return await self._call("PUT", path, body=body)

    async def patch(self, path: str, body: Json, *, kind: PatchKind = "strategic-merge-patch") -> Json:
        return await self._call("PATCH", path, body=body, content=f"application/{kind}+json")

    async def delete(self, path: str, *, uid: str | None = None, grace: int | None = None) -> None:
        """Delete; absent is not an error, and neither is another object of that name when `uid` is given."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            await self._call("DELETE", path, body=options)
        except ApiError as error:
            if error.code != 404 and not (error.code == 409 and uid is not None):
                raise

    async def watch(self, path: str, *, version: str, **query: str) -> AsyncIterator[Json]:
        """Events after `version`, until the apiserver ends the stream; an ERROR event raises ApiError."""
        parameters = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
            **query,
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=_WATCH_SECONDS + 30)
        try:
            async with self._open().get(self._url + path, params=parameters, timeout=timeout) as answer:
                await _raise_for(answer)
                async for line in answer.content:
                    event: Json = json.loads(line)
                    if event["type"] == "ERROR":
                        raise _error(event["object"], code=int(event["object"].get("code", 500)))
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ApiUnreachableError(f"watch {path}: {error!r}") from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> Json:
        try:
            async with self._open().request(
                method,
                self._url + path,
                params=query,
                data=json.dumps(body) if body is not None else None,
                headers={"Content-Type": content, "Accept": "application/json"},
                timeout=_REQUEST_TIMEOUT,
            ) as answer:
                await _raise_for(answer)
                result: Json = await answer.json()
                return result
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachableError(f"{method} {path}: {error!r}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            raise asyncio.CancelledError("the connection to the apiserver is closed")
        return self._session


async def _raise_for(answer: aiohttp.ClientResponse) -> None:
    if answer.status < 400:
        return
    text = await answer.text()
    try:
        status = json.loads(text)
    except ValueError:
        status = {"message": text}
    raise _error(status if isinstance(status, dict) else {"message": text}, code=answer.status)


def _error(status: Json, *, code: int) -> ApiError:
    return ApiError(code=code, reason=status.get("reason", "Unknown"), message=status.get("message", ""))


def pod_path(pod: Json, *, part: str = "") -> str:
    """The path of a pod or of one of its subresources."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    return f"{path}/{part}" if part else path
