#!/usr/bin/env bash
# Run a command with its temporary files in memory if there is room for them (4 GB), and remove them afterwards.
# Thousands of tests write files, and each waits for the disk.
set -euo pipefail

need_kilobytes=4000000
folder=/dev/shm
free="$(df --output=avail "$folder" 2> /dev/null | tail -n 1 || true)"
if [ ! -w "$folder" ] || [ "${free:-0}" -lt "$need_kilobytes" ]; then exec "$@"; fi
TMPDIR="$(mktemp -d "$folder/argmaxable-tests-XXXXXX")"
chmod 711 "$TMPDIR" # PostgreSQL runs as another user
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$@"
