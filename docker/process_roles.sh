#!/bin/sh
# The roles of the three processes and their passwords. Run once by the postgres image on an empty volume, before migrations
# give the roles their rights; on a volume that is older, by hand (docs/operating.md). Harmless to repeat.
set -eu
for part in api relay worker; do
    case $part in
        api) password=$API_PASSWORD ;;
        relay) password=$RELAY_PASSWORD ;;
        worker) password=$WORKER_PASSWORD ;;
    esac
    psql --set ON_ERROR_STOP=1 --set role="imprimatur_$part" --set password="$password" --username postgres --dbname imprimatur <<'SQL'
SELECT format('CREATE ROLE %I LOGIN', :'role') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') \gexec
ALTER ROLE :"role" LOGIN PASSWORD :'password';
SQL
done
