"""Foldline from Python: runs the program and returns what it writes as pandas frames; shows its pictures in a notebook.

    import foldline
    rows = foldline.compare("traces/samples/mix8.csv", platform="rtx4070-laptop", policy=["assure:theta=0.9", "sweetspot"])
    rows[["policy", "energy_j", "slowdown"]]
    foldline.plot("pareto", rows)

Options are those of the command line (foldline COMMAND --help): no_oracle=True is --no-oracle, policy=["a", "b"] is
--policy a --policy b, None and False are left out. Inputs are paths. Units stand at the end of a column's name: _j joules,
_s seconds, _w watts, _mhz megahertz, _pct percent, _ns nanoseconds, _c degrees Celsius; slowdown is a share of the
default's makespan (0.05 = 5 %). What the program does not know (n/a) is NaN.

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

__all__ = ["FoldlineError", "Plot", "call", "compare", "grid", "plot", "program", "read", "run", "search",
           "telemetry", "timeline"]

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


def _arguments(inputs, options):
    out = []
    for name, value in options.items():
        dashed = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
        if value is True:
            out.append(dashed)
        elif value is not None and value is not False:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                out += [dashed, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return out + ["--"] + [os.fspath(path) for path in inputs] if inputs else out


def call(command, *inputs, **options):
    """Runs `foldline COMMAND` and returns its standard output as a text. FoldlineError where it does not end with 0."""
    arguments = command.split() + _arguments(inputs, options)
    done = subprocess.run([program(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FoldlineError(done.returncode, done.stderr.strip(), done.stdout, arguments)
    return done.stdout


def _open(path):
    with open(path, "rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    return (gzip.open if packed else open)(path, "rt", encoding="utf-8", newline="")


def read(path):
    """A CSV that foldline wrote, or a trace, as a frame: columns and units as in the file, n/a as NaN. It may be packed
    by gzip, whatever its name.

    frame.attrs["head"]: its comment lines, a dict (the first is "format"). frame.attrs["provenance"]: what the result
    stands on, where it lies beside the file.
    """
    import pandas

    head, first = {}, 0
    with _open(path) as lines:
        for first, line in enumerate(lines):
            if not line.startswith("#"):
                break
            key, colon, value = line[1:].strip().partition(": ")
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
        printed = call(command, *inputs, **options, **{option: path})
        return read(path), printed


def compare(*inputs, **options):
    """Policies over workloads against the oracles: a row for each workload, policy and seed, then the means (workload
    "mean"). energy_j of the GPUs (of the node on an APU), makespan_s, slowdown, energy_saving_pct, regret_static_j, ...

    inputs: traces, or an experiment. o=PATH keeps the file, with its provenance beside. A published claim whose gate
    does not hold is FoldlineError with status 1; the file is written all the same.

    Without policy= and without an experiment: what there is to gain. A row for each workload, default_j, static_mhz,
    static_j, per_kernel_j, oracle_j and its certified bound oracle_bound_j, oracle_gap_pct; times in _s.
    """
    if not options.get("policy") and not any(os.fspath(path).endswith(".json") for path in inputs):
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
    """The best of an experiment's policies and parameters: a row for each group that was held out (held_out), the best
    policy, what it saves where it was tuned and where it was scored (_pct), and the trials that it took."""
    import pandas

    return pandas.DataFrame(json.loads(call("search", *inputs, json=True, **options))["rows"])


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
        if isinstance(self.data, (str, os.PathLike)):
            call("plot", self.kind, self.data, o=path)
            return
        with tempfile.TemporaryDirectory(prefix="foldline-") as folder:
            source = os.path.join(folder, "data.csv")
            _write(self.data, source)
            call("plot", self.kind, source, o=path)


def _write(frame, path):
    """A frame as the CSV that it came from, with what it stands on beside it."""
    texts = frame.copy()
    for name in texts.columns:  # in a timeline what is unknown is blank, in results n/a
        unknown = "" if name in _TEXTS or "t_ns" in texts.columns else "n/a"
        texts[name] = [unknown if x is None or x != x else
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
