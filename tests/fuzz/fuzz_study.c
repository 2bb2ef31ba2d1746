/* What the program's rooms read, a reader at a time (FL_FUZZ_NAME), against bytes that nobody meant, for libFuzzer. No
 * reader may crash, hang or leak; it refuses with a message, or what it took is written and read again the same. */
#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "harness/fit/chip/inside.h"
#include "harness/fit/policy/inside.h"
#include "harness/fit/trace/inside.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/inside.h"
#include "harness/input/scene/scene.h"
#include "harness/study/compare/compare.h"
#include "harness/study/grid/grid.h"
#include "harness/study/grid/inside.h"
#include "harness/study/trial/trial.h"
#include "models/fit/fit.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "traces/import/import.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include "tests/fuzz/fuzz_folder.h"

#include <inttypes.h>
#include <math.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A refusal says why, and is no fault of the system. */
static fl_status refused(fl_status s, const fl_diag *d) {
    if (s && (s != FL_BAD_INPUT || d->status != s || !d->message[0]))
        fuzz_broken("bad bytes are bad input, nothing else", d->message);
    if (!s && d->status)
        fuzz_broken("a diagnostic without a failure", d->message);
    for (const char *c = d->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            fuzz_broken("a control character in the message", d->message);
    return s;
}

/* The bytes as a text that ends; NUL bytes become spaces. To be freed. */
static char *text_of(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    for (size_t i = 0; text && i < size; i++)
        text[i] = data[i] ? (char)data[i] : ' ';
    if (text)
        text[size] = '\0';
    return text;
}

/* ---- the journal ---- */

static uint32_t crc(const char *text, size_t size) {
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        c ^= (unsigned char)text[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~c;
}

/* Sums put right where there is room for one, as no fuzzer finds them. */
static void sum_lines(char *text) {
    for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        int at = 0;
        char right[9];
        const char *end = strchrnul(line + 1, '\n');
        sscanf(line + 1, "%*[0-9] %*[0-9] %*[0-9] %n", &at);
        if (!at || end - line < at + 10 || line[at + 9] != ' ')
            continue;
        snprintf(right, sizeof right, "%08" PRIx32, crc(line + at + 10, (size_t)(end - line) - (size_t)at - 10));
        memcpy(line + 1 + at, right, 8);
    }
}

static void journal(const uint8_t *data, size_t size) {
    static const char KEY[] = "00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee";
    enum { JOBS = 24 };
    char head[128], *text = text_of(data, size);
    fl_diag d = {0};
    fl_journal *j = NULL;
    if (!text)
        return;
    if (size % 2)
        sum_lines(text);
    char *line = strchr(text, '\n');
    const int n = snprintf(head, sizeof head, "# foldline-journal 1 %s %d", KEY, JOBS);
    FILE *f = fopen("in", "wb"); /* key and count are put right in three of four */
    if (f && line && size % 4)
        fprintf(f, "%.*s%s", n, head, line);
    else if (f)
        fputs(text, f);
    if (f)
        fclose(f);
    free(text);
    const char *const path[] = {"in"};
    if (!refused(fl_journal_merge(&j, path, 1, &d), &d)) {
        if (fl_journal_count(j) == 0)
            fuzz_broken("a shard without a job", "");
        fl_journal_close(j);
    }
    d = (fl_diag){0};
    if (refused(fl_journal_open(&j, "in", KEY, JOBS, &d), &d))
        return;
    size_t free_job = 0;
    while (free_job < JOBS && fl_journal_has(j, free_job))
        free_job++;
    const size_t before = fl_journal_count(j);
    if (free_job < JOBS && fl_journal_add(j, free_job, "a,b\nc,d\n", &d))
        fuzz_broken("a job cannot be added", d.message);
    if (fl_journal_count(j) != before + (free_job < JOBS))
        fuzz_broken("the jobs were counted wrong", "");
    bool had[JOBS];
    for (size_t i = 0; i < JOBS; i++)
        had[i] = fl_journal_has(j, i);
    fl_journal_close(j);
    if (fl_journal_open(&j, "in", KEY, JOBS, &d))
        fuzz_broken("a journal that was opened cannot be opened again", d.message);
    for (size_t i = 0; i < JOBS; i++)
        if (fl_journal_has(j, i) != had[i])
            fuzz_broken("a job was lost or came from nowhere", "");
    fl_journal_close(j);
}

/* ---- baselines ---- */

static bool same_values(const fl_gate_record *a, const fl_gate_record *b) {
    bool same = a->row_count == b->row_count && a->metric_count == b->metric_count &&
                a->fail_if_count == b->fail_if_count && a->bound_count == b->bound_count && a->seed == b->seed;
    for (size_t i = 0; same && i < a->row_count; i++) {
        same = a->row[i].seeds == b->row[i].seeds;
        for (size_t k = 0; same && k < a->row[i].seeds * a->metric_count; k++) {
            const double x = a->row[i].value[k], y = b->row[i].value[k];
            same = x == y || (isnan(x) && isnan(y));
        }
    }
    return same;
}

static void baseline(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    fl_gate_record r = {0}, again = {0};
    if (!fuzz_write("in.json", data, size))
        return;
    if (!refused(fl_gate_read("in.json", &r, &d), &d)) {
        if (fl_gate_write("out.json", &r, r.provenance, &d) || fl_gate_read("out.json", &again, &d))
            fuzz_broken("what was read cannot be written and read again", d.message);
        if (!same_values(&r, &again))
            fuzz_broken("comes back changed", "");
    }
    fl_gate_record_free(&r);
    fl_gate_record_free(&again);
}

/* ---- what a study is made of ---- */

/* The experiment "in.json", as far as its scenes; beside it lie the traces and tables that it names. */
static void experiment(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    fl_setup_options o = FL_SETUP_UNSET;
    fl_setup u = {0};
    fl_published *p = NULL;
    if (!fuzz_write("in.json", data, size) || fl_texts_add(&o.rest, "in.json", &d))
        return;
    fl_status s = refused(fl_setup_open(&u, &o, &d), &d);
    if (!s && !refused(fl_published_open(&u.experiment, &u.labels, &p, &d), &d))
        fl_published_free(p);
    fl_setup_free(&u);
    fl_setup_options_free(&o);
}

static void board(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    fl_board b = {0};
    if (fuzz_write("in.json", data, size) && !refused(fl_board_open("./in.json", &b, &d), &d))
        fl_board_free(&b);
}

static void draws(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    static fl_draws_fit f;
    cJSON *tree = NULL;
    memset(&f, 0, sizeof f);
    if (fuzz_write("in.json", data, size))
        refused(fl_draws_read("in.json", &tree, &f, &d), &d);
    cJSON_Delete(tree);
}

/* The same file as every table that a policy takes. */
static void table(const uint8_t *data, size_t size) {
    if (!fuzz_write("in.csv", data, size))
        return;
    for (size_t i = 0; i < fl_policies_count; i++)
        for (size_t k = 0; k < fl_policies[i]->param_count; k++) {
            fl_diag d = {0};
            fl_table t;
            if (fl_policies[i]->param[k].type != FL_PARAM_TABLE)
                continue;
            if (!refused(fl_table_file_read("in.csv", &fl_policies[i]->param[k], &t, &d), &d))
                fl_table_file_free(&t);
        }
}

/* ---- what a fit begins with: the rest of its command takes seconds ---- */

static void facts(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    fl_fit_facts f = {0};
    if (fuzz_write("in.json", data, size) && !refused(fl_fit_facts_read("./in.json", &f, &d), &d))
        fl_fit_facts_free(&f);
}

static void idle(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    fl_idle_point *point = NULL;
    size_t count = 0;
    int device = 0;
    if (fuzz_write("in.csv", data, size) && !refused(fl_idle_log_points("in.csv", &point, &count, &device, &d), &d))
        free(point);
}

static void meter(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    fl_meter m = {0};
    if (fuzz_write("in.csv", data, size) && !refused(fl_meter_read("in.csv", &m, &d), &d))
        fl_meter_free(&m);
}

static void calibration(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    fl_sweep_chip c = {0};
    if (fuzz_write("in.json", data, size) && !refused(fl_sweep_chip_read("in.json", &c, &d), &d))
        fl_sweep_chip_free(&c);
}

/* A device file of facts that are always the same, on a base of these bytes. */
static void base(const uint8_t *data, size_t size) {
    static fl_fit_facts f;
    static fl_sweep_chip c;
    static bool ready;
    fl_diag d = {0};
    cJSON *root = NULL;
    if (!ready) {
        if (fl_fit_facts_read("./facts.json", &f, &d) || fl_sweep_chip_read("device.json", &c, &d))
            fuzz_broken("the facts cannot be read", d.message);
        ready = true;
    }
    if (fuzz_write("in.json", data, size))
        refused(fl_fit_facts_device(&f, c.chip, "./in.json", &root, &d), &d);
    cJSON_Delete(root);
}

/* ---- texts of the command line ---- */

static void texts(const uint8_t *data, size_t size) {
    char *text = text_of(data, size < 4096 ? size : 4096), name[FL_PROMISE_TEXT];
    fl_diag d = {0};
    fl_spec spec;
    fl_arrivals_spec arrivals;
    fl_fault fault;
    fl_gate_rule rule = {0};
    fl_sweep_map map;
    fl_promises promises = {0}, again = {0};
    double slowdown = (double)INFINITY;
    if (!text)
        return;
    if (!refused(fl_spec_open(text, &spec, &d), &d))
        fl_spec_free(&spec);
    d = (fl_diag){0};
    refused(fl_arrivals_spec_parse(text, &arrivals, &d), &d);
    d = (fl_diag){0};
    refused(fl_fault_spec_parse(text, &fault, &d), &d);
    d = (fl_diag){0};
    if (!refused(fl_gate_parse(text, &rule, &d), &d) && !(rule.limit >= 0))
        fuzz_broken("a gate without a limit", text);
    free(rule.text);
    d = (fl_diag){0};
    if (!refused(fl_sweep_map_open(text, &map, &d), &d))
        fl_sweep_map_free(&map);
    d = (fl_diag){0};
    if (!refused(fl_promise_parse(text, &promises, &slowdown, &d), &d) && promises.count) {
        if (fl_promise_parse(fl_promise_text(&promises.item[0], name), &again, &slowdown, &d) ||
            again.item[0].limit != promises.item[0].limit)
            fuzz_broken("a bound does not come back", name);
    }
    free(text);
}

/* Packed bytes, whole and as text. */
static void gzip(const uint8_t *data, size_t size) {
    fl_diag d = {0};
    char *text = NULL;
    size_t count = 0;
    if (!fuzz_write("in.gz", data, size))
        return;
    if (!refused(fl_gunzip_text("in.gz", 16u << 20, &text, &count, &d), &d) && text[count])
        fuzz_broken("a text without an end", "");
    free(text);
}

/* ---- */

static const struct {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
} targets[] = {{"journal", journal},
               {"baseline", baseline},
               {"experiment", experiment},
               {"board", board},
               {"draws", draws},
               {"table", table},
               {"texts", texts},
               {"gzip", gzip},
               {"facts", facts},
               {"idle", idle},
               {"base", base},
               {"meter", meter},
               {"calibration", calibration}};

static void (*target)(const uint8_t *data, size_t size);

/* Files of FL_FUZZ_INPUTS, so that an experiment finds what it names. */
static void link_inputs(void) {
    const char *inputs = getenv("FL_FUZZ_INPUTS");
    DIR *d = inputs ? opendir(inputs) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", inputs, e->d_name);
        if (e->d_name[0] != '.' && symlink(path, e->d_name))
            exit(1);
    }
    if (d)
        closedir(d);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, FL_FUZZ_NAME))
            target = targets[i].run;
    if (!target)
        fuzz_broken("no such target", FL_FUZZ_NAME);
    fuzz_enter();
    link_inputs();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    target(data, size);
    return 0;
}
