"""The command line of `sim`."""

from pathlib import Path
from typing import Any

import pytest

from sim.cli.main import main
from sim.cli.parser import UsageError, parse, parse_parameters, parse_target

PARSED: dict[str, tuple[list[str], dict[str, Any]]] = {
    "up stays in the background": (["up"], {"command": "up", "name": "default", "foreground": False, "port": 0}),
    "a bench by name": (["status", "--name", "b"], {"command": "status", "name": "b", "json": False}),
    "a command for the shell": (["shell", "--", "ip", "-br", "a"], {"argv": ["ip", "-br", "a"]}),
    "kubectl keeps its own flags": (
        ["kubectl", "--folder=/b", "-n", "ml", "get", "pods", "--name", "x"],
        {"folder": Path("/b"), "argv": ["-n", "ml", "get", "pods", "--name", "x"]},
    ),
    "helm keeps its own help": (["helm", "--help"], {"command": "helm", "name": "default", "argv": ["--help"]}),
    "a fault with parameters": (["fault", "f", "a=1", "b="], {"fault": "f", "parameters": ["a=1", "b="]}),
}


@pytest.mark.parametrize(("argv", "want"), PARSED.values(), ids=PARSED)
def test_parse(argv: list[str], want: dict[str, Any]) -> None:
    found = vars(parse(argv))
    assert {key: found[key] for key in want} == want


def test_parameters_may_hold_an_equals_sign_and_be_empty() -> None:
    assert parse_parameters(["message=a=b", "times="]) == {"message": "a=b", "times": ""}


WRONG = {
    "a parameter without a value": (parse_parameters, ["node"], "'node': write KEY=VALUE"),
    "a parameter without a name": (parse_parameters, ["=1"], "'=1': write KEY=VALUE"),
    "a parameter twice": (parse_parameters, ["a=1", "a=2"], "a is given twice"),
    "a target without a port": (parse_target, "10.244.1.1", "'10.244.1.1': write HOST:PORT"),
    "a port that is none": (parse_target, "h:70000", "'h:70000': write HOST:PORT"),
}


@pytest.mark.parametrize(("function", "argument", "want"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_named(function: Any, argument: Any, want: str) -> None:
    with pytest.raises(UsageError) as caught:
        function(argument)
    assert str(caught.value) == want


def test_a_target_has_a_host_and_a_port() -> None:
    assert parse_target("10.244.1.1:8265") == ("10.244.1.1", 8265)


@pytest.mark.parametrize("command", ["status", "shell", "fault", "kubectl"])
def test_without_a_bench_the_next_step_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([command, "--folder", str(tmp_path / "none")])
    assert (code, "sim up" in capsys.readouterr().err) == (1, True)


def test_down_without_a_bench_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["down", "--folder", str(tmp_path / "none")]), capsys.readouterr().out) == (
        0,
        f"no bench in {tmp_path / 'none'}\n",
    )


def test_up_without_tools_names_the_command_that_builds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHTPU_CACHE", str(tmp_path))
    assert (main(["up"]), "run `make tools`" in capsys.readouterr().err) == (1, True)
