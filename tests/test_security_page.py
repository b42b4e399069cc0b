"""docs/security.md says of every requirement of OWASP ASVS 5.0.0, levels 1 and 2, whether it is met; and what it says of the page at /."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
SCRIPT = ROOT / "service" / "pages" / "assets" / "home.js"
VERDICTS = ("met", "not applicable", "open")
IDS = re.findall(r"V[\d.]+", (Path(__file__).parent / "asvs_5_0_0_level_2.txt").read_text(encoding="ascii"))
"""As the standard numbers them."""


def rows() -> list[list[str]]:
    """Requirement, level, short form, verdict, reason."""
    found = re.findall(r"^\| (V\d+\.\d+\.\d+) \|(.*)\|$", PAGE, re.MULTILINE)
    return [[number, *(cell.strip() for cell in rest.split("|"))] for number, rest in found]


def test_every_requirement_has_its_line_in_the_order_of_the_standard() -> None:
    assert len(IDS) == len(set(IDS)) == 253
    assert [row[0] for row in rows()] == IDS


def test_every_line_has_a_verdict_and_a_reason() -> None:
    for number, level, short, verdict, *reason in rows():
        assert level in {"1", "2"}, number
        assert 3 <= len(short.split()) <= 10, f"{number}: {short}"
        assert verdict in VERDICTS, number
        assert len(reason) == 1, number
        assert len(reason[0]) > len("no LDAP") - 1, number
        assert verdict != "open" or "Meanwhile: " in reason[0], f"{number} says nothing to operators"


def test_the_first_screen_counts_what_the_tables_say() -> None:
    (told,) = re.findall(r"^\| met \| not applicable \| open \| all \|\n\|[-|]+\|\n\|([\d |]+)\|$", PAGE, re.MULTILINE)
    counted = Counter(row[3] for row in rows())
    assert [int(number) for number in told.split("|")] == [*(counted[verdict] for verdict in VERDICTS), len(IDS)]


def test_the_list_of_what_is_open_is_whole() -> None:
    listed = re.findall(r"V\d+\.\d+\.\d+", PAGE.partition("## What is open")[2].partition("\n## ")[0])
    assert sorted(listed) == sorted(row[0] for row in rows() if row[3] == "open")


def test_the_page_keeps_no_key_and_makes_no_markup() -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    markup = (ROOT / "service" / "pages" / "templates" / "home.html").read_text(encoding="utf-8")
    for word in ("localStorage", "sessionStorage", "indexedDB", "cookie", "innerHTML", "outerHTML", "insertAdjacent"):
        assert word not in script + markup
    for python in (ROOT / "service").rglob("*.py"):
        assert "set_cookie" not in python.read_text(encoding="utf-8")


BROWSER = """
const elements = {}, heard = {}, timers = [];
class Element {
  children = []; textContent = ""; value = ""; on = {};
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  addEventListener(name, then) { this.on[name] = then; }
}
global.document = { getElementById: (id) => (elements[id] ??= new Element()), createElement: () => new Element() };
global.addEventListener = (name, then) => { heard[name] = then; };
global.setTimeout = (then, ms, ...given) => timers.push({ then, ms, given });
global.clearTimeout = (number) => { if (number) timers[number - 1] = null; };
let answer;
global.fetch = async () => {
  await new Promise((resolve) => { answer = resolve; });
  return { ok: true, json: async () => ({ items: [], next: null }) };
};
(0, eval)(require("fs").readFileSync(process.argv[1], "utf8"));
const later = () => new Promise((resolve) => setImmediate(resolve));
const use = () => { elements.key.value = "imp_x"; elements["key-form"].on.submit({ preventDefault() {} }); };
const state = () => [elements.key?.value ?? "", elements.message.textContent, timers.filter(Boolean).map((timer) => timer.ms)];
(async () => {
  document.getElementById("key");
  const states = [];
  use(); elements.forget.on.click(); answer(); await later(); states.push(state());
  use(); answer(); await later(); states.push(state());
  heard.pagehide(); states.push(state());
  use(); answer(); await later(); heard.keydown(); heard.pointermove();
  timers.filter(Boolean).find((timer) => timer.ms > 10_000).then(); states.push(state().slice(0, 2));
  console.log(JSON.stringify(states));
})();
"""
"""As much of a browser as the script needs."""


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js here")
def test_the_page_forgets() -> None:
    """By the button, also where an answer is on its way; when it is left; and when it is left alone."""
    done = subprocess.run(["node", "-e", BROWSER, str(SCRIPT)], capture_output=True, text=True, check=True, timeout=60)
    forgotten, shows = '["","The key is forgotten."', '["imp_x","No dataset yet.'
    after_button, in_use, left, alone = re.findall(r'\["[^\[\]]*(?:\[[^\]]*\])?\]', done.stdout)
    assert after_button == left == forgotten + ",[]]"
    assert in_use.startswith(shows)
    assert in_use.endswith(",[2000]]")
    assert alone == forgotten + "]"
