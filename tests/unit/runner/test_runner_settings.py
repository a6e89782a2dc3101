"""What the runner reads from its environment, and what it refuses."""

from pathlib import Path

import pytest

from tests.unit.runner.worlds import an_env
from torchtpu_operator.runner import constants as c
from torchtpu_operator.runner.failures import RunnerError
from torchtpu_operator.runner.settings import Settings, Slice, read_entrypoint, read_settings

HINT = "; the operator sets the TORCHTPU_* variables of the pods, do not override them in spec.env"


def test_all_of_it() -> None:
    env = an_env(
        "v7x 2x2x4",
        slices=2,
        launcher="PerHost",
        TORCHTPU_STOP_GRACE_SECONDS="90",
        TORCHTPU_RESERVE_TIMEOUT_SECONDS="1.5",
        TORCHTPU_START_TIMEOUT_SECONDS="20",
        TORCHTPU_WORKING_DIR="/opt/torchtpu-job/code",
        TORCHTPU_NO_PROGRESS_SECONDS="600",
    )
    settings = read_settings(env)
    assert settings == Settings(
        launcher="PerHost",
        slices=(Slice(name="s0", hosts=4), Slice(name="s1", hosts=4)),
        topology="2x2x4",
        accelerator_type="TPU-V7X",
        chips_per_host=4,
        devices_per_chip=2,
        torch_topology="2,2,4,2",
        stop_grace_seconds=90.0,
        reserve_timeout_seconds=1.5,
        start_timeout_seconds=20.0,
        working_dir="/opt/torchtpu-job/code",
        no_progress_seconds=600.0,
    )
    assert (settings.num_hosts, settings.num_devices, settings.num_workers) == (8, 64, 8)


BAD = {
    "a missing variable": ({"TORCHTPU_TOPOLOGY": ""}, "TORCHTPU_TOPOLOGY is not set" + HINT),
    "an unknown launcher": (
        {"TORCHTPU_LAUNCHER": "PerPod"},
        "TORCHTPU_LAUNCHER must be one of PerDevice, PerHost, Driver, got 'PerPod'" + HINT,
    ),
    "a count that is none": (
        {"TORCHTPU_CHIPS_PER_HOST": "four"},
        "TORCHTPU_CHIPS_PER_HOST must be a whole number above 0, got 'four'" + HINT,
    ),
    "a grace that is none": (
        {"TORCHTPU_STOP_GRACE_SECONDS": "nan"},
        "TORCHTPU_STOP_GRACE_SECONDS must be 0 or more, got 'nan'" + HINT,
    ),
    "slices with unequal hosts": (
        {"TORCHTPU_SLICES": '[{"name": "a", "hosts": 4}, {"name": "b", "hosts": 2}]'},
        "TORCHTPU_SLICES must give all slices the same number of hosts, "
        'got \'[{"name": "a", "hosts": 4}, {"name": "b", "hosts": 2}]\'' + HINT,
    ),
    "one slice twice": (
        {"TORCHTPU_SLICES": '[{"name": "a", "hosts": 4}, {"name": "a", "hosts": 4}]'},
        "TORCHTPU_SLICES must list at least one slice, each with its own name and hosts, "
        'got \'[{"name": "a", "hosts": 4}, {"name": "a", "hosts": 4}]\'' + HINT,
    ),
    "slices that are no list": (
        {"TORCHTPU_SLICES": "s0"},
        "TORCHTPU_SLICES is not a JSON list of names and hosts "
        "(JSONDecodeError('Expecting value: line 1 column 1 (char 0)'))" + HINT,
    ),
    "hosts that do not make the topology": (
        {"TORCHTPU_CHIPS_PER_HOST": "8"},
        "topology 4x4 has 16 chips, but 4 hosts with 8 chips each have 32" + HINT,
    ),
    "another topology for torch": (
        {"TORCHTPU_TORCH_TOPOLOGY": "2,4,1"},
        "TORCHTPU_TORCH_TOPOLOGY 2,4,1 has 8 devices, but a slice has 16" + HINT,
    ),
    "a topology that is none": (
        {"TORCHTPU_TOPOLOGY": "4*4"},
        "TORCHTPU_TOPOLOGY and TORCHTPU_TORCH_TOPOLOGY must be numbers with x or comma between, got '4*4' and '4,4,1'"
        + HINT,
    ),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(RunnerError) as e:
        read_settings(an_env() | changes)
    assert (str(e.value), e.value.reason, e.value.exit_code) == (message, c.REASON_BAD_CONFIG, c.EXIT_BAD_CONFIG)


TEXT = "cat <<'EOF' | sort\n\"$HOME\" $(hostname) $$ ü\tb\nEOF\n"


def test_the_entrypoint_is_taken_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "entrypoint"
    path.write_bytes(TEXT.encode())
    assert read_entrypoint(path) == TEXT


ENTRYPOINTS = {
    "empty": (b" \n", "the entrypoint in {path} is empty"),
    "not UTF-8": (
        b"echo \xff",
        "the entrypoint in {path} is not UTF-8 ('utf-8' codec can't decode byte 0xff in position 5: invalid start byte)",
    ),
    "with a NUL": (b"echo \0", "the entrypoint in {path} has a NUL character"),
    "longer than one argument can be": (
        b"#" * 131072,
        "the entrypoint has 131072 bytes, Linux takes 131071 in one argument; move the code into workingDir or the image",
    ),
}


@pytest.mark.parametrize(("data", "message"), ENTRYPOINTS.values(), ids=ENTRYPOINTS)
def test_entrypoints_that_cannot_run(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "entrypoint"
    path.write_bytes(data)
    with pytest.raises(RunnerError) as e:
        read_entrypoint(path)
    assert (str(e.value), e.value.reason) == (message.format(path=path), c.REASON_BAD_CONFIG)


def test_an_entrypoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunnerError) as e:
        read_entrypoint(tmp_path / "entrypoint")
    assert str(e.value) == (
        f"cannot read the entrypoint from {tmp_path}/entrypoint: No such file or directory; "
        "the operator mounts it from the RayCluster's ConfigMap"
    )
