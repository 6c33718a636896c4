"""Nothing in the checkout depends on the machine it was written on."""

from __future__ import annotations

import re
from pathlib import Path

HOMES = re.compile(r"(?<![\w.])/home/(?!kubernetes/bin\b)\w+/\w")
"""A person's folder. What GKE's node images call so is none: add-ons put programs there."""


def _texts(root: Path, tracked: tuple[Path, ...]) -> dict[Path, str]:
    texts = {}
    for path in tracked:
        if (root / path).is_file() and not (root / path).is_symlink():
            try:
                texts[path] = (root / path).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return texts


def test_the_locks_name_no_registry(root: Path) -> None:
    for lock in sorted((root / "requirements").glob("*.txt")):
        assert "://" not in lock.read_text(encoding="utf-8"), lock.name


def test_no_file_names_a_path_of_one_machine(root: Path, tracked: tuple[Path, ...]) -> None:
    found = {
        str(path)
        for path, text in _texts(root, tracked).items()
        if str(root) in text or HOMES.search(text)
    }
    assert found == set()


def test_text_ends_with_one_newline_and_has_no_carriage_return(
    root: Path, tracked: tuple[Path, ...]
) -> None:
    cases = Path("tests/cases")
    wrong = [
        str(path)
        for path, text in _texts(root, tracked).items()
        if text
        and not path.is_relative_to(cases)
        and not path.name.startswith("uPlot.")  # as it was published
        and ("\r" in text or not text.endswith("\n") or text.endswith("\n\n"))
    ]
    assert wrong == []


def test_the_lock_pins_every_package_with_hashes(root: Path) -> None:
    for lock in sorted((root / "requirements").glob("*.txt")):
        entries = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip())
        assert entries
        assert [e for e in entries if "==" not in e or "--hash=sha256:" not in e] == [], lock.name


def test_the_lock_holds_every_dependency_the_package_declares(root: Path) -> None:
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    declared = set(re.findall(r'^  "([A-Za-z0-9_.-]+)', block[1], re.MULTILINE))
    runtime = (root / "requirements/runtime.txt").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([A-Za-z0-9_.-]+)==", runtime, re.MULTILINE))
    assert declared - locked == set()


UNPINNED = re.compile(
    r"StrictHostKeyChecking[= ]+[\"']?(?:no|off|accept-new|ask)\b"
    r"|UserKnownHostsFile[= ]+[\"']?/dev/null"
    r"|host_key_checking *[=:] *[\"']?(?:false|no|0)\b"
    r"|HOST_KEY_CHECKING[=:\"' ]+(?:false|no|0)\b",
    re.IGNORECASE,
)


def test_no_ssh_takes_whatever_host_key_it_is_shown(root: Path, tracked: tuple[Path, ...]) -> None:
    found = [
        f"{path}: {hit[0]}"
        for path, text in _texts(root, tracked).items()
        if path != Path(__file__).relative_to(root)
        for hit in UNPINNED.finditer(text)
    ]
    assert found == []
