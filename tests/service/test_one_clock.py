"""Machines' clocks differ: what decides or is written down is the database's time (seen with real processes: `python -m bench.clocks`)."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLOCK = re.compile(r"datetime\.(now|utcnow|today)\(|date\.today\(|\btime\.time(_ns)?\(")
OWN_CLOCK = {
    "service/platform/storage.py": "the age of an orphan: a day, and nothing depends on ten minutes of it",
    "service/http/refusals.py": "a log line of this machine",
}


def test_no_machine_asks_its_own_clock():
    found = {
        str(path.relative_to(ROOT))
        for room in ("service", "workers")
        for path in (ROOT / room).rglob("*.py")
        if CLOCK.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(OWN_CLOCK)
