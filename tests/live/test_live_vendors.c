/* The live commands on GPUs of the other vendors, each a stub of its library: what they read, to the unit; what they
 * set, and that it is put back, also after a KILL; what they say where something is missing. */
#include "harness/live/guard/guard.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/live_stub.h"

#include <math.h>

#define ARG(text) ((char *)(uintptr_t)(text))
#define ZE_NO_PERMISSION 0x70010000
#define RSMI_NO_PERMISSION 4

typedef struct kind {
    const char *name, *vendor, *variable, *library, *unit;
    int no_permission, init_code;
    bool ranged;
    double mem_mhz; /* that may be set; 0 = none */
    const char *missing;
} kind;

static const kind KINDS[] = {
    {"level zero", "intel", "FOLDLINE_ZE", FL_STUB_ZE, "ze-80000000000000000000000000000001", ZE_NO_PERMISSION,
     0x78000001, false, 0, "no Level Zero loader"},
    {"level zero of 2022", "intel", "FOLDLINE_ZE", FL_STUB_ZE_OLD, "ze-80000000000000000000000000000001",
     ZE_NO_PERMISSION, 0x78000001, false, 0, "no Level Zero loader"},
    {"rocm smi", "amd", "FOLDLINE_RSMI", FL_STUB_RSMI, "rsmi-0000000000abc001", RSMI_NO_PERMISSION, 8, false, 700,
     "no ROCm SMI library"},
    {"rocm smi 6, ranges", "amd", "FOLDLINE_RSMI", FL_STUB_RSMI_NEW, "rsmi-0000000000abc001", RSMI_NO_PERMISSION, 8,
     true, 700, "no ROCm SMI library"},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static char log_path[512];

/* Only this vendor's library is there; each GPU with settings of its own from before. */
static void fresh(const kind *k, unsigned gpus) {
    stub_reset(gpus);
    empty_folder(getenv("FOLDLINE_STATE"));
    rmdir(getenv("FOLDLINE_STATE"));
    snprintf(log_path, sizeof log_path, "%s", fl_temp_path("log.csv"));
    setenv("FOLDLINE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    setenv("FOLDLINE_ZE", "/nowhere/libze_loader.so.1", 1);
    setenv("FOLDLINE_RSMI", "/nowhere/librocm_smi64.so", 1);
    setenv(k->variable, k->library, 1);
    stub->ranged = k->ranged;
    for (unsigned i = 0; i < gpus; i++) {
        stub_gpu *g = &stub->gpu[i];
        const bool intel = !strcmp(k->vendor, "intel");
        g->limit_mw = 211000 + 7000 * i;
        g->limit_on = !(i & 1);
        if (intel || k->ranged) {
            const unsigned unit = intel ? 1000 : 1;
            g->sm_min = (600 + 50 * i) * unit;
            g->sm_max = (1500 - 50 * i) * unit;
            g->sm2_min = i ? 0 : 400 * unit; /* no limit on the second GPU's second tile */
            g->sm2_max = i ? 0 : 1400 * unit;
        }
        g->level = i ? 1 : 0;
    }
}

static bool as_before(const kind *k, unsigned gpus) {
    static stub_gpu now[STUB_GPUS_MAX];
    bool same = true;
    memcpy(now, stub->gpu, sizeof now);
    const unsigned sets = stub->sets;
    fresh(k, gpus);
    for (unsigned i = 0; i < gpus; i++) {
        const stub_gpu *a = &now[i], *b = &stub->gpu[i];
        const bool ok = a->sm_min == b->sm_min && a->sm_max == b->sm_max && a->sm2_min == b->sm2_min &&
                        a->sm2_max == b->sm2_max && a->limit_mw == b->limit_mw && a->limit_on == b->limit_on &&
                        a->level == b->level && a->sm_mask == b->sm_mask && a->mem_mask == b->mem_mask;
        if (!ok)
            printf("\n    %s, GPU %u: SM %u to %u and %u to %u, limit %u (%u), level %u, masks %x %x", k->name, i,
                   a->sm_min, a->sm_max, a->sm2_min, a->sm2_max, a->limit_mw, a->limit_on, a->level, a->sm_mask,
                   a->mem_mask);
        same = same && ok;
    }
    stub->sets = sets;
    return same;
}

static bool said(const char *name, const char *what) {
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path(name), &size);
    const bool found = text && strstr(text, what) != NULL;
    if (!found)
        printf("\n    no '%s' in %s: %s", what, name, text ? text : "(none)");
    free(text);
    return found;
}

static int lines_of(const char *name) {
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path(name), &size);
    int lines = 0;
    for (const char *at = text; at && *at; at++)
        lines += *at == '\n';
    free(text);
    return lines;
}

#define EVERY_KIND(k) for (const kind *k = KINDS; k < KINDS + KIND_COUNT; k++)

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

static void open_one(const kind *k, fl_gpus *g) {
    fl_diag d = {0};
    fresh(k, 2);
    fl_status s = fl_vendor_open(g, k->vendor, NULL, NULL, &d);
    FL_CHECK(!s && g->back->count(g->self) == 2 && !strcmp(g->back->unit(g->self, 1), k->unit), "%s: %s", k->name,
             d.message);
}

/* uJ and us; ns of active time; a clock that is the mean of two tiles. */
static void test_ze_units(void) {
    const uint64_t all = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;
    fl_gpus g = {0};
    fl_gpu_sample s;
    fl_gpu_facts f;
    for (const kind *k = KINDS; k < KINDS + 2; k++) {
        open_one(k, &g);
        stub_gpu *at = &stub->gpu[1];
        at->fixed = 1;
        at->energy = 5000000123;
        at->energy_at = 70000000;
        at->active = 1000000;
        at->active_at = 70000000;
        at->sm_max = 900000;
        at->sm2_max = 1100000;
        CU_ASSERT(!g.back->read(g.self, 1, all, 1000, &s, NULL));
        CU_ASSERT(near(s.value[FL_GPU_ENERGY_J], 5000.000123) && s.value[FL_GPU_ENERGY_NS] == 1000);
        CU_ASSERT(!fl_gpu_known(&s, FL_GPU_POWER_W) && !fl_gpu_known(&s, FL_GPU_UTIL_GPU_PCT)); /* of two readings */
        CU_ASSERT(near(s.value[FL_GPU_COMPUTE_NS], 1e9) && near(s.value[FL_GPU_COPY_NS], 1e9));
        CU_ASSERT(near(s.value[FL_GPU_SM_MHZ], 1000) && s.value[FL_GPU_MEM_MHZ] == 1300);
        CU_ASSERT(s.value[FL_GPU_TEMP_C] == 51.5 && s.value[FL_GPU_THROTTLE] == FL_THROTTLE_POWER);
        CU_ASSERT(!fl_gpu_known(&s, FL_GPU_DRAM_BYTES) && !fl_gpu_known(&s, FL_GPU_UTIL_MEM_PCT));
        at->energy += 12500000; /* 12.5 J in 50 ms */
        at->energy_at += 50000;
        at->active += 30000;
        at->active_at += 40000;
        CU_ASSERT(!g.back->read(g.self, 1, all, 50001000, &s, NULL));
        FL_CHECK(near(s.value[FL_GPU_POWER_W], 250) && near(s.value[FL_GPU_UTIL_GPU_PCT], 75), "%g W, %g %%",
                 s.value[FL_GPU_POWER_W], s.value[FL_GPU_UTIL_GPU_PCT]);
        CU_ASSERT(near(s.value[FL_GPU_ENERGY_NS], 50001000) && s.fresh >> FL_GPU_ENERGY_J & 1);
        CU_ASSERT(!g.back->read(g.self, 1, all, 50002000, &s, NULL)); /* nothing moved: shown, not fresh */
        CU_ASSERT(near(s.value[FL_GPU_POWER_W], 250) && !(s.fresh >> FL_GPU_ENERGY_J & 1) &&
                  !(s.fresh >> FL_GPU_POWER_W & 1));
        at->energy = 7; /* a counter that starts anew gives no power, and no negative one */
        at->energy_at += 1000;
        CU_ASSERT(!g.back->read(g.self, 1, all, 50003000, &s, NULL) && !fl_gpu_known(&s, FL_GPU_POWER_W));
        CU_ASSERT(!g.back->facts(g.self, 1, &f, NULL) && f.sm.count == 27 && f.sm.mhz[1] == 350);
        CU_ASSERT(f.power_min_w == 100 && f.power_max_w == 300 && f.power_default_w == 250 && f.sm_count == 128);
        CU_ASSERT(g.back->limit_w(g.self, 1) == 218);
        fl_gpus_close(&g);
    }
}

/* uW; counts of 15.25 uJ; Hz; thousandths of a degree. */
static void test_rsmi_units(void) {
    const uint64_t all = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;
    fl_gpus g = {0};
    fl_gpu_sample s;
    fl_gpu_facts f;
    for (const kind *k = KINDS + 2; k < KINDS + 4; k++) {
        open_one(k, &g);
        stub_gpu *at = &stub->gpu[1];
        at->fixed = 1;
        at->power = 123456789;
        at->energy = 4000000;
        at->energy_at = 70000000;
        at->sm_mask = 2;
        at->sm_max = k->ranged ? 925 : 0;
        CU_ASSERT(!g.back->read(g.self, 1, all, 1000, &s, NULL));
        CU_ASSERT(near(s.value[FL_GPU_POWER_W], 123.456789) && near(s.value[FL_GPU_ENERGY_J], 61));
        CU_ASSERT(s.value[FL_GPU_ENERGY_NS] == 1000 && s.value[FL_GPU_TEMP_C] == 51.5);
        CU_ASSERT(s.value[FL_GPU_SM_MHZ] == 800 && s.value[FL_GPU_MEM_MHZ] == 1600 &&
                  s.value[FL_GPU_UTIL_MEM_PCT] == 33);
        CU_ASSERT(!fl_gpu_known(&s, FL_GPU_THROTTLE));
        at->energy_at += 5000000;
        CU_ASSERT(!g.back->read(g.self, 1, all, 9000, &s, NULL) && s.value[FL_GPU_ENERGY_NS] == 5001000);
        CU_ASSERT(!g.back->facts(g.self, 1, &f, NULL));
        FL_CHECK(f.sm.count == (k->ranged ? 49u : 3u) && fl_ladder_max(f.sm) == 1700 && fl_ladder_min(f.sm) == 500,
                 "%s: %u clocks", k->name, f.sm.count);
        CU_ASSERT(f.mem.count == 4 && f.mem.mhz[1] == 700 && f.power_max_w == 300 && f.power_default_w == 250);
        fl_gpus_close(&g);
    }
}

/* ---- setting ----------------------------------------------------------------------------------------------------- */

/* What arrives in the library, in its units. */
static void test_sets(void) {
    EVERY_KIND(k) {
        fl_gpus g = {0};
        fl_diag d = {0};
        fl_record r = {0};
        open_one(k, &g);
        stub_gpu *at = &stub->gpu[0];
        const bool intel = !strcmp(k->vendor, "intel");
        const uint64_t drives =
            FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W) | (k->mem_mhz > 0 ? FL_BIT(FL_SET_MEM_MHZ) : 0);
        CU_ASSERT(!g.back->prior(g.self, 0, drives, &r, &d) && stub->sets == 0);
        fl_status s = g.back->set(g.self, 0, FL_SET_SM_MHZ, 800, &r, &d);
        FL_CHECK(!s, "%s: %s", k->name, d.message);
        const unsigned mhz = intel ? 800000 : 800;
        const bool ends = at->sm_min == mhz && at->sm_max == mhz;
        FL_CHECK(intel       ? ends && at->sm2_min == mhz && at->sm2_max == mhz
                 : k->ranged ? ends && at->level == 3
                             : at->sm_mask == 2 && at->level == 3,
                 "%s: SM %u to %u, mask %x", k->name, at->sm_min, at->sm_max, at->sm_mask);
        s = g.back->set(g.self, 0, FL_SET_POWER_LIMIT_W, 187, &r, &d);
        FL_CHECK(!s && at->limit_mw == 187000, "%s: %u mW, %s", k->name, at->limit_mw, d.message);
        CU_ASSERT(g.back->limit_w(g.self, 0) == 187 && (!intel || at->limit_on == 1));
        s = g.back->set(g.self, 0, FL_SET_MEM_MHZ, k->mem_mhz > 0 ? k->mem_mhz : 1300, &r, &d);
        FL_CHECK(k->mem_mhz > 0 ? !s && at->mem_mask == 2 : s == FL_IO, "%s: %s", k->name, d.message);
        CU_ASSERT((g.back->hindrance(g.self, 0, FL_SET_MEM_MHZ) == NULL) == (k->mem_mhz > 0));
        s = g.back->set(g.self, 0, FL_SET_POWER_LIMIT_W, FL_DEFAULT, &r, &d); /* hands back what was there */
        FL_CHECK(!s && at->limit_mw == 211000, "%s: %u mW", k->name, at->limit_mw);
        s = g.back->set(g.self, 0, FL_SET_SM_MHZ, FL_DEFAULT, &r, &d);
        if (!s && k->mem_mhz > 0)
            s = g.back->set(g.self, 0, FL_SET_MEM_MHZ, FL_DEFAULT, &r, &d);
        FL_CHECK(!s && (intel || k->ranged ? at->sm_max == 1500 * (intel ? 1000u : 1u) : at->sm_mask == 0),
                 "%s: %u, mask %x, %s", k->name, at->sm_max, at->sm_mask, d.message);
        CU_ASSERT(g.back->hindrance(g.self, 0, FL_SET_SM_MHZ) == NULL);
        s = g.back->restore(g.self, 0, &r, &d);
        FL_CHECK(!s, "%s: %s", k->name, d.message);
        fl_record_free(&r);
        fl_gpus_close(&g);
        CU_ASSERT(as_before(k, 2));
    }
}

static void test_shadow_sets_nothing(void) {
    EVERY_KIND(k) {
        fresh(k, 2);
        int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("assure"), ARG("--for"), ARG("600ms"));
        FL_CHECK(status == 0 && stub->sets == 0, "%s: exit status %d, %u sets", k->name, status, stub->sets);
        CU_ASSERT(said("out.txt", "none made (shadow)") && said("out.txt", k->vendor));
        CU_ASSERT(as_before(k, 2) && left_behind(".record") == 0);
    }
}

static void test_control_sets_and_restores(void) {
    static const char *const POLICIES[] = {"assure", "random"};
    EVERY_KIND(k)
    for (size_t p = 0; p < 2; p++) {
        fresh(k, 2);
        pid_t pid =
            foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG(POLICIES[p]), ARG("--control"),
                                      ARG("--min-set-ms"), ARG("0"), ARG("-o"), log_path, NULL});
        UNTIL(stub->sets > 3);
        kill(pid, SIGTERM);
        int status = exit_of(pid);
        FL_CHECK(status == 0 && stub->sets > 3, "%s, %s: exit status %d, %u sets", k->name, POLICIES[p], status,
                 stub->sets);
        CU_ASSERT(said("out.txt", "all restored") && as_before(k, 2));
        CU_ASSERT(left_behind(".record") == 0 && left_behind(".lock") == 0);
        char command[1400];
        snprintf(command, sizeof command, "'%s' verify '%s' > '%s'", FL_PROGRAM, log_path, fl_temp_path("out.txt"));
        FL_CHECK(system(command) == 0 && said("out.txt", ", 0 differ"), "%s: the log does not replay", k->name);
    }
}

/* Killed at any instant, in the middle of a set too: the guardian puts everything back. */
static void test_kill(void) {
    srand(7);
    EVERY_KIND(k)
    for (unsigned trial = 0; trial < (fl_nightly() ? 12 : 3); trial++) {
        fresh(k, 2);
        stub->set_us = 3000;
        const bool blind = !strcmp(k->vendor, "amd"); /* what random decides on cannot be read: it sets once */
        pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"),
                                              ARG(trial % 3 && !blind ? "random" : "assure"), ARG("--control"),
                                              ARG("--min-set-ms"), ARG("0"), NULL});
        UNTIL(stub->sets > trial / 2);
        wait_us(rand() % 5000);
        const unsigned sets = stub->sets;
        kill(pid, SIGKILL);
        exit_of(pid);
        UNTIL(!left_behind(".record"));
        FL_CHECK(sets > 0 && left_behind(".record") == 0, "%s, trial %u: %u sets, %d records", k->name, trial, sets,
                 left_behind(".record"));
        UNTIL(!left_behind(".lock"));
        FL_CHECK(as_before(k, 2), "%s, trial %u: not as before", k->name, trial);
        CU_ASSERT(FOLDLINE(ARG("restore")) == 0);
    }
}

/* Both killed: the record stays, and restore needs nobody to tell it whose GPU that is. */
static void test_restore_command(void) {
    EVERY_KIND(k) {
        fresh(k, 2);
        pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("random"),
                                              ARG("--control"), ARG("--min-set-ms"), ARG("0"), NULL});
        UNTIL(stub->sets >= 3);
        hold_still(pid);
        for (unsigned i = 0; i < stub->inits && i < STUB_INITS_MAX; i++)
            if (stub->init_pid[i] != pid)
                kill(stub->init_pid[i], SIGKILL);
        kill(pid, SIGKILL);
        exit_of(pid);
        FL_CHECK(left_behind(".record") == 2, "%s: %d records", k->name, left_behind(".record"));
        int status = FOLDLINE(ARG("restore"));
        FL_CHECK(status == 0 && said("out.txt", "2 records, 2 restored"), "%s: exit status %d", k->name, status);
        CU_ASSERT(as_before(k, 2) && left_behind(".record") == 0);
    }
}

/* ---- what may go wrong ------------------------------------------------------------------------------------------- */

static void test_no_permission(void) {
    EVERY_KIND(k) {
        fresh(k, 2);
        stub->gpu[0].set_code = stub->gpu[1].set_code = k->no_permission;
        int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--control"), ARG("--for"), ARG("2s"));
        FL_CHECK(status == 3 && lines_of("err.txt") == 1, "%s: exit status %d, %d lines", k->name, status,
                 lines_of("err.txt"));
        CU_ASSERT(said("err.txt", "no permission") && stub->sets == 0);
        CU_ASSERT(as_before(k, 2) && left_behind(".record") == 0 && left_behind(".lock") == 0);
    }
}

static void test_no_library(void) {
    EVERY_KIND(k) {
        fresh(k, 1);
        setenv(k->variable, "/nowhere/library.so", 1);
        for (int all = 0; all < 2; all++) {
            char *vendor = ARG(all                            ? "--vendor=auto"
                               : k == KINDS || k == KINDS + 1 ? "--vendor=intel"
                                                              : "--vendor=amd");
            for (int c = 0; c < 3; c++) {
                int status = c == 0   ? FOLDLINE(ARG("live"), vendor, ARG("--policy"), ARG("maxfreq"))
                             : c == 1 ? FOLDLINE(ARG("record"), vendor, ARG("-o"), log_path, ARG("--"), ARG("true"))
                                      : FOLDLINE(ARG("doctor"), vendor);
                FL_CHECK(status == 3 && lines_of("err.txt") == 1, "%s, command %d: exit status %d, %d lines", k->name,
                         c, status, lines_of("err.txt"));
                CU_ASSERT(said("err.txt", k->missing) && (!all || said("err.txt", "no NVIDIA management library")));
            }
        }
        fresh(k, 1);
        stub->init_code = k->init_code;
        int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"));
        FL_CHECK(status == 3 && lines_of("err.txt") == 1 && said("err.txt", "no driver that it can start"),
                 "%s: exit status %d, %d lines", k->name, status, lines_of("err.txt"));
        fresh(k, 0);
        CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq")) == 3 && said("err.txt", "lists none"));
    }
}

/* The table of what a library can read is what its back end reads: of the stub, which has it all but for memory
 * traffic, as to a user who is not root. */
static void test_table_of_signals(void) {
    EVERY_KIND(k) {
        fresh(k, 1);
        CU_ASSERT(FOLDLINE(ARG("doctor")) == 0);
        for (size_t id = 0; id < fl_rows_count(FL_ROWS_GPU_SIGNAL); id++) {
            char text[64];
            const char *name = fl_rows_at(FL_ROWS_GPU_SIGNAL, id)->name;
            snprintf(text, sizeof text, " %s=", name);
            if (id != FL_GPU_DRAM_BYTES && fl_vendor_reads(k->vendor) >> id & 1)
                FL_CHECK(said("out.txt", text), "%s does not read %s", k->name, name);
        }
    }
}

static void test_gpu_lost(void) {
    EVERY_KIND(k) {
        fresh(k, 2);
        const int told = strcmp(k->vendor, "intel") != 0; /* utilisation stands in for what that policy needs */
        stub->lost_after_sets = 5;
        int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("energyucb"), ARG("--control"), ARG("--for"),
                              ARG("120s"), ARG("--min-set-ms"), ARG("0"));
        FL_CHECK(status == 3 && lines_of("err.txt") == 1 + told, "%s: exit status %d, %d lines", k->name, status,
                 lines_of("err.txt"));
        CU_ASSERT(said("err.txt", "GPU 0: ") && (!told || said("err.txt", "instead of compute_ns, copy_ns")));
        FL_CHECK(left_behind(".record") == 1, "%s: %d records", k->name, left_behind(".record"));
        stub->lost_after_sets = 0;
        stub->gpu[0].code = 0;
        CU_ASSERT(FOLDLINE(ARG("restore")) == 0);
        CU_ASSERT(as_before(k, 2));
        fresh(k, 2); /* lost while it is only read */
        pid_t pid =
            foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--observe"), ARG("--for"), ARG("1h"), NULL});
        UNTIL(stub->reads > 4);
        stub->gpu[1].code = !strcmp(k->vendor, "intel") ? 0x70000001 : 3;
        status = exit_of(pid);
        FL_CHECK(status == 3 && said("err.txt", "GPU is lost"), "%s: exit status %d", k->name, status);
    }
}

static void test_frozen_sensor(void) {
    EVERY_KIND(k) {
        fresh(k, 1);
        stub->gpu[0].frozen = 1;
        int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("assure"), ARG("--control"), ARG("--for"), ARG("120s"),
                              ARG("--frozen-s"), ARG("0.4"));
        FL_CHECK(status == 3 && said("err.txt", "stood still"), "%s: exit status %d", k->name, status);
        CU_ASSERT(as_before(k, 1));
    }
}

/* ---- which vendor ------------------------------------------------------------------------------------------------ */

static void test_choice(void) {
    fl_gpus g = {0};
    fl_diag d = {0};
    fresh(&KINDS[0], 2);
    setenv("FOLDLINE_NVML", FL_STUB_NVML, 1);
    setenv("FOLDLINE_RSMI", FL_STUB_RSMI, 1);
    static const struct {
        const char *vendor, *list, *opened;
    } ROWS[] = {{NULL, NULL, "nvidia"},
                {"auto", "0", "nvidia"},
                {"intel", NULL, "intel"},
                {"amd", "1", "amd"},
                {NULL, "rsmi-0000000000abc001", "amd"},
                {NULL, "ze-80000000000000000000000000000000,ze-80000000000000000000000000000001", "intel"},
                {"auto", "GPU-00000000-stub-1", "nvidia"},
                {"auto", "all", "nvidia"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_status s = fl_vendor_open(&g, ROWS[i].vendor, ROWS[i].list, NULL, &d);
        FL_CHECK(!s && !strcmp(g.back->vendor, ROWS[i].opened), "row %zu: %s", i, s ? d.message : g.back->vendor);
        fl_gpus_close(&g);
    }
    CU_ASSERT(fl_vendor_open(&g, "intl", NULL, NULL, &d) == FL_BAD_INPUT && strstr(d.message, "did you mean 'intel'?"));
    CU_ASSERT(fl_vendor_open(&g, "amd", "7", NULL, &d) == FL_BAD_INPUT && strstr(d.message, "is none of the 2 GPUs"));
    CU_ASSERT(FOLDLINE(ARG("doctor")) == 0 && said("out.txt", "GPU 1: Stub GPU, GPU-00000000-stub-1"));
    CU_ASSERT(said("out.txt", "GPU 1: Stub Max, ze-80000000000000000000000000000001") &&
              said("out.txt", "GPU 0: Stub Instinct, rsmi-0000000000abc000"));
    CU_ASSERT(said("out.txt", "intel: library") && said("out.txt", "stub of ROCm SMI only, not yet on hardware"));
    setenv("FOLDLINE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    CU_ASSERT(FOLDLINE(ARG("doctor")) == 0 && said("out.txt", "none of the others: no NVIDIA management library"));
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--observe"), ARG("--for"), ARG("200ms")) == 0 && said("out.txt", "intel"));
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("--vendor"), ARG("amd"), ARG("-o"), log_path, ARG("--for"), ARG("300ms")) ==
              0);
    CU_ASSERT(said("log.csv", "# vendor: amd") && said("log.csv", "# gpu1: Stub Instinct") &&
              said("log.csv", "power_w"));
    CU_ASSERT(stub->sets == 0 && as_before(&KINDS[0], 2));
}

static const fl_case CASES[] = {{"Level Zero's units", test_ze_units},
                                {"ROCm SMI's units", test_rsmi_units},
                                {"sets and restores in the library's units", test_sets},
                                {"shadow sets nothing", test_shadow_sets_nothing},
                                {"control sets and restores", test_control_sets_and_restores},
                                {"KILL: the guardian restores", test_kill},
                                {"both killed: restore", test_restore_command},
                                {"no permission", test_no_permission},
                                {"no library, no driver, no GPU", test_no_library},
                                {"GPU lost", test_gpu_lost},
                                {"table of signals", test_table_of_signals},
                                {"frozen sensor", test_frozen_sensor},
                                {"which vendor", test_choice}};

static void open_stub(void) { stub_open(2); }

FL_SUITE_OF("live_vendors", CASES, .program = foldline_main, .open = open_stub, .close = stub_close)
