"""The page: whole, alone, and true. In Chromium its slider is moved, and what it shows is what the moment says."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from minipaged.trace import Moment, Trace
from minipaged.viz.example import example_trace
from minipaged.viz.page import page
from minipaged.viz.theme import name
from tests.house import House
from tests.viz.witnessed import Witnessed

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return example_trace()


def test_a_page_asks_nobody_for_anything(trace: Trace) -> None:
    text = page(trace)
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src 'none'" in text, "and no browser would let it"


def test_what_a_user_wrote_stays_data(trace: Trace) -> None:
    class Rude:
        header = trace.header
        __len__ = trace.__len__

        def moment(self, index: int) -> Moment:
            return _with_title(trace.moment(index), "</script><script>alert(1)</script><!--run-->")

    text = page(Rude())
    assert text.count("<script") == 2 and "alert(1)<" not in text
    assert json.loads(_data(text))["sequences"]["0"][-1].startswith("</script>")


def test_what_utf_8_does_not_have_is_escaped(trace: Trace) -> None:
    """Such as half a byte of a broken file name, in the description."""

    class Broken:
        header = replace(trace.header, description="a \udc80 model")
        __len__ = trace.__len__
        moment = trace.moment

    assert json.loads(_data(page(Broken()).encode().decode()))["header"]["description"] == "a \udc80 model"


def test_who_comes_and_goes_within_a_step_has_a_name() -> None:
    house = House(8, 4)
    run = Witnessed(house)
    house.add([1, 2, 3], 1)
    house.run()
    assert run.moment(0).running == () and len(run.moment(0).record.chunks) == 1
    assert json.loads(_data(page(run)))["sequences"]["0"][0] == "A"


def _data(text: str) -> str:
    found = re.search(r'<script type="application/json" id="run">(.*?)</script>', text, re.S)
    assert found is not None
    return found[1]


def _with_title(moment: Moment, title: str) -> Moment:
    running = tuple(replace(state, title=title) for state in moment.running)
    return replace(moment, running=running)


# In a browser ---------------------------------------------------------------------------------------------------------

# What a user does, and then what the page shows, as attributes that can be read back.
SCRIPT = """
<script>
const slider = document.getElementById("slider");
const shown = [];
const all = selector => [...document.querySelectorAll(selector)];
function note() {
  shown.push({
    index, value: slider.value, where: document.getElementById("where").textContent,
    device: all("#device .cell").map(cell => cell.title.split("\\n")[0]),
    host: all("#host .cell").map(cell => cell.title.split("\\n")[0]),
    tables: all("#tables .table").map(table => table.textContent),
    waiting: all("#queue tr").length,
    words: all("#words li").map(line => line.textContent),
  });
}
for (let i = 0; i <= Number(slider.max); i++) {
  slider.value = i;
  slider.dispatchEvent(new Event("input"));
  note();
}
for (const key of ["Home", "ArrowRight", "n", "ArrowLeft", "G", "["]) {
  document.dispatchEvent(new KeyboardEvent("keydown", {key}));
  note();
}
document.querySelector("#tables tr").click();
const result = document.createElement("pre");
result.id = "result";
result.textContent = JSON.stringify({
  shown, wide: document.documentElement.scrollWidth > innerWidth, life: document.getElementById("life").textContent,
});
document.body.append(result);
</script>
"""


@pytest.mark.chromium
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_the_slider_in_chromium_shows_what_the_moments_say(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(page(trace).replace("</body>", f"{SCRIPT}</body>"), encoding="utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=500,900", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.S)
    assert found is not None, f"a script failed: {done.stdout[-500:]} {done.stderr[-2000:]}"
    result = json.loads(html.unescape(found[1]))
    by_slider, by_keys = result["shown"][: len(trace)], result["shown"][len(trace) :]
    last = len(trace) - 1
    assert len(by_slider) == len(trace)
    for index, shown in enumerate(by_slider):
        assert (shown["index"], shown["value"]) == (index, str(index))
        assert_shows(shown, trace.moment(index), last)
    places = [shown["index"] for shown in by_keys]
    assert places[:5] == [0, 1, 2, 1, last] and places[5] < last
    assert_shows(by_keys[-1], trace.moment(places[-1]), last)
    assert not result["wide"], "no scrolling sideways on a narrow screen"
    assert result["life"].startswith("Life of ")


def assert_shows(shown: dict, moment: Moment, last: int) -> None:  # type: ignore[type-arg]
    """Owners, tiers, fill, tables and queue."""
    size = moment.header.block_size
    for state, text in zip(moment.device_blocks, shown["device"], strict=True):
        if state.holders:
            who = "held by " + ", ".join(name(holder) for holder in state.holders)
        else:
            who = "free" if state.node is None else "cached, evictable"
        full = f"; {state.fill} of {size} slots filled" if state.fill else ""
        node = "" if state.node is None else "; tokens " + " ".join(map(str, moment.nodes[state.node].tokens))
        assert text == f"block {state.block}: {who}{full}{node}"
    for number, (holds, text) in enumerate(zip(moment.host_blocks, shown["host"], strict=True)):
        if holds is None:
            assert text == f"host block {number}: free"
        else:
            device = moment.nodes[holds].device
            assert text.startswith(
                f"host block {number}: the only copy; "
                if device is None
                else f"host block {number}: also in block {device}; "
            )
    assert shown["where"] == (
        f"step {moment.record.step} of 0 to {last}: {len(moment.running)} running, {len(moment.waiting)} waiting"
    )
    assert shown["waiting"] == len(moment.waiting)
    for state, text in zip(moment.running, shown["tables"], strict=True):
        pairs = "".join(f"{place}→{block}" for place, block in enumerate(state.blocks))
        assert text.startswith(pairs) and f"({state.num_computed - (len(state.blocks) - 1) * size}/{size})" in text
    assert shown["words"], "at least that nothing happened"
