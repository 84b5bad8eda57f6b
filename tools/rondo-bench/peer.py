#!/usr/bin/env python3
"""What PyTorch needs for the jobs of rondo-bench, on the same GPU.

    peer.py --json peer.json
    peer.py --beside bench.json                   # rondo-bench's figures, of the same machine

A CUDA graph of 64 small kernels: CPU time of a replay. A step (forward and backward) of models of
the sizes of the traces mlp and gpt_tiny in tests/data/traces: eager, as one CUDA graph, and with
make_graphed_callables: CPU time of the calls, the device's time, and time until all is done.
Times are medians, in microseconds. The memory that a step of the model of gpt2_small_bf16 takes as
one CUDA graph, by what the device says is free: parameters and inputs included, what libraries load
before not. Steps with torch.utils.checkpoint around each block, eager: times, and memory beyond
parameters, inputs and gradients; with --beside these have bars.
"""

import argparse
import gc
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.a = Attention(width, heads)
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.f2(functional.gelu(self.f1(self.n2(x))))


class GPT(nn.Module):
    """By default as gpt_tiny: 2 layers, 32 wide, 2 heads, 61 tokens in the vocabulary."""

    def __init__(self, vocabulary=61, length=16, width=32, heads=2, layers=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.blocks(self.wte(tokens) + self.wpe(positions)))
        return functional.linear(x, self.wte.weight)


def make_gpt():
    tokens = torch.randint(61, (2, 16), device=DEVICE)
    targets = torch.randint(61, (32,), device=DEVICE)
    return (GPT().to(DEVICE), tokens,
            lambda y: functional.cross_entropy(y.reshape(-1, y.shape[-1]), targets))


def make_gpt2_small():
    """As gpt2_small_bf16: 1 row of 128 tokens, 1024 positions, the loss in f32."""
    vocabulary = 50304
    tokens = torch.randint(vocabulary, (1, 128), device=DEVICE)
    targets = torch.randint(vocabulary, (128,), device=DEVICE)
    model = GPT(vocabulary, length=1024, width=768, heads=12, layers=12)
    return (model.to(DEVICE, torch.bfloat16), tokens,
            lambda y: functional.cross_entropy(y.reshape(-1, vocabulary).float(), targets))


def make_mlp():
    layers = [nn.Linear(32, 32), nn.GELU()] * 3 + [nn.Linear(32, 32)]
    target = torch.randn(8, 32, device=DEVICE)
    return (nn.Sequential(*layers).to(DEVICE), torch.randn(8, 32, device=DEVICE),
            lambda y: functional.mse_loss(y, target))


class CheckpointedBlocks(nn.Module):
    """The model of rondo-bench's `checkpoint`."""

    def __init__(self, blocks, width, gelu):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate=gelu),
                          nn.Linear(4 * width, width), nn.Dropout(0.1)) for _ in range(blocks))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


class CheckpointedStep:
    """A step to the gradients of all parameters and of the input."""

    def __init__(self, blocks, batch, width, dtype, gelu):
        self.model = CheckpointedBlocks(blocks, width, gelu).to(DEVICE, dtype)
        self.x = torch.rand(batch, width, device=DEVICE).mul_(2).sub_(1).to(dtype)
        self.x.requires_grad_()
        self.gradient = torch.rand(batch, width, device=DEVICE).mul_(2).sub_(1).to(dtype)

    def __call__(self):
        self.drop_gradients()
        self.model(self.x).backward(self.gradient)

    def drop_gradients(self):
        self.model.zero_grad(set_to_none=True)
        self.x.grad = None

    def gradient_bytes(self):
        return sum(t.grad.numel() * t.grad.element_size()
                   for t in [*self.model.parameters(), self.x])

    def peaks(self, steps=3):
        """Bytes beyond parameters, inputs and gradients, at their most: by what the device says is
        free, and by PyTorch's own count, which leaves out what its allocator keeps."""
        self()
        gradients = self.gradient_bytes()
        self.drop_gradients()
        release_memory()
        free, allocated = torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()
        least = free
        torch.cuda.reset_peak_memory_stats()
        for _ in range(steps):
            self()
            torch.cuda.synchronize()
            least = min(least, torch.cuda.mem_get_info()[0])
        return (free - least - gradients,
                torch.cuda.max_memory_allocated() - allocated - gradients)


def release_memory():
    torch.cuda.synchronize()
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()


def on_side_stream(call, times=3):
    """Warm-up as captures ask for it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(times):
            call()
    torch.cuda.current_stream().wait_stream(stream)


def capture(call):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def captured(call):
    on_side_stream(call)
    return capture(call)


def chain():
    """64 kernels, one behind the other."""
    inputs = [torch.randn(64, device=DEVICE) * 0.1 for _ in range(129)]

    def call():
        x = inputs[0]
        for i in range(64):
            x = torch.addcmul(x, inputs[2 * i + 1], inputs[2 * i + 2])
        return x

    return captured(call)


def eager_step(make):
    model, x, loss = make()

    def step():
        model.zero_grad(set_to_none=True)
        loss(model(x)).backward()

    return step


def graph_step(make):
    step = eager_step(make)
    return captured(step)


def graphed_callables_step(make):
    model, x, loss = make()
    graphed = torch.cuda.make_graphed_callables(model, (x,))

    def step():
        model.zero_grad(set_to_none=True)
        loss(graphed(x)).backward()

    return step


def graph_step_peak(make, steps=3):
    """Bytes of a step as one CUDA graph and of its parameters and inputs, at their most."""
    model, x, loss = make()

    def step():
        model.zero_grad(set_to_none=True)
        loss(model(x)).backward()

    on_side_stream(step)
    model.zero_grad(set_to_none=True)
    release_memory()
    arguments = sum(t.numel() * t.element_size() for t in [*model.parameters(), x])
    before = torch.cuda.mem_get_info()[0]
    replay = capture(step)
    least = torch.cuda.mem_get_info()[0]
    for _ in range(steps):
        replay()
        torch.cuda.synchronize()
        least = min(least, torch.cuda.mem_get_info()[0])
    return arguments + before - least


def cpu_per_call(call, rounds, calls):
    """As rondo-bench: batches of calls, with a wait after each that is not measured."""
    times = []
    for i in range(rounds + 1):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        spent = time.perf_counter() - begin
        torch.cuda.synchronize()
        if i > 0:
            times.append(spent / calls)
    return statistics.median(times) * 1e6


def step_times(step, rounds):
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    cpu, device, done = [], [], []
    for i in range(rounds + 10):
        torch.cuda.synchronize()
        first.record()
        begin = time.perf_counter()
        step()
        called = time.perf_counter()
        last.record()
        torch.cuda.synchronize()
        ended = time.perf_counter()
        if i >= 10:
            cpu.append((called - begin) * 1e6)
            device.append(first.elapsed_time(last) * 1e3)
            done.append((ended - begin) * 1e6)
    return {"CPU time": cpu, "device time": device, "until done": done}


def add_checkpointed_steps(add, options):
    for dtype_name, dtype in {"f32": torch.float32, "bf16": torch.bfloat16}.items():
        for form, gelu in {"erf": "none", "tanh": "tanh"}.items():
            name = f"{dtype_name}, GELU by {form}"
            step = None  # what the last one leaves is not to hold this one's parameters
            release_memory()
            try:
                step = CheckpointedStep(options.blocks, options.batch, options.width, dtype, gelu)
                peak, own_peak = step.peaks()
                for what, values in step_times(step, options.rounds).items():
                    add("checkpoint", f"{name}, {what}", statistics.median(values))
                add("checkpoint", f"{name}, peak", peak / 1024, "KiB")
                add("checkpoint", f"{name}, peak of what is allocated", own_peak / 1024, "KiB")
            except RuntimeError as error:
                print(f"{name}, checkpointed: {error}", file=sys.stderr)


# By benchmark, the figures of rondo-bench that must not exceed PyTorch's.
BARRED = {"checkpoint": ("until done", "peak")}


def compare(path, figures):
    """Prints rondo-bench's figures that are here, too; returns true if those with a bar are within
    it."""
    try:
        with open(path, encoding="utf-8") as file:
            ours = {(f["bench"], f["what"]): f for f in json.load(file)["figures"]}
    except (OSError, ValueError, KeyError) as error:
        print(f"error: '{path}' has no figures of rondo-bench: {error!r}", file=sys.stderr)
        return False
    found, within = set(), True
    print(f"\n{'bench':10} {'what':34} {'rondo':>12} {'PyTorch':>12}       ratio  bar")
    for figure in figures:
        bench, what = figure["bench"], figure["what"]
        if (bench, what) not in ours:
            continue
        found.add(bench)
        value, theirs = ours[bench, what]["value"], figure["value"]
        bar = ""
        if what.rpartition(", ")[2] in BARRED.get(bench, ()):
            bar = "within 1" if value <= theirs else "ABOVE 1"
            within = within and value <= theirs
        ratio = f"{value / theirs:7.3f}" if theirs > 0 else ""
        print(f"{bench:10} {what:34} {value:12.2f} {theirs:12.2f} {figure['unit']:3} {ratio:7}  "
              f"{bar}".rstrip())
    for bench in BARRED.keys() - found:
        print(f"error: '{path}' has no figures of {bench} to compare", file=sys.stderr)
        within = False
    return within


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="file", help="write all figures to this file, too")
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--calls", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=8, help="of the model with checkpoints")
    parser.add_argument("--batch", type=int, default=2048, help="rows that it gets")
    parser.add_argument("--width", type=int, default=1024, help="elements of a row")
    parser.add_argument("--beside", metavar="file",
                        help="compare with what rondo-bench --json wrote; the exit code is 4 if a "
                             "bar is not met")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("error: PyTorch finds no CUDA device", file=sys.stderr)
        return 1
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False  # as by default, and as in rondo-bench

    figures = []

    def add(bench, what, value, unit="us"):
        figures.append({"bench": bench, "what": what, "unit": unit, "value": value})
        print(f"{bench:10} {what:52} {value:10.2f} {unit}", flush=True)

    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
    add("replay", "CUDAGraph.replay of 64 kernels, CPU time",
        cpu_per_call(chain(), options.rounds, options.calls))
    ways = {"eager": eager_step, "whole-step CUDAGraph": graph_step,
            "make_graphed_callables": graphed_callables_step}
    for name, make in {"mlp": make_mlp, "gpt_tiny": make_gpt}.items():
        for way, prepare in ways.items():
            try:
                times = step_times(prepare(make), options.rounds)
            except RuntimeError as error:
                print(f"{name}, {way}: {error}", file=sys.stderr)
                continue
            for what, values in times.items():
                add("traces", f"{name}, {way}, {what}", statistics.median(values))

    try:
        add("memory", "gpt2_small_bf16, whole-step CUDAGraph, peak",
            graph_step_peak(make_gpt2_small) / 1024, "KiB")
    except RuntimeError as error:
        print(f"gpt2_small_bf16, whole-step CUDAGraph: {error}", file=sys.stderr)

    add_checkpointed_steps(add, options)

    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"tool": "peer", "torch": torch.__version__, "device": DEVICE,
                       "description": torch.cuda.get_device_name(), "figures": figures},
                      file, indent=2)
            file.write("\n")
    if options.beside and not compare(options.beside, figures):
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
