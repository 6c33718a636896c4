"""The catalog files that a spec names: read when a check first asks for a machine type."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .diagnostics import Diagnostic

if TYPE_CHECKING:
    from .catalog import Catalog


class OwnCatalogs:
    """A spec's own catalogs over gcluster's. What is wrong with them is kept in `diagnostics`."""

    def __init__(
        self, written: Iterable[str], folder: Path | None, *, given: Catalog | None = None
    ) -> None:
        """Know the files.

        Args:
            written: paths as in the spec.
            folder: where they start; None: the current folder.
            given: a catalog to use instead of all this.
        """
        start = folder or Path()
        self._given = given
        self.paths = tuple(start / name for name in written)
        self.diagnostics: tuple[Diagnostic, ...] = ()

    def load(self) -> Catalog:
        """Return the catalog; files that are wrong are left out and reported."""
        if self._given is not None:
            return self._given
        from .catalog import CatalogError, load_catalog  # noqa: PLC0415  # as late as possible

        good: list[Path] = []
        for path in self.paths:
            try:
                load_catalog([path])
            except CatalogError as error:
                self.diagnostics += error.diagnostics
            else:
                good.append(path)
        return msgspec.structs.replace(load_catalog(good), complete=not self.diagnostics)
