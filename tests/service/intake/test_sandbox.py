"""The sandbox of the process that reads uploads, tried from inside: `probe_child.py` makes each forbidden attempt."""

import errno
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import psutil
import pytest

from service.domain.image_schema import parse_schema
from service.domain.privacy_unit import ImageUnit, PrivacyUnit
from service.intake import ingest, sandbox
from service.intake.caller import Caller
from service.intake.limits import IngestLimits
from service.intake.sandbox import landlock, seccomp
from service.intake.sealed import SealedFile
from tests.tiny_images import idx_pair, image_schema, make_images, npz, pictures

CSV = b"who,x\np,1\nq,2\n"
TABLE = {"fields": [{"name": "x", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}]}
UNIT = PrivacyUnit(column="who", max_rows_per_unit=1)
POLLS = 200


def _probe(monkeypatch, folder, content=CSV, schema=TABLE, unit=UNIT):
    monkeypatch.setattr(ingest, "_CHILD", "tests.service.intake.probe_child")
    said = []
    monkeypatch.setattr(ingest, "_notice_layers", said.append)
    limits = IngestLimits(seconds=100)
    with SealedFile.create(folder) as upload, SealedFile.create(folder) as canonical, SealedFile.create(folder) as more:
        upload.append(content)
        job = {
            "upload": upload.handle(),
            "canonical": canonical.handle(),
            "scratch": more.handle(),
            "schema": parse_schema(schema).as_json(),
            "privacy_unit": None if unit is None else unit.as_json(),
            "limits": limits.model_dump(),
            "fingerprint_key": "00" * 32,
            "accept_undeclared": [],
            "parent": os.getpid(),
        }
        found = ingest.run_child(job, limits, (upload, canonical, more), Caller())
        handed = {upload.descriptor, canonical.descriptor, more.descriptor}
    return found | {"layers": said[0], "handed": handed, "secrets": [job["fingerprint_key"], job["upload"]["key"]]}


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("IMPRIMATUR_SECRET_KEY_FILE", "/somewhere/secret.key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
        other, _ = os.pipe()
        os.set_inheritable(other, True)  # as a careless library would
        return _probe(monkeypatch, tmp_path_factory.mktemp("scratch"))


def _need(layer):
    if not sandbox.expected()[layer]:
        pytest.skip(f"this system does not have {layer}")


def test_every_layer_that_this_system_has_holds(probe):
    assert probe["layers"] == sandbox.expected()
    assert set(probe["layers"]) == set(sandbox.LAYERS)


def test_it_has_no_environment_and_no_secret_on_its_command_line(probe):
    assert set(probe["environment"]) <= {
        *("PYTHONPATH", "LANG", "LC_ALL", "LC_CTYPE", "POLARS_MAX_THREADS", "OMP_NUM_THREADS"),
        *("OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX", "ARROW_DEFAULT_MEMORY_POOL"),
        "_RJEM_MALLOC_CONF",  # which polars sets itself
    }
    shown = repr(probe["environment"]) + repr(probe["arguments"])
    assert not [secret for secret in (*probe["secrets"], "password", "secret.key") if secret in shown]
    assert probe["folder"] == "/"


def test_it_has_the_files_that_it_was_given_and_no_other(probe):
    """Standard streams, the three files, and the figures of its own memory."""
    assert {0, 1, 2} | probe["handed"] <= set(probe["files"])
    assert len(probe["files"]) == 3 + 3 + 1
    assert probe["upload"] == CSV.decode()


def test_its_memory_time_and_files_are_limited(probe):
    limits, allowed = probe["limits"], IngestLimits(seconds=100)
    assert limits["CORE"] == 0
    assert limits["CPU"] == 2 * allowed.seconds
    assert limits["FSIZE"] == 4 * allowed.unpacked_bytes
    assert allowed.memory_bytes < limits["AS"] < 2 * allowed.memory_bytes


def test_it_runs_as_a_user_of_its_own(probe):
    _need(sandbox.OWN_USER)
    user = probe["users"][0]
    assert user >= sandbox._FIRST_USER
    assert probe["users"] == [user] * 6, "no saved user, no other group"


def test_it_can_gain_no_rights(probe):
    _need(sandbox.NO_NEW_PRIVILEGES)
    assert probe["no_new_privs"] == 1


@pytest.mark.parametrize("where", ["main", "thread"])
def test_calls_of_the_kernel_are_refused(probe, where):
    _need(sandbox.SECCOMP)
    done = dict(probe[where])
    reads = {"read the accounts", "list the root", "list the checkout"}
    reads |= {"read the parent's environment", "read its own memory"}
    assert {name: outcome for name, outcome in done.items() if name not in reads} == {
        name: "PermissionError" for name in done if name not in reads
    }


@pytest.mark.parametrize("where", ["main", "thread"])
def test_nothing_but_the_interpreters_folders_can_be_read(probe, where):
    _need(sandbox.LANDLOCK)
    for name in ("read the accounts", "list the root", "list the checkout", "read the parent's environment"):
        assert probe[where][name] == "PermissionError", name


@pytest.mark.parametrize("kind", ["csv", "parquet", "png", "npz", "idx"])
def test_nothing_is_imported_once_the_user_has_changed(monkeypatch, tmp_path, kind):
    """The interpreter may lie in a folder that only root can read, as here in a home."""
    pixels, labels = make_images(12, seed=1)
    table = tmp_path / "table.parquet"
    pl.DataFrame({"who": ["p", "q"], "x": [1, 2]}).write_parquet(table)
    people, units = [f"u{i % 5}" for i in range(12)], ImageUnit(max_images_per_unit=3)
    content, schema, unit = {
        "csv": (CSV, TABLE, UNIT),
        "parquet": (table.read_bytes(), TABLE, UNIT),
        "png": (pictures(pixels, labels, units=people), image_schema(), units),
        "npz": (npz(pixels, labels), image_schema(), None),
        "idx": (idx_pair(pixels, labels), image_schema(), None),
    }[kind]
    assert _probe(monkeypatch, tmp_path, content, schema, unit)["modules"] == []


PARENT = """
import sys
from pathlib import Path
from service.domain.image_schema import parse_schema
from service.intake import ingest
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
ingest._CHILD = "tests.service.intake.slow_child"
ingest._notice_layers = lambda _: print("reading", flush=True)
with SealedFile.create(None) as upload:
    schema = parse_schema({"fields": [{"name": "x", "type": "boolean"}]})
    ingest.ingest_table(upload, schema, privacy_unit=None, limits=IngestLimits(), scratch_dir=None, fingerprint_key=bytes(32))
"""


def test_it_ends_with_a_parent_that_is_killed():
    _need(sandbox.NO_NEW_PRIVILEGES)
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"reading\n"
        (reader,) = psutil.Process(parent.pid).children()
        parent.kill()
    for _ in range(POLLS):
        with suppress(psutil.NoSuchProcess):
            if not reader.is_running() or reader.status() == psutil.STATUS_ZOMBIE:
                return
            time.sleep(0.05)
            continue
        return
    pytest.fail("the reading process outlived its parent")


def test_a_layer_that_is_missing_is_said_once(caplog):
    ingest._warn_once.cache_clear()
    missing = dict.fromkeys(sandbox.LAYERS, False)
    for _ in range(2):
        ingest._notice_layers(missing)
    assert len(caplog.records) == (1 if any(sandbox.expected().values()) else 0)
    assert ingest.describe_sandbox(missing).endswith(f"not here: {', '.join(sandbox.LAYERS)}")


# -- the filter itself, on both processors: a small reading of what the kernel would do --------------------------------


def _answer(machine, number, *arguments, audit=None, pid=77):
    words = [0] * 6
    words[: len(arguments)] = arguments
    data = {0: number, 4: machine.audit_number if audit is None else audit}
    for place, word in enumerate(words):
        data |= {16 + 8 * place: word & 0xFFFF_FFFF, 20 + 8 * place: word >> 32}
    program, at, held = seccomp.program(machine, pid), 0, 0
    while True:
        code, yes, no, operand = program[at]
        if code == 0x20:
            held, at = data[operand], at + 1
        elif code == 0x06:
            return operand
        else:
            hit = {0x15: held == operand, 0x25: held > operand, 0x45: bool(held & operand)}[code]
            at += 1 + (yes if hit else no)


ALLOW, EPERM, ENOSYS = 0x7FFF_0000, 0x5_0000 | errno.EPERM, 0x5_0000 | errno.ENOSYS


@pytest.mark.parametrize("name", seccomp.MACHINES)
def test_the_filter_on_each_processor(name):
    machine = seccomp.MACHINES[name]
    column = machine.column

    def answer(call, *arguments):
        return _answer(machine, seccomp._CONDITIONAL[call][column], *arguments)

    for numbers in seccomp.DENIED.values():
        if numbers[column] is not None:
            assert _answer(machine, numbers[column]) == EPERM
    read, write = ((0, 1), (63, 64))[column]
    assert _answer(machine, read) == _answer(machine, write) == ALLOW
    assert _answer(machine, read, audit=0x4000_0003) == 0x8000_0000, "another processor's numbers"
    assert _answer(machine, 0x4000_0000 | read) == ENOSYS, "x32"
    assert _answer(machine, 463) == ENOSYS
    assert answer("openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC) == ALLOW
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_TMPFILE | os.O_RDWR):
        assert answer("openat", 0, 0, flags) == EPERM
    assert answer("clone3") == answer("openat2") == ENOSYS
    assert answer("clone", 0x3D0F00) == ALLOW, "a thread"
    assert answer("clone", 0x11) == EPERM, "a process"
    assert answer("clone", 0x3D0F00 | 0x1000_0000) == EPERM, "a namespace"
    assert (answer("tgkill", 77), answer("tgkill", 1)) == (ALLOW, EPERM)
    assert (answer("prlimit64", 0, 7, 0), answer("prlimit64", 0, 7, 1 << 40)) == (ALLOW, EPERM)
    assert (answer("prctl", 15), answer("prctl", 4)) == (ALLOW, EPERM)
    assert (answer("ioctl", 0, 0x5401), answer("ioctl", 0, 0x5412)) == (ALLOW, EPERM)


def test_numbers_of_calls_are_those_of_this_kernel():
    """Against the headers, where they are installed."""
    headers = {0: "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", 1: "/usr/include/asm-generic/unistd.h"}
    seen = 0
    for column, header in headers.items():
        if not Path(header).exists():
            continue
        words = [line.split() for line in Path(header).read_text(encoding="ascii").splitlines()]
        known = {
            w[1].removeprefix("__NR_").removeprefix("__NR3264_"): w[2]
            for w in words
            if w[:1] == ["#define"] and w[-1].isdigit()
        }
        for call, numbers in (seccomp.DENIED | seccomp._CONDITIONAL).items():
            if numbers[column] is not None:
                seen += 1
                assert known[call] == str(numbers[column]), (header, call)
    if not seen:
        pytest.skip("no kernel headers here")


def test_what_landlock_knows_is_taken_away_whole():
    assert max(landlock._RIGHTS.values()) == 16
    assert landlock.version() >= 0
