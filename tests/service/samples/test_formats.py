"""One list of formats: whatever names formats elsewhere says the same."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest
import typer
from fastapi import FastAPI
from typer.testing import CliRunner

import imprimatur.client
from imprimatur import errors as client_errors
from imprimatur.cli.application import app
from imprimatur.cli.results import as_excel_wants
from imprimatur.formats import chosen_format
from imprimatur.replies import ImageFormat, RowFormat
from service.base.errors import InvalidInput
from service.pages.words import FORMAT_NAMES
from service.releases.endpoints import SAMPLE_CONTENT, router
from service.releases.publish import PROPERTIES
from service.samples import image_streams, row_streams
from service.samples.formats import FORMATS, default_format, described_formats, format_named, formats_of
from service.samples.table.command_line import WRITERS


def sample_query():
    application = FastAPI()
    application.include_router(router)
    operation = application.openapi()["paths"]["/v1/releases/{release_id}/sample"]["get"]
    return {each["name"]: each for each in operation["parameters"]}, operation["responses"]["200"]["content"]


@pytest.mark.parametrize("content", ["rows", "images"])
def test_every_content_has_one_default(content):
    assert [name for name in formats_of(content) if FORMATS[name].default] == [default_format(content)]


def test_every_format_has_a_writer_and_every_writer_a_format():
    for module in (row_streams, image_streams):
        public = {
            function
            for name, function in inspect.getmembers(module, inspect.isfunction)
            if function.__module__ == module.__name__ and "wanted" in inspect.signature(function).parameters
            if not name.startswith("_")
        }
        writers = [each.load_writer() for each in FORMATS.values() if each.writer.startswith(module.__name__)]
        assert len(writers) == len(set(writers))
        assert set(writers) == public


def test_endings_are_unique():
    endings = [ending for each in FORMATS.values() for ending in each.endings]
    assert len(endings) == len(set(endings))
    assert [each.endings[0] for each in FORMATS.values() if not each.like] == [
        name for name, each in FORMATS.items() if not each.like
    ]
    assert all(bool(each.endings) != bool(each.like) and each.ending in endings for each in FORMATS.values())


def test_the_api_offers_every_format():
    query, content = sample_query()
    offered = [name for kind in query["format"]["schema"]["anyOf"] for name in kind.get("enum", [])]
    assert offered == list(FORMATS)
    assert query["format"]["description"] == described_formats()
    assert all(re.search(rf"\b{name} \(", described_formats()) for name in FORMATS)
    assert PROPERTIES["format"]["enum"] == list(FORMATS)
    media_types = [each.media_type.split(";")[0] for each in FORMATS.values()]
    assert list(content) == list(SAMPLE_CONTENT) == list(dict.fromkeys(media_types))


def test_the_query_of_a_sample_stays_what_clients_know():
    query, _ = sample_query()
    assert list(query) == ["release_id", "rows", "format", "where", "seed", "formulas", "weights"]
    assert (query["rows"]["schema"]["default"], query["rows"]["schema"]["minimum"]) == (1_000, 0)
    assert query["formulas"]["schema"]["default"] == "keep"


def test_client_and_command_line_know_every_format():
    for content, known in (("rows", get_args(RowFormat)), ("images", get_args(ImageFormat))):
        assert set(known) == set(formats_of(content))
        assert known[0] == default_format(content), "help says that the first one is the default"
    assert imprimatur.client.SampleFormat == RowFormat | ImageFormat
    for name, each in FORMATS.items():
        assert chosen_format(name, None) == name
        assert [chosen_format(None, Path(f"rows.{ending}")) for ending in each.endings] == [name] * len(each.endings)
    for named, output in (("xlsx", None), (None, Path("rows.xlsx"))):
        with pytest.raises(client_errors.InvalidInput) as refused:
            chosen_format(named, output)
        assert all(name in str(refused.value) for name, each in FORMATS.items() if named or not each.like)
    assert chosen_format(None, None) is None
    with pytest.raises(client_errors.InvalidInput):
        chosen_format(None, Path("rows.excel"))


def test_for_excel_on_the_command_line_is_the_format_of_that_name():
    assert [as_excel_wants(format_) for format_ in (None, "csv", "excel")] == [{"format": "excel"}] * 3
    with pytest.raises(typer.BadParameter):
        as_excel_wants("parquet")


def test_the_page_has_words_for_every_format():
    assert list(FORMAT_NAMES) == list(FORMATS)


@pytest.mark.parametrize("command", ["sample", "publish"])
def test_help_names_every_format(command):
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    (line,) = [line for line in text.splitlines() if "--format" in line]
    assert set(FORMATS) <= set(re.findall(r"\w+", line)), line


def test_the_script_of_a_bundle_writes_formats_of_the_service():
    assert list(WRITERS) == [name for name in formats_of("rows") if FORMATS[name].in_script]
    assert [name for name in formats_of("images") if FORMATS[name].in_script] == [default_format("images")]


def test_an_unknown_format_is_refused_with_all_others_named():
    with pytest.raises(InvalidInput) as refused:
        format_named("pickle")
    assert all(name in str(refused.value) for name in FORMATS)
