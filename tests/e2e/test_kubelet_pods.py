"""Pods on the bench's kubelet, as the real apiserver, scheduler, controllers and kubectl see them."""

import subprocess
from collections.abc import Iterator

import pytest

from sim.bench import Bench, BenchOptions
from sim.kubelet import KubeletSettings
from tests.e2e.bare_cluster import OPERATOR, RAY, WAIT_SECONDS, Cluster, Obj, a_config_map, a_pod, a_secret


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A bench without KubeRay, whose back-offs a test can wait for."""
    quick = KubeletSettings(back_off_base=1.0, config_retry=0.5, volume_sync_period=1.0)
    options = BenchOptions(kuberay=False, cpu_nodes=2, kubelet_settings=quick)
    with Bench(tmp_path_factory.mktemp("kubelet") / "bench", options) as bench:
        yield Cluster(bench)


FOREVER = "trap 'exit 0' TERM; while true; do sleep 0.1; done"


def test_a_pod_gets_its_environment_volumes_names_and_credentials(cluster: Cluster) -> None:
    script = """
    echo "env $X $IP $CM $SECRET $OPTIONAL"
    echo "files $(cat /shared/from-init) $(cat /projected/renamed) $(stat -Lc %a /projected/renamed) $(cat /one)"
    echo "shm $(df -m /dev/shm | tail -1 | awk '{print $2}')"
    echo "names $(hostname) $(getent hosts $(hostname) | awk '{print $1}') $(grep -c . /etc/resolv.conf)"
    echo "dns $(getent hosts kubernetes.default | awk '{print $1}')"
    at=/var/run/secrets/kubernetes.io/serviceaccount
    echo "api $(wget -qO- --ca-certificate=$at/ca.crt --header="Authorization: Bearer $(cat $at/token)" \
      https://kubernetes.default/api | grep -c APIVersions) $(cat $at/namespace)"
    """
    pod = a_pod(
        "whole",
        script,
        env=[
            {"name": "A", "value": "a"},
            {"name": "X", "value": "$(A)-$$(A)-$(NONE)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CM", "valueFrom": {"configMapKeyRef": {"name": "whole", "key": "k"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "whole", "key": "s"}}},
            {"name": "OPTIONAL", "valueFrom": {"secretKeyRef": {"name": "none", "key": "s", "optional": True}}},
        ],
        volumeMounts=[
            {"name": "shared", "mountPath": "/shared"},
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "projected", "mountPath": "/projected"},
            {"name": "config", "mountPath": "/one", "subPath": "k"},
        ],
        spec={
            "hostname": "own-name",
            "initContainers": [
                {
                    "name": "init",
                    "image": "busybox",
                    "command": ["sh", "-c", "echo one > /shared/from-init"],
                    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
                }
            ],
            "volumes": [
                {"name": "shared", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "100Mi"}},
                {"name": "config", "configMap": {"name": "whole"}},
                {
                    "name": "projected",
                    "projected": {
                        "sources": [
                            {"configMap": {"name": "whole", "items": [{"key": "k", "path": "renamed", "mode": 0o440}]}}
                        ]
                    },
                },
            ],
        },
    )
    cluster.apply(a_config_map("whole", k="v"), a_secret("whole", s="hidden"), pod)
    ended = cluster.until_phase("whole", "Succeeded", "Failed")
    address = ended["status"]["podIP"]
    assert cluster.log("whole").splitlines() == [
        f"env a-$(A)-$(NONE) {address} v hidden ",
        "files one v 440 v",
        "shm 100",
        f"names own-name {address} 3",
        "dns 10.96.0.1",
        "api 1 default",
    ]
    assert ended["status"]["phase"] == "Succeeded"


def test_a_crashing_container_is_started_again_with_back_off(cluster: Cluster) -> None:
    cluster.apply(
        a_pod("crash", "echo last words; exit 3", policy="Always", terminationMessagePolicy="FallbackToLogsOnError")
    )
    status = cluster.until_waiting("crash", "CrashLoopBackOff")
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["message"]) == (3, "Error", "last words\n")
    assert cluster.pod("crash")["status"]["phase"] == "Running"
    cluster.until("three starts", lambda: cluster.pod("crash")["status"]["containerStatuses"][0]["restartCount"] >= 2)
    assert cluster.log("crash", "--previous") == "last words\n"


def test_what_cannot_start_says_why(cluster: Cluster) -> None:
    cluster.apply(
        a_pod("no-command", "", command=["no-such-program"]),
        a_pod("no-image", "", image="nobody/nothing:1"),
        a_pod(
            "no-config", "echo $A", env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "k"}}}]
        ),
        a_pod(
            "no-volume",
            "cat /secret/k",
            volumeMounts=[{"name": "v", "mountPath": "/secret"}],
            spec={"volumes": [{"name": "v", "secret": {"secretName": "later"}}]},
        ),
    )
    ended = cluster.until_phase("no-command", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], "no-such-program" in ended["message"]) == (128, "StartError", True)
    image = cluster.until_waiting("no-image", "ImagePullBackOff")["state"]["waiting"]
    assert image["message"].startswith('Back-off pulling image "nobody/nothing:1": ErrImagePull: ')
    config = cluster.until_waiting("no-config", "CreateContainerConfigError")["state"]["waiting"]
    assert config["message"] == 'configmap "later" not found'
    cluster.until(
        "an event about the volume",
        lambda: [e for e in cluster.all("events") if e["reason"] == "FailedMount" and "later" in e["message"]],
    )
    cluster.apply(a_config_map("later", k="came"), a_secret("later", k="came too"))
    for name, words in {"no-config": "came", "no-volume": "came too"}.items():
        cluster.until_phase(name, "Succeeded")
        assert cluster.log(name).strip() == words


def test_exec_speaks_with_the_container(cluster: Cluster) -> None:
    cluster.apply(a_pod("shell", FOREVER, env=[{"name": "A", "value": "from the pod"}], workingDir="/tmp"))
    cluster.until_ready("shell")
    large = "x" * 2_000_000
    assert cluster.exec("shell", "sh", "-c", "echo $A; pwd; cat /proc/1/comm") == "from the pod\n/tmp\nsh\n"
    assert cluster.exec("shell", "cat", options=("-i",), input=large) == large
    with pytest.raises(subprocess.CalledProcessError) as caught:
        cluster.exec("shell", "sh", "-c", "echo trouble >&2; exit 7")
    assert (caught.value.returncode, "trouble" in caught.value.stderr) == (7, True)


def test_logs_can_be_followed_and_cut(cluster: Cluster) -> None:
    cluster.apply(a_pod("talker", "for i in 1 2 3; do echo line $i; sleep 0.3; done"))
    cluster.until("it has begun", lambda: cluster.pod("talker")["status"].get("phase") != "Pending")
    assert cluster.log("talker", "-f") == "line 1\nline 2\nline 3\n"
    assert cluster.log("talker", "--tail=1") == "line 3\n"


def test_probes_decide_on_readiness_and_restart(cluster: Cluster) -> None:
    served = a_pod(
        "served",
        "",
        image=RAY,
        policy="Always",
        command=["python", "-m", "http.server", "8000"],
        ports=[{"name": "web", "containerPort": 8000}],
        startupProbe={"tcpSocket": {"port": 8000}, "periodSeconds": 1, "failureThreshold": 60},
        readinessProbe={"httpGet": {"path": "/tmp/ready", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1},
        livenessProbe={
            "exec": {"command": ["sh", "-c", "! test -e /tmp/dead"]},
            "periodSeconds": 1,
            "failureThreshold": 2,
        },
        workingDir="/",
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "served"},
        "spec": {"clusterIP": "None", "selector": {"app": "served"}},
    }
    cluster.apply(served, service, a_pod("client", FOREVER))
    cluster.until(
        "startup succeeded",
        lambda: cluster.pod("served")["status"].get("containerStatuses", [{}])[0].get("started"),
    )
    cluster.until_ready("client")
    assert not cluster.ready("served")
    cluster.exec("served", "touch", "/tmp/ready")
    address = cluster.until_ready("served")["status"]["podIP"]
    resolve = ("sh", "-c", "getent hosts served | awk '{print $1}'")
    cluster.until("the name resolves", lambda: cluster.exec("client", *resolve).strip() == address)
    cluster.exec("served", "touch", "/tmp/dead")
    cluster.until("restarted", lambda: cluster.pod("served")["status"]["containerStatuses"][0]["restartCount"] == 1)


def test_a_pod_ends_as_its_owner_asks(cluster: Cluster) -> None:
    grace = "trap 'echo asked; echo bye > /dev/termination-log; exit 0' TERM; while true; do sleep 0.1; done"
    cluster.apply(
        a_pod(
            "polite", grace, lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "echo pre-stop > /proc/1/fd/1"]}}}
        ),
        a_pod("stubborn", "trap '' TERM; while true; do sleep 0.1; done", spec={"terminationGracePeriodSeconds": 1}),
        a_pod("deaf", "sleep 1000", spec={"terminationGracePeriodSeconds": 600}),
    )
    for name in ("polite", "stubborn", "deaf"):
        cluster.until_ready(name)
    follow = subprocess.Popen(
        [*cluster.bench.inside_argv(), "kubectl", "logs", "-f", "polite"],
        env=cluster.bench.inside_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    cluster.bench.kubectl("delete", "pod", "polite", "stubborn", "--timeout=60s")
    cluster.bench.kubectl("delete", "pod", "deaf", "--grace-period=0", "--force")
    assert follow.communicate(timeout=30)[0] == "pre-stop\nasked\n"
    for name in ("polite", "stubborn", "deaf"):
        cluster.until_gone("pod", name)
    cluster.until("no process of them is left", lambda: "sleep 1000" not in cluster.bench.exec_inside(["ps", "ax"]))


def test_a_job_with_a_sidecar_completes(cluster: Cluster) -> None:
    pod = a_pod(
        "worker",
        "cat /shared/ready; echo done",
        volumeMounts=[{"name": "shared", "mountPath": "/shared"}],
        spec={
            "initContainers": [
                {
                    "name": "sidecar",
                    "image": "busybox",
                    "restartPolicy": "Always",
                    "command": ["sh", "-c", "echo up > /shared/ready; " + FOREVER],
                    "startupProbe": {"exec": {"command": ["test", "-e", "/shared/ready"]}, "periodSeconds": 1},
                    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
                }
            ],
            "volumes": [{"name": "shared", "emptyDir": {}}],
        },
    )
    template = {"metadata": {"labels": {"app": "job"}}, "spec": pod["spec"]}
    cluster.apply(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum"}, "spec": {"template": template}}
    )
    cluster.bench.kubectl("wait", "--for=condition=Complete", "job/sum", f"--timeout={WAIT_SECONDS:g}s")
    assert cluster.log("job/sum", "-c", "main") == "up\ndone\n"


def test_the_operators_image_is_non_root_and_knows_no_stand_in(cluster: Cluster) -> None:
    look = "id -u; python -c 'import torchtpu_operator; print(\"operator\")'; python -c 'import torch_tpu' 2>&1 | tail -1; touch /etc/x"
    secure = {"runAsNonRoot": True, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    cluster.apply(a_pod("operator", look, image=OPERATOR, securityContext=secure))
    cluster.until_phase("operator", "Failed", "Succeeded")
    assert cluster.log("operator").splitlines()[:3] == [
        "65532",
        "operator",
        "ModuleNotFoundError: No module named 'torch_tpu'",
    ]
    assert "cannot touch '/etc/x'" in cluster.log("operator")


def test_the_ray_image_has_ray_and_the_stand_in_only(cluster: Cluster) -> None:
    look = (
        "python -c 'import ray, torch_tpu; print(ray.__version__)'; python -c 'import torchtpu_operator' 2>&1 | tail -1"
    )
    cluster.apply(a_pod("ray", look, image=RAY))
    cluster.until_phase("ray", "Failed", "Succeeded")
    assert cluster.log("ray").splitlines() == ["2.60.0", "ModuleNotFoundError: No module named 'torchtpu_operator'"]


def test_a_config_map_in_a_volume_follows_its_source(cluster: Cluster) -> None:
    pod = a_pod(
        "follower",
        FOREVER,
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        spec={"volumes": [{"name": "v", "configMap": {"name": "moving"}}]},
    )
    cluster.apply(a_config_map("moving", k="old"), pod)
    cluster.until_ready("follower")
    assert cluster.exec("follower", "cat", "/v/k") == "old"
    cluster.apply(a_config_map("moving", k="new"))
    cluster.until("the file changes", lambda: cluster.exec("follower", "cat", "/v/k") == "new")


def test_hosts_with_chips_and_hosts_that_go(cluster: Cluster) -> None:
    cluster.make_pool()
    nodes = [n for n in cluster.all("nodes") if n["metadata"]["labels"].get("cloud.google.com/gke-nodepool") == "v6e"]
    assert [n["status"]["allocatable"]["google.com/tpu"] for n in nodes] == ["4"] * 4
    names = [n["metadata"]["name"] for n in nodes]

    def on(node: str, name: str, chips: int) -> Obj:
        return a_pod(
            name,
            "echo $TPU_TOPOLOGY $TPU_ACCELERATOR_TYPE; " + FOREVER,
            env=[{"name": "TPU_ACCELERATOR_TYPE", "value": "own"}],
            resources={"limits": {"google.com/tpu": str(chips)}},
            spec={
                "nodeSelector": {"kubernetes.io/hostname": node},
                "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
            },
        )

    cluster.apply(on(names[0], "whole-host", 4), on(names[1], "half-host", 2), on(names[2], "lost", 4))
    cluster.until_ready("whole-host")
    assert cluster.log("whole-host") == "4x4 own\n"
    refused = cluster.until_phase("half-host", "Failed")["status"]
    assert (refused["reason"], "must request all 4 chips" in refused["message"]) == ("UnexpectedAdmissionError", True)
    cluster.until_ready("lost")

    before = cluster.bench.exec_inside(["ps", "ax"]).count("TPU_TOPOLOGY")
    cluster.bench.fault("node-vanish", node=names[2])
    cluster.until_gone("node", names[2])
    assert cluster.bench.exec_inside(["ps", "ax"]).count("TPU_TOPOLOGY") < before
    cluster.bench.fault("pod-kill", namespace="default", pod="whole-host", reason="OOMKilled")
    ended = cluster.until_phase("whole-host", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")

    cluster.apply(on(names[3], "drained", 4))
    cluster.until_ready("drained")
    cluster.delete_pool()
    cluster.until("the pool's nodes are gone", lambda: len(cluster.all("nodes")) == 2)
    cluster.until_gone("pod", "drained")
