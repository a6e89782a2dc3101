"""One container of a pod over all its restarts."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import aiohttp

from sim.images import Image
from sim.kubelet.api import ApiClient, ApiError, ApiUnreachableError
from sim.kubelet.backoff import BackOff, format_delay
from sim.kubelet.container_config import ContainerConfig, HostView, build_config, build_env, termination_log
from sim.kubelet.env import ConfigError
from sim.kubelet.images import ImagePuller, PullError
from sim.kubelet.logs import last_text
from sim.kubelet.probes import ActionRunner, ContainerProbes
from sim.kubelet.process import ContainerProcess, StartError, start_container
from sim.kubelet.projection import VolumeError
from sim.kubelet.sandbox import Mount
from sim.kubelet.settings import KubeletSettings
from sim.kubelet.sources import env_references, fetch
from sim.kubelet.state import ContainerState, Running, Terminated, Waiting

Json = dict[str, Any]
Role = Literal["init", "sidecar", "main"]

_START_ERROR_CODE: Final = 128
_SHORTEST_GRACE: Final = 2.0
_MESSAGE_BYTES: Final = 4096
_FALLBACK_LINES: Final = 80
_FALLBACK_BYTES: Final = 2048
_LONGEST_HOOK: Final = 3600.0
_ERR_SHOWN: Final = 1.0


class PodContext(Protocol):
    """What a container needs of its pod."""

    api: ApiClient
    settings: KubeletSettings
    images: ImagePuller
    host: HostView
    http: aiohttp.ClientSession
    folder: Path

    @property
    def pod(self) -> Json:
        """The newest known object, with its addresses."""

    @property
    def address(self) -> str: ...

    @property
    def namespace_descriptor(self) -> int: ...

    def mounts(self, container: Json, *, env: Mapping[str, str]) -> Sequence[Mount]: ...

    def changed(self) -> None:
        """A container's state has changed: write the pod's status."""

    def event(self, kind: str, reason: str, message: str, *, container: str = "") -> None: ...


class ContainerRunner:
    """Starts a container, watches it, starts it again as its policy says."""

    def __init__(self, spec: Json, *, role: Role, context: PodContext) -> None:
        self.spec, self.role = spec, role
        waits_for_init = role != "main" or bool(context.pod["spec"].get("initContainers"))
        self.state = ContainerState(
            spec=spec, state=Waiting(reason="PodInitializing" if waits_for_init else "ContainerCreating")
        )
        self.process: ContainerProcess | None = None
        self.has_started = asyncio.Event()
        """Its startup probe has succeeded once: what waits for a sidecar may go on."""
        self._context = context
        self._began: datetime | None = None
        settings = context.settings
        self._back_off = BackOff(
            base=settings.back_off_base, limit=settings.back_off_limit, reset=settings.back_off_reset
        )
        self._pull_back_off = BackOff(
            base=settings.back_off_base, limit=settings.back_off_limit, reset=settings.back_off_limit
        )
        self._config: ContainerConfig | None = None

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    def log_path(self, *, previous: bool = False) -> Path:
        """The log of this start or of the last that ended."""
        # While it waits for its next start, the last that ended is the newest there is.
        back = int(previous and not isinstance(self.state.state, Waiting))
        return self._context.folder / "logs" / self.name / f"{self.state.restarts - back}.log"

    async def run(self) -> Terminated:
        """Until it ends for good."""
        while True:
            ended = await self._run_once()
            if not self._should_restart(ended.exit_code):
                return ended
            ran = (ended.finished - (ended.started or ended.finished)).total_seconds()
            await self._back_off_wait(ended, delay=self._back_off.next(ran=ran))
            self.state.last = ended
            self.state.restarts += 1

    async def stop(self, *, grace: float, reason: str = "") -> None:
        """preStop, the stop signal, `grace` seconds in all, SIGKILL. Returns when it has ended and is recorded."""
        process = self.process
        if process is None or not process.is_running:
            if process is not None:
                await self._record(process)
            return
        if reason:
            self._context.event("Normal", "Killing", reason, container=self.name)
        clock = asyncio.get_running_loop().time
        deadline = clock() + grace
        if grace > 0 and (hook := (self.spec.get("lifecycle") or {}).get("preStop")):
            answer = await self._actions(process).run(hook, timeout=grace)
            if not answer.success:
                self._context.event("Warning", "FailedPreStopHook", "PreStopHook failed", container=self.name)
            deadline = max(deadline, clock() + _SHORTEST_GRACE)
        if grace > 0:
            process.signal(_stop_signal(self.spec))
            with suppress(TimeoutError, StartError):
                await asyncio.wait_for(process.wait(), deadline - clock())
        if process.is_running:
            process.kill()
        await self._record(process)

    def kill(self, *, reason: str | None = None) -> None:
        """SIGKILL now; `reason` shows instead of Error (OOMKilled)."""
        if self.process is not None and self.process.is_running:
            self.process.killed_for = reason
            self.process.kill()

    # What a running container's probes tell (ProbeListener).

    def on_started(self) -> None:
        self.state.started = True
        self.has_started.set()
        self._context.changed()

    def on_ready(self, ready: bool) -> None:
        if self.state.ready != ready:
            self.state.ready = ready
            self._context.changed()

    def on_probe_failed(self, kind: str, output: str) -> None:
        self._context.event("Warning", "Unhealthy", f"{kind} probe failed: {output}", container=self.name)

    async def on_dead(self, kind: str, grace: int | None) -> None:
        spec = self._context.pod["spec"]
        seconds = grace if grace is not None else spec.get("terminationGracePeriodSeconds", 30)
        await self.stop(grace=seconds, reason=f"Container {self.name} failed {kind} probe, will be restarted")

    async def _run_once(self) -> Terminated:
        image = await self._pull()
        self._config = await self._configure(image)
        self.state.image_id = image.id
        began = datetime.now(UTC)
        self._termination_log().write_bytes(b"")
        self._termination_log().chmod(0o666)
        try:
            process = await start_container(
                self._config.sandbox,
                command=self._config.command,
                env=self._config.env,
                namespace=self._context.namespace_descriptor,
                log=self.log_path(),
            )
        except OSError as error:
            return self._failed_start(str(error), began=began)
        self.process, self._began = process, began
        self.state.container_id = f"bwrap://{self._context.pod['metadata']['uid']}-{self.name}-{self.state.restarts}"
        self.state.state = Running(started=began)
        self.state.started = self.state.ready = False
        if not self.spec.get("startupProbe"):
            self.state.started = True
            self.state.ready = not self.spec.get("readinessProbe")
        self._context.event("Normal", "Started", f"Started container {self.name}", container=self.name)
        self._context.changed()
        watching = asyncio.create_task(self._watch(process))
        try:
            with suppress(StartError):
                await process.wait()
        finally:
            watching.cancel()
            # A probe that is just stopping this container waits for its end as we do.
            await asyncio.wait([watching], timeout=None)
        return await self._record(process)

    async def _watch(self, process: ContainerProcess) -> None:
        """Post-start hook, then probes."""
        actions = self._actions(process)
        if hook := (self.spec.get("lifecycle") or {}).get("postStart"):
            answer = await actions.run(hook, timeout=_LONGEST_HOOK)
            if not answer.success:
                message = f"PostStartHook failed: {answer.output}"
                self._context.event("Warning", "FailedPostStartHook", message, container=self.name)
                process.kill()
                return
        await ContainerProbes(container=self.spec, runner=actions, listener=self).run()

    async def _pull(self) -> Image:
        reference = self.spec["image"]
        while True:
            try:
                return await self._context.images.pull(reference, say=self._say_pull)
            except PullError as error:
                self._wait_state("ErrImagePull", str(error))
                self._context.event(
                    "Warning", "Failed", f'Failed to pull image "{reference}": {error}', container=self.name
                )
                delay = self._pull_back_off.next(ran=0) or self._pull_back_off.next(ran=0)
                await asyncio.sleep(min(_ERR_SHOWN, delay))
                message = f'Back-off pulling image "{reference}"'
                self._context.event("Normal", "BackOff", message, container=self.name)
                self._wait_state("ImagePullBackOff", f"{message}: ErrImagePull: {error}")
                await asyncio.sleep(delay)

    async def _configure(self, image: Image) -> ContainerConfig:
        """Environment, volumes and user, again and again until what is missing has come."""
        pod = self._context.pod
        while True:
            try:
                sources = await fetch(
                    self._context.api, namespace=pod["metadata"]["namespace"], references=env_references(self.spec)
                )
                pod = self._context.pod
                env = build_env(self.spec, pod=pod, image=image, sources=sources, host=self._context.host)
                mounts = [
                    *self._context.mounts(self.spec, env=env),
                    termination_log(self.spec, source=self._termination_log()),
                ]
                return build_config(
                    self.spec, pod=pod, image=image, env=env, mounts=mounts, root=self._context.host.root
                )
            except (ConfigError, VolumeError) as error:
                self._wait_state("CreateContainerConfigError", str(error))
                self._context.event("Warning", "Failed", f"Error: {error}", container=self.name)
            except (ApiError, ApiUnreachableError) as error:
                self._wait_state("CreateContainerConfigError", f"cannot read what the environment needs: {error}")
            await asyncio.sleep(self._context.settings.config_retry)

    async def _record(self, process: ContainerProcess) -> Terminated:
        """The end of a start, written once."""
        if self.process is not process and isinstance(self.state.state, Terminated):
            return self.state.state
        try:
            code, reason, message = await process.wait(), "", ""
        except StartError as error:
            code, reason, message = _START_ERROR_CODE, "StartError", str(error)
        reason = process.killed_for or reason or ("Completed" if code == 0 else "Error")
        self._end(code, reason, message or self._last_words(code), began=self._began)
        self.process = None
        assert isinstance(self.state.state, Terminated)
        return self.state.state

    def _failed_start(self, message: str, *, began: datetime) -> Terminated:
        self._end(_START_ERROR_CODE, "ContainerCannotRun", message, began=began)
        assert isinstance(self.state.state, Terminated)
        return self.state.state

    def _end(self, code: int, reason: str, message: str, *, began: datetime | None) -> None:
        self.state.state = Terminated(
            exit_code=code,
            reason=reason,
            started=began,
            finished=datetime.now(UTC),
            message=message,
            container_id=self.state.container_id,
        )
        self.state.ready = self.role == "init" and code == 0
        self.state.started = False
        self._context.changed()

    def _last_words(self, code: int) -> str:
        path = self._termination_log()
        text = path.read_bytes()[:_MESSAGE_BYTES].decode(errors="replace") if path.exists() else ""
        if not text and code != 0 and self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            return last_text(self.log_path(), lines=_FALLBACK_LINES, size=_FALLBACK_BYTES)
        return text

    async def _back_off_wait(self, ended: Terminated, *, delay: float) -> None:
        if not delay:
            return
        metadata = self._context.pod["metadata"]
        where = f"{self.name} pod={metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        self.state.last = ended
        self._wait_state("CrashLoopBackOff", f"back-off {format_delay(delay)} restarting failed container={where}")
        message = f"Back-off restarting failed container {where.replace(' pod=', ' in pod ')}"
        self._context.event("Warning", "BackOff", message, container=self.name)
        await asyncio.sleep(max(0.0, delay - (datetime.now(UTC) - ended.finished).total_seconds()))

    def _should_restart(self, code: int) -> bool:
        policy = self._context.pod["spec"].get("restartPolicy", "Always")
        match self.role:
            case "sidecar":
                return True
            case "init":
                return code != 0 and policy != "Never"
            case "main":
                return policy == "Always" or (policy == "OnFailure" and code != 0)

    def _wait_state(self, reason: str, message: str) -> None:
        self.state.state = Waiting(reason=reason, message=message)
        self._context.changed()

    def _say_pull(self, reason: str, message: str) -> None:
        self._context.event("Normal", reason, message, container=self.name)

    def _actions(self, process: ContainerProcess) -> ActionRunner:
        return ActionRunner(
            process=process, container=self.spec, address=self._context.address, http=self._context.http
        )

    def _termination_log(self) -> Path:
        path = self._context.folder / "termination" / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _stop_signal(spec: Json) -> int:
    name = (spec.get("lifecycle") or {}).get("stopSignal", "SIGTERM")
    return int(getattr(signal, name, signal.SIGTERM))
