"""The bench's flat network: one bridge, one network namespace per pod, addresses of services and nodes on the bridge.

A pod's namespace has no name and no mount: an open file descriptor holds it, so it ends with the process that made
it, however that process ends. Rootless use works inside a user namespace that owns the current network namespace.
"""

import asyncio
import ctypes
import ipaddress
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pyroute2 import IPRoute

BRIDGE: Final = "tt0"
BRIDGE_MAC: Final = "02:74:74:30:00:01"
"""Fixed: a bridge without one takes the lowest of its ports', and when that pod goes, every other pod has a dead address in
its ARP cache for half a minute and reaches neither apiserver nor DNS."""
GATEWAY: Final = "10.244.0.1"
POD_NETWORK: Final = ipaddress.IPv4Network("10.244.0.0/16")
NODE_NETWORK: Final = ipaddress.IPv4Network("10.245.0.0/16")

_CLONE_NEWNET: Final = 0x40000000
_LOOPBACK_INDEX: Final = 1

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PodNetwork:
    """A pod's network namespace: `address` is on its eth0; `namespace` is the descriptor that keeps it alive."""

    address: str
    namespace: int
    interface: str


class Network:
    """The bridge `tt0` in the network namespace of the caller; pods and addresses on it.

    All netlink work happens on one thread of its own: entering a namespace concerns a single thread, and the event
    loop's must never leave home.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="network")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._route: Any = None
        self._bridge = 0
        self._home = -1
        self._pods: dict[str, PodNetwork] = {}
        self._free = _addresses(POD_NETWORK, skip=256)
        self._count = 0

    async def start(self) -> None:
        """Bring loopback and the bridge up; a bridge that is there already is used."""
        await self._on_thread(self._start)

    async def close(self) -> None:
        """Let go of every pod's namespace; the bridge stays with the surrounding namespace."""
        for pod in list(self._pods.values()):
            await self.remove_pod(pod)
        await self._on_thread(self._close)
        self._thread.shutdown()

    async def add_address(self, address: str) -> None:
        """Give the bridge one more address (a service or a node), reachable from all pods. Present is not an error."""
        await self._on_thread(lambda: self._route.addr("replace", index=self._bridge, address=address, prefixlen=32))

    async def remove_address(self, address: str) -> None:
        """Take an address off the bridge. Absent is not an error."""
        await self._on_thread(lambda: self._remove_address(address))

    async def add_pod(self) -> PodNetwork:
        """Make a network namespace with loopback, eth0 on the bridge and a default route (5 to 10 ms)."""
        return await self._on_thread(self._add_pod)

    async def remove_pod(self, pod: PodNetwork) -> None:
        """Forget a pod's namespace; the kernel drops it and its interface when its last process is gone."""
        if self._pods.pop(pod.address, None) is not None:
            os.close(pod.namespace)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _start(self) -> None:
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._route = IPRoute()
        self._route.link("set", index=_LOOPBACK_INDEX, state="up")
        if not self._route.link_lookup(ifname=BRIDGE):
            self._route.link("add", ifname=BRIDGE, kind="bridge", address=BRIDGE_MAC)
        self._bridge = self._route.link_lookup(ifname=BRIDGE)[0]
        self._route.addr("replace", index=self._bridge, address=GATEWAY, prefixlen=POD_NETWORK.prefixlen)
        self._route.link("set", index=self._bridge, state="up")

    def _close(self) -> None:
        if self._route is not None:
            self._route.close()
            os.close(self._home)

    def _remove_address(self, address: str) -> None:
        if list(self._route.get_addr(index=self._bridge, address=address)):
            self._route.addr("delete", index=self._bridge, address=address, prefixlen=32)

    def _add_pod(self) -> PodNetwork:
        # Addresses rotate through the whole network: a new pod never answers for one whose peers still remember it.
        address = next(candidate for candidate in self._free if candidate not in self._pods)
        self._count += 1
        interface = f"pod{self._count}"
        namespace, inner = self._new_namespace()
        try:
            self._route.link("add", ifname=interface, kind="veth", peer={"ifname": "eth0", "net_ns_fd": namespace})
            (outer_end,) = self._route.link_lookup(ifname=interface)
            self._route.link("set", index=outer_end, master=self._bridge, state="up")
            (inner_end,) = inner.link_lookup(ifname="eth0")
            inner.link("set", index=_LOOPBACK_INDEX, state="up")
            inner.addr("add", index=inner_end, address=address, prefixlen=POD_NETWORK.prefixlen)
            inner.link("set", index=inner_end, state="up")
            inner.route("add", dst="default", gateway=GATEWAY)
        except BaseException:
            os.close(namespace)
            raise
        finally:
            inner.close()
        pod = PodNetwork(address=address, namespace=namespace, interface=interface)
        self._pods[address] = pod
        return pod

    def _new_namespace(self) -> tuple[int, Any]:
        """A descriptor of a fresh network namespace and a netlink socket that was born in it."""
        if self._libc.unshare(_CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"new network namespace: {os.strerror(code)}; the bench needs CAP_SYS_ADMIN here")
        try:
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC), IPRoute()
        finally:
            if self._libc.setns(self._home, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "cannot return to the bench's network namespace")


def _addresses(network: ipaddress.IPv4Network, *, skip: int) -> Iterator[str]:
    """Host addresses of `network` round and round, without its first `skip`."""
    usable = range(int(network.network_address) + skip + 1, int(network.broadcast_address))
    while True:
        for number in usable:
            yield str(ipaddress.IPv4Address(number))


def namespace_path(pod: PodNetwork) -> Path:
    """The pod's namespace as a path that nsenter takes, in a child that inherits the descriptor."""
    return Path(f"/proc/self/fd/{pod.namespace}")
