"""A new method is two folders and one line: a toy is put into a copy of the tree, and the whole service offers it.

The copy's own servers run: HTTP, ledger, relay, worker, certificate, card, command line. Nothing else in the tree knows the toy.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from imprimatur import ApiError, Client
from tests.conftest import SMALL_SCHEMA, small_table
from tests.private_servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
TOY = ROOT / "tests" / "toy"
NAME = "noisy_mean"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout with the toy: two folders copied, one line added."""
    folder = tmp_path_factory.mktemp("toy") / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in ("imprimatur", "service", "workers", "migrations", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for side in ("service", "workers"):
        shutil.copytree(TOY / side / "methods" / NAME, folder / side / "methods" / NAME, ignore=ignored)
    catalogue = folder / "service" / "methods" / "catalogue.py"
    lines = catalogue.read_text(encoding="utf-8").splitlines(keepends=True)
    last = next(place for place, line in enumerate(lines) if '"dpacgan",' in line)
    lines.insert(last + 1, f'    "{NAME}",\n')
    catalogue.write_text("".join(lines), encoding="utf-8")
    return folder


def environment(tree: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("IMPRIMATUR_", "PYTEST_"))}
    return {**kept, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", **more}


@pytest.fixture(scope="module")
def service(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """`imprimatur up` of the copy."""
    folder = tmp_path_factory.mktemp("stack")
    command = [sys.executable, "-P", str(tree / "tests" / "shared_servers.py"), "stack", str(folder), str(os.getpid())]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(tree), cwd=tree, stdout=log, stderr=log)
    ready = folder / "ready.json"
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None)
        assert ready.exists(), (folder / "log").read_text(encoding="utf-8")
        facts: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
        yield {**facts, "key": (Path(facts["data"]) / "admin.key").read_text(encoding="utf-8").strip()}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def run_in(tree: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(tree), cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_ordered_priced_charged_run_answered_and_certified(service: Any, tmp_path: Path) -> None:
    table = small_table(tmp_path / "table.csv", rows=2_000)
    with Client(service["url"], service["key"]) as client:
        assert NAME in [method["name"] for method in client.methods()]
        dataset = client.create_dataset(table, SMALL_SCHEMA, epsilon=4.0)
        order = {"method": NAME, "epsilon": 3.0, "column": "size"}
        quote = client.quote(dataset["id"], order)
        assert quote["fits"]
        assert quote["order"]["column"] == "size"
        release = client.wait(client.create_release(dataset["id"], order)["id"])
        assert release["state"] == "published"

        answers = client.answers(release["id"])
        sizes = [int(line.split(",")[1]) for line in table.read_text(encoding="utf-8").splitlines()[1:]]
        assert answers["column"] == "size"
        assert answers["mean"] == pytest.approx(sum(sizes) / len(sizes), rel=0.05)

        certificate = client.certificate(release["id"])
        (mechanism,) = certificate["mechanisms"]
        assert (certificate["method"], mechanism["purpose"]) == (NAME, "noisy_mean_histogram")
        assert mechanism["releases"] == "counts of the bins of one column"
        path = tmp_path / "answers.zip"
        client.save_generator(release["id"], path)
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            assert json.loads(archive.read("answers.json"))["mean"] == answers["mean"]
            card = archive.read("MODEL_CARD.md").decode()
        assert "the mean of a column, computed from noisy counts of its bins" in card
        assert "Dwork and Roth 2014" in card

        assert client.budget(dataset["id"])["epsilon_spent"] == pytest.approx(3.0, rel=0.02)
        with pytest.raises(ApiError) as refused:
            client.create_release(dataset["id"], {**order, "epsilon": 3.9})
        assert refused.value.code == "budget_exhausted"
        with pytest.raises(ApiError) as wrong:
            client.quote(dataset["id"], {**order, "column": "colour"})
        assert wrong.value.status == 422
        with pytest.raises(ApiError) as no_rows:
            client.save_sample(release["id"], tmp_path / "rows.csv", 5)
        assert no_rows.value.code == "not_in_release"
    reply = httpx.post(
        f"{service['url']}/v1/publish",
        headers={"Authorization": f"Bearer {service['key']}"},
        files={"file": small_table(tmp_path / "other.csv").open("rb")},
        data={"schema": json.dumps(SMALL_SCHEMA), "budget": '{"epsilon": 5}', "order": json.dumps(order)},
    )
    assert reply.status_code == 422, reply.text
    assert "returns answers" in reply.text


def test_the_command_line_lists_it_with_its_knobs(tree: Path, service: Any) -> None:
    where = ("--url", service["url"], "--key", service["key"])
    assert NAME in run_in(tree, "-m", "imprimatur.cli", "methods", *where)
    shown = json.loads(run_in(tree, "-m", "imprimatur.cli", "methods", NAME, "--json", *where))
    assert "column" in shown["order"]["properties"]
    assert "numeric_bins" in run_in(tree, "-m", "imprimatur.cli", "methods", NAME, *where)


def test_openapi_has_its_order(service: Any) -> None:
    import httpx

    document = httpx.get(f"{service['url']}/openapi.json").json()
    assert "NoisyMeanOrder" in document["components"]["schemas"]


@pytest.mark.slow
def test_it_keeps_the_contract_of_every_method(tree: Path) -> None:
    files = ("tests/service/methods/test_method_contract.py", "tests/workers/methods/test_run_contract.py")
    told = run_in(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", f"{NAME} or two_folders")
    assert "[100%]" in told  # and the exit status was 0
