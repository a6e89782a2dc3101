"""Faults of hosts and pods that a person or a test injects into a running bench."""

from typing import Protocol

from sim.faults import FaultError, FaultFunction
from sim.kubelet.kubelets import Kubelets
from sim.kubelet.node import NodeAgent


class Registry(Protocol):
    """Where a bench collects its faults (`sim.faults.FaultRegistry`)."""

    def register(self, name: str, help: str, function: FaultFunction) -> None: ...


def register_kubelet_faults(registry: Registry, kubelets: Kubelets) -> None:
    """Offer everything that can go wrong with a host and its pods."""
    faults = _Faults(kubelets)
    registry.register("node-vanish", "host and Node object are gone at once, as after a preemption", faults.vanish)
    registry.register("node-notready", "the host dies, its Node object stays and turns Unknown", faults.not_ready)
    registry.register("pod-kill", "SIGKILL to a container's processes (reason=OOMKilled for an OOM)", faults.pod_kill)
    registry.register("image-pull-delay", "pulls take so many seconds from now on", faults.image_pull_delay)


class _Faults:
    def __init__(self, kubelets: Kubelets) -> None:
        self._kubelets = kubelets

    async def vanish(self, node: str) -> str:
        self._agent(node)
        await self._kubelets.remove(node, abrupt=True)
        await self._kubelets.forget(node)
        return f"node {node} has vanished"

    async def not_ready(self, node: str) -> str:
        self._agent(node)
        await self._kubelets.remove(node, abrupt=True)
        return f"node {node} is dead; its Node object turns Unknown in about 50 s"

    async def pod_kill(self, namespace: str, pod: str, container: str = "", reason: str = "") -> str:
        workers = [worker for agent in self._kubelets.nodes.values() if (worker := agent.find(namespace, pod))]
        if not workers:
            raise FaultError(f"no pod {namespace}/{pod} runs on a simulated host")
        runners = [r for r in workers[0].containers if not container or r.name == container]
        running = [r for r in runners if r.process is not None and r.process.is_running]
        if not running:
            raise FaultError(f"pod {namespace}/{pod} has no running container {container or 'at all'}")
        for runner in running:
            runner.kill(reason=reason or None)
        return f"killed {', '.join(runner.name for runner in running)} of {namespace}/{pod}"

    async def image_pull_delay(self, seconds: str, node: str = "") -> str:
        try:
            delay = float(seconds)
        except ValueError as error:
            raise FaultError(f"seconds={seconds} is no number") from error
        agents = [self._agent(node)] if node else list(self._kubelets.nodes.values())
        for agent in agents:
            agent.images.seconds = delay
        self._kubelets.image_pull_seconds = delay
        return f"pulls take {delay:g} s on {len(agents)} nodes"

    def _agent(self, node: str) -> NodeAgent:
        agent = self._kubelets.nodes.get(node)
        if agent is None:
            raise FaultError(f"no host {node} is up; there are {', '.join(sorted(self._kubelets.nodes)) or 'none'}")
        return agent
