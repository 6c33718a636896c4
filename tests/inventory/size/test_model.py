"""Parameters and arithmetic follow from a model's shape as others counted them."""

from __future__ import annotations

import json

import pytest

from gcluster.inventory.size.hugging_face import ConfigError, read_config
from gcluster.inventory.size.model import presets

COUNTED = sorted(name for name, model in presets().items() if model.published is not None)
LLAMA_3_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}
MIXTRAL = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "vocab_size": 129280,
    "max_position_embeddings": 4096,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "tie_word_embeddings": False,
}
BLOOM = {
    "model_type": "bloom",
    "n_embed": 14336,
    "hidden_size": 14336,
    "n_layer": 70,
    "num_attention_heads": 112,
    "vocab_size": 250880,
    "seq_length": 2048,
}


def test_a_dozen_models_and_more_have_a_count_of_others_to_compare_with() -> None:
    assert len(COUNTED) >= 12


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_as_published_in_all_digits_that_are_printed(name: str) -> None:
    model = presets()[name]
    assert model.published is not None
    digits = model.published.digits
    assert float(f"{model.parameters:.{digits}g}") == model.published.parameters


def test_the_405b_model_has_the_parameters_that_its_training_flops_follow_from() -> None:
    model = presets()["llama-3-405b"]
    # arXiv 2407.21783: 3.8e25 FLOP for 15.6T tokens
    assert 6 * model.parameters * 15.6e12 == pytest.approx(3.8e25, rel=0.005)


def test_a_token_of_deepseek_v3_passes_the_parameters_that_its_readme_has() -> None:
    assert presets()["deepseek-v3"].active_parameters == pytest.approx(36.6e9, rel=0.001)


def test_flops_of_a_token_are_those_that_megatron_bridge_counts() -> None:
    # docs/performance-summary-archive.md: 784 TFLOP/s at 311 tokens/s and 719 at 1,602
    assert presets()["llama-3-405b"].flops_per_token(8192) == pytest.approx(784e12 / 311, rel=0.01)
    assert presets()["llama-3-70b"].flops_per_token(8192) == pytest.approx(719e12 / 1602, rel=0.03)


def test_frozen_weights_save_a_third_of_the_linear_layers_arithmetic() -> None:
    model = presets()["llama-3-8b"]
    attention = model.layers * model.attention_flops(4096) * 3
    full = model.flops_per_token(4096) - attention
    assert model.flops_per_token(4096, trained=False) - attention == pytest.approx(full * 2 / 3)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LLAMA_3_70B, "llama-3-70b"),
        (MIXTRAL, "mixtral-8x7b"),
        (DEEPSEEK_V3, "deepseek-v3"),
        (BLOOM, "bloom-176b"),
    ],
)
def test_a_config_json_is_read_as_it_is(config: dict[str, object], name: str) -> None:
    found = read_config(json.dumps(config), name)
    assert found.parameters == presets()[name].parameters
    assert found.active_parameters == presets()[name].active_parameters


def test_a_config_json_of_a_model_with_pictures_is_that_of_its_text_part() -> None:
    found = read_config(json.dumps({"model_type": "x", "text_config": LLAMA_3_70B}), "x")
    assert found.parameters == presets()["llama-3-70b"].parameters


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "config.json"),
        ("{}", "hidden_size"),
        ("{", "config.json"),
        ('{"hidden_size": "big"}', "hidden_size"),
        ('{"hidden_size": -1}', "hidden_size"),
    ],
)
def test_what_is_no_config_json_is_refused_with_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_config(text, "x")
