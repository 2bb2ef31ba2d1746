"""Checks files against the pages of harness/manual/formats, and against nothing else: the tables of the pages are read
as rules, the rules in sentences are written out below. It uses the standard library alone.
    formats.py FILE...    says for each what it is, or file:line: what is wrong; ends with 1 if a file is wrong"""
import csv
import gzip
import json
import math
import os
import re
import sys
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = os.path.join(ROOT, "harness/manual/formats")


class Wrong(Exception):
    """line (0: of no line), what"""


def wrong(line, what):
    raise Wrong(line, what)


# ---- the tables of the pages ----


class Spec:
    """A field by the words of a table: alternatives, and whether it may be empty."""

    def __init__(self, text):
        self.text = text
        self.empty = text.endswith("?")
        self.cache = {}
        self.choices = []
        for part in text.rstrip(" ?").split(" or "):
            kind, _, rest = part.partition(" ")
            if kind in ("int", "real"):
                self.choices.append((kind, *bounds(rest)))
            else:
                self.choices.append((kind, rest))

    def value(self, text):
        """The number or text of a field; None: empty. Raises ValueError."""
        if text not in self.cache:
            self.cache[text] = self.parse(text)
        return self.cache[text]

    def parse(self, text):
        if not text:
            if self.empty:
                return None
            raise ValueError
        for kind, *of in self.choices:
            if kind == "text" or (kind == "word" and text in of[0].split()):
                return text
            if kind == "int" and re.fullmatch(r"-?[0-9]+", text) and inside(int(text), *of):
                return int(text)
            if kind == "real" and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
                if math.isfinite(float(text)) and inside(float(text), *of):
                    return float(text)
        raise ValueError


def number(text):
    power = re.fullmatch(r"(-?)2\^([0-9]+)(-[0-9]+)?", text)
    if power:
        return (-1 if power[1] else 1) * 2 ** int(power[2]) + int(power[3] or 0)
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else float(text)


def bounds(text):
    if not text:
        return -math.inf, math.inf, False
    low, high = text.split("..")
    above = low.startswith(">")
    return number(low.lstrip(">")), number(high) if high else math.inf, above


def inside(value, low, high, above):
    return low <= value <= high and not (above and value == low)


def names_of(cell):
    return re.findall(r"`([^`]+)`", cell)


def read_pages():
    """{table: {name: (required, Spec)}}; tables are "foldline-NAME", "foldline-NAME keys", or the name beside them."""
    tables, heads = {}, {}
    for page in sorted(os.listdir(PAGES)):
        section, near, rows, name = None, None, None, None
        with open(os.path.join(PAGES, page)) as f:
            for line in f:
                line = line.rstrip("\n")
                title = re.match(r"## ([^:]*)(?:: `(foldline-[a-z]+) 1`)?", line)
                if title:
                    section, near = title[2] or title[1], None
                elif line and not line.startswith("|"):
                    named = re.findall(r"\(`([a-z]+)`\)|^`([a-z]+)`:", line)
                    near = "".join(named[-1]) if named else near
                    if "The head is" in line:
                        heads[section] = "The head is required" in line
                if not line.startswith("| "):
                    rows = None if not line.startswith("|") else rows
                    continue
                cells = [c.strip() for c in line.strip("|").split(" | ")]
                if rows is None:
                    kind = cells[0]
                    name = {"column": near or section, "key": f"{section} keys",
                            "what": f"{section} {cells[1].strip('`')}"}.get(kind, kind)
                    rows = tables.setdefault(name, {})
                    continue
                what = names_of(cells[0])
                if kind == "no value":
                    rows[cells[0]] = names_of(cells[1])
                if len(cells) < 3:
                    continue
                need, spec = (cells[1], cells[2]) if cells[1] in ("required", "optional") else ("optional", cells[1])
                for n in what:
                    key = n
                    while key in rows and n == "*":  # signals of servers, after those of GPUs
                        key += "*"
                    rows[key] = (need == "required", Spec(names_of(spec)[0]) if names_of(spec) else None)
                if " or " in cells[0]:
                    rows["|".join(what)] = (True, None)  # one of them
                    for n in what:
                        rows[n] = (False, rows[n][1])
    return tables, heads


TABLES, HEADS = read_pages()


# ---- CSV files ----


def read_bytes(path):
    with open(path, "rb") as f:
        data = f.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def records(text):
    """(line, text) of each record; a quoted field may hold line breaks."""
    held, first = "", 0
    for number_, line in enumerate(text.split("\n"), 1):
        line = line[:-1] if line.endswith("\r") else line
        if "\r" in line:
            wrong(number_, "carriage return within the line")
        if len(line) > 1 << 20:
            wrong(number_, "line is too long")
        first = first if held else number_
        held = held + "\n" + line if held else line
        if held.startswith("#") or held.count('"') % 2 == 0:
            yield first, held
            held = ""
    if held:
        wrong(first, "quote is not closed")


def cut(line, text):
    if '"' not in text:
        return [f.strip(" \t") for f in text.split(",")]
    fields, at = [], 0
    while True:
        m = re.compile(r'[ \t]*"((?:[^"]|"")*)"[ \t]*(,|$)|([^",]*)(,|$)', re.S).match(text, at)
        if not m:
            wrong(line, "stray quote")
        fields.append(m[1].replace('""', '"') if m[1] is not None else m[3].strip(" \t"))
        at = m.end()
        if not (m[2] or m[4]):
            return fields


class Table:
    def __init__(self, path, comments=True):
        data = read_bytes(path)
        if b"\0" in data:
            wrong(0, "NUL byte")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            wrong(0, "not UTF-8")
        self.format, self.head, self.rows, self.header = None, {}, [], None
        for line, record in records(text):
            if record.startswith("#") and comments:
                if not self.header:
                    self.comment(line, record[1:].strip(" \t"))
            elif not record.strip(" \t"):
                continue
            elif self.header is None:
                self.header, self.header_line = cut(line, record), line
            else:
                self.rows.append((line, cut(line, record)))
        if self.header is None:
            wrong(0, "no header row")

    def comment(self, line, text):
        if line == 1 and text.startswith("foldline-"):
            self.format = text
        elif re.fullmatch(r"[# \t]*foldline-\S*[ \t]+[0-9]+", text, re.I):
            wrong(line, f"'{text}' is no first line")
        elif self.format and ":" in text:
            key, _, value = text.partition(":")
            if key.strip() and key.strip() in self.head:
                wrong(line, f"{key.strip()} is given twice")
            self.head[key.strip()] = (line, value.strip())


def column_spec(rules, name):
    if name in rules and "*" not in name:
        return rules[name]
    for pattern, rule in rules.items():
        if pattern.startswith("*") and pattern != "*" and name.endswith(pattern.strip("*")):
            return rule
        if pattern.endswith("*") and pattern != "*" and pattern.strip("*") and name.startswith(pattern.strip("*")):
            return rule
    return rules.get("*")


def columns(t, rules):
    """Refuses unknown, repeated and missing columns; returns the rule of each."""
    found = []
    for name in t.header:
        rule = column_spec(rules, name) if name else None
        if not rule:
            wrong(t.header_line, f"unknown column '{name}'")
        if t.header.count(name) > 1:
            wrong(t.header_line, f"column '{name}' twice")
        found.append(rule[1])
    for name, (required, _) in rules.items():
        if required and not any(n in t.header for n in name.split("|")):
            wrong(t.header_line, f"no column '{name}'")
    if not t.rows:
        wrong(t.header_line, "no row")
    return found


def values(t, specs, words=()):
    """[(line, {column: value})]; words: columns in which a word may mean that there is no value."""
    out = []
    for line, fields in t.rows:
        if len(fields) != len(specs):
            wrong(line, f"{len(fields)} fields, expected {len(specs)}")
        row = {}
        for name, spec, text in zip(t.header, specs, fields):
            text = "" if words and name in words and (no_value(text) or words[name] and is_zero(text)) else text
            try:
                row[name] = spec.value(text)
            except ValueError:
                wrong(line, f"{name} is '{text}', expected {spec.text}")
        out.append((line, row))
    return out


def no_value(text):
    low, table = text.lower(), TABLES["no value"]
    if not text or low in map(str.lower, table["whole"]) or (text[0] == "[" and text[-1] == "]"):
        return True
    return not text[0].isdigit() and any(part in low for part in table["part"])


def keys(t, rules):
    out = {}
    for name, (required, spec) in rules.items():
        line, text = t.head.get(name, (0, None))
        if text is None:
            out[name] = None
            if required:
                wrong(0, f"the head has no {name}")
            continue
        try:
            out[name] = spec.value(text)
        except ValueError:
            wrong(line, f"{name} is '{text}', expected {spec.text}")
    return out


def ascend(rows, column, strictly=False):
    last = None
    for line, row in rows:
        if last is not None and (row[column] < last or (strictly and row[column] == last)):
            wrong(line, f"{column} is {row[column]} after {last}")
        last = row[column]


# ---- the rules in sentences, one function for each format ----


def kernels(t, rows, head):
    lanes = {}
    for number_, (line, r) in enumerate(rows):
        brackets = r["name"].startswith("[") and r["name"].endswith("]")
        if not r["name"].isprintable():
            wrong(line, "name is not printable")
        if not brackets and any(r[c] is None for c in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")):
            wrong(line, "a kernel without grid and block")
        if r["end_ns"] < r["start_ns"]:
            wrong(line, "end before start")
        if r.get("launch_ns") is not None and r["launch_ns"] > r["start_ns"]:
            wrong(line, "launch after start")
        waits = r.get("waits_for")
        if waits is not None:
            for w in waits.split("+"):
                if not re.fullmatch("[0-9]+", w) or int(w) >= number_:
                    wrong(line, "waits_for names no row above")
            if waits.count("+") >= 65535:
                wrong(line, "waits_for has too many rows")
        if r["name"] not in ("[sync]", "[iteration]"):
            if r["start_ns"] == r["end_ns"] == 0:
                wrong(line, "begins and ends at 0")
            lanes.setdefault((r["device"], r["process"], r["stream"]), []).append((r["start_ns"], r["end_ns"], line))
    for lane in lanes.values():
        lane.sort()
        for a, b in zip(lane, lane[1:]):
            if b[0] < a[1]:
                wrong(b[2], f"overlaps line {a[2]}")


def kinds(t, rows, head):
    shares, last = {}, None
    for line, r in rows:
        if not r["tc"] + r["tm"] + r["tl"] > 0:
            wrong(line, "tc, tm and tl are all 0")
        phase = 1 if r.get("phase") is None else r["phase"]
        if not phase > 0:
            wrong(line, "phase is 0")
        if r["name"] in shares and (r["name"] != last or phase == 1 or shares[r["name"]] >= 1 + 1e-6):
            wrong(line, f"a second row of {r['name']}")
        shares[r["name"]] = shares.get(r["name"], 0) + phase
        last = r["name"]
        if isinstance(r.get("fold_mhz"), float):
            if r.get("fold_low") is None or r.get("fold_high") is None or r["fold_high"] > r["fold_low"]:
                wrong(line, "a fold without slopes, or with slopes that rise")
    for name, share in shares.items():
        if abs(share - 1) > 1e-6:
            wrong(0, f"phases of {name} add up to {share:g}")


def programs(t, rows, head):
    last, seen = None, set()
    for line, r in rows:
        if last is None or r["program"] != last["program"]:
            if r["program"] in seen or r["part"] != 1:
                wrong(line, "a program in two places, or one that does not begin with part 1")
            seen.add(r["program"])
        elif r["part"] == last["part"]:
            if r["part_s"] != last["part_s"]:
                wrong(line, "part_s differs within a part")
        elif r["part"] != last["part"] + 1:
            wrong(line, "parts are out of order")
        if last and r["program"] == last["program"] and r.get("cycles") != last.get("cycles"):
            wrong(line, "cycles differ within a program")
        last = r


def telemetry(t, rows, head):
    if t.header[:2] != ["t_ns", "device"] or len(t.header) < 3:
        wrong(t.header_line, "expected t_ns, device and a signal")
    by_device = {}
    for line, r in rows:
        by_device.setdefault(r["device"], []).append((line, r))
    for of in by_device.values():
        ascend(of, "t_ns")


def sweep(t, rows, head):
    setting = "sm_mhz" if "sm_mhz" in t.header else "power_cap_w"
    texts = dict(t.rows)
    for either in (("sm_mhz", "power_cap_w"), ("power_w", "energy_j")):
        if not any(c in t.header for c in either):
            wrong(t.header_line, "neither " + " nor ".join(either))
    for line, r in rows:
        power, energy, time = r.get("power_w"), r.get("energy_j"), r["time_s"]
        text = texts[line][t.header.index(setting)] if setting in t.header else ""
        if (no_value(text) and text.lower() not in ("", "nan", "n/a", "[n/a]") or is_zero(text)) and (
                setting != "sm_mhz" or r.get("power_cap_w") is None):
            wrong(line, f"{setting} is {text}: no setting")
        if power is None and energy is None:
            wrong(line, "neither power nor energy")
        if power is not None and energy is not None and not 0.1 <= energy / power / time <= 10:
            wrong(line, "energy is not power times time")
        if power is None and energy / time > 1e4:
            wrong(line, "more power than any node draws")


def is_zero(text):
    try:
        return float(text) == 0
    except ValueError:
        return False


def requests(t, rows, head):
    ascend(rows, "t_ns")
    for line, r in rows:
        if (r.get("cached_tokens") or 0) > r["prompt_tokens"]:
            wrong(line, "more cached tokens than the prompt has")
        last = r["t_ns"]
        for c in ("queued_ns", "scheduled_ns", "first_token_ns", "last_token_ns"):
            if r.get(c) is not None:
                if r[c] < last:
                    wrong(line, f"{c} is before what precedes it")
                last = r[c]


def serving(t, rows, head):
    numbers = TABLES["foldline-serving value"]
    tables, clocks, once = {}, [], {}
    for line, r in rows:
        what, value = r["what"], r["value"]
        if what in TABLES["foldline-serving at"]:
            grid = what in ("by_decodes", "by_decodes_beside", "by_chunk", "by_experts")
            if r["at"] is None or (r["kv"] is None) == grid or not 1e-12 <= value <= 1000:
                wrong(line, f"no point of {what}")
            at = (r["at"], r["kv"] or 0)
            if tables.get(what) and at <= tables[what][-1]:
                wrong(line, f"points of {what} do not ascend")
            tables.setdefault(what, []).append(at)
            if len(tables[what]) > 65536:
                wrong(line, "too many points")
            continue
        if r["at"] is not None or r["kv"] is not None:
            wrong(line, f"{what} has at or kv")
        if what == "clock":
            if not 1 <= value <= 1e5 or (clocks and value <= clocks[-1]) or len(clocks) == 64:
                wrong(line, "clock out of order or range")
            clocks.append(value)
        elif what not in numbers or what in once:
            wrong(line, f"'{what}' is unknown, or stands twice")
        else:
            kind, *of = numbers[what][1].choices[0]
            if not inside(value, *of) or (kind == "int" and value != int(value)):
                wrong(line, f"{what} is {value:g}, expected {numbers[what][1].text}")
            once[what] = value
    if tables and not once.get("ref_sm_mhz", 0) > 0:
        wrong(0, "tables without ref_sm_mhz")
    if "by_tokens" not in tables and not once.get("token", 0) > 0:
        wrong(0, "neither by_tokens nor token")


def layers(t, rows, head):
    by = "tokens" if "tokens" in t.header else "sequences"
    unique(rows, ("layer", by, "sm_mhz"))
    if ("tokens" in t.header) == ("sequences" in t.header) or len({r["layer"] for _, r in rows}) > 256:
        wrong(0, "both tokens and sequences, or too many layers")


def unique(rows, names):
    seen = {}
    for line, r in rows:
        key = tuple(r.get(n) for n in names)
        if key in seen:
            wrong(line, f"the same {', '.join(names)} as line {seen[key]}")
        seen[key] = line


def attention(t, rows, head):
    for line, r in rows:
        chunk, before, decodes, kv = r["prefill_chunk"], r["kv_prefill"], r["n_decode"], r["kv_decode"]
        if (not chunk and (before or not decodes)) or (not decodes) != (not kv):
            wrong(line, "no part of a step")


def experts(t, rows, head):
    unique(rows, ("tokens", "activated_experts", "sm_mhz"))


def steps(t, rows, head):
    for line, r in rows:
        if r["phase"] == "prefill" and r["batch"] != 1 or r["phase"] == "decode" and r["tokens"] != r["batch"]:
            wrong(line, "tokens and batch do not fit the phase")


def pipeline(t, rows, head):
    count = {k: head[k] or 1 for k in ("stages", "microbatches", "chunks", "data_parallel", "tensor_parallel")}
    schedule = head["schedule"]
    ranks = count["stages"] * count["data_parallel"] * count["tensor_parallel"]
    passes = ranks * count["chunks"] * count["microbatches"]
    if (head["order"] is not None) != (schedule == "list"):
        wrong(0, "order and schedule: list go together")
    if schedule == "interleaved" and count["microbatches"] % count["stages"]:
        wrong(0, "microbatches are no multiple of stages")
    if ranks > 1024 or (count["chunks"] > 1 and schedule != "interleaved"):
        wrong(0, "too many ranks, or chunks without an interleaved schedule")
    if passes > 1e6 or passes * (count["tensor_parallel"] - 1) > 8e6:
        wrong(0, "too many passes")
    has = {"forward": ("sm_mhz", "time_s", "power_w"), "blocked": ("power_w",)}
    has["backward"] = has["forward"]
    stated = set()
    for line, r in rows:
        for c in ("sm_mhz", "time_s", "power_w"):
            if (r[c] is not None) != (c in has.get(r["what"], ("time_s",))):
                wrong(line, f"{c} of {r['what']}")
        if len(has.get(r["what"], ())) == 3 and r["time_s"] < 1e-9:
            wrong(line, "time_s is too short")
        r["chunk"] = "*" if r.get("chunk") is None else r["chunk"]
        for c, most in (("rank", ranks), ("chunk", count["chunks"])):
            if r[c] != "*" and r[c] >= most:
                wrong(line, f"{c} is {r[c]} of {most}")
        stated.add((r["what"], r["rank"], r["chunk"]))
    unique(rows, ("rank", "chunk", "what", "sm_mhz"))
    for rank in range(ranks):
        for chunk in range(count["chunks"]):
            for what in ("forward", "backward", "blocked"):
                if not any((what, r, c) in stated for r in (rank, "*") for c in (chunk, "*")):
                    wrong(0, f"rank {rank} has no {what}")


def order(t, rows, head):
    index = {}
    for line, r in rows:
        if r["index"] != index.get(r["stage"], 0):
            wrong(line, "index is not the next")
        index[r["stage"]] = r["index"] + 1
        name = r["instruction"]
        of = 0 if name in ("reduce_tied", "reduce_data", "step") else 2 if name.count("_") == 3 else 1
        if (r["microbatch"] == -1) != (of == 0) or (r["microbatch2"] == -1) != (of < 2):
            wrong(line, "microbatches of the instruction")
    if set(index) != set(range(max(index) + 1)):
        wrong(0, "a stage without instructions")


def plan(t, rows, head):
    last, taken = 0, {}
    for line, r in rows:
        number_, first, count = r.get("plan", 0), r["first_microbatch"], r["count"]
        if number_ < last:
            wrong(line, "plan numbers do not ascend")
        last = number_
        if r["sm_mhz"] != int(r["sm_mhz"]):
            wrong(line, "sm_mhz is no whole clock")
        if first + count > 1000000:
            wrong(line, "microbatches beyond a million")
        what = (number_, r["rank"], r["instruction"], r.get("chunk", 0))
        taken.setdefault(what, []).append((first, first + count, line))
    for spans in taken.values():
        spans.sort()
        for a, b in zip(spans, spans[1:]):
            if b[0] < a[1]:
                wrong(b[2], "two clocks for one instruction")


def trajectory(t, rows, head):
    ascend(rows, "t_s")


def target(t, rows, head):
    ascend(rows, "t_ns", strictly=True)


def arrivals(t, rows, head):
    ascend(rows, "t_ns")


def measured(t, rows, head):
    unique(rows, ("plan", "rank"))


def caps(t, rows, head):
    unique(rows, ("family", "plan", "rank"))


def nothing(t, rows, head):
    pass


def decisions(t):
    """Columns stand in a fixed order, so that a name may be a signal in one group and a record's in another."""
    rules = TABLES["foldline-decisions"]
    h = t.header
    if h[:3] != ["step", "t_ns", "device"] or "fresh" not in h or "delay_ns" not in h[h.index("fresh"):]:
        wrong(t.header_line, "columns of a decision log")
    fresh, delay = h.index("fresh"), h.index("delay_ns", h.index("fresh"))
    records_ = ["lost", "kind", "name_id", "name", "grid", "block", "gpu", "stream", "start_ns", "end_ns"]
    batch = [n for n in rules if n.startswith("batch_")]
    at = delay + 1
    has_records = h[at:at + 10] == records_
    at += 10 * has_records
    servers = h[at:at + 3] == ["server", "batches_lost", "server_fresh"] and [n for n in h[-6:]] == batch[:0] + [
        "batch_start_ns", "batch_end_ns", "batch_prompt_tokens", "batch_prompts", "batch_sequences", "batch_kv_tokens"]
    if not servers and at != len(h):
        wrong(t.header_line, f"unknown column '{h[at]}'")
    signals, controls = range(3, fresh), range(fresh + 1, delay)
    server_signals = range(at + 3, len(h) - 6) if servers else range(0)
    for group in (signals, controls, server_signals):
        names = [h[i] for i in group]
        if len(set(names)) != len(names) or "" in names or "set_" in names:
            wrong(t.header_line, "a column twice or without a name")
    if any(not h[i].startswith("set_") for i in controls):
        wrong(t.header_line, "a control without set_")
    signal, control = rules["*"][1], rules["set_*"][1]
    specs = [signal if i in signals or i in server_signals else control if i in controls else rules[n][1]
             for i, n in enumerate(h)]
    gpus = keys(t, {"gpus": TABLES["foldline-decisions keys"]["gpus"]})["gpus"]
    step, kinds_, shape, per_step = -1, 0, None, []

    def only(line, row, allowed):
        for i, v in enumerate(row):
            if v is not None and i not in allowed:
                wrong(line, f"'{v}' in {h[i]}")

    def is_fresh(line, text, row, group):
        if text in (None, "*"):
            return
        for name in text.split("+"):
            if not any(h[i] == name and row[i] is not None for i in group):
                wrong(line, f"fresh names '{name}'")

    for line, fields in t.rows:
        if len(fields) != len(h):
            wrong(line, f"{len(fields)} fields, expected {len(h)}")
        row = []
        for name, spec, text in zip(h, specs, fields):
            try:
                row.append(spec.value(text))
            except ValueError:
                wrong(line, f"{name} is '{text}', expected {spec.text}")
        device = row[2]
        if device == "host":
            if step >= 0 and (per_step[-1][0] < 0 or (gpus is not None and per_step[-1][0] + 1 != gpus)):
                wrong(line, "the step before is not whole")
            gpus = gpus if gpus is not None or step < 0 else per_step[-1][0] + 1
            if row[0] != step + 1 or (step >= 0 and row[1] < now):
                wrong(line, "step or t_ns out of order")
            step, now = row[0], row[1]
            per_step.append([-1, 0])  # last GPU, servers
            lost = {delay + 1} if has_records else set()
            only(line, row, set(range(3)) | set(signals) | set(controls) | {fresh, delay} | lost)
        elif step < 0 or row[0] != step or row[1] != now:
            wrong(line, "not of the step above")
        elif isinstance(device, int):
            if device != per_step[-1][0] + 1 or (gpus is not None and device >= gpus):
                wrong(line, f"device {device} out of order")
            per_step[-1][0] = device
            if per_step[-1][1] != per_step[0][1]:
                wrong(line, "another number of servers than in the first step")
            only(line, row, set(range(3)) | set(signals) | set(controls) | {fresh})
        elif per_step[-1][0] >= 0 or (device in ("kind", "kernel") and not has_records) or (
                device in ("server", "batch") and not servers):
            wrong(line, f"a row of {device} here")
        elif device == "kind":
            places = {n: delay + 1 + i for i, n in enumerate(records_)}
            only(line, row, {0, 1, 2} | {places[n] for n in ("kind", "name_id", "name", "grid", "block")})
            for n in ("grid", "block"):
                if not re.fullmatch(r"[0-9]+x[0-9]+x[0-9]+", row[places[n]] or "") or any(
                        int(v) >= 1 << 32 for v in row[places[n]].split("x")):
                    wrong(line, f"{n} is '{row[places[n]]}'")
            if row[places["kind"]] != kinds_ or row[places["name_id"]] is None:
                wrong(line, "kind or name_id")
            kinds_ += 1
        elif device == "kernel":
            places = {n: delay + 1 + i for i, n in enumerate(records_)}
            only(line, row, {0, 1, 2} | {places[n] for n in ("kind", "gpu", "stream", "start_ns", "end_ns")})
            for n in ("kind", "gpu", "stream", "start_ns"):
                if row[places[n]] is None or (n == "kind" and row[places[n]] >= kinds_) or (
                        n == "gpu" and gpus is not None and row[places[n]] >= gpus):
                    wrong(line, f"{n} of a kernel")
        elif device == "server":
            only(line, row, {0, 1, 2} | set(range(at, len(h) - 6)))
            if row[at] != per_step[-1][1]:
                wrong(line, "server out of order")
            per_step[-1][1] += 1
            is_fresh(line, row[at + 2], row, server_signals)
        else:
            only(line, row, {0, 1, 2, at} | set(range(len(h) - 6, len(h))))
            if row[at] is None or row[at] >= per_step[-1][1] or None in row[-6:]:
                wrong(line, "a batch of no server, or not whole")
        for i in signals:
            if row[i] is not None and row[i] < 0 and re.search("_(w|j|mhz|pct)$", h[i]):
                wrong(line, f"{h[i]} is negative")
        is_fresh(line, row[fresh], row, signals)
    if step < 0 or per_step[-1][0] < 0 or (gpus is not None and per_step[-1][0] + 1 != gpus):
        wrong(line if t.rows else 0, "the last step is not whole")


def journal(text):
    lines = text.split("\n")
    first = re.fullmatch("# foldline-journal 1 ([0-9a-f]{1,64}) ([0-9]{1,19})", lines[0])
    if not first or lines[-1]:
        wrong(1, "no first line of a journal, or a torn last one")
    job, row, rows, seen = None, 0, 0, set()
    for number_, line in enumerate(lines[1:-1], 2):
        m = re.fullmatch("([0-9]+) ([0-9]+) ([0-9]+) ([0-9a-f]{8}) (.*)", line)
        if not m or zlib.crc32(m[5].encode("latin-1")) != int(m[4], 16) or int(m[1]) >= int(first[2]):
            wrong(number_, "no line of a job")
        new = int(m[1]) != job or row == rows
        if new and (row != rows or int(m[1]) in seen):
            wrong(number_, "a job that is not whole, or stands twice")
        if new:
            job, row, rows = int(m[1]), 0, int(m[3])
            seen.add(job)
        if int(m[3]) != rows or int(m[2]) != (row + 1 if rows else 0) or (not rows and m[5]):
            wrong(number_, "rows of a job")
        row += 1 if rows else 0
    if row != rows:
        wrong(len(lines), "the last job is not whole")


RULES = {"foldline-" + f.__name__: f for f in (kernels, kinds, programs, telemetry, sweep, target, requests, arrivals,
                                               serving, pipeline, plan, trajectory)}
BARE = {"layers": layers, "attention": attention, "experts": experts, "steps": steps, "measured": measured,
        "instructions": nothing, "caps": caps, "Lists of instructions": order}


def bare_format(t):
    """The format of a table without a head, by its columns."""
    fits = [n for n in [*BARE, *(f for f in RULES if not HEADS[f])] if all(
        any(c in t.header for c in name.split("|")) for name, (required, _) in TABLES[n].items() if required)]
    fits.sort(key=lambda n: -sum(c in TABLES[n] for c in t.header))
    return fits[0] if fits else None


def csv_file(path, asked):
    t = Table(path, asked != "Lists of instructions")
    name = t.format.rsplit(" ", 1)[0] if t.format else asked or bare_format(t)
    known = name in RULES or name in ("foldline-decisions", "foldline-steps")
    if t.format and not (t.format.endswith(" 1") and known):
        wrong(1, f"'{t.format}' is no format of version 1")
    if name in HEADS and HEADS[name] and not t.format:
        wrong(1, f"expected '# {name} 1'")
    if name == "foldline-steps":
        name = asked or bare_format(t)
    if name is None:
        for line, fields in t.rows:
            if len(fields) != len(t.header):
                wrong(line, f"{len(fields)} fields, expected {len(t.header)}")
        return "table of a policy"
    if name == "foldline-decisions":
        decisions(t)
        return name
    rules = TABLES[name]
    words = {}  # columns in which a word means that there is no value; True: 0 as well
    if name in ("foldline-telemetry", "foldline-sweep"):
        words = {n: name == "foldline-sweep" for n in t.header if n not in ("t_ns", "device", "workload", "time_s")}
    elif name == "steps":
        words = {"power_w": False}
    specs = columns(t, rules)
    head = keys(t, TABLES.get(name + " keys", {}))
    (RULES.get(name) or BARE[name])(t, values(t, specs, words), head)
    return name


# ---- JSON files ----


def pairs_once(items):
    if len(dict(items)) != len(items):
        wrong(0, "a key is given twice: " + ", ".join(k for k, _ in items))
    return dict(items)


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def is_clock(v):
    return is_number(v) and v == int(v) and 1 <= v <= 100000


def ladder(v):
    if isinstance(v, list):
        return all(map(is_clock, v)) and 1 <= len(v) <= 4096 and all(a < b for a, b in zip(v, v[1:])) and v
    if not isinstance(v, dict) or set(v) != {"from", "to", "steps"} or not isinstance(v["steps"], list):
        return None
    if not (is_clock(v["from"]) and is_clock(v["to"]) and v["steps"] and all(map(is_clock, v["steps"]))):
        return None
    out = [v["from"]]
    while out[-1] < v["to"]:
        out.append(out[-1] + v["steps"][(len(out) - 1) % len(v["steps"])])
    return out if out[-1] == v["to"] and len(out) <= 4096 else None


def voltages(v):
    return isinstance(v, list) and 1 <= len(v) <= 64 and all(
        isinstance(p, list) and len(p) == 2 and all(map(is_number, p)) and 0 <= p[0] <= 100000 and 1e-3 <= p[1] <= 1000
        for p in v) and all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(v, v[1:]))


def holds(spec, v, path):
    """Whether a value of a JSON file is as one of the words of a table says."""
    for part in spec.text.split(" or "):
        kind, _, rest = part.partition(" ")
        if kind == "any" or (kind == "text" and isinstance(v, str) and v) or (kind == "bool" and isinstance(v, bool)):
            return True
        if kind == "word" and v in rest.split() or kind == "ladder" and ladder(v) or kind == "pairs" and voltages(v):
            return True
        if kind in ("int", "real") and is_number(v) and inside(v, *bounds(rest)) and (kind == "real" or v == int(v)):
            return True
        if kind == "list" and isinstance(v, list) and v:
            inner = Spec(rest.replace("of ", "", 1))
            if all(holds(inner, e, f"{path}[{i}]") for i, e in enumerate(v)):
                return True
        if kind == "object" and isinstance(v, dict):
            if rest:
                an_object(v, rest, path)
            return True
    return False


def an_object(v, table, path):
    rules = TABLES[table]
    for key, value in v.items():
        where = f"{path}.{key}".lstrip(".")
        if key not in rules:
            wrong(0, f"{where}: unknown key")
        if not holds(rules[key][1], value, where):
            wrong(0, f"{where}: expected {rules[key][1].text}")
    for key, (required, _) in rules.items():
        if required and key not in v:
            wrong(0, f"{path}.{key}: missing".lstrip("."))


def numbers_of(v, path=""):
    if is_number(v):
        yield path
    elif isinstance(v, dict):
        for k, e in v.items():
            if path or k not in ("notes", "foldline_platform"):
                yield from numbers_of(e, f"{path}.{k}".lstrip("."))
    elif isinstance(v, list):
        for i, e in enumerate(v):
            yield from numbers_of(e, f"{path}[{i}]")


def paths_of(v, path=""):
    if path:
        yield path
    for k, e in v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ():
        yield from paths_of(e, f"{path}[{k}]" if isinstance(v, list) else f"{path}.{k}".lstrip("."))


def a_limit(l, path):
    if not l["min_w"] <= l["default_w"] <= l["max_w"]:
        wrong(0, f"{path}: limits out of order")


def a_gpu(g, path):
    sm, mem = ladder(g["sm_mhz"]), ladder(g["mem_mhz"])
    if g["default_sm_mhz"] not in sm or g["default_mem_mhz"] not in mem:
        wrong(0, f"{path}: a default clock is not on its ladder")
    volt = g["power"]["voltage"]
    if volt[0][0] > sm[0] or volt[-1][0] < sm[-1]:
        wrong(0, f"{path}: the voltage does not cover the ladder")
    b0 = g["power"]["b0_w"]
    if isinstance(b0, list) and len(b0) != len(mem):
        wrong(0, f"{path}: b0_w is not one for each memory clock")
    if "limits" in g:
        a_limit(g["limits"], path)
    if "wall" in g and not g.get("limits", {}).get("default_w", 0) > 0:
        wrong(0, f"{path}: a wall without limits")
    if "bandwidth" in g and g["bandwidth"]["low"] < g["bandwidth"]["high"]:
        wrong(0, f"{path}: the bandwidth's low is below high")
    a, t = g["actuator"], g.get("thermal")
    if a.get("limit_force_ms", 0) > a.get("limit_call_ms", 0):
        wrong(0, f"{path}: limit_force_ms is above limit_call_ms")
    if t and (t["leak_ref_c"] < t["ambient_c"] or t["limit_c"] <= t["ambient_c"] or t["release_c"] >= t["limit_c"]):
        wrong(0, f"{path}: temperatures out of order")
    the_sensors(g["sensors"], path)


def the_sensors(sensors, path):
    for name, s in sensors.items():
        if s["refresh_ms"] == 0 and (s.get("window_ms", 0) > 0 or s.get("lag_ms", 0) > 0):
            wrong(0, f"{path}.{name}: a window or lag without a refresh")
        if "wrap" in s and name not in ("energy", "profile", "clock", "cpu", "cpu_energy", "node_energy"):
            wrong(0, f"{path}.{name}: wrap")
        if "mem_noise_pct" in s and name != "utilisation":
            wrong(0, f"{path}.{name}: mem_noise_pct")


def a_host(h):
    the_sensors(h.get("sensors", {}), "host.sensors")
    if h.get("apu"):
        if "cpu" not in h or "bus" not in h or not h.get("peak_gb_s", 0) > 0:
            wrong(0, "host: an APU needs cpu, bus and peak_gb_s")
    elif "bus" in h or h.get("budget_w", 0) > 0:
        wrong(0, "host: bus or budget_w without an APU")
    if "bus" in h and h["bus"]["min"] > h["bus"]["max"]:
        wrong(0, "host.bus: min above max")
    c = h.get("cpu")
    if not c:
        return
    states = c["states"] + c.get("boost", [])
    if any(s[0] != int(s[0]) or not s[0] > 0 for s in states) or any(a[0] >= b[0] for a, b in zip(states, states[1:])):
        wrong(0, "host.cpu: states out of order, or of broken clocks")
    if c["default_mhz"] not in [s[0] for s in c["states"]]:
        wrong(0, "host.cpu: default_mhz is no state")
    if "limits" in c:
        a_limit(c["limits"], "host.cpu")
        if c["limits"]["default_w"] > 0 and not c.get("period_ms", 0) > 0:
            wrong(0, "host.cpu: limits without period_ms")


def platform(v):
    an_object(v, "platform", "")
    if ("gpu" in v) == ("gpus" in v) or ("count" in v and ("gpus" in v or "count" in v["gpu"])):
        wrong(0, "gpu, gpus and count")
    gpus = v.get("gpus") or [v["gpu"]]
    for i, g in enumerate(gpus):
        a_gpu(g, f"gpus[{i}]" if "gpus" in v else "gpu")
    count = sum(g.get("count", 1) for g in gpus) * v.get("count", 1)
    if count > 1024 or (v["host"].get("apu") and count != 1):
        wrong(0, f"{count} GPUs")
    a_host(v["host"])
    for p in v.get("policies", {}).values():
        if not isinstance(p, dict) or not all(isinstance(e, (int, float, str, bool)) or (
                isinstance(e, list) and e and all(map(is_number, e))) for e in p.values()):
            wrong(0, "policies: expected an object for each policy, of values of parameters")
    known = set(paths_of(v))
    for note, text in v["notes"].items():
        if note not in known or not isinstance(text, str) or not text:
            wrong(0, f"notes.{note}: names no value, or has no text")
    for path in numbers_of(v):
        if not any(path == n or path.startswith((n + ".", n + "[")) for n in v["notes"]):
            wrong(0, f"{path}: no note")


def board(v):
    an_object(v, "board", "")
    plain = set(v) - {"foldline_board", "title", "name", "notes"}
    for key in plain - set(v["notes"]):
        wrong(0, f"{key}: no note")
    for key, text in v["notes"].items():
        if key not in v or not isinstance(text, str) or not text:
            wrong(0, f"notes.{key}: names no value, or has no text")


def by_schema(v, schema, root, path):
    """JSON schema, draft 07, as far as experiment.schema.json uses it."""
    if "$ref" in schema:
        by_schema(v, root["definitions"][schema["$ref"].rsplit("/", 1)[1]], root, path)
    for inner in schema.get("allOf", ()):
        by_schema(v, inner, root, path)
    if "anyOf" in schema:
        for inner in schema["anyOf"]:
            try:
                by_schema(v, inner, root, path)
                break
            except Wrong:
                pass
        else:
            wrong(0, f"{path}: none of what it may be")
    kinds_ = {"object": dict, "array": list, "string": str, "boolean": bool}
    kind = schema.get("type")
    if kind in kinds_ and not isinstance(v, kinds_[kind]) or kind in ("number", "integer") and not is_number(v) or (
            kind == "integer" and v != int(v)):
        wrong(0, f"{path}: expected {kind}")
    if "enum" in schema and v not in schema["enum"] or isinstance(v, str) and len(v) < schema.get("minLength", 0):
        wrong(0, f"{path}: '{v}'")
    if is_number(v) and not schema.get("minimum", -math.inf) <= v <= schema.get("maximum", math.inf):
        wrong(0, f"{path}: {v} is out of its range")
    if isinstance(v, list):
        for i, e in enumerate(v):
            by_schema(e, schema.get("items", {}), root, f"{path}[{i}]")
    if isinstance(v, dict):
        for key in schema.get("required", ()):
            if key not in v:
                wrong(0, f"{path}.{key}: missing")
        for key, e in v.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            if inner is False:
                wrong(0, f"{path}.{key}: unknown key")
            by_schema(e, inner if isinstance(inner, dict) else {}, root, f"{path}.{key}")


def json_file(path):
    data = read_bytes(path)
    if len(data) > 16 << 20:
        wrong(0, "more than 16 MiB")
    try:
        v = json.loads(data.decode("utf-8"), object_pairs_hook=pairs_once, parse_constant=lambda c: wrong(0, c))
    except ValueError as e:
        wrong(getattr(e, "lineno", 0), f"no JSON: {e}")
    if not isinstance(v, dict):
        wrong(0, "no object")
    if "foldline_experiment" in v:
        with open(os.path.join(ROOT, "harness/experiment.schema.json")) as f:
            schema = json.load(f)
        by_schema(v, schema, schema, "")
        return "experiment"
    for name, check in (("foldline_platform", platform), ("foldline_board", board)):
        if name in v:
            check(v)
            return name
    wrong(0, "no key that names its format")


def check(path, asked=None):
    """What the file is, or Wrong. asked: the format that a CSV file without a head is to have."""
    if path.endswith(".json"):
        return json_file(path)
    data = read_bytes(path)
    if data.startswith(b"# foldline-journal "):
        journal(data.decode("latin-1"))
        return "foldline-journal"
    return csv_file(path, asked)


def main():
    bad = 0
    for path in sys.argv[1:]:
        try:
            print(f"{path}: {check(path)}")
        except Wrong as e:
            bad += 1
            print(f"{path}:{e.args[0] or ''}: {e.args[1]}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
