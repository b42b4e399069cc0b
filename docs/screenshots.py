"""Makes docs/page/*.png anew: `python -m docs.screenshots [FOLDER]`. Needs a Chromium, as `make test-browser` does.

Ten views of the page, of a service of its own with the example table. Each is 1000 pixels wide and holds 96 colours.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from imprimatur import Client
from service.local import EmbeddedStack
from tests.browser.conftest import find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "examples" / "poker_hand.csv"
WIDTH, HEIGHT, COLOURS = 1_000, 760, 96
MOST_BYTES = 80_000
WAIT_MS = 120_000.0
LONG = {"method": "idpgan", "epsilon": 0.5, "steps": 20_000, "condition_on": "CLASS", "name": "a trained network"}
SHORT = {"method": "marginals", "epsilon": 0.5, "condition_on": "CLASS", "report": {"share": 0.1}, "owner_report": True}


def save(page: Page, folder: Path, name: str, *, height: int = HEIGHT, at: str | None = None) -> None:
    """The window as it is, or with this part at its top."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.wait_for_load_state("networkidle")
    if at is not None:
        page.locator(at).last.evaluate("each => each.scrollIntoView()")
    picture = Image.open(io.BytesIO(page.screenshot()))
    small = picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    file = folder / f"{name}.png"
    small.save(file, optimize=True)
    print(f"{file.name}: {file.stat().st_size:,} bytes")  # noqa: T201
    assert file.stat().st_size <= MOST_BYTES, f"{name} is too large"  # noqa: S101


def order(client: Client, dataset: str, document: dict[str, Any]) -> str:
    document = dict(document)
    return str(client.create_release(dataset, document, name=document.pop("name", None))["id"])


def take(browser: Browser, client: Client, url: str, key: str, folder: Path) -> None:
    schema = json.loads(TABLE.with_suffix(".schema.json").read_text(encoding="utf-8"))
    dataset = str(client.create_dataset(TABLE, schema, epsilon=3.0, name="poker hands")["id"])
    done = order(client, dataset, SHORT | {"name": "first look"})
    client.wait(done)
    running = order(client, dataset, LONG)

    place = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, locale="en-GB")
    place.set_default_timeout(WAIT_MS)
    page = place.new_page()
    page.goto(url)
    save(page, folder, "sign-in", height=620)
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{url}/releases/{running}")
    page.wait_for_function("() => Number(document.querySelector('#progress progress')?.value) > 20")
    save(page, folder, "progress", height=460)
    page.goto(f"{url}/datasets/{dataset}")
    save(page, folder, "dataset", height=720)
    client.cancel(running)
    client.wait(running)
    page.goto(f"{url}/datasets/{dataset}/order")
    page.locator("#epsilon").fill("0.8")
    expect(page.locator("#quote .words")).to_be_visible()
    save(page, folder, "order", height=1_330)
    page.goto(f"{url}/releases/{done}")
    page.locator("#rows-inner table").wait_for()
    save(page, folder, "release", height=900, at="h2:has-text('Synthetic rows')")
    page.goto(f"{url}/releases/{done}/charts")
    page.wait_for_function("() => document.querySelector('canvas') && !document.querySelector('[data-histogram]')")
    save(page, folder, "charts", height=900, at="figure")
    page.goto(f"{url}/releases/{done}/report")
    save(page, folder, "report", height=900)
    page.goto(f"{url}/releases/{done}/owner-report")  # it looks again by itself until the report is there
    page.wait_for_function("() => document.querySelector('canvas') && !document.querySelector('[data-beside]')")
    save(page, folder, "owner-report", height=1_300)
    page.goto(f"{url}/releases/{done}/certificate")
    save(page, folder, "certificate", height=760)
    page.emulate_media(color_scheme="dark")
    page.goto(f"{url}/datasets/{dataset}/ledger")
    page.wait_for_function("() => document.querySelector('canvas') && !document.querySelector('[data-lines]')")
    save(page, folder, "ledger-dark", height=900)
    place.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "page"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="imprimatur-page-") as data, sync_playwright() as playwright:
        path = find_chromium(playwright.chromium.executable_path)
        if path is None:
            raise SystemExit("there is no Chromium here; install one, or name one in IMPRIMATUR_TEST_BROWSER")
        browser = playwright.chromium.launch(executable_path=path)
        with EmbeddedStack(Path(data) / "data", 0) as stack, Client(stack.url, stack.admin_key) as client:
            take(browser, client, stack.url, stack.admin_key, folder)
        browser.close()


if __name__ == "__main__":
    main()
