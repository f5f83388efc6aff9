#!/bin/sh
# Counts that SQL makes, published with noise, and put back where SQL finds them.
#   SERVICE=http://127.0.0.1:8477 TOKEN=tdp_... RELEASE=... DATABASE=postgresql://... sh publish_from_sql.sh 2024-05-01
# Expects a table visits (day date, person text, place text), and a release whose states are the places.
# The noise is for one place of a person and day: with more, or a place that is no state, nothing is published, and it exits with 2.
set -eu
day=$1

ask() { # PATH [OPTIONS OF CURL]
    path=$1
    shift
    curl --silent --show-error --fail-with-body --retry 8 --retry-connrefused --max-time 30 \
        --header "Authorization: Bearer $TOKEN" "$@" "$SERVICE/v1/releases/$RELEASE$path"
}

query() { psql "$DATABASE" --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 "$@"; }

# Which counts there are, and their order, depend on the release alone: a place of one person would shift the others.
release=$(ask "")
counts=$(query --set=day="$day" --set=release="$release" <<'SQL'
WITH there AS (SELECT DISTINCT person, place FROM visits WHERE day = :'day'),
states AS (SELECT * FROM json_array_elements_text(:'release'::json -> 'states') WITH ORDINALITY AS state (place, k)),
counted AS (SELECT k, count(there.place) AS n FROM states LEFT JOIN there USING (place) GROUP BY k)
SELECT json_build_object('time', :'day', 'counts', json_agg(n ORDER BY k)) FROM counted
HAVING (SELECT count(*) = count(DISTINCT person) AND count(*) = count(*) FILTER (WHERE place IN (SELECT place FROM states)) FROM there)
SQL
)
if [ -z "$counts" ]; then
    echo "expected one place for each person on $day, among the states of the release, got several, another one or none;" \
        "keep one row of each person and day, such as the last, in a view, and count that" >&2
    exit 2
fi

# The day is the key: however often this runs, the day is published once.
published=$(printf %s "$counts" | ask /publish --header "Content-Type: application/json" --header "Idempotency-Key: day-$day" --data @-)

query --set=published="$published" <<'SQL'
CREATE TABLE IF NOT EXISTS published_visits (day date PRIMARY KEY, counts json NOT NULL, head text NOT NULL);
INSERT INTO published_visits
SELECT (answer ->> 'time')::date, answer -> 'counts', answer ->> 'head' FROM (SELECT :'published'::json AS answer) AS one
ON CONFLICT DO NOTHING;
SQL
