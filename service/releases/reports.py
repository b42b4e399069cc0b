"""Reports on releases: the owner's, which is not private, and the charged one, which everybody who sees the release may read."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from service.audit import service as audit
from service.base.errors import NotFound, NotInRelease, NotReady
from service.base.messages import Message, Text
from service.datasets import owner_reports
from service.datasets import repository as datasets
from service.releases import repository
from service.releases.not_made import report_not_made
from service.releases.refusals import NOT_ACCEPTED, refusal_key
from service.releases.report_pages import MEMBER

if TYPE_CHECKING:
    import uuid

    from service.auth.principal import Principal
    from service.platform.context import Context
    from service.releases.bundles import Bundles

ENDED_WITHOUT = ("failed", "voided")


def read_owner_report(context: Context, principal: Principal, release_id: uuid.UUID) -> dict[str, Any]:
    """The report; where there is one, the audit log is told. The door has let owner keys in alone, and it is looked at again here."""
    principal.require("owner")
    with context.transaction() as session:
        release = repository.find(session, principal.tenant_id, release_id)
        if not release.order_.get("owner_report"):
            raise NotInRelease(
                Message('this release was ordered without an owner\'s report; order another with "owner_report": true'),
                holds="generator",
            )
        if release.state in ENDED_WITHOUT:
            raise NotReady(
                Message("this release is %(state)s, so no report of it will be made", state=Text(release.state)),
                state=release.state,
            )
        if release.state != "published":
            raise NotReady(
                Message(
                    "this release is %(state)s; its report is made after it is published", state=Text(release.state)
                ),
                state=release.state,
            )
        dataset = datasets.find(session, principal.tenant_id, release.dataset_id)
    try:
        report = owner_reports.get(context, dataset, release_id)
    except NotFound:
        raise NotReady(
            Message("the report is not there yet: a worker makes it beside its other work, within minutes"),
            state=release.state,
        ) from None
    with context.transaction() as session:
        # Before it is handed out, and only then: who looked too early has read nothing.
        audit.record(session, principal, "release", release_id)
    return report


def has_owner_report(context: Context, principal: Principal, release_id: uuid.UUID) -> bool:
    """Whether the owner's report is there by now; reads nothing of it."""
    principal.require("owner")
    with context.statement() as session:
        release = repository.find(session, principal.tenant_id, release_id)
    return owner_reports.is_there(context, release.dataset_id, release_id)


def read_report(context: Context, principal: Principal, bundles: Bundles, release_id: uuid.UUID) -> dict[str, Any]:
    """The charged report: of a published release from its ZIP, of a refused one from the signed record."""
    with context.transaction() as session:
        release = repository.find(session, principal.tenant_id, release_id)
        if release.order_.get("report") is None:
            raise NotInRelease(
                Message('this release was ordered without a report; order another with "report": {"share": 0.05}'),
                holds="generator",
            )
        is_refused = (release.state, release.failure) == ("failed", NOT_ACCEPTED)
        if release.state in ENDED_WITHOUT and not is_refused:
            raise NotReady(
                Message("this release is %(state)s, so there is no report of it", state=Text(release.state)),
                state=release.state,
            )
        if release.state != "published" and not is_refused:
            raise NotReady(
                Message("this release is %(state)s; its report comes with it", state=Text(release.state)),
                state=release.state,
            )
        not_made = report_not_made(release.certificate)
        if not_made is not None:
            raise NotInRelease(not_made, holds="generator")
        audit.record(session, principal, "release", release_id)
    if not is_refused:
        with zipfile.ZipFile(io.BytesIO(context.storage.get_content(bundles.checked_key(release)))) as archive:
            report: dict[str, Any] = json.loads(archive.read(MEMBER))
            return report
    try:
        record: dict[str, Any] = json.loads(context.storage.get(refusal_key(release_id)))
    except NotFound:
        raise NotReady(Message("the record of this refusal is not there"), state=release.state) from None
    bundles.require_signed(str(release_id), record["certificate"])
    return {**record["report"], "certificate": record["certificate"]}
