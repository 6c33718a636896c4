"""A real API server of the bundle, with scheduler and controllers, for the tests that call one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer

from gcluster.lifecycle.cluster.places import cache_home

HELM = "helm.sh/helm/v4/cmd/helm@v4.1.4"
NAMESPACES = ("gcluster-system", "widgets-system")


@pytest.fixture(scope="session")
def helm() -> Iterator[None]:
    """Put a helm on PATH: the one that is there, or its Go module built once into the cache."""
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which("helm") is None:
            folder = cache_home() / "tests" / HELM.replace("/", "-")
            if not (folder / "helm").exists():
                build = ["go", "install", HELM]
                subprocess.run(build, check=True, env={**os.environ, "GOBIN": str(folder)})
            patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(scope="session")
def server(helm: None) -> Iterator[Any]:  # noqa: ARG001  # its programs are looked for on PATH
    """Give a running API server; its processes end with the tests."""
    with ApiServer() as running:
        running.run_scheduler()
        for name in NAMESPACES:
            running.kubectl("create", "namespace", name)
        yield running
