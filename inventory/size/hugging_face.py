"""A model from Hugging Face's config.json, read as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...schemas.structure.decoding import decode_json
from .model import Latent, Model

_GPTS = frozenset({"gpt2", "gpt_neo", "gpt_neox", "bloom", "mpt", "opt", "falcon", "gptj"})
"""`model_type` of decoders with LayerNorm, biases and two matrices a feed-forward layer."""
_NAMES = {
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocab": ("vocab_size",),
    "sequence": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
    "ffn": ("intermediate_size", "ffn_dim", "n_inner"),
}
"""Field -> the names that architectures give it."""
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
_NO_POSITIONS = frozenset({"bloom", "falcon", "gpt_neox", "gptj"})
"""Of the GPTs those whose positions are no weights (ALiBi, rotary)."""


class ConfigError(Exception):
    """What a config.json lacks, or why it isn't one."""


def read_config(text: bytes | str, name: str) -> Model:
    """Return the model that a config.json describes.

    Args:
        text: what is in the file.
        name: what to call it.

    Raises:
        ConfigError: it is no JSON object, or lacks a size.
    """
    try:
        config = decode_json(text, dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"it is no config.json: {error}") from error
    inner = config.get("text_config")
    if isinstance(inner, dict):
        config = {**config, **inner}
    try:
        return _model(config, name)
    except (TypeError, ValueError, msgspec.ValidationError) as error:
        raise ConfigError(str(error)) from error


def _model(config: Mapping[str, Any], name: str) -> Model:
    sizes = {field: _number(config, names) for field, names in _NAMES.items()}
    missing = [
        " or ".join(_NAMES[field])
        for field in ("hidden", "layers", "heads", "vocab")
        if sizes[field] is None
    ]
    if missing:
        raise ConfigError(f"it doesn't say {', '.join(missing)}")
    kind_word = str(config.get("model_type", ""))
    is_gpt = kind_word in _GPTS
    hidden = sizes["hidden"] or 1
    experts = _number(config, _EXPERTS)
    expert_ffn = _number(config, ("moe_intermediate_size",)) or sizes["ffn"]
    return Model(
        name=name,
        hidden=hidden,
        layers=sizes["layers"] or 1,
        heads=sizes["heads"] or 1,
        ffn=sizes["ffn"] or 4 * hidden,
        vocab=sizes["vocab"] or 1,
        sequence=sizes["sequence"] or 2048,
        kv_heads=_number(config, ("num_key_value_heads",)),
        head_dim=_number(config, ("head_dim",)),
        kind="gpt" if is_gpt else "llama",
        tied=_flag(config, "tie_word_embeddings", default=is_gpt),
        learned_positions=kind_word not in _NO_POSITIONS,
        qkv_biases=kind_word.startswith("qwen2") or bool(config.get("attention_bias")),
        qk_norms=kind_word.startswith("qwen3"),
        embedding_norm=kind_word == "bloom",
        experts=experts,
        experts_per_token=_number(config, ("num_experts_per_tok",)) or 1,
        expert_ffn=expert_ffn if experts else None,
        shared_ffn=_shared(config, expert_ffn) if experts else 0,
        dense_layers=min(int(config.get("first_k_dense_replace") or 0), sizes["layers"] or 1),
        latent=_latent(config),
        source=f"{name}, config.json",
        date="2026-11",
    )


def _shared(config: Mapping[str, Any], expert_ffn: int | None) -> int:
    """Return the width of what every token passes: of Qwen2-MoE as such, of DeepSeek as a count."""
    own = _number(config, ("shared_expert_intermediate_size",))
    return own or int(config.get("n_shared_experts") or 0) * (expert_ffn or 0)


def _latent(config: Mapping[str, Any]) -> Latent | None:
    rank = _number(config, ("kv_lora_rank",))
    if rank is None:
        return None
    return Latent(
        kv_rank=rank,
        query_rank=_number(config, ("q_lora_rank",)),
        nope_dim=int(config["qk_nope_head_dim"]),
        rope_dim=int(config["qk_rope_head_dim"]),
        value_dim=int(config["v_head_dim"]),
    )


def _flag(config: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = config.get(name)
    return value if isinstance(value, bool) else default


def _number(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the first of some entries that is there; None: none is.

    Raises:
        ConfigError: it is no whole number above 0.
    """
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} is no whole number above 0: {value!r}")
        return value
    return None
