"""Run Kubernetes' own conformance tests on a local cluster: `make test-kubernetes-suite`.

The tests are upstream's e2e.test, compiled from the Go module of the Kubernetes that the nodes
have, and run on the control plane. The images that they start are compiled from the same module and
imported into containerd (kubernetes_conformance/Containerfile): no registry is reached. Which tests
can't pass here, and why, is in kubernetes_suite.yaml: any other failure, and any of these that
passes, fails the run.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gcluster.lifecycle.cluster import places
from gcluster.lifecycle.kubernetes.release.golang import host_go
from gcluster.lifecycle.kubernetes.release.recipe import recipe
from gcluster.stacks.local.engine import find_engine
from gcluster.stacks.local.image.base_image import ensure_base

from .kubernetes_site import KubernetesCluster

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: 2}}
scheduler: {{type: kubernetes, kueue: false}}
"""
NODES = ("head", "gpu001", "gpu002")
EXPECTED: dict[str, str] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
"""Test -> why it fails here."""
MODULE = Path(__file__).parent / "kubernetes_conformance"
KEPT = Path(__file__).parents[2] / ".cache" / "kubernetes-suite"
PROGRAMS = {
    "e2e.test": ("test", "-c", "k8s.io/kubernetes/test/e2e"),
    "ginkgo": ("build", "github.com/onsi/ginkgo/v2/ginkgo"),
    "agnhost": ("build", "k8s.io/kubernetes/test/images/agnhost"),
    "nnp": ("build", "k8s.io/kubernetes/test/images/nonewprivs"),
    "sample-apiserver": ("build", "k8s.io/sample-apiserver"),
}
"""Program -> what of the module it is compiled from."""
FILES = ("agnhost/porter/localhost.crt", "agnhost/porter/localhost.key",
         "nautilus/html/nautilus.jpg", "nautilus/html/data.json")  # fmt: skip
"""What images hold next to programs; below test/images of the module."""
REGISTRY = "gcluster.local/e2e"
IMAGES = {
    "agnhost": ("agnhost:2.59", "agnhost:2.55"),
    "busybox": ("busybox:1.37.0-1",),
    "dnsutils": ("jessie-dnsutils:1.7",),
    "nautilus": ("nautilus:1.7",),
    "nginx": ("nginx:1.14-4", "nginx:1.15-4"),
    "nonewprivs": ("nonewprivs:1.3",),
    "nonroot": ("nonroot:1.4",),
    "sample-apiserver": ("sample-apiserver:1.29.2", ),
}  # fmt: skip
"""Target of the Containerfile -> the names and tags that tests use."""
ETCD = "3.6.6-0"
"""The etcd that tests start, by their tag; it is the bundle's."""
PROCESSES = 4
LIMIT = "5h"


def programs() -> None:
    """Compile what is missing or not of these sources."""
    go = host_go()
    if go is None:
        sys.exit("Kubernetes' tests are compiled: install Go 1.21 or newer")
    KEPT.mkdir(parents=True, exist_ok=True)
    made_of = recipe()
    link = ["-s", "-w", *(f"-X={k}={v}" for k, v in made_of.programs["kube"].link.items())]
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-buildvcs=false -trimpath -mod=readonly",
        "GOTOOLCHAIN": made_of.toolchain,
    }
    for name, (verb, *what) in PROGRAMS.items():
        command = [go, verb, "-ldflags", " ".join(link), "-o", str(KEPT / name), *what]
        subprocess.run(command, check=True, cwd=MODULE, env=environment)
    ask = [go, "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]
    done = subprocess.run(ask, check=True, cwd=MODULE, env=environment, stdout=subprocess.PIPE)
    for file in FILES:
        source = Path(done.stdout.decode().strip(), "test/images", file)
        shutil.copyfile(source, KEPT / source.name)


def images() -> list[str]:
    """Build the images; return their names."""
    base = ensure_base(find_engine(), places.private_directory(places.cache_home()))
    made = []
    for target, names in IMAGES.items():
        tags = [f"{REGISTRY}/{name}" for name in names]
        command = ["podman", "build", "--quiet", "--isolation=chroot", "--network=host"]
        command += [f"--build-arg=BASE={base}", f"--target={target}"]
        command += [*(f"--tag={tag}" for tag in tags), f"--file={MODULE / 'Containerfile'}"]
        subprocess.run([*command, str(KEPT)], check=True, stdout=subprocess.DEVNULL)
        made += tags
    return made


class Suite:
    """A cluster, the tests on it, and what came out."""

    def __init__(self, folder: Path) -> None:
        """Write the spec; nothing is started."""
        self.live = KubernetesCluster(folder)
        self.live.spec.write_text(SPEC.format(name=self.live.name))
        self.folder = folder

    def prepare(self) -> None:
        """Bring the cluster up, with the images on all nodes and the programs on the first."""
        programs()
        archive = self.folder / "images.tar"
        command = ["podman", "save", "--quiet", "--multi-image-archive", "--output", str(archive)]
        subprocess.run([*command, *images()], check=True)
        self.live.gcluster("up", str(self.live.spec), "--yes")
        ctr = ("ctr", "--namespace=k8s.io", "images")
        made_of = recipe()
        for node in NODES:
            with archive.open("rb") as content:
                self._on(node, *ctr, "import", "-", stdin=content)
            image = f"{made_of.repository}/etcd"
            self._on(node, *ctr, "tag", f"{image}:{made_of.etcd}", f"{image}:{ETCD}")
        archive.unlink()
        registries = {
            "promoterE2eRegistry": REGISTRY,
            "gcRegistry": made_of.repository,
            "gcEtcdRegistry": made_of.repository,
        }
        (KEPT / "registries.yaml").write_text(json.dumps(registries), encoding="utf-8")
        for name in ("e2e.test", "ginkgo", "registries.yaml"):
            self._copy(str(KEPT / name), f"{self._container('head')}:/opt/{name}")

    def run(self, only: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Run the conformance tests that match; yield each one's name and ginkgo's report of it."""
        words = [
            "/opt/ginkgo", "--no-color", f"--procs={PROCESSES}", f"--timeout={LIMIT}",
            "--output-dir=/opt", "--json-report=report.json",
            "--label-filter=Conformance", f"--focus={only}",
            "/opt/e2e.test", "--", "--kubeconfig=/etc/kubernetes/admin.conf", "--provider=skeleton",
        ]  # fmt: skip
        run = f"KUBE_TEST_REPO_LIST=/opt/registries.yaml exec {shlex.join(words)}"
        log = KEPT / "log"
        with log.open("wb") as out:
            self._on("head", "sh", "-c", run, check=False, stdout=out)
        report = KEPT / "report.json"
        report.unlink(missing_ok=True)
        self._copy(f"{self._container('head')}:/opt/report.json", str(report))
        for suite in json.loads(report.read_text(encoding="utf-8")):
            for test in suite["SpecReports"]:
                if test["LeafNodeType"] == "It" and test["NumAttempts"]:
                    yield " ".join([*test["ContainerHierarchyTexts"], test["LeafNodeText"]]), test

    def _container(self, node: str) -> str:
        return f"gcluster-{self.live.name}-{node}"

    def _on(self, node: str, *words: str, check: bool = True, **files: Any) -> None:
        command = ["podman", "exec", "--interactive", self._container(node), *words]
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **files}
        subprocess.run(command, check=check, stderr=subprocess.STDOUT, **given)

    def _copy(self, source: str, target: str) -> None:
        subprocess.run(["podman", "cp", source, target], check=True)


def main() -> int:
    """Run the tests that match ONLY; say of each that is not as expected what it said."""
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(Path(folder))
        try:
            suite.prepare()
            for name, report in suite.run(os.environ.get("ONLY", "")):
                outcome = report["State"]
                if outcome not in {"passed", "skipped"}:
                    outcome = "excluded" if name in EXPECTED else "failed"
                elif outcome == "passed" and name in EXPECTED:
                    outcome = "passed unexpectedly"
                counted[outcome] += 1
                message = report.get("Failure", {}).get("Message", "")
                why = EXPECTED.get(name) or " ".join(message.split())[:300]
                sys.stderr.write(f"{outcome:<9} {report['RunTime'] / 1e9:5.0f} s  {name}  {why}\n")
        finally:
            suite.live.gcluster("down", str(suite.live.spec), "--yes", expect=None)
    sys.stdout.write(", ".join(f"{count} {word}" for word, count in counted.items()) + "\n")
    return 1 if counted["failed"] or counted["passed unexpectedly"] or not counted else 0


if __name__ == "__main__":
    sys.exit(main())
