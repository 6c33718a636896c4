"""Makes the modules in this folder importable, and gives them an OCI of their own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from oci_double import Oracle  # it is in this folder


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """Give a double that is ended after the test."""
    double = Oracle()
    yield double
    double.close()
