"""Random objects from the schema of the CRDs and from around its edges; about a third are good."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.spec_cases import Document
from torchtpu_operator.api.crd import structural
from torchtpu_operator.api.env_rules import RESERVED_ENV
from torchtpu_operator.api.offer import OfferType
from torchtpu_operator.api.validate import KINDS
from torchtpu_operator.tpu import CATALOGUE

Schema = dict[str, Any]

_SCHEMAS: Final = {kind: structural(model)["properties"]["spec"] for kind, model in KINDS.items()}
_SHAPES: Final = [(name, topology) for name, generation in CATALOGUE.items() for topology in generation.shapes]
_CUBES: Final = [("v4", "4x4x8"), ("v5p", "8x8x16"), ("v5p", "16x16x24"), ("v7x", "4x8x8")]

# What the rules look into: values that pass, by the end of the path.
_GOOD: Final[dict[str, list[Any]]] = {
    "entrypoint": ["python train.py", "set -e\npython a.py 'ü' && echo \"$HOME\"", "x" * 65536, "a torchrun", "\tb "],
    "rayVersion": ["2.60.0", "2.60.1rc1", "3.0.0", "9999.9999.9999+x"],
    "image": ["a/b:c", "x"],
    "uri": ["gs://a/b.zip", "https://ü.zip", "s3://a.zip"],
    "env_vars": [{}, {"A": "1"}, {"TPU_PREMAPPED_BUFFER_SIZE": "", "ü": "ü"}],
    "labels": [{}, {"team": "ml"}, {"a/b": "", "torchtpu": "x"}],
    "annotations": [{}, {"gke-gcsfuse/volumes": "true"}, {"ray": "", "a.ray.io/b": "c"}],
    "nodeSelector": [{}, {"disk": "ssd"}, {"ü": ""}],
    "volumes": [[], [{"name": "torchtpu-shm", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "a", "csi": None}]],
    "mountPath": ["/data", "/dev/shm", "/opt/torchtpu-job"],
    "tolerations": [[], [{"operator": "Exists"}, {"key": "a", "tolerationSeconds": 1}]],
    "resources": [{}, {"limits": {"cpu": 4, "memory": "1Gi"}}, {"requests": {"a.b/c": "1"}, "claims": [{"name": "x"}]}],
    "backoff": [{}, {"initialSeconds": 0, "maxSeconds": 0}, {"initialSeconds": 600}, {"maxSeconds": 10}],
    "workingDir": [{"configMap": {"name": "c"}}, {"uri": "gs://a/b.zip"}],
    "runtimeEnv": [{}, {"pip": ["a"]}, {"env_vars": {"A": "1"}, "config": {"x": None}}],
    "effect": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
    "sliceClassName": ["default", "a.b-1", "9"],
    "priorityClassName": ["high", "a" * 253],
    "zones": [["us-east5-b"], ["a", "b", "a"], ["us-south1-ai1b"]],
    "controllerName": ["torchtpu.dev/operator", "a/b/c"],
    "resourceLabels": [{}, {"cost-center": "ml", "a_1": ""}],
    "serviceAccount": ["default", "a@b.iam.gserviceaccount.com"],
    "taints": [[], [{"key": "team", "value": "ml", "effect": "NoSchedule"}]],
    "matchExpressions": [
        [],
        [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "a", "operator": "Exists"}],
        [{"key": "ü", "operator": "DoesNotExist", "values": []}],
    ],
    "onExitCodes": [{"operator": "In", "values": [1, 255]}, {"operator": "NotIn", "values": [42]}],
    "accelerators": [[], ["v6e"], ["v4", "v7x"]],
    "reservation": [{"name": "r"}, {"name": "r", "block": "b", "subBlock": "s", "chips": 1}],
    "chipHours": [1, 500, "12.5", "0.1", 2**53],
    "managedBy": ["torchtpu.dev/operator", "kueue.x-k8s.io/multikueue", "a/b"],
    "command": [["sh", "-c"], [], [""]],
    "pricePerChipHour": ["1.20", "0", "007.5"],
}
# What users get wrong there; each is judged by a rule or a pattern.
_WRONG: Final[dict[str, list[Any]]] = {
    "accelerator": ["V6E", "v6e-8", "tpu7x", "v5litepod-16", "tpu-v5-lite-podslice", "xyz-", "-8", "v6e ", "h100"],
    "topology": ["4x2", "2x2x3", "1x1", "4X4", "4*4", "4x4x4x4", "16", "10000x1", "99999999999999999999x1", "4x4\n"],
    "numSlices": [0, 2, 17, -1, 2**31, 2**63 - 1],
    "chipsPerHost": [1, 4, 8, 0],
    "launcher": ["driver", "Driver ", "PerHost"],
    "entrypoint": [
        "torchrun a",
        "a;torchrun b",
        "x && accelerate launch y",
        "\ttorchrun",
        "ü\u00a0",
        "\n",
        "\x00",
        "\u2028",
    ],
    "rayVersion": ["2.57.9", "2.59.0", "2.60", "v2.60.0", "10.0.0\n", "２.60.0", "2.60.0 ", "02.060.00"],
    "uri": ["x", "gs://.zip", "gs://a.zip\n", "GS://a.zip", "http://a.zip"],
    "env": [[{"name": name, "value": "1"}] for name in sorted(RESERVED_ENV)[:6]],
    "env_vars": [{name: "1"} for name in sorted(RESERVED_ENV)[:3]],
    "labels": [{"ray.io/x": "a"}, {"torchtpu.dev/x": ""}, {"app.kubernetes.io/name": "a"}, {"cloud.google.com/a": "b"}],
    "annotations": [{"ray.io/overwrite-container-cmd": "true"}, {"torchtpu.dev/": ""}],
    "nodeSelector": [{"cloud.google.com/gke-nodepool": "a"}, {"cloud.google.com/gke-tpu-topology": ""}],
    "restartPolicy": ["Always", ""],
    "sliceClassName": ["Default", "a b", "..", "a/b", "a\n"],
    "priorityClassName": ["", "../a", "a_b"],
    "zones": [["us-east5"], ["US-EAST5-B"], [""], ["us-east5-b\n"], ["ü"], []],
    "serviceAccount": ["", "nodes", "@"],
    "project": ["acme", "projects/acme", "/"],
    "controllerName": ["", "me", "a/", "A.b/c", "a/b\n", "ü/a"],
    "managedBy": ["", "me", "/a", "a//b", "a/ü"],
    "resourceLabels": [{"Cost": "a"}, {"a": "B"}, {"": "a"}, {"torchtpu-slice": "x"}, {"a\n": ""}],
    "matchExpressions": [
        [{"key": "a", "operator": "in", "values": ["b"]}],
        [{"key": "a", "operator": "In"}],
        [{"key": "a", "operator": "Exists", "values": ["b"]}],
    ],
    "onExitCodes": [{"operator": "In", "values": [0]}, {"operator": "In", "values": [256, -1]}],
    "working_dir": [".", "gs://a", "gs://a.zip?x", "local://a", "file:///a.tar.gz", "https://a.zip\n", "GS://a.zip"],
    "nodeName": ["gke-1"],
    "volumes": [[{"name": "torchtpu-runner"}], [{"name": "a"}, {"name": "a"}], [{"emptyDir": {}}]],
    "volumeMounts": [[{"name": "a", "mountPath": "/opt/torchtpu"}], [{"name": "a"}]],
    "mountPath": ["/opt/torchtpu/", "/opt/torchtpu/x", "/opt/torchtpu-job/code/a", "/dev/shm/", "/opt/torchtpus"],
    "initContainers": [[{"name": "ray"}], [{"name": "torchtpu-x", "image": "a"}]],
    "resources": [{"limits": {"google.com/tpu": 4}}, {"requests": {"google.com/tpu": "4", "cpu": 1.5}}],
    "containers": [
        [{"name": "ray"}, {"name": "ray"}],
        [{"name": "log"}],
        [{"name": "ray", "args": []}],
        [{"image": "a"}],
    ],
    "backoff": [{"initialSeconds": 700}, {"maxSeconds": 5}],
    "workingDir": [{}, {"configMap": {"name": "c"}, "uri": "gs://a/b.zip"}],
    "runtimeEnv": [{"working_dir": "gs://a.zip"}, {"env_vars": {"A": 1}}, {"env_vars": [1]}],
    "chipHours": [1, 0, -1, "1", "1.5", "x", "0", "0.0", "", "1e3", "١"],
    "type": [*OfferType, "onDemand"],
    "provisioning": ["ScaleUp", "create"],
    "accelerators": [["v9"], ["v4", "tpu"]],
    "reservation": [{"name": "r", "subBlock": "s"}, {}, {"name": ""}, {"name": "projects/p/reservations/r"}],
    "taints": [
        [{"key": "a", "effect": "NO_SCHEDULE"}],
        [{"key": "", "effect": "NoExecute"}],
        [{"key": "google.com/tpu", "effect": "NoSchedule"}],
        [{"key": "torchtpu.dev/x", "effect": ""}],
    ],
    "offers": [["a", "a"], []],
    "pricePerChipHour": ["1,2", ".5", "1.", "１"],
}
# No 1.0: kubectl and Python's YAML reader make it 1, and so does the apiserver of what it stores.
_ANYTHING: Final[list[Any]] = [
    None, "", " ", "a", "A-", "a" * 254, "ü" * 63, "\U0001f680", "a\nb", "${A}", "%s", "'", 0, -1, 1, 1.5, 10**7, 2**31, 2**53,
    2**63, 1e300, True, False, [], {}, [None], [{}], {"a": None}, {"": {}}, [["a"]], "true", "1",
]  # fmt: skip
# What a pod may have besides, as the schema keeps it unseen; null included.
_POD_FIELDS: Final[list[tuple[str, Any]]] = [
    ("volumes", [{"name": "a", "emptyDir": {}}]),
    ("tolerations", [{"operator": "Exists"}]),
    ("affinity", None),
    ("affinity", {"nodeAffinity": None}),
    ("hostNetwork", True),
    ("imagePullSecrets", [{"name": "a"}]),
    ("securityContext", {"fsGroup": 1}),
    ("priority", 3),
    ("serviceAccountName", "ü"),
]
_CONTAINER_FIELDS: Final[list[tuple[str, Any]]] = [
    ("volumeMounts", [{"name": "a", "mountPath": "/dev/shm"}]),
    ("envFrom", [{"secretRef": {"name": "a"}}]),
    ("ports", [{"containerPort": 6379}]),
    ("workingDir", "/"),
    ("lifecycle", None),
    ("stdin", True),
]
# Of the wrong type, where the schema may not see it and the planner lays its own beside it.
_BROKEN: Final[list[tuple[str, Any]]] = [
    ("volumes", "x"),
    ("volumes", [1]),
    ("volumes", [{}, {}]),
    ("volumes", [{"name": {}}]),
    ("volumes", {"name": "a"}),
    ("tolerations", {"operator": "Exists"}),
    ("tolerations", ["x"]),
    ("imagePullSecrets", [None]),
    ("affinity", "x"),
    ("securityContext", []),
    ("topologySpreadConstraints", [["a"]]),
    ("hostAliases", [{"ip": ["a"]}]),
    ("resourceClaims", "x"),
    ("restartPolicy", {}),
]
_BROKEN_IN_CONTAINER: Final[list[tuple[str, Any]]] = [
    ("volumeMounts", "x"),
    ("volumeMounts", [1]),
    ("volumeMounts", [{}, {"mountPath": None}]),
    ("volumeMounts", [{"name": "a", "mountPath": []}]),
    ("volumeDevices", [["a"]]),
    ("ports", "x"),
    ("ports", [{"containerPort": "x"}, {}]),
    ("envFrom", {}),
    ("readinessProbe", "x"),
    ("securityContext", 1),
    ("workingDir", {}),
]
_REFUSED_YET: Final = ("flexStart", "existing", "restartPolicy", "envVars", "pyModules")


def random_objects(seed: int, count: int) -> Iterator[Document]:
    """`count` objects of all three kinds, mostly jobs; the same for the same seed."""
    for index in range(count):
        yield _Maker(random.Random(f"{seed}/{index}")).object()


def random_jobs(seed: int, count: int) -> Iterator[Document]:
    """`count` jobs alone."""
    for index in range(count):
        yield _Maker(random.Random(f"{seed}/{index}")).object("TorchTPUJob")


class _Maker:
    """One object: a good one first, then up to three of its fields spoilt."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def object(self, kind: str = "") -> Document:
        kind = kind or self.dice.choices(list(KINDS), weights=(7, 1, 2))[0]
        make: dict[str, Callable[[], Document]] = {
            "TorchTPUJob": self._job,
            "TPUSlice": self._slice,
            "TPUSliceClass": self._class,
        }
        document = {"apiVersion": "torchtpu.dev/v1alpha1", "kind": kind, **make[kind]()}
        for _ in range(self.dice.choice([0, 0, 1, 1, 1, 2, 3])):
            self._spoil(document["spec"], _SCHEMAS[kind])
        return document

    def _job(self) -> Document:
        accelerator, topology = self.dice.choice(_SHAPES + _CUBES)
        chosen = self.dice.choice([0, 1, 2, 5, 9])
        spec: Document = {"accelerator": accelerator, "topology": topology, "entrypoint": "python train.py"}
        schema = _SCHEMAS["TorchTPUJob"]["properties"]
        for name in self.dice.sample(sorted(schema.keys() - spec.keys() - {"chipsPerHost", "numSlices"}), k=chosen):
            if name not in _REFUSED_YET:
                spec[name] = self._good(schema[name], name)
        if topology == "2x4":
            spec["chipsPerHost"] = self.dice.choice([4, 8])
        if self._chance(0.2):
            spec["numSlices"] = self.dice.choice([1, 2, 16])
        names = (
            ["a", "llama-ft", "llama-ft", "a" * 52] if self._chance(0.93) else ["a" * 53, "A", "1a", "a.b", "a-", ""]
        )
        return {"metadata": {"name": self.dice.choice(names), "namespace": "default"}, "spec": spec}

    def _slice(self) -> Document:
        accelerator, topology = self.dice.choice(_SHAPES + _CUBES)
        spec = self._good(_SCHEMAS["TPUSlice"], "")
        name = self.dice.choice(["standing-0", "a", "a" * 40])
        spec |= {"accelerator": accelerator, "topology": topology}
        spec.pop("chipsPerHost", None)
        spec["offer"] = self._settled(spec["offer"])
        spec["nodePool"] = {**spec["nodePool"], "name": name}
        return {"metadata": {"name": name if self._chance(0.97) else "other"}, "spec": spec}

    def _class(self) -> Document:
        spec = self._good(_SCHEMAS["TPUSliceClass"], "")
        spec["offers"] = [self._settled(offer) | {"name": f"o{i}"} for i, offer in enumerate(spec["offers"])]
        for offer in spec["offers"]:
            offer.setdefault("zones", ["us-east5-b"])
        return {"metadata": {"name": "default"}, "spec": spec}

    def _settled(self, offer: Document) -> Document:
        """The offer with the settings of its type and no other's."""
        offer = {key: value for key, value in offer.items() if key not in ("flexStart", "existing", "reservation")}
        offer["type"] = self.dice.choice([OfferType.ON_DEMAND, OfferType.SPOT, OfferType.RESERVATION]).value
        if offer.get("provisioning") == "ScaleUp":
            offer["provisioning"] = "Create"
        if offer["type"] == "Reservation":
            offer["reservation"] = copy.deepcopy(self.dice.choice(_GOOD["reservation"]))
        return offer

    def _good(self, node: Schema, name: str) -> Any:
        """A value that the schema takes, and the rules most often do."""
        if name in _GOOD and self._chance(0.9):
            return copy.deepcopy(self.dice.choice(_GOOD[name]))
        if "enum" in node:
            return self.dice.choice(node["enum"])
        if node.get("x-kubernetes-int-or-string"):
            return self.dice.choice([1, 500, "1", "12.5"])
        match node.get("type"):
            case "integer":
                low, high = node.get("minimum", 0), node.get("maximum", 2**53)
                return self.dice.choice([low, high, self.dice.randint(low, min(high, low + 10000))])
            case "boolean":
                return self._chance(0.5)
            case "string":
                return self._text(node)
            case "array":
                return self._list(node, name)
        return self._mapping(node)

    def _text(self, node: Schema) -> str:
        if node.get("format") == "date-time":
            return self.dice.choice(["2026-11-30T12:00:00Z", "2026-11-30T12:00:00.5+01:00"])
        if "pattern" in node:
            return self.dice.choice(["a", "a1"]) if "a-z" in node["pattern"] else self.dice.choice(["2.60.0", "3.0.1"])
        length = self.dice.choice([node.get("minLength", 0), 1, 2, min(node.get("maxLength", 9), 300)])
        return "".join(self.dice.choice("abyz-ü \n🚀") for _ in range(length))

    def _list(self, node: Schema, name: str) -> list[Any]:
        most = min(node.get("maxItems", 3), 3)
        if self._chance(0.03) and node.get("maxItems", 999) <= 64:
            most = node["maxItems"]
        items = [self._good(node["items"], name.rstrip("s")) for _ in range(self.dice.randint(0, most))]
        items = items or [self._good(node["items"], "") for _ in range(node.get("minItems", 0))]
        if node.get("x-kubernetes-list-type") == "map":
            for index, item in enumerate(items):
                item["name"] = "ray" if index == 0 and name == "containers" else f"n{index}"
        if node.get("x-kubernetes-list-type") == "set":
            items = sorted(set(items))
        return items

    def _mapping(self, node: Schema) -> Document:
        made: Document = {}
        for key, child in node.get("properties", {}).items():
            if key in node.get("required", ()) or (key not in _REFUSED_YET and self._chance(0.3)):
                made[key] = self._good(child, key)
        if isinstance(inner := node.get("additionalProperties"), dict):
            made |= {f"k{i}": self._good(inner, "") for i in range(self.dice.randint(0, 3))}
        if "env_vars" in node.get("properties", {}):
            made.pop("workingDir", None)  # refused in a runtimeEnv
        if "containers" in node.get("properties", {}):
            made |= dict(self.dice.sample(_BROKEN if self._chance(0.3) else _POD_FIELDS, k=self.dice.randint(0, 2)))
            for container in (*made.get("containers", ()), *made.get("initContainers", ())):
                if container["name"] == "ray":
                    container.pop("command", None)
                    container.pop("args", None)
                else:
                    container.setdefault("image", "a")
                fields = _BROKEN_IN_CONTAINER if self._chance(0.3) else _CONTAINER_FIELDS
                container |= dict(self.dice.sample(fields, k=self.dice.randint(0, 1)))
        return made

    def _spoil(self, spec: Document, schema: Schema) -> None:
        """Change one field, at any depth: another good value, an edge, a wrong type, another name, nothing at all."""
        node, value = schema, spec
        while True:
            names = sorted(node.get("properties", {})) or sorted(value) or ["a"]
            name = self.dice.choice(sorted(value) if value and self._chance(0.6) else names)
            child = node.get("properties", {}).get(name) or node.get("additionalProperties") or {}
            inner = value.get(name)
            if isinstance(inner, list) and inner and self._chance(0.6):
                inner, child = self.dice.choice(inner), child.get("items", {}) if isinstance(child, dict) else {}
            if not (isinstance(inner, dict) and isinstance(child, dict) and self._chance(0.75)):
                break
            node, value = child, inner
        self._spoil_field(value, name, child if isinstance(child, dict) else {})

    def _spoil_field(self, value: Document, name: str, node: Schema) -> None:
        match self.dice.choices(
            ["good", "wrong", "edge", "any", "name", "gone", "more"], weights=(5, 5, 4, 4, 2, 1, 1)
        )[0]:
            case "good":
                value[name] = self._good(node, name)
            case "wrong":
                value[name] = copy.deepcopy(self.dice.choice(_WRONG.get(name, _ANYTHING)))
            case "edge":
                value[name] = self._edge(node, name)
            case "any":
                value[name] = copy.deepcopy(self.dice.choice(_ANYTHING))
            case "name":
                value[self._misspelt(name)] = value.pop(name, 1)
            case "gone":
                value.pop(name, None)
            case "more":
                value["somethingElse"] = copy.deepcopy(self.dice.choice(_ANYTHING))

    def _edge(self, node: Schema, name: str) -> Any:
        """At a bound, and one beyond."""
        beyond = self.dice.choice([0, 1])
        options: list[Any] = []
        if "minimum" in node:
            options.append(node["minimum"] - beyond)
        if "maximum" in node:
            options.append(node["maximum"] + beyond)
        if "minLength" in node:
            options.append("a" * (node["minLength"] - beyond))
        if "maxLength" in node:
            options.append(self.dice.choice("aü🚀") * (node["maxLength"] + beyond))
        if "maxItems" in node:
            items = [self._good(node["items"], "") for _ in range(node["maxItems"] + beyond)]
            for index, item in enumerate(items):
                if isinstance(item, dict) and node.get("x-kubernetes-list-type") == "map":
                    item["name"] = f"n{index}"
                    item.setdefault("image", "a") if "image" in node["items"]["properties"] else None
            options.append(items)
        if "minItems" in node:
            options.append([self._good(node["items"], "") for _ in range(node["minItems"] - beyond)])
        if "maxProperties" in node and isinstance(node.get("additionalProperties"), dict):
            entries = range(node["maxProperties"] + beyond)
            options.append({f"k{i}": self._good(node["additionalProperties"], "") for i in entries})
        if "enum" in node:
            options.append(self.dice.choice(node["enum"]).swapcase())
        return self.dice.choice(options) if options else self._good(node, name)

    def _misspelt(self, name: str) -> str:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        return self.dice.choice(
            [snake, name.capitalize(), name.lower(), f"{name}s", name[:-1], f" {name}", f"{name}.a", "ü"]
        )

    def _chance(self, share: float) -> bool:
        return self.dice.random() < share
