#!/bin/sh
# Starts Valkey for docker-compose.yml: TLS only, one account with the rights that the service needs, nothing on disk.
# The configuration comes through a pipe, so the password is in no command line. Nothing is kept: it is never the truth.
set -eu
certificates=${CERTIFICATES:-/tls}
exec valkey-server - <<CONFIGURATION
port 0
tls-port ${BROKER_PORT:-6379}
tls-cert-file $certificates/server.crt
tls-key-file $certificates/server.key
tls-auth-clients no
tls-protocols "TLSv1.2 TLSv1.3"
tls-ciphers ECDHE+AESGCM:ECDHE+CHACHA20
save ""
appendonly no
maxmemory-policy noeviction
user default on >${REDISCLI_AUTH:?the password is missing} ~* &* +@all -@admin -@dangerous -@scripting +eval +evalsha +script|load +script|exists
CONFIGURATION
