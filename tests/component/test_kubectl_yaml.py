"""kubectl reads what the Python client writes, and the client reads what kubectl reads: every word the same."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

from sim import tools
from torchtpu_operator.sdk.yaml_text import dump_document, load_documents

PIECES = [
    *"ab \n\t:#-'\"{}[]&*!|>%@`$\\yn1e0x._~?,=+é😀\r",
    "\x85",
    "\u2028",
    "\x7f",
    "\x01",
    "EOF",
    "<<EOF\n",
    "null",
    "on",
]
WORDS = "y Y n on off 1e3 .5 -.5 0o7 0O7 08 010 0x1F 0b11 1_000 1:30 2026-01-01 = << ~ null .inf !!int:3 -a a: @a %a ? - ... 1."


def seen_by_kubectl(text: str, folder: Path) -> dict[str, Any]:
    path = folder / "thing.yaml"
    path.write_text(text, "utf-8")
    command = [str(tools.path("kubectl")), "annotate", "--local", "-f", str(path), "a=b", "-o", "json"]
    seen: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return seen


def thing(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, **fields}


def test_kubectl_reads_what_is_written(tmp_path: Path) -> None:
    chance = random.Random(4)
    words = WORDS.split() + ["".join(chance.choices(PIECES, k=chance.randrange(14))) for _ in range(3000)]
    written = thing(values=words, keys=dict.fromkeys(words, 1))
    seen = seen_by_kubectl(dump_document(written), tmp_path)
    assert (seen["values"], seen["keys"]) == (words, written["keys"])


def test_bare_words_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    words = [
        word for word in WORDS.split() if word not in (".inf", "<<", "!!int:3", "-a", "a:", "@a", "%a", "?", "-", "...")
    ]
    text = dump_document(thing()) + "".join(f"k{index}: {word}\n" for index, word in enumerate(words))
    ours, theirs = load_documents(text)[0], seen_by_kubectl(text, tmp_path)
    read = [(ours[f"k{index}"], type(ours[f"k{index}"])) for index in range(len(words))]
    assert read == [(theirs[f"k{index}"], type(theirs[f"k{index}"])) for index in range(len(words))]
