"""Package resolution by apt, isolated from this machine: what a clean node would install."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import urllib.parse
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import msgspec

from ...schemas.structure.decoding import decode_yaml
from ..cluster.outcome import LifecycleError, failure
from .keys import exported

DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LIMIT_S = 600
_FIRST, _OTHERWISE = 600, 100
"""Priorities of a vendor's own packages and of its others, as role package_sources pins them."""
_URI = re.compile(r"^'(?P<url>[^']+)' (?P<file>\S+) (?P<size>\d+)")


class Archive(msgspec.Struct, frozen=True):
    """Repositories of a distribution below one URL."""

    url: str
    suites: list[str]
    components: list[str]
    architecture: str | None = None
    """As dpkg names it; None: it has all."""


class Distribution(msgspec.Struct, frozen=True):
    """A distribution as distributions.yaml describes it."""

    name: str
    keyring: str
    keyring_package: str
    archives: list[Archive]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A package as apt would take it."""

    name: str
    version: str
    architecture: str
    source: str
    url: str
    size: int
    sha256: str
    stanza: str
    """Its lines of the signed index, without Filename."""

    @property
    def file(self) -> str:
        """Name of its file in the bundle, without the version's epoch, as archives have it."""
        return f"{self.name}_{self.version.split(':', 1)[-1]}_{self.architecture}.deb"


def distributions() -> dict[str, Distribution]:
    """Read distributions.yaml."""
    content = Path(__file__).with_name("distributions.yaml").read_bytes()
    return decode_yaml(content, dict[str, Distribution])


class AptRoot:
    """An empty node of one distribution and architecture, as an apt root directory."""

    def __init__(self, folder: Path, distribution: str, architecture: str) -> None:
        """Prepare `folder`; nothing is fetched yet.

        Raises:
            LifecycleError: GC939: packages of this distribution can't be resolved here.
        """
        self.distribution = distribution
        self._architecture = DEBIAN_ARCHITECTURES[architecture]
        self._folder = folder
        self._indexes: list[str] = []
        self._sources: dict[str, str] = {}
        described = distributions().get(distribution)
        if described is None:
            raise _impossible(f"bundles of packages for {distribution} are not built yet")
        if not Path(described.keyring).exists():
            raise _impossible(
                f"the keys of {distribution}'s archive are not on this machine",
                hint=f"sudo apt-get install -y {described.keyring_package}",
            )
        self._described = described
        for part in (
            "etc/preferences.d",
            "etc/apt.conf.d",
            "lists/partial",
            "cache/archives/partial",
        ):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "status").write_bytes(b"")
        (folder / "apt.conf").write_text(self._configuration(), encoding="utf-8")

    def _configuration(self) -> str:
        here, arch = self._folder, self._architecture
        return "".join(
            f"{line};\n"
            for line in (
                f'Dir "{here}"', 'Dir::Etc "etc"', f'Dir::State "{here}"',
                f'Dir::State::status "{here}/status"', f'Dir::State::lists "{here}/lists"',
                f'Dir::Cache "{here}/cache"', 'Dir::Etc::Trusted "/dev/null"',
                'Dir::Etc::TrustedParts "/dev/null"', f'APT::Architecture "{arch}"',
                f'APT::Architectures {{ "{arch}"; }}', 'APT::Install-Recommends "false"',
                'APT::Sandbox::User "root"', 'Acquire::Languages "none"', 'Acquire::Retries "3"',
                'pkgCacheGen::ForceEssential "none"',
            )
        )  # fmt: skip

    def read_indexes(self, repositories: Iterable[dict[str, Any]], keys: Path) -> None:
        """Fetch the signed indexes of the distribution and of vendors' repositories.

        Args:
            repositories: as role package_sources takes them.
            keys: folder for the vendors' keys.

        Raises:
            LifecycleError: GC939 with apt's message: a mirror is unreachable, or a key doesn't
                match.
        """
        lines, pins = [], []
        described = self._described
        for archive in described.archives:
            suites = archive.suites if archive.architecture in {None, self._architecture} else ()
            self._sources[archive.url] = described.name
            for suite in suites:
                lines.append(_line(described.keyring, archive.url, suite, archive.components))
                self._indexes.append(f"{archive.url}/dists/{suite}/InRelease")
        for repository in repositories:
            keyring = exported(repository, keys)
            url, suite = repository["url"].rstrip("/"), repository["suite"]
            lines.append(_line(str(keyring), f"{url}/", suite, repository["components"]))
            pins.append(_pins(repository))
            place = suite.strip("/") if suite.endswith("/") else f"dists/{suite}"
            self._indexes.append("/".join(part for part in (url, place, "InRelease") if part))
            self._sources[url] = repository["name"]
        (self._folder / "etc/sources.list").write_text("".join(lines), encoding="utf-8")
        (self._folder / "etc/preferences.d/vendors").write_text("\n".join(pins), encoding="utf-8")
        self._apt("apt-get", "update", "--error-on=any", what="its indexes can't be read")

    def resolved(self, packages: Iterable[str]) -> list[Found]:
        """Return all that a clean node installs for these packages, in one transaction.

        Raises:
            LifecycleError: GC939 with apt's message: a package is missing or conflicts.
        """
        printed = self._apt(
            *("apt-get", "install", "--yes", "-qq", "--print-uris", "--no-install-recommends"),
            *("?essential", *sorted(set(packages))),
            what="its packages don't fit together",
        )
        urls = {m["file"]: m["url"] for line in printed.splitlines() if (m := _URI.match(line))}
        wanted = [_parts(file) for file in urls]
        shown = self._apt(
            *("apt-cache", "show", "--no-all-versions"),
            *[f"{name}:{arch}={version}" for name, version, arch in wanted],
            what="its packages can't be shown",
        )
        return sorted(self._found(shown, urls), key=lambda found: (found.name, found.file))

    def _found(self, shown: str, urls: dict[str, str]) -> Iterable[Found]:
        seen = set()
        for stanza in shown.split("\n\n"):
            fields = dict(re.findall(r"(?m)^([A-Za-z0-9-]+): *(.*)$", stanza))
            if "Package" not in fields:
                continue
            named = (fields["Package"], fields["Version"], fields["Architecture"])
            file = f"{'_'.join(part.replace(':', '%3a') for part in named)}.deb"
            url = urls.get(file, "")
            if file in seen or not urllib.parse.unquote(url).endswith(
                urllib.parse.unquote(fields["Filename"].removeprefix("./"))
            ):
                continue
            seen.add(file)
            source = next(name for root, name in self._sources.items() if url.startswith(root))
            yield Found(
                name=fields["Package"],
                version=fields["Version"],
                architecture=fields["Architecture"],
                source=source,
                url=url,
                size=int(fields["Size"]),
                sha256=fields["SHA256"],
                stanza="".join(
                    f"{line}\n" for line in stanza.strip().splitlines() if line[:9] != "Filename:"
                ),
            )
        if missing := urls.keys() - seen:
            raise _impossible(f"{self.distribution}: no signed index describes {min(missing)}")

    def indexes(self) -> dict[str, str]:
        """Return URL of each signed index -> SHA-256 of it, as they were read."""
        found = {}
        for url in self._indexes:
            name = urllib.parse.quote(url.split("://", 1)[-1], safe="/~+.:@-").replace("/", "_")
            for file in (self._folder / "lists").glob(name.replace("[", "[[]")):
                found[url] = hashlib.sha256(file.read_bytes()).hexdigest()
        return found

    def date(self) -> str:
        """Return the date of the newest index, as Release files have it."""
        dates = []
        for file in (self._folder / "lists").glob("*InRelease"):
            dates += re.findall(
                r"(?m)^Date: (.*)$", file.read_text(encoding="utf-8", errors="replace")
            )
        return max(dates, key=parsedate_to_datetime, default="Thu, 01 Jan 1970 00:00:00 UTC")

    def _apt(self, *argv: str, what: str) -> str:
        environment = {**os.environ, "APT_CONFIG": str(self._folder / "apt.conf"), "LC_ALL": "C"}
        try:
            done = subprocess.run(
                argv, env=environment, capture_output=True, text=True, check=False, timeout=_LIMIT_S
            )
        except FileNotFoundError:
            raise _impossible(
                "apt is not on this machine: it resolves the packages",
                hint="run gcluster bundle on Debian or Ubuntu, or in a container of theirs",
            ) from None
        except subprocess.TimeoutExpired:
            raise _impossible(f"{self.distribution}: no answer within {_LIMIT_S} s") from None
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line[:2] in {"E:", "W:"}]
            details = [
                line for line in done.stdout.splitlines() if "Depends:" in line or "Err:" in line
            ]
            raise _impossible(
                f"{self.distribution}: {what}: {errors[0] if errors else argv[0] + ' failed'}",
                detail="\n".join([*details, *errors][:20]),
            )
        return done.stdout


def _parts(file: str) -> tuple[str, str, str]:
    """Return (name, version, architecture) of a package's file name."""
    name, version, rest = file.split("_", 2)
    return name, urllib.parse.unquote(version), rest.removesuffix(".deb")


def _line(keyring: str, url: str, suite: str, components: list[str]) -> str:
    return f"deb [signed-by={keyring}] {url} {suite} {' '.join(components)}\n"


def _pins(repository: dict[str, Any]) -> str:
    """Return preferences for a vendor's repository, as role package_sources writes them."""
    host = urllib.parse.urlsplit(repository["url"]).hostname or ""
    own = " ".join(repository["packages"])
    first = f'Package: {own}\nPin: origin "{host}"\nPin-Priority: {_FIRST}\n\n' if own else ""
    return f'{first}Package: *\nPin: origin "{host}"\nPin-Priority: {_OTHERWISE}\n'


def _impossible(summary: str, *, detail: str = "", hint: str = "") -> LifecycleError:
    return failure("GC939", summary, detail=detail, hint=hint)
