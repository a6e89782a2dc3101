"""Examples of docs/api.md: the shortest and a fuller object of each kind. A test holds them against schema and rules."""

from typing import Any, Final

from torchtpu_operator.api import constants

Document = dict[str, Any]

_IMAGE = "us-docker.pkg.dev/acme/ml/ray-torchtpu:2.60.0"


def _object(kind: str, metadata: Document, spec: Document) -> Document:
    return {"apiVersion": constants.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


EXAMPLES: Final = {
    constants.JOB_KIND: (
        _object(
            constants.JOB_KIND,
            {"name": "hello", "namespace": "ml"},
            {"accelerator": "v6e", "topology": "4x4", "entrypoint": "python train.py"},
        ),
        _object(
            constants.JOB_KIND,
            {"name": "llama-ft", "namespace": "ml"},
            {
                "accelerator": "v6e",
                "topology": "4x8",
                "numSlices": 2,
                "sliceClassName": "research",
                "offers": ["reserved", "spot"],
                "entrypoint": "set -euo pipefail\npython train.py --steps 1000\n",
                "image": _IMAGE,
                "rayVersion": "2.60.0",
                "workingDir": {"configMap": {"name": "code"}},
                "checkpointDir": "gs://acme/run7",
                "env": [
                    {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
                    {"name": "OMP_NUM_THREADS", "value": "8"},
                ],
                "template": {
                    "metadata": {"annotations": {"gke-gcsfuse/volumes": "true"}},
                    "spec": {
                        "serviceAccountName": "trainer",
                        "containers": [{"name": "ray", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                        "volumes": [
                            {
                                "name": "data",
                                "csi": {
                                    "driver": "gcsfuse.csi.storage.gke.io",
                                    "volumeAttributes": {"bucketName": "acme-data"},
                                },
                            }
                        ],
                    },
                },
                "head": {
                    "template": {
                        "spec": {"containers": [{"name": "ray", "resources": {"requests": {"memory": "16Gi"}}}]}
                    }
                },
                "priorityClassName": "high",
                "failurePolicy": {
                    "maxRestarts": 3,
                    "rules": [{"action": "Fail", "onExitCodes": {"operator": "In", "values": [2]}}],
                },
                "capacityDeadlineSeconds": 28800,
                "activeDeadlineSeconds": 604800,
                "stopGracePeriodSeconds": 120,
                "logRetentionSeconds": 86400,
                "ttlSecondsAfterFinished": 604800,
            },
        ),
    ),
    constants.CLASS_KIND: (
        _object(
            constants.CLASS_KIND,
            {"name": "default", "annotations": {constants.ANNOTATION_DEFAULT_CLASS: "true"}},
            {"offers": [{"name": "on-demand", "type": "OnDemand", "zones": ["us-east5-b"]}]},
        ),
        _object(
            constants.CLASS_KIND,
            {"name": "research"},
            {
                "offers": [
                    {
                        "name": "reserved",
                        "type": "Reservation",
                        "zones": ["us-east5-b"],
                        "reservation": {"name": "v6e-res", "chips": 256},
                        "accelerators": ["v6e"],
                    },
                    {
                        "name": "spot",
                        "type": "Spot",
                        "zones": ["us-east5-b", "us-east5-a"],
                        "waitSeconds": 1800,
                        "maxChips": 64,
                        "pricePerChipHour": "1.20",
                    },
                ],
                "nodePool": {
                    "serviceAccount": "tpu-nodes@acme.iam.gserviceaccount.com",
                    "resourceLabels": {"cost-center": "ml"},
                    "imageStreaming": True,
                },
                "maxLifetimeSeconds": 259200,
                "reclaim": {"idleSeconds": 600},
                "allowedNamespaces": {"selector": {"matchLabels": {"team": "ml"}}},
                "limits": {"chips": 512, "chipsPerJob": 256},
                "jobDefaults": {"image": _IMAGE, "rayVersion": "2.60.0"},
            },
        ),
    ),
    constants.SLICE_KIND: (
        _object(
            constants.SLICE_KIND,
            {"name": "standing-0"},
            {
                "sliceClassName": "research",
                "accelerator": "v6e",
                "topology": "4x4",
                "offer": {
                    "name": "reserved",
                    "type": "Reservation",
                    "zone": "us-east5-b",
                    "reservation": {"name": "v6e-res"},
                },
                "nodePool": {"name": "standing-0"},
                "reclaim": {"reuse": "Class"},
            },
        ),
    ),
}
