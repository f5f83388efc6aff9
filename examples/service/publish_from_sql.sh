#!/bin/sh
# Counts that SQL makes, published with noise, and put back where SQL finds them.
#   SERVICE=http://127.0.0.1:8477 TOKEN=tdp_... RELEASE=... DATABASE=postgresql://... sh publish_from_sql.sh 2024-05-01
# Expects a table visits (day date, person text, place text), and the places in the order of the release's states.
set -eu
day=$1

counts=$(psql "$DATABASE" --no-psqlrc --quiet --tuples-only --no-align --set=day="$day" <<'SQL'
SELECT json_build_object('time', :'day', 'counts', json_agg(n ORDER BY place))
FROM (
    SELECT place, count(DISTINCT person) FILTER (WHERE day = :'day') AS n
    FROM visits GROUP BY place
) AS counted
SQL
)

# The day is the key: however often this runs, the day is published once.
published=$(printf %s "$counts" | curl --silent --show-error --fail-with-body --retry 8 --retry-connrefused --max-time 30 \
    --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" --header "Idempotency-Key: day-$day" \
    --data @- "$SERVICE/v1/releases/$RELEASE/publish")

psql "$DATABASE" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=published="$published" <<'SQL'
CREATE TABLE IF NOT EXISTS published_visits (day date PRIMARY KEY, counts json NOT NULL, head text NOT NULL);
INSERT INTO published_visits
SELECT (answer ->> 'time')::date, answer -> 'counts', answer ->> 'head' FROM (SELECT :'published'::json AS answer) AS one
ON CONFLICT DO NOTHING;
SQL
