"""What can go wrong, as values. Nothing here knows HTTP; `service.requests.problems` maps each class to a status.

Every error has a stable `code` that clients may rely on and carries the values a person needs to act.
No error quotes a cell of a private table.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ImprimaturError(Exception):
    """Base of all expected errors: a stable code, one sentence, and values."""

    code: ClassVar[str] = "error"

    def __init__(self, detail: str, **values: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.values = values


class InvalidInput(ImprimaturError):
    """The request itself is wrong; `where` names the field, never a value of a private row."""

    code = "invalid_input"


class InvalidSchema(InvalidInput):
    """The declared schema cannot be used."""

    code = "invalid_schema"


class DraftSchema(InvalidSchema):
    """The schema is still marked as a draft that was read from the rows. Values: columns."""

    code = "draft_schema"


class InvalidFile(InvalidInput):
    """The uploaded file cannot be read or disagrees with the schema. Values: column, count (owner only)."""

    code = "invalid_file"


class InvalidOrder(InvalidInput):
    """The order cannot be carried out on this dataset."""

    code = "invalid_order"


class DeclarationNeeded(InvalidOrder):
    """Bounds or categories of the dataset are to be bought before anything else is ordered. Values: columns, epsilon."""

    code = "declaration_needed"


class AlreadyOrdered(ImprimaturError):
    """Bounds and categories of a dataset are bought once, and an order for that is under way."""

    code = "already_ordered"


class Unpriceable(InvalidOrder):
    """No finite price could be computed for the order."""

    code = "unpriceable"


class TooMuchWork(InvalidOrder):
    """The order is estimated to take longer, or to hold more, than this installation allows. Values: estimate, limits."""

    code = "too_much_work"


class TooExpensiveToPrice(Unpriceable):
    """Computing the price would take longer than is allowed. Ask for fewer noise levels or steps."""

    code = "too_expensive_to_price"


class TooLarge(ImprimaturError):
    """The body, or what it unpacks to, is over the limit. Values: limit_bytes."""

    code = "too_large"


class Unauthenticated(ImprimaturError):
    """No API key, or one that is not known."""

    code = "unauthenticated"


class Forbidden(ImprimaturError):
    """The key is valid but lacks the scope. Values: required_scope."""

    code = "forbidden"


class RateLimited(ImprimaturError):
    """Too many requests from a key, a tenant or an address. Values: retry_after_seconds."""

    code = "rate_limited"


class TooManyOpenOrders(ImprimaturError):
    """The key or its tenant has as many open orders as it may. Values: limit, of (`key` or `tenant`), retry_after_seconds."""

    code = "too_many_open_orders"


class PricingBusy(RateLimited):
    """Prices for this key, its tenant or all together are being computed. Values: retry_after_seconds."""


class TooSlow(ImprimaturError):
    """The body came too slowly, or stopped coming."""

    code = "too_slow"


class CallerLeft(ImprimaturError):
    """The caller hung up while an upload was read; nothing of it was kept."""

    code = "caller_left"


class NotFound(ImprimaturError):
    """No such thing in this tenant. Another tenant's id looks exactly the same."""

    code = "not_found"


class Gone(ImprimaturError):
    """The dataset's rows were erased; its ledger stays."""

    code = "erased"


class DuplicateRows(ImprimaturError):
    """These rows already have a budget. Values, for their own tenant only: dataset_id; same_declaration where an upload declares what the dataset does; columns_match where most columns are the same and not all rows."""

    code = "duplicate_rows"


class OtherRows(ImprimaturError):
    """The file that was sent again holds other rows than the dataset."""

    code = "other_rows"


class AlreadyCharged(ImprimaturError):
    """An order has been charged, so the declaration stays."""

    code = "already_charged"


class OpenOrders(ImprimaturError):
    """Orders on the dataset are reserved. Values: release_ids."""

    code = "open_orders"


class UploadNeeded(ImprimaturError):
    """The upload is not kept, or not for this key, or was read as often as it may be."""

    code = "upload_needed"


class Redeclared(ImprimaturError):
    """The declaration was replaced in the meantime."""

    code = "redeclared"


class IdempotencyConflict(ImprimaturError):
    """The same Idempotency-Key came with another body."""

    code = "idempotency_conflict"


class NameTaken(ImprimaturError):
    """Another release of the dataset has this name."""

    code = "name_taken"


class LedgerConflict(ImprimaturError):
    """A move that the release's earlier entries rule out, such as posting a voided reservation."""

    code = "ledger_conflict"


class BudgetExhausted(ImprimaturError):
    """Neither account has room. Values: remaining, requested (nano-shares of both accounts)."""

    code = "budget_exhausted"


class NotReady(ImprimaturError):
    """The release has no published artefacts (yet). Values: state."""

    code = "not_ready"


class NotInRelease(ImprimaturError):
    """The release holds something else: answers instead of a generator, or the reverse. Values: holds, at."""

    code = "not_in_release"


class NotCancellable(ImprimaturError):
    """The release has ended. Values: state."""

    code = "not_cancellable"


class NotReplaceable(ImprimaturError):
    """The key has ended or has been replaced."""

    code = "not_replaceable"


class LastOwnerKey(ImprimaturError):
    """It is the last owner key: without it no other key could be made."""

    code = "last_owner_key"


class NotPostponable(ImprimaturError):
    """The rows have an earlier deletion date already."""

    code = "not_postponable"


class Unavailable(ImprimaturError):
    """Something behind the service does not answer; what it did last is not known. Values: retry_after_seconds."""

    code = "unavailable"


class WrongSecretKey(ImprimaturError):
    """The secret key file is missing, or not the one that the database's data were made with."""

    code = "wrong_secret_key"


class Tampered(ImprimaturError):
    """Stored data fails its authentication: changed, cut off, or under another key. It is not used."""

    code = "tampered"
