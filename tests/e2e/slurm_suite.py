"""Run Slurm's own testsuite against a local cluster: `make test-slurm-suite`.

The tests are SchedMD's, from Debian's source package of the Slurm that the nodes have: those that
expect runs, and those of pytest, which leave the configuration as it is (`--local-config`).
They run on the controller as an ordinary user, who is a Slurm administrator, in a folder that all
nodes share. Which can't pass here, and why, is in slurm_suite.yaml: any other failure, and any
of these that passes, fails the run. Tests that skip themselves say so and are counted.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import yaml

from .conftest import LiveCluster

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: 4}}
users: [{{name: ada, uid: 2001}}]
scheduler:
  type: slurm
  accounting: {{}}
  partitions: {{train: {{pools: [gpu], default: true, max_time: 1d}}}}
"""
NODES = ("head", "gpu001", "gpu002", "gpu003", "gpu004")
EXPECTED: dict[str, str] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
"""Test -> why it fails here; what begins with AT_TIMES may pass too."""
AT_TIMES = "at times "
LOGS = Path(__file__).parents[2] / ".cache" / "slurm-suite"
"""Where what each test said is kept until it runs again."""
LONGEST_S = 1200
SKIPPED = 255
PYTEST = "python3 -m pytest -q -rs -p no:cacheprovider --local-config --no-color"
NO_TESTS = 5
"""Exit code of pytest where a file skips itself as a whole."""
PREPARE = """
sed 's/^deb /deb-src /' /etc/apt/sources.list > /etc/apt/sources.list.d/src.list
apt-get update -q
apt-get install -y -q dpkg-dev expect gcc libc6-dev libslurm-dev make bc sudo
apt-get install -y -q python3-pexpect python3-pytest python3-requests
echo "ada ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/ada
cd /shared && apt-get source --download-only --tar-only slurm-wlm && mkdir src tmp
tar xf slurm-wlm_*.orig.tar.gz --strip-components=1 -C src
cat > src/testsuite/expect/globals.local <<EOF
set slurm_dir /usr
set build_dir /shared/src
set testsuite_shared_dir /shared/tmp
EOF
cat > src/testsuite/testsuite.conf <<EOF
SlurmSourceDir = /shared/src
SlurmBuildDir = /shared/src
SlurmInstallDir = /usr
SlurmConfigDir = /etc/slurm
EOF
chown -R ada src/testsuite tmp && sacctmgr --immediate modify user ada set adminlevel=admin
sacctmgr --immediate add user slurm account=everyone
"""
OPEN_TREE, OPEN_TREE_CLONE, MOVE_MOUNT, MOVE_MOUNT_F_EMPTY_PATH = 428, 1, 429, 4
CLONE_NEWNS, AT_FDCWD = 0x20000, -100


def share(folder: Path, container: str) -> None:
    """Mount a folder of this machine at /shared in a container that runs.

    By the mount calls of Linux 5.2, numbers as on x86-64 and arm64: glibc has no names for them
    before 2.36.
    """
    inspect = ["podman", "inspect", "--format", "{{.State.Pid}}", container]
    process = int(subprocess.run(inspect, check=True, capture_output=True, text=True).stdout)
    if (child := os.fork()) == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        tree = libc.syscall(OPEN_TREE, AT_FDCWD, str(folder).encode(), OPEN_TREE_CLONE)
        theirs = os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY)
        done = tree < 0 or libc.unshare(CLONE_NEWNS) or libc.setns(theirs, CLONE_NEWNS)
        if not done:
            Path("/shared").mkdir(exist_ok=True)
            done = libc.syscall(
                MOVE_MOUNT, tree, b"", AT_FDCWD, b"/shared", MOVE_MOUNT_F_EMPTY_PATH
            )
        os._exit(1 if done else 0)
    assert os.waitpid(child, 0)[1] == 0, f"{folder} could not be mounted in {container}"


class Suite:
    """A cluster, the testsuite on it, and what came out."""

    def __init__(self, live: LiveCluster, shared: Path) -> None:
        """Write the spec; nothing is started."""
        self.live = live
        self.shared = shared
        live.spec.write_text(SPEC.format(name=live.name))

    def prepare(self) -> list[str]:
        """Bring the cluster up with the testsuite; return its tests in their order."""
        self.live.gcluster("up", str(self.live.spec), "--yes")
        for node in NODES:
            share(self.shared, self._container(node))
        self._on_head("sh", "-euc", PREPARE)
        suite = self.shared / "src/testsuite"
        listed = [*(suite / "expect").iterdir(), *(suite / "python/tests").iterdir()]
        found = (re.fullmatch(r"test(_?)(\d+)[._](\d+)(\.py)?", path.name) for path in listed)
        tests = sorted((f[1], int(f[2]), int(f[3]), f[0]) for f in found if f)
        return [name for *_, name in tests]

    def run(self, test: str) -> int:
        """Run one test; return its exit code: 0 passed, 255 skipped itself, else failed."""
        is_expect = not test.endswith(".py")
        folder = "expect" if is_expect else "python/tests"
        command = f"./{test}" if is_expect else f"{PYTEST} {test}"
        shell = f"cd /shared/src/testsuite/{folder} && exec timeout -k 9 {LONGEST_S} {command}"
        done = self._on_head(
            *(
                "runuser",
                "-u",
                "ada",
                "--",
                "env",
                "TERM=dumb",
                "PYTEST_DEBUG_TEMPROOT=/shared/tmp",
            ),
            *("sh", "-c", f"{shell} </dev/null"),
            check=False,
        )
        (LOGS / f"{test}.log").write_text(done.stdout, encoding="utf-8")
        self._on_head("scancel", "--user=ada", check=False)
        if is_expect or done.returncode not in {0, NO_TESTS} or " passed" in done.stdout:
            return done.returncode
        return SKIPPED

    def last_message(self, test: str) -> str:
        """Return what a test that failed said last, without its decoration."""
        lines = (LOGS / f"{test}.log").read_text(encoding="utf-8").splitlines()
        answer = [line for line in lines if re.search(r"Fatal|failed  ?:|Error |^E  ", line)]
        return (answer or lines or [""])[0][:200]

    def _container(self, node: str) -> str:
        return f"gcluster-{self.live.name}-{node}"

    def _on_head(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["podman", "exec", self._container("head"), *words],
            check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace",
        )  # fmt: skip


def main() -> int:
    """Run the tests that match ONLY; say of each that is not as expected what it said."""
    only = re.compile(os.environ.get("ONLY", ""))
    counted: Counter[str] = Counter()
    LOGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        live = LiveCluster(Path(folder))
        shared = Path(folder, "shared")
        shared.mkdir()
        Path(folder).chmod(0o755)
        suite = Suite(live, shared)
        try:
            for test in filter(only.search, suite.prepare()):
                began = time.monotonic()
                code = suite.run(test)
                outcome = "passed" if code == 0 else "skipped" if code == SKIPPED else "failed"
                if outcome == "failed" and test in EXPECTED:
                    outcome = "excluded"
                elif outcome == "passed" and not EXPECTED.get(test, AT_TIMES).startswith(AT_TIMES):
                    outcome = "passed unexpectedly"
                counted[outcome] += 1
                why = suite.last_message(test) if outcome == "failed" else EXPECTED.get(test, "")
                seconds = time.monotonic() - began
                sys.stderr.write(f"{test:<12} {outcome:<10} {seconds:5.0f} s  {why}\n")
        finally:
            live.gcluster("down", str(live.spec), "--yes", expect=None)
    sys.stdout.write(", ".join(f"{count} {word}" for word, count in counted.items()) + "\n")
    return 1 if counted["failed"] or counted["passed unexpectedly"] or not counted else 0


if __name__ == "__main__":
    sys.exit(main())
