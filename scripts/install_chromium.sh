#!/usr/bin/env bash
# The tests open pages in a real browser. On Debian and its relatives this installs one when there is none.
set -euo pipefail

for program in chromium-headless-shell chromium; do
    if command -v "$program" > /dev/null; then exit 0; fi
done
if ! command -v apt-get > /dev/null; then
    echo "The tests need the browser chromium on the PATH: install it and try again." >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
echo "Installing chromium for the tests"
"${as_root[@]}" apt-get -qq update
package=chromium-headless-shell # smaller, and four times as fast
apt-cache show "$package" > /dev/null 2>&1 || package=chromium
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$package" > /dev/null
