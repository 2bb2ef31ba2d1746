"""Foldline from Python: runs the program and returns what it writes as pandas frames; shows its pictures in a notebook.

    import foldline
    rows = foldline.compare("traces/samples/mix8.csv", platform="rtx4070-laptop", policy=["assure:theta=0.9", "sweetspot"])
    rows[["policy", "energy_j", "slowdown"]]
    foldline.plot("pareto", rows)

Options are those of the command line (foldline COMMAND --help): no_oracle=True is --no-oracle, policy=["a", "b"] is
--policy a --policy b, None and False are left out. Wherever a file goes in, by position or in an option, a frame does
too: the module writes it to a temporary CSV, which results call frame1.csv, frame2.csv, ..., and removes it after.
Units stand at the end of a column's name: _j joules, _s seconds, _w watts, _mhz megahertz, _pct percent, _ns
nanoseconds, _c degrees Celsius; slowdown is a share of the default's makespan (0.05 = 5 %). What the program does not
know (n/a) is NaN.

The program is $FOLDLINE, else the one beside this file (of an installed tree, or built in build/), else the one on PATH.
Needs Python 3.9 and, for frames, pandas; nothing else. Not thread-safe against a change of FOLDLINE, otherwise it is.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile

__all__ = ["FoldlineError", "Plot", "advise", "call", "compare", "fit", "grid", "plan", "plot", "program", "read",
           "regress", "report", "run", "search", "telemetry", "timeline"]

_TEXTS = ("workload", "policy", "platform", "variant", "note", "records", "draw", "breaks", "clock",
          "objective_unit")  # columns where blank is a text, not a number


class FoldlineError(RuntimeError):
    """The program ended with another status than 0.

    status: 1 a gate did not hold, 2 bad usage or input, 3 the system refused; negative: ended by that signal.
    message: what the program wrote to standard error. output: what it wrote to standard output. command: its arguments.
    """

    def __init__(self, status, message, output, command):
        super().__init__(message or f"foldline ended with {status}")
        self.status, self.message, self.output, self.command = status, message, output, command


def program():
    """The path of the program (see above). FileNotFoundError where there is none."""
    here = os.path.dirname(os.path.realpath(__file__))
    asked = os.environ.get("FOLDLINE")
    beside = [os.path.join(here, *parts, "foldline") for parts in (("..", "..", "..", "bin"), ("..", "..", "build"))]
    for path in [asked] if asked else beside + [shutil.which("foldline")]:
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.realpath(path)
    raise FileNotFoundError(f"no foldline at FOLDLINE={asked}" if asked
                            else "no foldline: set FOLDLINE, put it on PATH, or build it in build/")


def _is_frame(value):
    return hasattr(value, "to_csv")


def _arguments(inputs, options, folder):
    """The command line. Frames are written to the folder."""
    out, frames = [], 0

    def text(value):
        nonlocal frames
        if not _is_frame(value):
            return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
        frames += 1
        path = os.path.join(folder, f"frame{frames}.csv")
        _write(value, path)
        return path

    files = [text(one) for one in inputs]
    for name, value in options.items():
        dashed = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
        if value is True:
            out.append(dashed)
        elif value is not None and value is not False:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                out += [dashed, text(one)]
    return out + ["--"] + files if files else out


def call(command, *inputs, **options):
    """Runs `foldline COMMAND` and returns its standard output as a text. FoldlineError where it does not end with 0."""
    with tempfile.TemporaryDirectory(prefix="foldline-") as folder:
        return _call(command, inputs, options, folder)


def _call(command, inputs, options, folder):
    arguments = command.split() + _arguments(inputs, options, folder)
    done = subprocess.run([program(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    said, printed = (text.replace(folder + os.sep, "") for text in (done.stderr, done.stdout))
    if done.returncode != 0:
        raise FoldlineError(done.returncode, said.strip(), printed, arguments)
    return printed


def _open(path):
    with open(path, "rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    return (gzip.open if packed else open)(path, "rt", encoding="utf-8", newline="")


def read(path):
    """A CSV that foldline wrote, or a trace, as a frame: columns and units as in the file, n/a as NaN. It may be packed
    by gzip, whatever its name.

    frame.attrs["head"]: its comment lines, a dict (the first is "format"); files that they name are absolute.
    frame.attrs["provenance"]: what the result stands on, where it lies beside the file.
    """
    import pandas

    head, first = {}, 0
    with _open(path) as lines:
        for first, line in enumerate(lines):
            if not line.startswith("#"):
                break
            key, colon, value = line[1:].strip().partition(": ")
            if key in ("kinds", "order"):  # files beside this one, which the frame shall find from anywhere
                value = os.path.join(os.path.dirname(os.path.abspath(path)), value)
            head[key if colon else "format"] = value if colon else key
    with _open(path) as lines:
        frame = pandas.read_csv(lines, skiprows=first, keep_default_na=False, na_values={}, dtype=str)
    for name in frame.columns:
        if name not in _TEXTS:
            frame[name] = _numbers(frame[name].tolist())
    frame.attrs["head"] = head
    beside = re.sub(r"(\.csv)?(\.gz)?$", "", os.fspath(path)) + ".provenance.json"
    if os.path.isfile(beside):
        with open(beside, encoding="utf-8") as record:
            frame.attrs["provenance"] = json.load(record)
    return frame


def _numbers(cells):
    """Cells as numbers, to the last digit, where all are such or unknown; else as they are."""
    try:
        if all(re.fullmatch(r"-?[0-9]{1,18}", cell) for cell in cells):
            return [int(cell) for cell in cells]
        return [float("nan") if cell in ("", "n/a") else float(cell) for cell in cells]
    except ValueError:
        return cells


def _written(command, option, inputs, options):
    """The file that an option of the command names, as a frame, and what the command printed."""
    asked = options.pop(option, None)
    with tempfile.TemporaryDirectory(prefix="foldline-") as folder:
        path = os.fspath(asked) if asked else os.path.join(folder, "result.csv")
        printed = _call(command, inputs, {**options, option: path}, folder)
        frame = read(path)
        for name in frame.columns[frame.dtypes == object]:  # a frame that went in is called frame1.csv
            frame[name] = [one.replace(folder + os.sep, "") for one in frame[name]]
        return frame, printed


def compare(*inputs, **options):
    """Policies over workloads against the oracles: a row for each workload, policy and seed, then the means (workload
    "mean"). energy_j of the GPUs (of the node on an APU), makespan_s, slowdown, energy_saving_pct, regret_static_j, ...

    inputs: traces, or an experiment. o=PATH keeps the file, with its provenance beside. A published line
    whose verdict differs from the recorded one is FoldlineError with status 1; the file is written all the same.

    Without policy= and without an experiment: what there is to gain. A row for each workload, default_j, static_mhz,
    static_j, per_kernel_j, oracle_j and its certified bound oracle_bound_j, oracle_gap_pct; times in _s.
    """
    if not options.get("policy") and not any(
            not _is_frame(path) and os.fspath(path).endswith(".json") for path in inputs):
        import pandas

        return pandas.DataFrame(json.loads(call("compare", *inputs, json=True, **options)))
    return _written("compare", "o", inputs, options)[0]


def grid(*inputs, **options):
    """A grid of runs: rows as those of compare. o=PATH keeps the file, and a grid that was killed continues from it."""
    return _written("grid", "o", inputs, options)[0]


def run(*inputs, **options):
    """One policy over one workload: a frame of one row, energy_j, makespan_s, mean_power_w, peak_power_w, switches,
    steps, ... frame.attrs["result"]: all that run --json prints, with residences and the split of energy in J."""
    import pandas

    result = json.loads(call("run", *inputs, json=True, **options))
    frame = pandas.DataFrame([{k: v for k, v in result.items() if not isinstance(v, (dict, list))}])
    frame.attrs["result"] = result
    return frame


def timeline(*inputs, **options):
    """Clock, power and utilisation of a run over time, as they truly were: t_ns, device, sm_mhz, mem_mhz, power_w,
    util_gpu_pct, each the mean since the row before. every_ms: their spacing (100)."""
    return _written("run", "timeline", inputs, options)[0]


def telemetry(*inputs, **options):
    """What the sensors of a run showed over time: t_ns, device, power_w, energy_j, util_gpu_pct, temp_c, ..."""
    return _written("run", "telemetry", inputs, options)[0]


def search(*inputs, **options):
    """The best of an experiment's policies and parameters: a row for each candidate, the best first, with what it saves
    where it was tuned (_pct), and for the best five where it was scored. hold_out: a row for each group that was held
    out (held_out), with the best policy and the trials that it took."""
    import pandas

    return pandas.DataFrame(json.loads(call("search", *inputs, json=True, **options))["rows"])


def advise(*inputs, **options):
    """The clock with the least energy within a bound on the slowdown: a row for each workload, sm_mhz, mem_mhz,
    saving_pct and slowdown_pct with their intervals (_low, _high), bound_break_chance, and the commands set and undo.
    frame.attrs["result"]: all that advise --json prints.

    inputs: sweeps, logs at one clock each, recordings, an experiment, or a server and its requests. A user's own
    measurements are a sweep: a frame with workload, sm_mhz, time_s and energy_j or power_w. bound: the largest slowdown
    (0.05). platform: the GPU. risk: the highest chance that the bound breaks (0.05). common=True: one clock for all.
    workload, sm_mhz, device: what logs do not state. ttft, tbt, servers: of a server. o=PATH keeps the file.
    """
    frame, printed = _written("advise", "o", inputs, {**options, "json": True})
    frame.attrs["result"] = json.loads(printed)
    return frame


def plan(pipeline, **options):
    """Clocks for a pipeline of training, a dict: rows (of each kind, default, plan, static and rank: time_s, energy_j,
    bound_j, gap_pct), chosen and default (which rows are the plan and the driver's default), fastest_s.

    slowdown: at most so much slower than the default. time: at most so many seconds an iteration. frontier=True: plans
    for all times, at most points. objective: energy, edp, ed2p. slow: "rank=3:1.2". platform: its ladder. o=PATH
    writes the plan itself, which read returns and the policy plan replays; rows=PATH what plot("frontier", ...) draws.
    """
    return json.loads(call("plan", pipeline, json=True, **options))


def fit(what, *inputs, **options):
    """Fits a model or parameters to measurements; a dict of all that fit --json prints.

    what: "device", "workload", "logs", "sensor", "pipeline", "serving", "trace", "policy sweetspot" and the like
    (foldline fit --help). o=PATH is the file that it writes, which read and the other functions take where it is a CSV.
    workload: device, at. logs: workload, sm_mhz. trace: platform, sm_mhz. pipeline: learn, like.
    serving: steps, dense, per_sequence, attention, run. sensor: meter.
    """
    return json.loads(call("fit " + what, *inputs, json=True, **options))


def regress(baseline, **options):
    """Runs the experiment of a baseline again: a row for each gate, workload, policy, metric, recorded, now, change
    with its interval (change_low, change_high), failed. If a gate fails, FoldlineError with status 1 carries the JSON
    of these rows as its output.

    fail_if: gates, "energy_j>+1%". bound, seed, threads. junit=PATH writes JUnit XML. bless=True, o=PATH: records the
    baseline of an experiment instead, and returns an empty frame.
    """
    import pandas

    return pandas.DataFrame(json.loads(call("regress", baseline, json=True, **options)).get("rows", []))


def report(result, **options):
    """One page of a result of compare or grid, a dict: html, the text of the page, and path, where it lies (o=PATH,
    else None).

    about: its title. reference: the policy that the others are compared with. bound: the largest slowdown. timeline:
    one or several of timeline(). instructions. no_figures=True: without gnuplot. seed, draws: of the intervals.
    """
    asked = options.pop("o", None)
    with tempfile.TemporaryDirectory(prefix="foldline-") as folder:
        path = os.fspath(asked) if asked else os.path.join(folder, "report.html")
        call("report", result, o=path, **options)
        with open(path, encoding="utf-8") as page:
            return {"html": page.read(), "path": asked}


class Plot:
    """A picture as a notebook shows it. svg: its text. save(PATH) draws it anew as .svg, .png or .pdf."""

    def __init__(self, kind, data):
        self.kind, self.data, self.svg = kind, data, None
        with tempfile.TemporaryDirectory(prefix="foldline-") as folder:
            path = os.path.join(folder, "plot.svg")
            self.save(path)
            with open(path, encoding="utf-8") as drawn:
                self.svg = drawn.read()

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        """Draws it into the file; its ending says the format."""
        call("plot", self.kind, self.data, o=path)


def _write(frame, path):
    """A frame as the CSV that it came from, with what it stands on beside it."""
    import pandas

    texts = frame.copy()
    stated = "t_ns" in texts.columns or frame.attrs.get("head")
    for name in texts.columns:  # what is unknown is n/a in results, which have no head, elsewhere blank
        unknown = "" if stated or name in _TEXTS else "n/a"
        texts[name] = [unknown if pandas.isna(x) else
                       str(int(x)) if isinstance(x, float) and abs(x) < 2**53 and x == int(x) else str(x)
                       for x in texts[name].tolist()]
    with open(path, "w", encoding="utf-8") as out:
        for key, value in frame.attrs.get("head", {}).items():
            out.write(f"# {value}\n" if key == "format" else f"# {key}: {value}\n")
        texts.to_csv(out, index=False, lineterminator="\n")
    if "provenance" in frame.attrs:  # the program refuses a record that names another file than the one beside it
        with open(path, "rb") as written:
            record = {**frame.attrs["provenance"], "result_sha256": hashlib.sha256(written.read()).hexdigest()}
        with open(path[:-len(".csv")] + ".provenance.json", "w", encoding="utf-8") as out:
            json.dump(record, out)


def plot(kind, data):
    """A picture of a frame or of a file: pareto, regret, intervals, ranks or sensitivity of rows of compare or grid;
    timeline or residency of a timeline. Needs gnuplot."""
    return Plot(kind, data)
