"""TorchTPUJob for users: built in Python, checked and resolved without a cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, Unpack

from torchtpu_operator.api import constants
from torchtpu_operator.api.job import JobSpec
from torchtpu_operator.api.job import TorchTPUJob as ApiJob
from torchtpu_operator.api.rule import Violation
from torchtpu_operator.api.validate import InvalidObjectError
from torchtpu_operator.sdk.fields import JobFields, JobOptions, documented, with_fields
from torchtpu_operator.sdk.manifest import Manifest
from torchtpu_operator.tpu import Shape, ShapeError, resolve


@dataclass(frozen=True, kw_only=True)
class JobShape:
    """What a job comes to, over all its slices; `slice` is one of them."""

    slice: Shape
    slices: int

    @property
    def machine_type(self) -> str:
        """GKE machine type of the TPU hosts."""
        return self.slice.machine_type

    @property
    def hosts(self) -> int:
        """TPU hosts, and so worker pods."""
        return self.slice.hosts * self.slices

    @property
    def chips(self) -> int:
        """Chips."""
        return self.slice.chips * self.slices

    @property
    def workers(self) -> int:
        """TPU devices: the world size under PerDevice (v7x has two per chip)."""
        return self.slice.workers * self.slices

    def __str__(self) -> str:
        count = f"{self.slices} x " if self.slices > 1 else ""
        return (
            f"{count}{self.slice.accelerator} {self.slice.topology}: {self.chips} chips on {self.hosts} "
            f"{self.machine_type} host{'s' if self.hosts > 1 else ''}, {self.workers} workers"
        )


def secret_key(name: str, key: str) -> dict[str, Any]:
    """A key of a Secret in the job's namespace, as the value of an environment variable."""
    return {"secretKeyRef": {"name": name, "key": key}}


class TorchTPUJob(Manifest, ApiJob):
    """A PyTorch program on Cloud TPU slices."""

    KIND: ClassVar[str] = constants.JOB_KIND

    @classmethod
    @documented(JobOptions, JobSpec)
    def new(cls, name: str, *, accelerator: str, topology: str, entrypoint: str, **fields: Unpack[JobOptions]) -> Self:
        """A job. `env` may be a mapping, `working_dir` the address of a zip; other nested objects are models, or
        dicts as in YAML. Raises InvalidObjectError for values of a wrong type; `validate()` looks at the rest."""
        given = {"name": name, "accelerator": accelerator, "topology": topology, "entrypoint": entrypoint, **fields}
        return cls.from_dict(with_fields({}, given, kind=cls.KIND, spec=JobSpec, short=_SHORT))

    def replace(self, **fields: Unpack[JobFields]) -> Self:
        """The same job with other values: a sweep is a loop over `job.replace(name=..., entrypoint=...)`.

        None takes a field away. A field that is an object is replaced as a whole.
        """
        document = with_fields(self.to_dict(), fields, kind=self.KIND, spec=JobSpec, short=_SHORT)
        return self.from_dict(document)

    @property
    def shape(self) -> JobShape:
        """Machine type, hosts, chips and workers. Raises InvalidObjectError for a shape that does not exist."""
        spec = self.spec
        try:
            shape = resolve(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)
        except ShapeError as error:
            raise InvalidObjectError((Violation(path=f"spec.{error.field}", message=error.message),)) from error
        return JobShape(slice=shape, slices=spec.num_slices)


def _env(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return [{"name": name, **_source(entry)} for name, entry in value.items()]


def _source(entry: Any) -> dict[str, Any]:
    if isinstance(entry, Mapping):
        return {"valueFrom": entry}
    whole = isinstance(entry, int) and not isinstance(
        entry, bool
    )  # True has two spellings: that is for the user to say
    return {"value": str(entry) if whole else entry}


def _working_dir(value: Any) -> Any:
    return {"uri": value} if isinstance(value, str) else value


_SHORT: Final[Mapping[str, Callable[[Any], Any]]] = {"env": _env, "working_dir": _working_dir}
