"""The published schema in the YAML language server that editors run: the server is the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .language_server import LanguageServer

pytestmark = pytest.mark.editor

_ROOT = Path(__file__).parents[2]
_PROGRAM = Path(__file__).parent / "node_modules" / "yaml-language-server" / "bin"
_EXAMPLES = sorted((_ROOT / "examples").glob("*.yaml"))
_SPEC = f"""\
# yaml-language-server: $schema={(_ROOT / "schemas/structure/cluster.schema.json").as_uri()}
apiVersion: gcluster/v1
name: demo
sites:
  here: {{provider: local}}
pools:
  head: {{site: here, role: controller}}
  gpu:
    site: here
    machine: sim.h100x8
    count: 4
scheduler: {{type: slurm}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    """Run one server for all tests of this file."""
    with LanguageServer(_PROGRAM / "yaml-language-server", _ROOT) as running:
        yield running


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Give a path for a document; the server reads the text it is sent, not the file."""
    return tmp_path / "cluster.yaml"


@pytest.mark.parametrize("example", _EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_no_finding_in_the_editor(server: LanguageServer, example: Path) -> None:
    assert server.open(example, example.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("mistake", "line", "words"),
    [
        (("machine: sim", "machin: sim"), 9, "machin"),
        (("count: 4", "count: four"), 10, "integer"),
        (("role: controller", "role: contoller"), 6, "login"),
        (("{type: slurm}", "{type: slrum}"), 11, "slurm"),
    ],
)
def test_a_mistake_is_underlined_in_its_place(
    server: LanguageServer, spec: Path, mistake: tuple[str, str], line: int, words: str
) -> None:
    found = server.open(spec, _SPEC.replace(*mistake))

    assert [d["range"]["start"]["line"] for d in found] == [line], found
    assert words in found[0]["message"]


def test_a_key_shows_what_it_is_for_when_hovered(server: LanguageServer, spec: Path) -> None:
    server.open(spec, _SPEC)
    shown = server.at("hover", spec, 9, 6)

    assert "Machine type of the catalog" in shown["contents"]["value"]


def test_keys_are_offered_while_typing(server: LanguageServer, spec: Path) -> None:
    server.open(spec, _SPEC.replace("    count: 4\n", "    count: 4\n    \n"))
    offered = server.at("completion", spec, 11, 4)

    labels = {item["label"] for item in offered["items"]}
    assert {"hosts", "market", "quorum", "fabric"} <= labels
    assert "machine" not in labels, "it is there already"
