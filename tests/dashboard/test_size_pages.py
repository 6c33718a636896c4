"""Reports of `gcluster size` in Chromium: light and dark, wide and narrow, by keyboard.

make test-dashboard brings what is needed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_size_pages import OWN, SERVE, TRAIN
from typer.testing import CliRunner

from gcluster.cli.app import app

pytestmark = pytest.mark.dashboard

HERE = Path(__file__).parent
WIDTHS = {"wide": (1280, 900), "narrow": (380, 800)}
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OUTSIDE = """[...document.querySelectorAll('svg text')].filter((text) => {
  const own = text.getBoundingClientRect(), all = text.closest('svg').getBoundingClientRect();
  return own.left < all.left - 1 || own.right > all.right + 1 || own.bottom > all.bottom + 1;
}).map((text) => text.textContent)"""
OVERLAPPING = """[...document.querySelectorAll('svg')].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([name, one], at) => boxes.slice(at + 1).filter(([, two]) =>
    one.left < two.right - 1 && two.left < one.right - 1 && one.top < two.bottom - 3 && two.top < one.bottom - 3
  ).map(([other]) => `${name} / ${other}`));
})"""  # noqa: E501  # JavaScript
CONTRAST = """(() => {
  const light = (colour) => { const [r, g, b] = colour.match(/[0-9.]+/g).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const against = (colour) => { const [a, b] = [light(colour), paper].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
  const words = [...document.querySelectorAll('p, td, th, h1, h2, li, summary')].map((each) => against(getComputedStyle(each).color));
  const drawn = [...document.querySelectorAll('svg text')].map((each) => against(getComputedStyle(each).fill));
  const marks = [...document.querySelectorAll('rect')].map((each) => against(getComputedStyle(each).fill));
  return [Math.min(...words, ...drawn), Math.min(99, ...marks)];
})()"""  # noqa: E501  # JavaScript
NAMES = "[...document.querySelectorAll('svg, [role=region]')].every((each) => each.getAttribute('aria-label'))"  # noqa: E501


@pytest.mark.parametrize("words", [TRAIN, SERVE, OWN], ids=["train", "serve", "own"])
def test_a_report_is_legible_in_every_width_and_colour_scheme(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    made = CliRunner().invoke(app, [*words, "--format", "html"], prog_name="gcluster")
    assert made.exit_code == 0
    page = tmp_path / "page.html"
    page.write_text(made.stdout, encoding="utf-8")
    steps: list[dict[str, Any]] = []
    for name, (width, height) in WIDTHS.items():
        for dark in (False, True):
            shot = str(tmp_path / f"{name}-{dark}.png")
            steps.append(
                {"width": width, "height": height, "dark": dark, "open": True, "shot": shot}
            )
            steps += [
                {"evaluate": each} for each in (TOO_WIDE, OUTSIDE, OVERLAPPING, CONTRAST, NAMES)
            ]
    steps.append({"press": ["Tab"], "evaluate": "document.activeElement.getAttribute('role')"})
    chromium = shutil.which("chromium")
    assert chromium is not None, "make test-dashboard brings chromium"
    plan = tmp_path / "steps.json"
    plan.write_text(json.dumps({"url": page.as_uri(), "chromium": chromium, "steps": steps}))
    done = subprocess.run(
        ["node", "browse.mjs", str(plan)], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["messages"] == []
    assert {each for each in found["requests"] if not each.startswith("data:")} == {page.as_uri()}
    *values, focused = found["values"]
    assert focused == "region"
    for at in range(0, len(values), 5):
        too_wide, outside, overlapping, (text, marks), named = values[at : at + 5]
        assert (too_wide, outside, overlapping, named) == (0, [], [], True)
        assert text >= 4.5  # WCAG 2.2, 1.4.3
        assert marks >= 3  # 1.4.11
