"""Keeps torch's compiler out of processes that do not compile: its import costs seconds each, and a bench starts many.

DistributedDataParallel and every optimizer import torch._dynamo only to be left alone by it. Whoever imports it by name
still gets it. Only time depends on this: where torch has changed, processes start slower. (torch.compile itself asks
for the accelerator's current stream, which a device that is only a name has not.)
"""

import functools
import importlib
import sys
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

_SHIELDED = (
    (torch.optim.Optimizer, "add_param_group"),
    (torch.optim.Optimizer, "zero_grad"),
    (torch.optim.Optimizer, "state_dict"),
    (torch.optim.Optimizer, "load_state_dict"),
    (DistributedDataParallel, "_inside_ddp_forward"),
)
"""Methods that torch marks as not to be compiled, and that call the compiler to mark them."""


class _Utils:
    """`torch._dynamo.utils`, so far as DistributedDataParallel looks at it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("torch._dynamo.utils"), name)

    @staticmethod
    def get_optimize_ddp_mode() -> str:
        return "ddp_optimizer"


class _Compiler:
    """`torch._dynamo` until somebody needs more of it."""

    def __getattr__(self, name: str) -> Any:
        # Also while the real one is being imported, which is when its own parts look here.
        if name == "utils" and "torch._dynamo" not in sys.modules:
            return _Utils()
        return getattr(importlib.import_module("torch._dynamo"), name)


def _without_graph_breaks(step: Any) -> Any:
    """An optimizer's step as torch wraps it, but for the marks for a compiler that is not there."""
    inner = step.__wrapped__

    @functools.wraps(inner)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return inner(self, *args, **kwargs)

    return wrapper


def install() -> None:
    if "torch._dynamo" in sys.modules:
        return
    torch._dynamo = _Compiler()
    for owner, name in _SHIELDED:
        function = getattr(owner, name, None)
        while (function := getattr(function, "__wrapped__", None)) is not None:
            # Where torch looks for the method as its compiler would return it.
            function.__dynamo_disable = function
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        step = vars(optimizer).get("step")
        if hasattr(step, "__wrapped__"):
            optimizer.step = _without_graph_breaks(step)
