"""Health check of a container: asks the API whether one part (api, relay, worker) is ready."""

import json
import sys
import urllib.error
import urllib.request


def main() -> int:
    part = sys.argv[1]
    host = "127.0.0.1" if part == "api" else "api"
    try:
        with urllib.request.urlopen(f"http://{host}:8000/readyz", timeout=8) as reply:
            parts = json.load(reply)["parts"]
    except urllib.error.HTTPError as error:
        parts = json.load(error)["parts"]
    return 0 if parts[part] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
