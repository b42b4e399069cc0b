"""Object stores on the loopback for tests: S3 by moto, GCS by the same server behind bearer tokens, Azure by Azurite.

GCS is reached by its XML API, whose requests are those of S3 with other credentials: moto's S3 answers them once the token
is checked and replaced. No emulator of GCS that comes in a package has both lists and uploads in parts of that API.

    python -m tests.object_stores PORT TOKEN    # the second of them
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from service.local.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "clinic"
REGION = "us-east-1"
SECRET = "aHVudGVyMi1odW50ZXIyLWh1bnRlcjItaHVudGVyMg=="
"""Of the stores whose credentials a test may choose; its beginning is in no address and no table."""
WRONG = "d3JvbmctaHVudGVyLXdyb25nLWh1bnRlci13cm9uZy0="


@dataclass(frozen=True)
class Store:
    """A running store: the address of its one bucket, and the variables that let somebody in, or somebody else not."""

    scheme: str
    variables: dict[str, str]
    wrong: dict[str, str]
    secrets: tuple[str, ...]

    def address(self, path: str) -> str:
        return f"{self.scheme}://{BUCKET}/{path}"


@contextmanager
def s3(folder: Path) -> Iterator[Store]:
    """Signatures are checked: the first four requests make the bucket and its user."""
    _need("moto")
    import boto3

    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _server(command, port, folder, INITIAL_NO_AUTH_ACTION_COUNT="4"):
        address = f"http://127.0.0.1:{port}"
        anybody = {
            "endpoint_url": address,
            "region_name": REGION,
            "aws_access_key_id": "a",
            "aws_secret_access_key": "b",
        }
        boto3.client("s3", **anybody).create_bucket(Bucket=BUCKET)
        iam = boto3.client("iam", **anybody)
        iam.create_user(UserName="owner")
        key = iam.create_access_key(UserName="owner")["AccessKey"]
        allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName="owner", PolicyName="all", PolicyDocument=policy)
        variables = {
            "AWS_ENDPOINT_URL": address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
        yield Store("s3", variables, {"AWS_SECRET_ACCESS_KEY": WRONG}, (key["SecretAccessKey"], WRONG))


@contextmanager
def gcs(folder: Path) -> Iterator[Store]:
    _need("moto")
    port = free_port()
    with _server([sys.executable, "-m", "tests.object_stores", str(port), SECRET], port, folder):
        address = f"http://127.0.0.1:{port}"
        httpx.put(f"{address}/{BUCKET}", headers={"Authorization": f"Bearer {SECRET}"}).raise_for_status()
        variables = {
            "GOOGLE_BASE_URL": address,
            "GOOGLE_ALLOW_HTTP": "true",
            "GOOGLE_BEARER_TOKEN": SECRET,
        }
        yield Store("gs", variables, {"GOOGLE_BEARER_TOKEN": WRONG}, (SECRET, WRONG))


@contextmanager
def azure(folder: Path) -> Iterator[Store]:
    program = os.environ.get("IMPRIMATUR_TEST_AZURITE") or shutil.which("azurite-blob")
    if program is None:
        pytest.skip(
            "Azurite is not installed: `npm install -g azurite`, or its azurite-blob in IMPRIMATUR_TEST_AZURITE"
        )
    port, account = free_port(), "owner"
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    quiet = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    with _server([program, *where, *quiet], port, folder, AZURITE_ACCOUNTS=f"{account}:{SECRET}"):
        address = f"http://127.0.0.1:{port}/{account}"
        _make_container(address, account)
        variables = {
            "AZURE_STORAGE_ENDPOINT": address,
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": account,
            "AZURE_STORAGE_ACCOUNT_KEY": SECRET,
        }
        yield Store("az", variables, {"AZURE_STORAGE_ACCOUNT_KEY": WRONG}, (SECRET, WRONG))


def _make_container(address: str, account: str) -> None:
    """With a signature of the account's key, as a request for it needs."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    said = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    to_sign = "PUT" + "\n" * 12 + said + f"/{account}/{account}/{BUCKET}\nrestype:container"
    signature = hmac.new(base64.b64decode(SECRET), to_sign.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(signature).decode()}"
    httpx.put(f"{address}/{BUCKET}?restype=container", headers=headers).raise_for_status()


def _need(module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install 'imprimatur-server[dev]'")


@contextmanager
def _server(command: list[str], port: int, folder: Path, **variables: str) -> Iterator[None]:
    with (folder / f"{port}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + 600
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail((folder / f"{port}.log").read_text())
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(30)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _serve_gcs(port: int, token: str) -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    moto = DomainDispatcherApplication(create_backend_app)
    owner = f"AWS4-HMAC-SHA256 Credential=a/20260101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"

    def application(environ, start_response):
        if environ.get("HTTP_AUTHORIZATION") != f"Bearer {token}":
            start_response("401 Unauthorized", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AuthenticationRequired</Code><Message>Authentication required.</Message></Error>"]
        return moto({**environ, "HTTP_AUTHORIZATION": owner}, start_response)

    run_simple("127.0.0.1", port, application, threaded=True)


if __name__ == "__main__":
    _serve_gcs(int(sys.argv[1]), sys.argv[2])
