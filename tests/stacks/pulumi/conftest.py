"""Makes the example program importable, and skips engine tests where there is no engine."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if shutil.which("pulumi") or (Path.home() / ".pulumi/bin/pulumi").exists():
        return
    reason = "the engine, the `pulumi` command, is not installed on this machine"
    for item in items:
        if item.get_closest_marker("engine"):
            item.add_marker(pytest.mark.skip(reason=reason))
