"""`gcluster init`: a commented spec to start from."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.operations.gitops.pipelines import Pipelines, write_pipelines
from ...schemas.spec.model import Name
from ..console import say

TEMPLATES = Path(__file__).parent / "templates"


class Ci(StrEnum):
    """Who runs the pipelines."""

    GITHUB = "github"
    GITLAB = "gitlab"
    FLUX = "flux"


class Kind(StrEnum):
    """Where the machines of the first site come from."""

    LOCAL = "local"
    BARE_METAL = "bare-metal"
    SSH_FLEET = "ssh-fleet"


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    path: Annotated[
        Path | None,
        typer.Argument(
            help="File to write, cluster.yaml; with --ci the top folder of a repository, this one.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind", help="Nodes on this machine, hosts that exist, or a cloud's list of them."
        ),
    ] = Kind.LOCAL,
    name: Annotated[
        str, typer.Option("--name", help="Name of the cluster: lower case, digits, hyphens.")
    ] = "demo",
    ci: Annotated[
        Ci | None,
        typer.Option("--ci", help="Write pipelines for a repository of specs instead."),
    ] = None,
    specs: Annotated[
        str, typer.Option("--specs", metavar="FOLDER", help="With --ci: where the specs are.")
    ] = "specs",
    branch: Annotated[
        str, typer.Option("--branch", help="With --ci: the branch that is applied.")
    ] = "main",
    repo: Annotated[
        str, typer.Option("--repo", metavar="URL", help="With --ci flux: the repository.")
    ] = "",
) -> Exit:
    """Write a commented spec to start from.

    A file that exists is never written over. With --ci: pipelines that check and plan on pull
    requests, apply what was planned behind a gate, and look for drift at night.
    """
    if ci is not None:
        return _pipelines(path or Path(), ci, specs, branch, repo)
    path = path or Path("cluster.yaml")
    text = (TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
    _check_name(name)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("name: demo\n", f"name: {name}\n", 1))
    except FileExistsError:
        raise failure(
            "GC945",
            f"{path} exists already and was left as it is",
            hint="give another path: gcluster init PATH",
        ) from None
    say(f"wrote {path}\n\n{_next_steps(path, kind)}")
    return Exit.OK


def _pipelines(top: Path, ci: Ci, specs: str, branch: str, repo: str) -> Exit:

    wanted = Pipelines(forge=ci.value, specs=specs.strip("/"), branch=branch, repo=repo)
    written = write_pipelines(top, wanted)
    say("\n".join(f"wrote {top / name}" for name in written.files))
    for name in written.stateless:
        say(f"{name} names no state: pipelines refuse it until it does (gcluster explain GC1131)")
    say("\nnext: " + "\n      ".join(written.by_hand))
    return Exit.OK


def _check_name(name: str) -> None:

    pattern = Name.__metadata__[0].pattern  # type: ignore[attr-defined]  # of Annotated
    if not re.match(pattern, name):
        raise failure(
            "GC946",
            f'"{name}" can\'t be the name of a cluster',
            hint="lower-case letters, digits and hyphens; starts with a letter; at most 32",
            exit_code=Exit.USAGE,
        )


def _next_steps(path: Path, kind: Kind) -> str:
    steps = [f"gcluster validate {path}", f"gcluster up {path}"]
    if kind is Kind.LOCAL:
        steps.insert(1, "gcluster doctor")
    else:
        steps.insert(0, f"edit {path}: the hosts are made up")
    return "next: " + "\n      ".join(steps)
