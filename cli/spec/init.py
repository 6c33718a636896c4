"""`gcluster init`: a commented spec to start from."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.operations.gitops.pipelines import Pipelines, write_pipelines
from ...schemas.spec.model import Name
from ..console import can_ask, say
from ..new_file import write_new
from ..render.spec.starter import DEFAULTS, MOST_NODES, NO_REGION, Wish, starter_spec


class Ci(StrEnum):
    """Who runs the pipelines."""

    GITHUB = "github"
    GITLAB = "gitlab"
    FLUX = "flux"


class Provider(StrEnum):
    """Where the machines come from."""

    LOCAL = "local"
    BARE_METAL = "bare-metal"
    SSH_FLEET = "ssh-fleet"
    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    OCI = "oci"


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    path: Annotated[
        Path | None,
        typer.Argument(
            help="File to write, cluster.yaml; with --ci the top folder of a repository, this one.",
            show_default=False,
        ),
    ] = None,
    provider: Annotated[
        Provider | None,
        typer.Option(
            "--provider",
            help="Nodes on this machine (local), hosts that exist, a GPU cloud's list of hosts, or "
            "a cloud; default: prompt, or local without a terminal.",
            show_default=False,
        ),
    ] = None,
    machine: Annotated[
        str,
        typer.Option("--machine", metavar="TYPE", help="Machine type: `gcluster machines` lists."),
    ] = "",
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, max=MOST_NODES, help="Nodes with GPUs; default: 4.")
    ] = 4,
    region: Annotated[
        str, typer.Option("--region", help="Region of a cloud; default: one that has the machine.")
    ] = "",
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
    """Write a commented spec to start from, for any provider.

    Without options it prompts for provider, machine and number of nodes. A file that exists is
    never written over. With --ci: pipelines that check and plan on pull requests, apply what was
    planned behind a gate, and look for drift at night.
    """
    of_spec: dict[str, object] = {"--provider": provider, "--machine": machine, "--region": region}
    of_pipelines: dict[str, object] = {
        "--specs": specs != "specs",
        "--branch": branch != "main",
        "--repo": repo,
    }
    if ci is not None:
        _refuse(of_spec, "is of a spec: leave it out, or leave out --ci")
        return _pipelines(path or Path(), ci, specs, branch, repo)
    _refuse(of_pipelines, "goes with --ci")
    path = path or Path("cluster.yaml")
    _check_name(name)
    if provider is None and not machine and can_ask():
        provider = Provider(_choice("provider", [*Provider], Provider.LOCAL))
        machine = typer.prompt("machine type", default=DEFAULTS[provider])
        nodes = _number("nodes with GPUs", default=nodes, most=MOST_NODES)
    provider = provider or Provider.LOCAL
    if provider in NO_REGION:
        _refuse({"--region": region}, f"is of a cloud: {provider} has none")
    wish = Wish(provider=provider, name=name, machine=machine, nodes=nodes, region=region)
    text = starter_spec(wish)
    write_new(path, text, hint="give another path: gcluster init PATH")
    say(f"wrote {path}\n\n{_next_steps(path, provider)}")
    return Exit.OK


def _refuse(given: dict[str, object], why: str) -> None:
    """Raise LifecycleError (GC941) where one of these options was given."""
    for option, value in given.items():
        if value:
            hint = "gcluster init --help"
            raise failure("GC941", f"{option} {why}", hint=hint, exit_code=Exit.USAGE)


def _choice(what: str, known: list[Provider], default: Provider) -> str:
    """Prompt until one of some words is typed."""
    while (
        answer := typer.prompt(f"{what} ({', '.join(known)})", default=default.value)
    ) not in known:
        say(f"{answer} is none of them")
    return str(answer)


def _number(what: str, *, default: int, most: int) -> int:
    """Prompt until a number from 1 to `most` is typed."""
    while not 1 <= (answer := int(typer.prompt(what, default=default))) <= most:
        say(f"a number from 1 to {most}")
    return answer


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


def _next_steps(path: Path, provider: Provider) -> str:
    steps = [f"gcluster validate {path}", f"gcluster up {path}"]
    if provider is Provider.LOCAL:
        steps.insert(1, "gcluster doctor")
    elif provider in {Provider.BARE_METAL, Provider.SSH_FLEET}:
        steps.insert(0, f"edit {path}: the hosts are made up")
    else:
        steps.insert(0, f'edit {path}: lines that say "your"')
        steps.insert(2, f"gcluster plan {path}  # what is made, and what it costs")
    return "next: " + "\n      ".join(steps)
