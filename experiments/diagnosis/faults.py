#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which faults are planted, and whether `chokepoint diagnose` named them.

  faults.py sessions [--short]            lines "SESSION HOST MBIT": network of each session of runs ("-": as it is)
  faults.py cases SESSION [--short]       the cases of one session, for train.py
  faults.py judge CHOKEPOINT FOLDER [--short]
"""
import json
import os
import subprocess
import sys

MODEL = {"layers": 4, "layer_bytes": 131072, "bucket_bytes": 262144, "activation_bytes": 32768,
         "forward_s": 0.015, "backward_s": 0.030, "steps": 8}

# What a session's network has planted: host, Mb/s left of 400.
LINKS = {"even": None, "link-100": ("h2", 100), "link-60": ("h2", 60), "link-40": ("h2", 40), "link-50": ("h1", 50)}
SHORT_LINKS = ["even", "link-60"]
BEFORE = "before-"  # of a slow link's session: its references, on the even network right before it

RIGHT_SHARE = 0.95   # named first
COST_ERROR = 0.15    # of the measured difference
COST_SHARE = 0.95    # so near
CLOSE = 0.25         # of two planted faults that cost alike, either may come first


def slow(rank, factor):
    return {"slow_rank": rank, "slow_factor": factor}


def stall(rank, seconds):
    return {"stall_rank": rank, "stall_s": seconds}


def stage(load):
    return {"stages": 2, "last_stage": load}


def sync(times):
    return {"accumulate": times, "no_sync": False}


PIPELINE = {"stages": 2, "micro_batches": 4}


def even_cases(short):
    """name -> (case, reference, planted causes with where)"""
    cases = {"healthy": ({}, None, []), "healthy-pipeline": (dict(PIPELINE), None, [])}
    for times in [4] if short else [4, 6, 8]:
        cases["healthy-x%d" % times] = ({"accumulate": times}, None, [])
        cases["sync-x%d" % times] = (sync(times), "healthy-x%d" % times, ["accumulation-sync"])
    for rank, factor in [(2, 1.5)] if short else [(2, 1.25), (2, 1.5), (2, 2.0), (0, 1.25), (0, 1.5), (3, 2.0)]:
        cases["rank%d-%.2f" % (rank, factor)] = (slow(rank, factor), "healthy", ["slow-rank"])
    for rank, seconds in [(1, 0.12)] if short else [(1, 0.06), (1, 0.12), (1, 0.2), (3, 0.06), (3, 0.12), (0, 0.2)]:
        cases["stall%d-%.2f" % (rank, seconds)] = (stall(rank, seconds), "healthy", ["data-loader"])
    for load in [1.6] if short else [1.3, 1.6, 2.0]:
        cases["stage-%.1f" % load] = (dict(PIPELINE, **stage(load)), "healthy-pipeline", ["heavy-stage"])
    if short:
        return cases
    for rank, factor in [(1, 1.5), (2, 2.0)]:
        cases["pipeline-rank%d-%.2f" % (rank, factor)] = (dict(PIPELINE, **slow(rank, factor)), "healthy-pipeline", ["slow-rank"])
    for rank, factor, seconds in [(2, 1.25, 0.2), (2, 2.0, 0.06), (0, 1.5, 0.2), (3, 2.0, 0.12)]:
        case = dict(slow(rank, factor), **stall(1, seconds))
        cases["rank%d-%.2f+stall-%.2f" % (rank, factor, seconds)] = (case, "healthy", ["slow-rank", "data-loader"])
    for factor in [1.25, 1.5, 2.0]:
        cases["rank2-%.2f+sync" % factor] = (dict(slow(2, factor), **sync(4)), "healthy-x4", ["slow-rank", "accumulation-sync"])
    for seconds in [0.12, 0.2]:
        cases["stall-%.2f+sync" % seconds] = (dict(stall(1, seconds), **sync(4)), "healthy-x4", ["data-loader", "accumulation-sync"])
    for load, seconds in [(1.3, 0.2), (1.6, 0.1), (2.0, 0.2)]:
        cases["stage-%.1f+stall-%.1f" % (load, seconds)] = (
            dict(PIPELINE, **dict(stage(load), **stall(-2, seconds))), "healthy-pipeline", ["heavy-stage", "data-loader"])
    return cases


def link_cases(name, short):
    """The slow link alone, and with a second fault beside it."""
    healthy, healthy_x4 = BEFORE + name, BEFORE + name + "-x4"
    cases = {name: ({}, healthy, ["wire"])}
    if short:
        return cases
    cases[name + "+rank1-1.50"] = (slow(1, 1.5), healthy, ["wire", "slow-rank"])
    cases[name + "+stall-0.12"] = (stall(3, 0.12), healthy, ["wire", "data-loader"])
    cases[name + "+sync"] = (sync(4), healthy_x4, ["wire", "accumulation-sync"])
    return cases


def before_cases(session, short):
    return {session: ({}, None, [])} if short else {session: ({}, None, []), session + "-x4": ({"accumulate": 4}, None, [])}


def cases_of(session, short):
    if session.startswith(BEFORE):
        return before_cases(session, short)
    return even_cases(short) if LINKS[session] is None else link_cases(session, short)


def with_beside(session, short):
    """As train.py wants them: with what to run beside each, where the same network serves for it."""
    cases = cases_of(session, short)
    for name, (case, reference, _) in cases.items():
        beside = {"beside": cases[reference][0]} if reference in cases else {}
        yield dict(case, name=name, **beside)


def sessions(short):
    for name in SHORT_LINKS if short else list(LINKS):
        if LINKS[name] is not None:
            yield BEFORE + name, None
        yield name, LINKS[name]


def diagnosed(program, folder):
    out = subprocess.run([program, "diagnose", folder, "--json"], capture_output=True, text=True, check=False)
    if out.returncode not in (0, 1, 4):
        raise SystemExit("diagnose %s: %s" % (folder, out.stderr))
    return json.loads(out.stdout)


class Judge:
    def __init__(self, program, folder, short):
        self.times, self.found, self.planted = {}, {}, {}
        for session, _ in sessions(short):
            with open(os.path.join(folder, session, "times.json")) as file:
                times = json.load(file)
            for name, case in cases_of(session, short).items():
                self.times[name] = times[name]
                self.planted[name] = case
                self.found[name] = diagnosed(program, os.path.join(folder, session, name))

    def cost(self, name, cause):
        return sum(c["cost_s"] for c in self.found[name]["causes"] if c["id"] == cause)

    def healthy_s(self, name):
        """The step without the fault: measured beside it, or right before it on the even network."""
        return self.times[name].get("beside_s", self.times[self.planted[name][1]]["step_s"])

    def alone(self, cause, beside):
        """What this planted fault costs by what was measured with it."""
        reference = self.planted[beside][1]
        return self.cost(beside, cause) - self.cost(reference, cause)

    def named(self, name):
        """Whether the first cause is a planted one, and of two the dearer one where one is clearly dearer."""
        planted = self.planted[name][2]
        first = self.found[name]["causes"][0]["id"]
        if first not in planted:
            return False
        if len(planted) == 1:
            return True
        costs = {cause: self.alone(cause, name) for cause in planted}
        return costs[first] >= (1 - CLOSE) * max(costs.values())

    def run(self):
        right, cost_right, total = 0, 0, 0
        print("%-28s %9s %9s %8s %8s  %s" % ("planted", "healthy", "step", "differs", "named", "first cause"))
        for name, (_, _, planted) in self.planted.items():
            if not planted:
                continue
            total += 1
            step = self.times[name]["step_s"]
            difference = step - self.healthy_s(name)
            cost = sum(self.alone(cause, name) for cause in planted)
            ok = self.named(name)
            close = abs(cost - difference) <= COST_ERROR * abs(difference)
            right += ok
            cost_right += close
            print("%-28s %6.1f ms %6.1f ms %5.1f ms %5.1f ms  %s (%s)%s%s" % (
                name, 1e3 * self.healthy_s(name), 1e3 * step, 1e3 * difference, 1e3 * cost,
                self.found[name]["causes"][0]["id"], self.found[name]["causes"][0]["where"],
                "" if ok else "  WRONG", "" if close else "  COST"))
        print("%d runs: first cause right in %d (%.1f %%), cost within %.0f %% in %d (%.1f %%)" % (
            total, right, 100 * right / total, 100 * COST_ERROR, cost_right, 100 * cost_right / total))
        return right >= RIGHT_SHARE * total and cost_right >= COST_SHARE * total


def main():
    short = "--short" in sys.argv
    args = [a for a in sys.argv[1:] if a != "--short"]
    if args[0] == "sessions":
        for name, link in sessions(short):
            print(name, *(link or ("-", "-")))
    elif args[0] == "cases":
        json.dump(dict(MODEL, cases=list(with_beside(args[1], short))), sys.stdout, indent=1)
    else:
        raise SystemExit(0 if Judge(args[1], args[2], short).run() else 1)


main()
