"""Pulling images: instant from the table, unless a fault makes the registry slow or blind."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from sim.images import Image, ImageTable

_NOT_FOUND: Final = "rpc error: code = NotFound desc = failed to pull and unpack image"


class PullError(Exception):
    """The registry does not have the image; the message is what a real runtime says."""


class ImagePuller:
    """The images of one node. `imagePullPolicy` is ignored: an image of this table never changes."""

    def __init__(self, table: ImageTable, *, seconds: float) -> None:
        self.seconds = seconds
        """How long a pull takes from now on."""
        self._table = table
        self._present: set[str] = set()

    async def pull(self, reference: str, *, say: Callable[[str, str], None]) -> Image:
        """The image, after the time that a first pull takes. Raises PullError."""
        if reference in self._present and (image := self._table.find(reference)):
            say("Pulled", f'Container image "{reference}" already present on machine')
            return image
        say("Pulling", f'Pulling image "{reference}"')
        began = time.monotonic()
        await asyncio.sleep(self.seconds)
        image = self._table.find(reference)
        if image is None:
            raise PullError(f'{_NOT_FOUND} "{reference}": {reference}: not found')
        self._present.add(reference)
        say("Pulled", f'Successfully pulled image "{reference}" in {time.monotonic() - began:.3f}s')
        return image
