"""What mkdocs is told beside `mkdocs.yml`: the measurements are pages, too; links to source files become the names of the files."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).resolve().parents[1]
RESULTS = "bench/results"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every page of a folder where `nav` names the folder."""
    folders = {
        "decisions/": "docs/decisions",
        "methods/": "docs/methods",
        "results/": "docs/results",
        f"{RESULTS}/": RESULTS,
    }

    def filled(entries: list[Any]) -> list[Any]:
        found: list[Any] = []
        for entry in entries:
            if isinstance(entry, str) and entry in folders:
                found += [f"{entry}{path.name}" for path in sorted((ROOT / folders[entry]).glob("*.md"))]
            elif isinstance(entry, dict):
                found.append(
                    {name: filled(value) if isinstance(value, list) else value for name, value in entry.items()}
                )
            else:
                found.append(entry)
        return found

    config.nav = filled(config.nav or [])
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the measurements of bench/results and their pictures: what the documents cite."""
    for path in sorted((ROOT / RESULTS).iterdir()):
        if path.suffix in {".md", ".svg", ".png"}:
            files.append(File.generated(config, f"{RESULTS}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - the hook's
    """Point links at pages of the site. A link to any other file of the repository becomes its path, in code type."""
    folder = posixpath.dirname(page.file.src_uri)
    base = folder if folder.startswith("bench") else posixpath.join("docs", folder)

    def at_site(match: re.Match[str]) -> str:
        mark, text, target, heading = match.groups()
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(base, target))
        in_site = path.removeprefix("docs/")
        if files.get_file_from_path(in_site) is not None:
            address = posixpath.relpath(in_site, folder or ".")
            return f"{mark}[{text}]({address}{heading or ''})"
        return text if text.strip("`") == path else f"{text} (`{path}`)"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(at_site, part) for part in parts)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Leave out what no reader fetches: maps of the theme's sources, search in languages that no page is in, the map of the site."""
    site = Path(config.site_dir)
    unused = [*site.rglob("*.map"), *site.glob("assets/javascripts/lunr/**/*.js"), *site.glob("sitemap.xml*")]
    for path in unused:
        path.unlink()
