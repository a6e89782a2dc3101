"""Runs one `sim` command."""

import json
import os
import shlex
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from sim import tools
from sim.bench import Bench, BenchError, BenchOptions, default_folder
from sim.cli.parser import DEFAULT_NAME, UsageError, parse, parse_parameters, parse_target
from sim.cli.status_view import build_view
from sim.tools import ToolMissingError


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 done, 1 refused with a reason on stderr, 2 wrong usage; shell, kubectl and helm give their own."""
    arguments = parse(sys.argv[1:] if argv is None else argv)
    commands: dict[str, Callable[[Bench, Namespace], int]] = {
        "up": _up,
        "down": _down,
        "status": _status,
        "shell": _shell,
        "fault": _fault,
        "logs": _logs,
        "forward": _forward,
        "env": _env,
        "demo": _demo,
        "kubectl": _tool,
        "helm": _tool,
    }
    folder = arguments.folder or default_folder(arguments.name)
    try:
        return commands[arguments.command](Bench(folder), arguments)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (BenchError, ToolMissingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _up(bench: Bench, arguments: Namespace) -> int:
    options = BenchOptions(
        port=arguments.port,
        kuberay=not arguments.no_kuberay,
        gke=not arguments.no_gke,
        kubelet=not arguments.no_kubelet,
        cpu_nodes=arguments.cpu_nodes,
    )
    console = Console()
    bench = Bench(bench.folder, options, detached=not arguments.foreground)
    started = time.monotonic()
    with console.status("starting the bench") as spinner:
        bench.up(say=lambda line: spinner.update(f"starting the bench · {line}"))
    console.print(f"[bold green]up[/] after {time.monotonic() - started:.1f} s")
    console.print(f"  kubeconfig  {bench.kubeconfig}", soft_wrap=True)
    console.print(f"  logs        {bench.logs}", soft_wrap=True)
    which = _which(arguments)
    for next_step in ("status", "kubectl get pods -A", "shell", "down"):
        command, _, rest = next_step.partition(" ")
        console.print(f"  next        [bold]sim {command}{which}[/] {rest}", soft_wrap=True)
    if not arguments.foreground:
        return 0
    console.print("Ctrl-C takes it down")
    try:
        return bench.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        bench.down()


def _which(arguments: Namespace) -> str:
    """What names the same bench on the next command line."""
    if arguments.folder is not None:
        return f" --folder {shlex.quote(str(arguments.folder))}"
    return "" if arguments.name == DEFAULT_NAME else f" --name {shlex.quote(arguments.name)}"


def _down(bench: Bench, arguments: Namespace) -> int:
    was_there = bench.folder.exists()
    bench.down(keep_logs=arguments.keep_logs)
    print("down" if was_there else f"no bench in {bench.folder}")
    return 0


def _status(bench: Bench, arguments: Namespace) -> int:
    status = bench.status()
    objects = json.loads(bench.kubectl("get", "nodes,pods", "--all-namespaces", "--output=json"))["items"]
    if arguments.json:
        print(json.dumps({**status, "objects": objects}, indent=2))
    else:
        Console().print(build_view(status, objects, now=time.time()))
    return 0


def _shell(bench: Bench, arguments: Namespace) -> int:
    argv = arguments.argv or [os.environ.get("SHELL", "/bin/sh")]
    return subprocess.run([*bench.inside_argv(), *argv], env=bench.inside_environment(), check=False).returncode


def _fault(bench: Bench, arguments: Namespace) -> int:
    if arguments.fault is not None:
        print(bench.fault(arguments.fault, **parse_parameters(arguments.parameters)))
        return 0
    table = Table(box=None, header_style="bold")
    table.add_column("fault")
    table.add_column("what happens")
    for fault in bench.faults():
        table.add_row(fault["usage"], fault["help"])
    Console().print(table)
    return 0


def _logs(bench: Bench, arguments: Namespace) -> int:
    paths = [bench.folder / "bench.log", *sorted(bench.logs.rglob("*.log"))]
    found = {path.stem: path for path in paths if path.exists()}
    if arguments.program is None:
        print("\n".join(found))
        return 0
    if arguments.program not in found:
        raise UsageError(f"no log {arguments.program!r}; there are {', '.join(found) or 'none'}")
    follow = ["--follow"] if arguments.follow else []
    return subprocess.run(["tail", "--lines=200", *follow, str(found[arguments.program])], check=False).returncode


def _forward(bench: Bench, arguments: Namespace) -> int:
    host, port = parse_target(arguments.target)
    print(f"127.0.0.1:{bench.forward(host, port, host_port=arguments.port)}")
    return 0


def _env(bench: Bench, arguments: Namespace) -> int:  # noqa: ARG001 - all commands are called alike
    for name, value in {"KUBECONFIG": str(bench.kubeconfig), **bench.tool_environment()}.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def _demo(bench: Bench, arguments: Namespace) -> int:  # noqa: ARG001 - it has benches of its own
    from sim.demo.demo import DemoError, DemoOptions, run_demo
    from sim.demo.example import ExampleError

    options = DemoOptions(
        example=arguments.example, keep=arguments.keep, plain=arguments.plain, deadline=arguments.deadline
    )
    try:
        # Without a terminal rich takes 80 columns, and tables in a CI log break.
        return run_demo(options, Console(width=None if sys.stdout.isatty() else 150))
    except ExampleError as error:
        raise UsageError(str(error)) from error
    except DemoError as error:
        raise BenchError(str(error)) from error


def _tool(bench: Bench, arguments: Namespace) -> int:
    _ = bench.state
    argv = [str(tools.path(arguments.command)), *arguments.argv]
    return subprocess.run(argv, env=bench.outside_environment(), check=False).returncode
