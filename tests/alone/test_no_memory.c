/* Every command, with one of its allocations failing (tests/support/fail_alloc.c), each in turn: it ends with 2 or 3,
 * has said why, and every file is as it was or as it should be; or it ends as ever, and all that it wrote and printed
 * is the same to the byte. A crash, a hang or another file is never right. The live side runs on a stub of NVML, one
 * run at a time, and afterwards no clock is locked and no record is left.
 *
 * Here a number of allocations of each command, spread over all of them. FL_ALLOCATIONS=N: the first N of each one by
 * one, and a quarter of N of the rest; of the few that take a second or more, twenty times as many as here. */
#include "tests/support/live_stub.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* S/ is the folder of samples, R/ the root of the project, I/ the folder of what `prepare` makes. Outputs have no
 * folder: each run has one of its own. */
typedef struct command {
    const char *text;
    int status; /* as it ends where memory is found */
    int points; /* how many of its allocations fail here, each in a run of its own; 0: POINTS */
    bool times; /* what it prints tells how long something took, which is never twice the same */
    bool gpu;   /* it runs on the stub's GPU */
    bool slow;  /* it takes half a minute: in the long form only */
} command;

enum { POINTS = 8, LONG = 20, SLOTS_MAX = 16, FILES_MAX = 16, SECONDS = 300 };

static const char EXPERIMENT[] = "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"traces\": [\"t.csv\"], "
                                 "\"bound\": 0.1, \"seeds\": 2, \"policies\": [\"nvboost\", {\"policy\": \"assure\", "
                                 "\"set\": {\"theta\": {\"each\": [0.8, 0.9]}}}]}";
static const char SWEEP[] = "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"
                            "a,,600,,,20,90,\na,,900,,,14,130,\na,,1200,,,11,180,\na,,1500,,,10,250,2500\n";

static const char PIPELINE[] = "# foldline-pipeline 1\n# schedule: list\n# order: list.csv\n# stages: 2\n"
                               "# microbatches: 1\nrank,what,sm_mhz,time_s,power_w\n*,forward,1410,0.04,295\n"
                               "*,backward,1410,0.1,300\n*,blocked,,,92\n";
static const char LIST[] = "stage,index,instruction,microbatch,microbatch2\n0,0,forward,0,-1\n0,1,send_act,0,-1\n"
                           "1,0,recv_act,0,-1\n1,1,forward,0,-1\n";

static const char FACTS[] =
    "{\"sm_mhz\": {\"from\": 210, \"to\": 1410, \"steps\": [15]}, \"mem_mhz\": [1593], \"tdp_w\": 400}";
static const char CHIP[] = "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"
                           "a,,600,,,20,90,\na,,900,,,14,130,\na,,1200,,,11,180,\na,,1500,,,10,250,2500\n"
                           "b,,600,,,10,80,\nb,,900,,,9,100,\nb,,1200,,,8.6,130,\nb,,1500,,,8.5,170,\n"
                           "c,,600,,,15,85,\nc,,900,,,11.5,115,\nc,,1200,,,10,155,\nc,,1500,,,9.4,215,\n";

static const char *const prepare[] = {
    "synth -o t.csv --kernels 60 --mean-us 3000 --streams 2 --seed 3",
    "synth -o host.csv --kernels 40 --gpus 2 --streams 2 --launches --mean-us 800 --seed 6",
    "synth -o long.csv --kernels 60 --mean-us 300000 --seed 4",
    "run t.csv --platform generic --policy assure --log log.csv --timeline time.csv --every-ms 20",
    "run long.csv --platform generic --policy maxfreq --telemetry sensor.csv --timeline meter.csv --every-ms 2",
    "compare I/e.json -o rows.csv",
    "grid I/e.json --shard 1/2 -o s.csv",
    "grid I/e.json --shard 2/2 -o s.csv",
    "regress I/e.json --bless -o base.json",
    "fit device I/chip.csv -o device.json",
    "run long.csv --platform generic --policy fixed:sm_mhz=1500 --telemetry w@1500.log",
    "run long.csv --platform generic --policy fixed:sm_mhz=1000 --telemetry w@1000.log",
    "synth --apps 2 --seed 1001 -o p.programs.csv",
    "fit policy sensitivity S/dynaco.programs.csv --platform apu-a10-5800k --seconds 0.2 -o states.csv",
    "import I/t.csv -o packed.csv.gz",
};

static const command commands[] = {
    {.text = "run I/t.csv --platform generic --policy assure"},
    {.text = "run I/host.csv --platform generic --gpus 2 --policy utilizscale --json"},
    {.text = "run I/t.csv --platform rtx3080ti --policy mf-gpoeo --log l.csv --timeline t.csv --telemetry s.csv "
             "--probes p.csv"},
    {.text = "run S/inference.csv --platform a100 --policy assure --arrivals poisson:rate=20,count=5 --served "
             "r.csv --iterations i.csv --json"},
    {.text = "compare I/e.json -o c.csv"},
    {.text = "compare I/t.csv --platform generic --bound 0.1 --policy nvboost --policy assure --json --threads 2"},
    {.text = "compare I/sweep.csv --platform generic --policy nvboost --model fitted"},
    {.text = "compare I/sweep.csv --platform generic --policy nvboost"},
    {.text = "compare I/sweep.csv --platform generic --policy slow=fixed:sm_mhz=900 --jitter 5% --iteration 1"},
    {.text = "run S/four-stages.pipeline.csv --platform a100-pcie --policy nvboost --repeat 1 --json"},
    {.text = "run I/list.pipeline.csv --platform a100-pcie --policy nvboost --repeat 1"},
    {.text = "fit pipeline S/perseus/A100-bert --learn first --like S/perseus/A100-bert -o p.pipeline.csv"},
    {.text = "plan S/four-stages.pipeline.csv --platform a100-pcie --slowdown 5% --slow rank=1:1.2 --power-limit "
             "rank=0:280 -o p.plan.csv"},
    {.text = "plan S/four-stages.pipeline.csv --frontier --points 4 --objective edp --judge S/four-stages.pipeline.csv "
             "-o p.plan.csv --rows p.csv --json"},
    {.text = "grid I/e.json -o c.csv"},
    {.text = "grid I/e.json --shard 1/2 -o c.csv"},
    {.text = "grid --merge I/s.csv.shard-1-of-2 I/s.csv.shard-2-of-2 -o m.csv"},
    {.text = "search I/e.json --threads 1"},
    {.text = "regress I/e.json --bless -o b.json"},
    {.text = "regress I/base.json --bless -o b.json"},
    {.text = "regress I/base.json --junit j.xml --all"},
    {.text = "compare I/t.csv --platform generic --bound 0.05 --json"},
    {.text = "compare I/t.csv --platform generic --bound 0.05 --kernels"},
    {.text = "fit device I/chip.csv -o d.json"},
    {.text = "fit device --facts I/facts.json -o d.json", .points = 4},
    {.text = "fit workload --device I/device.json I/chip.csv --clocks calibrated --json"},
    {.text = "fit workload I/chip.csv"},
    {.text = "fit logs I/w@1500.log I/w@1000.log -o s.csv"},
    {.text = "fit trace I/long.csv I/long.csv --platform generic --sm-mhz 1500 --sm-mhz 1000 -o k.csv"},
    {.text = "fit policy sensitivity I/states.csv --table t.csv --json"},
    {.text = "advise I/chip.csv --bound 0.1 --json"},
    {.text = "advise I/w@1500.log I/w@1000.log --bound 0.5"},
    {.text = "advise I/t.csv --platform generic"},
    {.text = "advise I/e.json"},
    {.text = "compare I/chip.csv --platform generic --model fitted --policy nvboost --risk 0.05 --bound 0.1"},
    {.text = "fit policy odpp I/p.programs.csv --platform rtx3080ti --seconds 30 --step 735 --epochs 1 -o w.csv",
     .points = 2},
    {.text = "fit policy draws S/energyucb-published.json -o d.csv", .points = 1, .slow = true},
    {.text = "fit sensor I/sensor.csv --meter I/meter.csv -o s.json", .points = 4},
    {.text = "fit policy capping S/powercap.sweep.csv"},
    {.text = "fit policy sweetspot I/sweep.csv --platform generic --json"},
    {.text = "verify I/log.csv --json"},
    {.text = "synth -o t.csv --kernels 60 --mean-us 3000 --seed 3"},
    {.text = "import R/tests/fuzz/seeds/kineto/new.json.gz -o k.csv"},
    {.text = "import R/tests/fuzz/seeds/nsys-sqlite/host.sqlite -o k.csv"},
    {.text = "import R/tests/fuzz/seeds/nvidia-smi/units.csv -o k.csv"},
    {.text = "import R/tests/fuzz/seeds/nsys-csv/us.csv -o k.csv --json"},
    {.text = "import R/tests/fuzz/seeds/azure-llm/2023.csv -o r.csv"},
    {.text = "import R/tests/fuzz/seeds/foldline-requests/classes.csv -o r.csv --json"},
    {.text = "synth requests -o r.csv --requests 40 --cv 2 --shared 99"},
    {.text = "show I/host.csv --json"},
    {.text = "list policies mf-gpoeo"},
    {.text = "list policies --json"},
    {.text = "show I/rows.csv --where slowdown<0.5 --sort -energy_j --head"},
    {.text = "show I/rows.csv I/base.json --json --head"},
    {.text = "compare I/e.json -o packed.csv.gz"},
    {.text = "import I/packed.csv.gz -o k.csv.gz"},
    {.text = "regress I/base.json --json"},
    {.text = "search I/e.json --threads 1 --json"},
    {.text = "list platforms --json"},
    {.text = "list platforms h100"},
    {.text = "plot pareto I/rows.csv -o p.svg", .points = 4},
    {.text = "plot workloads I/rows.csv -o p.svg", .points = 4},
    {.text = "report I/rows.csv -o p.html"},
    {.text = "report I/rows.csv -o p.html --bound 10% --bound energy_j<1"},
    {.text = "compare S/inference.csv --platform a100 --policy nvboost --arrivals poisson:rate=20,count=5 --bound "
             "latency_p99_s<0.17"},
    {.text = "compare I/t.csv --platform generic --bound 0.05 --bound peak_power_w<250"},
    {.text = "search I/e.json --threads 1 --bound mean_power_w<250"},
    {.text = "regress I/base.json --bound mean_power_w<250"},
    {.text = "restore"},
    {.text = "emulate I/t.csv --platform generic --quiet --time virtual -o r.json -- sleep 1", .times = true},
    {.text = "doctor", .times = true, .gpu = true},
    {.text = "record -o r.csv --every-ms 20 --for 60ms", .times = true, .gpu = true},
    {.text = "live --policy skeleton --for 60ms -o l.csv", .times = true, .gpu = true},
    {.text = "live --policy fixed:sm_mhz=1200,power_limit_w=200 --control --for 60ms -o l.csv",
     .times = true,
     .gpu = true},
};

/* ---- folders ---- */

static char inputs[512];

static void path_in(const char *folder, const char *name, char *path) { snprintf(path, 1024, "%s/%s", folder, name); }

static void empty(const char *folder) {
    char path[1024];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        path_in(folder, e->d_name, path);
        unlink(path);
    }
    if (d)
        closedir(d);
}

typedef struct files { /* what a run left */
    char *name[FILES_MAX], *bytes[FILES_MAX];
    size_t size[FILES_MAX], count;
} files;

static bool is_said(const char *name) { return !strcmp(name, "stdout") || !strcmp(name, "stderr"); }

static void take_files(const char *folder, files *f) {
    char path[1024];
    DIR *d = opendir(folder);
    *f = (files){.count = 0};
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' || strlen(e->d_name) > 2) {
            path_in(folder, e->d_name, path);
            f->name[f->count] = strdup(e->d_name);
            f->bytes[f->count] = fl_temp_slurp(path, &f->size[f->count]);
            f->count += f->count + 1 < FILES_MAX;
        }
    if (d)
        closedir(d);
}

static void free_files(files *f) {
    for (size_t i = 0; i < f->count; i++) {
        free(f->name[i]);
        free(f->bytes[i]);
    }
}

static size_t find(const files *f, const char *name) {
    size_t i = 0;
    while (i < f->count && strcmp(f->name[i], name) != 0)
        i++;
    return i;
}

static bool same(const files *a, const files *b, const char *name) {
    const size_t i = find(a, name), k = find(b, name);
    return i < a->count && k < b->count && a->size[i] == b->size[k] && !memcmp(a->bytes[i], b->bytes[k], a->size[i]);
}

/* ---- runs ---- */

/* Freed memory is given back at once. A sanitizer keeps 256 MB of it otherwise, and each fork copies their page tables:
 * four fifths of the long form's time. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "quarantine_size_mb=1"; }

/* The words of a command, for execv; the last is NULL. */
static void split(const char *text, char store[32][1024], char **word) {
    size_t count = 0;
    word[count] = store[count], snprintf(store[count++], 1024, "foldline");
    while (*text && count < 31) {
        const int size = (int)strcspn(text, " "), name = (int)strcspn(text, "= ") + 1; /* of NAME=FILE */
        const char *path = name < size && text[name + 1] == '/' ? text + name : text;
        const char *before = *path == 'S' ? FL_ROOT "/traces/samples" : *path == 'R' ? FL_ROOT : inputs;
        if (path + 1 < text + size && path[1] == '/' && strchr("SRI", *path))
            snprintf(store[count], 1024, "%.*s%s%.*s", (int)(path - text), text, before, (int)(text + size - path) - 1,
                     path + 1);
        else
            snprintf(store[count], 1024, "%.*s", size, text);
        word[count] = store[count];
        count++;
        text += size + (text[size] == ' ');
    }
    word[count] = NULL;
}

static void become(const command *c, const char *folder, long fail_at) {
    char store[32][1024], *word[33], number[24];
    split(c->text, store, word);
    if (chdir(folder))
        _exit(99);
    const int out = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0666),
              err = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    if (fail_at >= 0) {
        snprintf(number, sizeof number, "%ld", fail_at);
        setenv("LD_PRELOAD", FL_FAIL_ALLOC, 1);
        setenv("FL_FAIL_AT", number, 1);
        if (!fail_at)
            setenv("FL_FAIL_COUNT", "count", 1);
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0:allocator_may_return_null=1", 1);
    }
    if (!c->gpu)
        setenv("FOLDLINE_STATE", "state", 1);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    alarm(SECONDS); /* stays: one that waits for ever is ended */
    execv(getenv("FL_ALLOCATING_PROGRAM") ? getenv("FL_ALLOCATING_PROGRAM") : FL_PROGRAM, word);
    _exit(98);
}

static pid_t start(const command *c, const char *folder, long fail_at) {
    empty(folder);
    fflush(NULL);
    const pid_t child = fork();
    if (!child)
        become(c, folder, fail_at);
    return child;
}

static int end_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- one command ---- */

typedef struct slot { /* a run at a time */
    char folder[512];
    pid_t child;
    long fail_at;
} slot;

static slot slots[SLOTS_MAX];
static size_t slot_count;

/* A journal is for going on: what it makes of the rest is what counts. */
static bool go_on(const command *c, const slot *s) {
    files now;
    take_files(s->folder, &now);
    bool journal = false;
    for (size_t i = 0; i < now.count; i++)
        journal |= strstr(now.name[i], ".journal") != NULL;
    free_files(&now);
    if (!journal)
        return false;
    fflush(NULL);
    const pid_t child = fork();
    if (!child)
        become(c, s->folder, -1);
    const int status = end_of(child);
    FL_CHECK(status == c->status, "%s, allocation %ld: status %d of going on", c->text, s->fail_at, status);
    return true;
}

/* again: it went on, and tells of that. */
static void judge(const command *c, const slot *s, int status, const files *right, bool again, size_t *ended) {
    files now;
    take_files(s->folder, &now);
    const bool whole = status == c->status;
    const size_t said = find(&now, "stderr");
    FL_CHECK(whole || status == 2 || status == 3, "%s, allocation %ld: status %d: %.300s", c->text, s->fail_at, status,
             said < now.count ? now.bytes[said] : "");
    FL_CHECK(whole || (said < now.count && now.size[said] > 0), "%s, allocation %ld: status %d, and nothing said",
             c->text, s->fail_at, status);
    for (size_t i = 0; i < now.count; i++)
        if (!is_said(now.name[i]) && !strstr(now.name[i], ".journal"))
            FL_CHECK(c->times || same(&now, right, now.name[i]), "%s, allocation %ld, status %d: another %s", c->text,
                     s->fail_at, status, now.name[i]);
    for (size_t i = 0; whole && i < right->count; i++)
        if (strcmp(right->name[i], "stderr") != 0 && strcmp(right->name[i], "count") != 0 &&
            !(again && is_said(right->name[i])))
            FL_CHECK(c->times || same(&now, right, right->name[i]), "%s, allocation %ld, status %d: other bytes in %s",
                     c->text, s->fail_at, status, right->name[i]);
    *ended += !whole;
    free_files(&now);
}

/* A controller that ends, however it ends, has put everything back; its guardian may be a moment later. */
static void let_go(const command *c, long fail_at) {
    UNTIL(!stub->gpu[0].sm_max && stub->gpu[0].limit_mw == 250000 && !left_behind(".record"))
    FL_CHECK(!stub->gpu[0].sm_max && stub->gpu[0].limit_mw == 250000 && !left_behind(".record"),
             "%s, allocation %ld: the GPU is left at %u MHz and %u mW, with %d records", c->text, fail_at,
             stub->gpu[0].sm_max, stub->gpu[0].limit_mw, left_behind(".record"));
}

static void finish(const command *c, slot *s, const files *right, size_t *ended) {
    if (s->child) {
        const int status = end_of(s->child);
        judge(c, s, status, right, false, ended);
        if (status != c->status && go_on(c, s))
            judge(c, s, c->status, right, true, ended);
        if (c->gpu)
            let_go(c, s->fail_at);
    }
    s->child = 0;
}

static long allocations_of(const char *folder) {
    char path[1024];
    size_t size = 0;
    path_in(folder, "count", path);
    char *text = fl_temp_slurp(path, &size);
    const long all = text ? atol(text) : 0;
    free(text);
    return all;
}

/* `most` of `all`: where there are more, spread evenly; in the long form four fifths are the first, one by one, and the
 * last fifth is spread over the rest. */
static long point(long i, long most, long all, bool first) {
    const long near = most - most / 5;
    if (all <= most)
        return i + 1;
    if (first)
        return i < near ? i + 1 : near + 1 + (i - near) * (all - near - 1) / (most - near);
    return 1 + i * (all - 1) / (most > 1 ? most - 1 : 1);
}

static void fail_each(const command *c) {
    const char *asked = getenv("FL_ALLOCATIONS");
    files right;
    size_t ended = 0, next = 0;
    const int status = end_of(start(c, slots[0].folder, 0));
    take_files(slots[0].folder, &right);
    const size_t said = find(&right, "stderr");
    FL_CHECK(status == c->status, "%s: status %d, expected %d: %.300s", c->text, status, c->status,
             said < right.count ? right.bytes[said] : "");
    const long all = allocations_of(slots[0].folder), few = c->points ? c->points : POINTS,
               most = !asked      ? few
                      : c->points ? LONG * c->points
                                  : atol(asked) + atol(asked) / 4;
    FL_CHECK(all > 0, "%s: no allocation", c->text);
    const long runs = most < all ? most : all;
    for (long i = 0; i < runs; i++, next = (next + 1) % (c->gpu ? 1 : slot_count)) {
        slot *s = &slots[next];
        finish(c, s, &right, &ended);
        s->fail_at = point(i, most, all, asked != NULL);
        s->child = start(c, s->folder, s->fail_at);
    }
    for (size_t i = 0; i < slot_count; i++)
        finish(c, &slots[i], &right, &ended);
    printf("\n    %s: %ld of %ld allocations, %zu ended it", c->text, runs, all, ended);
    fflush(stdout);
    free_files(&right);
}

/* ---- all of them ---- */

static void test_prepare(void) {
    char path[1024], name[64], log[1024];
    snprintf(inputs, sizeof inputs, "%s", fl_temp_path("in"));
    mkdir(inputs, 0777);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    slot_count = cores < 1 ? 1 : cores > SLOTS_MAX ? SLOTS_MAX : (size_t)cores;
    for (size_t i = 0; i < slot_count; i++) {
        snprintf(name, sizeof name, "out%zu", i);
        snprintf(slots[i].folder, sizeof slots[i].folder, "%s", fl_temp_path(name));
        mkdir(slots[i].folder, 0777);
    }
    fl_temp_text("in/e.json", EXPERIMENT);
    fl_temp_text("in/sweep.csv", SWEEP);
    fl_temp_text("in/chip.csv", CHIP);
    fl_temp_text("in/facts.json", FACTS);
    fl_temp_text("in/list.pipeline.csv", PIPELINE);
    fl_temp_text("in/list.csv", LIST);
    stub_open(1);
    for (size_t i = 0; i < sizeof prepare / sizeof *prepare; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (!child)
            become(&(command){.text = prepare[i]}, inputs, -1);
        const int status = end_of(child);
        size_t size = 0;
        path_in(inputs, "stderr", log);
        char *said = fl_temp_slurp(log, &size);
        FL_CHECK(status == 0, "%s: %d: %.300s", prepare[i], status, said ? said : "");
        free(said);
    }
    path_in(inputs, "stdout", path);
    unlink(path);
}

static void test_commands(void) {
    const char *only = getenv("FL_COMMAND");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (only ? strstr(commands[i].text, only) != NULL : !commands[i].slow || getenv("FL_ALLOCATIONS"))
            fail_each(&commands[i]);
}

static void test_clean_up(void) {
    stub_close();
    for (size_t i = 0; i < slot_count; i++) {
        empty(slots[i].folder);
        rmdir(slots[i].folder);
    }
    empty(inputs);
    rmdir(inputs);
}

FL_SUITE("no memory", {"inputs", test_prepare}, {"each command", test_commands}, {"clean up", test_clean_up})
