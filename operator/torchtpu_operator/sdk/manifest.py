"""What the three kinds have in common for users: read, check, write."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.api.rule import Violation
from torchtpu_operator.api.validate import InvalidObjectError, load, problems, without_nulls
from torchtpu_operator.sdk.yaml_text import dump_document, load_documents

# What the apiserver or the operator writes into metadata: an object that is applied elsewhere must not bring it along.
_SERVER_METADATA: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Manifest(ApiObject):
    """An object as users keep it in a file."""

    KIND: ClassVar[str]

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The object in a dict, as a file or the apiserver has it.

        Raises InvalidObjectError where the schema is not satisfied; `validate()` then looks at the rules.
        """
        given = (document.get("apiVersion"), document.get("kind"))
        if given != (constants.API_VERSION, cls.KIND):
            message = f"expected {constants.API_VERSION} {cls.KIND}, found {' '.join(map(str, given))}"
            raise InvalidObjectError((Violation(path="kind", message=message),))
        return load(document, cls, about=_about(document))

    @classmethod
    def from_yaml(cls, source: str | Path) -> Self:
        """The one object of this kind in a YAML text, or in the file of a Path; objects of other kinds are skipped.

        Raises InvalidObjectError, also for what is not YAML, and OSError for a file that cannot be read.
        """
        text = source.read_text("utf-8") if isinstance(source, Path) else source
        name = str(source) if isinstance(source, Path) else "YAML"
        try:
            found = [document for document in load_documents(text) if document.get("kind") == cls.KIND]
        except ValueError as error:
            hint = f': to read a file, give Path("{text}")' if _is_file_name(source) else ""
            raise InvalidObjectError((Violation(path=name, message=f"{error}{hint}"),)) from error
        if len(found) != 1:
            message = f"expected one {cls.KIND}, found {len(found)}"
            raise InvalidObjectError((Violation(path=name, message=message),))
        return cls.from_dict(found[0])

    def to_dict(self) -> dict[str, Any]:
        """What `kubectl apply` takes: fields that were set, in the order of the reference; no status, no nulls."""
        document = self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"status"})
        metadata = {key: value for key, value in document["metadata"].items() if key not in _SERVER_METADATA}
        if _LAST_APPLIED in metadata.get("annotations", {}):
            metadata["annotations"].pop(_LAST_APPLIED)
        if constants.FINALIZER in metadata.get("finalizers", ()):
            metadata["finalizers"].remove(constants.FINALIZER)
        for field in ("annotations", "finalizers"):
            if not metadata.get(field, True):
                del metadata[field]
        whole = {"apiVersion": constants.API_VERSION, "kind": self.KIND, "metadata": metadata, "spec": document["spec"]}
        return without_nulls(whole, type(self))

    def to_yaml(self) -> str:
        """`to_dict()` as YAML; texts of several lines are written as blocks."""
        return dump_document(self.to_dict())

    def validate(self) -> Self:  # type: ignore[override]  # pydantic's is deprecated and a class method
        """The object itself if the apiserver would take it.

        Raises InvalidObjectError otherwise: one line `path: message` for each thing that is wrong, in the words that
        `kubectl apply` would show. What only the cluster knows, such as the offers of a class, is not looked at.
        """
        document = self.to_dict()
        if found := problems(load(document, type(self), about=_about(document)), document):
            raise InvalidObjectError(found, about=_about(document))
        return self


def _is_file_name(source: str | Path) -> bool:
    return isinstance(source, str) and "\n" not in source and source.endswith((".yaml", ".yml", ".json"))


def _about(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
    return f"{document['kind']} {name}".rstrip()
