"""What all tests share: where the checkout is, and how property tests run."""

from __future__ import annotations

import gc
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

pytest.register_assert_rewrite("tests.golden_files")
from .golden_files import GoldenFiles  # noqa: E402  # its assertions show what differs

# No deadline: nothing here is timed, and a loaded machine must not turn a law into a failure. The
# same cases each time: what fails, fails for a change. `make search` looks for others, and keeps
# what fails.
settings.register_profile("gcluster", deadline=None, print_blob=True, derandomize=True)
settings.register_profile(
    "search",
    deadline=None,
    derandomize=False,  # where CI is set, Hypothesis's own default is True
    print_blob=True,
    max_examples=1_000,
    database=DirectoryBasedExampleDatabase(Path(__file__).parent.parent / ".hypothesis" / "search"),
)
settings.load_profile("search" if os.environ.get("GCLUSTER_SEARCH") else "gcluster")
_GOLDEN = pytest.StashKey[GoldenFiles]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files."""
    parser.addoption(
        "--update-goldens", action="store_true", help="write golden files instead of comparing"
    )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """List the golden files that were written."""
    for path in sorted(config.stash[_GOLDEN].written):
        terminalreporter.write_line(f"written: {path}")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to write golden files from several processes at once: a case file holds many cases."""
    update = config.getoption("--update-goldens")
    if update and hasattr(config, "workerinput"):
        raise pytest.UsageError("--update-goldens needs -n 0")
    config.stash[_GOLDEN] = GoldenFiles(update=update)


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of what the garbage collector looks through."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> GoldenFiles:
    """Compare with golden files, or write them under --update-goldens."""
    return request.config.stash[_GOLDEN]


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the checkout's top folder."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def tracked(root: Path) -> tuple[Path, ...]:
    """Return every file git tracks, links included, as paths relative to the checkout."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    return tuple(Path(name) for name in listing.split("\0") if name)
