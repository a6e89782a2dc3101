"""Whether a worker pod is small enough for its host: one that is not would be found out only on paid chips."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from torchtpu_operator.plan.quantities import quantity
from torchtpu_operator.tpu import Shape

Json = Mapping[str, Any]


def too_large(template: Json, *, shape: Shape) -> str | None:
    """What the worker pod asks for and its machine does not have; the machine's own share is not counted."""
    pod = template["spec"]
    has = {"cpu": Decimal(shape.vcpu), "memory": Decimal(shape.memory_gb) * 10**9}
    for resource, most in has.items():
        asked = _asked(pod, resource)
        if asked > most:
            units = f"{asked:f} CPUs" if resource == "cpu" else f"{asked / 2**30:.0f} GiB of memory"
            there = f"{most:f}" if resource == "cpu" else f"{most / 2**30:.0f} GiB"
            return (
                f"the worker pod asks for {units}, a host ({shape.machine_type}) has {there}: lower the requests of its "
                "containers in spec.template, spec.worker.template or jobDefaults.template of the class"
            )
    return None


def _asked(pod: Json, resource: str) -> Decimal:
    """As the scheduler counts: all containers together with the init containers that stay, or the largest other one."""
    staying = [each for each in pod.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    passing = [each for each in pod.get("initContainers") or () if each.get("restartPolicy") != "Always"]
    together = sum(_requests([*pod["containers"], *staying], resource), Decimal(0))
    return max([together, *_requests(passing, resource)])


def _requests(containers: Iterable[Json], resource: str) -> list[Decimal]:
    found = []
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        found.append(quantity(requests.get(resource, limits.get(resource, 0))) or Decimal(0))
    return found
