"""Both distributions, built from a copy of the tree and installed where nothing else is: what is in them, and what they need."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from imprimatur.version import VERSION
from tests.lending import bare_environment, empty_room, lend, lend_requirements
from tests.signed_histories import KEY, history

ROOT = Path(__file__).parents[1]
BUILT_FROM = ("imprimatur", "service", "workers", "migrations", "pyproject.toml", "README.md", "LICENSE")
DATA = {
    *(
        str(file.relative_to(ROOT))
        for kind in ("templates", "assets", "locale", "help")  # help: what `make site` built, if it did
        for file in (ROOT / "service" / "pages" / kind).rglob("*")
        if file.is_file()
    ),
    "service/methods/experience.csv",
    *("workers/numerics/sums.c", "workers/numerics/perceptron.c", "workers/numerics/discrete_gaussian.c"),
    *("workers/numerics/registers.h", "workers/audit_summary.json", "migrations/script.py.mako"),
    *("service/py.typed", "workers/py.typed"),
}
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the text that apache.org gives out as LICENSE-2.0.txt."""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Built as `pip wheel` does, with the setuptools that is here: no index is asked."""
    tree = tmp_path_factory.mktemp("tree")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", tree / "wheels")
    run(*PIP, "wheel", *options, tree / "imprimatur", tree, env=bare_environment())
    return {wheel.name.split("-")[0]: wheel for wheel in (tree / "wheels").iterdir()}


def install(python, *wheels):
    run(*PIP, "--python", python, "install", "--no-deps", "--no-index", *wheels, env=bare_environment())


def names_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def metadata_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def sources(*folders):
    return {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")}


def test_what_is_in_the_wheels(wheels):
    assert set(wheels) == {"imprimatur", "imprimatur_server"}
    assert names_in(wheels["imprimatur"]) == sources("imprimatur") | {"imprimatur/py.typed"}
    assert names_in(wheels["imprimatur_server"]) == sources("service", "workers", "migrations") | DATA


def test_both_are_under_the_apache_licence_and_hold_its_text(wheels):
    text = (ROOT / "LICENSE").read_bytes()
    assert hashlib.sha256(text).hexdigest() == APACHE_2
    for wheel in wheels.values():
        assert metadata_of(wheel)["License-Expression"] == "Apache-2.0"
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
            assert archive.read(name) == text


def test_both_have_one_version_and_the_server_needs_the_client_of_its_own(wheels):
    assert {metadata_of(wheel)["Version"] for wheel in wheels.values()} == {VERSION}
    needed = [Requirement(line) for line in metadata_of(wheels["imprimatur_server"]).get_all("Requires-Dist")]
    (client,) = (each for each in needed if each.name == "imprimatur")
    assert (client.extras, str(client.specifier)) == ({"registry", "verify"}, f"=={VERSION}")


def test_the_client_needs_three_libraries_and_no_server(wheels):
    needed = [Requirement(line) for line in metadata_of(wheels["imprimatur"]).get_all("Requires-Dist")]
    assert {each.name for each in needed if each.marker is None} == {"httpx", "rich", "typer"}


@pytest.fixture(scope="module")
def client_room(wheels, tmp_path_factory):
    python, packages = empty_room(tmp_path_factory.mktemp("client") / "room")
    install(python, wheels["imprimatur"])
    lend_requirements(metadata_of(wheels["imprimatur"]).get_all("Requires-Dist"), packages)
    return python, packages


def command(python, *arguments):
    return subprocess.run(
        [python.parent / "imprimatur", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=python.parents[1],
        env={**bare_environment(), "NO_COLOR": "1", "COLUMNS": "120"},
    )


def test_the_client_works_where_nothing_else_is(client_room):
    python, packages = client_room
    assert {path.name for path in packages.iterdir()}.isdisjoint({"service", "workers", "migrations", "cryptography"})
    code = """
import importlib.util, imprimatur
assert not any(importlib.util.find_spec(name) for name in ("service", "workers", "migrations"))
print(imprimatur.Client.__name__, imprimatur.ApiError.__name__, imprimatur.__version__)
try:
    import imprimatur.verify.signatures
except imprimatur.MissingExtra as error:
    print(error)
"""
    said = run(python, "-I", "-c", code, cwd=packages).splitlines()
    assert said[0] == f"Client ApiError {VERSION}"
    assert said[1] == "checking signatures needs more packages: pip install 'imprimatur[verify]'"
    names = ("client", "verify.chain", "verify.merkle", "verify.documents", "cli.application")
    run(python, "-I", "-c", "import " + ", ".join(f"imprimatur.{name}" for name in names))


def test_the_command_of_the_client_says_what_to_install_for_the_rest(client_room):
    python, _ = client_room
    shown = command(python, "--help")
    assert (shown.returncode, " publish " in shown.stdout, " up " in shown.stdout) == (0, True, False)
    assert ("imprimatur demo" in shown.stdout, "imprimatur datasets --url" in shown.stdout) == (False, True)
    for words in (
        ("up",),
        ("up", "--port", "1"),
        ("demo", "--help"),
        ("schema", "draft", "x.csv"),
        ("key", "replace-signing"),
    ):
        refused = command(python, *words, "--json")
        assert refused.returncode == 6
        assert json.loads(refused.stderr)["code"] == "server_not_installed"
        assert "pip install 'imprimatur-server[embedded,worker]'" in refused.stderr
    needs_one = command(python, "publish", sys.executable, "--schema", "{}", "--epsilon", "1")
    assert (needs_one.returncode, "imprimatur-server" in needs_one.stderr) == (6, True)
    assert "did you mean" in command(python, "releas").stderr.lower()


def test_a_certificate_is_checked_with_the_client_alone(wheels, tmp_path):
    python, packages = empty_room(tmp_path / "room")
    install(python, wheels["imprimatur"])
    (tmp_path / "certificate.json").write_text(json.dumps(history("post")[0]))
    arguments = ("verify", tmp_path / "certificate.json", "--public-key", KEY.public_key, "--json")
    lend_requirements(metadata_of(wheels["imprimatur"]).get_all("Requires-Dist"), packages)
    without = command(python, *arguments)
    assert (without.returncode, json.loads(without.stderr)["code"]) == (1, "not_installed")
    lend("cryptography", packages)
    checked = command(python, *arguments)
    assert json.loads(checked.stdout)["verified"], checked.stderr


@pytest.mark.slow
def test_the_server_adds_its_commands(wheels, tmp_path):
    """Beside the client's; what both need is taken from here, and their own code only from the wheels."""
    python, packages = empty_room(tmp_path / "room")
    install(python, *wheels.values())
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    code = (
        "import service.http.app, workers, imprimatur; print(service.__file__, workers.__file__, imprimatur.__file__)"
    )
    assert run(python, "-I", "-c", code, cwd=tmp_path).count(str(packages)) == 3
    shown = command(python, "--help")
    assert all(f" {name} " in shown.stdout for name in ("up", "demo", "schema", "publish"))
    assert "Loopback port" in command(python, "up", "--help").stdout
    assert "replace-signing" in command(python, "key", "--help").stdout
    refused = command(python, "key", "replace-signing", "--data", tmp_path / "nothing")
    assert (refused.returncode, "there is no service in" in refused.stderr) == (6, True)


def test_every_package_of_the_client_is_named():
    listed = tomllib.loads((ROOT / "imprimatur" / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "imprimatur").rglob("__init__.py")}
    assert set(listed) == {".".join(folder.parts) for folder in folders if "build" not in folder.parts}
