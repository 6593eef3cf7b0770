#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The program itself as a server: its own processes, a taken port, kill -9 of a process and of the server, Ctrl-C.
#   serve.sh CHOKEPOINT
set -u
chokepoint=$1
work=$(mktemp -d)
server=""
trap '[ -n "$server" ] && kill -9 "$server" 2>/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

# start PORT: sets server and port.
start() {
  rm -f "$work/said"
  mkfifo "$work/said"
  "$chokepoint" serve --port "$1" --json --studies "$work/studies.sqlite" >"$work/said" 2>"$work/errors" &
  server=$!
  read -r line <"$work/said" || fail "no address: $(cat "$work/errors")"
  port=$(sed 's/.*"port": \([0-9]*\).*/\1/' <<<"$line")
}

# call METHOD PATH [BODY]: prints status line, then the rest.
call() {
  exec 5<>"/dev/tcp/127.0.0.1/$port" || return 1
  printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' "$1" "$2" >&5
  [ $# -gt 2 ] && printf 'Content-Type: application/json\r\nContent-Length: %d\r\n' "${#3}" >&5
  printf '\r\n%s' "${3:-}" >&5
  cat <&5
  exec 5>&-
}

expect() {
  case "$2" in
    *"$1"*) ;;
    *) fail "expected '$1' in: ${2:0:600}" ;;
  esac
}

predict='{"job": {"model": "llama-3-8b", "cluster": "dgx-h100", "batch": 64, "sequence": 4096}, "options": {"strategy": "zero=3 microbatch=1"}}'
start 0
expect "200 OK" "$(call GET /api/v1/status)"
expect '"step_time_s"' "$(call POST /api/v1/predict "$predict")"

"$chokepoint" serve --port "$port" --studies "$work/other.sqlite" >/dev/null 2>"$work/taken"
[ $? -eq 2 ] || fail "a taken port must end with code 2"
expect "is taken by another program" "$(cat "$work/taken")"

for process in $(cat "/proc/$server/task/$server/children"); do kill -9 "$process"; done
for attempt in 1 2 3 4 5; do
  answer=$(call POST /api/v1/predict "$predict")
  case "$answer" in *'"step_time_s"'*) break ;; esac
done
expect '"step_time_s"' "$answer"

saved=$(call POST /api/v1/studies '{"name": "kept", "document": {"x": 1}}')
expect "201 Created" "$saved"
children=$(cat "/proc/$server/task/$server/children")
kill -9 "$server"
wait "$server" 2>/dev/null
start "$port"
expect '"name":"kept"' "$(call GET /api/v1/studies)"
for process in $children; do
  [ -d "/proc/$process" ] && grep -q serve-worker "/proc/$process/cmdline" && fail "process $process outlived its server"
done
expect "404 Not Found" "$(call GET /api/v1/tasks/0123abcd-1)"

kill -INT "$server"
wait "$server"
[ $? -eq 0 ] || fail "SIGINT must end with code 0: $(cat "$work/errors")"
server=""
echo "ok"
