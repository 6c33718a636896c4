#!/usr/bin/python3
"""Build Slurm's packages from SchedMD's source, with the packaging files that come with it.

  slurm-build.py VERSION URL CHECKSUM OUT

OUT gets the packages, the index of a repository of them, log, and SHA256SUMS last, which marks
completion; where it fails, FAILED has the step, with the last lines of the log. On Debian and
Ubuntu the build's packages are removed again, unless something else needs them by then: others
install here meanwhile. CHECKSUM is sha256:HEX. Debian and Ubuntu build by debian/, EL 9 by
slurm.spec: https://slurm.schedmd.com/quickstart_admin.html
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

APT = ("apt-get", "--yes", "--quiet", "--option", "DPkg::Lock::Timeout=900")
WITH = ("cgroupv2", "slurmrestd", "pmix", "jwt", "yaml", "lua", "hwloc", "numa", "libcurl")
"""What the packages of EL are built with: EL 9 starts with cgroups of version 2 alone."""
SUMS = "SHA256SUMS"
NOT_SUMMED = {"log", "FAILED"}
SHOWN_LINES, FETCH_LIMIT_S, BLOCK = 15, 60, 1 << 20


class StepError(Exception):
    """What failed; the log has why."""


def main() -> None:
    """Build, unless it is all there."""
    version, url, checksum, where = sys.argv[1:]
    out = Path(where)
    if (out / SUMS).exists():
        return
    os.umask(0o022)
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    try:
        build = Build(version, out)
    except OSError as error:
        sys.exit(str(error))
    try:
        build.all_of_it(url, checksum)
    except (StepError, OSError) as why:
        failed = build.failure(str(why))
        (out / "FAILED").write_text(f"{failed}\n")
        sys.exit(failed)


class Build:
    """One build: its folders, its log, and what it is at."""

    def __init__(self, version: str, out: Path) -> None:
        """Start over: what an earlier one left in the folders goes, but not what it brought."""
        self.version, self.out = version, out
        self.work = out.with_name(f"{out.name}.work")
        self.brought = out / "brought"
        self.step = f"preparing {out}"
        out.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.work, ignore_errors=True)
        for old in (*out.glob("*.deb"), *out.glob("*.rpm"), *out.glob("FAILED")):
            old.unlink()
        (out / "log").write_text("")
        self.work.mkdir()
        self.brought.touch()

    def all_of_it(self, url: str, checksum: str) -> None:
        """Fetch, build, index, and take away what only the build needed."""
        is_debian = Path("/etc/debian_version").exists()
        self.say(f"fetching {url}")
        archive = self.fetched(url, checksum)
        if is_debian:
            self.must(*APT, "update")
            self.need("bzip2", "xz-utils")
        self.say(f"unpacking Slurm {self.version}")
        self.must(
            "tar", "--extract", "--no-same-owner", f"--directory={self.work}", "--file", archive
        )
        source = self.work / f"slurm-{self.version}"
        if not source.is_dir():
            found = next(self.work.glob("slurm-*"), None)
            if found is None:
                raise StepError("the source has no folder slurm-*")
            found.rename(source)
        if is_debian:
            self.build_deb(source)
            self.say("taking away what only the build needed")
            self.take_away()
        else:
            self.build_rpm(source)
        shutil.rmtree(self.work)
        self.brought.unlink()
        self.sum_up()
        packages = [*self.out.glob("*.deb"), *self.out.glob("*.rpm")]
        self.say(f"built {len(packages)} packages")

    def fetched(self, url: str, checksum: str) -> Path:
        """Return the source, which has the checksum."""
        if not checksum.startswith("sha256:"):
            raise StepError(f"no checksum is known of {url}")
        path, digest = self.work / "source", hashlib.sha256()
        try:
            answer = urllib.request.urlopen(url, timeout=FETCH_LIMIT_S)  # noqa: S310  # any: its checksum decides
            with answer, path.open("wb") as file:
                while block := answer.read(BLOCK):
                    digest.update(block)
                    file.write(block)
        except (OSError, ValueError) as error:
            raise StepError(f"{url} can't be fetched: {error}") from error
        if f"sha256:{digest.hexdigest()}" != checksum:
            raise StepError(f"{url} is sha256:{digest.hexdigest()}, not {checksum}")
        return path

    def build_deb(self, source: Path) -> None:
        """Build by debian/."""
        self.say("installing what packages of Debian are built with")
        self.need("build-essential", "fakeroot", "devscripts", "equivs", "debhelper")
        self.say("installing what slurm-smd is built with")
        needs = self.work / "needs"  # its own working folder: mk-build-deps leaves files there
        needs.mkdir()
        self.must("mk-build-deps", source / "debian/control", at=needs)
        self.need(*map(str, needs.glob("*.deb")))
        self.say("building slurm-smd")
        os.environ["DEB_BUILD_OPTIONS"] = (
            f"parallel={len(os.sched_getaffinity(0))} nocheck noautodbgsym"
        )
        self.must("dpkg-buildpackage", "-b", "-uc", "-us", at=source)
        self.say("indexing the packages")
        self.must("mv", "-t", self.out, *self.work.glob("*.deb"))
        index = self.output_of("dpkg-scanpackages", "--multiversion", ".", at=self.out)
        (self.out / "Packages").write_text(index)

    def build_rpm(self, source: Path) -> None:
        """Build by slurm.spec."""
        self.say("installing what packages of EL are built with")
        dnf = ("dnf", "--assumeyes")
        self.must(*dnf, "install", "rpm-build", "dnf-plugins-core", "createrepo_c", "bzip2")
        archive = self.work / f"{source.name}.tar.bz2"
        self.must(
            *("tar", "--create", "--bzip2", "--file", archive),
            *(f"--directory={self.work}", source.name),
        )
        self.say("installing what slurm is built with")
        # Set as by `rpmbuild --with`: the spec enables hwloc and PMIx with these macros alone.
        defines = [word for name in WITH for word in ("--define", f"_with_{name} --with-{name}")]
        spec = source / "slurm.spec"
        more = ("--enablerepo=gcluster-epel", "--enablerepo=crb")
        self.must(*dnf, *more, "builddep", spec, *defines)
        # It names PMIx itself, and not its headers, which EL has apart.
        self.must(*dnf, *more, "install", "pmix-devel")
        self.say("building slurm")
        top = self.work / "rpm"
        options = [word for name in WITH for word in ("--with", name)]
        self.must("rpmbuild", "-tb", archive, *options, "--define", f"_topdir {top}")
        self.say("indexing the packages")
        built = [path for path in (top / "RPMS").rglob("*.rpm") if "-debug" not in path.name]
        self.must("mv", "-t", self.out, *built)
        self.must("createrepo_c", "--simple-md-filenames", self.out)

    def need(self, *packages: str) -> None:
        """Install packages, and mark new ones as automatic.

        A role that names one of them keeps it.
        """
        install = (*APT, "install", "--no-install-recommends")
        reported = self.output_of(*install, "--simulate", *packages)
        new = re.findall(r"(?m)^Inst (\S+) \(", reported)
        self.must(*install, *packages)
        if new:
            with self.brought.open("a") as file:
                file.writelines(f"{name}\n" for name in new)
            self.must("apt-mark", "auto", *new)

    def take_away(self) -> None:
        """Remove automatic packages that this program, or an interrupted one, installed."""
        unimportant = (
            f"APT::AutoRemove::{word}Important=false" for word in ("Suggests", "Recommends")
        )
        options = [word for each in unimportant for word in ("--option", each)]
        reported = self.output_of(*APT, "autoremove", "--simulate", *options)
        nobodys = set(re.findall(r"(?m)^Remv (\S+)", reported))
        unneeded = sorted(nobodys & set(self.brought.read_text().split()))
        if unneeded and self.run(*APT, "purge", *unneeded):
            self.note(f"not taken away: {' '.join(unneeded)}")

    def sum_up(self) -> None:
        """Write the checksums of all files."""
        files = sorted(
            str(path.relative_to(self.out))
            for path in self.out.rglob("*")
            if path.is_file() and path.name not in NOT_SUMMED
        )
        lines = [
            f"{hashlib.sha256((self.out / name).read_bytes()).hexdigest()}  {name}\n"
            for name in files
        ]
        new = self.out / f"{SUMS}.new"
        new.write_text("".join(lines))
        new.rename(self.out / SUMS)

    def say(self, step: str) -> None:
        """Begin a step; who follows the log counts them."""
        self.step = step
        print(f"== {step}", file=sys.stderr)
        self.note(f"== {step}")

    def note(self, line: str) -> None:
        """Add a line to the log."""
        with (self.out / "log").open("a") as log:
            log.write(f"{line}\n")

    def must(self, *command: str | Path, at: Path | None = None) -> None:
        """Run a program with its output in the log; raises StepError where it fails."""
        if self.run(*command, at=at):
            raise StepError

    def run(self, *command: str | Path, at: Path | None = None) -> int:
        """Run a program with its output in the log; return its status."""
        with (self.out / "log").open("ab") as log:
            done = subprocess.run(command, stdout=log, stderr=log, cwd=at, check=False)
        return done.returncode

    def output_of(self, *command: str | Path, at: Path | None = None) -> str:
        """Return what a program prints; raises StepError where it fails."""
        with (self.out / "log").open("ab") as log:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=at, check=False
            )
        if done.returncode != 0:
            raise StepError
        return done.stdout

    def failure(self, why: str) -> str:
        """Return at what it failed, with the last lines of the log."""
        lines = (self.out / "log").read_text(errors="replace").splitlines()
        head = f"Slurm {self.version} was not built on {socket.gethostname().partition('.')[0]}"
        return "\n".join([f"{head}: {why or self.step}", *lines[-SHOWN_LINES:]])


if __name__ == "__main__":
    main()
