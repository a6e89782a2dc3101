"""`torchtpu plan`: what it prints, and what it says when it cannot."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.spec_cases import Document, job, offer, pod, slice_class
from torchtpu_operator.cli.main import main

Capture = pytest.CaptureFixture[str]
ZEROS = "00000000-0000-0000-0000-000000000000"


def write(folder: Path, *documents: Document, name: str = "job.yaml") -> str:
    path = folder / name
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def planned(capsys: Capture, *argv: str) -> dict[str, Any]:
    code = main(["plan", "-o", "json", *argv])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


def refused(capsys: Capture, *argv: str) -> list[str]:
    code = main(["plan", *argv])
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    return err.splitlines()


SHAPES = {
    "v6e 4x4": (
        job(),
        {"machineType": "ct6e-standard-4t", "hosts": 4, "chipsPerHost": 4, "chips": 16, "workers": 16},
    ),
    "v6e 2x4 on one host": (
        job(topology="2x4"),
        {"machineType": "ct6e-standard-8t", "hosts": 1, "chipsPerHost": 8, "chips": 8, "workers": 8},
    ),
    "v6e 2x4 on two hosts": (
        job(topology="2x4", chipsPerHost=4),
        {"machineType": "ct6e-standard-4t", "hosts": 2, "chipsPerHost": 4, "chips": 8, "workers": 8},
    ),
    "v7x 2x2x1: two workers per chip": (
        job(accelerator="v7x", topology="2x2x1"),
        {"machineType": "tpu7x-standard-4t", "hosts": 1, "chipsPerHost": 4, "chips": 4, "workers": 8},
    ),
}


@pytest.mark.parametrize(("document", "want"), SHAPES.values(), ids=SHAPES)
def test_shape(tmp_path: Path, capsys: Capture, document: Document, want: dict[str, Any]) -> None:
    spec = document["spec"]
    shape = planned(capsys, "-f", write(tmp_path, document))["shape"]
    assert shape == {"accelerator": spec["accelerator"], "topology": spec["topology"], **want}


def test_the_parts_fit_together(tmp_path: Path, capsys: Capture) -> None:
    plan = planned(capsys, "-f", write(tmp_path, job(numSlices=2)))
    pools = [request["nodePool"] for request in plan["nodePools"]]
    groups = plan["rayCluster"]["spec"]["workerGroupSpecs"]
    assert [
        (pool["name"], pool["initialNodeCount"], pool["locations"], pool["config"]["machineType"]) for pool in pools
    ] == [
        (
            group["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-nodepool"],
            group["numOfHosts"],
            ["us-east5-b"],
            plan["shape"]["machineType"],
        )
        for group in groups
    ]
    assert (list(plan), ["parent" in request for request in plan["nodePools"]]) == (
        ["shape", "nodePools", "rayCluster"],
        [False, False],
    )


def test_yaml_says_the_same_as_json(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, job())
    as_json = planned(capsys, "-f", path)
    assert main(["plan", "-f", path]) == 0
    text = capsys.readouterr().out
    assert (yaml.safe_load(text), "&id" in text) == (as_json, False)


HEADLINES: dict[str, tuple[list[Document], list[str], list[str]]] = {
    "no class": (
        [job(numSlices=2)],
        ["--zone", "us-east5-c"],
        [
            "# 2 x v6e 4x4: 32 chips on 8 ct6e-standard-4t hosts, 32 workers",
            "# from an on-demand offer in us-east5-c, assumed: the files have no TPUSliceClass; give it with another -f",
        ],
    ),
    "a class that is not in the files": (
        [job(sliceClassName="spot")],
        [],
        [
            "# v6e 4x4: 16 chips on 4 ct6e-standard-4t hosts, 16 workers",
            "# from an on-demand offer in us-east5-b, assumed: the files have no TPUSliceClass spot; give it with another -f",
        ],
    ),
    "a class": (
        [job(), offer(name="cheap", type="Spot", zones=["us-east5-a", "us-east5-b"])],
        [],
        [
            "# v6e 4x4: 16 chips on 4 ct6e-standard-4t hosts, 16 workers",
            "# from offer cheap (Spot) of class default, in us-east5-a",
        ],
    ),
    "a class that is paused": (
        [job(), slice_class(paused=True)],
        [],
        [
            "# v6e 4x4: 16 chips on 4 ct6e-standard-4t hosts, 16 workers",
            "# from offer od (OnDemand) of class default, in us-east5-b; the class is paused: the job would wait",
        ],
    ),
}


@pytest.mark.parametrize(("documents", "argv", "want"), HEADLINES.values(), ids=HEADLINES)
def test_yaml_begins_with_size_and_source(
    tmp_path: Path, capsys: Capture, documents: list[Document], argv: list[str], want: list[str]
) -> None:
    assert main(["plan", "-f", write(tmp_path, *documents), *argv]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [*want, "shape:"]


def test_uid_decides_the_names(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, job())
    zeros, again, other = (
        planned(capsys, "-f", path, "--uid", uid)["rayCluster"]["metadata"] for uid in (ZEROS, ZEROS, "1" * 36)
    )
    assert (zeros == again, zeros["name"] == other["name"], zeros["ownerReferences"][0]["uid"]) == (True, False, ZEROS)
    assert planned(capsys, "-f", path)["rayCluster"]["metadata"] == zeros


def test_parent_of_the_requests(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, job())
    plan = planned(capsys, "-f", path, "--project", "p", "--location", "us-east5", "--cluster", "c")
    assert plan["nodePools"][0]["parent"] == "projects/p/locations/us-east5/clusters/c"
    assert refused(capsys, "-f", path, "--project", "p") == [
        "--project, --location and --cluster belong together: give all three or none"
    ]


def test_class_in_a_file_of_its_own(tmp_path: Path, capsys: Capture) -> None:
    spot = offer(type="Spot", zones=["us-east5-a"])
    spot["spec"]["maxLifetimeSeconds"] = 7200
    spot["spec"]["jobDefaults"] = {"image": "example.com/class:1"}
    document = job()
    del document["spec"]["image"]
    plan = planned(capsys, "-f", write(tmp_path, document), "-f", write(tmp_path, spot, name="class.yaml"))
    config = plan["nodePools"][0]["nodePool"]["config"]
    head = plan["rayCluster"]["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert (config["spot"], config["maxRunDuration"], head["image"]) == (True, "7200s", "example.com/class:1")


OFFERS = [
    {"name": "v5", "type": "OnDemand", "zones": ["us-west4-a"], "accelerators": ["v5e"]},
    {"name": "reserved", "type": "Reservation", "zones": ["us-east5-a"], "reservation": {"name": "r"}},
    {"name": "spot", "type": "Spot", "zones": ["us-east5-b", "us-east5-c"]},
]
CHOICES = {
    "the first offer that fits": (job(), [], ("us-east5-a", "SPECIFIC_RESERVATION")),
    "the offer that the job asks for": (job(offers=["spot"]), [], ("us-east5-b", "NO_RESERVATION")),
    "the offer with the zone": (job(), ["--zone", "us-east5-c"], ("us-east5-c", "NO_RESERVATION")),
}


@pytest.mark.parametrize(("document", "argv", "want"), CHOICES.values(), ids=CHOICES)
def test_offer(tmp_path: Path, capsys: Capture, document: Document, argv: list[str], want: tuple[str, str]) -> None:
    plan = planned(capsys, "-f", write(tmp_path, document, slice_class(offers=OFFERS)), *argv)
    pool = plan["nodePools"][0]["nodePool"]
    assert (pool["locations"][0], pool["config"]["reservationAffinity"]["consumeReservationType"]) == want


def without_image() -> Document:
    document = job()
    del document["spec"]["image"]
    return document


def named(document: Document, name: str) -> Document:
    return {**document, "metadata": {"name": name}}


ERRORS: dict[str, tuple[list[Document], list[str], list[str]]] = {
    "a rule, in the words of the CRD": (
        [job(accelerator="v6e-16", numSlices=17)],
        [],
        [
            'spec.accelerator: accelerator "v6e-16" is not known: did you mean "v6e"? Give the size as topology, for '
            "example 4x4",
            "spec.numSlices: numSlices is 17: a job takes 1 to 16 slices",
        ],
    ),
    "no image anywhere": (
        [without_image()],
        [],
        [
            "spec.image: there is no image: set spec.image, or jobDefaults.image in the TPUSliceClass, to one with Ray "
            "and torch_tpu"
        ],
    ),
    "no job": ([slice_class()], [], ["-f: expected one TorchTPUJob in the files, found TPUSliceClass default"]),
    "nothing": ([], [], ["-f: expected one TorchTPUJob in the files, found no object"]),
    "what is to be converted": (
        [{"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "llama"}}],
        [],
        [
            "-f: expected one TorchTPUJob in the files, found RayJob llama; docs/converting.md says what becomes of its fields"
        ],
    ),
    "two jobs": (
        [job(), job(name="other")],
        [],
        ["-f: expected one TorchTPUJob in the files, found 2 (llama-ft, other): plan them one by one"],
    ),
    "a queue of Kueue": (
        [{**job(), "metadata": {"name": "llama-ft", "labels": {"kueue.x-k8s.io/queue-name": "q"}}}],
        [],
        ["metadata.labels: label kueue.x-k8s.io/queue-name is set, and Kueue is not integrated yet: remove it"],
    ),
    "a Ray of the class that is too old for several slices": (
        [job(numSlices=2), slice_class(jobDefaults={"rayVersion": "2.59.0"})],
        [],
        [
            "jobDefaults.rayVersion of class default: Ray 2.59.0 is too old for several slices: 2.60.0 or later is needed: "
            "set spec.image and spec.rayVersion, or ask an admin"
        ],
    ),
    "an offer that is not there": (
        [job(offers=["spott"]), slice_class(offers=OFFERS)],
        [],
        ["spec.offers: class default has no offer spott; it has reserved, spot, v5"],
    ),
    "no offer for the accelerator": (
        [job(accelerator="v4", topology="2x2x2"), slice_class(offers=OFFERS[:1])],
        [],
        [
            "no offer of class default (v5) serves v4 for this job: change spec.offers, name another class in "
            "spec.sliceClassName, or ask an admin for such an offer"
        ],
    ),
    "a limit of the class that is smaller than the job": (
        [job(), slice_class(limits={"chipsPerJob": 8})],
        [],
        ["the job needs 16 chips, class default allows 8 to one job: use fewer, or ask an admin"],
    ),
    "workers that are larger than their host": (
        [job(worker={"template": pod(containers=[{"name": "ray", "resources": {"requests": {"cpu": 181}}}])})],
        [],
        [
            "the worker pod asks for 181 CPUs, a host (ct6e-standard-4t) has 180: lower the requests of its containers in "
            "spec.template, spec.worker.template or jobDefaults.template of the class"
        ],
    ),
    "no offer in the zone": (
        [job(), slice_class(offers=OFFERS)],
        ["--zone", "mars-1a"],
        ["spec.offers: no offer of class default for this job is in zone mars-1a"],
    ),
    "another class than the job's": (
        [job(sliceClassName="fast"), slice_class()],
        [],
        ["spec.sliceClassName: expected one TPUSliceClass fast in the files, found default"],
    ),
    "two classes, none the default": (
        [job(), slice_class(), named(slice_class(), "other")],
        [],
        ["spec.sliceClassName: expected one default TPUSliceClass in the files, found default, other"],
    ),
}


@pytest.mark.parametrize(("documents", "argv", "want"), ERRORS.values(), ids=ERRORS)
def test_error(tmp_path: Path, capsys: Capture, documents: list[Document], argv: list[str], want: list[str]) -> None:
    assert refused(capsys, "-f", write(tmp_path, *documents), *argv) == want


def test_file_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    assert refused(capsys, "-f", f"{tmp_path}/none.yaml") == [f"{tmp_path}/none.yaml: No such file or directory"]


NO_OBJECT: dict[str, str] = {
    "a: [b\n": "not YAML: line 2, column 1: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'",
    "- 1": "expected an object with apiVersion and kind, found list",
    "\t": "not YAML: line 1, column 1: while scanning for the next token, found character '\\t' that cannot start any token",
}


@pytest.mark.parametrize(("text", "want"), NO_OBJECT.items())
def test_file_that_is_no_object(tmp_path: Path, capsys: Capture, text: str, want: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    assert refused(capsys, "-f", str(path)) == [f"{path}: {want}"]


def test_stdin_and_a_list(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"kind": "List", "items": [job(), slice_class()]})))
    assert planned(capsys, "-f", "-")["shape"]["hosts"] == 4


MISSPELT: dict[str, tuple[dict[str, Any], str]] = {
    "Ray's name": (
        {"accelerator": "TPU-V6E"},
        'spec.accelerator: accelerator "TPU-V6E" is not known: did you mean "v6e"?',
    ),
    "a size stuck to it": (
        {"accelerator": "v6e-16"},
        'spec.accelerator: accelerator "v6e-16" is not known: did you mean "v6e"? Give the size as topology, for example '
        "4x4",
    ),
    "cores stuck to it": (
        {"accelerator": "v5p-64", "topology": "2x2x4"},
        'spec.accelerator: accelerator "v5p-64" is not known: did you mean "v5p"? Give the size as topology, for example '
        "2x4x4",
    ),
    "Ray's name of v5e": (
        {"accelerator": "v5litepod"},
        'spec.accelerator: accelerator "v5litepod" is not known: did you mean "v5e"?',
    ),
    "GKE's name of v5e": (
        {"accelerator": "tpu-v5-lite-podslice"},
        'spec.accelerator: accelerator "tpu-v5-lite-podslice" is not known: did you mean "v5e"?',
    ),
    "GKE's name of v7x": (
        {"accelerator": "tpu7x", "topology": "2x2x2"},
        'spec.accelerator: accelerator "tpu7x" is not known: did you mean "v7x"?',
    ),
    "a capital X": (
        {"topology": "2X4"},
        'spec.topology: topology "2X4" is not of the form AxB or AxBxC (digits and lower-case x, no spaces): did you mean '
        '"2x4"?',
    ),
    "an asterisk": (
        {"topology": "4*4"},
        'spec.topology: topology "4*4" is not of the form AxB or AxBxC (digits and lower-case x, no spaces): did you mean '
        '"4x4"?',
    ),
    "a space": (
        {"topology": " 4x4"},
        'spec.topology: topology " 4x4" is not of the form AxB or AxBxC (digits and lower-case x, no spaces): did you mean '
        '"4x4"?',
    ),
    "the larger edge first": (
        {"topology": "4x2"},
        'spec.topology: accelerator v6e has no topology "4x2": did you mean "2x4"?',
    ),
    "a number of cores": (
        {"topology": "32"},
        'spec.topology: topology "32" is not of the form AxB or AxBxC (digits and lower-case x, no spaces): did you '
        'mean "4x8"?',
    ),
    "a field": ({"topolgy": "4x4"}, "spec.topolgy: unknown field: did you mean topology?"),
    "a field in snake_case": ({"num_slices": 2}, "spec.num_slices: unknown field: did you mean numSlices?"),
    "a number in env": (
        {"env": [{"name": "A", "value": 1}]},
        'spec.env[0].value: Invalid value: "integer": spec.env[0].value in body must be of type string: "integer"',
    ),
}


@pytest.mark.parametrize(("spec", "want"), MISSPELT.values(), ids=MISSPELT)
def test_what_is_misspelt(tmp_path: Path, capsys: Capture, spec: dict[str, Any], want: str) -> None:
    assert refused(capsys, "-f", write(tmp_path, job(**spec))) == [want]


def test_of_several_objects_each_line_says_whose_it_is(tmp_path: Path, capsys: Capture) -> None:
    assert refused(capsys, "-f", write(tmp_path, job(topology="4x2"), slice_class(offers=[]))) == [
        'spec.topology: accelerator v6e has no topology "4x2": did you mean "2x4"? (TorchTPUJob llama-ft)',
        "spec.offers: Invalid value: 0: spec.offers in body should have at least 1 items (TPUSliceClass default)",
    ]
