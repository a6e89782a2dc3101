"""Probes and lifecycle hooks of a running container: exec, httpGet, tcpSocket, sleep."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import aiohttp

from sim.kubelet.probe_rules import ProbeCounter, ProbeTiming
from sim.kubelet.process import ContainerProcess

Json = dict[str, Any]

_SHOWN_OUTPUT: Final = 10 * 1024


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one probe saw."""

    success: bool
    output: str


class ProbeListener(Protocol):
    """Told about probes of one container."""

    def on_started(self) -> None:
        """The startup probe has succeeded."""

    def on_ready(self, ready: bool) -> None: ...

    def on_probe_failed(self, kind: str, output: str) -> None:
        """One probe failed (an event)."""

    async def on_dead(self, kind: str, grace: int | None) -> None:
        """Liveness or startup failed for good: the container must be restarted."""


class ActionRunner:
    """Runs what a probe or hook asks for against one container.

    Network probes go from the kubelet straight to the pod's address: the bench's network is flat.
    """

    def __init__(self, *, process: ContainerProcess, container: Json, address: str, http: aiohttp.ClientSession):
        self._process, self._container, self._address, self._http = process, container, address, http

    async def run(self, action: Json, *, timeout: float) -> Answer:
        """Never raises for a failing action: that is its answer."""
        try:
            async with asyncio.timeout(timeout):
                return await self._run(action, timeout=timeout)
        except TimeoutError:
            return Answer(success=False, output=f"command timed out after {timeout:g}s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(success=False, output=str(error) or repr(error))

    async def _run(self, action: Json, *, timeout: float) -> Answer:
        if "exec" in action:
            outcome = await self._process.execute(action["exec"].get("command") or [], timeout=timeout)
            text = outcome.output[-_SHOWN_OUTPUT:].decode(errors="replace").strip()
            return Answer(success=outcome.exit_code == 0, output=text or f"exit code {outcome.exit_code}")
        if "httpGet" in action:
            return await self._http_get(action["httpGet"])
        if "tcpSocket" in action:
            host = action["tcpSocket"].get("host") or self._address
            _, writer = await asyncio.open_connection(host, self._port(action["tcpSocket"]["port"]))
            writer.close()
            return Answer(success=True, output="")
        if "sleep" in action:
            await asyncio.sleep(action["sleep"]["seconds"])
            return Answer(success=True, output="")
        return Answer(success=False, output=f"the simulated kubelet cannot probe by {sorted(action)}")

    async def _http_get(self, spec: Json) -> Answer:
        scheme = str(spec.get("scheme") or "HTTP").lower()
        path = "/" + str(spec.get("path") or "/").lstrip("/")
        url = f"{scheme}://{spec.get('host') or self._address}:{self._port(spec['port'])}{path}"
        headers = {"User-Agent": "kube-probe/1.36", **{h["name"]: h["value"] for h in spec.get("httpHeaders") or ()}}
        async with self._http.get(url, headers=headers, ssl=False, allow_redirects=False) as answer:
            if 200 <= answer.status < 400:
                return Answer(success=True, output="")
            return Answer(success=False, output=f"HTTP probe failed with statuscode: {answer.status}")

    def _port(self, port: int | str) -> int:
        if isinstance(port, int):
            return port
        ports = self._container.get("ports") or ()
        named = next((entry["containerPort"] for entry in ports if entry.get("name") == port), None)
        return int(named if named is not None else port)


class ContainerProbes:
    """The three probes of a container from one start to its end."""

    def __init__(self, *, container: Json, runner: ActionRunner, listener: ProbeListener) -> None:
        self._container, self._runner, self._listener = container, runner, listener

    async def run(self) -> None:
        """Until cancelled, or until a container without probes has been reported started and ready."""
        began = asyncio.get_running_loop().time()
        if startup := self._container.get("startupProbe"):
            await self._loop("Startup", startup, began=began, verdict=self._startup_verdict)
        self._listener.on_started()
        loops = []
        if readiness := self._container.get("readinessProbe"):
            loops.append(self._loop("Readiness", readiness, began=began, verdict=self._readiness_verdict))
        else:
            self._listener.on_ready(True)
        if liveness := self._container.get("livenessProbe"):
            loops.append(self._loop("Liveness", liveness, began=began, verdict=self._liveness_verdict))
        await asyncio.gather(*loops)

    async def _loop(
        self, kind: str, probe: Json, *, began: float, verdict: Callable[[bool, int | None], Awaitable[bool]]
    ) -> None:
        """Probe each period; `verdict` returns True when no more probes are wanted."""
        timing = ProbeTiming.of(probe)
        counter = ProbeCounter(successes=timing.successes, failures=timing.failures)
        clock = asyncio.get_running_loop().time
        due = began + timing.initial_delay
        while True:
            await asyncio.sleep(max(0.0, due - clock()))
            due = max(due, clock()) + timing.period
            answer = await self._runner.run(probe, timeout=timing.timeout)
            if not answer.success:
                self._listener.on_probe_failed(kind, answer.output)
            decided = counter.observe(answer.success)
            if decided is not None and await verdict(decided, timing.grace):
                return

    async def _startup_verdict(self, success: bool, grace: int | None) -> bool:
        if not success:
            await self._listener.on_dead("startup", grace)
            await asyncio.Event().wait()
        return success

    async def _readiness_verdict(self, success: bool, _grace: int | None) -> bool:
        self._listener.on_ready(success)
        return False

    async def _liveness_verdict(self, success: bool, grace: int | None) -> bool:
        if not success:
            await self._listener.on_dead("liveness", grace)
        return not success
