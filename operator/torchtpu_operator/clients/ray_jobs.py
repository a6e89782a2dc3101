"""The Ray dashboard's REST API: version, nodes, and one job. No `ray` package: its client blocks and has no time limit.

Tried against Ray 2.60: an unknown submission id is 404; a second POST of one id is HTTP 500 with "already exists" in the
text; a token is needed on every path but /api/gcs_healthz (401 without one, 403 with a wrong one).
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import aiohttp

from torchtpu_operator.clients.calls import CallSeen, shortened, unseen
from torchtpu_operator.plan.observed import CallFailed, FailureClass, RayJobSeen, RayNodeSeen
from torchtpu_operator.runner.result import parse_result

DEFAULT_BASE_URL = "http://{head_service}.{namespace}.svc:{port}"
_READ_SECONDS = 5.0  # a head that hangs must not hold a worker of the queue for long
_LEFT_ALONE_SECONDS = 10.0  # nor hold one all the time: so long nobody asks it anything after a read timed out
_SUBMIT_SECONDS = 45.0  # the first submission starts an agent: 1.5 s measured, far more on a busy head
_LOG_SECONDS = 15.0
_MAX_ANSWER = 16 * 1024 * 1024
_MAX_LOG = 1024 * 1024
_MAX_LAST_LINES = 40  # of at most 1 KiB each; the runner gives 8 KiB in all
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SUBMITTED_ALREADY = "already exists"


@dataclass(frozen=True, kw_only=True)
class RayHead:
    """Where a head's dashboard is, and the key to it."""

    namespace: str
    service: str
    """From the RayCluster's status.head.serviceName."""
    port: int = 8265
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class RayVersion:
    ray: str
    session_name: str
    """Another one means another Ray: the head has restarted, its jobs are gone."""


@dataclass(frozen=True, kw_only=True)
class RayJob:
    """A job as the head knows it, with what tells whether it is ours."""

    seen: RayJobSeen
    metadata: Mapping[str, str]

    def with_log(self, log: str) -> "RayJob":
        """The same job with what the end of its driver's output tells."""
        result = parse_result(log)
        return replace(self, seen=replace(self.seen, result=result, last_lines=_last_lines(log.splitlines(), result)))


class RayJobs(Protocol):
    """What observers and executor need of a Ray head. No method raises for what the head answers or fails to answer."""

    async def version(self, head: RayHead) -> RayVersion | CallFailed: ...

    async def nodes(self, head: RayHead) -> tuple[RayNodeSeen, ...] | CallFailed: ...

    async def job(self, head: RayHead, submission_id: str) -> RayJob | CallFailed | None:
        """None: the head does not know the id."""

    async def submit(
        self,
        head: RayHead,
        *,
        submission_id: str,
        entrypoint: str,
        metadata: Mapping[str, str],
        runtime_env: Mapping[str, Any],
    ) -> CallFailed | None:
        """One POST; None where the head has the job now. After a failure ask `job`: it may have taken effect."""

    async def stop(self, head: RayHead, submission_id: str) -> CallFailed | None:
        """None also where it is over or unknown."""

    async def log_tail(self, head: RayHead, submission_id: str, *, lines: int = 500) -> str | CallFailed:
        """The last lines of the driver's output."""


class HttpRayJobs:
    """`RayJobs` over HTTP. One session for all heads: connections end when their head does."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        base_url: str = DEFAULT_BASE_URL,
        seen: CallSeen = unseen,
        read_seconds: float = _READ_SECONDS,
    ) -> None:
        self._session, self._base_url, self._seen, self._read_seconds = session, base_url, seen, read_seconds
        self._left_alone: dict[tuple[str, str], float] = {}

    async def version(self, head: RayHead) -> RayVersion | CallFailed:
        answer = await self._json(head, "version", "GET", "/api/version")
        if isinstance(answer, CallFailed):
            return answer
        return RayVersion(ray=str(answer.get("ray_version", "")), session_name=str(answer.get("session_name", "")))

    async def nodes(self, head: RayHead) -> tuple[RayNodeSeen, ...] | CallFailed:
        answer = await self._json(head, "nodes", "GET", "/api/v0/nodes", query={"detail": "1", "limit": "10000"})
        if isinstance(answer, CallFailed):
            return answer
        try:
            return tuple(_node(item) for item in answer["data"]["result"]["result"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return _unreadable("GET /api/v0/nodes", error)

    async def job(self, head: RayHead, submission_id: str) -> RayJob | CallFailed | None:
        answer = await self._json(head, "job", "GET", f"/api/jobs/{submission_id}")
        if isinstance(answer, CallFailed):
            return None if answer.failure is FailureClass.NOT_FOUND else answer
        try:
            return _job(submission_id, answer)
        except (KeyError, TypeError, ValueError) as error:
            return _unreadable(f"GET /api/jobs/{submission_id}", error)

    async def submit(
        self,
        head: RayHead,
        *,
        submission_id: str,
        entrypoint: str,
        metadata: Mapping[str, str],
        runtime_env: Mapping[str, Any],
    ) -> CallFailed | None:
        body = {
            "entrypoint": entrypoint,
            "submission_id": submission_id,
            "metadata": dict(metadata),
            "runtime_env": dict(runtime_env),
        }
        answer = await self._json(head, "submit", "POST", "/api/jobs/", body=body, seconds=_SUBMIT_SECONDS)
        if isinstance(answer, CallFailed):
            return None if _SUBMITTED_ALREADY in answer.message else answer
        return None

    async def stop(self, head: RayHead, submission_id: str) -> CallFailed | None:
        answer = await self._json(head, "stop", "POST", f"/api/jobs/{submission_id}/stop", seconds=_LOG_SECONDS)
        if isinstance(answer, CallFailed) and answer.failure is not FailureClass.NOT_FOUND:
            return answer
        return None

    async def log_tail(self, head: RayHead, submission_id: str, *, lines: int = 500) -> str | CallFailed:
        # /api/jobs/<id>/logs would read the whole file into the head's memory and ours.
        query = {"submission_id": submission_id, "lines": str(lines)}
        return await self._text(
            head, "log", "GET", "/api/v0/logs/file", query=query, seconds=_LOG_SECONDS, keep_last=_MAX_LOG
        )

    async def _json(
        self,
        head: RayHead,
        verb: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any] | CallFailed:
        text = await self._text(head, verb, method, path, query=query, body=body, seconds=seconds)
        if isinstance(text, CallFailed):
            return text
        try:
            document = json.loads(text)
        except ValueError as error:
            return _unreadable(f"{method} {path}", error)
        if not isinstance(document, dict):
            return _unreadable(f"{method} {path}", TypeError("not an object"))
        return document

    async def _text(
        self,
        head: RayHead,
        verb: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        keep_last: int | None = None,
    ) -> str | CallFailed:
        """`seconds` None: a quick read, which is not tried at all while the head is left alone."""
        call, code = f"{method} {path}", "no-answer"
        who, now = (head.namespace, head.service), asyncio.get_running_loop().time()
        limit = self._read_seconds if seconds is None else seconds
        if seconds is None and now < self._left_alone.get(who, 0.0):
            return CallFailed(
                call=call,
                failure=FailureClass.TRANSIENT,
                message="no answer in time; the head is left alone for a moment",
            )
        base = self._base_url.format(head_service=head.service, namespace=head.namespace, port=head.port)
        headers = {"Authorization": f"Bearer {head.token}"} if head.token else {}
        try:
            async with self._session.request(
                method,
                base + path,
                params=query,
                json=body,
                headers=headers,
                allow_redirects=False,  # a redirect would carry the token to whoever it names
                timeout=aiohttp.ClientTimeout(total=limit, connect=min(limit, 3.0)),
            ) as response:
                code = str(response.status)
                text = await _bounded(response, keep_last=keep_last)
            self._left_alone.pop(who, None)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            if isinstance(error, TimeoutError):
                self._leave_alone(who, now + limit)
            words = str(error) or type(error).__name__
            return CallFailed(call=call, failure=FailureClass.TRANSIENT, message=shortened(f"no answer: {words}"))
        finally:
            self._seen(target="ray", verb=verb, code=code)
        if response.status == 200:
            return text
        return CallFailed(call=call, failure=_failure(response.status), message=_last_words(response.status, text))

    def _leave_alone(self, who: tuple[str, str], now: float) -> None:
        self._left_alone = {other: until for other, until in self._left_alone.items() if until > now}
        self._left_alone[who] = now + _LEFT_ALONE_SECONDS


async def _bounded(response: aiohttp.ClientResponse, *, keep_last: int | None) -> str:
    """The body, at most `_MAX_ANSWER` bytes of it; with `keep_last` the end of a body of any length."""
    kept = bytearray()
    async for chunk in response.content.iter_chunked(64 * 1024):
        kept += chunk
        if keep_last is not None:
            del kept[:-keep_last]
        elif len(kept) > _MAX_ANSWER:
            raise ValueError(f"answer of more than {_MAX_ANSWER} bytes")
    return kept.decode(errors="replace")


def _failure(status: int) -> FailureClass:
    match status:
        case 401 | 403:
            return FailureClass.PERMISSION
        case 404:
            return FailureClass.NOT_FOUND
        case 429:
            return FailureClass.THROTTLED
        case 400 | 405 | 413 | 415 | 422:
            return FailureClass.INVALID
        case _:
            return FailureClass.TRANSIENT  # a redirect too: something stands in between that is not Ray


def _last_words(status: int, text: str) -> str:
    """Ray answers with a traceback; its last line says what is wrong."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return shortened(f"HTTP {status}: {lines[-1] if lines else 'no text'}")


def _unreadable(call: str, error: Exception) -> CallFailed:
    return CallFailed(
        call=call,
        failure=FailureClass.TRANSIENT,
        message=shortened(f"unreadable answer: {type(error).__name__}: {error}"),
    )


def _node(item: Mapping[str, Any]) -> RayNodeSeen:
    labels = item.get("labels") or {}
    resources = item.get("resources_total") or {}
    return RayNodeSeen(
        node_id=item["node_id"],
        alive=item["state"] == "ALIVE",
        ip=item.get("node_ip", ""),
        tpus=float(resources.get("TPU", 0.0)),
        slice_name=labels.get("ray.io/tpu-slice-name", ""),
        worker_id=labels.get("ray.io/tpu-worker-id", ""),
        pod_type=labels.get("ray.io/tpu-pod-type", ""),
        topology=labels.get("ray.io/tpu-topology", ""),
    )


def _job(submission_id: str, answer: Mapping[str, Any]) -> RayJob:
    exit_code = answer.get("driver_exit_code")
    message = str(answer.get("message") or "")
    result = parse_result(message)  # a failed job's message ends with the end of its driver's output
    return RayJob(
        seen=RayJobSeen(
            submission_id=submission_id,
            status=str(answer["status"]),
            message=shortened(message),
            error_type=str(answer.get("error_type") or ""),
            exit_code=int(exit_code) if exit_code is not None else None,
            result=result,
            last_lines=_last_lines(message.splitlines()[1:], result),  # the first line is Ray's own
        ),
        metadata={str(key): str(value) for key, value in (answer.get("metadata") or {}).items()},
    )


def _last_lines(output: Sequence[str], result: Mapping[str, Any] | None) -> tuple[str, ...]:
    lines = output if result is None else result.get("lastLines") or []
    return tuple(shortened(_COLOUR.sub("", str(line)).rstrip()) for line in lines[-_MAX_LAST_LINES:])


def build_session() -> aiohttp.ClientSession:
    """One session for all heads: few connections each, names looked up again soon, no cookies, no proxies."""
    connector = aiohttp.TCPConnector(limit=256, limit_per_host=4, ttl_dns_cache=5)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
