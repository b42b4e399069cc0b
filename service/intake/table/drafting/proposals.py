"""What a draft proposes in the words of the command line. The page has others for them (`service/pages/rewording.py`)."""

from __future__ import annotations

from service.base.messages import Message

WHOSE = Message(
    "do several rows belong to one person? Then name it as the privacy unit (`--privacy-unit`) and leave it out of the "
    "schema. If each row is another person, remove it from the file and say `--rows-are-units`"
)
REMOVE = Message('remove it from the file, or give it `"role": "ignore"`')
MADE_ANEW = Message(
    "its values there come from a pattern, not from these; to have no such column, remove it from the file, or give it "
    '`"role": "ignore"`'
)
FREE_TEXT = Message(
    'remove it from the file, or give it `"role": "free_text"`; if its texts are the answers of a form, declare them as '
    "`enum` by hand"
)
PUBLIC_LIST = Message("if it is a code, declare the public list of it as `enum` by hand")
NAME_OR_REMOVE = Message("remove it from the file, or give it a name there or in `names` of the dialect")
CORRECT_OR_MISSING = Message("correct them in the file, or list them in the `missingValues` of the column")
UNITS_IN_THE_FIRST_ROW = Message(
    "it is in the first row: where that row holds units or more names, take it out of the file, or join it to the names "
    'by `"headerRows": [1, 2]` in the `dialect`'
)
ADD_TO_THE_ENUM = Message("if they are one, take them out of `missingValues` and add them to the `enum`")
MAKE_IT_CATEGORIES = Message("if they are one, take them out of `missingValues` and declare categories")
