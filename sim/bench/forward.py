"""Carries connections from a listening socket of the host to an address inside the bench."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass

_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Target:
    host: str
    port: int


async def forward(listener: socket.socket, target: Target) -> asyncio.Server:
    """Serve until the returned server is closed. A target that refuses closes the connection, as if it were direct."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward_reader, onward_writer = await asyncio.open_connection(target.host, target.port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, onward_writer), _copy(onward_reader, writer))
        for each in (writer, onward_writer):
            each.close()

    return await asyncio.start_server(carry, sock=listener)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the end of the stream, which is passed on; a broken connection ends both directions."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        with contextlib.suppress(OSError):
            writer.close()
