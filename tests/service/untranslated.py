"""What of a sentence no translation reaches: texts that stand in it as they are, and are no user's.

Every sentence that a message is made of is in the catalog (tests/service/pages/test_translations.py), so what is looked for
is English that was put into it from outside: by an f-string, or as a plain text.
"""

import re

from service.base.errors import ImprimaturError
from service.base.messages import Listed, Message, Sentence, Text

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""")
"""Names, values and formats that somebody has declared."""


def untranslated(text):
    """Plain texts with three words in a row."""
    if isinstance(text, Message):
        parts = text.values.values()
    elif isinstance(text, Listed):
        parts = text.parts
    elif isinstance(text, Sentence):
        parts = [text.part]
    else:
        left = "" if isinstance(text, Text) else _QUOTED.sub("", str(text))
        return [str(text)] if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,} [A-Za-z]{2,}", left) else []
    return [one for part in parts for one in untranslated(part)]


def note_errors(monkeypatch, *kinds):
    """The sentences of all errors of these kinds that are made from now on."""
    noted, made = [], ImprimaturError.__init__

    def noting(self, detail, **values):
        made(self, detail, **values)
        if isinstance(self, kinds):
            noted.append(detail)

    monkeypatch.setattr(ImprimaturError, "__init__", noting)
    return noted
