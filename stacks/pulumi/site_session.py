"""What working on one site of any cloud needs: its folder, the key of its nodes, its stack."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from gcluster.stacks.client_key import ensure_client_key, public_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.spec import CloudSite
    from gcluster.stacks.provider import SiteContext
    from gcluster.stacks.pulumi.engine import Engine


class SiteSession:
    """Made anew for each call of a provider, and lazy in all its parts; each cloud adds its own."""

    cloud: ClassVar[str]

    def __init__(self, context: SiteContext, catalog: Catalog) -> None:
        """Hold the context."""
        self._context = context
        self._catalog = catalog

    @property
    def _site(self) -> CloudSite:
        return cast("CloudSite", self._context.spec.sites[self._context.site])

    @property
    def folder(self) -> Path:
        """This site's own files on this machine."""
        folder = self._context.workdir / f"{self.cloud}-{self._context.site}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    @cached_property
    def private_key(self) -> Path:
        """The key that logs in to the nodes: the site's own, or one made for the cluster."""
        own = self._site.ssh.key
        return ensure_client_key(self._context.workdir) if own is None else Path(own).expanduser()

    def authorized_key(self) -> str:
        """Return its public half, which the nodes let in.

        Raises:
            ProviderError: GC968, it is not beside the private one.
        """
        return public_text(self.private_key)

    def _stack(self, program: Callable[[], None], total: int) -> Engine:
        """Return the site's stack. Its program has no secret, so the passphrase guards none."""
        from gcluster.stacks.pulumi.backend import StackPlace  # noqa: PLC0415  # for the engine only
        from gcluster.stacks.pulumi.engine import Engine  # noqa: PLC0415  # as above

        context = self._context
        place = StackPlace(
            cluster=context.spec.name,
            site=context.site,
            state=context.spec.state or (self.folder / "state").as_uri(),
            workdir=self.folder / "work",
        )
        return Engine(place, program, passphrase=context.cluster_id, emit=context.emit, total=total)
