"""The application: routes put together, OpenAPI, the HTTP protocol, the quick routes."""
