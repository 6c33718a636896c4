"""The roles as the tests of the roles see them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.roles.programs import load_program

ROLES = Path(__file__).parents[2] / "roles"


@pytest.fixture(scope="session")
def payload() -> ModuleType:
    """Return the AllReduce payload as a module; importing it starts no MPI."""
    return load_program(ROLES / "allreduce/files/allreduce.py", "allreduce_payload")
