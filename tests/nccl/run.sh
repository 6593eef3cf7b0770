#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `measure --network` with NCCL between GPUs, on libraries made for the test that move real bytes between processes: three
# "hosts" of one kernel, h2 far slower than the others.
#   tests/nccl/run.sh PROGRAM LIBRARIES
set -u
program=$1
libraries=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() {
  echo "SKIPPED: $*"
  exit 77
}
command -v mpirun >/dev/null || skip "needs mpirun (Debian: openmpi-bin)"
command -v python3 >/dev/null || skip "needs python3"
[ -x "$(dirname "$program")/chokepoint-measure-mpi" ] || skip "needs chokepoint-measure-mpi (a build with MPI)"
cd "$work" || exit 1
failed=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR="$work" CHOKEPOINT_FAKE_DIR="$work"
# measure FOLDER HOSTS [OPTION...]: one rank for each word of HOSTS, "name" or "name:rate"; exit code in $code.
measure() {
  folder=$1
  hosts=$2
  shift 2
  set -- "$program" measure --network --window 0.5 --repeats 2 --budget 90 "$@"
  for host in $hosts; do
    rate=${host#*:}
    [ "$rate" = "$host" ] && rate=2e6
    # One rank of its own for each host: a file of words that mpirun reads back.
    printf '%s\n' "-np 1 env CHOKEPOINT_HOST_NAME=${host%%:*} CHOKEPOINT_FAKE_RATE=$rate LD_LIBRARY_PATH=$folder $*" >>"$work/app"
  done
  code=0
  timeout 150 mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl self,tcp --mca btl_tcp_if_include lo --app "$work/app" >"$work/out.txt" 2>"$work/err.txt" || code=$?
  rm -f "$work/app"
}
expect() {
  if [ "$2" = "$3" ]; then echo "  $1: $2"; else echo "  FAILED: $1: found '$2', expected '$3'"; cat "$work/out.txt" "$work/err.txt"; failed=1; fi
}
value() {
  python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print($1)" "$work/net.json"
}
has() {
  if grep -qF -e "$1" "$work/out.txt" "$work/err.txt"; then echo "  has: $1"; else echo "  FAILED: no '$1' in:"; cat "$work/out.txt" "$work/err.txt"; failed=1; fi
}

measure "$libraries" "h0 h1 h2:4e5" --save "$work/net.json"
[ $code -eq 3 ] && grep -q "There are not enough slots" "$work/err.txt" && skip "mpirun cannot start three ranks here"
expect "exit code" $code 1
expect "what carried it" "$(value 'd["transport"]')" "nccl 2.99.1"
expect "slow, both ways" "$(value '[any(line.startswith(w) for line in d["slow"]) for w in ("h2 sends at most", "h2 receives at most")]')" "[True, True]"
expect "hosts measured" "$(value '[h["out_bytes_per_s"]["samples"] > 0 and h["latency_s"]["samples"] > 0 for h in d["hosts"]]')" "[True, True, True]"
expect "h2 at its rate" "$(value '[2e5 < h["out_bytes_per_s"]["median"] < 4.6e5 for h in d["hosts"] if h["name"] == "h2"]')" "[True]"
expect "collectives" "$(value 'sorted(set(c["op"] for c in d["collectives"]))')" "['all_gather', 'all_reduce', 'reduce_scatter']"
[ -z "$(ls "$work" | grep -E '^[0-9]+-[0-9]+-[0-9]+-[0-9]+$' | head -1)" ] && { echo "  FAILED: no pipe was used"; failed=1; }

echo "One GPU for two ranks of a host: MPI, and why"
measure "$libraries" "h0 h0 h1" --no-collectives --transport auto
has "measured with MPI, not with NCCL between GPUs: h0: ranks 0 and 1 have one GPU, 0000:03:00.0"
measure "$libraries" "h0 h0 h1" --no-collectives --transport nccl
expect "exit code" $code 2
has "NCCL cannot be used: h0: ranks 0 and 1 have one GPU"

echo "No driver"
mkdir "$work/none"
measure "$work/none" "h0 h1" --no-collectives --transport nccl
expect "exit code" $code 2
has "NCCL cannot be used: h0: libcuda.so.1 is not installed"
exit $failed
