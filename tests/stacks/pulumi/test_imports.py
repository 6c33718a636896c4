"""Pulumi is imported only by what needs it."""

import subprocess
import sys

import pytest

HEAVY = {"pulumi", "pulumi_aws", "pulumi_gcp", "pulumi_azure_native", "grpc", "boto3"}


def loaded_by(*arguments: str) -> set[str]:
    """Return the heavy modules that a Python process imports."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gcluster" in imported, "nothing was measured"
    return HEAVY & imported


def test_validate_imports_none_of_it() -> None:
    run = "import sys; sys.argv[0] = 'gcluster'; from gcluster.cli.main import main; main()"
    assert loaded_by("-c", run, "validate", "examples/local.yaml") == set()


@pytest.mark.parametrize(
    "module",
    [
        "recording.graph",
        "names",
        "plan",
        "permissions",
        "engine.checkpoint",
        "engine.command",
        "engine.events",
    ],
)
def test_what_only_handles_data_needs_no_pulumi(module: str) -> None:
    assert loaded_by("-c", f"import gcluster.stacks.pulumi.{module}") == set()


def test_recording_imports_no_cloud() -> None:
    found = loaded_by("-c", "import gcluster.stacks.pulumi.recording.record")
    assert found == {"pulumi", "grpc"}
