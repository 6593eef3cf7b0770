#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what the experiment measured.

  check.py network PLAN NET.json                 every configured rate within 5 %, slow hosts and racks named
  check.py plan STEPS.json RESULT.json OUT.json  the plan with the compute times that were measured without a network
  check.py steps RESULT.json PREDICTED.json MEDIAN   errors, and whether the best strategy is the measured best
"""
import json
import statistics
import sys

TOLERANCE = 0.05


def load(path):
    with open(path) as file:
        return json.load(file)


def read_plan(path):
    hosts, uplinks = {}, {}
    with open(path) as file:
        for line in file:
            words = line.split()
            if words[:1] == ["host"]:
                hosts[words[1]] = (words[2], float(words[3]))
            if words[:1] == ["uplink"]:
                uplinks[words[1]] = float(words[2])
    return hosts, uplinks


def network(plan_path, net_path):
    hosts, uplinks = read_plan(plan_path)
    net = load(net_path)
    frames = net["frame_bytes_per_byte"] * 8 / 1e6
    failed = []

    def compare(what, configured, bytes_per_s):
        found = bytes_per_s * frames
        error = found / configured - 1
        print(f"  {what:22} configured {configured:6.0f} Mb/s   measured {found:7.1f} Mb/s   {100 * error:+5.1f} %")
        if abs(error) > TOLERANCE:
            failed.append(what)

    usual = statistics.median(rate for _, rate in hosts.values())
    for host in net["hosts"]:
        rate = hosts[host["name"]][1]
        compare(host["name"] + " out", rate, host["out_bytes_per_s"]["median"])
        compare(host["name"] + " in", rate, host["in_bytes_per_s"]["median"])
        named = any(line.startswith(host["name"] + " ") for line in net["slow"])
        if named != (rate < 0.85 * usual):
            failed.append(host["name"] + (" called slow" if named else " not called slow"))
    racks = {rack: [name for name, (r, _) in hosts.items() if r == rack] for rack in uplinks}
    narrow = [r for r in racks if len(racks) > 1 and sum(hosts[h][1] for h in racks[r]) > 1.1 * uplinks[r]]
    found = {tuple(net["hosts"][h]["name"] for h in group["hosts"]): group for group in net["groups"]}
    for rack in narrow:
        group = found.get(tuple(racks[rack]))
        if group is None:
            failed.append(f"rack {rack} not found")
            continue
        compare(rack + " to the others", uplinks[rack], group["out_bytes_per_s"])
        compare("the others to " + rack, uplinks[rack], group["in_bytes_per_s"])
    if not narrow and found:
        failed.append("groups found where no uplink is narrow")
    return failed


def plan(steps_path, result_path, out_path):
    steps = load(steps_path)
    steps.update(load(result_path)["compute"])
    with open(out_path, "w") as file:
        json.dump(steps, file, indent=1)
    return []


def steps(result_path, predicted_path, median):
    measured = load(result_path)["cases"]
    predicted = load(predicted_path)["cases"]
    errors, failed, by_work = [], [], {}
    for m, p in zip(measured, predicted):
        error = p["step_time_s"] / m["measured_s"] - 1
        errors.append(abs(error))
        by_work.setdefault(m["accumulate"], []).append((m["measured_s"], p["step_time_s"], m["name"]))
        print(f"  {m['name']:18} measured {m['measured_s']:7.3f} s   predicted {p['step_time_s']:7.3f} s   {100 * error:+6.1f} %   {p['busiest_link']}")
    print(f"  median error {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.1f} %, {len(errors)} configurations")
    if statistics.median(errors) > float(median):
        failed.append("median error above %.0f %%" % (100 * float(median)))
    for work, rows in by_work.items():
        best, chosen = min(rows)[2], min(rows, key=lambda row: row[1])[2]
        print(f"  fastest with {work} micro-batches a rank: measured {best}, predicted {chosen}")
        if best != chosen:
            failed.append(f"best of {work} micro-batches")
    return failed


def main():
    failed = {"network": network, "plan": plan, "steps": steps}[sys.argv[1]](*sys.argv[2:])
    for line in failed:
        print("  FAILED:", line)
    sys.exit(1 if failed else 0)


main()
