"""The page beside synthetic rows: what it says is so, and names of other people do nothing in it."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from html.parser import HTMLParser

import pytest

from imprimatur.cli.explaining import check_page, page_beside
from imprimatur.cli.output import Failure
from imprimatur.explanation import MARK, Names, fingerprint, in_100, odds, page

KEY = base64.b64encode(bytes(range(32))).decode()
CERTIFICATE = {
    "release_id": "7f1c2a3b-0000-4000-8000-000000000001",
    "issued_at": "2026-11-27T12:00:00+00:00",
    "unit": "one row",
    "units": 200,
    "epsilon": 1.0,
    "delta": 1e-6,
    "dataset_budget": {"epsilon": 5.0, "delta": 1e-6},
    "method": "marginals",
    "adjacency": "zero-out of one unit",
    "noise": "discrete Gaussian",
    "code_version": "0.1.0",
    "public_key": KEY,
    "warnings": ["<b>large</b>"],
    "not_protected": ["what the owner declares"],
}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


ALLOWED = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "p",
    "table",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "code",
}


def test_noisy_copies_of_images_are_called_so():
    certificate = CERTIFICATE | {"method": "image_release", "unit": "one column of pixels of one image"}
    text = page(certificate, Names("faces", "image_release-7f1c"))
    assert "a copy of one private image" in text
    assert "somebody whom you recognise in an image is in the private one" in text
    for said_of_rows in ("None of its rows was copied", "is not about that person", "Synthetic rows", "the table"):
        assert said_of_rows not in text
        assert said_of_rows in page(CERTIFICATE, Names("people", "marginals-7f1c"))


@pytest.mark.parametrize(
    ("method", "unit", "things"),
    [
        ("marginals", {"unit": "value of a column", "column": "image", "max_rows": 3}, "rows"),
        ("idpgan", {"unit": "row", "column": None, "max_rows": 1}, "rows"),
        ("idpgan", {"unit": "image", "column": None, "max_rows": 1}, "images"),
        ("mixture", {"unit": "all images of a unit", "column": "units", "max_rows": 3}, "images"),
        ("image_release", {"unit": "part of an image", "column": None, "max_rows": 1}, "images"),
    ],
)
def test_a_page_beside_images_speaks_of_no_row(method, unit, things):
    changed = {"method": method, "contribution_bound": unit, "unit": "one of them"}
    text = page(CERTIFICATE | changed, Names("set", "first", "images.zip"))
    assert f"To be sure of the {things}" in text
    assert f"What the {things} can do" in text
    if things == "images":
        assert not {"row", "rows", "table"} & set(
            re.findall(r"\w+", " ".join(_Tags(text.partition("<h1>")[2]).words).lower())
        )


class _Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.words.append(data)


def test_epsilon_is_said_as_odds_that_are_never_too_small():
    for epsilon in (0.01, 0.1, 1.0, 3.0, 5.0, 9.0):
        assert odds(epsilon) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)))
        assert float(in_100(epsilon).split()[0]) >= 100 * odds(epsilon)
    assert in_100(1.0) == "73.2 in 100"
    assert in_100(0.0) == "50 in 100"
    assert in_100(800.0) == "practically 100 in 100"


def test_the_page_says_what_is_promised_and_how_to_check_it():
    text = page(CERTIFICATE, Names("people", "first", "synthetic.csv", "c.json"))
    for said in (
        "at most 73.2 in 100",
        "ε = 1:",
        "δ = 1e-06",
        "at most 99.34 in 100",
        "what the owner declares",
        fingerprint(KEY),
        f"imprimatur verify --certificate c.json --public-key {KEY}",
        "synthetic.csv",
    ):
        assert said in text, said
    assert fingerprint(KEY).replace(" ", "") == hashlib.sha256(bytes(range(32))).hexdigest()


def test_names_of_other_people_do_nothing_in_it():
    hostile = {**CERTIFICATE, "unit": HOSTILE, "method": HOSTILE, "release_id": HOSTILE, "not_protected": [HOSTILE]}
    found = _Tags(page(hostile, Names(HOSTILE, HOSTILE, HOSTILE, HOSTILE)))
    assert found.tags <= ALLOWED
    assert not [name for name in found.attributes if name.startswith("on") or name in {"src", "href"}]
    assert any(HOSTILE in words for words in found.words)


def test_a_page_of_somebody_else_is_not_written_over(tmp_path):
    beside = page_beside(tmp_path / "synthetic.csv")
    assert beside == tmp_path / "synthetic.html"
    assert page_beside(None) is None
    check_page(beside)
    beside.write_text("<h1>my own</h1>")
    with pytest.raises(Failure, match="--no-explanation"):
        check_page(beside)
    beside.write_text(page(CERTIFICATE, Names("a", "b")))
    assert MARK in beside.read_text()
    check_page(beside)
