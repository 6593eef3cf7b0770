#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real training steps over gloo with one fault planted, recorded by PyTorch's own profiler.

Each rank runs every case of a plan, one after the other: it trains a few steps under the profiler and exports its trace,
and rank 0 writes the wall times. Computations are sleeps inside operator ranges, so that what is planted is known and a busy
machine does not decide; DDP, no_sync, the optimizer, DataLoader, gloo and its transfers are real.

  RANK=0 WORLD_SIZE=4 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 train.py cases.json FOLDER
"""
import contextlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule

torch.set_num_threads(1)


def pause(seconds):
    """Sleeps to a deadline, so that a late wake-up is not added to the next."""
    end = time.perf_counter() + seconds
    while True:
        left = end - time.perf_counter()
        if left <= 0:
            return
        time.sleep(left)


def compute(name, seconds):
    with record_function("aten::" + name):
        pause(seconds)


class Timed(torch.autograd.Function):
    """Identity whose forward and backward take a given time and give the weight a gradient."""

    @staticmethod
    def forward(ctx, x, weight, forward_s, backward_s):
        ctx.backward_s = backward_s
        ctx.size = weight.numel()
        compute("addmm", forward_s)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        compute("mm", ctx.backward_s)
        return grad, torch.ones(ctx.size), None, None


class Model(torch.nn.Module):
    def __init__(self, plan, factor):
        super().__init__()
        self.times = (plan["forward_s"] * factor, plan["backward_s"] * factor)
        count = int(plan["layer_bytes"]) // 4
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(count)) for _ in range(plan["layers"])])

    def forward(self, x):
        for weight in self.weights:
            x = Timed.apply(x, weight, *self.times)
        return x


class Samples(torch.utils.data.Dataset):
    """Loading a sample takes a given time."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if self.seconds > 0:
            pause(self.seconds)
        return torch.ones(1)


def factor_of(case):
    return case["slow_factor"] if case.get("slow_rank", -1) == dist.get_rank() else 1.0


def loader_of(case):
    stalled = case.get("stall_rank", -1) in (dist.get_rank(), -2)  # -2: every rank
    return iter(torch.utils.data.DataLoader(Samples(case.get("stall_s", 0) if stalled else 0), batch_size=1))


def data_parallel(plan, case):
    model = DistributedDataParallel(Model(plan, factor_of(case)), bucket_cap_mb=plan["bucket_bytes"] / 2**20, broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = loader_of(case)
    accumulate = case.get("accumulate", 1)

    def step():
        optimizer.zero_grad()
        x = next(batches)
        for micro in range(accumulate):
            quiet = case.get("no_sync", True) and micro + 1 < accumulate
            with model.no_sync() if quiet else contextlib.nullcontext():
                model(x.requires_grad_()).sum().backward()
        optimizer.step()

    return step


def pipeline(plan, case):
    """1F1B over two stages; the ranks of a stage share their gradients after the last micro-batch."""
    ranks = dist.get_world_size()
    me = dist.get_rank()
    width = ranks // 2
    groups = [dist.new_group(list(range(s * width, (s + 1) * width))) for s in range(2)]
    stage = me // width
    load = factor_of(case) * (case.get("last_stage", 1.0) if stage == 1 else 1.0)
    seconds = (plan["layers"] // 2 * plan["forward_s"] * load, plan["layers"] // 2 * plan["backward_s"] * load)
    count = int(plan["activation_bytes"]) // 4
    weight = torch.nn.Parameter(torch.zeros(int(plan["layer_bytes"]) // 4 * plan["layers"] // 2))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    batches = loader_of(case)
    micro_batches = case.get("micro_batches", 8)
    sending = []

    def send(to):
        tensor = torch.ones(count)
        sending.append((dist.isend(tensor, to), tensor))

    def forward():
        if stage == 1:
            dist.recv(torch.ones(count), me - width)
        compute("addmm", seconds[0])
        if stage == 0:
            send(me + width)

    def backward():
        if stage == 0:
            dist.recv(torch.ones(count), me + width)
        compute("mm", seconds[1])
        if stage == 1:
            send(me - width)

    def step():
        next(batches)
        ahead = min(micro_batches, 1 - stage)
        for _ in range(ahead):
            forward()
        for _ in range(micro_batches - ahead):
            forward()
            backward()
        for _ in range(ahead):
            backward()
        weight.grad = torch.ones_like(weight)
        dist.all_reduce(weight.grad, group=groups[stage])
        while sending:
            sending.pop(0)[0].wait()
        optimizer.step()

    return step


def make(plan, case):
    step = (pipeline if case.get("stages", 1) > 1 else data_parallel)(plan, case)
    for _ in range(2):  # DDP rebuilds its buckets after the first
        step()
    return step


def timed(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def median(times):
    return sorted(times)[len(times) // 2]


def run(plan, case, folder):
    """Median times of the case's steps, and of steps without its fault right before and after them: what else uses the
    machine changes over minutes, and what disturbs a single step is not what was planted."""
    beside = make(plan, case["beside"]) if "beside" in case else None
    result = {}
    without = [timed(beside) for _ in range(plan["steps"] // 2)] if beside else []
    step = make(plan, case)
    steps = plan["steps"]
    trace = os.path.join(folder, case["name"], "rank%d.json" % dist.get_rank())
    os.makedirs(os.path.dirname(trace), exist_ok=True)
    dist.barrier()
    times = []
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=steps), on_trace_ready=lambda p: p.export_chrome_trace(trace)) as profiler:
        for number in range(steps + 1):
            times.append(timed(step))
            if number == steps:
                pause(0.02)  # gloo's threads note an operation's end a little after it
            profiler.step()
    dist.barrier()
    without += [timed(beside) for _ in range(plan["steps"] // 2)] if beside else []
    result["step_s"] = median(times[1:])
    if without:
        result["beside_s"] = median(without)
    return result


def main():
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    dist.init_process_group("gloo")
    result = {}
    for case in plan["cases"]:
        result[case["name"]] = run(plan, case, sys.argv[2])
        dist.barrier()
    if dist.get_rank() == 0:
        with open(os.path.join(sys.argv[2], "times.json"), "w") as file:
            json.dump(result, file, indent=1)
    dist.barrier()


main()
