"""`gcluster size train`: what it shows, what it refuses, and the spec that it writes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
EIGHT_B = ("size", "train", "--model", "llama-3-8b", "--tokens", "1T", "--deadline", "30d")


def _json(run: Run, *words: str) -> dict[str, Any]:
    done = run(*words, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_is_sized_on_several_machines_and_the_cheapest_in_time_comes_first(run: Run) -> None:
    done = run(*EIGHT_B, "--machine", "a3-megagpu-8g,p5.48xlarge,dgx-h100")
    assert done.exit_code == 0
    rows = [line.split() for line in done.stdout.splitlines()]
    table = [row[0] for row in rows if row and row[0] in {"a3-megagpu-8g", "p5.48xlarge"}]
    assert table[:2] == ["p5.48xlarge", "a3-megagpu-8g"]
    assert "no price is known of dgx-h100" in done.stdout
    assert "8.03B parameters" in done.stdout
    assert "how far to trust it" in done.stdout


def test_programs_get_every_figure_in_its_base_unit(run: Run) -> None:
    found = _json(run, *EIGHT_B, "--machine", "p5.48xlarge")
    plan = found["plans"][0]
    best = plan["fitting"][0]
    assert plan["gpus"] == 8 * plan["nodes"] == best["layout"]["gpus"]
    assert best["memory"]["total"] < 80 * 2**30
    assert best["time"]["total"] == pytest.approx(
        sum(seconds for part, seconds in best["time"].items() if part != "total")
    )
    assert plan["run"]["meets_deadline"] is True
    assert plan["run"]["usd"] == pytest.approx(plan["run"]["days"] * 24 * plan["usd_per_hour"])
    assert found["accuracy"]["runs"] > 20


def test_what_does_not_fit_is_reported_in_gb_and_ends_with_exit_code_1(run: Run) -> None:
    done = run("size", "train", "--model", "llama-3-70b", "--machine", "dgx-h100", "--nodes", "1")
    assert done.exit_code == 1
    assert "none of" in done.stdout
    assert "lacks 62.8 GB" in done.stdout


def test_power_follows_from_the_machines_and_what_is_reported_of_the_hall(run: Run) -> None:
    words = ("--machine", "dgx-h100", "--nodes", "4", "--pue", "1.2", "--co2", "0.4")
    found = _json(run, *EIGHT_B, *words)["plans"][0]
    assert found["power"]["hall_kw"] == pytest.approx(4 * 10.2 * 1.2)
    assert found["power"]["kg_co2"] == pytest.approx(found["power"]["kwh"] * 0.4)
    text = run(*EIGHT_B, *words, "--explain").stdout
    assert "40.8 kW rated" in text
    assert "arXiv 2412.08602" in text


def test_explain_has_the_users_storage_and_fabric(run: Run) -> None:
    words = ("--machine", "p5.48xlarge", "--storage-write", "2", "--oversubscription", "3")
    text = " ".join(run(*EIGHT_B, *words, "--explain").stdout.split())
    assert "bytes / --storage-write" in text
    assert "3:1" in text


def test_explain_shows_a_formula_and_a_source_for_each_figure(run: Run) -> None:
    done = run(*EIGHT_B, "--machine", "p5.48xlarge", "--explain")
    for what in ("arXiv 2205.05198", "Daly", "6 N + 6 L h s", "step: compute", "karpenter"):
        assert what in done.stdout


@pytest.mark.parametrize("machine", ["p5.48xlarge", "a3-megagpu-8g", "dgx-h100"])
def test_the_spec_that_it_writes_is_valid_and_costs_what_the_plan_has(
    run: Run, tmp_path: Path, machine: str
) -> None:
    path = tmp_path / "train.yaml"
    found = _json(run, *EIGHT_B, "--machine", machine, "--spec", str(path))
    assert run("validate", str(path)).exit_code == 0
    bill = _json(run, "cost", str(path))["clusters"][0]
    pool = next(each for each in bill["pools"] if each["machine"] == machine)
    assert pool["nodes"] == found["plans"][0]["nodes"]
    assert pool["usd_per_hour"] == found["plans"][0]["usd_per_hour"]
    assert bill["totals"]["hour"]["usd"] == found["spec"]["usd_per_hour"]


def test_a_file_that_exists_is_left_as_it_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("mine\n", encoding="utf-8")
    done = run(*EIGHT_B, "--machine", "p5.48xlarge", "--spec", str(path))
    assert done.exit_code == 1
    assert "GC945" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine\n"


def test_a_config_json_is_a_model(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    words = ("size", "train", "--model", str(folder / "config.json"), "--machine", "dgx-h100")
    found = _json(run, *words)
    assert found["parameters"] == 8_030_261_248
    assert found["workload"]["model"]["name"] == "my-model"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--model", "lama-3-8b"), "did you mean"),
        (("--machine", "p5.48xlrge"), "did you mean"),
        (("--tokens", "many"), "no count of tokens"),
        (("--tokens", "0"), "no count of tokens"),
        (("--deadline", "soon"), "no length of time"),
        (("--margin", "100%"), "no part of a GPU's memory"),
        (("--model", "./config.json"), "can't be read as a model"),
    ],
)
def test_what_is_no_word_of_the_command_is_refused_with_a_hint(
    run: Run, words: tuple[str, str], why: str
) -> None:
    done = run(*EIGHT_B, "--machine", "p5.48xlarge", *words)
    assert done.exit_code == 64
    assert "GC941" in done.stderr
    assert why in done.stderr


def test_a_deadline_without_tokens_is_refused(run: Run) -> None:
    words = ("--model", "llama-3-8b", "--machine", "dgx-h100", "--deadline", "30d")
    done = run("size", "train", *words)
    assert done.exit_code == 64
    assert "--tokens" in done.stderr


def test_hosts_that_a_first_spec_has_no_room_for_are_refused(run: Run, tmp_path: Path) -> None:
    words = ("--model", "llama-3-8b", "--machine", "dgx-h100", "--nodes", "201")
    done = run("size", "train", *words, "--spec", str(tmp_path / "train.yaml"))
    assert done.exit_code == 64
    assert "201" in done.stderr


SERVE = ("size", "serve", "--model", "llama-3-70b", "--input", "1000", "--output", "300")


def test_a_service_for_a_thousand_users_is_sized_and_priced(run: Run) -> None:
    words = ("--users", "1000", "--every", "30s", "--machine", "p4de.24xlarge,p5.48xlarge")
    found = _json(run, *SERVE, *words)
    assert found["load"]["requests_per_s"] == pytest.approx(1000 / 30)
    assert [plan["machine"] for plan in found["plans"]] == ["p5.48xlarge", "p4de.24xlarge"]
    text = " ".join(run(*SERVE, *words).stdout.split())
    assert "33.3 requests/s of 1,000 + 300" in text
    assert "what keeps the batch from growing" in text


def test_the_figures_of_a_service_follow_from_each_other(run: Run) -> None:
    words = ("--requests", "30", "--machine", "p5.48xlarge", "--explain")
    found = _json(run, *SERVE, *words)
    [plan], figures = found["plans"], found["explanation"]["p5.48xlarge"]
    shown = {row["what"]: row["value"] for row in figures}
    batch, prompt, step, further, rate, cache, needed = (
        float(re.sub("[^0-9.]", "", str(text)))
        for text in (
            plan["replica"]["batch"],
            shown["prefill of a prompt P"],
            shown["decode step t"],
            shown["time of a further token"],
            shown["requests of a replica"],
            shown["KV cache of a token"],
            shown["replicas needed"],
        )
    )

    assert further == pytest.approx(step + batch * prompt / 300, rel=0.01)
    assert rate == pytest.approx(batch / (300 * step + batch * prompt) * 1000, rel=0.01)
    # Llama 3 70B: 80 layers, 8 KV heads of 128, keys and values of 2 bytes (its config.json)
    assert cache == 2 * 80 * 8 * 128 * 2
    assert needed == math.ceil(30 / (0.8 * rate))
    assert all(row["formula"] and row["source"] for row in figures)
    assert "figure by figure" in run(*SERVE, *words).stdout


def test_the_spec_of_a_service_is_valid_and_costs_what_the_plan_has(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "serve.yaml"
    words = ("--requests", "30", "--machine", "p5.48xlarge", "--spec", str(path))
    found = _json(run, *SERVE, *words)
    assert run("validate", str(path)).exit_code == 0
    bill = _json(run, "cost", str(path))["clusters"][0]
    pool = next(each for each in bill["pools"] if each["machine"] == "p5.48xlarge")
    assert pool["usd_per_hour"] == found["plans"][0]["usd_per_hour"]


@pytest.mark.parametrize(
    "words", [(), ("--requests", "1", "--users", "1"), ("--users", "1", "--every", "soon")]
)
def test_a_load_is_reported_once(run: Run, words: tuple[str, ...]) -> None:
    done = run(*SERVE, "--machine", "p5.48xlarge", *words)
    assert done.exit_code == 64
    assert "GC941" in done.stderr


def test_a_model_that_no_machine_serves_ends_with_exit_code_1(run: Run) -> None:
    words = ("--model", "llama-3-405b", "--machine", "hgx-h100-8", "--requests", "1")
    done = run("size", "serve", *words)
    assert done.exit_code == 1
    assert "lacks" in done.stdout
