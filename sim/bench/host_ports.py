"""Asks the first process, which lives in the host's network, for listening sockets there."""

import asyncio
import json
import socket

from sim.bench.folder import BenchError


class HostPorts:
    """The inside's end of the socket pair with the first process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._one_at_a_time = asyncio.Lock()

    async def listen(self, port: int = 0) -> socket.socket:
        """A listening socket on the host's 127.0.0.1. Raises BenchError if the port is taken."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._ask, port)

    def _ask(self, port: int) -> socket.socket:
        self._control.send(json.dumps({"port": port}).encode())
        data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        answer = json.loads(data)
        if "error" in answer:
            raise BenchError(answer["error"])
        return socket.socket(fileno=descriptors[0])
