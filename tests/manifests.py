"""Every manifest that people copy from this repository: the examples, and the YAML blocks of the documentation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from torchtpu_operator.api import TorchTPUJob, TPUSliceClass
from torchtpu_operator.api.base import ObjectMeta
from torchtpu_operator.api.offer import Offer, OfferType
from torchtpu_operator.api.slice_class import ClassSpec, JobDefaults
from torchtpu_operator.api.validate import parse
from torchtpu_operator.cli.plan import build_plan

REPOSITORY: Final = Path(__file__).parents[1]
_GROUP: Final = "torchtpu.dev/"
_BLOCK: Final = re.compile(r"^( *)```yaml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One example file, or one block of a page."""

    text: str
    documents: tuple[Document, ...]
    image: str | None = None
    """What the class of the reader's cluster brings; an example is whole without."""

    def of_kind(self, kind: str) -> list[Document]:
        return [document for document in self.documents if document["kind"] == kind]

    def plans(self) -> list[Document]:
        """What `torchtpu plan` makes of each job. Raises CommandError and InvalidObjectError."""
        objects = [parse(document) for document in self.documents if document["apiVersion"].startswith(_GROUP)]
        classes = {each.metadata.name: each for each in objects if isinstance(each, TPUSliceClass)}
        jobs = [each for each in objects if isinstance(each, TorchTPUJob)]
        return [
            build_plan(
                job,
                classes.get(job.spec.slice_class_name or "") or _on_demand(job, image=self.image),
                zone=None,
                parent=None,
            )
            for job in jobs
        ]


def _on_demand(job: TorchTPUJob, *, image: str | None) -> TPUSliceClass:
    """The class that a job takes from its cluster: nothing but offers of the names that it asks for."""
    names = job.spec.offers or ("on-demand",)
    offers = tuple(Offer(name=name, type=OfferType.ON_DEMAND, zones=("us-east5-b",)) for name in names)
    spec = ClassSpec(offers=offers, job_defaults=JobDefaults(image=image))
    return TPUSliceClass(metadata=ObjectMeta(name="default"), spec=spec)


def examples() -> Mapping[str, Manifest]:
    """By file name."""
    paths = sorted((REPOSITORY / "examples").glob("*.yaml"))
    return {path.name: _manifest(path.read_text()) for path in paths}


def documented() -> Mapping[str, Manifest]:
    """YAML blocks with objects of ours, by `page: number of the block`."""
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "examples").glob("*.md")]
    found = {
        f"{page.relative_to(REPOSITORY)}: {number}": _manifest(
            _flush_left(indent, text), image="us-docker.pkg.dev/acme/ml/ray-torchtpu:2.60.0"
        )
        for page in sorted(pages)
        for number, (indent, text) in enumerate(_BLOCK.findall(page.read_text()), start=1)
        if _GROUP in text
    }
    return {name: manifest for name, manifest in found.items() if manifest.documents}


def _manifest(text: str, *, image: str | None = None) -> Manifest:
    return Manifest(text=text, documents=tuple(each for each in yaml.safe_load_all(text) if each), image=image)


def _flush_left(indent: str, text: str) -> str:
    return "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))
