"""What the operator told this run, read once from the environment."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import constants as c
from .failures import RunnerError


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One TPU slice as Ray knows it."""

    name: str
    """TPU_NAME of its hosts, the value of Ray's label `ray.io/tpu-slice-name`."""
    hosts: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Shape and limits of a run; sizes are equal over all slices."""

    launcher: str
    slices: tuple[Slice, ...]
    topology: str
    accelerator_type: str
    chips_per_host: int
    devices_per_chip: int
    torch_topology: str
    stop_grace_seconds: float
    reserve_timeout_seconds: float
    start_timeout_seconds: float
    working_dir: str | None = None
    no_progress_seconds: float | None = None
    """How long all ranks may give no sign of life; None: for ever."""

    @property
    def hosts_per_slice(self) -> int:
        return self.slices[0].hosts

    @property
    def num_hosts(self) -> int:
        return len(self.slices) * self.hosts_per_slice

    @property
    def devices_per_host(self) -> int:
        return self.chips_per_host * self.devices_per_chip

    @property
    def devices_per_slice(self) -> int:
        return self.hosts_per_slice * self.devices_per_host

    @property
    def num_devices(self) -> int:
        return len(self.slices) * self.devices_per_slice

    @property
    def per_host(self) -> bool:
        """One process per host (PerHost) rather than per device."""
        return self.launcher == c.LAUNCHER_PER_HOST

    @property
    def workers_per_host(self) -> int:
        return 1 if self.per_host else self.devices_per_host

    @property
    def num_workers(self) -> int:
        """Processes that the runner starts."""
        return self.num_hosts * self.workers_per_host


def _bad(message: str) -> RunnerError:
    return RunnerError(
        f"{message}; the operator sets the TORCHTPU_* variables of the pods, do not override them in spec.env",
        reason=c.REASON_BAD_CONFIG,
    )


def _positive(env: Mapping[str, str], name: str, *, default: float | None = None, or_zero: bool = False) -> float:
    text = env.get(name, "")
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise _bad(f"{name} must be a number, got {text!r}") from None
    if not ((value > 0 or (or_zero and value == 0)) and math.isfinite(value)):
        raise _bad(f"{name} must be {'0 or more' if or_zero else 'above 0'}, got {text!r}")
    return value


def _count(env: Mapping[str, str], name: str) -> int:
    text = env.get(name, "")
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise _bad(f"{name} must be a whole number above 0, got {text!r}")
    return int(text)


def _text(env: Mapping[str, str], name: str) -> str:
    if not env.get(name):
        raise _bad(f"{name} is not set")
    return env[name]


def dimensions(topology: str) -> tuple[int, ...]:
    """`4x4` or `4,4,1` as numbers. Raises ValueError if it is not that."""
    return tuple(int(part) for part in topology.replace(",", "x").split("x"))


def parse_slices(text: str) -> tuple[Slice, ...]:
    """ENV_SLICES. Raises RunnerError(BadRunnerConfig)."""
    try:
        slices = tuple(Slice(name=str(item["name"]), hosts=int(item["hosts"])) for item in json.loads(text))
    except (ValueError, TypeError, KeyError) as e:
        raise _bad(f"{c.ENV_SLICES} is not a JSON list of names and hosts ({e!r})") from e
    if not slices or len({s.name for s in slices}) != len(slices) or not all(s.name and s.hosts > 0 for s in slices):
        raise _bad(f"{c.ENV_SLICES} must list at least one slice, each with its own name and hosts, got {text!r}")
    if len({s.hosts for s in slices}) != 1:
        raise _bad(f"{c.ENV_SLICES} must give all slices the same number of hosts, got {text!r}")
    return slices


def read_settings(env: Mapping[str, str]) -> Settings:
    """Raises RunnerError(BadRunnerConfig) on anything missing, mistyped or contradictory."""
    settings = Settings(
        launcher=_text(env, c.ENV_LAUNCHER),
        slices=parse_slices(_text(env, c.ENV_SLICES)),
        topology=_text(env, c.ENV_TOPOLOGY),
        accelerator_type=_text(env, c.ENV_ACCELERATOR_TYPE),
        chips_per_host=_count(env, c.ENV_CHIPS_PER_HOST),
        devices_per_chip=_count(env, c.ENV_DEVICES_PER_CHIP),
        torch_topology=_text(env, c.ENV_TORCH_TOPOLOGY),
        stop_grace_seconds=_positive(env, c.ENV_STOP_GRACE_SECONDS, default=60.0, or_zero=True),
        reserve_timeout_seconds=_positive(env, c.ENV_RESERVE_TIMEOUT_SECONDS, default=120.0),
        start_timeout_seconds=_positive(env, c.ENV_START_TIMEOUT_SECONDS, default=300.0),
        working_dir=env.get(c.ENV_WORKING_DIR) or None,
        no_progress_seconds=(_positive(env, c.ENV_NO_PROGRESS_SECONDS) if env.get(c.ENV_NO_PROGRESS_SECONDS) else None),
    )
    if settings.launcher not in c.LAUNCHERS:
        raise _bad(f"{c.ENV_LAUNCHER} must be one of {', '.join(c.LAUNCHERS)}, got {settings.launcher!r}")
    try:
        chips = math.prod(dimensions(settings.topology))
        devices = math.prod(dimensions(settings.torch_topology))
    except ValueError:
        raise _bad(
            f"{c.ENV_TOPOLOGY} and {c.ENV_TORCH_TOPOLOGY} must be numbers with x or comma between, got "
            f"{settings.topology!r} and {settings.torch_topology!r}"
        ) from None
    if chips != settings.hosts_per_slice * settings.chips_per_host:
        raise _bad(
            f"topology {settings.topology} has {chips} chips, but {settings.hosts_per_slice} hosts with "
            f"{settings.chips_per_host} chips each have {settings.hosts_per_slice * settings.chips_per_host}"
        )
    if devices != settings.devices_per_slice:
        raise _bad(
            f"{c.ENV_TORCH_TOPOLOGY} {settings.torch_topology} has {devices} devices, but a slice has "
            f"{settings.devices_per_slice}"
        )
    return settings


def read_entrypoint(path: Path) -> str:
    """The job's entrypoint, byte for byte. Raises RunnerError(BadRunnerConfig)."""
    try:
        data = path.read_bytes()
    except OSError as e:
        raise RunnerError(
            f"cannot read the entrypoint from {path}: {e.strerror}; the operator mounts it from the RayCluster's "
            f"ConfigMap",
            reason=c.REASON_BAD_CONFIG,
        ) from e
    if not data.strip():
        raise RunnerError(f"the entrypoint in {path} is empty", reason=c.REASON_BAD_CONFIG)
    if len(data) > c.MAX_ENTRYPOINT_BYTES:
        raise RunnerError(
            f"the entrypoint has {len(data)} bytes, Linux takes {c.MAX_ENTRYPOINT_BYTES} in one argument; move the "
            f"code into workingDir or the image",
            reason=c.REASON_BAD_CONFIG,
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise RunnerError(f"the entrypoint in {path} is not UTF-8 ({e})", reason=c.REASON_BAD_CONFIG) from e
    if "\0" in text:
        raise RunnerError(f"the entrypoint in {path} has a NUL character", reason=c.REASON_BAD_CONFIG)
    return text
