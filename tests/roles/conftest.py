"""The roles as the tests of the roles see them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROLES = Path(__file__).parents[2] / "roles"


@pytest.fixture(scope="session")
def payload() -> ModuleType:
    """Return the AllReduce payload as a module; importing it starts no MPI."""
    spec = importlib.util.spec_from_file_location(
        "allreduce_payload", ROLES / "allreduce/files/allreduce.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
