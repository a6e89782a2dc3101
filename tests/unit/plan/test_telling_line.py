"""Which line of a driver's output a person reads as the cause."""

import pytest

from torchtpu_operator.plan.job.ending import _telling_line

CASES = {
    "the error that ends a traceback, though workers' lines follow it": (
        "Traceback (most recent call last):\n  File ...\nTypeError: 'NoneType' object\n\x1b[36m(RayTrainWorker pid=1)\x1b[0m epoch 4\n",
        "TypeError: 'NoneType' object",
    ),
    "an exception with its module's name": ("x\nray.exceptions.RayTaskError(ValueError): bad\n", "ray.exceptions.RayTaskError(ValueError): bad"),
    "without an error the last line, without its colours": ("one\n\x1b[31mtwo\x1b[0m\n\n", "two"),
    "nothing printed": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "want"), CASES.values(), ids=CASES)
def test_the_line_that_tells(text: str, want: str) -> None:
    assert _telling_line(text) == want
