"""`load()`: make torch know the device "tpu" and the backends "tpu_dist" and "tpu". Idempotent, as in the real package."""

import functools
import os
from datetime import timedelta
from types import ModuleType
from typing import Any

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_autoload = os.environ.get(_AUTOLOAD)
# While torch is imported from here it must not load this module in turn.
os.environ[_AUTOLOAD] = "0"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

if _autoload is None:
    del os.environ[_AUTOLOAD]
else:
    os.environ[_AUTOLOAD] = _autoload

_FACTORIES = (
    "arange", "as_tensor", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like", "rand",
    "rand_like", "randint", "randn", "randn_like", "randperm", "tensor", "zeros", "zeros_like",
)  # fmt: skip


def _on_cpu(value: Any) -> Any:
    """`value`, but the CPU in place of a TPU."""
    if isinstance(value, str) and value.partition(":")[0] == "tpu":
        return torch.device("cpu")
    if isinstance(value, torch.device) and value.type == "tpu":
        return torch.device("cpu")
    return value


def _redirected(function: Any) -> Any:
    """`function` with every device argument "tpu" taken as the CPU."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*(_on_cpu(a) for a in args), **{name: _on_cpu(value) for name, value in kwargs.items()})

    return wrapper


def _nothing(*_: object, **__: object) -> None:
    """There is nothing to wait for or to choose."""


def _itself(value: Any, *_: object, **__: object) -> Any:
    """`x.tpu()` where everything is on the CPU already."""
    return value


def _mesh_on_cpu(init: Any) -> Any:
    """DeviceMesh's constructor: a mesh of TPUs is one of CPUs, so that FSDP finds parameters where they are."""

    @functools.wraps(init)
    def wrapper(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        init(self, "cpu" if device_type == "tpu" else device_type, *args, **kwargs)

    return wrapper


class _Stream(torch.cpu.Stream):  # type: ignore[misc]
    """The one stream that a CPU has; distributed checkpoints synchronize with it."""

    def synchronize(self) -> None:
        """Nothing is ever behind."""


def _build_device_module() -> ModuleType:
    """torch.tpu: one device per process, as under the real launch environment."""
    module = ModuleType("torch.tpu")
    functions = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _nothing,
        "synchronize": _nothing,
        "manual_seed": _nothing,
        "manual_seed_all": _nothing,
        "_is_in_bad_fork": lambda: False,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda state, *_: torch.set_rng_state(state),
        "get_amp_supported_dtype": lambda: [torch.bfloat16],
        "Stream": _Stream,
        "Event": torch.cpu.Event,
        "stream": torch.cpu.stream,
        "current_stream": lambda *_: _Stream(),
    }
    for name, function in functions.items():
        setattr(module, name, function)
    return module


def _create_process_group(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    from torch_tpu import launch_env

    launch_env.check_once(store, rank=rank, size=size)
    return dist.ProcessGroupGloo(store, rank, size, timeout)


def _leaving_together(destroy: Any) -> Any:
    """torch's destroy_process_group() with the runtime's barrier in front."""

    @functools.wraps(destroy)
    def wrapper(group: Any = None) -> None:
        from torch_tpu import launch_env

        if group in (None, dist.group.WORLD):
            launch_env.leave_together()
        destroy(group)

    return wrapper


@functools.cache
def load() -> None:
    """Register the device and the backends."""
    from torch_tpu import _light

    torch.utils.rename_privateuse1_backend("tpu")
    torch._register_device_module("tpu", _build_device_module())
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=False, for_module=False, for_packed_sequence=False)
    # Asked by barrier(), which would want the hooks of a backend in C++.
    torch._C._get_accelerator = lambda: torch.device("cpu")
    # What the real package tells programs to call in place of torch.tpu's own.
    torch.accelerator.synchronize = _nothing
    torch.accelerator.device_count = lambda: 1
    torch.accelerator.current_device_index = lambda: 0
    for name in _FACTORIES:
        setattr(torch, name, _redirected(getattr(torch, name)))
    torch.Tensor.to = _redirected(torch.Tensor.to)
    torch.nn.Module.to = _redirected(torch.nn.Module.to)
    torch.Tensor.tpu = _itself
    torch.nn.Module.tpu = _itself
    _light.install()
    dist.DeviceMesh.__init__ = _mesh_on_cpu(dist.DeviceMesh.__init__)
    for backend in ("tpu_dist", "tpu"):
        dist.Backend.register_backend(backend, _create_process_group, devices=["cpu", "tpu"])
    dist.destroy_process_group = _leaving_together(dist.destroy_process_group)
