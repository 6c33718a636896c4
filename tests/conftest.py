"""What all tests share: where the checkout is, and how property tests run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: nothing here is timed, and a loaded machine must not turn a law into a failure.
settings.register_profile("gcluster", deadline=None, print_blob=True)
settings.load_profile("gcluster")


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
