"""A cluster as commands see it: its spec, its state, and its places on this machine."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from shlex import quote

import msgspec

from ...inventory.compile import CompiledCluster
from ...inventory.compile.kubernetes import KubernetesAt
from ...schemas.catalog import Catalog, CatalogError, load_catalog
from ...schemas.derived.state_url import parse_state_url
from ...schemas.diagnostics import Diagnostic
from ...schemas.load import Loaded, load, load_text
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ...schemas.stack.bundle import BundleManifest, decode
from ..kubernetes.release.source import bundled_at, kubernetes_at
from ..planning.policy import refuse_breaches
from ..planning.preflight.offline import refuse_unmakeable
from ..planning.purchase.failover import sites_now
from ..secrets.makers import make_secrets, secret_versions
from ..secrets.vault import SecretVault
from ..state import Applied, EventLog, Ledger, StateStore, newest_applied, store_applied
from . import places
from .index import IndexEntry, find, known_clusters, remember
from .outcome import Exit, LifecycleError, failure

CERTIFICATE_KEY = "certificate.json"
"""State key of the last gate's certificate."""


class Cluster:
    """One cluster: the spec to act on and handles on its state. Opening it changes nothing."""

    def __init__(
        self,
        *,
        spec: ClusterSpec,
        text: str,
        spec_path: Path,
        state_url: str,
        warnings: tuple[Diagnostic, ...] = (),
        catalogs: Mapping[str, bytes] | None = None,
        failover: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Hold the parts; use `open_cluster` to find them."""
        self.spec = spec
        self.failover = failover or {}  # pool -> its sites in order, for pools with several
        self.catalogs = catalogs or {}
        self.warnings = warnings
        self.spec_text = text
        self.spec_path = spec_path
        self.state_url = state_url
        self.why = ""  # a commit, or what fell due: the journal keeps it with each run

    @property
    def name(self) -> str:
        """Name of the cluster."""
        return self.spec.name

    @property
    def spec_hash(self) -> str:
        """SHA-256 of the spec's meaning (not of its comments or layout), in hex."""
        canonical = msgspec.json.encode(self.spec, enc_hook=str, order="sorted")
        return hashlib.sha256(canonical).hexdigest()

    @cached_property
    def catalog(self) -> Catalog:
        """Machine types, fabric classes and providers, with the user's own over gcluster's.

        Raises:
            LifecycleError: a file that the state keeps can't be read by this version.
        """
        try:
            return load_catalog(contents=self.catalogs)
        except CatalogError as error:
            hint = f"a catalog file that the state of {self.name} keeps from another version of "
            hint += "gcluster: use that version, or run `gcluster up` with the file put right"
            findings = (msgspec.structs.replace(d, hint=hint) for d in error.diagnostics)
            raise LifecycleError(*findings, exit_code=Exit.SPEC) from None

    @cached_property
    def bundle(self) -> BundleManifest | None:
        """What the nodes take all packages and files from; None: from the sources themselves.

        `up --bundle` sets it, and it stays until `up --no-bundle`.
        """
        applied = newest_applied(self.store)
        return None if applied is None or applied.bundle is None else decode(applied.bundle)

    @cached_property
    def kubernetes(self) -> KubernetesAt | None:
        """Where nodes take Kubernetes from: their bundle, our own build; None: packages, Slurm."""
        if not isinstance(self.spec.scheduler, KubernetesScheduler):
            return None
        if self.bundle is not None and self.bundle.kubernetes is not None:
            return bundled_at(self.bundle.kubernetes)
        applied = newest_applied(self.store)
        return kubernetes_at(self.spec, None if applied is None else applied.kubernetes)

    def keep_spec(self) -> None:
        """Store the spec that is being applied, with its catalog files and bundles' manifests.

        A bundle of Kubernetes that is only planned is none yet: simulated nodes get nothing of it.
        """
        kubernetes = self.kubernetes
        built = kubernetes is not None and kubernetes.manifest.is_built
        applied = Applied(
            spec=self.spec_text,
            catalogs=dict(sorted(self.catalogs.items())),
            bundle=None if self.bundle is None else self.bundle.encode(),
            kubernetes=kubernetes.manifest.encode() if kubernetes and built else None,
        )
        store_applied(self.events, applied)

    @cached_property
    def store(self) -> StateStore:
        """The cluster's state."""
        return StateStore.open(self.state_url, target=quote(str(self.spec_path)))

    @cached_property
    def id(self) -> str:
        """Random id of the state; before `identify` a placeholder that matches nothing."""
        if self.store.identity() is None:
            return hashlib.sha256(self.state_url.encode()).hexdigest()[:16]
        return self._remembered(self.store.identify(self.name).id)

    def identify(self) -> None:
        """Give the state its id, the first that is ever written into it; safe to repeat.

        Raises:
            LifecycleError: the state belongs to a cluster of another name, or can't be written.
        """
        stand_in, made = self.id, self.store.identify(self.name).id
        if stand_in == made:
            return
        shutil.rmtree(places.work_path(stand_in), ignore_errors=True)
        self.__dict__.pop("vault", None)  # it was opened under the other id
        self.id = self._remembered(made)

    def _remembered(self, identity: str) -> str:
        """Let this machine find the cluster by its name from now on; return its id."""
        entry = IndexEntry(
            id=identity, name=self.name, spec_path=str(self.spec_path), state_url=self.state_url
        )
        remember(entry)
        return identity

    @cached_property
    def events(self) -> EventLog:
        """The only log: journal and ledger are folds of it."""
        return EventLog(self.store)

    @cached_property
    def ledger(self) -> Ledger:
        """The desired and the existing resources."""
        return Ledger(self.events)

    @cached_property
    def vault(self) -> SecretVault:
        """The cluster's secrets, encrypted in its state."""
        keys, folder = places.config_home() / "keys", self.spec_path.parent
        return SecretVault.open(self.store, self.spec.secrets, self.id, keys, folder)

    def secret_versions(self, compiled: CompiledCluster) -> dict[str, str]:
        """Return secret -> version id for stamps; "new" for one not made yet, or changed."""
        return secret_versions(self.vault, self.spec, compiled.secrets)

    def make_secrets(self, compiled: CompiledCluster) -> dict[str, str]:
        """Make or read the secrets that the steps need; return the version ids. Raises GC959."""
        make_secrets(self.vault, self.spec, compiled.secrets)
        return self.secret_versions(compiled)

    @property
    def workdir(self) -> Path:
        """0700 directory on this machine for client keys and known hosts; removed by down."""
        return places.private_directory(places.work_path(self.id))

    def run_directory(self, run: str) -> Path:
        """Return the directory of one run's artifacts (logs, playbooks, Ansible's own)."""
        return places.private_directory(places.run_path(self.id, run))

    @property
    def certificate_path(self) -> str:
        """Where the certificate is, as a person would open it."""
        place = parse_state_url(self.state_url)
        at = self.state_url.partition("?")[0].rstrip("/") if place.is_shared else place.path
        return f"{at}/{CERTIFICATE_KEY}"

    @cached_property
    def applied_spec(self) -> ClusterSpec | None:
        """The spec that was last applied, or begun to be; None when none ever was."""
        applied = newest_applied(self.store)
        if applied is None:
            return None
        return load_text(applied.spec, file="spec.yaml", check=False).spec

    @property
    def was_applied(self) -> bool:
        """Whether an `up` was ever begun."""
        return newest_applied(self.store) is not None


def open_cluster(
    target: str, *, running: bool = False, again: frozenset[str] = frozenset()
) -> Cluster:
    """Open a cluster by the path of its spec or by its name.

    Args:
        target: a YAML file, or the name of a cluster in this machine's index.
        running: use the last applied spec, not the file's current content; needed by commands that
            observe or end a running cluster, which must work while the file is being edited.
        again: pools that are to be bought from the start: they are at the first of their sites.

    Raises:
        LifecycleError: the spec has errors (exit code SPEC), a policy of its folder is violated
            (exit code REFUSED), or no such cluster is known.
    """
    entry = None if _is_path(target) else find(target)
    path = Path(entry.spec_path) if entry else Path(target)
    applied = _try_applied(entry.state_url, path) if entry and running else None
    if entry and (applied is not None or not path.exists()):
        cluster = applied or open_applied(entry.state_url, path)
        if not running:
            applied_text = load_text(cluster.spec_text, file="spec.yaml", check=False)
            cluster.warnings = refuse_breaches(path, applied_text, catalog=cluster.catalog)
        return cluster
    loaded = load(path)
    if loaded.spec is None:
        applied = _applied_cluster_of(loaded, path) if running else None
        if applied is not None:
            return applied
        raise SpecError(loaded)
    state_url = entry.state_url if entry else _state_url(loaded.spec, path)
    if running and (_applied := _try_applied(state_url, path)):
        return _applied
    loaded = _where_it_is(loaded, path, state_url, again)
    if loaded.spec is None:
        raise SpecError(loaded)
    judged = () if running else refuse_breaches(path, loaded)
    refuse_unmakeable(loaded)
    return Cluster(
        spec=loaded.spec,
        text=loaded.whole_text,
        spec_path=path.resolve(),
        state_url=state_url,
        warnings=(*loaded.diagnostics, *judged),
        failover=loaded.failover,
        catalogs={
            f"{number:02d}.yaml": file.read_bytes() for number, file in enumerate(loaded.catalogs)
        },
    )


def _where_it_is(loaded: Loaded, path: Path, state_url: str, again: frozenset[str]) -> Loaded:
    """Return the spec with each pool of several sites at the one that the state says."""
    if not loaded.failover or loaded.spec is None:
        return loaded
    log = EventLog(StateStore.open(state_url, target=quote(str(path))))
    sites = sites_now(loaded.failover, log.read(), again)
    if all(loaded.spec.pools[pool].site == site for pool, site in sites.items()):
        return loaded
    return load(path, sites=sites)


class StatePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cluster's state is, found without reading it."""

    path: Path
    """Of the spec; it need not exist."""
    state_url: str
    loaded: Loaded | None
    """The spec file as it is now; None: there is none."""


def find_state(target: str) -> StatePlace:
    """Return where the state of a cluster is, by the path of its spec or by its name.

    Raises:
        LifecycleError: neither the file nor this machine's index has it (GC907), or the file has
            errors.
    """
    entry = None if _is_path(target) else find(target)
    path = Path(entry.spec_path if entry else target)
    loaded = load(path) if path.exists() or path.is_symlink() else None
    if not (path.is_symlink() and not path.exists()):  # a link that leads nowhere, or to itself
        path = path.resolve()
    if entry:
        return StatePlace(path=path, state_url=entry.state_url, loaded=loaded)
    if loaded is not None and loaded.spec is not None:
        return StatePlace(path=path, state_url=_state_url(loaded.spec, path), loaded=loaded)
    urls = {e.state_url for e in known_clusters() if e.spec_path == str(path)}
    if len(urls) == 1:
        return StatePlace(path=path, state_url=urls.pop(), loaded=loaded)
    if loaded is not None:
        raise SpecError(loaded)
    hint = "give the path of the cluster's spec as it was applied"
    raise failure("GC907", f"there is no file {path}", hint=hint, exit_code=Exit.USAGE)


class SpecError(LifecycleError):
    """The spec has errors; `loaded` carries the source text for the excerpts."""

    def __init__(self, loaded: Loaded) -> None:
        """Hold the diagnostics and the text they point into."""
        super().__init__(*loaded.diagnostics, exit_code=Exit.SPEC)
        self.loaded = loaded


def _is_path(target: str) -> bool:
    return "/" in target or target.endswith((".yaml", ".yml")) or Path(target).is_file()


def _state_url(spec: ClusterSpec, path: Path) -> str:
    if spec.state is not None:
        return spec.state
    return f"file://{path.resolve().parent / '.gcluster' / spec.name}"


def _applied_cluster_of(loaded: Loaded, path: Path) -> Cluster | None:
    """Find the running cluster of a spec file that is no longer readable.

    It is found by the file's `name` key or, where that is missing too, by the path in this
    machine's index.
    """
    data = loaded.document.data if loaded.document is not None else None
    name = data.get("name") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(name, str):
        state = data.get("state")
        default = f"file://{path.resolve().parent / '.gcluster' / name}"
        applied = _try_applied(state if isinstance(state, str) else default, path)
        if applied is not None:
            return applied
    urls = [e.state_url for e in known_clusters() if e.spec_path == str(path.resolve())]
    return _try_applied(urls[0], path) if len(urls) == 1 else None


def _try_applied(state_url: str, path: Path) -> Cluster | None:
    if state_url.startswith("file://") and not Path(state_url.removeprefix("file://")).is_dir():
        return None
    applied = newest_applied(StateStore.open(state_url, target=quote(str(path))))
    if applied is None:
        return None
    # What runs was checked by the version that applied it: a later check must not lock it away.
    loaded = load_text(applied.spec, file=f"{state_url}/spec.yaml", check=False)
    if loaded.spec is None:
        raise SpecError(loaded)
    return Cluster(
        spec=loaded.spec,
        text=loaded.text,
        spec_path=path.resolve(),
        state_url=state_url,
        catalogs=applied.catalogs,
    )


def open_applied(state_url: str, path: Path) -> Cluster:
    """Open what was last applied, from a state alone. Raises GC906: nothing ever was."""
    cluster = _try_applied(state_url, path)
    if cluster is None:
        raise failure(
            "GC906",
            f"nothing was ever applied from {path}, or its state at {state_url} is gone",
            hint=f"gcluster state repair {path}, where there was one; else gcluster up {path}",
        )
    return cluster
