#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `wiring --live` through the real library paths: hwloc on this machine and on machines of its XML files, libibnetdisc on a
# fabric of ibsim, NVML, ROCm SMI and libibverbs by libraries made for the test.
#   tests/live/run.sh PROGRAM WHAT SOURCE_DIR BINARY_DIR     WHAT: machine | hwloc | ibsim | nvml | rocm | verbs
set -u
program=$1
what=$2
source=$3
fakes=$4
here=$source/tests/live
work=$(mktemp -d)
pid=""
cleanup() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT
skip() {
  echo "SKIPPED: $*"
  exit 77
}
failed=0
# value FILE EXPRESSION: of the JSON in FILE, `d`.
value() {
  python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print($2)" "$1"
}
expect() {
  if [ -n "$2" ] && [ "$2" = "$3" ]; then echo "  $1: $2"; else echo "  FAILED: $1: found '$2', expected '$3'"; failed=1; fi
}
contains() {
  if grep -q -e "$2" "$1"; then echo "  has: $2"; else echo "  FAILED: no '$2' in:"; cat "$1"; failed=1; fi
}
command -v python3 >/dev/null || skip "needs python3"

# A small /sys: two NVIDIA or AMD GPUs below two root ports.
put() {
  mkdir -p "$(dirname "$work/sys/$1")" && printf '%s\n' "$2" >"$work/sys/$1"
}
device() {  # FOLDER ADDRESS CLASS VENDOR WIDTH
  folder=devices/pci0000:00/$1
  put "$folder/class" "$3"
  put "$folder/vendor" "$4"
  put "$folder/device" 0x2330
  put "$folder/current_link_speed" "32.0 GT/s PCIe"
  put "$folder/max_link_speed" "32.0 GT/s PCIe"
  put "$folder/current_link_width" "$5"
  put "$folder/max_link_width" 16
  put "$folder/numa_node" 0
  mkdir -p "$work/sys/bus/pci/devices"
  ln -s "../../../$folder" "$work/sys/bus/pci/devices/$2"
}
gpus() {
  put devices/system/node/node0/distance 10
  number=0
  while [ $number -lt "$2" ]; do
    port=0000:00:0$((number + 1)).0
    card=0000:0$((number + 3)):00.0
    device "$port" "$port" 0x060400 0x8086 16
    width=16
    [ "$1" = 0x10de ] && [ $number -eq 1 ] && width=8
    device "$port/$card" "$card" 0x030200 "$1" $width
    number=$((number + 1))
  done
}

case $what in
machine)
  "$program" wiring --live --json --out "$work/live.json" || failed=1
  expect "hosts" "$(value "$work/live.json" 'len(d["hosts"])')" 1
  contains "$work/live.json" '"unknown"'
  "$program" wiring --library hwloc >"$work/hwloc.xml" 2>"$work/err.txt" || skip "hwloc does not open here: $(head -1 "$work/err.txt")"
  expect "processors by hwloc" "$("$program" wiring "$work/hwloc.xml" --json | python3 -c 'import json,sys; print([x["facts"]["objects.PU"] for x in json.load(sys.stdin)["files"]][0] > 0)')" True
  ;;
hwloc)
  seen=0
  for file in "$here"/*.xml "$source"/../shared/wiring/hwloc/*.xml; do
    [ -f "$file" ] || continue
    # hwloc's own reader stops at a comment, which people add by hand.
    sed 's/<!--[^>]*-->//g' "$file" >"$work/machine.xml"
    export HWLOC_XMLFILE="$work/machine.xml"
    if ! "$program" wiring --library hwloc >"$work/out.xml" 2>"$work/err.txt"; then
      # This hwloc reads its own versions 1 and 2; the importer reads 3 as well.
      grep -q '<topology version="3' "$file" && echo "  $(basename "$file"): version 3, refused by this hwloc" && continue
      grep -q "not installed" "$work/err.txt" && skip "$(head -1 "$work/err.txt")"
      echo "  FAILED: $file: $(cat "$work/err.txt")"
      failed=1
      continue
    fi
    seen=$((seen + 1))
    "$program" wiring --live --json --out "$work/live.json" || failed=1
    unset HWLOC_XMLFILE
    "$program" wiring "$file" --json --out "$work/file.json" || failed=1
    count='[(len(h["gpus"]), len(h["nics"]), len(h["switches"]), round(sum(l["specified_bytes_per_s"] for l in h["links"]) / 1e9)) for h in d["hosts"]]'
    expect "$(basename "$file"): GPUs, NICs, switches, rates: library as file" "$(value "$work/live.json" "$count")" "$(value "$work/file.json" "$count")"
  done
  [ $seen -gt 0 ] || skip "no machine file that this hwloc reads"
  ;;
ibsim)
  simulator=$(command -v ibsim) || skip "needs ibsim (Debian: ibsim-utils)"
  preload=""
  for file in /usr/lib/*/umad2sim/libumad2sim.so /usr/lib/umad2sim/libumad2sim.so; do [ -f "$file" ] && preload=$file; done
  [ -n "$preload" ] || skip "needs libumad2sim"
  python3 "$here/fabric.py" 32 16 8 >"$work/net"
  cd "$work" || exit 1
  IBSIM_SERVER_PORT=$((20000 + $$ % 20000))
  export IBSIM_SERVER_PORT
  export IBSIM_SOCKNAME="chokepoint-$$"
  "$simulator" -s -n "$work/net" >"$work/ibsim.log" 2>&1 </dev/null &
  pid=$!
  tries=0
  until grep -q "MaxMcastCap" "$work/ibsim.log" 2>/dev/null || [ $tries -ge 100 ]; do
    kill -0 $pid 2>/dev/null || skip "ibsim does not run here: $(tail -1 "$work/ibsim.log")"
    tries=$((tries + 1))
    sleep 0.1
  done
  if ! LD_PRELOAD=$preload "$program" wiring --library ibnetdisc --out "$work/library.txt" 2>"$work/err.txt"; then
    grep -q -e "not installed" -e "this build cannot" "$work/err.txt" && skip "$(grep error: "$work/err.txt")"
    cat "$work/err.txt"
    failed=1
  fi
  LD_PRELOAD=$preload "$program" wiring --live --live-fabric --json --out "$work/live.json" || failed=1
  "$program" wiring "$work/net" --json --out "$work/file.json" || failed=1
  fabric='[d["fabric"]["discovered"][k] for k in ("switches", "hosts", "cables", "levels")]'
  expect "switches, hosts, cables, levels" "$(value "$work/live.json" "$fabric")" "[40, 512, 767, 2]"
  expect "the same as from the file ibsim read" "$(value "$work/live.json" "$fabric")" "$(value "$work/file.json" "$fabric")"
  expect "the leaf without an uplink is found" "$(value "$work/live.json" '[f["where"] for f in d["findings"] if f["id"] == "uplinks-missing"]')" "['leaf31']"
  ;;
nvml)
  gpus 0x10de 2
  LD_LIBRARY_PATH=$fakes/nvml "$program" wiring --live --sysfs "$work/sys" --json --out "$work/live.json" || failed=1
  LD_LIBRARY_PATH=$fakes/nvml "$program" wiring --live --sysfs "$work/sys" >"$work/live.txt"
  expect "accelerator" "$(value "$work/live.json" 'd["hosts"][0]["accelerator"]')" h100-sxm5-80gb
  expect "the pair is joined by the two links that are up" "$(value "$work/live.json" '[p["path"] for p in d["hosts"][0]["gpu_pairs"]]')" "['NV2']"
  expect "half the lanes" "$(value "$work/live.json" 'sorted(set(f["id"] for f in d["findings"] if f["id"] in ("pcie-link-narrow", "nvlink-inactive")))')" "['nvlink-inactive', 'pcie-link-narrow']"
  for fault in crash lost; do
    CHOKEPOINT_FAKE=$fault LD_LIBRARY_PATH=$fakes/nvml "$program" wiring --live --sysfs "$work/sys" >"$work/$fault.txt" || failed=1
  done
  contains "$work/crash.txt" "NVML: it crashed: Aborted"
  contains "$work/lost.txt" "NVML does not start: Driver Not Loaded"
  ;;
rocm)
  gpus 0x1002 4
  LD_LIBRARY_PATH=$fakes/rocm "$program" wiring --live --sysfs "$work/sys" --json --out "$work/live.json" || failed=1
  expect "accelerator" "$(value "$work/live.json" 'd["hosts"][0]["accelerator"]')" mi210
  expect "GPUs" "$(value "$work/live.json" 'len(d["hosts"][0]["gpus"])')" 4
  expect "xGMI pairs" "$(value "$work/live.json" '[x["facts"]["links.XGMI"] for x in d["files"] if x["kind"] == "rocm-smi"]')" "[2.0]"
  expect "xGMI is drawn between them" "$(value "$work/live.json" 'sum(l["kind"] == "xgmi" for l in d["hosts"][0]["links"])')" 4
  ;;
verbs)
  device 0000:00:01.0 0000:00:01.0 0x060400 0x8086 16
  for number in 0 1; do
    card=0000:0$((number + 3)):00.0
    device 0000:00:01.0/$card $card 0x020700 0x15b3 16
    port=class/infiniband/mlx5_$number
    put $port/ports/1/state "4: ACTIVE"
    put $port/ports/1/phys_state "5: LinkUp"
    put $port/ports/1/link_layer "$([ $number -eq 0 ] && echo InfiniBand || echo Ethernet)"
    put $port/ports/1/rate "$([ $number -eq 0 ] && echo '400 Gb/sec (4X NDR)' || echo '200 Gb/sec (4X HDR)')"
    put $port/hca_type MT4129
    ln -s "../../../devices/pci0000:00/0000:00:01.0/$card" "$work/sys/$port/device"
  done
  LD_LIBRARY_PATH=$fakes/verbs "$program" wiring --library ibverbs >"$work/said.txt" || failed=1
  contains "$work/said.txt" "GID\[  1\]:.*RoCE v2"
  expect "rates by the library alone" "$("$program" wiring "$work/said.txt" --json | python3 -c 'import json,sys; print([round(n["line_bytes_per_s"] * 8 / 1e9) for n in json.load(sys.stdin)["hosts"][0]["nics"]])')" "[400, 100]"
  LD_LIBRARY_PATH=$fakes/verbs "$program" wiring --live --sysfs "$work/sys" --json --out "$work/live.json" || failed=1
  ports='[x for x in d["files"] if x["facts"].get("form") == "ibstat"][0]'
  expect "ports" "$(value "$work/live.json" "$ports[\"facts\"][\"ports\"]")" 2.0
  expect "GIDs" "$(value "$work/live.json" "$ports[\"facts\"][\"gids\"]")" 4.0
  expect "packets of active ports" "$(value "$work/live.json" "sorted(k for k in $ports[\"facts\"] if \"mtu\" in k)")" "['active_ports_mtu.1024', 'active_ports_mtu.4096']"
  LD_LIBRARY_PATH=$fakes/verbs "$program" wiring --live --sysfs "$work/sys" >"$work/live.txt" || failed=1
  contains "$work/live.txt" "mlx5_1 port 1: 200 Gb/s here, 100 Gb/s by ibv_devinfo"
  CHOKEPOINT_FAKE=crash LD_LIBRARY_PATH=$fakes/verbs "$program" wiring --live --sysfs "$work/sys" >"$work/crash.txt" || failed=1
  contains "$work/crash.txt" "libibverbs: it crashed: Aborted"
  ;;
*) echo "unknown: $what" >&2; exit 2 ;;
esac
exit $failed
