"""`/v1/ledger`: signed heads of the Merkle log, and proofs of what is in it. Reads hashes and public keys alone."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from service.auth.dependencies import ContextOf, Reader, get_outsider
from service.auth.reading import ReadingTurn
from service.base.errors import InvalidInput, NotFound, RateLimited, Unavailable
from service.ledger import log, signing_keys
from service.ledger.schemas import (
    ConsistencyReply,
    InclusionList,
    InclusionReply,
    SigningKeyList,
    SigningKeyReply,
    TreeHeadReply,
)
from service.platform.paging import DEFAULT_LIMIT
from service.requests.paging import BeforeNumber, Limit
from service.requests.problems import problems

router = APIRouter(prefix="/v1/ledger", tags=["ledger"])

LARGEST = 2**63 - 1
Size = Annotated[int, Query(ge=0, le=LARGEST)]


@router.get("/head", dependencies=[Depends(get_outsider)], responses=problems(NotFound, RateLimited, Unavailable))
def read_head(context: ContextOf) -> TreeHeadReply:
    """The newest signed head of the log. Open to all. The relay signs one within seconds of a new entry."""
    with context.transaction() as session:
        return TreeHeadReply.model_validate(log.newest_head(session).to_json())


@router.get("/consistency", dependencies=[Depends(get_outsider)], responses=problems(RateLimited, Unavailable))
def read_consistency(context: ContextOf, first: Size, second: Size) -> ConsistencyReply:
    """Proof that the log of `second` entries begins with the log of `first`. Open to all."""
    if first > second:
        raise InvalidInput("first: give the smaller tree size first", where="first")
    with context.transaction() as session:
        log.require_size(session, second)
        (path,) = log.consistencies(session, [first], second)
    return ConsistencyReply(first=first, second=second, path=log.hexadecimal(path))


@router.get("/keys", dependencies=[Depends(get_outsider)], responses=problems(RateLimited, Unavailable))
def list_signing_keys(context: ContextOf) -> SigningKeyList:
    """The public keys of certificates and heads, each endorsed by the one before it. Open to all."""
    with context.transaction() as session:
        keys = signing_keys.registered(session)
    return SigningKeyList(
        items=[SigningKeyReply.model_validate({**key.to_json(), "created_at": key.created_at}) for key in keys]
    )


@router.get("/proof", dependencies=[ReadingTurn], responses=problems(NotFound))
def read_proof(
    context: ContextOf,
    principal: Reader,
    dataset_id: uuid.UUID,
    seq: Annotated[int | None, Query(ge=1, le=LARGEST, description="One entry; default: all of the dataset.")] = None,
    tree_size: Annotated[
        int | None, Query(ge=0, le=LARGEST, description="Default: that of the newest signed head.")
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    before: BeforeNumber = None,
) -> InclusionList:
    """Proofs that entries of your dataset's ledger are in the log, a page of the newest. The leaf is an entry's hash, of 32 bytes."""
    with context.transaction() as session:
        log.require_own(session, principal.tenant_id, dataset_id)
        size = log.newest_head(session).tree_size if tree_size is None else log.require_size(session, tree_size)
        seqs = None if seq is None else [seq]
        proofs = log.inclusions(session, dataset_id, size, seqs, before=before, limit=limit + 1)
    following = proofs[-limit].seq if len(proofs) > limit else None
    proofs = proofs[-limit:]
    items = [InclusionReply(seq=p.seq, leaf_index=p.leaf_index, path=log.hexadecimal(p.path)) for p in proofs]
    return InclusionList(tree_size=size, items=items, next=following)
