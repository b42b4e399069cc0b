"""Known vulnerabilities of the pinned dependencies, from a committed snapshot of public databases: no network in CI.

`make advisories DATABASE=DIR` makes the snapshot anew from a checkout of a database in OSV's format: the Python Packaging
Authority's (github.com/pypa/advisory-database) or GitHub's (github.com/github/advisory-database), both CC-BY-4.0.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from supply.closure import pins

SNAPSHOT = Path(__file__).with_name("advisories.json")
READ_SINGLY = Path(__file__).with_name("read_singly.json")
"""Newer than the snapshot, each read at the address it names. Empty it when a new snapshot has them."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def make_snapshot(databases: list[Path]) -> int:
    """Write the snapshot: everything the databases say about what is pinned. Returns how many advisories those are."""
    wanted, found, sources = pins(), {}, []
    for database in databases:
        sources.append(_source(database))
        for file in sorted((*database.rglob("*.yaml"), *database.rglob("*.json"))):
            if file.suffix == ".yaml" and canonicalize_name(file.parent.name) not in wanted:
                continue  # the first database has a folder a package
            record = yaml.load(file.read_text(encoding="utf-8"), LOADER)  # noqa: S506 - the safe loader, in C
            for entry in _entries(record, wanted):
                found[entry["id"], entry["package"]] = entry
    content = {
        "sources": sources,
        "advisories": [found[key] for key in sorted(found)],
    }
    SNAPSHOT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(found)


def vulnerable(pinned: dict[str, str], snapshot: dict[str, Any]) -> list[str]:
    """The pins that an advisory of the snapshot names, each with what to do."""
    lines = []
    for entry in snapshot["advisories"]:
        version = pinned.get(entry["package"])
        if version is not None and affects(entry, version):
            fixes = [part["fixed"] for part in entry["ranges"] if "fixed" in part]
            known_as = ", ".join([entry["id"], *entry["aliases"]])
            lines.append(f"{entry['package']} {version}: {known_as}; fixed in {', '.join(fixes) or 'no version yet'}")
    return lines


def affects(entry: dict[str, Any], version: str) -> bool:
    """Whether the version lies in a range of the advisory, or is one that it lists."""
    if version in entry.get("versions", ()):
        return True
    ours = Version(version)
    for part in entry["ranges"]:
        after = part["introduced"] == "0" or ours >= Version(part["introduced"])
        before = "fixed" not in part or ours < Version(part["fixed"])
        upto = "last_affected" not in part or ours <= Version(part["last_affected"])
        if after and before and upto:
            return True
    return False


def read_snapshot() -> dict[str, Any]:
    """The snapshot, and what was read singly since."""
    snapshot = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    snapshot["advisories"] += json.loads(READ_SINGLY.read_text(encoding="utf-8"))["advisories"]
    return snapshot


def _entries(record: dict[str, Any], wanted: dict[str, str]) -> list[dict[str, Any]]:
    if record.get("withdrawn"):
        return []
    entries: dict[str, dict[str, Any]] = {}
    for affected in record.get("affected", ()):
        package = affected.get("package", {})
        name = canonicalize_name(package.get("name", ""))
        if package.get("ecosystem") != "PyPI" or name not in wanted:
            continue
        entry = entries.setdefault(
            name,
            {
                "id": record["id"],
                "aliases": sorted(record.get("aliases", [])),
                "package": name,
                "published": str(record.get("published", ""))[:10],
                "summary": _first_words(record),
                "ranges": [],
            },
        )
        ranges = _ranges(affected)
        entry["ranges"] += ranges
        if not ranges:  # a list is long, and says no more where there is a range
            entry["versions"] = sorted({*entry.get("versions", []), *map(str, affected.get("versions", []))})
    return list(entries.values())


def _ranges(affected: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for span in affected.get("ranges", ()):
        if span["type"] != "ECOSYSTEM":
            continue
        for event in span["events"]:
            ((kind, version),) = event.items()
            if kind == "introduced":
                found.append({kind: _known(str(version))})
            elif kind in {"fixed", "last_affected"} and found:
                found[-1][kind] = str(version)
    return found


def _known(version: str) -> str:
    try:
        Version(version)
    except InvalidVersion:
        return "0"
    return version


def _first_words(record: dict[str, Any]) -> str:
    text = record.get("summary") or record.get("details") or ""
    return re.sub(r"\s+", " ", text)[:200]


def _source(database: Path) -> dict[str, str]:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(database), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return {
        "database": git("config", "--get", "remote.origin.url").removesuffix(".git"),
        "commit": git("rev-parse", "HEAD"),
        "date": git("log", "-1", "--format=%cs"),
        "licence": "CC-BY-4.0",
        "read": f"{dt.datetime.now(dt.UTC):%Y-%m-%d}",
    }
