"""Rules about the image of head and workers, of a job and of a class's jobDefaults."""

import re
from typing import Final

from torchtpu_operator.api.job import JobSpec
from torchtpu_operator.api.rule import Rule, cel_string, cel_text
from torchtpu_operator.api.slice_class import JobDefaults

NO_REFERENCE: Final = (
    'image "{image}" is not the name of an image: write registry/path:tag, without https:// and spaces'
)
_NO_REFERENCE = r"://|[ \t\r\n]"  # Kubernetes takes it, and the pods wait on slices that are paid for: InvalidImageName


def _reference(node: JobSpec | JobDefaults) -> str | None:
    image = node.image
    return None if image is None or not re.search(_NO_REFERENCE, image) else NO_REFERENCE.format(image=image)


def image_rules(at: str) -> tuple[Rule, ...]:
    """What an image must look like, whoever names it."""
    return (
        Rule(
            id="image-reference",
            at=(at,),
            field=".image",
            cel=f"!has(self.image) || !self.image.matches({cel_string(_NO_REFERENCE)})",
            message="this is not the name of an image: write registry/path:tag, without https:// and spaces",
            message_expression=cel_text(NO_REFERENCE, image="self.image"),
            check=_reference,
        ),
    )
