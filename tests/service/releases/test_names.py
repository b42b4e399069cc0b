"""Names of releases as those of files."""

from urllib.parse import unquote

import pytest

from service.releases.names import MOST_BYTES_OF_A_STEM, attachment, file_stem


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("visits", "synthetic-visits"),
        ("March 2026, v1.2", "synthetic-March-2026-v1.2"),
        ("../../etc/passwd", "synthetic-etc-passwd"),
        ('a"; filename="b.exe', "synthetic-a-filename-b.exe"),
        ("C:\\x|y?<z>*", "synthetic-C-x-y-z"),
        ("a\r\nX: b\u202egnp", "synthetic-a-X-b-gnp"),
        ("Ko\u0308ln", "synthetic-K\u00f6ln"),
        ("हिन्दी", "synthetic-हिन्दी"),
        ("CON", "synthetic-CON"),
        ("-rf .", "synthetic-rf"),
        ("***", "synthetic"),
    ],
)
def test_a_name_becomes_that_of_a_file(name, stem):
    assert file_stem(name) == stem
    header = attachment(stem, "csv")
    assert header.isascii()
    assert header.isprintable()
    plain, _, encoded = header.removeprefix('attachment; filename="').partition('"')
    assert plain == "".join(mark if mark.isascii() else "_" for mark in stem) + ".csv"
    assert encoded == ("" if stem.isascii() else encoded)
    assert unquote(encoded.partition("UTF-8''")[2]) == ("" if stem.isascii() else f"{stem}.csv")


def test_a_long_name_fits_into_a_file_system():
    stem = file_stem("ä" * 200)
    assert len(stem.encode()) <= len("synthetic-") + MOST_BYTES_OF_A_STEM
    assert set(stem.removeprefix("synthetic-")) == {"ä"}
