"""Whether the parts for a cloud are installed, asked without importing them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from ..provider import provider_error


def require(cloud: str) -> None:
    """Go on where the cloud's extra is installed: the MODULES that its folder of stacks names.

    Raises:
        ProviderError: GC967 with the command that installs it.
    """
    modules: tuple[str, ...] = import_module(f"gcluster.stacks.{cloud}").MODULES
    missing = [module for module in modules if not _there(module)]
    if missing:
        raise provider_error(
            "GC967",
            f"the parts for {cloud} are not installed: {', '.join(missing)}",
            hint=f"pip install 'gcluster[{cloud}]'",
        )


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False
