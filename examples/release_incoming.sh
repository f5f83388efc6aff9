#!/bin/sh
# Publish every file that has come into a folder, in the order of the names, into one ledger; for cron or a systemd path unit.
#
#   release_incoming.sh FOLDER --alpha 1 --history history.csv --ledger release.db [more options of `temporaldp release`]
#
# Counts are written to published/, and nothing else. A file of traces is moved once it is settled, to a folder that its owner
# alone can read: released/, late/ (a later step was released already) or refused/ (the data are wrong). Write files
# under another suffix until they are complete (mv FILE.part FILE.csv).
# A misspelt option ends the script (2) before any file is read.
# A folder of these that is a symbolic link is refused (2): traces must not leave by it.
# Where the budget is used up (3), or the ledger cannot be used (4), everything stays where it is, and that code is given.
set -u
folder=$1
shift
for name in published released late refused; do
    if [ -L "$folder/$name" ]; then
        echo "$folder/$name is a symbolic link: expected a folder" >&2
        exit 2
    fi
done
mkdir -p "$folder/published" || exit 2
for private in released late refused; do
    mkdir -p -m 700 "$folder/$private" && chmod 700 "$folder/$private" || exit 2
done
# A mistake in the options must not put good files aside: it is found before any file is read.
temporaldp release "$@" --help > /dev/null || exit 2
worst=0
for file in "$folder"/*.csv; do
    [ -e "$file" ] || continue
    name=$(basename "$file" .csv)
    temporaldp release "$file" "$@" -o "$folder/published/$name.parquet"
    code=$?
    case $code in
        0) mv "$file" "$folder/released/" ;;
        2) mv "$file" "$folder/refused/"; worst=2 ;;
        5) mv "$file" "$folder/late/"; [ $worst -eq 2 ] || worst=5 ;;
        *) exit $code ;;
    esac
done
exit $worst
