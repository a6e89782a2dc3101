"""What bubblewrap is told for a container."""

from pathlib import Path
from typing import Any

import pytest

from sim.images import BUSYBOX_IMAGE, OPERATOR_IMAGE, RAY_IMAGE, REPO, Image, default_images
from sim.kubelet.sandbox import (
    Mount,
    RootKind,
    Sandbox,
    build_bwrap_arguments,
    build_nsenter_arguments,
    build_user_prefix,
    resolve_target,
)


def a_sandbox(image: Image | None = None, **values: Any) -> Sandbox:
    fields: dict[str, Any] = {
        "image": image or Image(reference="busybox", command=["sh"]),
        "root": RootKind.OVERLAY,
        "hostname": "pod-0",
        "user": 0,
        "group": 0,
        "working_dir": "/",
        "mounts": [],
        **values,
    }
    return Sandbox(**fields)


def pairs(arguments: list[str], option: str, count: int) -> list[tuple[str, ...]]:
    """Every use of an option with its operands."""
    return [tuple(arguments[index + 1 : index + 1 + count]) for index, word in enumerate(arguments) if word == option]


def _image(reference: str) -> Image:
    found = default_images().find(reference)
    assert found is not None
    return found


def test_every_container_has_namespaces_of_its_own_and_dies_with_the_kubelet() -> None:
    arguments = build_bwrap_arguments(a_sandbox())
    wanted = {"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--as-pid-1"}
    assert wanted <= set(arguments)
    assert pairs(arguments, "--hostname", 1) == [("pod-0",)]


def test_homes_and_the_checkout_are_hidden() -> None:
    arguments = build_bwrap_arguments(a_sandbox())
    hidden = {folder for (folder,) in pairs(arguments, "--tmpfs", 1)}
    assert {"/tmp", "/var/tmp"} <= hidden
    assert any(str(REPO).startswith(folder) for folder in hidden)
    assert any(str(Path.home().resolve()).startswith(folder) for folder in hidden)


def test_the_ray_image_holds_the_stand_in_and_not_the_operator() -> None:
    bound = {source for source, _ in pairs(build_bwrap_arguments(a_sandbox(_image(RAY_IMAGE))), "--ro-bind", 2)}
    assert str(REPO / "sim" / "standin") in bound
    assert str(REPO / "operator") not in bound


def test_the_operators_image_holds_the_operator_and_not_the_stand_in() -> None:
    image = _image(OPERATOR_IMAGE)
    bound = {source for source, _ in pairs(build_bwrap_arguments(a_sandbox(image)), "--ro-bind", 2)}
    assert str(REPO / "operator") in bound
    assert str(REPO / "sim" / "standin") not in bound
    assert "standin" not in image.env["PYTHONPATH"]


def test_mounts_within_mounts_come_later_and_targets_have_no_links(tmp_path: Path) -> None:
    mounts = [
        Mount(source=tmp_path / "inner", target="/data/a/b", read_only=True),
        Mount(source=tmp_path / "outer", target="/data"),
    ]
    arguments = build_bwrap_arguments(a_sandbox(mounts=mounts))
    inner, outer = str(tmp_path / "inner"), str(tmp_path / "outer")
    assert (inner, "/data/a/b") in pairs(arguments, "--ro-bind", 2)
    assert (outer, "/data") in pairs(arguments, "--bind", 2)
    assert arguments.index(outer) < arguments.index(inner)


def test_the_service_account_lands_where_var_run_leads() -> None:
    target = resolve_target("/var/run/secrets/kubernetes.io/serviceaccount")
    assert not Path("/var/run").is_symlink() or target == "/run/secrets/kubernetes.io/serviceaccount"


SHM = {"small without a volume": ([], True), "the volume's": ([Mount(source=Path("/x"), target="/dev/shm")], False)}


@pytest.mark.parametrize(("mounts", "small"), SHM.values(), ids=SHM)
def test_shared_memory(mounts: list[Mount], small: bool) -> None:
    arguments = build_bwrap_arguments(a_sandbox(mounts=mounts))
    assert (("67108864",) in pairs(arguments, "--size", 1)) is small


def test_a_read_only_root_is_sealed_after_the_mounts() -> None:
    arguments = build_bwrap_arguments(a_sandbox(read_only_root=True, mounts=[Mount(source=Path("/x"), target="/data")]))
    assert arguments.index("--remount-ro") > arguments.index("/data")


def test_a_missing_target_splits_its_parents_where_the_root_is_read_only() -> None:
    target = "/etc/absent-folder/x"
    arguments = build_bwrap_arguments(
        a_sandbox(root=RootKind.READ_ONLY, mounts=[Mount(source=Path("/x"), target=target)])
    )
    bound = {target for _, target in pairs(arguments, "--ro-bind", 2)}
    assert "/etc" not in bound
    assert "/etc/passwd" in bound
    assert "/usr" in bound


USERS = {
    "root stays root": (RootKind.OVERLAY, 0, [], False),
    "another user by setpriv": (
        RootKind.OVERLAY,
        65532,
        ["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", "--"],
        False,
    ),
    "without root by a user namespace": (RootKind.READ_ONLY, 65532, [], True),
}


@pytest.mark.parametrize(("root", "user", "prefix", "namespace"), USERS.values(), ids=USERS)
def test_users(root: RootKind, user: int, prefix: list[str], namespace: bool) -> None:
    sandbox = a_sandbox(root=root, user=user, group=user)
    assert (build_user_prefix(sandbox), "--unshare-user" in build_bwrap_arguments(sandbox)) == (prefix, namespace)


def test_commands_enter_all_namespaces_of_the_main_process() -> None:
    words = build_nsenter_arguments(a_sandbox(working_dir="/work"), pid=42)
    assert words[: words.index("--")] == [
        "nsenter",
        "--target",
        "42",
        "--mount",
        "--uts",
        "--ipc",
        "--net",
        "--pid",
        "--wdns=/work",
    ]


REFERENCES = {
    "a short name": ("busybox", BUSYBOX_IMAGE),
    "its long form": ("docker.io/library/busybox:latest", BUSYBOX_IMAGE),
    "the operator's version": (OPERATOR_IMAGE, OPERATOR_IMAGE),
    "another version": ("ghcr.io/torchtpu/torchtpu-operator:9.9.9", None),
    "nobody's": ("nobody/nothing", None),
}


@pytest.mark.parametrize(("reference", "want"), REFERENCES.values(), ids=REFERENCES)
def test_image_table(reference: str, want: str | None) -> None:
    found = default_images().find(reference)
    assert (found.reference if found else None) == want


def test_a_volume_does_not_hide_the_image_below_it() -> None:
    image = Image(reference="x", folders=[Path("/tmp/checkout/operator")])
    arguments = build_bwrap_arguments(a_sandbox(image, mounts=[Mount(source=Path("/srv/volume"), target="/tmp")]))
    folder = ("/tmp/checkout/operator", "/tmp/checkout/operator")
    binds = [
        (words[1], words[2])
        for words in zip(arguments, arguments[1:], arguments[2:], strict=False)
        if "bind" in words[0]
    ]
    assert binds[-2:] == [("/srv/volume", "/tmp"), folder], "the image's folder lies over the volume"
