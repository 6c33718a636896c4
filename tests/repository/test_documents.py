"""What the documents say is there, is there."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

from gcluster.cli.commands import BY_NAME

# SHA-256 of the licence as the Apache Software Foundation publishes it.
APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img[^>]*\bsrc=\"([^\"]+)\"")


def _markdown(root: Path, tracked: tuple[Path, ...]) -> list[Path]:
    return [root / path for path in tracked if path.suffix == ".md"]


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_no_relative_link_is_broken(root: Path, tracked: tuple[Path, ...]) -> None:
    dead = []
    for page in _markdown(root, tracked):
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            target, _, anchor = (match[1] or match[2]).partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            file = page.parent / target if target else page
            if not file.exists() or (anchor and anchor not in _anchors(file)):
                dead.append(f"{page.relative_to(root)}: {match[0]}")
    assert dead == []


def test_the_changelog_begins_with_the_version_of_the_package(root: Path) -> None:
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    headings = re.findall(
        r"^## \[([^\]]+)\]", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert headings[0] == version


def test_the_licence_is_apache_2_0_word_for_word(root: Path) -> None:
    assert hashlib.sha256((root / "LICENSE").read_bytes()).hexdigest() == APACHE_2_0


def test_every_make_verb_and_script_a_document_names_exists(
    root: Path, tracked: tuple[Path, ...]
) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE))
    missing = []
    for page in _markdown(root, tracked):
        text = page.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
        missing += [
            f"{page.name}: make {verb}"
            for verb in re.findall(r"(?<![\w-])make ([a-z][a-z-]*)", code)
            if verb not in verbs
        ]
        missing += [
            f"{page.name}: {script}"
            for script in re.findall(r"(?<![\w/.])(\.ci/[\w.]+|bench/[\w./]+)", code)
            if not (root / script).exists()
        ]
    assert missing == []


def test_every_gcluster_verb_a_document_names_exists(root: Path, tracked: tuple[Path, ...]) -> None:
    missing = []
    for page in _markdown(root, tracked):
        code = re.findall(r"```.*?```|`[^`\n]+`", page.read_text(encoding="utf-8"), re.DOTALL)
        named = re.findall(r"(?:^|`|/)gcluster ([a-z][a-z-]*)", "\n".join(code), re.MULTILINE)
        missing += [f"{page.name}: gcluster {verb}" for verb in named if verb not in BY_NAME]
    assert missing == []


def test_every_page_of_the_documentation_can_be_found_from_its_index(root: Path) -> None:
    pages = {page.name for page in (root / "docs").glob("*.md")} - {"README.md"}
    index = (root / "docs" / "README.md").read_text(encoding="utf-8")
    assert {page for page in pages if f"({page})" not in index} == set()


def test_a_page_for_reading_is_no_longer_than_that(root: Path) -> None:
    """A page of reference, written from types, codes or rules, is looked up and not read."""
    written = ("spec", "diagnostics", "alerts")
    pages = [p for p in (root / "docs").glob("*.md") if not p.name.startswith(written)]
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in pages}
    assert {name: count for name, count in words.items() if count > 2_500} == {}
