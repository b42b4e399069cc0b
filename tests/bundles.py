"""Published ZIPs of generators that tests made themselves. Their certificates are what a test says they are."""

from workers.generators.answers import answers_files
from workers.generators.archive import pack
from workers.generators.image.bundle import image_files
from workers.generators.table.bundle import table_files


def build_bundle(*arguments, certificate, **more):
    """The ZIP of a generator of rows."""
    return pack(table_files(*arguments, certificate=certificate, **more), certificate)


def build_image_bundle(*arguments, certificate, **more):
    """The ZIP of a generator of images."""
    return pack(image_files(*arguments, certificate=certificate, **more), certificate)


def build_answers_bundle(*arguments, certificate, **more):
    """The ZIP of answers."""
    return pack(answers_files(*arguments, certificate=certificate, **more), certificate)
