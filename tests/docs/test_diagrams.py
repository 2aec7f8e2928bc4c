"""The diagrams of the three lives: what they name is there, their text fits, and they ask nobody for anything."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.docs.hooks import load
from tests.docs.links import fault
from tests.docs.pages import DOCS, ROOT

ASSETS = DOCS / "assets"
NAMES = ("life_of_a_request", "life_of_a_block", "life_of_a_step")
_SVG = "{http://www.w3.org/2000/svg}"
_EDGE = 2.0  # units between a text and the edge of its box, at least
_SMALLEST = 13.0  # a phone shows a unit as nine tenths of a pixel


PAPER = load(ROOT / "docs" / "examples" / "diagram.py")


def read(name: str) -> ET.Element:
    return ET.parse(ASSETS / f"{name}.svg").getroot()


def texts(root: ET.Element) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Each text with the box that it takes at most: left, top, right, bottom."""
    found = []
    for element in root.iter(f"{_SVG}text"):
        text, kinds = element.text or "", element.get("class", "")
        width, size = PAPER.width_of(text, kinds), PAPER.SANS
        x, y = float(element.get("x", "")), float(element.get("y", ""))
        left = x - width if element.get("text-anchor") == "end" else x
        found.append((text, (left, y - 0.8 * size, left + width, y + 0.25 * size)))
    return found


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """What a text may lie in: the paper, the lanes, the states and the links."""
    found = []
    for element in root.iter(f"{_SVG}rect"):
        if {"paper", "lane", "state", "hit"} & {*element.get("class", "").split()}:
            x, y = float(element.get("x", 0)), float(element.get("y", 0))
            found.append((x, y, x + float(element.get("width", "")), y + float(element.get("height", ""))))
    return found


def misfits(root: ET.Element) -> list[str]:
    """Texts that stick out of the smallest box in which they begin, or lie upon another."""
    wrong = []
    placed = texts(root)
    for text, (left, top, right, bottom) in placed:
        middle = (top + bottom) / 2
        around = [box for box in boxes(root) if box[0] <= (left + right) / 2 <= box[2] and box[1] <= middle <= box[3]]
        box = min(around, key=lambda box: (box[2] - box[0]) * (box[3] - box[1]))
        if left < box[0] + _EDGE or right > box[2] - _EDGE or top < box[1] or bottom > box[3]:
            wrong.append(f"{text!r} sticks out of its box")
    for i, (text, a) in enumerate(placed):
        for other, b in placed[i + 1 :]:
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
                wrong.append(f"{text!r} lies upon {other!r}")
    return wrong


def dead_links(root: ET.Element) -> list[str]:
    """Links that lead to no file, or to a name that the file has not."""
    wrong = []
    for link in root.iter(f"{_SVG}a"):
        href = link.get("href", "")
        what = fault(ASSETS / "a.svg", href) or ("to which line?" if href.endswith(".py") else None)
        if what:
            wrong.append(f"{href}: {what}")
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_every_link_names_what_is_there(name: str) -> None:
    root = read(name)
    assert len(list(root.iter(f"{_SVG}a"))) >= 10
    assert dead_links(root) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_name_set_as_code_is_the_name_that_it_leads_to(name: str) -> None:
    """`Tiers.take` leads to `Tiers.take`; without its class (`_end`), to the last part of a name."""
    for link in read(name).iter(f"{_SVG}a"):
        target = link.get("href", "").partition("#")[2]
        for text in link.iter(f"{_SVG}text"):
            if "code" in text.get("class", "").split():
                shown = text.text or ""
                assert shown == target or target.endswith(f".{shown}"), f"{shown} leads to {target}"


@pytest.mark.parametrize("name", NAMES)
def test_text_fits(name: str) -> None:
    root = read(name)
    assert misfits(root) == []
    assert float(root.get("width", "")) <= 460, "a phone would have to zoom"
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", (ASSETS / f"{name}.svg").read_text("utf-8"))]
    assert sizes and min(sizes) >= _SMALLEST


@pytest.mark.parametrize("name", NAMES)
def test_who_does_not_see_it_is_told(name: str) -> None:
    root = read(name)
    told = {element.get("id"): element.text for element in root if element.tag in (f"{_SVG}title", f"{_SVG}desc")}
    assert root.get("role") == "img"
    ids = root.get("aria-labelledby", "").split()
    assert len(ids) == 2 and all(told[key] for key in ids)
    every_id = [element.get("id") for element in root.iter() if element.get("id")]
    assert all(key and key.startswith(name) for key in every_id), "within a page, ids are the page's"


@pytest.mark.parametrize("name", NAMES)
def test_nobody_else_is_asked(name: str) -> None:
    text = (ASSETS / f"{name}.svg").read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//|@import|url\(|<image|<script|<use|@font-face", text)


@pytest.mark.parametrize("name", NAMES)
def test_its_page_shows_it_and_says_what_is_seen(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    image = re.search(rf"!\[([^\]]+)\]\(assets/{name}\.svg\)", page)
    assert image is not None and len(image[1]) > 80
    assert page.count("\n## ") >= 5 and page.index(image[0]) < page.index("\n## "), "near the top"


def test_the_steps_of_the_request_are_those_of_its_page() -> None:
    page = (ROOT / "docs" / "life_of_a_request.md").read_text(encoding="utf-8")
    shown = " ".join(text for text, _ in texts(read("life_of_a_request")))
    named = {int(step) for steps in re.findall(r"steps? ([\d, ]+)", shown) for step in steps.split(",")}
    titles = dict(re.findall(r"^## Step (\d+): (\w+)$", page, re.M))
    assert {step: titles[str(step)] for step in named} == {0: "admitted", 5: "preempted", 12: "resumed"}


def test_the_files_are_what_their_script_draws() -> None:
    for draw in load(ROOT / "docs" / "examples" / "life_diagrams.py").DIAGRAMS:
        diagram = draw()
        assert (ASSETS / f"{diagram.name}.svg").read_text(encoding="utf-8") == diagram.svg(), (
            f"{diagram.name}.svg: run docs/examples/life_diagrams.py"
        )


# The checks themselves can fail -----------------------------------------------------------------------------------


def changed(name: str, before: str, after: str) -> ET.Element:
    text = (ASSETS / f"{name}.svg").read_text(encoding="utf-8")
    assert before in text
    return ET.fromstring(text.replace(before, after, 1))


def test_a_dead_link_is_found() -> None:
    assert dead_links(changed("life_of_a_block", "#Tiers.take", "#Tiers.took")) == [
        "../../minipaged/memory/tiers.py#Tiers.took: tiers.py defines no Tiers.took"
    ]
    assert dead_links(changed("life_of_a_block", "memory/tiers.py", "memory/tears.py")) == [
        "../../minipaged/memory/tears.py#Tiers.take: there is no such file"
    ]


def test_text_that_is_too_long_is_found() -> None:
    longer = changed("life_of_a_block", "a decode adds one token a step", "a decode adds one token a step, and so on")
    assert misfits(longer) == ["'a decode adds one token a step, and so on' sticks out of its box"]
    paper = PAPER.Diagram("x", "x", "x")
    with pytest.raises(ValueError, match=r"x: 'held by so many tables' needs \d+ units, has 90"):
        paper.words(0, 20, "held by so many tables", room=90)


def test_the_hook_warns_of_a_dead_link_and_shows_the_others(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("mkdocs")
    hook = load(ROOT / "docs" / "hooks" / "diagrams.py")

    class File:
        src_uri = "life_of_a_block.md"

        def __init__(self, place: str = "life_of_a_block.md") -> None:
            self.place = place

        def url_relative_to(self, _: Any) -> str:
            return self.place.removesuffix(".md") + ".html"

    class Files:
        def get_file_from_path(self, place: str) -> File | None:
            return File(place) if place else None

    class Page:
        file = File()

    image = '<p>See <img alt="x" src="assets/life_of_a_block.svg"> and <img alt="y" src="assets/watch.svg"></p>'
    shown = hook.on_page_content(image, Page(), Files())
    assert shown.count("<svg") == 1 and '<img alt="y" src="assets/watch.svg">' in shown, "a screenshot stays an image"
    assert 'class="diagram in-page"' in shown and 'role="group"' in shown
    assert 'href="source/minipaged/memory/tiers.py.html#Tiers.take"' in shown
    assert not caplog.records

    svg = (ASSETS / "life_of_a_block.svg").read_text(encoding="utf-8").replace("#Tiers.take", "#Tiers.took", 1)
    hook.inlined(svg, "docs/assets/life_of_a_block.svg", Page(), Files())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "minipaged/memory/tiers.py has no Tiers.took" in caplog.text
