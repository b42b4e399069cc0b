"""The Celery application of a worker: `celery -A workers.app:celery worker --pool=threads --concurrency=1`.

A message only wakes a worker; Postgres says what there is to do. Messages are acknowledged before the work begins: the
claim, not the broker, makes sure that a release runs once, and one that is not claimed is found by the next look.

What comes from the broker is not trusted. No command is taken from it (`worker_enable_remote_control`), nothing but JSON
is decoded, no task but ours is known, of a message only the name of its task is read (`workers/doorbell.py`), and what is
no message ends nothing (`workers/transport.py`).
"""

from __future__ import annotations

from celery import Celery

from service.base.errors import InvalidInput
from service.platform.broker import celery_sender
from service.platform.settings import get_settings
from workers.transport import use_for_redis


def _application() -> Celery:
    try:
        return celery_sender(get_settings().redis_url)
    except InvalidInput as error:
        raise SystemExit(f"the worker cannot start: {error.detail}") from None


use_for_redis()
celery = _application()
celery.conf.update(
    imports=("workers.tasks",),
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,  # a busy worker would sit on a message that an idle one could begin with
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    broker_connection_max_retries=None,
)
