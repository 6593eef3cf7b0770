#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One golden case of the command line: runs CASE/cmd (shell text in which `chokepoint` is the program) in a copy of the
# case's folder, and compares what it prints, with its exit code as the last line, with CASE/expected.txt.
#   tests/cli/run_case.sh PROGRAM CASE WORK_DIR [--update]
set -eu
program=$1
case_dir=$2
work_dir=$3

rm -rf "$work_dir"
mkdir -p "$work_dir/bin"
ln -s "$program" "$work_dir/bin/chokepoint"
cp -R "$case_dir" "$work_dir/case"
actual="$work_dir/actual.txt"
status=0
(
  cd "$work_dir/case"
  # A case must not depend on who runs it: plain text, no terminal, one locale.
  env -i PATH="$work_dir/bin:/usr/bin:/bin" LC_ALL=C.UTF-8 HOME="$work_dir" TERM=dumb COLUMNS=120 \
    EXAMPLES="$(dirname "$case_dir")/../../examples" sh ./cmd
) >"$actual" 2>&1 </dev/null || status=$?
echo "[exit code $status]" >>"$actual"

if [ "${4:-}" = --update ]; then
  cp "$actual" "$case_dir/expected.txt"
  exit 0
fi
if ! diff -u "$case_dir/expected.txt" "$actual"; then
  echo "If the new output is right: cmake --build BUILD_DIR --target update-golden, and say why in the commit." >&2
  exit 1
fi
