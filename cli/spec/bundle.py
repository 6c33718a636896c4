"""`gcluster bundle`: a folder with all that a site without a network is installed from."""

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.bundle.addons import lock_addons
from ...lifecycle.bundle.check import check_bundle
from ...lifecycle.bundle.collect import collect
from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...lifecycle.kubernetes.release.registry import fetched
from ...lifecycle.kubernetes.release.source import bring
from ..console import emit, say
from ..options import Format, OutputFormat, complete_spec
from ..render.document import document
from ..render.progress import open_progress


def command(  # noqa: PLR0917  # typer passes them by name
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="[SPEC]",
            help="Path of a spec. None with --check.",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder of the bundle.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ROLE", help="Just what this role needs; repeatable."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="DIR", help="Look at every file of a bundle; needs no network."
        ),
    ] = None,
    bundle_key: Annotated[
        str | None,
        typer.Option(
            "--bundle-key",
            metavar="FINGERPRINT",
            help="With --check: the one key that may have signed it.",
        ),
    ] = None,
    kubernetes: Annotated[
        str | None,
        typer.Option(
            "--kubernetes",
            metavar="modules|VERSION",
            help="No spec: Kubernetes alone, built from its Go modules or as released (1.35.4).",
        ),
    ] = None,
    digests: Annotated[
        Path | None,
        typer.Option(
            "--digests",
            metavar="FILE",
            help="No bundle: only the digests of Kubernetes' add-ons, as a catalog file.",
        ),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Collect what a spec needs for a site without a network.

    What is there and right isn't fetched again; interrupted, the same command goes on.
    """
    if check is not None:
        if spec or out or only or kubernetes or digests:
            raise _usage("--check takes no spec, no --out, no --only, --kubernetes or --digests")
        return _check(check, bundle_key, fmt)
    if digests is not None:
        if spec is None or out or only or kubernetes:
            raise _usage("--digests takes a spec, no --out, no --only and no --kubernetes")
        return _digests(Path(spec), digests, fmt)
    if kubernetes is not None:
        if spec or only or out is None:
            raise _usage("--kubernetes takes --out DIR, no spec and no --only")
        return _kubernetes(kubernetes, out, fmt)
    if spec is None or out is None:
        raise _usage("a spec and --out DIR or --digests FILE are needed, or --check DIR")

    with open_progress(fmt.value) as report:
        made = collect(Path(spec), out, tuple(sorted(set(only or ()))), report)
    if fmt is Format.JSON:
        emit(document(made))
    else:
        say(
            f"{made.packages} packages and {made.files} files, {made.size / 1e6:.1f} MB, "
            f"in {made.out}\nsigned by {made.key_fingerprint}\n"
            f"there: gcluster up {spec} --bundle {made.out} --bundle-key {made.key_fingerprint}"
        )
        if made.catalog:
            say(f"digests of add-ons: name {made.catalog} under catalog: in the spec")
    return Exit.OK


def _digests(spec: Path, file: Path, fmt: Format) -> Exit:

    with open_progress(fmt.value) as report:
        addons = lock_addons(spec, file, report, fetched)
    if fmt is Format.JSON:
        known = {addon.name: addon.digest for addon in addons}
        emit(document({"catalog": str(file) if addons else None, "addons": known}))
    elif not addons:
        say(f"{spec} needs no add-ons; nothing was written")
    else:
        images = sum(len(addon.images) for addon in addons)
        say(
            f"{len(addons)} add-ons and {images} images, each with its digest, in {file}\n"
            f"commit it, and name it under catalog: in {spec}"
        )
    return Exit.OK


def _kubernetes(what: str, out: Path, fmt: Format) -> Exit:

    with open_progress(fmt.value) as report:
        made = bring(what, out, report)
    if fmt is Format.JSON:
        emit(document(made))
    else:
        say(
            f"Kubernetes {made.kubernetes} from {made.made_from}: {len(made.images)} images, "
            f"{made.size / 1e6:.0f} MB, in {out}"
        )
    return Exit.OK


def _check(folder: Path, key: str | None, fmt: Format) -> Exit:

    manifest = check_bundle(folder, key)
    packages = sum(len(repository.packages) for repository in manifest.repositories)
    if fmt is Format.JSON:
        emit(
            document(
                {
                    "bundle": str(folder),
                    "cluster": manifest.cluster,
                    "key_fingerprint": manifest.key_fingerprint,
                    "packages": packages,
                    "files": len(manifest.files),
                    "size": manifest.size,
                }
            )
        )
    else:
        say(
            f"{folder} is whole: {packages} packages and {len(manifest.files)} files, "
            f"{manifest.size / 1e6:.1f} MB, for {manifest.cluster}\n"
            f"signed by {manifest.key_fingerprint}"
        )
    return Exit.OK


def _usage(summary: str) -> LifecycleError:

    return failure("GC941", summary, hint="gcluster bundle --help", exit_code=Exit.USAGE)
