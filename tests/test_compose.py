"""docker-compose.yml, without Docker: everything it names exists, and no password is checked in."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from service.platform.settings import Settings
from service.platform.storage import Storage

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service and name != "certificates"]
"""Tried by tests/test_compose_tls.py: `certificates`."""


def test_has_every_part():
    parts = {"certificates", "postgres", "redis", "migrate", "api", "relay", "worker-cpu", "worker-gpu", "front"}
    assert set(SERVICES) == parts
    assert SERVICES["front"]["profiles"] == ["tls"]
    assert SERVICES["worker-gpu"]["profiles"] == ["gpu"]
    assert SERVICES["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"][0]["capabilities"] == ["gpu"]


@pytest.mark.parametrize("name", OURS)
def test_commands_name_modules_and_objects_that_exist(name):
    python, flag, module, *arguments = shlex.split(SERVICES[name]["command"])
    assert (python, flag) == ("python", "-m")
    assert find_spec(module) is not None
    for argument in arguments:
        if re.fullmatch(r"[a-z_.]+:[a-z_]+", argument):
            path, _, attribute = argument.partition(":")
            assert f"{attribute} = " in _source(path) or f"def {attribute}(" in _source(path)


@pytest.mark.parametrize("name", ["migrate", "api", "worker-cpu"])
def test_options_of_commands_are_known(name):
    """`--help` of the very program lists every option that is given."""
    _, _, module, *arguments = shlex.split(SERVICES[name]["command"])
    command = [module, "worker", "--help"] if module == "celery" else [module, "--help"]
    shown = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=True, timeout=600)
    for option in (word.partition("=")[0] for word in arguments if word.startswith("--")):
        assert option in shown.stdout


@pytest.mark.parametrize("name", OURS)
def test_environment_variables_are_settings(name):
    for variable in SERVICES[name]["environment"]:
        assert variable.removeprefix("IMPRIMATUR_").lower() in Settings.model_fields


def test_only_what_signs_can_read_the_signing_key():
    """Nor does the API's volume of secrets hold it: the file lies in a volume of its own."""
    for name, service in SERVICES.items():
        signs = name in {"migrate", "relay", "worker-cpu", "worker-gpu"}
        mounted = dict(volume.split(":")[:2] for volume in service.get("volumes", []))
        assert (mounted.get("signing") == "/signing") == signs, name
        where = service.get("environment", {}).get("IMPRIMATUR_SIGNING_KEY_FILE")
        assert where == ("/signing/signing.key" if signs else None), name
    assert "/signing" in (ROOT / "Dockerfile").read_text().partition("-m 0700")[2].splitlines()[0]


def test_each_process_has_the_database_role_of_its_own():
    """And the owner's password is in no container but the one that migrates, and the server's."""
    roles = {"migrate": "postgres", "api": "imprimatur_api", "relay": "imprimatur_relay"}
    roles |= dict.fromkeys(("worker-cpu", "worker-gpu"), "imprimatur_worker")
    passwords = {"postgres": "POSTGRES", **{f"imprimatur_{part}": part.upper() for part in ("api", "relay", "worker")}}
    for name, role in roles.items():
        environment = SERVICES[name]["environment"]
        url = environment["IMPRIMATUR_DATABASE_URL"]
        assert url.startswith(f"postgresql+psycopg://{role}:${{{passwords[role]}_PASSWORD:?"), name
        assert ("IMPRIMATUR_MIGRATION_DATABASE_URL" in environment) == (name == "migrate")
        others = {f"{each}_PASSWORD" for each in passwords.values()} - {f"{passwords[role]}_PASSWORD"}
        assert not any(other in str(environment) for other in others), name


def test_a_worker_reads_its_part_of_the_secret_key_file_alone():
    for name in ("worker-cpu", "worker-gpu"):
        assert SERVICES[name]["environment"]["IMPRIMATUR_SECRET_KEY_FILE"] == "/secrets/worker.key"


def test_a_key_in_the_clear_is_refused_and_not_led_on():
    """Only the page redirects to HTTPS; and HSTS is for the names below this one, too."""
    sites = re.findall(r"^(\S+) \{\n(.*?)^\}", (ROOT / "docker" / "Caddyfile").read_text(), re.DOTALL | re.MULTILINE)
    (clear,) = (text for name, text in sites if name.startswith("http://"))
    assert re.findall(r"^\tredir (\S+)", clear, re.MULTILINE) == ["/"]
    assert re.search(r'^\trespond ".*" 403$', clear, re.MULTILINE)
    assert "reverse_proxy" not in clear
    (safe,) = (text for name, text in sites if not name.startswith("http://"))
    assert re.search(r'Strict-Transport-Security "max-age=31536000; includeSubDomains"', safe)


def test_only_ciphers_with_forward_secrecy_are_taken():
    wanted = "ECDHE+AESGCM:ECDHE+CHACHA20"
    assert f"ssl_ciphers={wanted}" in shlex.split(SERVICES["postgres"]["command"])
    assert f"tls-ciphers {wanted}" in (ROOT / "docker" / "broker.sh").read_text().splitlines()


def test_files_images_and_volumes_exist():
    dockerfile = (ROOT / "Dockerfile").read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", dockerfile, re.MULTILINE))
    for service in SERVICES.values():
        assert "build" not in service or service["build"]["target"] in stages
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith("./") else source in COMPOSE["volumes"]
        test = service.get("healthcheck", {}).get("test", [])
        assert not test or test[1] != "python" or (ROOT / test[2].removeprefix("/app/")).exists()
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE):
        for source in copied.split():
            assert (ROOT / source).exists(), source


def test_long_running_services_have_health_checks():
    for name, service in SERVICES.items():
        assert "healthcheck" in service or service["restart"] == "no", name


def test_no_password_is_checked_in():
    assert not (ROOT / ".env").exists() or ".env" in (ROOT / ".gitignore").read_text().splitlines()
    text = (ROOT / "docker-compose.yml").read_text()
    for line in text.splitlines():
        for match in re.findall(r"PASSWORD[^$]*[:=] *(.*)$", line.partition("#")[0]):
            assert match.startswith("${") or "${" in line, line
    example = (ROOT / "docker" / "example.env").read_text()
    names = set(re.findall(r"\$\{(\w+):\?", text))
    assert names == set(re.findall(r"^(\w+)=$", example, re.MULTILINE))


def test_credentials_of_an_object_store_come_from_their_file(monkeypatch):
    """Under the names of docker/storage.example.env they sign what the service really sends, to the address that is given."""
    for name, service in SERVICES.items():
        files = service.get("env_file", [])
        assert files == ([{"path": "docker/storage.env", "required": False}] if name in OURS else []), name
    assert "docker/storage.env" in (ROOT / ".gitignore").read_text().splitlines()
    example = (ROOT / "docker" / "storage.example.env").read_text()
    names = set(re.findall(r"^# ([A-Z_0-9]+)=", example, re.MULTILINE))
    seen: list[tuple[str, str]] = []

    class Store(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.send_header("ETag", '"x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        values = {
            "AWS_ACCESS_KEY_ID": "THEKEY",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_REGION": "eu-central-1",
            "AWS_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}",
        }
        assert values.keys() <= names
        for name, value in {**values, "AWS_ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(name, value)
        Storage.from_url("s3://bucket/prefix").put("a/b", b"x")
        server.shutdown()
    ((path, authorization),) = seen
    assert path.split("?")[0].endswith("bucket/prefix/a/b")
    assert re.search(r"Credential=THEKEY/\d{8}/eu-central-1/s3/", authorization)


def _source(module: str) -> str:
    return (ROOT / (module.replace(".", "/") + ".py")).read_text()
