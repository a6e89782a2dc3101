"""The lines that programs read."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.runner.worlds import a_world, some_settings
from torchtpu_operator.runner import constants as c
from torchtpu_operator.runner.result import Result, parse_result, result_line, world_line, world_table


def test_a_failed_rank_comes_back_whole() -> None:
    result = Result(
        reason=c.REASON_ENTRYPOINT_FAILED,
        exit_code=7,
        message="rank 3 failed",
        rank=3,
        pod="pod-3",
        node="node-3",
        last_lines=["Traceback", "ValueError: ü"],
        phases={"run": 1.23456},
    )
    assert parse_result(f"noise\n{result_line(result)}\n") == {
        "reason": "EntrypointFailed",
        "exitCode": 7,
        "message": "rank 3 failed",
        "rank": 3,
        "pod": "pod-3",
        "node": "node-3",
        "lastLines": ["Traceback", "ValueError: ü"],
        "phases": {"run": 1.23},
    }


def test_success_says_only_what_there_is() -> None:
    assert parse_result(result_line(Result(reason=c.REASON_SUCCEEDED, exit_code=0, message="ok"))) == {
        "reason": "Succeeded",
        "exitCode": 0,
        "message": "ok",
        "phases": {},
    }


@given(st.text(), st.lists(st.text(max_size=3000), max_size=60))
def test_whatever_was_printed_the_line_is_one_bounded_line_that_parses(message: str, lines: list[str]) -> None:
    line = result_line(Result(reason=c.REASON_ENTRYPOINT_FAILED, exit_code=1, message=message, last_lines=lines))
    body = parse_result(line)
    assert body is not None
    assert (len(line.encode()) <= c.MAX_RESULT_BYTES, "\n" in line, body["exitCode"]) == (True, False, 1)


@given(st.lists(st.text(alphabet="ab ", max_size=400), max_size=40))
def test_of_the_last_lines_the_very_last_stay(lines: list[str]) -> None:
    body = parse_result(
        result_line(Result(reason=c.REASON_ENTRYPOINT_FAILED, exit_code=1, message="", last_lines=lines))
    )
    kept = (body or {}).get("lastLines", [])
    assert kept == lines[len(lines) - len(kept) :]


def test_a_rank_cannot_fake_the_result_and_a_cut_line_is_none() -> None:
    fake = f"[rank 0] {c.RESULT_PREFIX}" + '{"exitCode": 0}'
    assert (parse_result(fake), parse_result(c.RESULT_PREFIX + '{"exitCode": 1, "mess'), parse_result("")) == (
        None,
        None,
        None,
    )


def test_the_world_for_programs() -> None:
    settings = some_settings("v7x 2x2x4", slices=2)
    body = json.loads(world_line(settings, a_world(settings)).removeprefix(c.WORLD_PREFIX))
    assert (body["launcher"], body["order"], len(body["workers"]), body["workers"][45]) == (
        "PerDevice",
        "workerId",
        64,
        {
            "rank": 45,
            "slice": 1,
            "sliceName": "s1",
            "host": 1,
            "workerId": 1,
            "chip": 2,
            "device": 5,
            "devices": [5],
            "nodeIp": "10.244.1.11",
            "pod": "pod-1-1",
            "node": "",
        },
    )


def test_the_world_for_people_has_one_line_per_host() -> None:
    settings = some_settings("v6e 2x4 on 4-chip hosts", slices=2)
    assert world_table(settings, a_world(settings)) == [
        "ranks  slice  host  chips    address      pod      node",
        "0-3    0      0     0 1 2 3  10.244.0.10  pod-0-0",
        "4-7    0      1     0 1 2 3  10.244.0.11  pod-0-1",
        "8-11   1      0     0 1 2 3  10.244.1.10  pod-1-0",
        "12-15  1      1     0 1 2 3  10.244.1.11  pod-1-1",
    ]
