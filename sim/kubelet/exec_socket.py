"""`kubectl exec` over a WebSocket, subprotocol v5.channel.k8s.io.

Source: Kubernetes' remotecommand protocol: the first byte of each message is the channel: 0 stdin, 1 stdout,
2 stderr, 3 the final Status, 4 terminal size; 255 followed by a channel closes that channel.
"""

import asyncio
import fcntl
import json
import os
import pty
import shutil
import struct
import termios
from contextlib import suppress
from typing import Any, Final

from aiohttp import WSMsgType, web

from sim.kubelet.process import ContainerProcess, kill_exec

Json = dict[str, Any]

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_BLOCK: Final = 32 * 1024
_SETSID: Final = shutil.which("setsid") or "setsid"


async def serve_exec(request: web.Request, *, process: ContainerProcess) -> web.WebSocketResponse:
    """Run the command of the request in the container and connect it; returns when both sides are done."""
    socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=0, heartbeat=30)
    await socket.prepare(request)
    command = request.query.getall("command", [])
    wants = {name: request.query.get(name) in ("true", "1") for name in ("input", "stdin", "tty")}
    has_input = wants["input"] or wants["stdin"]
    if wants["tty"]:
        code = await _run_on_terminal(socket, process, command)
    else:
        code = await _run_on_pipes(socket, process, command, has_input=has_input)
    if not socket.closed:
        await _send(socket, _ERROR, json.dumps(build_exec_status(code)).encode())
        await socket.close()
    return socket


def build_exec_status(code: int) -> Json:
    """The Status by which a client learns the exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


async def _run_on_pipes(
    socket: web.WebSocketResponse, container: ContainerProcess, command: list[str], *, has_input: bool
) -> int:
    process = await asyncio.create_subprocess_exec(
        *container.exec_arguments(command),
        env=dict(container.env),
        stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    receiving = asyncio.create_task(_receive_into(socket, process.stdin))
    ending = asyncio.create_task(_finish(process, socket))
    try:
        await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            await kill_exec(process)
        await ending
    finally:
        receiving.cancel()
        if process.returncode is None:
            await kill_exec(process)
    return _exit_code(process.returncode)


async def _finish(process: asyncio.subprocess.Process, socket: web.WebSocketResponse) -> None:
    """All output to the client, and the end of the command."""
    assert process.stdout is not None
    assert process.stderr is not None
    await asyncio.gather(
        _copy(process.stdout, socket, channel=_STDOUT), _copy(process.stderr, socket, channel=_STDERR), process.wait()
    )


async def _receive_into(socket: web.WebSocketResponse, stdin: asyncio.StreamWriter | None) -> None:
    """Until the client goes away."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data or stdin is None:
            continue
        channel, data = message.data[0], message.data[1:]
        with suppress(ConnectionResetError, BrokenPipeError):
            if channel == _STDIN:
                stdin.write(data)
                await stdin.drain()
            elif channel == _CLOSE and data[:1] == bytes([_STDIN]):
                stdin.close()


async def _copy(stream: asyncio.StreamReader, socket: web.WebSocketResponse, *, channel: int) -> None:
    while block := await stream.read(_BLOCK):
        await _send(socket, channel, block)


async def _run_on_terminal(socket: web.WebSocketResponse, container: ContainerProcess, command: list[str]) -> int:
    outer, inner = pty.openpty()
    loop = asyncio.get_running_loop()
    try:
        process = await asyncio.create_subprocess_exec(
            _SETSID,
            "--ctty",
            "--wait",
            *container.exec_arguments(command),
            env={"TERM": "xterm", **container.env},
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
    finally:
        os.close(inner)
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(outer), "rb")
    )
    receiving = asyncio.create_task(_receive_terminal(socket, outer))
    copying = asyncio.create_task(_copy_terminal(reader, socket))
    ending = asyncio.create_task(process.wait())
    try:
        await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            await kill_exec(process)
        await asyncio.wait({copying}, timeout=1.0)
    finally:
        for task in (receiving, copying, ending):
            task.cancel()
        transport.close()
        os.close(outer)
        if process.returncode is None:
            await kill_exec(process)
    return _exit_code(process.returncode)


async def _receive_terminal(socket: web.WebSocketResponse, terminal: int) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _STDIN:
            await asyncio.to_thread(os.write, terminal, data)
        elif channel == _RESIZE:
            size = json.loads(data)
            rows_and_columns = struct.pack("HHHH", size.get("Height", 24), size.get("Width", 80), 0, 0)
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, rows_and_columns)


async def _copy_terminal(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    # The other end's last close shows as an I/O error on a terminal.
    with suppress(OSError):
        await _copy(reader, socket, channel=_STDOUT)


async def _send(socket: web.WebSocketResponse, channel: int, data: bytes) -> None:
    if not socket.closed:
        with suppress(ConnectionResetError):
            await socket.send_bytes(bytes([channel]) + data)


def _exit_code(code: int | None) -> int:
    return 128 - code if code is not None and code < 0 else code or 0
