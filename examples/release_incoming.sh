#!/bin/sh
# Publish every file that has come into a folder, in the order of the names, into one ledger; for cron or a systemd path unit.
#
#   release_incoming.sh FOLDER --alpha 1 --history history.csv --ledger release.db [more options of `temporaldp release`]
#
# Counts are written to published/, and nothing else. A file of traces that was published is moved to released/, and one that is
# too late (a later step was released already) to late/; only their owner can read these folders. Write files under another
# suffix until they are complete (mv FILE.part FILE.csv).
# Any other error ends the script with the exit code of the command, and leaves the file and those after it where they are: if
# the options are wrong (2), no file is put aside, and if a file is wrong (2), a later one does not make its steps late.
# So does a second file of one name (2), whose traces would take the place of the first one's.
# A folder of these that is a symbolic link is refused (2): traces must not leave by it.
set -u
folder=$1
shift
for name in published released late; do
    if [ -L "$folder/$name" ]; then
        echo "$folder/$name is a symbolic link: expected a folder" >&2
        exit 2
    fi
done
mkdir -p "$folder/published" || exit 2
for private in released late; do
    mkdir -p -m 700 "$folder/$private" && chmod 700 "$folder/$private" || exit 2
done
worst=0
for file in "$folder"/*.csv; do
    [ -e "$file" ] || continue
    name=$(basename "$file" .csv)
    for taken in released late; do
        if [ -e "$folder/$taken/$name.csv" ]; then
            echo "$file has the name of an earlier file, which is in $folder/$taken: give it another name" >&2
            exit 2
        fi
    done
    temporaldp release "$file" "$@" -o "$folder/published/$name.parquet"
    code=$?
    case $code in
        0) mv "$file" "$folder/released/" ;;
        5) mv "$file" "$folder/late/"; worst=5 ;;
        *) exit $code ;;
    esac
done
exit $worst
