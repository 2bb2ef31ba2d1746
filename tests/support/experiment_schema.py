"""experiment_schema.py FOLDLINE SCHEMA EXPERIMENT...: every experiment holds by the schema and is opened by the program.
Then, at each kind of place in them once, a key that nobody knows is added, and a value becomes one of another type:
both must refuse each of these."""
import copy, json, os, subprocess, sys, tempfile

from jsonschema import Draft7Validator

program, schema_path, *experiments = sys.argv[1:]
with open(schema_path) as f:
    schema = json.load(f)
Draft7Validator.check_schema(schema)
validator = Draft7Validator(schema)


def places(value, path=()):
    """(path, kind of place) of the value and all inside it; kinds leave indices out."""
    yield path, tuple("#" if isinstance(p, int) else p for p in path)
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, path + (key,))


def at(tree, path):
    for p in path:
        tree = tree[p]
    return tree


def refused_by_reader(tree, folder):
    """True where it is refused for the wrong key or type, with its line, before anything runs."""
    path = os.path.join(folder, "wrong.json")
    with open(path, "w") as out:
        json.dump(tree, out)
    done = subprocess.run([program, "grid", path, "-o", os.path.join(folder, "out.csv")], capture_output=True, text=True)
    return done.returncode == 2 and "wrong.json:1:" in done.stderr and len(done.stderr.splitlines()) == 1


tried, seen = 0, set()
with tempfile.TemporaryDirectory() as folder:
    for name in experiments:
        with open(name) as f:
            tree = json.load(f)
        for error in validator.iter_errors(tree):
            sys.exit(f"{name}: {list(error.absolute_path)}: {error.message[:200]}")
        for path, kind in places(tree):
            if kind in seen:
                continue
            seen.add(kind)
            if len(seen) % 4 and "FL_NIGHTLY" not in os.environ:
                continue  # each takes some runs: one in four, the rest at night
            wrong = []
            # Names of variants, workloads and parameters are free: there a new name is none that is wrong.
            free = kind[-1:] in (("variants",), ("columns",), ("rows",), ("set",)) or (kind and kind[0] == "draws" and len(kind) > 1)
            if isinstance(at(tree, path), dict) and not free:
                wrong.append(copy.deepcopy(tree))
                at(wrong[-1], path)["nobody_knows_this"] = 1
            if path and kind != ("foldline_experiment",):
                wrong.append(copy.deepcopy(tree))
                at(wrong[-1], path[:-1])[path[-1]] = [[{}]]  # a list of objects, even empty ones, is right in some places
            for tree_ in wrong:
                tried += 1
                if validator.is_valid(tree_):
                    sys.exit(f"{name}: {path}: the schema takes what is wrong")
                if not refused_by_reader(tree_, folder):
                    sys.exit(f"{name}: {path}: the program takes what is wrong")
if tried < (100 if "FL_NIGHTLY" in os.environ else 25):
    sys.exit(f"only {tried} wrong experiments were tried")
print(f"{len(experiments)} experiments hold, {tried} wrong ones are refused by both")
