"""Derived names: legal wherever they go, the same each time, never the same for two."""

import re

from hypothesis import given
from hypothesis import strategies as st

from torchtpu_operator.plan import names

JOB_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?", fullmatch=True) | st.sampled_from(
    ["a", "a" * 52, "a" + "-" * 50 + "b", "x" * 28 + "-y"]
)
UIDS = st.uuids().map(str)
LABEL = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")


@given(JOB_NAMES, UIDS, st.integers(0, 15), st.integers(0, 10_000))
def test_node_pool_names_are_legal(job: str, uid: str, index: int, sequence: int) -> None:
    name = names.slice_name(job, job_uid=uid, index=index, sequence=sequence)
    assert (LABEL.fullmatch(name) is not None, len(name) <= 40) == (True, True)


@given(JOB_NAMES, UIDS, st.integers(1, 1_000_000))
def test_ray_cluster_names_and_what_derives_from_them_are_legal(job: str, uid: str, attempt: int) -> None:
    name = names.ray_cluster_name(job, job_uid=uid, attempt=attempt)
    longest_service = f"{name}-headless"
    assert (LABEL.fullmatch(name) is not None, len(name) <= 41, len(longest_service) <= 50) == (True, True, True)


@given(UIDS, st.lists(st.tuples(st.integers(0, 15), st.integers(0, 99)), min_size=2, max_size=8, unique=True))
def test_no_two_slices_of_a_job_share_a_name(uid: str, slices: list[tuple[int, int]]) -> None:
    made = {names.slice_name("a" * 52, job_uid=uid, index=index, sequence=sequence) for index, sequence in slices}
    assert len(made) == len(slices)


def test_jobs_of_one_name_in_two_namespaces_never_meet() -> None:
    uids = ("11111111-2222-3333-4444-555555555555", "66666666-2222-3333-4444-555555555555")
    pools = {names.slice_name("train", job_uid=uid, index=0, sequence=0) for uid in uids}
    clusters = {names.ray_cluster_name("train", job_uid=uid, attempt=1) for uid in uids}
    assert (len(pools), len(clusters)) == (2, 2)


def test_names_stay_what_they_were() -> None:
    """A later release must find what this one made."""
    uid = "11111111-2222-3333-4444-555555555555"
    cluster = names.ray_cluster_name("llama-ft", job_uid=uid, attempt=3)
    assert (
        names.slice_name("llama-ft", job_uid=uid, index=1, sequence=2),
        cluster,
        names.submission_id(uid, attempt=3),
        names.tpu_name(cluster, slice_index=1),
        names.runner_config_map_name(cluster),
        names.auth_secret_name(cluster),
        names.installation_id(kube_system_uid=uid, namespace="torchtpu-system"),
        names.document_hash({"b": 1, "a": [1, 2]}),
    ) == (
        "llama-ft-1-7c2e3f16",
        "llama-ft-666ff6cc-a3",
        "11111111-2222-3333-4444-555555555555-3",
        "llama-ft-666ff6cc-a3-s1",
        "llama-ft-666ff6cc-a3-runner",
        "llama-ft-666ff6cc-a3-auth",
        "36e115415942bae6",
        "94a786c3662bc7be",
    )
