"""Finds the engine's command, `pulumi`, or installs the version that fits the SDK."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..provider import ProviderError, provider_error

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
    """Return the engine's command: the first that is there and fits, else a fresh install of it.

    `install` gets the folder to install into; by default the SDK's own installer fetches the
    version of the SDK.

    Raises:
        ProviderError: GC965 says what was tried and what to do.
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
        hint=f"install version {wanted} as {PAGE} tells and put it on PATH; `gcluster plan` and "
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
