"""What the subverbs of `gcluster size` read of their options, and the spec that they write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...inventory.size.hugging_face import ConfigError, read_config
from ...inventory.size.model import Model, presets
from ...inventory.size.serving import ServingPlan
from ...inventory.size.training import Plan
from ...lifecycle.cluster.outcome import Exit, LifecycleError
from ...schemas.catalog import Catalog, CatalogError, load_catalog
from ...schemas.cost.bill import bill
from ...schemas.diagnostics import closest, listing
from ...schemas.load import load_text
from ...schemas.spec.units import Duration, Percent
from ..new_file import write_new
from ..render.spec.starter import MOST_NODES, NO_REGION, Wish, starter_spec
from .own import usage

_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kKMGBT]?)")
_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_MOST_MODEL_BYTES = 2**20


def write(path: Path, name: str, best: Plan | ServingPlan, known: Catalog) -> dict[str, Any]:
    """Write the spec of a plan; return what it costs, as `gcluster cost` says."""
    provider = known.machines[best.machine].sites[0]
    if provider in NO_REGION and best.nodes > MOST_NODES:
        raise usage(
            f"--spec: {best.nodes:,} hosts are more than the {MOST_NODES} that a first spec lists",
            "gcluster init --provider bare-metal writes one to extend",
        )
    region = (best.price.region if best.price else None) or ""
    text = starter_spec(
        Wish(provider=provider, name=name, machine=best.machine, nodes=best.nodes, region=region)
    )
    loaded = load_text(text, file=str(path))
    errors = [each for each in loaded.diagnostics if each.is_error]
    if loaded.spec is None or errors:
        raise LifecycleError(*errors, exit_code=Exit.SPEC)
    costs = bill(loaded.spec, known)
    write_new(path, text, hint="give another path: --spec FILE")
    return {
        "path": str(path),
        "usd_per_hour": costs.totals.hour.usd,
        "pool_usd_per_hour": next(
            (pool.usd_per_hour for pool in costs.pools if pool.machine == best.machine), None
        ),
    }


def catalog(files: list[Path]) -> Catalog:
    """Return the catalog, with files of the user's own."""
    try:
        return load_catalog(files)
    except CatalogError as error:
        raise LifecycleError(*error.diagnostics, exit_code=Exit.SPEC) from error


def model(word: str) -> Model:
    """Return a model by its name, or from a config.json."""
    known = presets()
    if word in known:
        return known[word]
    path = Path(word)
    if not path.suffix and "/" not in word:
        near = closest(word, known)
        hint = f'did you mean "{near}"? ' if near else ""
        raise usage(
            f'no model is called "{word}"',
            f"{hint}known: {listing(known, limit=40)}; or the path of a config.json",
        )
    try:
        with path.open("rb") as file:
            content = file.read(
                _MOST_MODEL_BYTES
            )  # a longer one ends in the middle, and is refused
        return read_config(content, path.parent.name or path.stem)
    except (OSError, ConfigError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise usage(
            f"{word} can't be read as a model: {why}",
            "a config.json as Hugging Face has it: hidden_size, num_hidden_layers, ...",
        ) from error


def count(option: str, text: str, most: float) -> float | None:
    """Read "1.4T", "500B" or 8192; None where nothing is said."""
    if not text:
        return None
    found = _COUNT.fullmatch(text.strip())
    value = float(found[1]) * _FACTORS[found[2]] if found else 0.0
    if not 1 <= value <= most:
        raise usage(f'{option} "{text}" is no count of tokens', "such as 1.4T, 500B, 4M or 8192")
    return value


def deadline(text: str, tokens: str) -> float | None:
    """Read how long a run may take, in s; None where nothing is said."""
    if not text:
        return None
    if not tokens:
        raise usage("--deadline needs --tokens: how much is to be done by then", "--tokens 1.4T")
    return seconds("--deadline", text)


def seconds(option: str, text: str) -> float:
    """Read a length of time, in s."""
    try:
        found = float(Duration.parse(text).value)
    except ValueError:
        found = 0.0
    if found <= 0:
        raise usage(f'{option} "{text}" is no length of time', "such as 30d, 12h or 30s")
    return found


def share(text: str) -> float:
    """Read a part of a GPU's memory: 5% or 0.05."""
    try:
        found = Percent.parse(text).value if text.endswith("%") else float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1:
        raise usage(f'--margin "{text}" is no part of a GPU\'s memory', "such as 5% or 0.05")
    return found
