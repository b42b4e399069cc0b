"""Tasks of which a message can say no more than the name: when, with what, and what then are not the broker's to say."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from celery import Celery, Task
from celery.worker.strategy import default


class Doorbell(Task):  # type: ignore[misc]
    """A task without arguments. A message with a later date, arguments or a task to be called next is one without."""

    abstract = True
    Strategy = "workers.doorbell:name_alone"


def name_alone(task: Task, app: Celery, consumer: Any) -> Callable[..., Any]:
    """Celery's way to receive a message, of which only the name of the task has been kept."""
    receive = default(task, app, consumer)

    def receive_bare(message: Any, _body: Any, ack: Any, reject: Any, callbacks: Any) -> Any:
        message.headers = {"lang": "py", "task": task.name, "id": str(uuid.uuid4())}
        message.body, message.content_type, message.content_encoding = "[[], {}, {}]", "application/json", "utf-8"
        return receive(message, None, ack, reject, callbacks)

    return receive_bare


def forget_other_tasks(app: Celery) -> None:
    """Celery knows tasks of its own, which would call any task that a message names."""
    for name in [name for name, task in app.tasks.items() if not isinstance(task, Doorbell)]:
        app.tasks.unregister(name)
