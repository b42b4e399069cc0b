"""What a process is given: settings, the database, the object store, secrets, the outbox."""
