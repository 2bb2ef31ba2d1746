/* `foldline fit trace`: recordings of one program at several clocks give back the terms they were made with; what was
 * seen once borrows; a log alone becomes phases. Through the functions and through the program. */
#include "harness/fit/trace/inside.h"
#include "harness/input/platform/platform.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

#define P 9.0

static const struct {
    const char *name;
    uint32_t grid;
    double c, l, us;
    bool once; /* only at the highest clock */
} kernels[] = {{"core", 64, 1, 0, 900, false},
               {"memory", 64, 0.3, 0, 1500, false},
               {"between", 128, 0.9, 0.05, 700, false},
               {"core", 512, 1, 0, 4000, true},
               {"rare", 64, 0.7, 0, 300, true}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static double memory_of(double c, double l) {
    const double x = pow(1 - l, P) - pow(c, P);
    return x > 0 ? pow(x, 1 / P) : 0;
}

/* The program at one clock: 200 rounds of all its kernels, lengths 2 % apart. */
static fl_kernel_trace record(double mhz, double ref, uint64_t seed) {
    fl_kernel_trace t = {0};
    fl_random r = fl_random_seed(seed, (uint64_t)mhz);
    int64_t now = 0;
    char text[16];
    snprintf(text, sizeof text, "%g", mhz);
    fl_head_set(&t.head, "sm_mhz", text);
    for (int round = 0; round < 200; round++)
        for (int k = 0; k < KERNELS; k++) {
            const double c = kernels[k].c * (1 - kernels[k].l), m = memory_of(c, kernels[k].l),
                         ns = 1e3 * kernels[k].us * (fl_time_norm(c * ref / mhz, m, P) + kernels[k].l) *
                              (1 + 0.02 * fl_random_normal(&r));
            if (kernels[k].once && mhz < ref)
                continue;
            fl_trace_op op = {.start_ns = now + 5000, .launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
            op.kind =
                fl_trace_add_kind(&t, kernels[k].name, (uint32_t[]){kernels[k].grid, 1, 1}, (uint32_t[]){256, 1, 1});
            op.end_ns = now = op.start_ns + (int64_t)ns;
            fl_trace_add_op(&t, &op);
        }
    return t;
}

static void test_terms(void) {
    static const double clocks[][4] = {{900, 1500, 0, 0}, {750, 1000, 1250, 1500}};
    for (int set = 0; set < 2; set++) {
        fl_fit_seen s = {0};
        fl_diag d = {0};
        for (int i = 0; i < 4 && clocks[set][i] > 0; i++) {
            fl_kernel_trace t = record(clocks[set][i], 1500, 3);
            FL_CHECK(fl_seen_add(&s, "t.csv", &t, 0, &d) == FL_OK, "%s", d.message);
            fl_kernel_trace_free(&t);
        }
        FL_CHECK(fl_seen_fit(&s, P, &d) == FL_OK && s.kernel_count == KERNELS && s.name_count == 4 && s.ref_mhz == 1500,
                 "%s: %zu kinds", d.message, s.kernel_count);
        double total = 0, own = 0, named = 0;
        for (size_t i = 0; i < s.kernel_count; i++) {
            total += s.kernel[i].total_ns;
            own += s.kernel[i].fitted ? s.kernel[i].total_ns : 0;
            named += !s.kernel[i].fitted && !strcmp(s.names[s.kernel[i].name], "core") ? s.kernel[i].total_ns : 0;
        }
        FL_CHECK(s.total_ns == total && s.own_ns == own && fabs(s.named_ns - named) < 1 && own < total && named > 0,
                 "coverage: %g own, %g by name of %g", s.own_ns, s.named_ns, s.total_ns);
        for (int k = 0; k < 3; k++) {
            const double c = kernels[k].c * (1 - kernels[k].l), m = memory_of(c, kernels[k].l);
            size_t n = 0;
            while (strcmp(s.name[n].text, kernels[k].name) != 0)
                n++;
            const fl_kernel_fit fit = {.c = s.name[n].c, .m = memory_of(s.name[n].c, s.name[n].l), .l = s.name[n].l};
            for (double f = 800; f < 1500; f += 100) {
                const double was = fl_time_norm(c * 1500 / f, m, P) + kernels[k].l,
                             is = fl_kernel_time(&fit, P, 1500 / f);
                FL_CHECK(fabs(is / was - 1) < 0.03, "%s at %g MHz from %d clocks: %.4g, made with %.4g",
                         kernels[k].name, f, set ? 4 : 2, is, was);
            }
        }
        FL_CHECK(set ? s.unseen_pct < 3 : isnan(s.unseen_pct), "unseen %g", s.unseen_pct);
        fl_seen_free(&s);
    }
}

static void test_refusals(void) {
    fl_fit_seen s = {0};
    fl_diag d = {0};
    fl_kernel_trace t = record(1500, 1500, 1);
    FL_CHECK(fl_seen_add(&s, "t.csv", &t, 0, &d) == FL_OK && fl_seen_fit(&s, P, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "two clocks"),
             "%s", d.message);
    fl_seen_free(&s);
    fl_head_free(&t.head);
    t.head = (fl_head){0};
    FL_CHECK(fl_seen_add(&s, "t.csv", &t, 0, &d) == FL_BAD_INPUT && strstr(d.message, "--sm-mhz"), "%s", d.message);
    fl_seen_free(&s);
    FL_CHECK(fl_seen_add(&s, "t.csv", &t, 1200, &d) == FL_OK && s.kernel[0].at[0].sm_mhz == 1200, "%s", d.message);
    fl_seen_free(&s);
    fl_kernel_trace_free(&t);
}

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Mean power of a recording by the platform's law, kernels with alpha = 0.5 x core, beta = 0.8 x memory activity. */
static double power_of(const fl_device *dev, const fl_kernel_trace *t, double mhz) {
    double core = 0, memory = 0, sm_w = 0, memory_w = 0;
    fl_base base;
    for (size_t i = 0; i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        int k = 0;
        while (strcmp(kernels[k].name, t->names[t->kinds[op->kind].name]) != 0)
            k++;
        const double c = kernels[k].c * (1 - kernels[k].l), l = kernels[k].l, m = memory_of(c, l),
                     ns = (double)(op->end_ns - op->start_ns);
        core += 0.5 * ns * fl_core_active(c, m, l, P, 1, 1);
        memory += 0.8 * ns * fl_memory_active(c, m, l, P, 1, 1);
    }
    FL_CHECK(fl_base_make(dev, mhz, dev->default_mem_mhz, &base) == FL_MODEL_OK &&
                 fl_power_dynamic(dev, 1, 1, mhz, dev->default_mem_mhz, &sm_w, &memory_w) == FL_MODEL_OK,
             "platform");
    const double wall = (double)(t->ops[t->op_count - 1].end_ns - t->ops[0].start_ns);
    return base.total_mw * 1e-3 + (core * sm_w + memory * memory_w) / wall;
}

/* rMHZ.csv and its telemetry, of the GPU that it ran on and of another. offset: head of the telemetry. */
static void write_pair(const fl_device *dev, double mhz, const char *offset) {
    char name[64];
    fl_diag d = {0};
    fl_kernel_trace t = record(mhz, 1500, 3);
    fl_head_set(&t.head, "clock_offset_ns", "5");
    snprintf(name, sizeof name, "r%g.csv", mhz);
    FL_CHECK(fl_kernels_write(fl_temp_path(name), &t, &d) == FL_OK, "%s", d.message);
    snprintf(name, sizeof name, "r%g.telemetry.csv", mhz);
    FILE *f = fopen(fl_temp_path(name), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "# foldline-telemetry 1\n# clock_offset_ns: %s\nt_ns,device,power_w\n", offset);
    const int64_t last = t.ops[t.op_count - 1].end_ns;
    for (int64_t i = 1; i <= 120; i++) /* afterwards it draws 40 W */
        for (int gpu = 0; gpu < 2; gpu++)
            fprintf(f, "%lld,%d,%.9g\n", (long long)(i * (last / 100)), gpu,
                    gpu || i > 99 ? 40 : power_of(dev, &t, mhz));
    fclose(f);
    fl_kernel_trace_free(&t);
}

static double said(const char *path, const char *before) {
    double x = NAN;
    size_t size = 0;
    char *text = fl_temp_slurp(path, &size), *at = text ? strstr(text, before) : NULL;
    if (at)
        x = strtod(at + strlen(before), NULL);
    free(text);
    return x;
}

/* Telemetry beside the recordings gives the power that they were made with; that of another import, of another GPU, or
 * of no clock that is known says nothing. Errors are stated of what was left out, or not at all. */
static void test_power(void) {
    fl_platform generic = {0};
    fl_diag d = {0};
    char kinds[600], out[600], folder[600];
    CU_ASSERT_FATAL(fl_platform_open("generic", 0, &generic, &d) == FL_OK);
    const fl_device *dev = &generic.node.device[generic.node.gpu[0]];
    snprintf(kinds, sizeof kinds, "%s", fl_temp_path("p.kinds.csv"));
    snprintf(out, sizeof out, "%s", fl_temp_path("p.out"));
    snprintf(folder, sizeof folder, "%s", fl_temp_path("x"));
    *strrchr(folder, '/') = 0;
    write_pair(dev, 700, "5");
    write_pair(dev, 1000, "5");
    write_pair(dev, 1500, "5");
#define FIT "cd '%s' && '%s' fit trace --platform generic -o '%s' "
    FL_CHECK(shell(FIT "r700.csv r1000.csv r1500.csv >'%s' 2>&1", folder, FL_PROGRAM, kinds, out) == 0, "three");
    /* The memory share of a core-bound kernel is the ninth root of almost nothing, so the scale of memory is told less
     * well than the power that comes of it. */
    FL_CHECK(fabs(said(out, "core x ") - 0.5) < 0.02 && fabs(said(out, "memory x ") - 0.8) < 0.3 &&
                 said(out, "mean error ") < 1,
             "core x %g, memory x %g", said(out, "core x "), said(out, "memory x "));
    double time = said(kinds, "# model_time_mape_pct: "), power = said(kinds, "# model_power_mape_pct: ");
    FL_CHECK(time > 0.01 && time < 5 && power > 1e-3 && power < 5, "three: %g %% and %g %%", time, power);
    FL_CHECK(shell("'%s' compare '%s/r1500.csv' --kinds '%s' --platform generic --policy assure --policy maxfreq "
                   "--model-error 5 >'%s' 2>&1 && grep -q '5 draws' '%s'",
                   FL_PROGRAM, folder, kinds, out, out) == 0,
             "the errors are the kinds' own");
    /* Two clocks: terms that meet both say nothing of how wrong they are; two powers still show each other. */
    FL_CHECK(shell(FIT "r700.csv r1500.csv >'%s' 2>&1", folder, FL_PROGRAM, kinds, out) == 0, "two");
    time = said(kinds, "# model_time_mape_pct: ");
    power = said(kinds, "# model_power_mape_pct: ");
    FL_CHECK(isnan(time) && power > 0.01 && shell("grep -q 'give compare --model-error --time-error' '%s'", out) == 0,
             "two: %g %% and %g %%", time, power);
    FL_CHECK(shell("'%s' compare '%s/r1500.csv' --kinds '%s' --platform generic --policy assure --model-error 5 >'%s' "
                   "2>&1",
                   FL_PROGRAM, folder, kinds, out) == 2 &&
                 shell("grep -q -e '--time-error' '%s'", out) == 0,
             "an error that nobody knows");
    FL_CHECK(shell("'%s' run '%s/r1500.csv' --kinds '%s' --platform generic --policy nvboost >'%s' 2>&1", FL_PROGRAM,
                   folder, kinds, out) == 0 &&
                 shell("grep -q 'not known in time' '%s' && ! grep -q nan '%s'", out, out) == 0,
             "what a run says of it");
    write_pair(dev, 700, "6");
    FL_CHECK(shell(FIT "r700.csv r1500.csv >'%s' 2>&1", folder, FL_PROGRAM, kinds, out) == 0 &&
                 shell("grep -q 'of another import' '%s' && grep -q 'on 1 recordings' '%s'", out, out) == 0,
             "telemetry of another import");
    FL_CHECK(isnan(said(kinds, "# model_power_mape_pct: ")), "one recording cannot show its error");
    FL_CHECK(shell("cd '%s' && sed -i '/clock_offset/d' r700.csv r1500.csv", folder) == 0, "sed");
    FL_CHECK(shell(FIT "r700.csv r1500.csv >'%s' 2>&1", folder, FL_PROGRAM, kinds, out) == 0 &&
                 shell("test $(grep -c 'on one clock: left out' '%s') = 2 && grep -q 'no telemetry comes with' '%s'",
                       out, out) == 0,
             "no clock that both are on");
    fl_platform_free(&generic);
}

static void test_program(void) {
    char a[600], b[600], c[600], kinds[600], log[600], phases[600], out[600];
    fl_diag d = {0};
    snprintf(a, sizeof a, "%s", fl_temp_path("a.csv"));
    snprintf(b, sizeof b, "%s", fl_temp_path("b.csv"));
    snprintf(c, sizeof c, "%s", fl_temp_path("c.csv"));
    snprintf(kinds, sizeof kinds, "%s", fl_temp_path("k.csv"));
    snprintf(log, sizeof log, "%s", fl_temp_path("log.csv"));
    snprintf(phases, sizeof phases, "%s", fl_temp_path("log.programs.csv"));
    snprintf(out, sizeof out, "%s", fl_temp_path("out"));
    for (int i = 0; i < 3; i++) {
        fl_kernel_trace t = record(i > 1 ? 1200 : i ? 900 : 1500, 1500, 3);
        FL_CHECK(fl_kernels_write(i > 1 ? c : i ? b : a, &t, &d) == FL_OK, "%s", d.message);
        fl_kernel_trace_free(&t);
    }
    FL_CHECK(shell("'%s' fit trace '%s' '%s' '%s' --platform generic -o '%s' >'%s' 2>&1", FL_PROGRAM, a, b, c, kinds,
                   out) == 0,
             "fit trace");
    FL_CHECK(shell("grep -q 'assumed' '%s' && grep -q '^core,' '%s' && grep -q '^[*],' '%s'", out, kinds, kinds) == 0,
             "what it says");
    FL_CHECK(shell("'%s' run '%s' --kinds '%s' --platform generic --policy fixed --set sm_mhz=900 >'%s'", FL_PROGRAM, a,
                   kinds, out) == 0,
             "the kinds run");
    FL_CHECK(
        shell("'%s' compare '%s' --kinds '%s' --platform generic --policy assure --policy maxfreq --model-error 20 "
              "--power-error 5 >'%s' 2>&1 && grep -q '20 draws' '%s'",
              FL_PROGRAM, a, kinds, out, out) == 0,
        "the kinds carry their error");
    FL_CHECK(shell("'%s' fit trace '%s' --platform generic -o '%s' 2>'%s'", FL_PROGRAM, a, kinds, out) == 2 &&
                 shell("grep -q 'two clocks' '%s'", out) == 0,
             "one recording");
    char text[20000];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "# foldline-telemetry 1\nt_ns,device,util_gpu_pct,util_mem_pct,power_w,sm_mhz\n");
    for (int i = 0; i < 300; i++) /* 10 s of one thing, 12 of another, 8 of nothing */
        used += (size_t)snprintf(text + used, sizeof text - used, "%lld,0,%d,%d,%d,%d\n", 100000000LL * i,
                                 i < 100   ? 98
                                 : i < 220 ? 60
                                           : 0,
                                 i < 100   ? 20
                                 : i < 220 ? 55
                                           : 0,
                                 i < 100   ? 250
                                 : i < 220 ? 180
                                           : 40,
                                 i < 220 ? 1500 : 300);
    fl_temp_text("log.csv", text);
    FL_CHECK(shell("'%s' fit trace '%s' --platform generic -o '%s' >'%s' 2>&1", FL_PROGRAM, log, phases, out) == 0 &&
                 shell("test $(grep -c phase_ '%s') = 3 && grep -q assumed '%s'", phases, phases) == 0,
             "phases");
    FL_CHECK(shell("'%s' compare '%s' --platform generic --policy maxfreq >'%s' 2>&1", FL_PROGRAM, phases, out) == 0,
             "phases run");
}

/* A log of several GPUs: one of them is taken, and that is said. */
static void test_devices(void) {
    char text[20000], log[600], phases[600], out[600];
    size_t used =
        (size_t)snprintf(text, sizeof text, "# foldline-telemetry 1\nt_ns,device,util_gpu_pct,power_w,sm_mhz\n");
    snprintf(phases, sizeof phases, "%s", fl_temp_path("gpus.programs.csv"));
    snprintf(out, sizeof out, "%s", fl_temp_path("out"));
    for (int i = 0; i < 100; i++)
        for (int gpu = 3; gpu < 6; gpu++) /* of which 5 changes after 5 s */
            used += (size_t)snprintf(text + used, sizeof text - used, "%lld,%d,%d,%d,1500\n", 100000000LL * i, gpu,
                                     gpu == 5 && i >= 50 ? 40 : 90, 100 + 10 * gpu);
    snprintf(log, sizeof log, "%s", fl_temp_text("gpus.csv", text));
    static const struct {
        const char *option;
        int status, phases;
        const char *says;
    } rows[] = {{"", 0, 1, "GPUs 3 to 5: these are the phases of GPU 3 only"},
                {"--device 5", 0, 2, "the phases of GPU 5 only"},
                {"--device 2", 2, 0, "no GPU 2 in the log, expected one from 3 to 5"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unlink(phases);
        FL_CHECK(shell("'%s' fit trace '%s' %s --platform generic -o '%s' >'%s' 2>&1", FL_PROGRAM, log, rows[i].option,
                       phases, out) == rows[i].status &&
                     shell("grep -q '%s' '%s'", rows[i].says, out) == 0,
                 "'%s': not said: %s", rows[i].option, rows[i].says);
        FL_CHECK(!rows[i].phases || shell("test $(grep -c phase_ '%s') = %d", phases, rows[i].phases) == 0,
                 "'%s': phases", rows[i].option);
    }
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_trace", {"terms", test_terms}, {"refusals", test_refusals}, {"power", test_power},
         {"program", test_program}, {"devices", test_devices}, {"clean up", test_clean_up})
