"""The command line of `sim`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from sim.tools.catalogue import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "train-v6e-4x4.yaml"


DEFAULT_NAME = "default"
PASSED_THROUGH = ("kubectl", "helm")


class UsageError(Exception):
    """What was typed cannot be meant; the message says what to type."""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sim",
        description="A bench: a real Kubernetes control plane, a simulated GKE and TPU hosts on this machine.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--name", default=DEFAULT_NAME, help="which bench (default: %(default)s)")
    where.add_argument("--folder", type=Path, help="its folder, if not the one that belongs to the name")

    up = commands.add_parser("up", parents=[where], help="start a bench")
    up.add_argument("--port", type=_port, default=0, help="loopback port for the apiserver (default: any)")
    up.add_argument("--foreground", action="store_true", help="stay, and take the bench down at Ctrl-C")
    up.add_argument("--cpu-nodes", type=int, default=2, metavar="N", help="CPU nodes (default: %(default)s)")
    up.add_argument("--no-kuberay", action="store_true", help="without KubeRay's CRDs and operator")
    up.add_argument("--no-gke", action="store_true", help="without the GKE API")
    up.add_argument("--no-kubelet", action="store_true", help="without kubelets: pods stay Pending")

    down = commands.add_parser("down", parents=[where], help="stop a bench and remove everything of it")
    down.add_argument("--keep-logs", type=Path, metavar="DIR", help="copy its logs there first")

    status = commands.add_parser("status", parents=[where], help="programs, nodes, pools and pods")
    status.add_argument("--json", action="store_true", help="for programs")

    shell = commands.add_parser("shell", parents=[where], help="a shell, or a command, inside the bench")
    shell.add_argument("argv", nargs="*", metavar="CMD", help="after --; default: your shell")

    fault = commands.add_parser("fault", parents=[where], help="break something; without a name: what can be broken")
    fault.add_argument("fault", nargs="?", metavar="NAME")
    fault.add_argument("parameters", nargs="*", metavar="KEY=VALUE")

    logs = commands.add_parser("logs", parents=[where], help="a program's log; without a name: which there are")
    logs.add_argument("program", nargs="?", metavar="PROGRAM")
    logs.add_argument("-f", "--follow", action="store_true", help="go on printing")

    forward = commands.add_parser("forward", parents=[where], help="open a loopback port that leads into the bench")
    forward.add_argument("target", metavar="HOST:PORT", help="for example a pod's address and 8265")
    forward.add_argument("--port", type=_port, default=0, help="port on this machine (default: any)")

    commands.add_parser("env", parents=[where], help='print exports: eval "$(sim env)"')
    demo = commands.add_parser("demo", help="run an example on a bench of its own, with a live view")
    demo.add_argument(
        "--example", type=Path, default=EXAMPLE, metavar="FILE", help="default: examples/train-v6e-4x4.yaml"
    )
    demo.add_argument("--keep", action="store_true", help="leave the bench up afterwards")
    demo.add_argument("--plain", action="store_true", help="lines instead of the live view, as without a terminal")
    demo.add_argument("--deadline", type=float, default=600.0, metavar="S", help="for the job (default: %(default)s s)")
    demo.set_defaults(name="demo", folder=None)

    for tool in PASSED_THROUGH:
        passed = commands.add_parser(tool, parents=[where], help=f"run {tool} against the bench", add_help=False)
        passed.add_argument("argv", nargs="*", metavar="...", help="name and folder come first, the rest is its own")
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line; everything after `kubectl` or `helm` but a leading --name or --folder is left as it is."""
    own = list(argv)
    if not own or own[0] not in PASSED_THROUGH:
        return build_parser().parse_args(own)
    end = 1
    while end < len(own) and own[end].partition("=")[0] in ("--name", "--folder"):
        end += 1 if "=" in own[end] else 2
    arguments = build_parser().parse_args(own[:end])
    arguments.argv = own[end:]
    return arguments


def parse_parameters(words: list[str]) -> dict[str, str]:
    """`["node=a", "after=1"]` -> a mapping. Raises UsageError."""
    parameters: dict[str, str] = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not separator or not key:
            raise UsageError(f"{word!r}: write KEY=VALUE")
        if key in parameters:
            raise UsageError(f"{key} is given twice")
        parameters[key] = value
    return parameters


def parse_target(text: str) -> tuple[str, int]:
    """`10.244.1.2:8265` -> host and port. Raises UsageError."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"{text!r}: write HOST:PORT")
    return host, int(port)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)
