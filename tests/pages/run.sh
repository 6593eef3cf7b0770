#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Opens every kind of page in headless Chromium and fails on a console message, a picture without title or description, or
# an empty page. Exit code 77 (skipped, loudly) without Chromium.
#   tests/pages/run.sh PROGRAM EXAMPLES WORK_DIR
set -eu
program=$1
examples=$2
work=$3
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "SKIPPED: no chromium, chromium-browser or google-chrome; no page was opened" >&2
  exit 77
fi
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$program" predict "$examples/jobs/llama-3-8b-stork-8-ndr.yaml" --strategy "tensor=2 pipeline=2 zero=1 microbatch=1" --measured 20s --quiet --html predict.html >predict.txt
"$program" plan "$examples/jobs/llama-3-8b-sable-1.yaml" --quiet --html plan.html >plan.txt
"$program" plan "$examples/jobs/llama-3-8b-sable-1.yaml" --quiet --lang ru --html plan-ru.html >plan-ru.txt
"$program" plan --model llama-3-70b --cluster rtx3090-2 --batch 512 --seq 4096 --quiet --html nothing-fits.html >nothing.txt || true
"$program" wiring "$examples/clusters/sable-2-100g.yaml" --expect all_reduce --html wiring.html >wiring.txt
printf '[{"name":"k","ph":"X","ts":0,"dur":9,"pid":0,"tid":7,"cat":"kernel"},{"name":"ncclDevKernel_AllReduce","ph":"X","ts":9,"dur":5,"pid":0,"tid":7,"cat":"kernel"}]' >trace.json
"$program" diagnose trace.json --html diagnose.html >diagnose.txt
"$program" validate "$examples/../tests/data/validate/runs.csv" --html validate.html >validate.txt || true
"$program" whatif "$examples/jobs/llama-3-8b-heron-2-25g.yaml" --strategy "fsdp microbatch=1" --change "nic=100 Gb/s" --sensitivities --scale 8..256 --break-even --price 2 --as-of 2026-06-01 --html whatif.html >whatif.txt
failed=0
for page in *.html; do
  "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$work/profile" --virtual-time-budget=4000 \
    --window-size=1280,1600 --enable-logging=stderr --v=0 --dump-dom "file://$work/$page" 2>"$page.log" | sed '/<script/,/<\/script>/d' >"$page.dom" || true
  if grep "CONSOLE" "$page.log"; then
    echo "$page: console messages" >&2
    failed=1
  fi
  pictures=$(grep -o -E '<svg class="(draw|plot)"' "$page.dom" | wc -l)
  titled=$(grep -o -E '<title id="t[0-9]*">[^<]|<svg class="plot"[^>]* aria-label="[^"]' "$page.dom" | wc -l)
  described=$(grep -o -E '<desc id="d[0-9]*">[^<]|<svg class="plot"' "$page.dom" | wc -l)
  if [ "$pictures" -lt 1 ] || [ "$pictures" != "$titled" ] || [ "$pictures" != "$described" ]; then
    echo "$page: $pictures pictures, $titled titles, $described descriptions" >&2
    failed=1
  fi
  if grep -o -E '>[^<]*(NaN|undefined|Infinity|\[object)[^<]*<' "$page.dom"; then
    echo "$page: a value is missing" >&2
    failed=1
  fi
done
exit $failed
