"""Everything anybody outside can see is on allow_list.toml with its reason; a new field anywhere is red until listed.

Looked at: the OpenAPI document, live replies of every operation (JSON fields, headers, members of the ZIP), refusals,
server-sent events, metrics with their labels, every call of a logger in the source, and the lines the running API,
relay and worker really wrote. Then the same is done with two neighbouring tables, and must look the same.
"""

from __future__ import annotations

import ast
import io
import json
import re
import time
import tomllib
import zipfile
from functools import lru_cache
from pathlib import Path

import httpx
import pytest

from service.requests.problems import STATUS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KINDS = ("public", "post-processing", "owner-only", "charged")
SECONDS = 600.0
MARKER = "7.318527"
"""A cell of the private table that nothing may ever repeat."""


@lru_cache
def allow_list():
    """section -> name -> reason."""
    document = tomllib.loads((HERE / "allow_list.toml").read_text(encoding="utf-8"))
    listed = {}
    for section, reasons in document.items():
        listed[section] = {name: reason for reason, names in reasons.items() for name in names}
        assert len(listed[section]) == sum(map(len, reasons.values())), f"{section} lists something twice"
    return listed


def assert_listed(section, seen):
    """Every name seen is on the list; `*` at the end of a listed name stands for whatever its author wrote."""
    listed = allow_list()[section]
    open_ended = tuple(name[:-1] for name in listed if name.endswith("*"))
    new = sorted(name for name in set(seen) if name not in listed and not (open_ended and name.startswith(open_ended)))
    assert not new, f"not on allow_list.toml [{section}]; say why it may be seen, or do not show it: {new}"


def test_every_reason_names_its_kind():
    for section, names in allow_list().items():
        for name, reason in names.items():
            kind, _, why = reason.partition(": ")
            assert kind in KINDS, f"{section}: {name}"
            assert len(why) > 5, f"{section}: {name}"


# -- what is declared -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def openapi(stack):
    return httpx.get(f"{stack.url}/openapi.json").json()


def test_every_reply_of_the_openapi_document_is_listed(openapi):
    seen = set()
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            for status, reply in operation["responses"].items():
                for media in reply.get("content") or ("-",):
                    is_problem = media == "application/problem+json"  # these have one shape everywhere
                    seen.add(f"problem {status}" if is_problem else f"{method.upper()} {path} {status} {media}")
    assert_listed("operations", seen)
    assert set(allow_list()["operations"]) <= seen, "the list names operations that are gone"


def test_every_field_of_the_openapi_document_is_listed(openapi):
    schemas = openapi["components"]["schemas"]
    reachable, waiting = set(), []
    for operations in openapi["paths"].values():
        for operation in operations.values():
            waiting.extend(_references(operation["responses"]))
    while waiting:
        name = waiting.pop()
        if name not in reachable:
            reachable.add(name)
            waiting.extend(_references(schemas[name]))
    seen = {f"{name}.{field}" for name in reachable for field in schemas[name].get("properties", {})}
    assert_listed("schema_fields", seen)
    assert set(allow_list()["schema_fields"]) <= seen, "the list names fields that are gone"


def _references(document):
    return re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document))


# -- what is said by the processes ----------------------------------------------------------------------------------


def logger_calls():
    """Every call of a logger in the service and the workers: `module level: message`."""
    for room in ("imprimatur", "service", "workers"):
        for path in sorted((ROOT / room).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    of, level = ast.unparse(node.func.value), node.func.attr
                    if LOGGER.fullmatch(of) and level in LEVELS:
                        message = node.args[1 if level == "log" else 0]
                        text = message.value if isinstance(message, ast.Constant) else ast.unparse(message)
                        yield f"{module} {level}: {text}"


LOGGER = re.compile(r"_?(logger|logging|log)|logging\.getLogger\(.*\)")
LEVELS = {"debug", "info", "warning", "error", "critical", "exception", "log"}


def test_every_log_line_of_the_source_is_listed():
    seen = set(logger_calls())
    assert seen
    assert_listed("log_calls", seen)
    assert set(allow_list()["log_calls"]) <= seen, "the list names log lines that are gone"


def test_metrics_are_listed_with_their_labels(stack):
    text = httpx.get(f"{stack.url}/metrics").text
    seen = set()
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, labels = line.rpartition(" ")[0].partition("{")
            seen |= {name} | {f"{name}{{{label}}}" for label in re.findall(r'(\w+)="', labels)}
    assert seen
    assert_listed("metrics", seen)
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}", text), "an id in a label"


# -- what is really sent --------------------------------------------------------------------------------------------


class Watched:
    """An HTTP client of one tenant that writes down the shape of everything it is sent."""

    def __init__(self, url, key):
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=SECONDS)
        self.fields, self.headers, self.refusals, self.heard = {}, set(), [], []

    def __call__(self, kind, method, path, **options):
        reply = self.http.request(method, path, **options)
        self.headers |= {name.lower() for name in reply.headers}
        assert MARKER not in reply.text
        if reply.status_code >= 400:
            assert reply.headers["content-type"] == "application/problem+json", reply.text
            body = reply.json()
            self.note(f"problem {body['code']}", body)
            self.refusals.append((method, re.sub(r"[0-9a-f-]{36}", "ID", path), reply.status_code, body["code"]))
        elif reply.content and reply.headers.get("content-type") == "application/json":
            body = reply.json()
            self.note(kind, body)
        return reply

    def note(self, kind, document):
        for name, type_of in flattened(document, kind):
            self.fields.setdefault(canonical(name), set()).add(type_of)

    def watch(self, release_id):
        """The events of a release to its end: names, and the shapes of their data."""
        with self.http.stream("GET", f"/v1/releases/{release_id}/events") as stream:
            self.headers |= {name.lower() for name in stream.headers}
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    event = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    document = json.loads(line.removeprefix("data: "))
                    self.note("release", document)
                    self.heard.append((event, document["state"], document["progress"]["phase"], document["failure"]))
                else:
                    assert line in {"", ": still here"}, line
        return document


ONE_NAME = (
    (r"^datasets\.items\[\]|^new_dataset", "dataset"),
    (r"^releases\.items\[\]", "release"),
    (r"^(release|quote)\.order\b", "order"),
    (r"^(release\.certificate|zip\.certificate\.json)(?=\.)", "certificate"),
    (r"^(release|quote)\.price\b", "price"),
    (r"^(quote|certificate)\.forecast\b", "forecast"),
    (r"^(dataset|zip\.config\.json)\.schema\b", "schema"),
    (r"^problem \w+\.(code|detail|status|title|type)$", r"problem.\1"),
)
"""The same thing in several places is listed once."""


def canonical(name):
    for pattern, replacement in ONE_NAME:
        name = re.sub(pattern, replacement, name)
    return name


def flattened(value, name):
    """Paths of all leaves with their types; a list's places are all `[]`."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flattened(item, f"{name}.{key}")
    elif isinstance(value, list) and value:
        for item in value:
            yield from flattened(item, f"{name}[]")
    else:
        yield name, type(value).__name__


SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"], "required": True}},
        {"name": "weight", "type": "number", "constraints": {"minimum": 0.0, "maximum": 10.0}},
        {"name": "flag", "type": "boolean"},
    ]
}
ORDER = {
    "method": "idpgan",
    "epsilon": 1.0,
    "steps": 4,
    "condition_on": "colour",
    "networks": {"generator_hidden": [4], "critic_hidden": [4], "noise_dimension": 2},
}


def table(salt, last_row):
    """150 rows that were never uploaded before; neighbours differ in the last one alone."""
    rows = [
        f"{('red', 'green')[i % 2]},{(i * 37 % 997) / 100 + salt:.9f},{'true' if i % 3 else ''}" for i in range(148)
    ]
    return "\n".join(["colour,weight,flag", *rows, f"red,{MARKER},true", last_row]) + "\n"


def provoke_refusals(see, dataset, release, text, fields):
    """Wrong in every way one can be."""
    see("-", "PUT", f"/v1/datasets/{dataset}/declaration", json={"schema": SCHEMA})
    again = {"data": {**fields, "order": json.dumps(ORDER)}, "files": {"file": ("t.csv", text)}}
    assert see("-", "POST", "/v1/publish", **again).status_code == 409  # the same rows have their budget already

    renamed = {**SCHEMA, "fields": [{**field, "name": f"my {field['name']}"} for field in SCHEMA["fields"]]}
    named = text.replace("colour,weight,flag", "my colour,my weight,my flag")
    alike = {"data": {**fields, "schema": json.dumps(renamed)}, "files": {"file": ("t.csv", named)}}
    assert see("-", "POST", "/v1/datasets", **alike).json()["columns_match"] is True

    for path, document in (
        (f"/v1/datasets/{dataset}/releases", {**ORDER, "epsilon": 3.9}),
        (f"/v1/datasets/{dataset}/releases", {**ORDER, "nonsense": 1}),
        (f"/v1/datasets/{dataset}/releases", {**ORDER, "epsilon": 1e-9, "sampling_probability": 1.0, "steps": 10**6}),
    ):
        see("-", "POST", path, json=document)
    see("-", "POST", f"/v1/releases/{release}/cancel")
    see("-", "GET", "/v1/releases/1")
    see("-", "GET", f"/v1/releases/{dataset}")
    see("-", "GET", f"/v1/releases/{release}/answers")
    see("-", "GET", f"/v1/releases/{release}/sample?where=weight:99")
    see("-", "GET", f"/v1/releases/{release}/sample?rows=-1")
    see("-", "POST", "/v1/datasets", data={**fields, "schema": "{"}, files={"file": ("t.csv", text)})
    see("-", "POST", "/v1/datasets", data=fields, files={"file": ("t.csv", text.replace("red", "mauve"))})
    see("-", "GET", "/v1/datasets", headers={"Authorization": "Bearer no"})
    for moment in ("2098-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "1999-01-01T00:00:00Z"):
        see("dataset", "PATCH", f"/v1/datasets/{dataset}", json={"rows_expire_at": moment})


def correct_the_declaration(see, dataset, text):
    """Accepted and refused, before anything was ordered."""
    declaration = f"/v1/datasets/{dataset}/declaration"
    narrow = {"fields": [*SCHEMA["fields"][:1], {**SCHEMA["fields"][1], "constraints": {"minimum": 0, "maximum": 3}}]}
    assert see("-", "PUT", declaration, json={"schema": narrow}).json()["code"] == "invalid_file"  # a column is missing
    narrow["fields"].append(SCHEMA["fields"][2])
    for schema in (narrow, SCHEMA):
        said = {"schema": schema, "accept_undeclared": ["weight"]}  # most weights are above the narrow range
        assert see("new_dataset", "PUT", declaration, json=said).status_code == 200
    second = see.http.post("/v1/keys", json={"name": "o", "scope": "owner"}).json()["key"]
    see("-", "PUT", declaration, json={"name": "v"}, headers={"Authorization": f"Bearer {second}"})
    other = {"file": ("t.csv", text.replace("green", "red", 1))}
    see("-", "PUT", declaration, data={"name": "v"}, files=other)


def visit(url, key, text):
    """One owner's whole stay: every operation, every artefact, and the refusals one can provoke."""
    see = Watched(url, key)
    fields = {"schema": json.dumps(SCHEMA), "budget": json.dumps({"epsilon": 4.0, "delta": 1e-5}), "name": "visit"}
    made = see("new_dataset", "POST", "/v1/datasets", data=fields, files={"file": ("t.csv", text)})
    assert made.status_code == 201, made.text
    dataset = made.json()["id"]
    see("dataset", "GET", f"/v1/datasets/{dataset}")
    see("datasets", "GET", "/v1/datasets")
    correct_the_declaration(see, dataset, text)
    see("quote", "POST", f"/v1/datasets/{dataset}/quotes", json=ORDER)
    release = see("release", "POST", f"/v1/datasets/{dataset}/releases", json=ORDER).json()["id"]
    see("-", "GET", f"/v1/releases/{release}/sample")
    ended = see.watch(release)
    assert ended["state"] == "published", ended
    see("release", "GET", f"/v1/releases/{release}")
    see("certificate", "GET", f"/v1/releases/{release}/certificate")
    for sample_format in ("csv", "excel", "jsonl", "parquet", "arrow"):
        see("-", "GET", f"/v1/releases/{release}/sample?rows=20&format={sample_format}&seed=1")
    archive = zipfile.ZipFile(io.BytesIO(see("-", "GET", f"/v1/releases/{release}/generator").content))
    for member in archive.namelist():
        see.fields.setdefault(f"zip.{member}", set()).add("member")
        if member.endswith(".json"):
            see.note(f"zip.{member}", json.loads(archive.read(member)))
        assert MARKER.encode() not in archive.read(member)
    see.fields["zip.MODEL_CARD.md headings"] = set(
        re.findall(r"^#+ .*", archive.read("MODEL_CARD.md").decode(), re.MULTILINE)
    )
    provoke_refusals(see, dataset, release, text, fields)
    made = see("new_key", "POST", "/v1/keys", json={"name": "r", "scope": "reader"})
    see("-", "GET", "/v1/keys", headers={"Authorization": f"Bearer {made.json()['key']}"})
    see("keys", "GET", "/v1/keys")
    see("new_key", "POST", f"/v1/keys/{made.json()['id']}/replacement", json={})
    see("-", "POST", f"/v1/keys/{made.json()['id']}/replacement", json={})
    see("-", "DELETE", f"/v1/keys/{made.json()['id']}")
    see("audit", "GET", "/v1/audit?limit=5")

    see.http.post(f"/v1/datasets/{dataset}/releases", json={**ORDER, "steps": 20_000})
    last = see.http.get("/v1/releases").json()["items"][0]["id"]
    see("release", "POST", f"/v1/releases/{last}/cancel")
    deadline = time.monotonic() + SECONDS
    while see("release", "GET", f"/v1/releases/{last}").json()["state"] not in {"failed", "voided"}:
        assert time.monotonic() < deadline
        time.sleep(0.3)
    see("releases", "GET", "/v1/releases")
    budget = see("budget", "GET", f"/v1/datasets/{dataset}/budget").json()
    ledger = see("ledger", "GET", f"/v1/datasets/{dataset}/ledger").json()
    head = see("tree_head", "GET", "/v1/ledger/head").json()
    see("signing_keys", "GET", "/v1/ledger/keys")
    see("consistency", "GET", f"/v1/ledger/consistency?first=1&second={head['tree_size']}")
    see("inclusion", "GET", f"/v1/ledger/proof?dataset_id={dataset}")
    for kind, path in (("methods", "/v1/methods"), ("healthz", "/healthz"), ("readyz", "/readyz"), ("-", "/")):
        see(kind, "GET", path)
    see("-", "DELETE", f"/v1/datasets/{dataset}")
    see("-", "POST", f"/v1/datasets/{dataset}/releases", json={**ORDER, "epsilon": 0.5})
    return see, ended, budget, ledger


def stays(stack, new_tenant, *last_rows):
    """The same stay once for every table; the tables differ in their last row alone."""
    salt = time.time_ns() % 10**6 / 10**9
    return [visit(stack.url, new_tenant(), table(salt, row)) for row in last_rows]


def test_what_is_sent_is_listed_and_neighbours_look_the_same(stack, new_tenant):
    """An ordinary last row, and an outlier that is clamped. One test, so that the stays are made once."""
    made = stays(stack, new_tenant, "green,3.25,true", "red,1e300,false")
    for see, *_ in made:
        assert_listed("live_fields", see.fields)
        assert_listed("headers", see.headers)
        assert_listed("events", {f"{event} {state} {phase} {failure}" for event, state, phase, failure in see.heard})
        assert_listed("codes", {code for *_, code in see.refusals})
        assert len({code for *_, code in see.refusals}) >= 12
    kinds = {re.split(r"[.\[]", name)[0] for name in made[0][0].fields}
    assert kinds >= {
        "dataset",
        "budget",
        "ledger",
        "quote",
        "release",
        "certificate",
        "keys",
        "readyz",
        "zip",
        "problem",
    }
    assert_the_same_from_outside(made)
    assert_log_lines_are_listed(stack)


@pytest.mark.long
def test_more_neighbours_look_the_same(stack, new_tenant):
    """The null unit, a unit at the upper edge of its domain, and one far below the lower.

    Any two of these rows share one column at most, also where weights above 3 are clamped (`correct_the_declaration`):
    tables of which two columns of three are the same have one budget.
    """
    assert_the_same_from_outside(stays(stack, new_tenant, "green,3.25,true", "green,,", "red,10.0,", "red,-1e300,true"))


def test_every_code_is_listed():
    assert_listed("codes", {error.code for error in STATUS} | {"internal_error", "method_not_allowed"})


def assert_the_same_from_outside(made):
    """Same order, tables that differ in one unit: same shapes, states, codes, prices and ledger."""
    (first, ended, budget, ledger), *others = made
    for see, other_ended, other_budget, other_ledger in others:
        assert data_free(see.fields) == data_free(first.fields)
        assert see.headers == first.headers
        assert see.refusals == first.refusals
        for key in ("order", "price", "progress", "failure"):
            assert other_ended[key] == ended[key]
        assert stable(other_ended["certificate"]) == stable(ended["certificate"])
        assert other_budget["epsilon"] == budget["epsilon"]
        assert amounts(other_ledger)[:3] == amounts(ledger)[:3]


def data_free(fields):
    """Without the owner's notices, and without what depends on whether a cancel came before or after the charge.

    Nor the place of an audit line in its chain: the relay gives it within a second, and the newest line may lack it still.
    """
    left_out = ("dataset.notices", "release.failure", "audit.items[].place")
    return {name: types for name, types in fields.items() if not name.startswith(left_out)}


def stable(certificate):
    """A certificate less what differs between any two releases: ids, times, hashes of the ledger and of files."""
    different = {"release_id", "dataset_id", "issued_at", "signature", "transparency", "members"}
    kept = {k: v for k, v in certificate.items() if k not in different}
    kept["ledger_entry"] = {k: v for k, v in certificate["ledger_entry"].items() if k != "hash"}
    return kept


def amounts(ledger):
    return [(entry["kind"], entry["simple"], entry["renyi"]) for entry in ledger["items"]]


def assert_log_lines_are_listed(stack):
    """What API, relay and worker really wrote, each line of it; private cells are in none."""
    patterns = [re.compile(name) for name in allow_list()["log_lines"]]
    unknown = []
    for part in ("api", "relay", "worker"):
        text = (stack.data / "logs" / f"{part}.log").read_text(encoding="utf-8", errors="replace")
        assert MARKER not in text
        unknown += [f"{part}: {line}" for line in text.splitlines() if not any(p.search(line) for p in patterns)]
    assert not unknown, unknown[:20]
