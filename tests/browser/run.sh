#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of `chokepoint serve` in headless Chromium: real clicks and keys, axe, no console message, the time from a slider's
# move to the repainted result. Exit code 77 (skipped, loudly) without node, Chromium or the modules of package-lock.json.
#   tests/browser/run.sh PROGRAM WORK_DIR [SCREENSHOTS_DIR]
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
skip() {
  echo "SKIPPED: $1; the page was not opened" >&2
  exit 77
}
command -v node >/dev/null || skip "no node"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || skip "no chromium, chromium-browser or google-chrome"
for module in playwright-core axe-core; do
  [ -d "$here/node_modules/$module" ] || skip "no node module $module (npm ci in tests/browser, or scripts/setup test)"
done
rm -rf "$2"
mkdir -p "$2"
exec node "$here/page_test.mjs" "$1" "$2" "$browser" "${3:-}"
