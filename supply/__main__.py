"""python -m supply check | licences | sbom FILE | advisories DIR … | locks UV | digests | translations"""

from __future__ import annotations

import sys
from pathlib import Path

from supply import advisories, images, licences, locks, translations
from supply.bill import bill
from supply.closure import pins


def check() -> int:
    """All checks that need no network; prints each fault."""
    snapshot = advisories.read_snapshot()
    faults = licences.faults() + licences.page_faults() + locks.faults() + images.faults()
    faults += advisories.vulnerable(pins(), snapshot)
    dates = ", ".join(
        f"{source['database'].rpartition('github.com/')[2]} of {source['date']}" for source in snapshot["sources"]
    )
    print(f"{len(pins())} pins, {len(snapshot['advisories'])} advisories on them ({dates}): {len(faults)} faults")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["check"]:
            return check()
        case ["licences"]:
            licences.PAGE.write_text(licences.page(), encoding="utf-8")
        case ["sbom", file]:
            Path(file).write_text(bill(), encoding="utf-8")
        case ["advisories", *databases] if databases:
            print(f"{advisories.make_snapshot(list(map(Path, databases)))} advisories")
        case ["locks", uv]:
            locks.make(Path(uv))
        case ["digests"]:
            images.pin_anew()
        case ["translations"]:
            waiting = translations.update("de")
            print("\n".join(map(str, waiting)) or "every text has its German one")
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
