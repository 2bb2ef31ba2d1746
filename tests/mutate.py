#!/usr/bin/env python3
"""Do the tests notice what is wrong? Changes one token at a time and expects a suite to fail (tests/mutate.sh --help).

Everything is built once, with the rooms as shared libraries. A mutant is one file compiled into a library of its own, which
the programs load before the rooms: its functions take the place of the room's, and nothing is linked anew. It is compiled
with sanitizers, as the tests are. The rooms count the lines that run (tests/CMakeLists.txt), and before the first mutant
each suite runs once to have them counted. A suite that takes longer than a second runs case by case, or with --quick not
at all. Times and lines are kept beside the build. Only suites and cases that run the line of a mutant can kill it; they go
one after the other, up to the first that fails. First go those that kill most for their time.
"""
import argparse
import bisect
import collections
import concurrent.futures
import fcntl
import glob
import json
import math
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutants as tokens  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GUARDS = "tests/mutate_guards.txt"
ENOUGH_OF_FILE = 4  # mutants tried; fewer say nothing of a file
COSTLY_S = 1  # a suite that takes longer runs case by case
NO_CASE = 77  # how a suite ends that has no case of that number (tests/support/suite.h)
NO_MUTANT = {"does not compile": "do not compile", "changes nothing": "give the same code"}
ROOMS = ["harness", "models", "policies", "sim", "traces"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def fail(text):
    print("mutate: " + text, file=sys.stderr)
    sys.exit(2)


def rows_of(path, columns):
    """The rows of a table: columns parted by ' | '; '#' begins a comment."""
    found = []
    with open(os.path.join(ROOT, path), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if line.startswith("#") or not line.strip():
                continue
            row = [c.strip() for c in line.split(" | ")]
            if len(row) != columns:
                fail("%s:%d: %d columns, expected %d" % (path, number, len(row), columns))
            found.append(row)
    return found


class Tree:
    """The sources: which file is in which room, and which suites guard it."""

    def __init__(self):
        self.rooms, self.further = collections.OrderedDict(), {}
        for what, name, values in rows_of(GUARDS, 3):
            if what == "room":
                files = []
                for pattern in values.split():
                    got = sorted(glob.glob(pattern, root_dir=ROOT))
                    if not got:
                        fail("%s: room %s: no file matches %s" % (GUARDS, name, pattern))
                    files += got
                self.rooms[name] = files
            elif what == "guard":
                for file in glob.glob(name, root_dir=ROOT) or fail("%s: no file matches %s" % (GUARDS, name)):
                    self.further.setdefault(file, []).extend(values.split())
            elif what != "slow":
                fail("%s: expected room, guard or slow, not %s" % (GUARDS, what))
        self.slow = {name for what, name, _ in rows_of(GUARDS, 3) if what == "slow"}
        self.suites = {os.path.basename(p)[:-2]: p for p in glob.glob("tests/*/test_*.c", root_dir=ROOT)}
        for name in {s for further in self.further.values() for s in further} | self.slow:
            if name not in self.suites:
                fail("%s: no suite %s" % (GUARDS, name))
        self.includes = {}
        for suite, path in self.suites.items():
            with open(os.path.join(ROOT, path), encoding="utf-8") as f:
                text = f.read()
                for header in re.findall(r'^#include "([^"]*)"', text, re.M):
                    self.includes.setdefault(header, set()).add(suite)

    def program(self, suite):
        """The program that a suite is part of: that of its folder (tests/CMakeLists.txt), or one of its own."""
        folder = os.path.basename(os.path.dirname(self.suites[suite]))
        return suite if folder == "alone" else "test_" + folder

    def guards(self, file):
        """The suites named after the file or the first words of its name; those that include its header; and what the
        table adds."""
        base, room = os.path.basename(file)[:-2], os.path.basename(os.path.dirname(file))
        names = []
        for words in (base.split("_"), (room + "_" + base).split("_")):  # search.c in sim/oracle: test_oracle_search, test_oracle
            names += ["_".join(words[:n]) for n in range(len(words), 0, -1)]
        found = {s for s in self.suites for n in names if s == "test_" + n or s.startswith("test_%s_" % n)}
        found |= self.includes.get(file[:-2] + ".h", set())
        return found | set(self.further.get(file, []))


class Build:
    """A build of everything with shared rooms; what one mutant needs is compiled by the commands of that build."""

    def __init__(self, folder, jobs, tree):
        self.folder, self.jobs, self.tree = os.path.abspath(folder), jobs, tree
        self.none = os.path.join(self.folder, "none")
        os.makedirs(self.none, exist_ok=True)
        self.lock = open(os.path.join(self.folder, "lock"), "w")  # one at a time builds in one folder
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        cc = os.environ.get("CC", "cc")
        self.stop = os.path.join(self.none, "first_failure.o")
        library, source = os.path.join(self.none, "libmutant.so"), "tests/support/first_failure.c"
        if not os.path.exists(library) or os.path.getmtime(library) < os.path.getmtime(os.path.join(ROOT, source)):
            self.call([cc, "-fPIC", "-c", source, "-o", self.stop])
            self.call([cc, "-shared", "-Wl,-soname,libmutant.so", self.stop, "-o", library])
        linker = "-fuse-ld=gold " if shutil.which("ld.gold") else ""  # several hundred links, each in half the time
        ninja = ["-G", "Ninja"] if shutil.which("ninja") and not os.path.exists(self.folder + "/Makefile") else []
        self.call(
            ["cmake", "-S", ".", "-B", self.folder, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0 -w"]
            + ["-DBUILD_SHARED_LIBS=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
            + ["-DCMAKE_EXE_LINKER_FLAGS=%s%s -Wl,--no-as-needed %s -Wl,--as-needed" % (linker, SANITIZERS[0], library)]
            + ninja
        )
        self.commands = {}
        with open(os.path.join(self.folder, "compile_commands.json"), encoding="utf-8") as f:
            for entry in json.load(f):
                file = os.path.relpath(os.path.realpath(entry["file"]), os.path.realpath(ROOT))
                if not re.search(r"fl_policies_pure|client|collector", entry["command"].split(" -o ")[1].split(" ")[0]):
                    self.commands[file] = shlex.split(entry["command"].split(" -o ")[0])
                self.commands.setdefault(file, shlex.split(entry["command"].split(" -o ")[0]))

    def call(self, command):
        # a build runs the program for its manual pages, and that needs the library of no mutant
        environment = dict(os.environ, LD_LIBRARY_PATH=self.none)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        if done.returncode:
            fail("%s:\n%s" % (" ".join(command[:6]), done.stdout[-4000:]))

    def make(self, suites):
        self.call(["cmake", "--build", self.folder, "-j", str(self.jobs), "--target"] + sorted({self.tree.program(s) for s in suites}))
        fcntl.flock(self.lock, fcntl.LOCK_UN)

    def compiler(self, file):
        """The command that compiles a file, without its level of optimisation, warnings and counting."""
        return [c for c in self.commands[file] if not re.match(r"-(O\d?|g\d?|W[^l].*|pedantic|-coverage)$", c)] + ["-w"]

    def compile(self, file, source, output):
        command = self.compiler(file) + SANITIZERS + ["-O0", "-shared", source, self.stop, "-o", output]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def same_code(self, file, source):
        """Whether the compiler makes the same instructions of a mutant as of its file: then no test can tell them apart."""
        made = [subprocess.run(self.compiler(file) + ["-O2", "-S", "-o", "-", s], cwd=ROOT, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True).stdout for s in (file, source)]
        one, other = (re.sub(r"^\t\.file.*$", "", m, flags=re.M) for m in made)
        return one == other

    def built(self):
        """When a room was last built anew."""
        return max(os.path.getmtime(room) for room in glob.glob(self.folder + "/**/libfl_*.so", recursive=True))

    @staticmethod
    def lines_run(place):
        """What a run counted below place: of each file its lines, and those that ran."""
        counted = glob.glob(place + "/**/*.gcda", recursive=True)
        for path in counted:  # gcov wants the notes of the build beside the counts
            os.symlink(path[len(place) : -2] + "no", path[:-2] + "no")
        done = subprocess.run(["gcov", "--json-format", "--stdout"] + counted, cwd=place, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        every, ran = {}, {}
        for line in done.stdout.splitlines():
            for f in json.loads(line)["files"]:
                file = os.path.relpath(os.path.join(ROOT, f["file"]), ROOT)
                if file.endswith(".c"):
                    every[file] = sorted({x["line_number"] for x in f["lines"]})
                    ran[file] = sorted({x["line_number"] for x in f["lines"] if x["count"]})
        return every, {file: lines for file, lines in ran.items() if lines}

    def run(self, part, folder, cpu_s, wall_s, count=False):
        """Runs a suite, "test_cap", or one case of it, "test_cap 3", with the library in folder before the rooms; its
        status, the CPU time that it took, its output, and the lines that ran where they are to be counted."""
        suite, *case = part.split()
        place = tempfile.mkdtemp(dir=folder)
        os.chmod(place, 0o755)
        here = os.path.join(place, "here")  # a suite may write where it stands
        os.makedirs(os.path.join(place, "tmp"))
        os.makedirs(here)
        for name in os.listdir(ROOT):
            if not name.startswith((".", "build", "core")):
                os.symlink(os.path.join(ROOT, name), os.path.join(here, name))

        def limits():
            for number in (signal.SIGINT, signal.SIGQUIT):  # a job in the background ignores them; suites send them
                signal.signal(number, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FL_", "FOLDLINE_"))}
        environment.update(LD_LIBRARY_PATH=folder, TMPDIR=os.path.join(place, "tmp"), LC_ALL="C", FL_NIGHTLY="1")
        if case:
            environment["FL_CASE"] = case[0]
        # Counts are written with a mutant too: where they cannot be, libgcov says so on standard error, which suites read.
        counts = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else place)
        os.chmod(counts, 0o777)  # a suite may become another user
        environment["GCOV_PREFIX"] = counts
        environment["ASAN_OPTIONS"] = "hard_rss_limit_mb=3000:allocator_may_return_null=1:exitcode=99"
        output = os.path.join(place, "output")
        with open(output, "wb") as out:
            job = subprocess.Popen(
                [os.path.join(self.folder, "tests", self.tree.program(suite)), suite[len("test_") :]], cwd=here, env=environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True, preexec_fn=limits)
            timer = threading.Timer(wall_s, lambda: os.killpg(job.pid, signal.SIGKILL))
            timer.start()
            _, status, used = os.wait4(job.pid, 0)
            job.returncode = status
            timer.cancel()
            try:
                os.killpg(job.pid, signal.SIGKILL)  # what it may have left
            except ProcessLookupError:
                pass
        with open(output, errors="replace") as out:
            said = out.read()[-3000:]
        lines = self.lines_run(counts) if count and not status else ({}, {})
        shutil.rmtree(counts, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
        return status, used.ru_utime + used.ru_stime, said, lines


def drawn(tree, args):
    """The mutants to try of the rooms asked for, the first of each file before the second of any; how many were skipped."""
    chosen, skipped = {}, 0
    lanes = open("/proc/cpuinfo", encoding="utf-8").read() if os.path.exists("/proc/cpuinfo") else ""
    wide = "avx512dq" in lanes and "avx512vl" in lanes
    rooms = {r: tree.rooms[r] for r in args.room or tree.rooms}
    if args.file:
        rooms = {}
        for pattern in args.file:
            for file in sorted(glob.glob(pattern, root_dir=ROOT)) or fail("no file matches " + pattern):
                rooms.setdefault(next((r for r in tree.rooms if file in tree.rooms[r]), "others"), []).append(file)
    for room, files in rooms.items():
        pool = []
        for file in files:
            with open(os.path.join(ROOT, file), encoding="utf-8") as f:
                text = f.read()
            got = sorted(tokens.mutants_of(file, text), key=lambda m: tokens.rank(args.seed, m))
            if not wide and ("avx512" in file or file == "sim/advance/lanes.c"):
                skipped += len(got)
                continue
            got = [m for m in got if not args.match or re.search(args.match, " ".join(tokens.key_of(m)))]
            pool += [(n if args.per_file else 0, tokens.rank(args.seed, m), m) for n, m in enumerate(got)
                     if not args.per_file or n < args.per_file]
        pool.sort(key=lambda p: p[:2])
        chosen[room] = [m for _, _, m in pool][: args.sample if args.sample and not args.per_file else None]
    return chosen, skipped


class Trial:
    """Tries mutants against the suites that guard their files."""

    def __init__(self, tree, build, args):
        self.tree, self.build, self.args = tree, build, args
        self.work = tempfile.mkdtemp(prefix="foldline-mutate-")
        os.chmod(self.work, 0o755)  # suites that become another user load from there
        self.cost, self.number, self.lock = {}, 0, threading.Lock()
        self.kills, self.texts = {}, {}  # of each part: how many mutants it was tried on and killed

    def suites(self, file):
        found = self.tree.guards(file)
        quick = found - self.tree.slow
        return found if self.args.all else quick

    def time_suites(self, files):
        """Each suite once without a mutant: it must pass, its time says how long one may take with a mutant, and its lines
        say which mutants it may kill. What an earlier run found stands as long as neither suite nor rooms are built anew."""
        suites = sorted({s for f in files for s in self.suites(f)})
        self.build.make(suites)
        path, kept = os.path.join(self.build.folder, "suites.json"), {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                kept = json.load(f)
        built = self.build.built()

        def counted(part, cpu_s, wall_s=3000):
            status, took, said, (every, ran) = self.build.run(part, self.build.none, cpu_s, wall_s, True)
            with self.lock:
                kept.setdefault("", {}).update(every)
            return status, said, {"cost": took, "lines": ran}

        def cases(suite):
            """The parts of a suite that takes long: its cases; none where one of them does not pass alone."""
            found = {}
            for n in range(1000):
                status, _, part = counted("%s %d" % (suite, n), 900)
                if os.waitstatus_to_exitcode(status) == NO_CASE:
                    return found
                if status:
                    return {}
                found["%s %d" % (suite, n)] = part

        def once(suite):
            made = [built, os.path.getmtime(os.path.join(self.build.folder, "tests", self.tree.program(suite)))]
            if suite in kept and kept[suite]["made"] == made and (kept[suite]["parts"] or self.args.quick):
                return
            quick = self.args.quick
            status, said, part = counted(suite, COSTLY_S, 10 if quick else 3000)
            costly, parts = bool(status), {}
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
            if costly and not quick:
                parts = cases(suite)
            if costly and not parts and not (quick and killed):  # the limit may have met a program that the suite runs
                status, said, part = counted(suite, 900)
                killed = False
            if status and not parts and not (quick and killed):
                fail("%s fails without a mutant (status %d):\n%s" % (suite, status, said))
            with self.lock:
                kept[suite] = {"made": made, "parts": {} if costly and quick else parts or {suite: part}}

        try:
            with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
                list(pool.map(once, suites))
        finally:
            with open(path, "w", encoding="utf-8") as f:
                json.dump(kept, f)
        self.every, self.parts = kept[""], {s: sorted(kept[s]["parts"]) for s in suites}
        found = {name: part for s in suites for name, part in kept[s]["parts"].items()}
        left_out = [s for s in suites if not kept[s]["parts"]]
        if left_out:
            print("mutate: left out, as they take longer than a second: " + ", ".join(left_out))
        self.cost = {name: part["cost"] for name, part in found.items()}
        self.ran = {(name, f): set(lines) for name, part in found.items() for f, lines in part["lines"].items()}
        self.kills = {name: [0, 0] for name in found}

    def able(self, m):
        """The suites and cases that run the line of a mutant, first those that are to kill most for their time. A token on a
        line of its own, to which the compiler gives no code, belongs to the lines with code on either side."""
        parts, lines = [p for s in self.suites(m.file) for p in self.parts[s]], self.every.get(m.file, [])
        at = bisect.bisect_left(lines, m.line)
        if m.function and lines and not m.file.startswith("harness/live"):  # there suites kill what would have counted
            near = {m.line} if m.line in lines else set(lines[max(0, at - 1) : at + 1])
            parts = [p for p in parts if near & self.ran.get((p, m.file), set())]
        price = lambda p: (self.cost[p] + 0.02) * (self.kills[p][0] + 2) / (self.kills[p][1] + 1)  # noqa: E731
        return sorted(parts, key=lambda p: (price(p), p))

    def try_one(self, m):
        """What killed it; "lives"; or one of NO_MUTANT."""
        able = self.able(m)
        with self.lock:
            self.number += 1
            folder = os.path.join(self.work, "m%d" % self.number)
        os.makedirs(folder)
        try:
            with self.lock:
                if m.file not in self.texts:
                    with open(os.path.join(ROOT, m.file), encoding="utf-8") as f:
                        self.texts[m.file] = f.read()
            source = os.path.join(folder, os.path.basename(m.file))
            with open(source, "w", encoding="utf-8") as f:
                f.write(tokens.apply(m, self.texts[m.file]))
            if not self.build.compile(m.file, source, os.path.join(folder, "libmutant.so")):
                return "does not compile"
            for part in able:
                took = self.cost[part]
                status, _, said, _ = self.build.run(part, folder, 2 + 6 * took, 60 + 40 * took)
                self.kills[part][0] += 1
                if status:
                    self.kills[part][1] += 1
                    if self.args.verbose:
                        print("%s:%d %s %s\n%s" % (m.file, m.line, m.kind, m.context, said), file=sys.stderr)
                    return part
            return "changes nothing" if self.build.same_code(m.file, source) else "lives"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def tried(trial, chosen, args, began, ready=0):
    """The result of each mutant, as many as the time allows. The rooms take turns, so that none waits for the others."""
    order = []
    lists = [list(ms) for ms in chosen.values()]
    for n in range(max(map(len, lists), default=0)):
        order += [ms[n] for ms in lists if n < len(ms)]
    results, said = {}, time.time()
    late = lambda: args.seconds and time.time() - began > args.seconds  # noqa: E731
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs, todo = {}, iter(order)
        while True:
            while len(jobs) < args.jobs and not late():
                m = next(todo, None)
                if m is None:
                    break
                jobs[pool.submit(trial.try_one, m)] = m
            if not jobs:
                break
            for job in concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_COMPLETED).done:
                results[jobs.pop(job)] = job.result()
            if args.verbose or time.time() - said > (1 if sys.stderr.isatty() else 60):
                said = time.time()
                lived = sum(r == "lives" for r in results.values())
                end = "\r" if sys.stderr.isatty() else "\n"
                left_s = (said - began - ready) / len(results) * (len(order) - len(results))
                print("mutate: %d of %d tried, %d live, at most %.0f s left " % (len(results), len(order), lived, left_s),
                      end=end, file=sys.stderr, flush=True)
    return results, len(order)


def share(results):
    """Of those that compile and change something: how many were tried, killed, and the share in per cent."""
    counted = [r for r in results if r not in NO_MUTANT]
    killed = sum(r != "lives" for r in counted)
    return len(counted), killed, 100.0 * killed / len(counted) if counted else 100.0


def report(chosen, results):
    """Prints the shares and what lives; returns what is wrong."""
    wrong = []
    for room, ms in chosen.items():
        ms = [m for m in ms if m in results]
        by_file = collections.OrderedDict()
        for m in sorted(ms, key=lambda m: (m.file, m.line)):
            by_file.setdefault(m.file, []).append(m)
        for file, those in by_file.items():
            count, killed, percent = share(results[m] for m in those)
            print("%-44s %5d of %5d killed  %5.1f %%" % (file, killed, count, percent))
            if count >= ENOUGH_OF_FILE and not killed:
                wrong.append("%s: no suite kills any of its %d mutants" % (file, count))
        count, killed, percent = share(results[m] for m in ms)
        none = ", ".join("%d more %s" % (sum(results[m] == why for m in ms), do) for why, do in NO_MUTANT.items())
        print("room %-39s %5d of %5d killed  %5.1f %%  (%s)" % (room, killed, count, percent, none))
        lives = [m for m in ms if results[m] == "lives"]
        for m in lives:
            print("  lives %s:%d | %s" % (m.file, m.line, " | ".join(tokens.key_of(m))))
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="tests/mutate.sh", description=__doc__.split("\n\n")[0])
    parser.add_argument("--all", action="store_true", help="every mutant, against every suite that guards it")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants of each room (default: 100)")
    parser.add_argument("--per-file", type=int, metavar="N", help="N mutants of each file instead")
    parser.add_argument("--seed", default="1", help="draws another sample (default: 1)")
    parser.add_argument("--room", action="append", metavar="ROOM", help="only this room of " + GUARDS)
    parser.add_argument("--file", action="append", metavar="PATTERN", help="only these files, of any room or of none")
    parser.add_argument("--match", metavar="REGEX", help="only mutants whose file, function, kind or tokens match")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time (default: all processors)")
    parser.add_argument("--quick", action="store_true",
                        help="leave out each suite that takes longer than a second of processor time")
    parser.add_argument("--seconds", type=float,
                        help="begin no mutant so many seconds after the start")
    parser.add_argument("--build", default="build-mutate", metavar="DIR", help="where to build (default: build-mutate)")
    parser.add_argument("--list", action="store_true",
                        help="print what would be tried, and try none")
    parser.add_argument("--verbose", action="store_true", help="say of each mutant that is killed what the suite printed")
    args = parser.parse_args()
    if not (args.all or args.sample or args.per_file or args.match):
        args.sample = 100
    began = time.time()
    tree = Tree()
    for room in args.room or []:
        if room not in tree.rooms:
            fail("no room %s; there are %s" % (room, ", ".join(tree.rooms)))
    chosen, skipped = drawn(tree, args)
    print("mutate: seed %s, %s" % (args.seed, ", ".join("%s %d" % (r, len(ms)) for r, ms in chosen.items())))
    if skipped:
        print("mutate: skipped, as this CPU has no AVX-512: %d mutants" % skipped)
    if args.list:
        for ms in chosen.values():
            for m in ms:
                print("%s:%d | %s" % (m.file, m.line, " | ".join(tokens.key_of(m))))
        return 0
    build = Build(args.build, args.jobs, tree)
    trial = Trial(tree, build, args)
    try:
        trial.time_suites(sorted({m.file for ms in chosen.values() for m in ms}))
        ready = time.time() - began
        results, expected = tried(trial, chosen, args, began, ready)
    finally:
        shutil.rmtree(trial.work, ignore_errors=True)
    wrong = report(chosen, results)
    count, killed, percent = share(results.values())
    print("mutate: seed %s: %d of %d mutants killed, %.1f %%; %d of %d tried in %.0f s (%.0f s of them before the first)"
          % (args.seed, killed, count, percent, len(results), expected, time.time() - began, ready))
    for line in wrong:
        print("mutate: " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
