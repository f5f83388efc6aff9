#!/bin/sh
# May a count be published, and with how much noise? Asked of a service by curl alone.
#   SERVICE=http://127.0.0.1:8477 TOKEN=tdp_... sh publish.sh        (a token that owns all releases, as it creates one)
set -eu

ask() { # METHOD PATH [BODY] [KEY]
    if [ $# -ge 4 ]; then set -- "$1" "$2" "$3" --header "Idempotency-Key: $4"; fi
    method=$1 path=$2 body=${3:-}
    [ $# -ge 3 ] && shift 3 || shift 2
    curl --silent --show-error --fail-with-body --retry 8 --retry-connrefused --max-time 30 \
        --request "$method" --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" \
        ${body:+--data "$body"} "$@" "$SERVICE$path"
    echo
}

# A correlation, a level, and counts of two states, in which a person is counted once. The same key gives the same release again.
created=$(ask POST /v1/releases '{
    "alpha": 1.0, "mechanism": {"kind": "histogram", "n_states": 2}, "states": ["asleep", "awake"],
    "backward": [[0.8, 0.2], [0.2, 0.8]], "forward": [[0.8, 0.2], [0.2, 0.8]]
}' sleep-of-may)
release=$(printf %s "$created" | sed 's/.*"release":"\([0-9a-f]*\)".*/\1/')

ask POST "/v1/releases/$release/check" '{"epsilon": 0.2}'
ask POST "/v1/releases/$release/publish" '{"counts": [70, 30], "time": "2024-05-01"}' may-1
ask POST "/v1/releases/$release/publish" '{"counts": [70, 30], "time": "2024-05-01"}' may-1 # after a time-out: the same answer
ask POST "/v1/releases/$release/spend" '{"epsilon": 0.1, "time": "2024-05-02"}' may-2       # for something drawn elsewhere
ask GET "/v1/releases/$release"
ask GET "/v1/releases/$release/verify"
