"""Sentences of the API in other words on the page: where they name what only its JSON, or its command line, has.

Of each the English one, and what the page says instead, with the same places or fewer of them.
"""

from __future__ import annotations

from service.base.messages import Message, plural
from service.intake.table.advice import IN_UTF_8, NAME_THE_LAST, NO_COMMAS, OTHER_ENCODING, QUOTES_AND_ESCAPES
from service.intake.table.drafting.proposals import (
    ADD_TO_THE_ENUM,
    CORRECT_OR_MISSING,
    FREE_TEXT,
    MADE_ANEW,
    MAKE_IT_CATEGORIES,
    NAME_OR_REMOVE,
    PUBLIC_LIST,
    UNITS_IN_THE_FIRST_ROW,
    WHOSE,
)

_ON_THE_PAGE = {
    "no such dataset; GET /v1/datasets lists yours": Message(
        "There is no such dataset. Yours stand on the first page."
    ),
    "no such release; GET /v1/releases lists yours": Message(
        "There is no such release. Those that you may see stand on the pages of their datasets."
    ),
    "%(who)s %(limit)s open orders, the most that are allowed at once; nothing was ordered: wait until one of them has ended, "
    "or cancel one (POST /v1/releases/{id}/cancel), and order again": Message(
        "%(who)s %(limit)s open orders, the most that are allowed at once. Nothing was ordered: wait until one of them has "
        "ended, or cancel one on its page, and order again"
    ),
    "%(header)s: use 1 to %(most)s printable characters, percent-encoded UTF-8": Message(
        "%(header)s: use 1 to %(most)s printable characters"
    ),
    "send your API key as 'Authorization: Bearer <key>'": Message("Write your API key into the field."),
    'A quote with "want": {"two_way_tv": 0.1} says which ε keeps them.': Message(
        "Where the order leaves that open, a larger ε keeps them."
    ),
    "want: how far off counts will be is not forecast for method: %(method)s; leave it out, or order marginals": Message(
        "want: how far off counts will be is not forecast for the method %(method)s; write an ε above, or choose marginals"
    ),
    "purpose: classifiers need something to predict, a `target` of at most %(max_strata)s categories in the schema or "
    "condition_on in the order": Message(
        "purpose: to predict, a column of at most %(max_strata)s categories is needed; choose it beside this"
    ),
    "purpose: rows for `tables` have no condition; leave out purpose or condition_on": Message(
        "purpose: rows that are to count and compare predict no column; leave one of the two as the schema says"
    ),
    "accept.two_way_tv: one column has no pairs; give accept.one_way_tv": Message(
        "accept.two_way_tv: one column has no pairs; say by how much single columns may be off"
    ),
    'accept.accuracy: it is measured on held-out units; order some, such as "report": {"share": 0.05, "held_out": 0.1}': (
        Message("accept.accuracy: it is measured on held-out units; say how many per cent of the units that are")
    ),
    "%(columns)s: bounds or categories are to be bought first, for an epsilon of %(total)s in all: order %(order)s "
    "(%(command)s), wait until it is published, and order again": Message(
        "%(columns)s: bounds or categories are to be bought first, for ε = %(total)s in all; the page of the dataset "
        "does that"
    ),
    'this release was ordered without a report; order another with "report": {"share": 0.05}': Message(
        "This release was ordered without a report. When you order another, tick that it is to be measured."
    ),
    'this release was ordered without an owner\'s report; order another with "owner_report": true': Message(
        "This release was ordered without an owner's report. When you order another, tick that real is to be shown "
        "beside synthetic."
    ),
    "%(where)s: this price leaves an epsilon of %(epsilon)s for one number, and %(least)s is the least: give more, or ask "
    "less at once": Message(
        "%(where)s: this leaves ε = %(epsilon)s for one number, and %(least)s is the least: give more, or ask less at once"
    ),
    "%(where)s: a unit may have %(most)s rows here, and `median` is for units of one row; ask for quantiles with "
    "probability 0.5": Message(
        "%(where)s: a unit may have %(most)s rows here, and the median is for units of one row; ask for the quartiles"
    ),
    "median: rows that do not count would stand at the middle of the range; take a required column and no `where`, or ask "
    "for quantiles with probability 0.5": Message(
        "rows that do not count would stand at the middle of the range; take a column without missing values, ask of all "
        "rows, or ask for the quartiles"
    ),
    "%(cells)s cells; %(most)s are the most: fewer bins or columns, or `keys`": Message(
        "%(cells)s cells; %(most)s are the most: ask of fewer columns, or for combinations that are common"
    ),
    "%(where)s: none of your datasets of this id is declared public; that is said at the upload (rows_are_public), and "
    "never later": Message(
        "%(where)s: none of your datasets of this id is declared public; that is said when it is published, and never later"
    ),
    "%(where)s: write true or false": Message("%(where)s: this value is not possible here"),
    "rows_are_public: rows that look like those of another dataset cannot be declared public; leave out distinct_from or "
    "this": Message(
        "rows_are_public: rows that look like those of another dataset cannot be declared public; take one of the two back"
    ),
    "most columns of these rows are those of dataset %(name)s, which has its budget. If they are still other people's rows, "
    "name that dataset in distinct_from (--distinct-from)": Message(
        "Most columns of these rows are those of dataset %(name)s, which has its budget. If they are still other people's "
        "rows, say so below."
    ),
    "so the declaration looks wrong; correct it, or name the column in accept_undeclared (--accept-undeclared)": Message(
        "so the declaration looks wrong; correct it, or name the column below, among the exceptions"
    ),
    "until the first order of its dataset, %(name)s, is charged, its declaration can be corrected: `imprimatur redeclare "
    "%(id)s`, PUT /v1/datasets/%(id)s/declaration": Message(
        "until the first order of its dataset, %(name)s, is charged, its declaration can be corrected: `imprimatur redeclare "
        "%(id)s`"
    ),
    "budget: delta must be at most 1/(10 units), which is %(largest)s: at 1/units, publishing one random unit as it is would "
    "keep the promise. Leave delta out for the default, %(default)s": Message(
        "budget.delta: at most 1/(10 units), which is %(largest)s: at 1/units, publishing one random unit as it is would "
        "keep the promise. Leave it empty for the default, %(default)s"
    ),
    "budget: delta must be at least %(least)s: at a smaller one prices cannot be computed in double precision. Leave delta "
    "out for the default, %(default)s": Message(
        "budget.delta: at least %(least)s: at a smaller one prices cannot be computed in double precision. Leave it empty "
        "for the default, %(default)s"
    ),
    "budget: epsilon must be at most %(largest)s here.": Message("budget.epsilon: at most %(largest)s here."),
    str(WHOSE): Message(
        "do several rows belong to one person? Then choose it below as the column that says whose row it is. If each row "
        "is another person, leave it as it is and say so below"
    ),
    str(MADE_ANEW): Message(
        "its values there come from a pattern, not from these; to have no such column, choose “nothing to publish: left out”"
    ),
    str(FREE_TEXT): Message(
        "choose “free text: leave it out”; if its texts are the answers of a form, choose categories and write the public "
        "list of them, or buy them"
    ),
    str(NAME_OR_REMOVE): Message("give it a name in the first line of the file, or remove it there"),
    str(UNITS_IN_THE_FIRST_ROW): Message(
        "it is in the first row: where that row holds units or more names, take it out of the file"
    ),
    str(MAKE_IT_CATEGORIES): Message(
        "if they are one, choose categories, and take them out of the other ways to write a missing value"
    ),
    str(OTHER_ENCODING): Message(
        "If that is not how it is spelled, save the file in UTF-8, which spreadsheets offer as “CSV UTF-8”, and send it again."
    ),
    str(IN_UTF_8): Message(" Save it in UTF-8, which spreadsheets offer as “CSV UTF-8”, and send it again."),
    str(NO_COMMAS): Message(
        "The columns are separated neither by commas nor in another way that most rows have in common. Open the file in a "
        "spreadsheet, leave the names in the first line and the rows below them, and save it again as CSV."
    ),
    str(NAME_THE_LAST): Message("Name it in the first line of the file, or remove it there."),
    str(QUOTES_AND_ESCAPES): Message(
        "The file cannot be read as CSV: its quotes are not closed. Open it in a spreadsheet and save it again as CSV."
    ),
    str(PUBLIC_LIST): Message("if it is a code, choose categories and write the public list of them, or buy them"),
    'remove it from the file, or give it `"role": "ignore"`': Message("choose “nothing to publish: left out”"),
    str(CORRECT_OR_MISSING): Message(
        "correct them in the file, or write them among the other ways to write a missing value"
    ),
    "if it means not known, write it into the field's `missingValues`": Message(
        "if it means not known, write it among the other ways to write a missing value"
    ),
    "if it means that nothing is known, write it into the field's `missingValues` and take it out of the `enum`; else leave "
    "it": Message(
        "if it means that nothing is known, write it among the other ways to write a missing value and take it out of the "
        "categories; else leave it"
    ),
    "if they are codes, declare them as `string` with an `enum`, which keeps them as they are written": Message(
        "if they are codes, choose categories (text), which keeps them as they are written"
    ),
    "where that matters, declare them as `string` with an `enum`, which keeps them as they are written": Message(
        "where that matters, choose categories (text), which keeps them as they are written"
    ),
    str(ADD_TO_THE_ENUM): Message(
        "if they are one, take them out of the other ways to write a missing value and add them to the categories"
    ),
    "list these in the `missingValues` of the column, or write the number alone, and the sign into a column of its own": (
        Message(
            "write these among the other ways to write a missing value, or write the number alone, and the sign into a "
            "column of its own"
        )
    ),
    "write the first day of each as a date, or declare the list of them as `enum`": Message(
        "write the first day of each as a date, or choose categories and write the list of them"
    ),
    "%(count)s of %(rows)s cells are not among the enum's values, %(correct)s": Message(
        "%(count)s of %(rows)s cells are not among the categories, %(correct)s"
    ),
    # Of a sentence that names the type of a column: what the form calls it (`service.pages.words.USES`).
    "string": Message("categories (text)"),
    "boolean": Message("yes or no"),
    "integer": Message("whole numbers"),
    "number": Message("numbers with a fraction"),
    "date": Message("dates"),
    "datetime": Message("dates with a time"),
}

_PLACES = dict.fromkeys(("column", "count", "rows", "spelled", "type"), "")
_COUNTED = {
    "1 cell is not of type %(type)s%(spelled)s%(rows)s": plural(
        "1 cell is not what the column holds (%(type)s)%(spelled)s%(rows)s",
        "%(count)s cells are not what the column holds (%(type)s)%(spelled)s%(rows)s",
        1,
        **_PLACES,
    ),
    "1 cell is not among the enum's values, and the column is required%(rows)s": plural(
        "1 cell is not among the categories, and the column may have no missing value%(rows)s",
        "%(count)s cells are not among the categories, and the column may have no missing value%(rows)s",
        1,
        **_PLACES,
    ),
    "1 cell is missing, but the column is required%(rows)s": plural(
        "1 cell is missing, but the column may have no missing value%(rows)s",
        "%(count)s cells are missing, but the column may have no missing value%(rows)s",
        1,
        **_PLACES,
    ),
    "Column %(column)s: 1 cell is not among the enum's values and became missing.": plural(
        "Column %(column)s: 1 cell is not among the categories and became missing.",
        "Column %(column)s: %(count)s cells are not among the categories and became missing.",
        1,
        **_PLACES,
    ),
    "Column %(column)s: 1 cell is read as missing: their text is among missingValues.": plural(
        "Column %(column)s: 1 cell is read as missing: its text is among the other ways to write a missing value.",
        "Column %(column)s: %(count)s cells are read as missing: their text is among the other ways to write a missing value.",
        1,
        **_PLACES,
    ),
    "Column %(column)s: 1 cell is written with zeros before other digits, as codes are, and numbers lose them. If "
    "these are codes, declare type string and list them in constraints.enum.": plural(
        "Column %(column)s: 1 cell is written with zeros before other digits, as codes are, and numbers lose them. If "
        "these are codes, choose categories (text) and write the list of them.",
        "Column %(column)s: %(count)s cells are written with zeros before other digits, as codes are, and numbers lose "
        "them. If these are codes, choose categories (text) and write the list of them.",
        1,
        **_PLACES,
    ),
}
"""By the sentence of one, where there is one of many, too."""


def reworded(origin: str) -> str:
    """What the page says instead; most texts are the same."""
    return _ON_THE_PAGE.get(origin, origin)


def reworded_by_number(one: str, many: str) -> tuple[str, str]:
    """The same of a sentence and its plural."""
    found = _COUNTED.get(one)
    return (one, many) if found is None else (found.origin, found.many)
