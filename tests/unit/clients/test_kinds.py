"""Request paths: a name leads to the object of that name, and to no other one."""

import pytest
import yarl

from torchtpu_operator.clients.kinds import CLASSES, CONFIG_MAPS

NAMES = {
    "code": "code",
    "a.b-1": "a.b-1",
    "system:a": "system:a",
    "../secrets/token": "..%2Fsecrets%2Ftoken",
    "../../kube-system/secrets/token": "..%2F..%2Fkube-system%2Fsecrets%2Ftoken",
    "..": "%00",
    ".": "%00",
    "code?watch": "code%3Fwatch",
    "code#": "code%23",
    "%2e%2e": "%252e%252e",
}


@pytest.mark.parametrize(("name", "want"), NAMES.items(), ids=NAMES)
def test_a_name_stays_one_part_of_the_path(name: str, want: str) -> None:
    path = CONFIG_MAPS.path(namespace="ml", name=name)
    sent = yarl.URL(f"https://10.0.0.1:6443{path}")  # what aiohttp makes of it
    assert (path, sent.raw_path, sent.raw_query_string) == (f"/api/v1/namespaces/ml/configmaps/{want}", path, "")


def test_paths() -> None:
    assert [CLASSES.path(), CLASSES.path(name="a", subresource="status"), CONFIG_MAPS.path()] == [
        "/apis/torchtpu.dev/v1alpha1/tpusliceclasses",
        "/apis/torchtpu.dev/v1alpha1/tpusliceclasses/a/status",
        "/api/v1/configmaps",
    ]
