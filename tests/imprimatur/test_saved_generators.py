"""`Client.save_generator` leaves a file only if it is the ZIP that the release's certificate signs."""

import http.server
import io
import json
import threading
import uuid
import zipfile

import pytest

from imprimatur import Client, NotAsCertified
from imprimatur.verify.members import facts_of
from workers.generators.archive import pack

FILES = {"sample.py": b"print('rows')", "config.json": b"{}"}
RELEASE = str(uuid.uuid4())


def certificate_of(release=RELEASE, **more):
    return {
        "format": 3,
        "release_id": release,
        "members": {name: facts_of(content) for name, content in FILES.items()},
        **more,
    }


@pytest.fixture
def serve():
    """A service that gives this certificate and this ZIP, whatever it is asked for."""
    servers = []

    def start(certificate, content):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps(certificate).encode() if self.path.endswith("/certificate") else content
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_certified_zip_is_saved(serve, tmp_path):
    content = pack(FILES, certificate_of())
    with Client(serve(certificate_of(), content)) as client:
        assert client.save_generator(RELEASE, tmp_path / "g.zip") == len(content)
    assert (tmp_path / "g.zip").read_bytes() == content


def doubled():
    buffer = io.BytesIO(pack(FILES, certificate_of()))
    with zipfile.ZipFile(buffer, "a") as archive:
        script = zipfile.ZipInfo("sample.py")
        script.external_attr = 0o100644 << 16
        archive.writestr(script, b"print('evil')")
    return buffer.getvalue()


OTHER = str(uuid.uuid4())
WRONG = {
    "a changed file": (certificate_of(), lambda: pack({**FILES, "sample.py": b"print('evil')"}, certificate_of())),
    "one more file": (certificate_of(), lambda: pack({**FILES, "setup.py": b""}, certificate_of())),
    "a file twice": (certificate_of(), doubled),
    "of another release": (certificate_of(), lambda: pack(FILES, certificate_of(OTHER))),
    "with its certificate": (certificate_of(OTHER), lambda: pack(FILES, certificate_of(OTHER))),
    "another certificate": (certificate_of(), lambda: pack(FILES, certificate_of(epsilon=0.1))),
    "cut off": (certificate_of(), lambda: pack(FILES, certificate_of())[:-1]),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("wrong", WRONG)
def test_no_other_zip_is_saved(serve, tmp_path, wrong):
    certificate, make = WRONG[wrong]
    (tmp_path / "g.zip").write_bytes(b"from before")
    with Client(serve(certificate, make())) as client, pytest.raises(NotAsCertified):
        client.save_generator(RELEASE, tmp_path / "g.zip")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("g.zip", b"from before")]
