"""Programs whose kernels and power are recorded: a small language model in training, its decoding token by token, and
an image network in training. Weights and data are random. Each iteration begins with an NVTX range named "iteration".

    python3 programs.py train|decode|image|gemm|small|bursts|all [ITERATIONS] [--kineto FILE] [--alternate BLOCKS]

Prints program,iterations,warm_up,mean_ms,median_ms,p99_ms,wall_s for each. With --alternate, in a process that has the
collector loaded, activity records are on in every second block of iterations and off in the others: it prints
program,blocks,off_ms,on_ms,difference_pct,ci95_pct of paired blocks. Needs PyTorch. It changes no setting of the GPU."""
import ctypes
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, kept=None):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        if kept is not None:
            k, v = torch.cat([kept[0], k], 2), torch.cat([kept[1], v], 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=kept is None)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.norm_b(x)))), (k, v)


class Model(nn.Module):
    def __init__(self, width=1024, depth=12, heads=16, words=32000):
        super().__init__()
        self.words, self.embed = words, nn.Embedding(words, width)
        self.block = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, kept=None):
        x, now = self.embed(tokens), []
        for i, block in enumerate(self.block):
            x, pair = block(x, kept[i] if kept else None)
            now.append(pair)
        return self.head(x), now


def train():
    model = Model().to(DEVICE, torch.bfloat16)
    step = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, model.words, (8, 513), device=DEVICE)

    def one():
        logits, _ = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        step.step()
        step.zero_grad(set_to_none=True)
        return loss.item()

    return one


def decode():
    model = Model().to(DEVICE, torch.bfloat16).eval()
    with torch.inference_mode():
        _, kept = model(torch.randint(0, model.words, (4, 256), device=DEVICE))
    state = {"kept": kept, "token": torch.zeros((4, 1), dtype=torch.long, device=DEVICE)}

    @torch.inference_mode()
    def one():
        if state["kept"][0][0].shape[2] > 1024:
            state["kept"] = kept
        logits, state["kept"] = model(state["token"], state["kept"])
        state["token"] = logits[:, -1:].argmax(-1)
        return state["token"][0, 0].item()

    return one


def image():
    def stage(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1),
                             nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1), nn.BatchNorm2d(o), nn.ReLU())

    model = nn.Sequential(stage(3, 64), stage(64, 128), stage(128, 256), stage(256, 512), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(512, 1000)).to(DEVICE, memory_format=torch.channels_last)
    step = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(64, 3, 224, 224, device=DEVICE).to(memory_format=torch.channels_last)
    label = torch.randint(0, 1000, (64,), device=DEVICE)

    def one():
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = F.cross_entropy(model(data), label)
        loss.backward()
        step.step()
        step.zero_grad(set_to_none=True)
        return loss.item()

    return one


def gemm():
    a = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)

    def one():
        for _ in range(20):
            torch.mm(a, b)
        torch.cuda.synchronize()

    return one


def small():
    """Matrix products that leave the GPU below its power limit, larger ones later."""
    sizes = [torch.randn(n, n, device=DEVICE, dtype=torch.bfloat16) for n in (512, 1024, 1536, 2048, 3072, 4096)]

    def one():
        for a in sizes:
            begin = time.monotonic()
            while time.monotonic() - begin < 1:
                for _ in range(50):
                    torch.mm(a, a)
                torch.cuda.synchronize()

    return one


def bursts():
    """Full load for some 33 ms, then none for as long: peaks above the power limit, means below it."""
    full = gemm()

    def one():
        full()
        time.sleep(0.033)

    return one


PROGRAMS = {"train": (train, 60), "decode": (decode, 300), "image": (image, 60), "gemm": (gemm, 100), "small": (small, 1),
            "bursts": (bursts, 100)}


def cupti():
    """The CUPTI that the collector found: it is loaded already."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            if "libcupti.so" in line:
                return ctypes.CDLL(line.split()[-1])
    sys.exit("programs.py: --alternate needs the collector: CUDA_INJECTION64_PATH, FOLDLINE_RINGS")


def alternate(name, blocks):
    make, _ = PROGRAMS[name]
    one, library, took = make(), cupti(), {False: [], True: []}
    length = {"train": 8, "decode": 6, "image": 16}[name]
    for _ in range(10):
        one()
    for block in range(2 * blocks):
        on = block % 4 in (1, 2)  # off on on off: a drift cancels
        torch.cuda.synchronize()
        (library.cuptiActivityEnable if on else library.cuptiActivityDisable)(10)  # CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
        one()
        begin = time.monotonic()
        for _ in range(length):
            one()
        took[on].append((time.monotonic() - begin) * 1e3 / length)
    more = [100 * (on / off - 1) for off, on in zip(took[False], took[True])]
    print(f"{name},{blocks},{statistics.fmean(took[False]):.4f},{statistics.fmean(took[True]):.4f},"
          f"{statistics.fmean(more):.3f},{1.96 * statistics.stdev(more) / len(more) ** 0.5:.3f}", flush=True)


def run(name, iterations, kineto):
    make, usual = PROGRAMS[name]
    one, took = make(), []
    for _ in range(10):
        one()
    torch.cuda.synchronize()
    if kineto:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA,
                                                torch.profiler.ProfilerActivity.CPU]) as seen:
            for _ in range(3):
                one()
            torch.cuda.synchronize()
        seen.export_chrome_trace(kineto)
    begin = time.monotonic()
    for _ in range(iterations or usual):
        torch.cuda.nvtx.range_push("iteration")
        start = time.monotonic()
        one()
        took.append((time.monotonic() - start) * 1e3)
        torch.cuda.nvtx.range_pop()
    wall = time.monotonic() - begin
    took.sort()
    print(f"{name},{len(took)},10,{statistics.fmean(took):.4f},{took[len(took) // 2]:.4f},"
          f"{took[len(took) * 99 // 100]:.4f},{wall:.4f}", flush=True)


def main():
    args = sys.argv[1:]
    kineto = args.pop(args.index("--kineto") + 1) if "--kineto" in args else None
    blocks = int(args.pop(args.index("--alternate") + 1)) if "--alternate" in args else 0
    args = [a for a in args if a not in ("--kineto", "--alternate")]
    names = list(PROGRAMS)[:3] if args[:1] == ["all"] else args[:1]
    if not names or names[0] not in PROGRAMS:
        sys.exit(__doc__)
    torch.manual_seed(1)
    for name in names:
        if blocks:
            alternate(name, blocks)
            continue
        run(name, int(args[1]) if len(args) > 1 else 0, kineto)


if __name__ == "__main__":
    main()
