"""The page about Python runs as it stands, and prints what it says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_what_the_page_prints() -> None:
    names: dict[str, object] = {}
    said: list[str] = []
    wanted: list[str] = []
    for language, body in BLOCK.findall(PAGE):
        if language == "text":
            wanted.append(body)
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(body, names)
        if text := out.getvalue():
            said.append(re.sub(r"\n+$", "\n", text))
    assert (said, len(wanted)) == (wanted, 5)
