"""The package managers of Debian and RHEL: versions, pins, installation and holds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Protocol

from .files import write_text
from .node import run

HEAD = "# Written by gcluster. Changes made here are lost; change the spec.\n"
APT_PREFERENCES = Path("/etc/apt/preferences.d")
POLICY = Path("/usr/sbin/policy-rc.d")
STARTS_NOTHING = "#!/bin/sh\nexit 101\n"
INSTALL_TIMEOUT_S = 3600


class PackageManager(Protocol):
    """What `apt` and `dnf` both do."""

    def installed(self, name: str) -> str:
        """Return the installed version; "" where it isn't."""

    def offered(self, name: str) -> list[str]:
        """Return the versions that the repositories have."""

    def is_newer(self, one: str, other: str) -> bool:
        """Return whether a version is newer than another."""

    def pin(self, wanted: dict[str, Any], *, act: bool) -> list[dict[str, str]]:
        """Pin what may be installed; return the diffs of the files written."""

    def refresh(self) -> None:
        """Read the repositories' indexes again."""

    def install(
        self, exact: dict[str, str], also: list[str], wanted: dict[str, Any]
    ) -> tuple[int, str]:
        """Install without starting anything; return the status and what was printed."""

    def hold(self, names: list[str], *, installed_only: bool, act: bool) -> list[str]:
        """Hold packages at the version they have; return the names that were not held."""


class Apt:
    """The packages of Debian and Ubuntu."""

    def installed(self, name: str) -> str:
        """Return the installed version; "" where it isn't."""
        _, text = run(
            "dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", name
        )
        status, _, version = text.partition(" ")
        return version if status == "installed" else ""

    def offered(self, name: str) -> list[str]:
        """Return the versions that the repositories have."""
        rows = [line.split("|") for line in run("apt-cache", "madison", name)[1].splitlines()]
        return [row[1].strip() for row in rows if len(row) > 1]

    def is_newer(self, one: str, other: str) -> bool:
        """Return whether a version is newer than another."""
        return run("dpkg", "--compare-versions", one, "gt", other)[0] == 0

    def pin(self, wanted: dict[str, Any], *, act: bool) -> list[dict[str, str]]:
        """Write apt's preferences.

        The first pin that fits counts: 0 comes before the pins of package_sources.
        """
        priority = 1001 if wanted["allow_downgrade"] else 999
        pins = {**wanted["packages"], **wanted["pins"]}
        stanzas = [
            f"Package: {names}\nPin: version {version}\nPin-Priority: {priority}\n"
            for names, version in pins.items()
        ]
        if wanted["never"]:
            stanzas.append(
                f"Package: {' '.join(wanted['never'])}\nPin: release *\nPin-Priority: -1\n"
            )
        path = APT_PREFERENCES / f"gcluster-0-version-{wanted['name']}"
        diff = write_text(path, HEAD + "\n".join(stanzas), act=act)
        return [diff] if diff else []

    def refresh(self) -> None:
        """Read the repositories' indexes again."""
        run("apt-get", "update", "--option=Acquire::Retries=2", timeout_s=INSTALL_TIMEOUT_S)

    def install(
        self, exact: dict[str, str], also: list[str], wanted: dict[str, Any]
    ) -> tuple[int, str]:
        """Install; return the status and what apt printed."""
        down = ["--allow-downgrades"] if wanted["allow_downgrade"] else []
        policy = (
            None if POLICY.exists() else write_text(POLICY, STARTS_NOTHING, act=True, mode=0o755)
        )
        try:
            return run(
                *("apt-get", "install", "--yes", "--no-install-recommends"),
                *("--allow-change-held-packages", "--option=DPkg::Lock::Timeout=900"),
                *(
                    "--option=Dpkg::Options::=--force-confdef",
                    "--option=Dpkg::Options::=--force-confold",
                ),
                *down,
                *[f"{name}={version}" for name, version in exact.items()],
                *also,
                timeout_s=INSTALL_TIMEOUT_S,
                environment={"DEBIAN_FRONTEND": "noninteractive"},
            )
        finally:
            if isinstance(policy, dict):
                POLICY.unlink()

    def hold(self, names: list[str], *, installed_only: bool, act: bool) -> list[str]:
        """Mark packages as held; return the names that were not."""
        names = [name.partition("=")[0] for name in names]
        held = run("apt-mark", "showhold")[1].splitlines()
        due = [
            name
            for name in names
            if name not in held and not (installed_only and run("dpkg-query", "--show", name)[0])
        ]
        if due and act:
            code, text = run("apt-mark", "hold", *due)
            if code:
                raise OSError(f"apt-mark hold: {text}")
        return due


class Dnf:
    """The packages of RHEL and its kin."""

    def installed(self, name: str) -> str:
        """Return the installed version; "" where it isn't."""
        form = "%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\n"
        code, text = run("rpm", "-q", "--queryformat", form, name)
        return "" if code else text.splitlines()[0]

    def offered(self, name: str) -> list[str]:
        """Return the versions that the repositories have."""
        form = "%{epoch}:%{version}-%{release}"
        _, text = run(
            *(
                "dnf",
                "--quiet",
                "repoquery",
                "--showduplicates",
                "--queryformat",
                f"{form}\n",
                name,
            ),
            timeout_s=INSTALL_TIMEOUT_S,
        )
        return [line.removeprefix("0:") for line in text.splitlines()]

    def is_newer(self, one: str, other: str) -> bool:
        """Return whether a version is newer than another."""
        return _numbers(one) > _numbers(other)

    def pin(self, wanted: dict[str, Any], *, act: bool) -> list[dict[str, str]]:
        """Do nothing: dnf's versions are locked when they are held."""
        del wanted, act
        return []

    def refresh(self) -> None:
        """Read the repositories' metadata again."""
        run("dnf", "--quiet", "clean", "expire-cache")

    def install(
        self, exact: dict[str, str], also: list[str], wanted: dict[str, Any]
    ) -> tuple[int, str]:
        """Install; return the status and what dnf printed."""
        others = [f"--exclude={name}" for name in wanted["never"]]
        exactly = [f"{name}-{version}" for name, version in exact.items()]
        back = [n for n, v in exact.items() if (h := self.installed(n)) and self.is_newer(h, v)]
        if back and wanted["allow_downgrade"]:
            code, text = run(
                *("dnf", "--assumeyes", *others, "downgrade", *exactly), timeout_s=INSTALL_TIMEOUT_S
            )
            if code:
                return code, text
        return run(
            *(
                "dnf",
                "--assumeyes",
                "--setopt=install_weak_deps=False",
                "--disableplugin=versionlock",
            ),
            *others,
            *("install", *exactly, *also),
            timeout_s=INSTALL_TIMEOUT_S,
        )

    def hold(self, names: list[str], *, installed_only: bool, act: bool) -> list[str]:
        """Lock packages at a version (NAME or NAME=VERSION); return the names that were not."""
        locked = run("dnf", "--quiet", "versionlock", "list")[1]
        due = []
        for item in names:
            name, _, version = item.partition("=")
            if installed_only and run("rpm", "-q", name)[0]:
                continue
            version = version or self.installed(name).rpartition(":")[2]
            lock = rf"^{re.escape(name)}-([0-9]+:)?{re.escape(version)}([.]|$)"
            if re.search(lock, locked, re.MULTILINE):
                continue
            due.append(name)
            if act:
                run("dnf", "--quiet", "versionlock", "delete", f"{name}-*")
                code, text = run("dnf", "--quiet", "versionlock", "add", f"{name}-{version}")
                if code:
                    raise OSError(f"dnf versionlock add {name}-{version}: {text}")
        return due


def package_manager() -> PackageManager:
    """Return this node's package manager."""
    return Apt() if shutil.which("apt-get") else Dnf()


def _numbers(version: str) -> list[int]:
    """Return what orders versions of one package: epoch first, then its numbers."""
    epoch, _, rest = version.rpartition(":")
    return [int(epoch or 0), *(int(number) for number in re.findall(r"\d+", rest))]
