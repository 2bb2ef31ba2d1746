/* Grids end to end: the same bytes whatever kills, threads, shards and order; what is refused. And the journal by
 * itself. */
#include "harness/study/grid/grid.h"
#include "harness/study/grid/inside.h"
#include "policies/random.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define PROGRAM FL_PROGRAM

static char folder[512];

static const char *in_folder(const char *name) {
    static char path[4][1024];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
    return path[at];
}

/* A grid of `values` x `seeds` runs of two tiny programs. */
static const char *experiment(const char *name, int values, int seeds, bool oracles) {
    char text[2048];
    snprintf(folder, sizeof folder, "%s", fl_temp_path(""));
    folder[strlen(folder) - 1] = 0;
    fl_temp_text("k.csv",
                 "# foldline-kinds 1\n# source: made up\n"
                 "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\nk,1,0.4,0,inf,0.8,0.3,1,1500,1000\n"
                 "m,0.4,1,0,inf,0.4,0.8,1,1500,1000\n");
    fl_temp_text("p.csv", "# foldline-programs 1\n# source: made up\n# sm_mhz: 1500\n# mem_mhz: 1000\n# kinds: k.csv\n"
                          "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"
                          "a,1,0.05,k,1,2000,0.2,10,0\nb,1,0.05,m,1,2000,0.2,10,0\n");
    snprintf(text, sizeof text,
             "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"programs\": \"p.csv\", \"seeds\": %d, "
             "\"oracles\": %s, \"policies\": [{\"policy\": \"epsilon-greedy\", \"set\": {\"epsilon\": {\"from\": 0, "
             "\"to\": 1, \"count\": %d}, \"interval_ms\": 1}}]}",
             seeds, oracles ? "true" : "false", values);
    fl_temp_text(name, text);
    static char path[1024];
    snprintf(path, sizeof path, "%s", in_folder(name));
    return path;
}

typedef struct killing { /* as soon as a file is there and has so many bytes more than before */
    const char *file;
    off_t more;
} killing;

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) ? -1 : st.st_size;
}

/* Runs foldline; -1 where it is to be killed and was. Standard output and error to files. */
static int run(const char *const *arguments, const killing *k, rlim_t file_size) {
    const off_t before = k ? size_of(k->file) : 0, until = k ? (before < 0 ? 0 : before) + k->more : 0;
    const char *argv[24] = {PROGRAM};
    for (int i = 0; arguments[i]; i++)
        argv[i + 1] = arguments[i];
    const pid_t pid = fork();
    if (pid == 0) {
        const int out = open(in_folder("out"), O_CREAT | O_TRUNC | O_WRONLY, 0666),
                  err = open(in_folder("err"), O_CREAT | O_TRUNC | O_WRONLY, 0666);
        dup2(out, 1);
        dup2(err, 2);
        if (file_size) {
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){file_size, file_size});
            signal(SIGXFSZ, SIG_IGN);
        }
        execv(PROGRAM, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    while (k && !waitpid(pid, &status, WNOHANG)) {
        if (size_of(k->file) < until) {
            usleep(100);
            continue;
        }
        kill(pid, SIGKILL);
        k = NULL;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    if (!k)
        waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL}, NULL, 0)

static char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st)) {
        if (f)
            fclose(f);
        *size = 0;
        return NULL;
    }
    char *text = calloc((size_t)st.st_size + 1, 1);
    *size = text ? fread(text, 1, (size_t)st.st_size, f) : 0;
    fclose(f);
    return text;
}

static bool same_bytes(const char *a, const char *b) {
    size_t na, nb;
    char *x = read_file(a, &na), *y = read_file(b, &nb);
    const bool same = x && y && na == nb && na && !memcmp(x, y, na);
    free(x);
    free(y);
    return same;
}

static bool says(const char *text) {
    size_t size;
    char *err = read_file(in_folder("err"), &size);
    const bool found = err && strstr(err, text);
    if (!found)
        printf("\n    it says: %s", err ? err : "nothing");
    free(err);
    return found;
}

/* 2 programs x 50 values x 100 seeds: 10,000 runs, killed 20 times, each after some hundreds of them more. */
static void test_killed(void) {
    const char *e = experiment("killed.json", 50, 100, false);
    char out[1024], whole[1024], journal[1040];
    snprintf(out, sizeof out, "%s", in_folder("killed.csv"));
    snprintf(whole, sizeof whole, "%s", in_folder("whole.csv"));
    snprintf(journal, sizeof journal, "%s.journal", out);
    FL_CHECK(RUN("grid", e, "-o", whole) == 0, "the undisturbed grid failed");
    const double size = (double)size_of(whole);
    fl_random r = fl_random_seed(20260, 1);
    int kills = 0, finished = 0;
    for (int i = 0; i < 20; i++) {
        const killing k = {journal, (off_t)(size * (0.001 + 0.04 * fl_random_unit(&r)))};
        const int status = run((const char *const[]){"grid", e, "-o", out, NULL}, &k, 0);
        kills += status == -1;
        finished += status == 0;
    }
    printf("seed 20260: %d killed, %d had finished; ", kills, finished);
    FL_CHECK(kills >= 3, "only %d were killed in time", kills);
    FL_CHECK(RUN("grid", e, "-o", out) == 0, "the last start failed");
    FL_CHECK(same_bytes(out, whole), "other bytes after %d kills", kills);
    FL_CHECK(access(journal, F_OK) != 0, "the journal is still there");
}

static void test_threads_and_shards(void) {
    const char *e = experiment("shards.json", 7, 3, true);
    char path[6][1100], one[1024];
    snprintf(one, sizeof one, "%s", in_folder("one.csv"));
    FL_CHECK(RUN("grid", e, "-o", one, "--threads", "1") == 0, "one thread");
    for (int n = 2; n <= 4; n += 2) {
        char threads[16];
        snprintf(threads, sizeof threads, "%d", n);
        FL_CHECK(RUN("grid", e, "-o", in_folder("more.csv"), "--threads", threads) == 0 &&
                     same_bytes(one, in_folder("more.csv")),
                 "%d threads", n);
    }
    for (int i = 5; i >= 1; i--) { /* in another order */
        char shard[16];
        snprintf(shard, sizeof shard, "%d/5", i);
        snprintf(path[i], sizeof path[i], "%s.shard-%d-of-5", in_folder("five.csv"), i);
        FL_CHECK(RUN("grid", e, "-o", in_folder("five.csv"), "--shard", shard) == 0, "shard %d", i);
    }
    FL_CHECK(RUN("grid", "--merge", path[3], path[1], path[5], path[2], path[4], "-o", in_folder("five.csv")) == 0,
             "merge");
    FL_CHECK(same_bytes(one, in_folder("five.csv")), "five shards give other bytes");
    FL_CHECK(RUN("report", one, "--no-figures", "-o", in_folder("one.html")) == 0 &&
                 RUN("report", in_folder("five.csv"), "--no-figures", "-o", in_folder("five.html")) == 0,
             "their records");
    size_t size;
    char *record[2] = {read_file(in_folder("one.provenance.json"), &size),
                       read_file(in_folder("five.provenance.json"), &size)};
    const char *of[2] = {record[0] ? strstr(record[0], "\"result_sha256\"") : NULL,
                         record[1] ? strstr(record[1], "\"result_sha256\"") : NULL};
    FL_CHECK(of[0] && of[1] && !strcmp(of[0], of[1]), "one record names another result than the other");
    free(record[0]);
    free(record[1]);
    FL_CHECK(RUN("grid", "--merge", path[3], path[1], path[5], path[2], "-o", in_folder("four.csv")) == 2 &&
                 says("missing"),
             "a shard is missing");
    FL_CHECK(access(in_folder("four.csv"), F_OK) != 0, "half a result was written");
    FL_CHECK(RUN("grid", "--merge", path[1], path[1], "-o", in_folder("four.csv")) == 2 && says("occurs twice"),
             "one twice");
    FL_CHECK(RUN("grid", e, "-o", in_folder("x.csv"), "--shard", "6/5") == 2 && says("expected I/N"), "shard 6/5");
    FL_CHECK(RUN("grid", e) == 2 && says("-o FILE"), "no output");
}

static void test_full_disk(void) {
    const char *e = experiment("full.json", 20, 20, false);
    char out[1024], whole[1024];
    snprintf(out, sizeof out, "%s", in_folder("full.csv"));
    snprintf(whole, sizeof whole, "%s", in_folder("room.csv"));
    FL_CHECK(RUN("grid", e, "-o", whole) == 0, "with room");
    FL_CHECK(run((const char *const[]){"grid", e, "-o", out, NULL}, NULL, 40000) == 3 && says("cannot write") &&
                 says("run the command again to continue"),
             "a full disk");
    FL_CHECK(access(out, F_OK) != 0, "half a result was written");
    size_t size;
    char *journal = read_file(in_folder("full.csv.journal"), &size);
    FL_CHECK(journal && size > 1000, "nothing was kept");
    free(journal);
    FL_CHECK(RUN("grid", e, "-o", out) == 0 && same_bytes(out, whole), "goes on");
    size_t told;
    char *said = read_file(in_folder("out"), &told);
    FL_CHECK(said && !strstr(said, ", 0 of them"), "it began anew: %s", said ? said : "");
    free(said);
}

static void test_other_inputs(void) {
    const char *e = experiment("inputs.json", 30, 100, false);
    char out[1024], journal[1024];
    snprintf(journal, sizeof journal, "%s", in_folder("in.csv.journal"));
    snprintf(out, sizeof out, "%s", in_folder("in.csv"));
    run((const char *const[]){"grid", e, "-o", out, NULL}, &(killing){journal, 1000}, 0);
    FL_CHECK(access(journal, F_OK) == 0, "no journal to go on from");
    fl_temp_text("p.csv",
                 "# foldline-programs 1\n# source: made up\n# sm_mhz: 1500\n# mem_mhz: 1000\n# kinds: k.csv\n"
                 "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"
                 "a,1,0.05,k,1,2001,0.2,10,0\nb,1,0.05,m,1,2000,0.2,10,0\n"); /* the same name, another trace */
    FL_CHECK(RUN("grid", e, "-o", out) == 2 && says("other inputs") && says(".journal:1"), "a changed trace");
    FL_CHECK(RUN("grid", e, "-o", "/proc/none/x.csv") == 3 && says("cannot create"), "unwritable");
}

/* The key covers everything on which the results depend: with any option of grid or key of the experiment changed, a
 * journal is not gone on with and a shard does not go with the others. */
static void test_other_options(void) {
    static const struct {
        const char *name, *value;
    } row[] = {{"platform", "v100-300w"},
               {"gpus", "2"},
               {"kinds", "k2.csv"},
               {"assume", "memory"},
               {NULL, "p2.csv"},
               {"seconds", "0.2"},
               {"workload", "a"},
               {"model", NULL},
               {"repeat", NULL},
               {"wall", "off"},
               {"heat", NULL},
               {"no-interference", ""},
               {"no-cpu", ""},
               {"units", "3"},
               {"cpu-power-scale", "3"},
               {"gpu-budget", NULL},
               {"seed", "2"},
               {"policy", "nvboost"},
               {"bound", "0.2"},
               {"objective", "edp"},
               {"seeds", "2"},
               {"positions", "64"},
               {"windows", "5"},
               {"no-oracle",
                ""}}; /* no value: refused on this platform, or takes a measured sweep; no name: a file by position */
    const char *e = experiment("options.json", 1, 1, true);
    char first[1024], second[1024], journal[1024], option[1100];
    fl_temp_text("k2.csv",
                 "# foldline-kinds 1\n# source: made up\n"
                 "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\nk,1,0.4,0,inf,0.8,0.3,1,1500,1000\n"
                 "m,0.4,1,0,inf,0.4,0.8,1,1500,1000\n");
    fl_temp_text("p2.csv", "# foldline-programs 1\n# source: made up\n# sm_mhz: 1500\n# mem_mhz: 1000\n# kinds: k.csv\n"
                           "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"
                           "a,1,0.05,k,1,2000,0.2,10,0\nb,1,0.05,m,1,2000,0.2,10,0\n");
    snprintf(first, sizeof first, "%s", in_folder("o.csv.shard-1-of-2"));
    snprintf(second, sizeof second, "%s", in_folder("o.csv.shard-2-of-2"));
    snprintf(journal, sizeof journal, "%s", in_folder("o.csv.shard-2-of-2.journal"));
    FL_CHECK(RUN("grid", e, "-o", in_folder("o.csv"), "--shard", "1/2") == 0, "the first shard");
    FL_CHECK(RUN("grid", e, "-o", in_folder("o.csv"), "--shard", "2/2", "--threads", "1") == 0, "the second shard");
    FL_CHECK(RUN("grid", "--merge", first, second, "-o", in_folder("o.csv")) == 0, "the same options go together");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (!row[i].value)
            continue;
        const bool file = strstr(row[i].value, ".csv") != NULL;
        char path[1024];
        snprintf(path, sizeof path, "%s", file ? in_folder(row[i].value) : row[i].value);
        snprintf(option, sizeof option, "%s%s", row[i].name ? "--" : "", row[i].name ? row[i].name : path);
        const char *value = *path && row[i].name ? path : NULL;
        FL_CHECK(RUN("grid", e, "-o", in_folder("o.csv"), "--shard", "2/2", option, value) == 0, "%s", option);
        FL_CHECK(RUN("grid", "--merge", first, second, "-o", in_folder("o.csv")) == 2 &&
                     says("other inputs, other options"),
                 "merged with %s %s", option, value ? value : "");
        /* what a kill before the first row leaves: the head alone */
        size_t size;
        char *text = read_file(first, &size), *end = text ? strchr(text, '\n') : NULL;
        FILE *f = fopen(journal, "wb");
        if (f && end)
            fwrite(text, 1, (size_t)(end + 1 - text), f);
        if (f)
            fclose(f);
        free(text);
        FL_CHECK(RUN("grid", e, "-o", in_folder("o.csv"), "--shard", "2/2", option, value) == 2 &&
                     says("other inputs, other options"),
                 "went on with %s %s", option, value ? value : "");
        remove(journal);
    }
    /* One that is not in the table, as it may come later. */
    FL_CHECK(RUN("grid", "--help", "all") == 0, "help");
    size_t size, known = 0;
    char *text = read_file(in_folder("out"), &size), *save = NULL,
         *record = read_file(in_folder("o.csv.shard-1-of-2.provenance.json"), &size);
    if (!record)
        record = read_file(in_folder("o.csv.provenance.json"), &size);
    const char *settings = record ? strstr(record, "\"settings\"") : NULL;
    /* What no byte of a result hangs on; and bounds, which are in the key as they were understood (5% is 0.05). */
    static const char *const without[] = {"help", "merge", "shard", "threads", "step-limit",
                                          "json", "bound", "path",  "no-cache"};
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
        char name[64], quoted[80];
        bool part = sscanf(line, "  --%63[a-z-]", name) == 1;
        for (size_t i = 0; part && i < sizeof without / sizeof *without; i++)
            part = strcmp(name, without[i]) != 0;
        if (!part)
            continue;
        snprintf(quoted, sizeof quoted, "\"%s\":", name);
        FL_CHECK(settings && strstr(settings, quoted), "--%s is no part of the key", name);
        known++;
    }
    FL_CHECK(known >= sizeof row / sizeof *row, "only %zu options in the help", known);
    free(record);
    free(text);
    /* A key of the experiment that no option stands for. */
    e = experiment("options.json", 1, 1, true);
    char whole[2048];
    text = read_file(e, &size);
    snprintf(whole, sizeof whole, "{\"variants\": {\"off\": {\"wall\": \"off\"}}, %s", text ? text + 1 : "");
    fl_temp_text("options.json", whole);
    FL_CHECK(RUN("grid", e, "-o", in_folder("o.csv"), "--shard", "2/2") == 0, "a variant");
    FL_CHECK(RUN("grid", "--merge", first, second, "-o", in_folder("o.csv")) == 2, "merged with a variant");
    snprintf(whole, sizeof whole, "{\"about\": \"something\", %s", text ? text + 1 : "");
    fl_temp_text("options.json", whole);
    FL_CHECK(RUN("grid", e, "-o", in_folder("o.csv"), "--shard", "2/2") == 0, "about");
    FL_CHECK(RUN("grid", "--merge", first, second, "-o", in_folder("o.csv")) == 0, "what it is about changes no row");
    free(text);
}

/* Those of measured sweeps, which are refused beside a trace. */
static void test_measured_options(void) {
    char first[1024], second[1024], sweep[1024];
    snprintf(first, sizeof first, "%s", in_folder("m.out.csv.shard-1-of-2"));
    snprintf(second, sizeof second, "%s", in_folder("m.out.csv.shard-2-of-2"));
    snprintf(sweep, sizeof sweep, "%s", in_folder("m.csv"));
    fl_temp_text("m.csv", "# foldline-sweep 1\nworkload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"
                          "a,,757,877,,1.3,120,156\na,,1005,877,,1.1,150,165\na,,1530,877,,1,250,250\n");
#define MEASURED sweep, "--platform", "v100-300w", "--policy", "maxfreq", "--policy", "nvboost"
    FL_CHECK(RUN("grid", MEASURED, "-o", in_folder("m.out.csv"), "--shard", "1/2") == 0, "the first shard");
    FL_CHECK(RUN("grid", MEASURED, "-o", in_folder("m.out.csv"), "--shard", "2/2") == 0, "the second shard");
    FL_CHECK(RUN("grid", "--merge", first, second, "-o", in_folder("m.out.csv")) == 0, "the same options go together");
    FL_CHECK(RUN("grid", MEASURED, "-o", in_folder("m.out.csv"), "--shard", "2/2", "--model", "fitted") == 0 &&
                 RUN("grid", "--merge", first, second, "-o", in_folder("m.out.csv")) == 2 &&
                 says("other inputs, other options"),
             "--model");
    FL_CHECK(RUN("grid", MEASURED, "-o", in_folder("m.out.csv"), "--shard", "2/2", "--repeat", "2") == 0 &&
                 RUN("grid", "--merge", first, second, "-o", in_folder("m.out.csv")) == 2 &&
                 says("other inputs, other options"),
             "--repeat");
}

static void copy_so(const char *to, const char *more) {
    size_t size;
    char *text = read_file(FL_SKELETON_SO, &size);
    remove(to);
    FILE *f = fopen(to, "wb");
    FL_CHECK(text && f && fwrite(text, 1, size, f) == size && fputs(more, f) >= 0, "no plug-in to copy");
    if (f)
        fclose(f);
    free(text);
}

/* A plug-in built anew under its old name is another input. */
static void test_other_plugin(void) {
    const char *e = experiment("plugin.json", 1, 1, false);
    char first[1024], second[1024], so[1024];
    snprintf(first, sizeof first, "%s", in_folder("so.csv.shard-1-of-2"));
    snprintf(second, sizeof second, "%s", in_folder("so.csv.shard-2-of-2"));
    snprintf(so, sizeof so, "%s", in_folder("p.so"));
    copy_so(so, "");
    FL_CHECK(RUN("grid", e, "--policy", so, "-o", in_folder("so.csv"), "--shard", "1/2") == 0, "the first shard");
    FL_CHECK(RUN("grid", e, "--policy", so, "-o", in_folder("so.csv"), "--shard", "2/2") == 0, "the second shard");
    FL_CHECK(RUN("grid", "--merge", first, second, "-o", in_folder("so.csv")) == 0, "the same plug-in");
    copy_so(so, "built anew"); /* the loader does not look behind the last section */
    FL_CHECK(RUN("grid", e, "--policy", so, "-o", in_folder("so.csv"), "--shard", "2/2") == 0, "the plug-in anew");
    FL_CHECK(RUN("grid", "--merge", first, second, "-o", in_folder("so.csv")) == 2 && says("other inputs"),
             "merged with it");
}

/* ---- the journal ---- */

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void fill(const char *path) {
    fl_journal *j;
    fl_diag d = {0};
    FL_CHECK(fl_journal_open(&j, path, KEY, 5, &d) == FL_OK, "%s", d.message);
    FL_CHECK(!fl_journal_add(j, 3, "three\n", &d) && !fl_journal_add(j, 0, "a\nb,\"x y\"\n\n", &d) &&
                 !fl_journal_add(j, 4, "", &d) && !fl_journal_add(j, 1, "one\n", &d),
             "%s", d.message);
    fl_journal_close(j);
}

/* Cut at every byte: what is left is a number of whole jobs in the order they came, and the rest can be added again. */
static void test_cut(void) {
    const char *path = fl_temp_path("j");
    char name[512];
    snprintf(name, sizeof name, "%s", path);
    remove(name);
    fill(name);
    size_t size, whole;
    char *text = read_file(name, &whole);
    static const size_t order[] = {3, 0, 4, 1};
    for (size_t cut = 0; cut <= whole; cut++) {
        fl_journal *j;
        fl_diag d = {0};
        FILE *f = fopen(name, "wb");
        fwrite(text, 1, cut, f);
        fclose(f);
        FL_CHECK(fl_journal_open(&j, name, KEY, 5, &d) == FL_OK, "cut at %zu: %s", cut, d.message);
        const size_t n = fl_journal_count(j);
        for (size_t i = 0; i < 4; i++)
            FL_CHECK(fl_journal_has(j, order[i]) == (i < n), "cut at %zu: %zu jobs, job %zu", cut, n, order[i]);
        static const char *const rows[] = {"three\n", "a\nb,\"x y\"\n\n", "", "one\n"};
        for (size_t i = n; i < 4; i++)
            FL_CHECK(!fl_journal_add(j, order[i], rows[i], &d), "%s", d.message);
        fl_journal_close(j);
        char *again = read_file(name, &size);
        FL_CHECK(size == whole && !memcmp(again, text, size), "cut at %zu: other bytes", cut);
        free(again);
    }
    free(text);
}

static void test_damage(void) {
    char name[512];
    snprintf(name, sizeof name, "%s", fl_temp_path("d"));
    remove(name);
    fill(name);
    size_t whole;
    char *text = read_file(name, &whole);
    fl_random r = fl_random_seed(7, 7);
    for (int i = 0; i < 300; i++) { /* a flipped bit never gives a row that was not written */
        fl_journal *j = NULL;
        fl_diag d = {0};
        const size_t at = (size_t)fl_random_below(&r, whole);
        char *out = NULL;
        size_t size = 0;
        text[at] ^= (char)(1 << fl_random_below(&r, 7));
        FILE *f = fopen(name, "wb");
        fwrite(text, 1, whole, f);
        fclose(f);
        if (fl_journal_open(&j, name, KEY, 5, &d) == FL_OK) {
            f = open_memstream(&out, &size);
            fl_journal_write(j, f);
            fclose(f);
            FL_CHECK(strstr("a\nb,\"x y\"\n\none\nthree\n", out) || !strcmp(out, "a\nb,\"x y\"\n\nthree\n"),
                     "bit at %zu gives '%s'", at, out);
            free(out);
        } else {
            FL_CHECK(d.status == FL_BAD_INPUT && d.message[0], "bit at %zu: %d", at, d.status);
        }
        fl_journal_close(j);
        free(text);
        remove(name);
        fill(name);
        text = read_file(name, &whole);
    }
    free(text);
    fl_journal *j = NULL;
    fl_diag d = {0};
    FL_CHECK(fl_journal_open(&j, name, KEY, 6, &d) == FL_BAD_INPUT && strstr(d.message, "other inputs"), "%s",
             d.message);
    static const char *const foreign[] = {"notes", "# foldline-journal 1 0123fe", "# foldline-journal 2", "notes\n"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) { /* somebody's file, and not to be cut */
        char path[512];
        size_t size = 0;
        snprintf(path, sizeof path, "%s", fl_temp_text("foreign.journal", foreign[i]));
        FL_CHECK(fl_journal_open(&j, path, KEY, 5, &d) == FL_BAD_INPUT && strstr(d.message, "not a journal"), "%s: %s",
                 foreign[i], d.message);
        text = read_file(path, &size);
        FL_CHECK(text && !strcmp(text, foreign[i]), "'%s' became '%s'", foreign[i], text ? text : "nothing");
        free(text);
    }
    fl_journal *first;
    FL_CHECK(fl_journal_open(&first, name, KEY, 5, &d) == FL_OK, "%s", d.message);
    FL_CHECK(fl_journal_open(&j, name, KEY, 5, &d) == FL_IO && strstr(d.message, "another foldline"), "%s", d.message);
    fl_journal_close(first);
}

/* The number of jobs that a shard states is believed no further than its bytes reach. */
static void test_stated_jobs(void) {
    static const char *const stated[] = {"18446744073709551615",
                                         "18446744073709551614",
                                         "9223372036854775807",
                                         "1152921504606846975",
                                         "1000000000000",
                                         "100000000",
                                         "99999999999999999999",
                                         "-1",
                                         "0x5",
                                         "+5",
                                         "",
                                         "6"};
    char name[512], shard[512];
    snprintf(name, sizeof name, "%s", fl_temp_path("stated"));
    remove(name);
    fill(name);
    fl_journal *j = NULL;
    fl_diag d = {0};
    FL_CHECK(!fl_journal_open(&j, name, KEY, 5, &d) && !fl_journal_add(j, 2, "two\n", &d), "%s", d.message);
    fl_journal_close(j);
    size_t whole;
    char *text = read_file(name, &whole), *lines = strchr(text, '\n');
    const char *path = name;
    FL_CHECK(fl_journal_merge(&j, &path, 1, &d) == FL_OK && fl_journal_count(j) == 5, "%s", d.message);
    fl_journal_close(j);
    path = shard;
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
        char *out = malloc(whole + 100);
        snprintf(out, whole + 100, "# foldline-journal 1 " KEY " %s%s", stated[i], lines);
        snprintf(shard, sizeof shard, "%s", fl_temp_text("shard", out));
        free(out);
        d = (fl_diag){0};
        FL_CHECK(fl_journal_merge(&j, &path, 1, &d) == FL_BAD_INPUT && !j &&
                     (strstr(d.message, "are missing") || strstr(d.message, "not a journal")),
                 "%s jobs: %d, %s", stated[i], d.status, d.message);
    }
    free(text);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("sweep", {"journal cut at every byte", test_cut}, {"journal damaged", test_damage},
         {"jobs that a shard states", test_stated_jobs}, {"10,000 runs and 20 kills", test_killed},
         {"threads and shards", test_threads_and_shards}, {"full disk", test_full_disk},
         {"other inputs", test_other_inputs}, {"other options", test_other_options},
         {"options of measured sweeps", test_measured_options}, {"other plug-in", test_other_plugin},
         {"clean up", test_clean_up})
