#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times kernels on one accelerator of this machine with PyTorch and prints a JSON table for Chokepoint.

    python3 compute_probe.py -o mine.json          # under two minutes; --seconds 30 for a shorter sweep
    chokepoint validate mine.json                  # measured against modelled
    chokepoint calibrate mine.json                 # a profile of this machine

Needs PyTorch 1.13 or newer and nothing else. Nothing is installed, sent or changed; clocks are left as they are.
docs/formats/measure-compute.md describes the table.
"""
import argparse
import json
import math
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("compute_probe: found no module 'torch' in this Python; run it with the Python of your training environment")

SCHEMA = "chokepoint.measure-compute/1"
GEMM_SHARE, SUSTAINED_SHARE, ATTENTION_SHARE, LAYER_SHARE = 0.35, 0.15, 0.2, 0.25


def log(text):
    print("compute_probe: " + text, file=sys.stderr, flush=True)


class Device:
    """The accelerator that PyTorch sees, or the CPU."""

    def __init__(self, wanted):
        kinds = [wanted] if wanted else ["cuda", "xpu", "cpu"]
        self.kind = "cpu"
        for kind in kinds:
            module = getattr(torch, kind, None)
            if kind == "cpu" or (module is not None and module.is_available()):
                self.kind = kind
                break
        else:
            sys.exit("compute_probe: PyTorch sees no device of kind '%s'" % wanted)
        self.module = getattr(torch, self.kind, None) if self.kind != "cpu" else None
        self.device = torch.device(self.kind)

    def sync(self):
        if self.module is not None:
            self.module.synchronize()

    def describe(self):
        about = {"device_type": self.kind, "device": "cpu", "compute_units": 0, "memory_bytes": 0, "power_limit_w": 0}
        if self.kind == "cpu":
            about["device"] = cpu_name()
            about["compute_units"] = torch.get_num_threads()
            return about
        properties = self.module.get_device_properties(0)
        about["device"] = self.module.get_device_name(0)
        about["compute_units"] = int(getattr(properties, "multi_processor_count", 0))
        about["memory_bytes"] = int(getattr(properties, "total_memory", 0))
        about["power_limit_w"] = power_limit_w() if self.kind == "cuda" else 0
        return about

    def capability(self):
        if self.kind != "cuda" or torch.version.hip:
            return (0, 0)
        return torch.cuda.get_device_capability(0)


def cpu_name():
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "cpu"


def power_limit_w():
    command = ["nvidia-smi", "--query-gpu=power.limit", "--format=csv,noheader,nounits", "-i", "0"]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
        return float(out.splitlines()[0])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return 0


class Probe:
    def __init__(self, device, seconds):
        self.device = device
        self.seconds = seconds
        self.end = time.perf_counter() + seconds
        self.skipped = []
        self.rate = self.first_rate()

    def first_rate(self):
        """FLOP/s of a small product: says which shapes fit into the time."""
        a = torch.randn(512, 512, device=self.device.device)
        return 2 * 512**3 / self.timed(lambda: a @ a, 0.05)

    def left(self):
        return self.end - time.perf_counter()

    def skip(self, what, reason):
        self.skipped.append({"what": what, "reason": str(reason).splitlines()[0][:200] if str(reason) else "unknown"})

    def timed(self, run, budget_s):
        """Median over three loops of the time of one call; loops are long enough that the clock does not matter."""
        run()
        self.device.sync()
        begin = time.perf_counter()
        run()
        self.device.sync()
        once = max(1e-7, time.perf_counter() - begin)
        repeats = int(min(200, max(1, budget_s / 3 / once)))
        loops = []
        for _ in range(3 if repeats > 1 or once < budget_s else 1):
            begin = time.perf_counter()
            for _ in range(repeats):
                run()
            self.device.sync()
            loops.append((time.perf_counter() - begin) / repeats)
        return sorted(loops)[len(loops) // 2]

    def fits(self, flops, budget_s):
        return flops / self.rate < budget_s

    # --- matrix products -------------------------------------------------------------------------------------------

    def dtypes(self):
        """Name, tensor dtype, and whether TF32 units may run fp32 products."""
        out = [("fp32", torch.float32, False), ("bf16", torch.bfloat16, False)]
        if self.device.kind == "cpu":
            return out
        out.insert(1, ("fp16", torch.float16, False))
        if self.device.capability() >= (8, 0):
            out.append(("tf32", torch.float32, True))
        if self.device.capability() >= (8, 9) and hasattr(torch, "_scaled_mm") and hasattr(torch, "float8_e4m3fn"):
            out.append(("fp8", torch.float8_e4m3fn, False))
        order = ["bf16", "fp16", "fp8", "tf32", "fp32"]
        return sorted(out, key=lambda entry: order.index(entry[0]))

    def operands(self, name, dtype, m, n, k):
        """A call that computes C[m,n] = A[m,k] B[k,n], with B as nn.Linear keeps its weight: [n, k]."""
        if name == "fp8":
            a = torch.randn(m, k, device=self.device.device, dtype=torch.bfloat16).to(dtype)
            b = torch.randn(n, k, device=self.device.device, dtype=torch.bfloat16).to(dtype)
            one = torch.tensor(1.0, device=self.device.device)
            return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        a = torch.randn(m, k, device=self.device.device, dtype=dtype)
        b = torch.randn(n, k, device=self.device.device, dtype=dtype)
        return lambda: torch.mm(a, b.t())

    def gemm_shapes(self):
        squares = [(s, s, s) for s in (256, 512, 1024, 2048, 4096, 8192, 16384)]
        layers = [(4096, 12288, 4096), (4096, 4096, 14336), (8192, 28672, 8192), (8192, 8192, 512), (4096, 50304, 1024)]
        skinny = [(m, 4096, 4096) for m in (16, 64, 128, 256, 512, 1024)] + [(m, 7168, 2048) for m in (64, 256, 1024)]
        uneven = [(4096, 5376, 3584), (2048, 1344, 7168), (4096, 50257, 1024)]
        return squares[:6] + skinny + layers + uneven + squares[6:]

    def gemm(self):
        rows = []
        end = time.perf_counter() + GEMM_SHARE * self.seconds
        shapes = self.gemm_shapes()
        dtypes = self.dtypes()
        for name, dtype, tf32 in dtypes:
            share_end = time.perf_counter() + (end - time.perf_counter()) / (len(dtypes) - [d[0] for d in dtypes].index(name))
            if self.device.kind == "cuda":
                torch.backends.cuda.matmul.allow_tf32 = tf32
            for m, n, k in shapes:
                budget = GEMM_SHARE * self.seconds / len(dtypes) / len(shapes)
                what = "gemm %s %dx%dx%d" % (name, m, n, k)
                if time.perf_counter() > share_end or not self.fits(2.0 * m * n * k, max(0.05, budget)):
                    self.skip(what, "too slow for the time given")
                    continue
                try:
                    rows.append({"dtype": name, "m": m, "n": n, "k": k, "clock": "burst",
                                 "time_s": self.timed(self.operands(name, dtype, m, n, k), budget)})
                except Exception as error:  # a dtype, shape or size that this build cannot run
                    self.skip(what, error)
        if self.device.kind == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = False
        self.sustained(rows, [d for d in dtypes if d[0] in ("bf16", "fp16", "fp8")][:2] or dtypes[:1])
        return rows

    def sustained(self, rows, dtypes):
        """A large product for some seconds: boards settle at their power limit, training runs there."""
        for name, dtype, _ in dtypes:
            seconds = SUSTAINED_SHARE * self.seconds / len(dtypes)
            size = 8192
            while size > 256 and not self.fits(2.0 * size**3, seconds / 10):
                size //= 2
            try:
                run = self.operands(name, dtype, size, size, size)
                run()
                self.device.sync()
                begin = time.perf_counter()
                counted, half = 0, None
                while time.perf_counter() - begin < seconds:
                    if half is None and time.perf_counter() - begin > seconds / 2:
                        half, counted = time.perf_counter(), 0
                    for _ in range(5):
                        run()
                    self.device.sync()
                    counted += 5
                if half is not None and counted > 0:
                    rows.append({"dtype": name, "m": size, "n": size, "k": size, "clock": "sustained",
                                 "time_s": (time.perf_counter() - half) / counted})
            except Exception as error:
                self.skip("sustained gemm " + name, error)

    # --- attention ---------------------------------------------------------------------------------------------------

    def attention_call(self, q, k, v, causal):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        if causal:
            mask = torch.ones(q.shape[-2], k.shape[-2], device=q.device, dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v

    def attention(self):
        shapes = [(1, 32, 32, 128, s, True) for s in (512, 1024, 2048, 4096, 8192, 16384)]
        shapes += [(1, 32, 32, 128, 4096, False), (1, 8, 8, 128, 4096, True), (4, 32, 32, 64, 2048, True),
                   (1, 32, 8, 128, 4096, True), (1, 16, 16, 256, 2048, True), (8, 12, 12, 64, 1024, True)]
        if self.device.kind == "cpu":
            shapes = [(1, 4, 4, 64, s, True) for s in (128, 256, 512)] + [(1, 4, 1, 128, 256, True)]
        name = "fp32" if self.device.kind == "cpu" else "bf16"
        dtype = torch.float32 if self.device.kind == "cpu" else torch.bfloat16
        kernel = "sdpa" if hasattr(F, "scaled_dot_product_attention") else "unfused"
        budget = ATTENTION_SHARE * self.seconds / len(shapes) / 3
        rows = []
        for batch, heads, kv_heads, head_dim, sequence, causal in shapes:
            what = "attention b%d h%d/%d d%d s%d" % (batch, heads, kv_heads, head_dim, sequence)
            try:
                q = torch.randn(batch, heads, sequence, head_dim, device=self.device.device, dtype=dtype)
                k, v = (torch.randn(batch, kv_heads, sequence, head_dim, device=self.device.device, dtype=dtype)
                        for _ in range(2))
                # Grouped heads as frameworks without a grouped kernel feed them; the copy is not timed.
                k, v = (t.repeat_interleave(heads // kv_heads, dim=1).requires_grad_() for t in (k, v))
                q.requires_grad_()
                with torch.no_grad():
                    forward_s = self.timed(lambda: self.attention_call(q, k, v, causal), budget)
                gradient = torch.randn_like(q)

                def both():
                    torch.autograd.grad(self.attention_call(q, k, v, causal), (q, k, v), gradient)

                rows.append({"dtype": name, "kernel": kernel, "batch": batch, "heads": heads, "kv_heads": heads,
                             "head_dim": head_dim, "sequence": sequence, "causal": causal, "forward_s": forward_s,
                             "forward_backward_s": self.timed(both, 2 * budget)})
            except Exception as error:
                self.skip(what, error)
            if self.left() < (LAYER_SHARE + 0.05) * self.seconds:
                self.skip("attention after " + what, "no time left")
                break
        return rows

    # --- one layer ---------------------------------------------------------------------------------------------------

    def layer(self):
        sizes = [(1024, 2048, 16, 1), (4096, 4096, 32, 1)]
        if self.device.kind == "cpu":
            sizes = [(256, 128, 4, 1)]
        name = "fp32" if self.device.kind == "cpu" else "bf16"
        dtype = torch.float32 if self.device.kind == "cpu" else torch.bfloat16
        rows = []
        for hidden, sequence, heads, batch in sizes:
            ffn = 128 * ((hidden * 8 // 3 + 127) // 128)
            for mode in ("eager", "compiled", "graph"):
                if self.left() < 0.02 * self.seconds:
                    self.skip("layer %d %s" % (hidden, mode), "no time left")
                    continue
                try:
                    layer = Layer(hidden, ffn, heads, self.attention_call).to(self.device.device, dtype)
                    x = torch.randn(batch, sequence, hidden, device=self.device.device, dtype=dtype, requires_grad=True)
                    call = self.in_mode(layer, x, mode)
                    row = self.layer_times(call, layer, x, LAYER_SHARE * self.seconds / len(sizes) / 6)
                    row.update(dtype=name, mode=mode, hidden=hidden, ffn_hidden=ffn, heads=heads, batch=batch, sequence=sequence)
                    rows.append(row)
                except Exception as error:
                    self.skip("layer %d %s" % (hidden, mode), error)
        return rows

    def in_mode(self, layer, x, mode):
        if mode == "compiled":
            if not hasattr(torch, "compile"):
                raise RuntimeError("this PyTorch has no torch.compile")
            if self.device.kind == "cpu":
                raise RuntimeError("not tried on a CPU")
            return torch.compile(layer)
        if mode == "graph":
            if self.device.kind != "cuda":
                raise RuntimeError("graphs need a CUDA or ROCm device")
            return torch.cuda.make_graphed_callables(layer, (x.detach().clone().requires_grad_(),))
        return layer

    def layer_times(self, call, layer, x, budget):
        with torch.no_grad():
            forward_s = self.timed(lambda: call(x), budget)
        gradient = torch.randn_like(x)
        tensors = [x] + list(layer.parameters())

        def both():
            torch.autograd.grad(call(x), tensors, gradient, allow_unused=True)

        return {"forward_s": forward_s, "forward_backward_s": self.timed(both, 2 * budget)}

    # --- launches and copies -----------------------------------------------------------------------------------------

    def launch(self):
        """Seconds between launches of kernels that are shorter than a launch; the same inside a captured graph."""
        x = torch.zeros(16, device=self.device.device)

        def burst():
            for _ in range(100):
                x.add_(1)

        out = {"launch_s": self.timed(burst, 0.5) / 100, "graph_launch_s": None}
        if self.device.kind == "cuda":
            try:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    burst()
                out["graph_launch_s"] = self.timed(graph.replay, 0.5) / 100
            except Exception as error:
                self.skip("graph launch", error)
        return out

    def copies(self):
        size = 2**26 if self.device.kind == "cpu" else 2**30
        a = torch.empty(size, dtype=torch.uint8, device=self.device.device)
        b = torch.empty_like(a)
        out = {"copy_bytes_per_s": 2 * size / self.timed(lambda: b.copy_(a), 0.5)}
        if self.device.kind == "cpu":
            return out
        try:
            host = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)
            part = a[: 2**28]
            out["host_to_device_bytes_per_s"] = 2**28 / self.timed(lambda: part.copy_(host, non_blocking=True), 0.5)
            out["device_to_host_bytes_per_s"] = 2**28 / self.timed(lambda: host.copy_(part, non_blocking=True), 0.5)
        except Exception as error:
            self.skip("copies between host and device", error)
        return out


class Layer(torch.nn.Module):
    """A decoder layer as plain PyTorch writes it: RMSNorm from primitives, joint projection, gated MLP."""

    def __init__(self, hidden, ffn, heads, attention):
        super().__init__()
        self.heads = heads
        self.attention = attention
        self.norms = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(hidden)) for _ in range(2)])
        self.qkv = torch.nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = torch.nn.Linear(hidden, hidden, bias=False)
        self.up = torch.nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = torch.nn.Linear(ffn, hidden, bias=False)

    def normed(self, x, weight):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight

    def forward(self, x):
        batch, sequence, hidden = x.shape
        qkv = self.qkv(self.normed(x, self.norms[0])).view(batch, sequence, 3, self.heads, hidden // self.heads)
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
        mixed = self.attention(q, k, v, True).transpose(1, 2).reshape(batch, sequence, hidden)
        x = x + self.out(mixed)
        gate, value = self.up(self.normed(x, self.norms[1])).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)


def main():
    parser = argparse.ArgumentParser(description="Times kernels of this machine for Chokepoint.")
    parser.add_argument("-o", "--out", default="-", help="file for the table; standard output by default")
    parser.add_argument("--seconds", type=float, default=90, help="about how long it may take (5 to 600)")
    parser.add_argument("--device", default="", help="cuda, xpu or cpu; the first that is there by default")
    options = parser.parse_args()
    if not 1 <= options.seconds <= 600:
        parser.error("--seconds must lie between 1 and 600")
    torch.manual_seed(1)
    begin = time.perf_counter()
    device = Device(options.device)
    table = {"schema": SCHEMA, "torch": torch.__version__, "runtime": torch.version.cuda or torch.version.hip or ""}
    table.update(device.describe())
    log("%s, torch %s, about %d s" % (table["device"], table["torch"], options.seconds))
    probe = Probe(device, options.seconds)
    table.update(probe.launch())
    table.update(probe.copies())
    table["gemm"] = probe.gemm()
    log("%d matrix products" % len(table["gemm"]))
    table["attention"] = probe.attention()
    table["layer"] = probe.layer()
    log("%d attention kernels, %d layers, %d skipped" % (len(table["attention"]), len(table["layer"]), len(probe.skipped)))
    table["skipped"] = probe.skipped
    table["duration_s"] = time.perf_counter() - begin
    text = json.dumps(table, indent=1) + "\n"
    if options.out == "-":
        sys.stdout.write(text)
    else:
        with open(options.out, "w") as out:
            out.write(text)


if __name__ == "__main__":
    main()
