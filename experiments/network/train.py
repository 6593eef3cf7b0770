#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps over gloo whose computations are sleeps: the network is what is tested.

Each rank runs every configuration of a plan, one after the other, and rank 0 writes the step times as JSON. A layer is one
flat fp32 tensor; its forward and backward sleep for a given time. DDP, no_sync and ZeroRedundancyOptimizer are PyTorch's
own; the sharded and pipelined schemes are written on its collectives (FSDP of PyTorch 1.13 does not run on the CPU).

  RANK=0 WORLD_SIZE=4 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 train.py steps.json result.json
"""
import contextlib
import json
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)


def pause(seconds):
    """Sleeps to a deadline, so that a late wake-up is not added to the next."""
    end = time.perf_counter() + seconds
    while True:
        left = end - time.perf_counter()
        if left <= 0:
            return
        time.sleep(left)


class Timed(torch.autograd.Function):
    """Identity whose forward and backward take a given time and give the weight a gradient."""

    @staticmethod
    def forward(ctx, x, weight, forward_s, backward_s):
        ctx.backward_s = backward_s
        ctx.size = weight.numel()
        pause(forward_s)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        pause(ctx.backward_s)
        return grad, torch.ones(ctx.size), None, None


class Model(torch.nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.plan = plan
        count = int(plan["layer_bytes"]) // 4
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(count)) for _ in range(plan["layers"])])

    def forward(self, x):
        for weight in self.weights:
            x = Timed.apply(x, weight, self.plan["forward_s"], self.plan["backward_s"])
        return x


def data_parallel(plan, case):
    """DDP; with "zero" ZeRO-1 on top; gradients meet in every micro-step or in the last alone."""
    model = DistributedDataParallel(Model(plan), bucket_cap_mb=case["bucket_bytes"] / 2**20, broadcast_buffers=False)
    if case["strategy"] == "zero1":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, lr=1e-3)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        for micro in range(case["accumulate"]):
            last = micro + 1 == case["accumulate"]
            quiet = case["no_sync"] and not last
            with model.no_sync() if quiet else contextlib.nullcontext():
                model(torch.ones(1, requires_grad=True)).sum().backward()
        optimizer.step()

    return step


def sharded(plan, case):
    """Each layer's parameters are gathered before its use, the next layer's meanwhile; gradients are scattered."""
    ranks = dist.get_world_size()
    count = int(plan["layer_bytes"]) // 4 // ranks * ranks
    shards = [torch.zeros(count // ranks) for _ in range(plan["layers"])]

    def gather(layer):
        parts = [torch.empty(count // ranks) for _ in range(ranks)]
        return dist.all_gather(parts, shards[layer], async_op=True), parts

    def scatter():
        parts = torch.empty(count)
        return dist.all_to_all_single(parts, torch.ones(count), async_op=True), parts

    def walk(order, seconds, reduces):
        pending = []
        ahead = gather(order[0])
        for at, layer in enumerate(order):
            ahead[0].wait()
            if at + 1 < len(order):
                ahead = gather(order[at + 1])
            pause(seconds)
            if reduces:
                pending.append((layer, scatter()))
        return pending

    def step():
        forward = list(range(plan["layers"]))
        for _ in range(case["accumulate"]):
            walk(forward, plan["forward_s"], False)
            for layer, (work, parts) in walk(forward[::-1], plan["backward_s"], True):
                work.wait()
                shards[layer] -= 1e-3 * parts.view(ranks, -1).sum(0)

    return step


def pipeline(plan, case):
    """1F1B over `stages` stages; ranks of a stage share its layers' gradients once, after the last micro-batch."""
    ranks = dist.get_world_size()
    me = dist.get_rank()
    stages = case["stages"]
    width = ranks // stages
    groups = [dist.new_group(list(range(s * width, (s + 1) * width))) for s in range(stages)]
    stage = me // width
    layers = plan["layers"] // stages
    micro_batches = case["accumulate"] * ranks // width
    count = int(plan["activation_bytes"]) // 4
    grads = [torch.zeros(int(plan["layer_bytes"]) // 4) for _ in range(layers)]
    sending = []

    def send(tensor, to):
        sending.append((dist.isend(tensor, to), tensor))

    def forward():
        x = torch.ones(count)
        if stage > 0:
            dist.recv(x, me - width)
        pause(layers * plan["forward_s"])
        if stage + 1 < stages:
            send(x, me + width)

    def backward():
        x = torch.ones(count)
        if stage + 1 < stages:
            dist.recv(x, me + width)
        pause(layers * plan["backward_s"])
        if stage > 0:
            send(x, me - width)

    def step():
        ahead = min(micro_batches, stages - 1 - stage)
        for _ in range(ahead):
            forward()
        for _ in range(micro_batches - ahead):
            forward()
            backward()
        for _ in range(ahead):
            backward()
        works = [dist.all_reduce(g, group=groups[stage], async_op=True) for g in grads] if width > 1 else []
        for work in works:
            work.wait()
        while sending:
            sending.pop(0)[0].wait()

    return step


BUILDERS = {"ddp": data_parallel, "zero1": data_parallel, "sharded": sharded, "pipeline": pipeline}


def compute_alone(plan):
    """What the stand-ins really take here, without a network: seconds of one layer's forward and backward."""
    model = Model(plan)
    forward, backward = [], []
    for _ in range(5):
        start = time.perf_counter()
        out = model(torch.ones(1, requires_grad=True)).sum()
        middle = time.perf_counter()
        out.backward()
        forward.append((middle - start) / plan["layers"])
        backward.append((time.perf_counter() - middle) / plan["layers"])
    return {"forward_s": sorted(forward)[2], "backward_s": sorted(backward)[2]}


def run(plan, case):
    step = BUILDERS[case["strategy"]](plan, case)
    for _ in range(2):  # DDP rebuilds its buckets after the first
        step()
    times = []
    for _ in range(plan["steps"]):
        dist.barrier()
        start = time.perf_counter()
        step()
        dist.barrier()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def main():
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    dist.init_process_group("gloo")
    compute = compute_alone(plan)
    result = []
    for case in plan["cases"]:
        result.append(dict(case, measured_s=run(plan, case)))
        if dist.get_rank() == 0:
            print(case["name"], round(result[-1]["measured_s"], 4), flush=True)
    if dist.get_rank() == 0:
        with open(sys.argv[2], "w") as file:
            json.dump({"compute": compute, "cases": result}, file, indent=1)
    dist.barrier()


main()
