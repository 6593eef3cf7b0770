#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `chokepoint wiring` makes of files as people send them: each a clear message or a repair that is counted and shown;
# and what its exports say when they are read back.
#   tests/bad_input/run.sh PROGRAM SOURCE_DIR
set -u
program=$1
examples=$2/examples/wiring
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
failed=0
# case NAME EXIT_CODE WORDS ARGUMENT...: the program's output has the words and it ends with this code.
case_of() {
  name=$1
  wanted=$2
  words=$3
  shift 3
  code=0
  timeout 60 "$program" wiring "$@" >out.txt 2>&1 || code=$?
  if [ $code -ne "$wanted" ] || ! grep -qF -e "$words" out.txt; then
    echo "FAILED $name: exit code $code, expected $wanted and '$words' in:"
    head -c 2000 out.txt
    failed=1
  else
    echo "  $name: $words"
  fi
}
gpus='8 x GPU of unknown kind · 2 NICs'

python3 - "$examples/sable1.topo" <<'PY'
import sys
text = open(sys.argv[1], encoding="utf-8").read()
def write(name, data):
    open(name, "wb").write(data)
write("marked.topo", b"\xff\xfe" + text.encode("utf-16-le"))
write("big-endian.topo", b"\xfe\xff" + text.encode("utf-16-be"))
write("unmarked.topo", text.encode("utf-16-le"))
write("bom.topo", b"\xef\xbb\xbf" + text.encode())
write("crlf.topo", text.replace("\n", "\r\n").encode())
write("cr.topo", text.replace("\n", "\r").encode())
write("colours.topo", text.replace("GPU0", "\x1b[4mGPU0\x1b[0m").encode())
write("nul.topo", text.replace("NUMA", "NU\0MA").encode())
write("markdown.txt", ("Mine looks **like this**:\n\n```\n" + text + "```\n\nthanks!\n").encode())
write("quoted.txt", "".join("> " + line + "\n" for line in text.splitlines()).encode())
write("junk.bin", bytes((i * 7919 + i // 256) % 256 for i in range(65536)))
write("cut.xml", open(sys.argv[1].replace("sable1.topo", "stork21.xml"), "rb").read()[:3000])
write("words.txt", b"Dear all,\nthe cluster is slow.\n")
with open("large.log", "wb") as file:
    file.truncate(500 * 1000 * 1000)
with open("fabric.txt", "w") as file:
    for leaf in "01":
        file.write(f'Switch\t4 "S-{leaf}"\t# "leaf{leaf}" base port 0 lid 1 lmc 0\n')
        for port in "12":
            file.write(f'[{port}]\t"H-{leaf}{port}"[1](1)\t# "red{leaf}{port} mlx5_0" lid 3 4xHDR\n')
        file.write(f'[3]\t"S-{1 - int(leaf)}"[3]\t# "leaf{1 - int(leaf)}" lid 1 4xHDR\n\n')
with open("blue.log", "w") as file:
    for host in ("blue1", "blue2"):
        file.write(f"{host}:10:11 [0] NCCL INFO Using network IB\n")
PY
cp "$examples/sable1.topo" a.topo
cp a.topo copy.topo

case_of "UTF-16, marked" 0 "repaired: UTF-16 read as text" marked.topo
case_of "UTF-16, the other byte order" 0 "repaired: UTF-16 read as text" big-endian.topo
case_of "UTF-16 without a mark" 0 "repaired: UTF-16 read as text" unmarked.topo
for file in marked big-endian unmarked bom crlf cr colours nul; do case_of "$file: the same host" 0 "$gpus" $file.topo; done
case_of "colour codes" 0 "bytes of terminal colour codes left out" colours.topo
case_of "NUL bytes" 0 "NUL bytes left out" nul.topo
case_of "Markdown" 0 "$gpus" markdown.txt
case_of "quoted mail" 0 "$gpus" quoted.txt
case_of "binary junk" 2 "binary data, expected text" junk.bin
case_of "500 MB" 2 "larger than 256 MiB" large.log
case_of "prose" 2 "no known format" words.txt
case_of "XML cut short" 2 "cut.xml:" cut.xml
case_of "one bad file of two" 4 "not read" a.topo words.txt
case_of "no such file" 2 "no-such-file.txt" no-such-file.txt
case_of "a folder" 2 "error" .
case_of "one file twice" 0 "is given twice; read once" a.topo ./a.topo
case_of "one file copied" 0 "the same text as a.topo" a.topo copy.topo
case_of "hosts of two clusters" 0 "a mixed cluster, or files of two" a.topo "$examples/wren-plain.xml"
case_of "a log of another cluster" 0 "files of two clusters?" fabric.txt blue.log

# Exports read back.
"$program" wiring "$examples/stork21.xml" --json --out direct.json || failed=1
"$program" wiring "$examples/stork21.xml" --export yaml=out.yaml --export nccl=out.xml --export dot=out.dot >/dev/null || failed=1
"$program" wiring fabric.txt --export slurm=topology.conf --export fabric-svg=map.svg >/dev/null || failed=1
"$program" wiring topology.conf --json --out slurm.json || failed=1
"$program" wiring fabric.txt --json --out fabric.json || failed=1
for form in yaml xml; do
  "$program" wiring out.$form --json --out back.json || failed=1
  python3 - $form <<'PY' || failed=1
import json, sys
def host(name):
    h = json.load(open(name))["hosts"][0]
    return len(h["gpus"]), len(h["nics"]), [(p["path"], round(p["bytes_per_s"] / 1e7)) for p in h["gpu_pairs"]]
one, two = host("direct.json"), host("back.json")
if one != two:
    print("FAILED", sys.argv[1], "reads back as", two, "instead of", one)
    sys.exit(1)
print(f"  {sys.argv[1]}: {one[0]} GPUs, {one[1]} NICs and {len(one[2])} paths read back")
PY
done
python3 - <<'PY' || failed=1
import json, sys, xml.dom.minidom
one = json.load(open("fabric.json"))["fabric"]["discovered"]
two = json.load(open("slurm.json"))["fabric"]["discovered"]
keys = ("switches", "hosts", "levels")
picture = open("map.svg").read()
xml.dom.minidom.parseString(picture)
if any(one[k] != two[k] for k in ("hosts",)) or any(leaf not in picture for leaf in ("leaf0", "leaf1")):
    print("FAILED: fabric", [one[k] for k in keys], "as Slurm's", [two[k] for k in keys])
    sys.exit(1)
if open("out.dot").read(7) != "graph w":
    print("FAILED: dot")
    sys.exit(1)
print("  Slurm:", two["hosts"], "hosts read back; the map is XML and has every leaf")
PY
"$program" wiring fabric.txt blue.log --anonymise --json --out hidden.json --export dot=hidden.dot --export slurm=hidden.conf || failed=1
if grep -qE "red[0-9]|blue[0-9]" hidden.json hidden.dot hidden.conf; then
  echo "FAILED: names left after --anonymise: $(grep -ohE "(red|blue)[0-9]+" hidden.* | sort -u | head -3 | tr '\n' ' ')"
  failed=1
fi
exit $failed
