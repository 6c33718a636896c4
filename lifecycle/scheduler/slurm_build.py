"""Slurm's packages, built once per cluster, distribution and architecture, and kept.

A node of the kind builds them (`slurm-build.py` of role slurm_packages), as a systemd unit: it
continues when `up` is killed, and the next `up` follows it. Nodes are converged meanwhile and wait
where they need the packages. The list of checksums carries a code made with the cluster's MUNGE
key, which every node has before it takes them.
"""

from __future__ import annotations

import base64
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from typing import IO

import msgspec

from ...inventory.compile import CompiledCluster
from ...inventory.compile.slurm.packages import BUILD_FOLDER
from ...inventory.compile.system.packages import PACKAGE_MIRROR_ROOT
from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic, Severity
from ..cluster.progress import Finding, Reporter, StageFinished, StageProgress, StageStarted
from ..nodes.converge.role_files import role_path
from ..nodes.ssh import Answer, SshResult, SshSession
from ..nodes.ssh.arguments import as_root
from ..nodes.ssh.feed import feed

MIRROR = f"{PACKAGE_MIRROR_ROOT}/{BUILD_FOLDER}"
WORK = "/var/cache/gcluster/slurm-build"
"""On a builder: KEY/PLATFORM has the packages and the log."""
_STAGE = "slurm"
_STEPS = 8
"""Steps that slurm-build.py reports; only for the progress."""
_LIMIT_S = 3 * 3600
_LOST_S = 600
"""How long a builder may not answer."""
_INSTALL_LIMIT_S = 900
"""How long nodes wait for a build to have installed what it needs: two of apt would disturb each
other."""
_POLL_INTERVAL_S = 3.0
_BLOCK = 1 << 20

PLATFORM = (
    ". /etc/os-release; "
    "case $ID in rhel|rocky|almalinux|centos) ID=el; VERSION_ID=${VERSION_ID%%.*};; esac; "
    'echo "$ID-$VERSION_ID-$(uname -m)"'
)
"""Prints what packages are built for: debian-13-x86_64."""
_THERE = f"cd {MIRROR} 2>/dev/null && ls -d */*/SHA256SUMS 2>/dev/null; true"
_START = """set -e
umask 022
mkdir -p {work}
cat > {work}/slurm-build.new
chmod 755 {work}/slurm-build.new
if ! systemctl is-active --quiet {unit}; then
  mv {work}/slurm-build.new {work}/{unit}
  rm -f {out}/FAILED
  systemctl reset-failed --quiet {unit} 2>/dev/null || :
  systemd-run --quiet --collect --unit {unit} --nice 10 --setenv HOME=/root \\
    {work}/{unit} {version} {url} {checksum} {out} >&2
fi
"""
_FOLLOW = """result() {{
  [ ! -e {out}/SHA256SUMS ] || exit 0
  if [ -e {out}/FAILED ]; then cat {out}/FAILED; exit 3; fi
}}
result
case "$(systemctl is-active {unit})" in
  inactive|failed|unknown) result; tail -n 15 {out}/log; exit 4 ;;
esac
grep '^== ' {out}/log
exit 5
"""
"""Prints a build's steps (exit 5: it runs) or its error (3, 4). On a busy node the unit is active
before its program has a folder, and systemd may not answer: neither is an end."""
_PLACE = """set -e
umask 022
mkdir -p {mirror}
rm -rf {mirror}/.{name}
{bring}
rm -rf {mirror}/{name}
mv {mirror}/.{name} {mirror}/{name}
"""
_VOUCH = """
import base64, hashlib, hmac, pathlib, sys
key, mirror = base64.b64decode(sys.stdin.read()), pathlib.Path(sys.argv[1])
for sums in mirror.glob("*/*/SHA256SUMS"):
    what = "/".join(sums.parts[-3:-1])
    message = what.encode() + b"\\n" + sums.read_bytes()
    code = hmac.new(key, message, hashlib.sha256).hexdigest()
    target = sums.with_name("SHA256SUMS.hmac")
    if not target.exists() or target.read_text() != code:
        part = sums.with_name(".hmac")
        part.write_text(code)
        part.replace(target)
"""


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """Packages that some hosts need: one version for one distribution and architecture."""

    key: str
    """Of the source and the recipe."""
    version: str
    url: str
    checksum: str
    platform: str
    hosts: tuple[Host, ...]
    """They are of the platform and need the packages; the best to build on comes first."""

    @property
    def unit(self) -> str:
        """Name of the unit that builds."""
        return f"gcluster-slurm-build-{self.key}"

    @property
    def out(self) -> str:
        """Folder on the builder."""
        return f"{WORK}/{self.key}/{self.platform}"

    @property
    def place(self) -> str:
        """Path below the mirror."""
        return f"{self.key}/{self.platform}"


class NotBuilt(Exception):  # noqa: N818  # named for what happened
    """Why there are no packages: a line, and the last lines of the log."""

    def __init__(self, summary: str, detail: str = "") -> None:
        """Hold both."""
        super().__init__(summary)
        self.detail = detail


def needed_builds(
    compiled: CompiledCluster,
    hosts: Iterable[Host],
    platforms: Mapping[str, str],
    serving: frozenset[str],
) -> tuple[Build, ...]:
    """Return the packages that the pools need, each once.

    Args:
        compiled: its steps of role slurm_packages define what is built.
        hosts: the reachable ones.
        platforms: pool -> its nodes' platform; a pool without an entry waits for a later run.
        serving: nodes that run jobs: they build only where no other can.
    """
    by_pool: dict[str, list[Host]] = {}
    for host in hosts:
        by_pool.setdefault(host.pool, []).append(host)
    found: dict[tuple[str, str], Build] = {}
    for group in compiled.groups:
        variables = {
            name: value
            for step in group.steps
            if step.role == "slurm_packages"
            for name, value in step.variables.items()
        }
        platform, members = platforms.get(group.name), by_pool.get(group.name, [])
        if not variables or platform is None or not members:
            continue
        key = variables["slurm_packages_mirror"].rpartition("/")[2]
        before = found.get((key, platform))
        everyone = (*(() if before is None else before.hosts), *members)
        found[key, platform] = Build(
            key=key,
            version=variables["slurm_packages_version"],
            url=variables["slurm_packages_url"],
            checksum=variables["slurm_packages_checksum"],
            platform=platform,
            hosts=tuple(sorted(everyone, key=lambda host: _cost(host, serving))),
        )
    return tuple(found.values())


def _cost(host: Host, serving: frozenset[str]) -> int:
    """Return how little a host is wanted as a builder: controllers first, who run jobs last."""
    return ("controller", "login", "compute").index(host.role) + 3 * (
        host.is_compute and host.name in serving
    )


def build_slurm(
    compiled: CompiledCluster,
    hosts: Iterable[Host],
    session: SshSession,
    report: Reporter,
    *,
    munge_key: bytes,
    serving: frozenset[str] = frozenset(),
) -> threading.Thread | None:
    """Start building what the mirror lacks; return the thread that does it, None: nothing to do.

    Existing packages are signed with the current key. A failed build is reported, also to the nodes
    that wait for it.

    Args:
        compiled: the nodes' steps.
        hosts: the reachable ones.
        session: connections of the cluster.
        report: receives the progress; it is called from the thread too.
        munge_key: of the cluster.
        serving: nodes that run jobs now.
    """
    real = [host for host in hosts if host.connection == "ssh"]
    controllers = [host for host in real if host.role == "controller"]
    pools = {g.name for g in compiled.groups if any(s.role == "slurm_packages" for s in g.steps)}
    if not pools or not controllers:
        return None
    first = {host.pool: host for host in reversed(real) if host.pool in pools}
    answers = session.run_many(first.values(), PLATFORM)
    platforms = {
        pool: answer.stdout.strip()
        for pool, host in first.items()
        if isinstance(answer := answers[host.name], SshResult) and answer.returncode == 0
    }
    builds = needed_builds(compiled, real, platforms, serving)
    mirrors = {
        c.name: _packages_in(session.run(c, as_root(c, ["sh", "-c", _THERE]))) for c in controllers
    }
    lacking = [b for b in builds if any(b.place not in mirrors[c.name] for c in controllers)]
    work = _Work(session, report, controllers, munge_key)
    work.vouch()
    if not lacking:
        return None
    for build in lacking:
        work.forget_failure(build)
    thread = threading.Thread(
        target=work.all_of, args=(lacking, mirrors), name="build-slurm", daemon=True
    )
    thread.start()
    work.installed.wait(_INSTALL_LIMIT_S)
    return thread


def _packages_in(answer: Answer) -> frozenset[str]:
    """Return KEY/PLATFORM of all packages in a mirror."""
    lines = answer.stdout.split() if isinstance(answer, SshResult) else []
    return frozenset(line.removesuffix("/SHA256SUMS") for line in lines)


def vouch_for_packages(session: SshSession, controllers: Iterable[Host], munge_key: bytes) -> None:
    """Have every list of packages in the controllers' mirrors carry the code of a MUNGE key."""
    text = base64.encodebytes(munge_key).decode()
    for controller in controllers:
        command = as_root(controller, ["python3", "-c", _VOUCH, MIRROR])
        session.run(controller, command, stdin=text)


class _Work:
    """Builds packages, copies them to the controllers, and reports progress."""

    def __init__(
        self, session: SshSession, report: Reporter, controllers: list[Host], munge_key: bytes
    ) -> None:
        self._session = session
        self._report = report
        self._controllers = controllers
        self._munge_key = munge_key
        self._installing: set[str] = set()
        self.installed = threading.Event()
        """No builder installs packages for a build any more: others may, without waiting for it."""

    def all_of(self, builds: list[Build], mirrors: Mapping[str, frozenset[str]]) -> None:
        """See to all builds: at the same time, but one after the other on one builder."""
        began = time.monotonic()
        self._report(StageStarted(name=_STAGE, total=_STEPS))
        by_builder: dict[str, list[Build]] = {}
        for build in builds:
            by_builder.setdefault(build.hosts[0].name, []).append(build)
        failed: list[Build] = []
        self._installing = set(by_builder)

        def in_turn(mine: list[Build]) -> None:
            try:
                failed.extend(build for build in mine if not self._one(build, mirrors))
            finally:
                self._has_installed(mine[0].hosts[0])

        threads = [threading.Thread(target=in_turn, args=(b,)) for b in by_builder.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        built = ", ".join(f"{b.version} for {b.platform}" for b in builds if b not in failed)
        self._report(
            StageFinished(
                name=_STAGE,
                ok=not failed,
                summary=f"built {built}" if built else "not built",
                seconds=time.monotonic() - began,
            )
        )

    def _one(self, build: Build, mirrors: Mapping[str, frozenset[str]]) -> bool:
        """Have packages in every mirror; return whether they are."""
        having = [c for c in self._controllers if build.place in mirrors[c.name]]
        try:
            if having:
                source, folder = having[0], f"{MIRROR}/{build.place}"
            else:
                source, folder = build.hosts[0], build.out
                self._build(build, source)
            for controller in self._controllers:
                if controller not in having:
                    self._place(build, source, folder, controller)
            self.vouch()
        except NotBuilt as error:
            self._fail(build, error)
            return False
        return True

    def _build(self, build: Build, builder: Host) -> None:
        program = (role_path("slurm_packages") / "files/libexec/slurm-build.py").read_bytes()
        names = {
            "work": WORK,
            "unit": build.unit,
            "out": build.out,
            "version": build.version,
            "url": build.url,
            "checksum": build.checksum,
        }
        start = as_root(builder, ["sh", "-c", _START.format(**names)])
        self._done(feed(self._session, builder, start, [program], timeout_s=120), builder)
        follow = as_root(builder, ["sh", "-c", _FOLLOW.format(**names)])
        end, last_response = time.monotonic() + _LIMIT_S, time.monotonic()
        while time.monotonic() < end:
            answer = self._session.run(builder, follow)
            if isinstance(answer, SshResult):
                last_response = time.monotonic()
                if answer.returncode == 0:
                    return
                if answer.returncode == _IS_BUILDING:
                    self._report_step(build, builder, answer.stdout)
                else:
                    raise _not_built(build, builder, answer.stdout)
            elif time.monotonic() - last_response > _LOST_S:
                raise NotBuilt(
                    f"{builder.name}, which builds it, can't be reached: {answer.reason}"
                )
            time.sleep(_POLL_INTERVAL_S)
        raise NotBuilt(f"it was not built on {builder.name} within {_LIMIT_S // 3600} h")

    def _has_installed(self, builder: Host) -> None:
        self._installing.discard(builder.name)
        if not self._installing:
            self.installed.set()

    def _report_step(self, build: Build, builder: Host, log: str) -> None:
        steps = [line.removeprefix("== ") for line in log.splitlines()]
        if any(step.startswith("building ") for step in steps):
            self._has_installed(builder)
        self._report(
            StageProgress(
                name=_STAGE,
                done=min(len(steps), _STEPS) - 1,
                total=_STEPS,
                detail=f"{builder.name} {build.version}: {steps[-1] if steps else 'begins'}",
            )
        )

    def _place(self, build: Build, source: Host, folder: str, controller: Host) -> None:
        """Bring packages into a controller's mirror, from its own disk or another host's."""
        names = {"mirror": f"{MIRROR}/{build.key}", "name": build.platform}
        if source.name == controller.name:
            script = _PLACE.format(
                **names, bring=f"cp -a {folder} {MIRROR}/{build.key}/.{build.platform}"
            )
            command = as_root(controller, ["sh", "-c", script])
            self._done(self._session.run(controller, command, timeout_s=600), controller)
            return
        hidden = f"{MIRROR}/{build.key}/.{build.platform}"
        script = _PLACE.format(**names, bring=f"mkdir {hidden}; tar -x -C {hidden}")
        with tempfile.TemporaryFile() as archive:
            self._read(source, folder, archive)
            command = as_root(controller, ["sh", "-c", script])
            blocks = iter(lambda: archive.read(_BLOCK), b"")
            self._done(feed(self._session, controller, command, blocks, timeout_s=1800), controller)

    def _read(self, source: Host, folder: str, archive: IO[bytes]) -> None:
        command = as_root(source, ["sh", "-c", f"tar -c -C {folder} . | base64"])

        def take(line: str) -> None:
            archive.write(base64.b64decode(line))

        self._done(self._session.stream(source, command, take, timeout_s=1800), source)
        archive.seek(0)

    def vouch(self) -> None:
        """Have every list of packages in the mirrors carry the code of the key of now."""
        vouch_for_packages(self._session, self._controllers, self._munge_key)

    def forget_failure(self, build: Build) -> None:
        """Let nodes wait again for what failed in an earlier run."""
        for controller in self._controllers:
            words = ["rm", "-f", f"{MIRROR}/{build.place}/FAILED"]
            self._session.run(controller, as_root(controller, words))

    def _fail(self, build: Build, error: NotBuilt) -> None:
        """Report the reason to the user and to the waiting nodes."""
        summary = f"Slurm {build.version} has no packages for {build.platform}: {error}"
        reason = f"{summary}\n{error.detail}".encode()
        where = f"{MIRROR}/{build.place}"
        for controller in self._controllers:
            words = ["sh", "-c", f"umask 022; mkdir -p {where} && cat > {where}/FAILED"]
            feed(self._session, controller, as_root(controller, words), [reason], timeout_s=60)
        found = Diagnostic(
            code="GC1191",
            severity=Severity.ERROR,
            summary=summary,
            detail=error.detail,
            hint="fix it and run the same command again, or write slurm: distribution",
        )
        self._report(Finding(diagnostic=found))

    @staticmethod
    def _done(answer: Answer, host: Host) -> None:
        if not isinstance(answer, SshResult):
            raise NotBuilt(f"{host.name} can't be reached: {answer.reason}")
        if answer.returncode != 0:
            lines = answer.stderr.strip().splitlines()
            raise NotBuilt(f"{host.name}: {lines[-1] if lines else 'no message'}")


_IS_BUILDING = 5


def _not_built(build: Build, builder: Host, output: str) -> NotBuilt:
    """Return a builder's error: a line of what failed, then the log's last lines."""
    first, _, rest = output.strip().partition("\n")
    log = f"all of it is in {builder.name}:{build.out}/log"
    if "was not built" in first:
        return NotBuilt(f"{builder.name} failed at {first.partition(': ')[2]} ({log})", rest)
    return NotBuilt(f"the build ended on {builder.name} without a result ({log})", output.strip())
