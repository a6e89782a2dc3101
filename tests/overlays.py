"""Pod overlays as people write them: one corpus for the merge, the rules, and a real apiserver's opinion of the pods."""

from collections.abc import Iterator
from typing import Any

from tests.spec_cases import Document, job

Overlay = dict[str, Any]


def ray(**fields: Any) -> Overlay:
    """An overlay of the main container alone."""
    return {"spec": {"containers": [{"name": "ray", **fields}]}}


def spec(**fields: Any) -> Overlay:
    return {"spec": fields}


def volume(**source: Any) -> Overlay:
    """A volume of one kind, mounted."""
    return {
        "spec": {
            "volumes": [{"name": "data", **source}],
            "containers": [{"name": "ray", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        }
    }


_PROBE = {"httpGet": {"path": "/up", "port": 9000}}

OVERLAYS: dict[str, Overlay] = {
    "nothing": {},
    "labels and annotations": {"metadata": {"labels": {"team": "ml"}, "annotations": {"gke-gcsfuse/volumes": "true"}}},
    "values and references to what is below": ray(
        env=[{"name": "RUN", "value": "$(TORCHTPU_ATTEMPT)"}, {"name": "OUT", "value": "/out/$(RUN)"}]
    ),
    "values from everywhere": ray(
        env=[
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        ]
    ),
    "another value for a default of ours": ray(env=[{"name": "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "value": "9"}]),
    "everything of a ConfigMap and a Secret": ray(
        envFrom=[{"configMapRef": {"name": "settings"}}, {"prefix": "X_", "secretRef": {"name": "s", "optional": True}}]
    ),
    "a volume on the host": volume(hostPath={"path": "/mnt", "type": "DirectoryOrCreate"}),
    "an empty volume": volume(emptyDir={"sizeLimit": "10Gi"}),
    "a ConfigMap": volume(configMap={"name": "c", "defaultMode": 0o444, "items": [{"key": "a", "path": "b"}]}),
    "a Secret": volume(secret={"secretName": "s", "optional": True}),
    "a claim": volume(persistentVolumeClaim={"claimName": "c", "readOnly": True}),
    "a claim of its own": volume(
        ephemeral={
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "hyperdisk",
                    "resources": {"requests": {"storage": "1Ti"}},
                }
            }
        }
    ),
    "a bucket": {
        "metadata": {"annotations": {"gke-gcsfuse/volumes": "true"}},
        **volume(csi={"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "acme"}}),
    },
    "NFS": volume(nfs={"server": "10.0.0.2", "path": "/share"}),
    "an image as a volume": volume(image={"reference": "example.com/data:1", "pullPolicy": "IfNotPresent"}),
    "several sources in one": volume(
        projected={
            "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600, "audience": "x"}},
                {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                {"configMap": {"name": "c"}},
            ]
        }
    ),
    "a larger /dev/shm": spec(
        volumes=[{"name": "torchtpu-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "200Gi"}}]
    ),
    "a /dev/shm of one's own": spec(
        volumes=[{"name": "mine", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        containers=[{"name": "ray", "volumeMounts": [{"name": "mine", "mountPath": "/dev/shm"}]}],
    ),
    "a block device": spec(
        volumes=[{"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}],
        containers=[{"name": "ray", "volumeDevices": [{"name": "disk", "devicePath": "/dev/xvda"}]}],
    ),
    "who it is and who may pull": spec(
        serviceAccountName="trainer", imagePullSecrets=[{"name": "pull"}, {"name": "b"}]
    ),
    "where it may run": spec(
        nodeSelector={"disk": "fast"},
        tolerations=[
            {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
            {"operator": "Exists"},
        ],
        topologySpreadConstraints=[
            {
                "topologyKey": "kubernetes.io/hostname",
                "maxSkew": 1,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"team": "ml"}},
            }
        ],
    ),
    "near others": spec(
        affinity={
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "topology.kubernetes.io/zone",
                            "labelSelector": {"matchLabels": {"team": "ml"}},
                        },
                    }
                ]
            }
        }
    ),
    "who it runs as": {
        "spec": {
            "securityContext": {
                "runAsUser": 1000,
                "fsGroup": 1000,
                "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
            },
            "containers": [
                {
                    "name": "ray",
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_PTRACE"]}},
                }
            ],
        }
    },
    "the host's network": spec(hostNetwork=True),
    "the host's network with another DNS": spec(
        hostNetwork=True, dnsPolicy="None", dnsConfig={"nameservers": ["10.0.0.53"], "searches": ["acme"]}
    ),
    "names of other hosts": spec(hostAliases=[{"ip": "10.0.0.9", "hostnames": ["data"]}]),
    "a device by claim": spec(
        resourceClaims=[{"name": "nic", "resourceClaimTemplateName": "rdma"}],
        containers=[{"name": "ray", "resources": {"claims": [{"name": "nic"}]}}],
    ),
    "other resources": ray(
        resources={"requests": {"cpu": 2, "memory": "8Gi"}, "limits": {"ephemeral-storage": "50Gi"}}
    ),
    "an init container": spec(
        initContainers=[{"name": "fetch", "image": "example.com/fetch:1", "command": ["fetch"], "args": ["$(X)"]}]
    ),
    "a sidecar": spec(
        containers=[
            {
                "name": "log",
                "image": "fluent-bit:3",
                "env": [{"name": "RANK", "value": "none"}],
                "ports": [{"containerPort": 2020}],
            },
            {"name": "ray", "tty": True},
        ]
    ),
    "a sidecar among the init containers": spec(
        initContainers=[{"name": "proxy", "image": "example.com/proxy:1", "restartPolicy": "Always"}]
    ),
    "hooks, probes and messages of its own": ray(
        lifecycle={"preStop": {"exec": {"command": ["sync"]}}},
        readinessProbe=_PROBE,
        livenessProbe={"failureThreshold": 5},
        startupProbe={"exec": {"command": ["true"]}},
        terminationMessagePath="/dev/termination-log",
    ),
    "more ports, and one of ours with a number on the host": ray(
        ports=[
            {"containerPort": 9000, "name": "metrics", "protocol": "TCP"},
            {"containerPort": 8265, "hostPort": 18265},
        ]
    ),
    "the rest of a pod": spec(
        terminationGracePeriodSeconds=120,
        priorityClassName="research",
        runtimeClassName="gvisor",
        schedulerName="default-scheduler",
        shareProcessNamespace=True,
        enableServiceLinks=False,
        automountServiceAccountToken=False,
        setHostnameAsFQDN=False,
        hostIPC=False,
        schedulingGates=[{"name": "example.com/wait"}],
        readinessGates=[{"conditionType": "example.com/ready"}],
    ),
    "null takes away": {"spec": {"affinity": None, "containers": [{"name": "ray", "livenessProbe": None}]}},
    "null where nothing is": {"spec": {"affinity": {"nodeAffinity": None}, "securityContext": {"runAsUser": None}}},
}

REFUSED_BY_ADMISSION = {"the rest of a pod"}
"""What names objects that a test's apiserver does not have."""

PAIRS = {
    "a variable gets another source": (
        ray(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]),
        ray(env=[{"name": "X", "value": "2"}, {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
    ),
    "a volume gets another source": (
        volume(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"}),
        volume(emptyDir={"sizeLimit": "2Gi"}),
    ),
    "a volume becomes a ConfigMap": (volume(emptyDir={}), volume(configMap={"name": "c"})),
    "a mount gets another volume and keeps its sub-path": (
        ray(volumeMounts=[{"name": "a", "mountPath": "/x", "subPath": "s", "readOnly": True}]),
        ray(volumeMounts=[{"name": "b", "mountPath": "/x"}]),
    ),
    "a claim gets another source": (
        spec(resourceClaims=[{"name": "nic", "resourceClaimName": "one"}]),
        spec(resourceClaims=[{"name": "nic", "resourceClaimTemplateName": "many"}]),
    ),
    "a hook gets another handler": (
        ray(lifecycle={"preStop": {"exec": {"command": ["a"]}}}),
        ray(lifecycle={"preStop": {"sleep": {"seconds": 5}}}),
    ),
    "tolerations are taken for those before": (
        spec(tolerations=[{"key": "a", "operator": "Exists"}]),
        spec(tolerations=[{"key": "b", "operator": "Exists"}]),
    ),
    "a sidecar is changed by its name": (
        spec(containers=[{"name": "log", "image": "a", "args": ["x", "y"]}, {"name": "ray"}]),
        spec(containers=[{"name": "log", "image": "b", "args": ["z"]}]),
    ),
    "a host gets other names": (
        spec(hostAliases=[{"ip": "10.0.0.9", "hostnames": ["data"]}]),
        spec(hostAliases=[{"ip": "10.0.0.9", "hostnames": ["store"]}, {"ip": "10.0.0.8", "hostnames": ["b"]}]),
    ),
}
"""An overlay of the class and one of the job over it."""


def jobs() -> Iterator[tuple[str, Document]]:
    """A job for each overlay, laid over both roles."""
    for name, overlay in OVERLAYS.items():
        yield name, job(template=overlay)
