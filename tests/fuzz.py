"""The apiserver's verdict on random objects beside that of the planner: `make fuzz COUNT=20000 [SEED=1]`.

Accepted by one means planned by the other, and never an exception. Prints every disagreement, and how many refusals
agree word for word. Exit code 1 when there is a disagreement.
"""

import argparse
import json
import re
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes import config
from kubernetes.client.exceptions import ApiException
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

from sim.control_plane import ApiServer
from tests.crd_api import Api, plain
from tests.spec_cases import Document, job
from tests.spec_fuzz import random_objects
from torchtpu_operator.api import ClassSpec, ObjectMeta, TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.api.offer import Offer, OfferType
from torchtpu_operator.api.slice_class import JobDefaults, Limits
from torchtpu_operator.api.validate import InvalidObjectError, parse
from torchtpu_operator.cli.errors import CommandError
from torchtpu_operator.cli.plan import build_plan
from torchtpu_operator.plan.node_pool import build_create_node_pool
from torchtpu_operator.plan.ray_cluster import attempt_hash, build_runtime_env, ray_entrypoint
from torchtpu_operator.tpu import CATALOGUE

_CLASS: Final = TPUSliceClass(
    metadata=ObjectMeta(name="default"),
    spec=ClassSpec(
        offers=(Offer(name="od", type=OfferType.ON_DEMAND, zones=("us-east5-b",)),),
        job_defaults=JobDefaults(image="example.com/ray:1"),
    ),
)
_UNKNOWN: Final = re.compile(r'unknown field "([^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is said about one object: nothing where it is accepted."""

    document: Document
    apiserver: tuple[str, ...]
    python: tuple[str, ...]
    crash: str = ""

    @property
    def agree(self) -> bool:
        """Whether both accept or both refuse, and nothing broke."""
        return bool(self.apiserver) == bool(self.python) and not self.crash

    @property
    def same_words(self) -> bool:
        """Whether both say the same; of unknown fields only where they are, since Python adds what was meant."""
        python: tuple[str, ...] = self.python
        if any(_is_unknown(each) for each in self.apiserver):  # the apiserver then looks at nothing else
            python = tuple(each for each in python if _is_unknown(each))
        return sorted(map(_without_guess, self.apiserver)) == sorted(map(_without_guess, python))

    def __str__(self) -> str:
        said = [f"  apiserver: {each}" for each in self.apiserver] or ["  apiserver: accepted"]
        said += [f"  planner:   {each}" for each in self.python] or ["  planner:   accepted"]
        document = json.dumps(self.document, ensure_ascii=False)
        document = document if len(document) < 2000 else f"{document[:1500]} ... {document[-400:]}"
        return "\n".join([document, *said, *(["  " + self.crash] if self.crash else [])])


def judge(crds: Api, document: Document) -> Verdict:
    """Ask both."""
    python, crash = said_by_planner(document)
    return Verdict(document=document, apiserver=said_by_apiserver(crds, document), python=python, crash=crash)


def said_by_apiserver(crds: Api, document: Document) -> tuple[str, ...]:
    """Causes of its refusal; unknown fields, which it refuses before anything else, as `path: unknown field`."""
    try:
        crds.create(document, dry_run=True)
    except ApiException as error:
        status = json.loads(error.body)
        found = [each for each in status.get("details", {}).get("causes") or () if each["field"] != "<nil>"]
        unknown = _UNKNOWN.findall(status["message"])
        if unknown:
            return tuple(f"{path}: unknown field" for path in unknown)
        return tuple(f"{each['field']}: {plain(each['message'])}" for each in found) or (status["message"],)
    return ()


def said_by_planner(document: Document) -> tuple[tuple[str, ...], str]:
    """Its refusals, and the traceback of what it should never raise."""
    try:
        plan(parse(document))
    except InvalidObjectError as error:
        return tuple(f"{each.path}: {plain(each.message)}" for each in error.violations), ""
    except CommandError as error:
        return (str(error),), ""
    except Exception:  # noqa: BLE001 - whatever it is, it is what we look for
        return (), traceback.format_exc()
    return (), ""


def plan(obj: ApiObject) -> None:
    """Everything that the operator renders from the object before it asks anybody."""
    rendered: list[Any]
    if isinstance(obj, TorchTPUJob):
        asked = obj.model_copy(update={"spec": obj.spec.model_copy(update={"offers": None})})  # the class's matter
        rendered = [build_plan(asked, _CLASS, zone=None, parent=None), build_runtime_env(obj)]
        rendered += [ray_entrypoint(obj), attempt_hash(obj)]
    elif isinstance(obj, TPUSliceClass):
        accelerator = next(iter(obj.spec.offers[0].accelerators), "v6e")
        topology = "4x4" if CATALOGUE[accelerator].dimensions == 2 else "2x2x2"
        any_job = parse(job(accelerator=accelerator, topology=topology))
        assert isinstance(any_job, TorchTPUJob)
        rendered = [build_plan(any_job, _without_limits(obj), zone=None, parent=None)]
    else:
        assert isinstance(obj, TPUSlice)
        rendered = [build_create_node_pool(obj, installation="0123456789ab", parent=None)]
    json.dumps(rendered, allow_nan=False)


def _without_limits(class_: TPUSliceClass) -> TPUSliceClass:
    """What a class allows to whom is no question of its schema."""
    offers = []
    for offer in class_.spec.offers:
        reservation = offer.reservation.model_copy(update={"chips": None}) if offer.reservation else None
        offers.append(offer.model_copy(update={"max_chips": None, "reservation": reservation}))
    spec = class_.spec.model_copy(update={"limits": Limits(), "offers": tuple(offers)})
    return class_.model_copy(update={"spec": spec})


def _is_unknown(said: str) -> bool:
    return ": unknown field" in said


def _without_guess(said: str) -> str:
    return said.partition(": unknown field")[0] + ": unknown field" if _is_unknown(said) else said


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--words", action="store_true", help="print refusals in other words, too")
    options = parser.parse_args(argv)
    console = Console()
    tally: Counter[str] = Counter()
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with (
        tempfile.TemporaryDirectory(prefix="torchtpu-fuzz-") as folder,
        ApiServer(Path(folder) / "data") as server,
        config.new_client_from_config(str(server.kubeconfig)) as api_client,
        Progress(*columns, console=console) as progress,
    ):
        crds = Api(api_client, server)
        crds.install()
        task = progress.add_task(f"seed {options.seed}", total=options.count)
        for document in random_objects(options.seed, options.count):
            verdict = judge(crds, document)
            tally["accepted" if not verdict.apiserver else "refused"] += 1
            if not verdict.agree:
                tally["disagreements"] += 1
                console.print(str(verdict), markup=False, highlight=False, soft_wrap=True)
            elif verdict.apiserver and verdict.same_words:
                tally["in the same words"] += 1
            elif verdict.apiserver and options.words:
                console.print(str(verdict), markup=False, highlight=False, soft_wrap=True)
            progress.advance(task)
    same = tally["in the same words"] / max(1, tally["refused"])
    console.print(
        f"{options.count} objects, seed {options.seed}: {tally['accepted']} accepted, {tally['refused']} refused, "
        f"{same:.1%} of them in the same words; {tally['disagreements']} disagreements",
        style="bold red" if tally["disagreements"] else "bold green",
    )
    return 1 if tally["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main())
