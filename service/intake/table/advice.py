"""What to write into a schema where a text is not the usual CSV. The page has other words for it (`service/pages/rewording.py`)."""

from __future__ import annotations

from service.base.messages import Message

OTHER_ENCODING = Message(
    'If that is not how it is spelled, write another `encoding` into the dialect, as "windows-1250", "windows-1254" or '
    '"iso-8859-2".'
)
IN_UTF_8 = Message(
    ' Declare its encoding in the schema, for example "dialect": {"encoding": "windows-1251"}, or save it in UTF-8.'
)
NO_COMMAS = Message(
    'The columns are not separated by commas. Say in the schema what separates them, like "dialect": {"delimiter": ";"}.'
)
NAME_THE_LAST = Message("Name it in the header, or by the dialect's names.")
QUOTES_AND_ESCAPES = Message("The file cannot be read by the schema's dialect; check quotes and the escape character.")
