"""A schema that `imprimatur schema draft` made says so in its descriptions; nothing is published by it unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imprimatur.draft_marks import DRAFT, is_marked
from service.base.errors import DraftSchema
from service.base.messages import Message

if TYPE_CHECKING:
    from service.domain.image_schema import DeclaredSchema

_NAMES_SHOWN = 20


def refuse_draft(schema: DeclaredSchema) -> None:
    """Raise `DraftSchema` while the schema, or a field of it, is marked as read from the rows."""
    document = schema.as_json()
    marked = [str(field["name"]) for field in document.get("fields", ()) if is_marked(field)]
    if marked or is_marked(document):
        raise DraftSchema(
            Message(
                "schema: this is a draft, made by reading the rows, and a schema is public. Declare what is known "
                "without the rows and remove the descriptions that begin with %(draft)s; or accept it as it is with "
                "accept_draft (--accept-draft)",
                draft=DRAFT,
            ),
            where="schema",
            columns=marked[:_NAMES_SHOWN],
        )
