"""The engine's command, `pulumi`: found or installed, and configured with a stack's place."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode

import msgspec

from ....schemas.derived.state_url import parse_state_url
from ...io.process import is_running, started_at
from ...provider import ProviderError, provider_error

if TYPE_CHECKING:
    from pulumi.automation import PulumiCommand


PAGE = "https://www.pulumi.com/docs/install/"


def find_roots(home: Path | None = None, *, path: str | None = None) -> list[Path]:
    """Return the folders whose bin/pulumi exists: of PATH, of the user, of earlier installs."""
    base = (home or Path.home()) / ".pulumi"
    on_path = shutil.which("pulumi", path=path)
    found = [Path(on_path).resolve().parent.parent] if on_path else []
    found += [base, base / "versions" / version("pulumi")]
    return [root for root in found if (root / "bin" / "pulumi").exists()]


def find_command(
    *,
    home: Path | None = None,
    path: str | None = None,
    install: Callable[[Path], PulumiCommand] | None = None,
) -> PulumiCommand:
    """Return the engine's command: the first with a matching version, else a fresh install of it.

    `install` gets the folder to install into; by default the SDK's own installer fetches the
    version of the SDK.

    Raises:
        ProviderError: GC965, with what was tried and what to do.
    """
    from pulumi.automation import PulumiCommand  # noqa: PLC0415  # heavy, and an extra
    from pulumi.automation.errors import InvalidVersionError  # noqa: PLC0415  # as above

    tried: list[str] = []
    for root in find_roots(home, path=path):
        try:
            return PulumiCommand(root=str(root))
        except (InvalidVersionError, OSError, subprocess.CalledProcessError) as error:
            tried.append(f"{root / 'bin' / 'pulumi'}: {error}")
    wanted = (home or Path.home()) / ".pulumi" / "versions" / version("pulumi")
    try:
        return (install or _install)(wanted)
    except Exception as error:  # noqa: BLE001  # the installer is a script from the web: anything
        tried.append(f"the installer: {_error_text(error)}")
    raise _not_found(tried)


def equip(cloud: str) -> None:
    """Find the engine, or install it, before anything is begun that needs it.

    Raises:
        ProviderError: GC965, or GC967 where the cloud's extra is not installed.
    """
    require(cloud)
    find_command()


def _install(root: Path) -> PulumiCommand:
    from pulumi.automation import PulumiCommand  # noqa: PLC0415  # heavy, and an extra

    return PulumiCommand.install(root=str(root))


def _not_found(tried: list[str]) -> ProviderError:
    wanted = version("pulumi")
    return provider_error(
        "GC965",
        f"the engine of cloud sites, the command pulumi {wanted}, is not here",
        detail="\n".join(tried),
        hint=f"install version {wanted} as in {PAGE} and put it on PATH; `gcluster plan` and "
        "`gcluster compile` work without it",
    )


def _error_text(error: Exception) -> str:
    output = getattr(error, "output", None)
    text = output.decode(errors="replace").strip() if isinstance(output, bytes) else ""
    return f"{error}: {text}" if text else str(error)


def require(cloud: str) -> None:
    """Go on where the cloud's extra is installed: the MODULES that its folder of stacks names.

    Raises:
        ProviderError: GC967 with the command that installs it.
    """
    modules: tuple[str, ...] = import_module(f"gcluster.stacks.{cloud}").MODULES
    missing = [module for module in modules if not _is_installed(module)]
    if missing:
        raise provider_error(
            "GC967",
            f"the parts for {cloud} are not installed: {', '.join(missing)}",
            hint=f"pip install 'gcluster[{cloud}]'",
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False


FILE = "file://"
FOLDER = "pulumi"
"""Stacks are kept in this folder of the cluster's state, next to journal and ledger."""


class StackPlace(msgspec.Struct, frozen=True, kw_only=True):
    """One stack: a site of a cluster."""

    cluster: str
    site: str
    state: str
    """The spec's state URL: file://, s3://, gs://, azblob://ACCOUNT/CONTAINER."""
    workdir: Path
    """0700 directory on this machine, kept between runs."""
    login: Mapping[str, str] = {}
    """Variables by which the cloud's provider logs in as gcluster does."""

    @property
    def project(self) -> str:
        """The project's name, which identifies the cluster."""
        return f"gcluster-{self.cluster}"

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.site

    @property
    def backend(self) -> str:
        """The URL that the engine is given."""
        return backend_url(self.state)

    def environment(self, passphrase: str) -> dict[str, str]:
        """Return the variables that only the engine's processes get in their environment.

        The passphrase is a secret: it must never be in arguments, in files or in logs.
        """
        account = parse_state_url(self.state).account
        return {
            **self.login,
            # The Go CDK takes a shared key of the account that the environment names, no other.
            **({"AZURE_STORAGE_ACCOUNT": account} if account else {}),
            "PULUMI_BACKEND_URL": self.backend,
            "PULUMI_CONFIG_PASSPHRASE": passphrase,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }


def backend_url(state: str) -> str:
    """Return the URL in Pulumi's form (pulumi/pulumi, pkg/backend/diy, read November 2026).

    The path behind a bucket or container is a prefix there too. A query is passed unchanged: Go CDK
    has region, endpoint, profile and others of s3, domain and protocol of azblob. Azure's account
    is in the query there (`storage_account`, Go CDK azureblob since 0.27) and is the host here. A
    file's path is plain in the spec, and percent-encoded there.

    Raises:
        ValueError: another scheme, or an azblob URL without a container.
    """
    at = parse_state_url(state)
    folder = "/".join(part for part in (at.path, FOLDER) if part)
    if at.scheme == "file":
        return f"{FILE}{quote(folder)}"
    account = [("storage_account", at.account)] if at.account else []
    options = [*account, *at.options.items()]
    query = f"?{urlencode(options)}" if options else ""
    return f"{at.scheme}://{at.bucket}/{folder}{query}"


def make_backend(place: StackPlace) -> None:
    """Create the folder of a file:// backend: the engine requires it to exist."""
    if place.backend.startswith(FILE):
        folder = Path(unquote(place.backend.removeprefix(FILE)))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.workdir.mkdir(mode=0o700, parents=True, exist_ok=True)


_OWNER = re.compile(r"created by \S+@(?P<host>\S+) \(pid (?P<pid>\d+)\)(?: at (?P<when>\S+))?")
_UNSURE_S = 60.0
"""A process that started so long after a lock was taken is not its owner, but another with its
number: after a restart of the machine most are. Clocks are set by less."""


def left_behind_by(refusal: str) -> tuple[int, ...] | None:
    """Return the processes that must end before the locks in the refusal may be released.

    (): each is of an ended process of this machine. None: one is of another machine, and never
    counts as stale: `gcluster unlock` breaks it by hand.
    """
    owners = _OWNER.findall(refusal)
    if not owners or any(host != socket.gethostname() for host, _, _ in owners):
        return None
    return tuple(int(pid) for _, pid, when in owners if _holds(int(pid), when))


def _holds(pid: int, when: str) -> bool:
    """Return whether the process runs that took a lock then."""
    since = started_at(pid)
    try:
        taken = datetime.fromisoformat(when).timestamp()
    except ValueError:
        since = None
    return is_running(pid) and (since is None or since < taken + _UNSURE_S)
