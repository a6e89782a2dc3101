"""Ports of the host that lead into the bench."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator

import pytest

from sim.bench.first_process import _serve_listener, listen
from sim.bench.folder import BenchError
from sim.bench.forward import Target, forward
from sim.bench.host_ports import HostPorts


@pytest.fixture
async def shout() -> AsyncIterator[Target]:
    """A server that answers only once its client has finished speaking."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield Target(host="127.0.0.1", port=server.sockets[0].getsockname()[1])


async def _ask(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_both_directions_are_carried_and_the_end_of_one_is_passed_on(shout: Target) -> None:
    async with await forward(listen(0), shout) as server:
        port = server.sockets[0].getsockname()[1]
        answers = await asyncio.gather(_ask(port, b"a" * 300_000), _ask(port, b"b"))
    assert [*answers] == [b"A" * 300_000, b"B"]


async def test_a_target_that_refuses_closes_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nobody = Target(host="127.0.0.1", port=unused.getsockname()[1])
    async with await forward(listen(0), nobody) as server:
        assert await _ask(server.sockets[0].getsockname()[1], b"x") == b""


@pytest.fixture
async def ports() -> AsyncIterator[HostPorts]:
    """As the inside sees the first process, which answers from its own loop."""
    inner, outer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def serve() -> None:
        while _serve_listener(outer):
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    yield HostPorts(inner)
    inner.close()
    thread.join()
    outer.close()


async def test_a_listener_comes_from_the_first_process(ports: HostPorts, shout: Target) -> None:
    listener = await ports.listen()
    async with await forward(listener, shout) as server:
        assert await _ask(server.sockets[0].getsockname()[1], b"x") == b"X"


async def test_a_taken_port_is_named_and_the_next_request_is_served(ports: HostPorts) -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BenchError) as caught:
            await ports.listen(port)
    assert str(caught.value) == (
        f"port {port} on 127.0.0.1: Address already in use; choose another, or 0 for any that is free"
    )
    (await ports.listen()).close()
