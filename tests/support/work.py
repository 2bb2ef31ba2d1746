"""Programs whose time and power at each clock are known, for tests/program/tune.sh.

    work.py make N SEED FILE       writes a sweep of N programs at clocks of v100-300w
    work.py run FILE NAME NOISE    sleeps as long as NAME would run at the clocks that NVML shows, NOISE its relative
                                   deviation, drawn from the instant
    work.py lock MHZ            locks the SM clock; 0 unlocks it
    work.py judge FILE NAME MHZ BOUND   prints by how many points the clock breaks the bound, and the share of the best
                                   saving within the bound that it has
"""
import csv
import ctypes
import random
import sys
import time

CLOCKS = [135] + [750 + 15 * i for i in range(53)]
TOP = 1530
STEP_S = 0.5


def make(count, seed, path):
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as f:
        f.write("workload,kernel,sm_mhz,mem_mhz,time_s,power_w\n")
        for i in range(count):
            follows, sharp, idle = draw.uniform(0, 1), draw.choice((1, 1.5, 3, 6)), draw.uniform(0.2, 0.5)
            rise, length, watts = draw.uniform(0.2, 0.6), draw.uniform(20, 60), draw.uniform(150, 280)
            for mhz in CLOCKS:
                x = mhz / TOP
                slow = (1 - follows + follows * x ** -sharp) ** (1 / sharp)
                volts = (1 + rise * max(0, (x - 0.55) / 0.45) ** 1.4) / (1 + rise)
                f.write(f"p{i},,{mhz},877,{length * slow:.6f},{watts * (idle + (1 - idle) * x * volts * volts):.4f}\n")


def rows_of(path, name):
    with open(path, encoding="utf-8") as f:
        return sorted((float(r["sm_mhz"]), float(r["time_s"]), float(r["power_w"]))
                      for r in csv.DictReader(f) if r["workload"] == name)


def at(rows, mhz, column):
    for a, b in zip(rows, rows[1:]):
        if a[0] <= mhz <= b[0]:
            return a[column] + (b[column] - a[column]) * (mhz - a[0]) / (b[0] - a[0])
    raise SystemExit(f"{mhz} MHz is outside the sweep")


def run(path, name, noise):
    nvml, device, mhz = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_uint()
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    rows, left = rows_of(path, name), 1 + noise * random.Random(time.monotonic_ns()).gauss(0, 1)
    time.sleep(0.05)  # until a clock that was just set is in force
    wait = 0.05
    while left > 0:  # in steps, as a power limit moves the clock in the run
        nvml.nvmlDeviceGetClockInfo(device, 1, ctypes.byref(mhz))
        lasts = at(rows, min(TOP, mhz.value), 1)
        time.sleep(min(STEP_S, left * lasts) - wait)
        left -= STEP_S / lasts
        wait = 0


def lock(mhz):
    nvml, device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    sys.exit(nvml.nvmlDeviceSetGpuLockedClocks(device, mhz, mhz) if mhz else nvml.nvmlDeviceResetGpuLockedClocks(device))


def judge(path, name, mhz, bound):
    rows = rows_of(path, name)
    top_s, top_j = at(rows, TOP, 1), at(rows, TOP, 1) * at(rows, TOP, 2)
    held = [r for r in rows if r[1] <= (1 + bound) * top_s]
    best = top_j - min(r[1] * r[2] for r in held)
    saved = top_j - at(rows, mhz, 1) * at(rows, mhz, 2)
    print(f"{100 * (at(rows, mhz, 1) / top_s - 1 - bound):.3f} {saved / top_j:.5f} {best / top_j:.5f}")


what, *rest = sys.argv[1:]
if what == "make":
    make(int(rest[0]), int(rest[1]), rest[2])
elif what == "lock":
    lock(int(rest[0]))
elif what == "run":
    run(rest[0], rest[1], float(rest[2]))
else:
    judge(rest[0], rest[1], float(rest[2]), float(rest[3]))
