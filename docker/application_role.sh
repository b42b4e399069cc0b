#!/bin/sh
# Run once by the postgres image on an empty volume: the application role gets its password before migrations give it its grants.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$APP_PASSWORD" --username postgres --dbname imprimatur <<'SQL'
CREATE ROLE imprimatur_app LOGIN PASSWORD :'password';
SQL
