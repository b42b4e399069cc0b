"""From the bytes of an upload to a canonical file, in a child process with limits."""
