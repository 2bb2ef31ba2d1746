/* What every policy must keep, and what the simple ones do: purity of the archive, copies that decide alike, unknown
 * signals, plug-ins and their refusals, the baselines. */
#include "harness/input/policy/policy.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "policies/registry/registry.h"
#include "sim/instance/inside.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/golden.h"
#include "tests/support/server_feed.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

/* ---- a node with everything on it ---------------------------------------------------------------------------------
 */

enum { GPUS = 2, RECORDS_MAX = 4 };

static const int32_t sm[] = {300, 500, 700, 800, 900, 1000, 1100, 1200, 1300, 1400}, mem[] = {405, 810, 5001, 9501},
                     cpu[] = {800, 1400, 2000, 2600, 3000}, boost[] = {3400, 3800};

static const fl_gpu_facts gpu_facts[GPUS] = {
    {.name = "one",
     .sm = {sm, 10},
     .mem = {mem, 4},
     .default_sm_mhz = 1400,
     .default_mem_mhz = 9501,
     .power_min_w = 100,
     .power_max_w = 380,
     .power_default_w = 350,
     .tdp_w = 350,
     .peak_bytes_per_s = 9e11,
     .sm_count = 80,
     .cores_per_sm = 128},
    {.name = "two",
     .sm = {sm, 9},
     .mem = {mem, 4},
     .default_sm_mhz = 1300,
     .default_mem_mhz = 9501,
     .power_min_w = 100,
     .power_max_w = 380,
     .power_default_w = 350,
     .tdp_w = 350,
     .peak_bytes_per_s = 9e11,
     .sm_count = 60,
     .cores_per_sm = 128},
};
static const fl_facts facts = {.seed = 12,
                               .gpu_count = GPUS,
                               .gpu = gpu_facts,
                               .host = {.name = "host",
                                        .cpu = {cpu, 5},
                                        .boost = {boost, 2},
                                        .power_min_w = 20,
                                        .power_max_w = 200,
                                        .power_default_w = 150,
                                        .peak_bytes_per_s = 2.5e10,
                                        .cores = 8,
                                        .apu = 1}};

/* The same node with servers, for the policies that need one. */
static fl_feed_servers servers;
static fl_facts served;

static const fl_facts *facts_for(const fl_policy *policy) {
    served = facts;
    fl_feed_servers_open(&servers, &served);
    return fl_reads_of(policy).server_needs ? &served : &facts;
}

static const fl_kernel_kind kinds[] = {{"axpy", 0, {100, 1, 1}, {256, 1, 1}},
                                       {"gemm", 1, {40, 40, 1}, {16, 16, 1}},
                                       {"gemm", 1, {80, 80, 1}, {16, 16, 1}}};

typedef struct feed {        /* a random but repeatable sequence of samples */
    fl_random random, asked; /* asked: of the power target, which other policies do not read */
    fl_gpu_sample gpu[GPUS];
    fl_kernel_record record[RECORDS_MAX];
    fl_server_feed servers;
    uint32_t server_count; /* of the policy's facts */
    fl_sample sample;
} feed;

static feed feed_for(const fl_policy *policy, uint64_t seed, uint64_t component) {
    return (feed){.random = fl_random_seed(seed, component),
                  .asked = fl_random_seed(seed, component + UINT64_C(0x61736b)),
                  .servers.random = fl_random_seed(seed, component + UINT64_C(0x73657276)),
                  .server_count = facts_for(policy)->server_count};
}

static double plausible(fl_random *random, const fl_row_info *row, double before) {
    double u = fl_random_unit(random);
    if (row->kind == FL_COUNTER)
        return before + rint(u * (strcmp(row->unit, "ns") == 0 ? 1e7 : strcmp(row->unit, "B") == 0 ? 1e9 : 100));
    if (strcmp(row->unit, "%") == 0)
        return rint(100 * u);
    if (strcmp(row->unit, "ns") == 0)
        return rint(4e8 * u);
    return rint(strcmp(row->unit, "MHz") == 0 ? 300 + 1100 * u : 20 + 300 * u);
}

/* The next sample: each signal known with the chance `known`; unknown ones hold NaN, so that using one shows. */
static const fl_sample *feed_next(feed *f, double known, int64_t delay_ns) {
    for (uint32_t g = 0; g < GPUS; g++) {
        fl_gpu_sample before = f->gpu[g];
        f->gpu[g].valid = f->gpu[g].fresh = 0;
        for (int i = 0; i < FL_GPU_SIGNAL_COUNT; i++) {
            const fl_row_info *row = fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)i);
            f->gpu[g].value[i] = plausible(&f->random, row, before.valid >> i & 1 ? before.value[i] : 0);
            f->gpu[g].valid |= fl_random_unit(&f->random) < known ? FL_BIT(i) : 0;
            f->gpu[g].fresh |= fl_random_unit(&f->random) < 0.7 ? FL_BIT(i) : 0;
            if (!(f->gpu[g].valid >> i & 1))
                f->gpu[g].value[i] = NAN;
        }
    }
    fl_host_sample before = f->sample.host;
    f->sample.host.valid = f->sample.host.fresh = 0;
    for (int i = 0; i < FL_HOST_SIGNAL_COUNT; i++) {
        const fl_row_info *row = fl_rows_at(FL_ROWS_HOST_SIGNAL, (size_t)i);
        fl_random *random = i == FL_HOST_TARGET_W ? &f->asked : &f->random;
        f->sample.host.value[i] = plausible(random, row, before.valid >> i & 1 ? before.value[i] : 0);
        f->sample.host.valid |= fl_random_unit(random) < known ? FL_BIT(i) : 0;
        f->sample.host.fresh |= fl_random_unit(random) < 0.7 ? FL_BIT(i) : 0;
        if (!(f->sample.host.valid >> i & 1))
            f->sample.host.value[i] = NAN;
    }
    f->sample.record_count = known > 0 ? fl_random_below(&f->random, RECORDS_MAX + 1) : 0;
    for (uint64_t i = 0; i < f->sample.record_count; i++) {
        int64_t start = f->sample.time_ns + (int64_t)i * delay_ns / RECORDS_MAX;
        f->record[i] = (fl_kernel_record){.start_ns = start,
                                          .end_ns = fl_random_unit(&f->random) < 0.1 ? -1 : start + delay_ns / 8,
                                          .kind = (uint32_t)fl_random_below(&f->random, 3),
                                          .stream = (uint32_t)fl_random_below(&f->random, 2),
                                          .gpu = (uint32_t)fl_random_below(&f->random, GPUS)};
    }
    f->sample.record_lost = fl_random_unit(&f->random) < 0.1;
    f->sample.gpu_count = GPUS;
    f->sample.gpu = f->gpu;
    f->sample.record = known > 0 ? f->record : NULL;
    f->sample.kind = kinds;
    f->sample.kind_count = 3;
    const int64_t before_ns = f->sample.time_ns;
    f->sample.time_ns += f->sample.step++ ? delay_ns : 0;
    fl_server_feed_next(&f->servers, f->server_count, known, 1, before_ns, &f->sample);
    return &f->sample;
}

static fl_instance *open_as(const fl_policy *policy, const fl_setting *setting, size_t settings, bool unwatched) {
    static const fl_setting clock = {"sm_mhz", "900", NULL}; /* fixed has no use without one */
    const bool bare = !settings && !strcmp(policy->name, "fixed");
    fl_layer layer = {"test", bare ? &clock : setting, bare ? 1 : settings};
    fl_instance_options o = {
        .policy = policy, .facts = facts_for(policy), .layer = &layer, .layer_count = 1, .unwatched = unwatched};
    fl_instance *in;
    fl_diag d = {0};
    fl_status status = fl_instance_open(&in, &o, &d);
    FL_CHECK(status == FL_OK, "%s", d.message);
    if (status != FL_OK)
        exit(1);
    return in;
}

static fl_instance *open_policy(const fl_policy *policy, const fl_setting *setting, size_t settings) {
    return open_as(policy, setting, settings, false);
}

static const fl_decision *step_with(fl_instance *in, const fl_sample *sample) {
    const fl_decision *decision = NULL;
    fl_diag d;
    CU_ASSERT_FATAL(fl_instance_step(in, sample, &decision, &d) == FL_OK);
    return decision;
}

static bool same_decided(const fl_decided *a, const fl_decided *b) {
    return a->set == b->set && (!a->set || (a->requested == b->requested && a->value == b->value));
}

static bool same_decision(const fl_decision *a, const fl_decision *b, size_t probes) {
    bool same = a->delay_ns == b->delay_ns;
    for (uint32_t g = 0; g < GPUS; g++)
        for (int i = 0; i < FL_GPU_CONTROL_COUNT; i++)
            same = same && same_decided(&a->gpu[g][i], &b->gpu[g][i]);
    for (int i = 0; i < FL_HOST_CONTROL_COUNT; i++)
        same = same && same_decided(&a->host[i], &b->host[i]);
    for (size_t i = 0; i < probes; i++)
        same = same && (a->probe[i] == b->probe[i] || (isnan(a->probe[i]) && isnan(b->probe[i])));
    return same;
}

/* ---- every policy -------------------------------------------------------------------------------------------------
 */

static void test_descriptors(void) {
    for (size_t i = 0; i < fl_policies_count; i++) {
        const fl_policy *p = fl_policies[i];
        char text[512];
        FL_CHECK(!fl_abi_difference(&p->abi, text, sizeof text), "%s: %s", p->name, text);
        FL_CHECK(p->name[0] && p->summary[0] && p->source[0] && !strchr(p->summary, '\n') && p->init && p->step,
                 "%s: name, summary, source, init and step are needed", p->name);
        for (size_t k = 0; k < i; k++)
            FL_CHECK(strcmp(p->name, fl_policies[k]->name) != 0, "%s: twice", p->name);
        for (uint32_t k = 0; k < p->param_count; k++)
            FL_CHECK(p->param[k].name && p->param[k].unit && p->param[k].help && p->param[k].help[0],
                     "%s: parameter row %u needs a name, a unit and a help text", p->name, k);
        for (uint32_t k = 0; k < p->probe_count; k++)
            FL_CHECK(p->probe[k].name && p->probe[k].unit && p->probe[k].help, "%s: probe row %u", p->name, k);
        for (uint32_t k = 0; k < p->signal_count; k++)
            for (uint32_t m = 0; m < k; m++)
                FL_CHECK(memcmp(&p->signal[k], &p->signal[m], sizeof *p->signal) != 0, "%s: signal row %u twice",
                         p->name, m);
        FL_CHECK(p->gpu_drives >> FL_GPU_CONTROL_COUNT == 0 && p->host_drives >> FL_HOST_CONTROL_COUNT == 0 &&
                     p->wakes >> FL_WAKE_COUNT == 0,
                 "%s: a mask has bits of no row", p->name);
    }
}

static void test_copies(void) {
    const uint64_t seed = 31;
    for (size_t i = 0; i < fl_policies_count; i++) {
        const fl_policy *p = fl_policies[i];
        fl_instance *first = open_policy(p, NULL, 0), *copy = NULL, *fresh = open_policy(p, NULL, 0),
                    *unwatched = open_as(p, NULL, 0, true);
        feed f = feed_for(p, seed, i);
        fl_diag d;
        int64_t delay_ns = 1000000;
        size_t probes = fl_instance_probe_count(first);
        for (int step = 0; step < 600; step++) {
            const fl_sample *sample = feed_next(&f, step % 200 < 100 ? 0.95 : 0.5, delay_ns);
            if (step == 250) { /* the copy must not lean on the first, which goes */
                fl_status status = fl_instance_copy(&copy, first, &d);
                fl_instance_close(first);
                CU_ASSERT_FATAL(status == FL_OK);
            }
            fl_instance *now = copy ? copy : first;
            const fl_decision *a = step_with(now, sample), *b = step_with(fresh, sample);
            delay_ns = a->delay_ns;
            bool same = same_decision(a, b, probes), seen = same_decision(b, step_with(unwatched, sample), 0);
            FL_CHECK(same, "%s: seed %llu, step %d: a copy, or a second run, decides otherwise", p->name,
                     (unsigned long long)seed, step);
            FL_CHECK(seen, "%s: seed %llu, step %d: decides otherwise where nobody reads its probes", p->name,
                     (unsigned long long)seed, step);
            if (!same || !seen)
                break;
        }
        FL_CHECK(fl_instance_counts_of(fresh).faults == 0, "%s: seed %llu: %llu faults", p->name,
                 (unsigned long long)seed, (unsigned long long)fl_instance_counts_of(fresh).faults);
        fl_instance_close(copy);
        fl_instance_close(fresh);
        fl_instance_close(unwatched);
    }
}

/* Who needs a server is refused where there is none, with its name and a signal's. */
static void test_no_server(void) {
    size_t refused = 0;
    for (size_t i = 0; i < fl_policies_count; i++) {
        const fl_policy *p = fl_policies[i];
        fl_instance_options o = {.policy = p, .facts = &facts};
        fl_instance *in = NULL;
        fl_diag d = {0};
        if (!fl_reads_of(p).server_needs)
            continue;
        FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, p->name) &&
                     strstr(d.message, "there is none here"),
                 "%s without a server: %s", p->name, d.message);
        refused++;
    }
    FL_CHECK(refused >= 3, "%zu policies need a server", refused);
}

static void test_unknown_signals(void) {
    for (size_t i = 0; i < fl_policies_count; i++) {
        fl_instance *in = open_policy(fl_policies[i], NULL, 0);
        feed f = feed_for(fl_policies[i], 1, i);
        int64_t delay_ns = 1000000;
        for (int step = 0; step < 300; step++) {
            const fl_decision *decision = step_with(in, feed_next(&f, 0, delay_ns));
            delay_ns = decision->delay_ns;
        }
        fl_instance_counts c = fl_instance_counts_of(in);
        FL_CHECK(c.faults == 0, "%s: %llu faults while nothing is known", fl_policies[i]->name,
                 (unsigned long long)c.faults);
        fl_instance_close(in);
    }
}

/* Every set and delay of the same random samples, as they are kept in tests/golden/policies/NAME.csv: the golden case
 * that each policy has without a line of code. */
static void test_golden(void) {
    for (size_t i = 0; i < fl_policies_count; i++) {
        fl_instance *in = open_policy(fl_policies[i], NULL, 0);
        feed f = feed_for(fl_policies[i], 41, 0);
        int64_t delay_ns = 1000000;
        char *text, name[64];
        size_t size;
        FILE *out = open_memstream(&text, &size);
        CU_ASSERT_FATAL(out != NULL);
        fprintf(out, "step,device,set,value\n");
        for (int step = 0; step < 200; step++) {
            const fl_decision *d = step_with(in, feed_next(&f, step < 150 ? 1 : 0.5, delay_ns));
            for (uint32_t g = 0; g < GPUS; g++)
                for (int c = 0; c < FL_GPU_CONTROL_COUNT; c++)
                    if (d->gpu[g][c].set)
                        fprintf(out, "%d,%u,%s,%g\n", step, g, fl_rows_at(FL_ROWS_GPU_CONTROL, (size_t)c)->name,
                                d->gpu[g][c].value);
            for (int c = 0; c < FL_HOST_CONTROL_COUNT; c++)
                if (d->host[c].set)
                    fprintf(out, "%d,host,%s,%g\n", step, fl_rows_at(FL_ROWS_HOST_CONTROL, (size_t)c)->name,
                            d->host[c].value);
            if (d->delay_ns != delay_ns)
                fprintf(out, "%d,,delay_ns,%lld\n", step, (long long)d->delay_ns);
            delay_ns = d->delay_ns;
        }
        fclose(out);
        snprintf(name, sizeof name, "policies/%s.csv", fl_policies[i]->name);
        fl_golden_check(name, text);
        free(text);
        fl_instance_close(in);
    }
}

/* ---- purity -------------------------------------------------------------------------------------------------------
 */

static bool allowed_import(const char *symbol) {
    static const char *const names[] = {"memcpy",
                                        "memmove",
                                        "memset",
                                        "memcmp",
                                        "acos",
                                        "asin",
                                        "atan",
                                        "atan2",
                                        "cbrt",
                                        "ceil",
                                        "cos",
                                        "cosh",
                                        "exp",
                                        "exp2",
                                        "expm1",
                                        "fabs",
                                        "fdim",
                                        "floor",
                                        "fma",
                                        "fmax",
                                        "fmin",
                                        "fmod",
                                        "frexp",
                                        "hypot",
                                        "ldexp",
                                        "lgamma",
                                        "llrint",
                                        "llround",
                                        "log",
                                        "log10",
                                        "log1p",
                                        "log2",
                                        "lrint",
                                        "lround",
                                        "modf",
                                        "nearbyint",
                                        "pow",
                                        "rint",
                                        "round",
                                        "sin",
                                        "sinh",
                                        "sqrt",
                                        "tan",
                                        "tanh",
                                        "tgamma",
                                        "trunc",
                                        "_GLOBAL_OFFSET_TABLE_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(symbol, names[i]) == 0)
            return true;
    return false;
}

/* Output of a command, NUL-terminated, or NULL; to be freed. */
static char *output_of(const char *command) {
    size_t size = 0;
    char file[512], *text;
    snprintf(file, sizeof file, "%s", fl_temp_path("output"));
    char line[2048];
    snprintf(line, sizeof line, "%s > '%s' 2>&1", command, file);
    if (system(line) != 0)
        return NULL;
    text = fl_temp_slurp(file, &size);
    return text;
}

/* Is the symbol defined in another object of the archive? */
static bool defined_in(const char *defined, const char *symbol) {
    size_t length = strlen(symbol);
    for (const char *at = strstr(defined, symbol); at; at = strstr(at + 1, symbol))
        if (at > defined && at[-1] == ' ' && (at[length] == '\n' || at[length] == '\0'))
            return true;
    return false;
}

/* Every offence of an archive as one line in report; returns their number. */
static int offences(const char *archive, char *report, size_t size) {
    char command[1024], member[256] = "", symbol[256], *rest, *line;
    int count = 0;
    size_t used = 0;
    snprintf(command, sizeof command, "nm --defined-only '%s'", archive);
    char *defined = output_of(command);
    snprintf(command, sizeof command, "nm -A -u '%s'", archive);
    char *undefined = output_of(command);
    snprintf(command, sizeof command, "size -A '%s'", archive);
    char *sections = output_of(command);
    *report = '\0';
    if (!defined || !undefined || !sections) {
        snprintf(report, size, "nm or size failed on %s", archive);
        free(defined), free(undefined), free(sections);
        return 1;
    }
    for (rest = undefined; (line = strsep(&rest, "\n"));) { /* archive:member: U symbol */
        char *name = strrchr(line, ' ');
        char *colon = name ? strrchr(line, ':') : NULL;
        if (!name || !colon || allowed_import(name + 1) || defined_in(defined, name + 1))
            continue;
        *colon = '\0';
        const char *object = strrchr(line, ':');
        used += (size_t)snprintf(report + used, size - used, "%s imports %s\n", object ? object + 1 : line, name + 1);
        count++;
    }
    for (rest = sections; (line = strsep(&rest, "\n"));) { /* "member (ex archive):", then "section size address" */
        unsigned long bytes;
        if (strstr(line, "(ex "))
            sscanf(line, "%255s", member);
        if (sscanf(line, "%255s %lu", symbol, &bytes) != 2 || bytes == 0 || strncmp(symbol, ".data.rel.ro", 12) == 0)
            continue;
        if (strncmp(symbol, ".data", 5) && strncmp(symbol, ".bss", 4) && strncmp(symbol, ".tdata", 6) &&
            strncmp(symbol, ".tbss", 5))
            continue;
        used += (size_t)snprintf(report + used, size - used, "%s has %lu bytes of %s\n", member, bytes, symbol);
        count++;
    }
    free(defined), free(undefined), free(sections);
    return count;
}

static void test_purity(void) {
    static char report[16384];
    int count = offences(FL_POLICY_ARCHIVE, report, sizeof report);
    FL_CHECK(count == 0, "%s:\n%s", FL_POLICY_ARCHIVE, report);

    /* And the check sees what it should. */
    char command[2048], archive[512], object[512];
    snprintf(object, sizeof object, "%s", fl_temp_path("impure.o"));
    snprintf(archive, sizeof archive, "%s", fl_temp_path("impure.a"));
    snprintf(command, sizeof command,
             "cc -std=gnu17 -O2 -fPIC -I '%s' -c -o '%s' '%s/tests/support/plugins/impure.c' && ar rcs '%s' '%s'",
             FL_ROOT, object, FL_ROOT, archive, object);
    CU_ASSERT_FATAL(system(command) == 0);
    count = offences(archive, report, sizeof report);
    FL_CHECK(count == 4 && strstr(report, "impure.o imports getenv\n") && strstr(report, "impure.o imports time\n") &&
                 strstr(report, "impure.o has 8 bytes of .data\n") && strstr(report, "impure.o has 32 bytes of .bss\n"),
             "%d offences, expected 4:\n%s", count, report);
}

/* ---- plug-ins -----------------------------------------------------------------------------------------------------
 */

/* Compiles a source as a user would, far from the tree; returns the path of the shared object. */
static const char *build_plugin(const char *source, const char *name) {
    static char path[512];
    char command[2048], copy[512], from[512];
    size_t size = 0;
    snprintf(from, sizeof from, "%s/%s", FL_ROOT, source);
    char *text = fl_temp_slurp(from, &size);
    CU_ASSERT_FATAL(text != NULL);
    snprintf(copy, sizeof copy, "%s", fl_temp_write("mine.c", text, size));
    free(text);
    snprintf(path, sizeof path, "%s", fl_temp_path(name));
    snprintf(
        command, sizeof command,
        "cc -std=gnu17 -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I '%s' -o '%s' "
        "'%s' -lm",
        FL_ROOT, path, copy);
    CU_ASSERT_FATAL(system(command) == 0);
    return path;
}

/* A row of one type and a member of another would be written past the member's end, or read as something else. */
static void test_row_types(void) {
    static const struct {
        const char *member, *type;
        bool fits;
    } rows[] = {
        {"double", "REAL(0, 1)", true},
        {"int64_t", "REAL(0, 1)", false},
        {"float", "REAL(0, 1)", false},
        {"int64_t", "INT(0, 1)", true},
        {"double", "INT(0, 1)", false},
        {"int32_t", "INT(0, 1)", false},
        {"int64_t", "BOOL", true},
        {"double", "BOOL", false},
        {"_Bool", "BOOL", false},
        {"int64_t", "CHOICE(0)", true},
        {"const char *", "CHOICE(0)", false},
        {"fl_table", "CHOICE(0)", false},
        {"fl_table", "LIST(0, 1)", true},
        {"const double *", "LIST(0, 1)", false},
        {"double", "LIST(0, 1)", false},
        {"fl_table", "TABLE(0)", true},
        {"fl_table *", "TABLE(0)", false},
        {"int64_t", "TABLE(0)", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512], command[1024];
        snprintf(text, sizeof text,
                 "#include \"policies/policy.h\"\ntypedef struct params { %s x; } params;\n"
                 "extern const fl_param row;\nconst fl_param row = FL_PARAM(params, x, %s, \"\", \"0\", \"help\");\n",
                 rows[i].member, rows[i].type);
        const char *path = fl_temp_text("row.c", text);
        snprintf(command, sizeof command,
                 "cc -std=gnu17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I '%s' '%s' 2>&1 | grep -c error",
                 FL_ROOT, path);
        char *errors = output_of(command); /* NULL: grep found none */
        FL_CHECK((errors == NULL) == rows[i].fits, "a row %s of a member %s: %s errors", rows[i].type, rows[i].member,
                 errors ? errors : "no");
        free(errors);
    }
}

static void compare_with_skeleton(const char *path) {
    const uint64_t seed = 77;
    const fl_policy *plugin, *built_in;
    fl_diag d = {0};
    fl_status status = fl_policy_open(path, &plugin, &d);
    FL_CHECK(status == FL_OK, "%s", d.message);
    CU_ASSERT_FATAL(status == FL_OK && fl_policy_open("skeleton", &built_in, &d) == FL_OK);
    FL_CHECK(plugin != built_in && strcmp(plugin->name, "skeleton") == 0, "%s is not the plug-in", path);
    fl_setting setting[] = {{"low_pct", "40", NULL}, {"stride", "2", NULL}};
    fl_instance *a = open_policy(plugin, setting, 2), *b = open_policy(built_in, setting, 2);
    feed f = {.random = fl_random_seed(seed, 0)};
    for (int step = 0; step < 1000; step++) {
        const fl_sample *sample = feed_next(&f, 0.8, 200000000);
        bool same = same_decision(step_with(a, sample), step_with(b, sample), fl_instance_probe_count(a));
        FL_CHECK(same, "seed %llu, step %d: plug-in and built-in differ", (unsigned long long)seed, step);
    }
    FL_CHECK(fl_instance_counts_of(a).sets > 200, "only %llu sets", (unsigned long long)fl_instance_counts_of(a).sets);
    fl_instance_close(a);
    fl_instance_close(b);
}

static void test_skeleton(void) {
    compare_with_skeleton(FL_SKELETON_SO);
    compare_with_skeleton(build_plugin("policies/skeleton.c", "outside.so"));
}

static void test_refusals(void) {
    static const struct {
        const char *source, *expected;
    } plugins[] = {
        {"tests/support/plugins/wrong_row.c",
         "another contract: built for 'abi " FL_TEXT(FL_ABI_VERSION) "', this program has 'abi " FL_TEXT(
             FL_ABI_VERSION) "'; first row that "
                             "differs: 'gpu signal power_w mW "
                             "GAUGE' there, 'gpu signal power_w W GAUGE' here"},
        {"tests/support/plugins/wrong_size.c", "struct fl_command has "},
        {"tests/support/plugins/no_policy.c", "no symbol 'foldline_policy'"},
    };
    static const struct {
        const char *name, *expected;
    } names[] = {
        {"asure", "unknown policy 'asure', did you mean 'assure'?"},
        {"MAXFREQ", "did you mean 'maxfreq'?"},
        {"zzzzzzzz", "unknown policy 'zzzzzzzz', expected a built-in or the path of a .so"},
        {"", "unknown policy ''"},
        {"/nowhere/none.so", "cannot load policy plug-in: /nowhere/none.so"},
        {"none.so", "unknown policy 'none.so'"},
        {"libm.so", "unknown policy 'libm.so'"},
    };
    const fl_policy *policy;
    fl_diag d;
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++) {
        char name[32];
        snprintf(name, sizeof name, "refused%zu.so", i);
        const char *path = build_plugin(plugins[i].source, name);
        memset(&d, 0, sizeof d);
        FL_CHECK(fl_policy_open(path, &policy, &d) == FL_BAD_INPUT && !policy && !strcmp(d.file, path) &&
                     strstr(d.message, plugins[i].expected),
                 "%s: %s", plugins[i].source, d.message);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        FL_CHECK(fl_policy_open(names[i].name, &policy, &d) == FL_BAD_INPUT && !policy &&
                     strstr(d.message, names[i].expected),
                 "%s: %s", names[i].name, d.message);
    const char *broken = fl_temp_text("broken.so", "no shared object");
    FL_CHECK(fl_policy_open(broken, &policy, &d) == FL_BAD_INPUT && strstr(d.message, "cannot load policy plug-in: "),
             "%s", d.message);
    for (size_t i = 0; i < fl_policies_count; i++)
        FL_CHECK(fl_policy_open(fl_policies[i]->name, &policy, &d) == FL_OK && policy == fl_policies[i], "%s",
                 fl_policies[i]->name);
}

/* ---- the simple policies ------------------------------------------------------------------------------------------
 */

/* Steps once with this GPU utilisation on both GPUs (negative: not known). */
static const fl_decision *step_util(fl_instance *in, double util) {
    fl_gpu_sample gpu[GPUS] = {0};
    for (uint32_t g = 0; g < GPUS && util >= 0; g++) {
        gpu[g].valid = gpu[g].fresh = FL_BIT(FL_GPU_UTIL_GPU_PCT);
        gpu[g].value[FL_GPU_UTIL_GPU_PCT] = util;
    }
    fl_sample sample = {.gpu_count = GPUS, .gpu = gpu};
    return step_with(in, &sample);
}

static double made(const fl_decision *d, uint32_t gpu, int control) {
    return d->gpu[gpu][control].set ? d->gpu[gpu][control].value : 0;
}

static const fl_policy *by_name(const char *name) {
    const fl_policy *policy;
    CU_ASSERT_FATAL(fl_policy_open(name, &policy, NULL) == FL_OK);
    return policy;
}

static void test_set_once(void) {
    static const struct {
        const char *policy, *setting, *text;
        double sm[GPUS], mem, limit; /* 0 = not set */
    } rows[] = {
        {"nvboost", NULL, NULL, {0, 0}, 0, 0},
        {"maxfreq", NULL, NULL, {1400, 1300}, 0, 0},
        {"efficientfix", NULL, NULL, {1000, 1000}, 0, 0}, /* at or above 980 and 910 */
        {"efficientfix", "efficient_mhz", "700", {700, 700}, 0, 0},
        {"fixed", "sm_mhz", "900", {900, 900}, 0, 0},
        {"fixed", "mem_mhz", "5001", {0, 0}, 5001, 0},
        {"fixed", "power_limit_w", "250", {0, 0}, 0, 250},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_setting setting[] = {{"period_ms", "50", NULL}, {rows[i].setting, rows[i].text, NULL}};
        fl_instance *in = open_policy(by_name(rows[i].policy), setting, rows[i].setting ? 2 : 1);
        for (int step = 0; step < 50; step++) {
            const fl_decision *d = step_util(in, step % 3 * 50.0);
            FL_CHECK(d->delay_ns == 50000000, "%s: delay %lld", rows[i].policy, (long long)d->delay_ns);
            for (uint32_t g = 0; g < GPUS; g++)
                FL_CHECK(made(d, g, FL_SET_SM_MHZ) == (step ? 0 : rows[i].sm[g]) &&
                             made(d, g, FL_SET_MEM_MHZ) == (step ? 0 : rows[i].mem) &&
                             made(d, g, FL_SET_POWER_LIMIT_W) == (step ? 0 : rows[i].limit),
                         "%s: step %d sets %g, %g, %g on GPU %u", rows[i].policy, step, made(d, g, FL_SET_SM_MHZ),
                         made(d, g, FL_SET_MEM_MHZ), made(d, g, FL_SET_POWER_LIMIT_W), g);
        }
        FL_CHECK(fl_instance_counts_of(in).faults == 0, "%s: faults", rows[i].policy);
        fl_instance_close(in);
    }
    fl_setting zero = {"sm_mhz", "0", NULL};
    fl_layer layer = {"test", &zero, 1};
    fl_instance_options o = {.policy = by_name("fixed"), .facts = &facts, .layer = &layer, .layer_count = 1};
    fl_instance *in;
    fl_diag d;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "above 0, or -1"), "%s", d.message);
    layer.count = 0;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "nothing to set"), "%s", d.message);
    zero = (fl_setting){"cpu_boost", "0", NULL};
    layer.count = 1;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_OK, "%s", d.message);
    fl_instance_close(in);
}

/* fmax 1400: the top, then the share in use rounded up, and again 20 loops later. */
static void test_utilizscale(void) {
    static const struct {
        const char *name, *lowest, *repeat;
        double util[6], made[6]; /* of the first loops; -1 = not known; 0 = nothing set */
        int cycle;
    } rows[] = {
        {"busy", "0", NULL, {10, 100, 0, 0, 0, 0}, {1400, 1400, 0, 0, 0, 0}, 20},
        {"half, rounded up", "0", NULL, {90, 51, 0, 0, 0, 0}, {1400, 800, 0, 0, 0, 0}, 20},
        {"exactly on the ladder", "0", NULL, {90, 50, 0, 0, 0, 0}, {1400, 700, 0, 0, 0, 0}, 20},
        {"idle", "0", NULL, {90, 0, 100, 0, 0, 0}, {1400, 300, 0, 0, 0, 0}, 20},
        {"not below the lowest", "650", NULL, {90, 10, 0, 0, 0, 0}, {1400, 700, 0, 0, 0, 0}, 20},
        {"reading late", "0", NULL, {90, -1, -1, 60, 10, 0}, {1400, 0, 0, 900, 0, 0}, 20},
        {"a shorter cycle", "0", "3", {90, 50, 100, 0, 100, 0}, {1400, 700, 0, 1400, 1400, 0}, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_setting setting[] = {{"lowest_mhz", rows[i].lowest, NULL}, {"repeat_loops", rows[i].repeat, NULL}};
        fl_instance *in = open_policy(by_name("utilizscale"), setting, rows[i].repeat ? 2 : 1);
        for (int step = 0; step < 60; step++) {
            double util = step < 6 ? rows[i].util[step] : 50;
            double got = made(step_util(in, util), 0, FL_SET_SM_MHZ);
            int into = step % rows[i].cycle;
            double lowest = fl_ladder_up(gpu_facts[0].sm, fmax(700, strtod(rows[i].lowest, NULL)));
            double want = step < 6 ? rows[i].made[step] : into == 0 ? 1400 : into == 1 ? lowest : 0;
            FL_CHECK(got == want, "%s: loop %d sets %g, expected %g", rows[i].name, step, got, want);
        }
        fl_instance_close(in);
    }
}

/* A GPU whose reading comes late is scaled late; the others are not kept waiting. */
static void test_utilizscale_apart(void) {
    fl_instance *in = open_policy(by_name("utilizscale"), NULL, 0);
    fl_gpu_sample gpu[GPUS] = {0};
    fl_sample sample = {.gpu_count = GPUS, .gpu = gpu};
    static const double expected[4][GPUS] = {{1400, 1300}, {700, 0}, {0, 700}, {0, 0}};
    for (int step = 0; step < 4; step++) {
        for (uint32_t g = 0; g < GPUS; g++) {
            gpu[g].valid = step > (int)g ? FL_BIT(FL_GPU_UTIL_GPU_PCT) : 0;
            gpu[g].value[FL_GPU_UTIL_GPU_PCT] = 50;
        }
        const fl_decision *d = step_with(in, &sample);
        for (uint32_t g = 0; g < GPUS; g++)
            FL_CHECK(made(d, g, FL_SET_SM_MHZ) == expected[step][g], "loop %d GPU %u sets %g", step, g,
                     made(d, g, FL_SET_SM_MHZ));
    }
    fl_instance_close(in);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("policies", {"descriptors", test_descriptors}, {"copies decide alike", test_copies},
         {"nothing known", test_unknown_signals}, {"no server", test_no_server}, {"golden cases", test_golden},
         {"types of parameter rows", test_row_types}, {"purity", test_purity}, {"skeleton as plug-in", test_skeleton},
         {"refusals", test_refusals}, {"policies that set once", test_set_once}, {"UtilizScale", test_utilizscale},
         {"UtilizScale, GPUs apart", test_utilizscale_apart}, {"clean up", test_clean_up})
