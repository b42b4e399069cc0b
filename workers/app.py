"""The Celery application of a worker: `celery -A workers.app:celery worker --pool=threads --concurrency=1`.

A message only says that a release may be ready to run; Postgres says whether it is. Messages are acknowledged before
the work begins, because the claim, not the broker, makes sure that a release runs once: the Redis transport redelivers
whatever stays unacknowledged longer than its visibility timeout, and a training may take hours.
"""

from __future__ import annotations

from service.platform.outbox import celery_sender
from service.platform.settings import get_settings

celery = celery_sender(get_settings().redis_url)
celery.conf.update(
    imports=("workers.tasks",),
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,  # a busy worker would sit on a message that an idle one could begin with
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    broker_connection_max_retries=None,
)
