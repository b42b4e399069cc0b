"""A file takes the place of a file, and of nothing else: no device, no pipe, no link."""

import os
from pathlib import Path

import pytest

from imprimatur.errors import InvalidInput
from imprimatur.preflight import check_writable
from imprimatur.streams import Saving


def test_a_pipe_is_refused_and_stays(tmp_path):
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    for write in (check_writable, lambda path: Saving(path).__enter__()):
        with pytest.raises(InvalidInput, match="a device or a pipe"):
            write(pipe)
    assert pipe.is_fifo()
    with pytest.raises(InvalidInput, match="a device or a pipe"):
        check_writable(Path("/dev/null"))


def test_a_link_leads_to_the_file_that_is_written(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    with Saving(link) as saving:
        saving.write(b"new")
        saving.finish()
    assert (link.is_symlink(), target.read_text()) == (True, "new")
