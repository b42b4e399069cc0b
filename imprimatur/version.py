"""The version: of the client, of the server, and the one that certificates and OpenAPI name."""

VERSION = "0.1.0"
