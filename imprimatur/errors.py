"""What a caller of the client catches.

`ApiError` has a subclass for every code of the service, and a subclass of that where the service's own error is one, too:

    try:
        dataset.order(epsilon=3)
    except imprimatur.errors.BudgetExhausted as refused:
        print(refused.detail, dataset.budget.remaining_epsilon)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class ApiError(Exception):
    """What the service answered instead: HTTP status, stable code, a sentence, and values to act on.

    Made with a code that has a class of its own, it is one of that class, as `OSError` is by its number.
    """

    default_code: ClassVar[str | None] = None
    _by_code: ClassVar[dict[str, type[ApiError]]] = {}

    def __init_subclass__(cls, code: str | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.default_code = code
            ApiError._by_code[code] = cls

    def __new__(cls, status: int, code: str, *_: Any) -> Self:  # noqa: ARG004 - as __init__ takes them
        special = ApiError._by_code.get(code, cls)
        return super().__new__(special if issubclass(special, cls) else cls)

    def __init__(self, status: int, code: str, detail: str, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(status, code, detail, values)
        self.status = status
        self.code = code
        self.detail = detail
        self.values = dict(values or {})

    def __str__(self) -> str:
        return self.detail


class Unreachable(ApiError, code="unreachable"):
    """Status 0: no service answered, or the answer broke off. `idempotency_key` in `values` makes an order safe to send again."""


class InvalidInput(ApiError, code="invalid_input"):
    """The request itself is wrong; `where` in `values` names the part. The client raises it, too, for what it sees before it asks."""


class InvalidSchema(InvalidInput, code="invalid_schema"):
    """The declared schema cannot be used."""


class DraftSchema(InvalidSchema, code="draft_schema"):
    """The schema is still marked as a draft that was read from the rows. Values: columns."""


class InvalidFile(InvalidInput, code="invalid_file"):
    """The uploaded file cannot be read, or disagrees with the schema."""


class InvalidOrder(InvalidInput, code="invalid_order"):
    """The order cannot be carried out on this dataset."""


class Unpriceable(InvalidOrder, code="unpriceable"):
    """No finite price could be computed for the order."""


class TooExpensiveToPrice(Unpriceable, code="too_expensive_to_price"):
    """Computing the price would take longer than is allowed."""


class TooMuchWork(InvalidOrder, code="too_much_work"):
    """The order would take longer, or more memory, than this installation allows."""


class TooLarge(ApiError, code="too_large"):
    """The body, or what it unpacks to, is over the limit."""


class Unauthenticated(ApiError, code="unauthenticated"):
    """No API key, or one that is not known."""


class Forbidden(ApiError, code="forbidden"):
    """The key is valid but lacks the scope; `required_scope` in `values`."""


class RateLimited(ApiError, code="rate_limited"):
    """Too many requests; `retry_after_seconds` in `values`."""


class TooManyOpenOrders(ApiError, code="too_many_open_orders"):
    """As many orders are open as may be; `limit`, `of` and `retry_after_seconds` in `values`."""


class TooSlow(ApiError, code="too_slow"):
    """The body came too slowly, or stopped coming."""


class CallerLeft(ApiError, code="caller_left"):
    """The connection ended while an upload was read; nothing of it was kept."""


class NotFound(ApiError, code="not_found"):
    """No such thing in this tenant."""


class AmbiguousName(ApiError, code="ambiguous_name"):
    """A name or the beginning of an id fits several; `candidates` in `values`. Raised by the client."""


class NameTaken(InvalidInput, code="name_taken"):
    """Another dataset has this name and another declaration. Raised by the client."""


class MethodNotAllowed(ApiError, code="method_not_allowed"):
    """The address does not take this method: client and service are of different versions."""


class UnknownHost(ApiError, code="unknown_host"):
    """The service does not answer to this host name."""


class Erased(ApiError, code="erased"):
    """The dataset's rows were erased; its ledger stays."""


class DuplicateRows(ApiError, code="duplicate_rows"):
    """These rows already have a budget; `dataset_id` and `same_declaration` in `values`."""


class OtherRows(ApiError, code="other_rows"):
    """The file that was sent again holds other rows than the dataset."""


class AlreadyCharged(ApiError, code="already_charged"):
    """An order has been charged, so the declaration stays."""


class OpenOrders(ApiError, code="open_orders"):
    """Orders on the dataset are reserved; `release_ids` in `values`."""


class DeclarationNeeded(InvalidOrder, code="declaration_needed"):
    """Bounds or categories are to be bought first: order `{"method": "declaration"}`; `columns` and `epsilon` in `values`."""


class AlreadyOrdered(ApiError, code="already_ordered"):
    """An order that buys bounds or categories of this dataset is under way."""


class UploadNeeded(ApiError, code="upload_needed"):
    """The upload is not kept; send the file again."""


class Redeclared(ApiError, code="redeclared"):
    """The declaration was replaced in the meantime."""


class IdempotencyConflict(ApiError, code="idempotency_conflict"):
    """The same idempotency key came with another order."""


class LedgerConflict(ApiError, code="ledger_conflict"):
    """The release's earlier entries rule this out."""


class BudgetExhausted(ApiError, code="budget_exhausted"):
    """The order does not fit; `remaining` and `requested` in `values`, in billionths of the whole budget."""


class NotReady(ApiError, code="not_ready"):
    """The release has nothing published (yet); `state` in `values`."""


class NotInRelease(ApiError, code="not_in_release"):
    """The release holds something else: answers instead of a generator, or the reverse."""


class NotCancellable(ApiError, code="not_cancellable"):
    """The release has ended."""


class NotReplaceable(ApiError, code="not_replaceable"):
    """The key has ended or has been replaced."""


class LastOwnerKey(ApiError, code="last_owner_key"):
    """It is the last owner key: without it no other key could be made."""


class NotPostponable(ApiError, code="not_postponable"):
    """The rows have an earlier deletion date already."""


class Unavailable(ApiError, code="unavailable"):
    """Something behind the service does not answer; ask again after `retry_after_seconds`."""


class NoSigningKey(Unavailable, code="no_signing_key"):
    """The service has lost its signing key; its operator has to act."""


class WrongSecretKey(ApiError, code="wrong_secret_key"):
    """The service has another secret key file than its data; its operator has to act."""


class Tampered(ApiError, code="tampered"):
    """Stored data were changed; the service does not use them."""


class InternalError(ApiError, code="internal_error"):
    """A fault of the service; its log has more."""


class MissingExtra(ImportError):
    """A package is missing that only an extra of the distribution installs."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs more packages: pip install 'imprimatur[{extra}]'")


class NotPublished(Exception):
    """A release that ended without anything to publish; `release` says how, and whether its charge stands."""

    def __init__(self, release: Mapping[str, Any]) -> None:
        why = f": {release['failure']}" if release.get("failure") else ""
        kept = "its charge stands" if release["state"] == "failed" else "nothing was charged"
        super().__init__(f"release {release['id']} {release['state']}{why} ({kept})")
        self.release = release


class OrderedNotDelivered(Exception):
    """An order was placed, and what came after it failed. Nothing has to be paid again: `release_id` names what is there."""

    def __init__(self, release_id: str, reason: BaseException) -> None:
        why = str(reason) or type(reason).__name__
        super().__init__(f"{why}. {how_to_go_on(release_id)}")
        self.release_id = release_id


def how_to_go_on(release_id: str) -> str:
    """A sentence for the end of an error."""
    return (
        f"Release {release_id} is ordered: do not order again, which pays again. "
        f"client.release('{release_id}').wait() waits for it, and .sample(1_000) draws from it"
    )
