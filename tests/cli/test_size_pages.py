"""`gcluster size --format html|markdown`, and the worked cases of docs/size.md run as they are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
TRAIN = ("size", "train", "--model", "llama-3-8b", "--machine", "p5.48xlarge", "--tokens", "1T")
SERVE = ("size", "serve", "--model", "llama-3-70b", "--machine", "p5.48xlarge", "--requests", "9")
OWN = ("size", "own", "--machine", "dgx-h100", "--rent", "p5.48xlarge", "--region", "us-east-1")
PAGES = {
    "train": (TRAIN, ("fit by layout", "scaling", "what would move a step", "power and cooling")),
    "serve": (SERVE, ("Fit", "time of a token by batch", "what moves it")),
    "own": (OWN, ("Break-even", "Horizon", "What moves it", "Inputs")),
}


class Page(HTMLParser):
    """What a page holds: its elements, with what must not be there."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize("verb", PAGES)
def test_a_page_is_one_file_without_script_and_a_screen_reader_can_read_it(
    run: Run, verb: str
) -> None:
    words, titles = PAGES[verb]
    done = run(*words, "--format", "html")
    assert done.exit_code == 0, done.stderr
    page = Page(done.stdout)
    assert page.open == []
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.elements}
    assert not any({"href", "src", "onclick"} & {*each} for _, each in page.elements)
    assert page.of("html")[0]["lang"] == "en"
    assert all(each["role"] == "img" and each["aria-label"] for each in page.of("svg"))
    assert len(page.of("svg")) == len(page.of("details"))
    assert all(each.get("scope") for each in page.of("th"))
    assert len(page.of("h1")) == 1
    assert "prefers-color-scheme: dark" in done.stdout
    assert re.search(r"\b(nan|inf)\b", done.stdout) is None
    for title in titles:
        assert title in done.stdout
    for each in page.of("rect"):
        assert float(each["width"] or -1) >= 0
        assert 0 <= float(each["x"] or -1) <= 720


@pytest.mark.parametrize("verb", PAGES)
def test_markdown_has_the_tables_and_the_values_of_the_plots(run: Run, verb: str) -> None:
    words, titles = PAGES[verb]
    text = run(*words, "--format", "markdown").stdout
    for title in titles:
        assert title in text
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert len(tables) >= 4
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_a_hostile_name_of_a_model_is_text(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "a<script>alert(1)|x"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "hidden_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "intermediate_size": 4096,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    words = ("size", "train", "--model", str(folder / "config.json"), "--machine", "dgx-h100")
    page = Page(run(*words, "--format", "html").stdout)
    assert page.of("script") == []
    assert "<script>" not in run(*words, "--format", "markdown").stdout.replace("\\<", "")


def _commands(text: str) -> list[tuple[list[str], str]]:
    """Return each command of a page with what it prints, up to a line of "..."."""
    found = []
    for block in re.findall(r"^```\n(\$ .*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, rest = "", part
            while True:
                line, _, rest = rest.partition("\n")
                command += line.removesuffix("\\")
                if not line.endswith("\\"):
                    break
            found.append((shlex.split(command)[1:], rest.rstrip("\n")))
    return found


def test_the_worked_cases_print_what_the_page_has_and_their_specs_cost_that_to_the_cent(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    specs = []
    for words, printed in _commands((ROOT / "docs" / "size.md").read_text(encoding="utf-8")):
        done = run(*words)
        assert done.exit_code == 0, done.stderr
        shown, cut, _ = printed.partition("\n...")
        assert done.stdout.startswith(shown) if cut else done.stdout.rstrip("\n") == shown, words
        if "--spec" in words:
            specs.append((words[words.index("--spec") + 1], done.stdout))
    assert len(specs) == 3
    for path, text in specs:
        bill = json.loads(run("cost", path, "--format", "json").stdout)["clusters"][0]
        stated = re.search(r"\$([\d,.]+)/h with its controller", text)
        assert stated is not None
        assert f"{bill['totals']['hour']['usd']:,.2f}" == stated[1]
        assert run("validate", path).exit_code == 0


@pytest.mark.engine
def test_the_spec_of_the_smallest_case_plans_at_that_price(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    every = _commands((ROOT / "docs" / "size.md").read_text(encoding="utf-8"))
    words = next(words for words, _ in every if "tune-70b.yaml" in words)
    sized = json.loads(run(*words, "--format", "json").stdout)["spec"]
    done = run("plan", "tune-70b.yaml", "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert round(json.loads(done.stdout)["usd_per_hour"], 2) == round(sized["usd_per_hour"], 2)
