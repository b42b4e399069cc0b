"""Rows and uploads as versions before revision 0030 stored them: bound to no name, and named otherwise."""

import uuid

import psycopg

from service.datasets import stored_objects
from service.datasets.models import Dataset
from service.platform.crypto import decrypt, encrypt


def store_as_before(context, database, dataset_id):
    """Replace what lies there; returns the names of the rows and of the kept upload."""
    with context.transaction() as session:
        found = session.get_one(Dataset, uuid.UUID(str(dataset_id)))
    names = [f"datasets/{found.id}/rows", f"datasets/{found.id}/upload-{uuid.uuid4().hex}"]
    data_key = context.secrets.unwrap_data_key(bytes(found.wrapped_data_key), found.id)
    upload_key = context.secrets.unwrap_data_key(bytes(found.wrapped_upload_key), f"{found.id}/{stored_objects.UPLOAD}")
    its = stored_objects.context_of_upload(found.upload_key, found.upload_key_id)
    for old, new, key, bound_to, before in (
        (found.storage_key, names[0], data_key, found.rows_context, ""),
        (found.upload_key, names[1], upload_key, its, "upload"),
    ):
        plain = list(decrypt(context.storage.stream(old), key, context=bound_to))
        context.storage.put(new, encrypt(plain, key, context=before))
        context.storage.delete(old)
    with psycopg.connect(database.owner_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # the database takes no such names any more
        connection.execute("UPDATE datasets SET storage_key = %s, upload_key = %s WHERE id = %s", (*names, found.id))
        connection.execute(
            "INSERT INTO dataset_objects SELECT %s, name FROM unnest(%s::text[]) AS name", (found.id, names)
        )
    return names
