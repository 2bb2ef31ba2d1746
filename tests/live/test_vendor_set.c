/* What each vendor's back end sends to its library for a set, a prior value and a restore, call by call, with functions
 * of this file in the library's place. Every row runs twice, the second time without a diagnostic. */
#include "harness/live/vendor/nvml/inside.h"
#include "harness/live/vendor/rsmi/inside.h"
#include "harness/live/vendor/vendor.h"
#include "harness/live/vendor/ze/inside.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

enum { AT = 1 }; /* the GPU asked for; the library's own number of it is 7 */

typedef enum ask { SET, PRIOR, RESTORE } ask;

typedef struct row {
    const char *name;
    ask what;
    int control; /* PRIOR: bits of controls */
    double value;
    const char *prior;   /* "key=value key=value" */
    const char *fails;   /* "call=code call=code" */
    double off, off_top; /* what is read back is so far off; off_top: the top of a range */
    const char *with;    /* how the board is, of the words below */
    fl_status status;
    const char *calls; /* what the library was told, in order; PRIOR: the record */
    const char *says;  /* in the message of a failure */
} row;

static const row *now;
static char told[1000];

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...) {
    va_list list;
    const size_t at = strlen(told);
    if (at && at + 1 < sizeof told)
        strcat(told, " ");
    va_start(list, format);
    vsnprintf(told + strlen(told), sizeof told - strlen(told), format, list);
    va_end(list);
}

static bool with(const char *word) { return now->with && strstr(now->with, word) != NULL; }

/* The number behind "name=" in a list of them; `none` where the name is not in it. */
static int64_t number_of(const char *list, const char *name, int64_t none) {
    const size_t n = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!strncmp(at, name, n) && at[n] == '=')
            return strtoll(at + n + 1, NULL, 10);
    return none;
}

static int answer(const char *call) { return (int)number_of(now->fails, call, 0); }

static void fill(fl_record *r, const char *list) {
    for (const char *at = list; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        char key[64];
        const size_t n = strcspn(at, "=");
        snprintf(key, sizeof key, "%.*s", (int)n, at);
        CU_ASSERT(!fl_record_add(r, key, strtoll(at + n + 1, NULL, 10), NULL));
    }
}

typedef struct vendor {
    fl_status (*set)(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d);
    fl_status (*prior)(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d);
    fl_status (*restore)(void *self, uint32_t i, const fl_record *r, fl_diag *d);
} vendor;

static void play_once(const vendor *v, void *self, fl_diag *d) {
    fl_record r = {0};
    fl_status s;
    *told = '\0';
    if (now->what != PRIOR)
        fill(&r, now->prior);
    if (now->what == SET)
        s = v->set(self, AT, now->control, now->value, now->prior ? &r : NULL, d);
    else if (now->what == PRIOR)
        s = v->prior(self, AT, (uint64_t)now->control, &r, d);
    else
        s = v->restore(self, AT, &r, d);
    for (size_t i = 0; now->what == PRIOR && i < r.count; i++)
        tell("%s=%" PRId64, r.prior[i].key, r.prior[i].value);
    if (now->what == PRIOR)
        FL_CHECK(!strcmp(r.unit, "unit-1"), "%s: the record is of '%s'", now->name, r.unit);
    FL_CHECK(s == now->status, "%s: status %d, expected %d", now->name, (int)s, (int)now->status);
    FL_CHECK(!strcmp(told, now->calls), "%s: told '%s', expected '%s'", now->name, told, now->calls);
    if (d && s) {
        FL_CHECK(d->status == s, "%s: the diagnostic has status %d, not %d", now->name, (int)d->status, (int)s);
        FL_CHECK(now->says && strstr(d->message, now->says), "%s: it says '%s'", now->name, d->message);
    }
    fl_record_free(&r);
}

/* ---- NVML -------------------------------------------------------------------------------------------------------- */

static unsigned limit_mw;
static bool limit_set;

static unsigned number(fl_nvml_device at) { return (unsigned)(uintptr_t)at; }

#define NVML_PAIR(name)                                                                                                \
    static int name(fl_nvml_device at, unsigned low, unsigned high) {                                                  \
        tell(#name " %u %u %u", number(at), low, high);                                                                \
        return answer(#name);                                                                                          \
    }
#define NVML_ONE(name)                                                                                                 \
    static int name(fl_nvml_device at) {                                                                               \
        tell(#name " %u", number(at));                                                                                 \
        return answer(#name);                                                                                          \
    }
NVML_PAIR(lock_sm)
NVML_PAIR(lock_mem)
NVML_ONE(reset_sm)
NVML_ONE(reset_mem)

static int limit(fl_nvml_device at, unsigned *mw) {
    CU_ASSERT(number(at) == AT);
    *mw = limit_mw + (unsigned)(limit_set ? (int)now->off : 0);
    return answer("limit");
}
static int limit_default(fl_nvml_device at, unsigned *mw) {
    CU_ASSERT(number(at) == AT);
    *mw = 300000;
    return answer("limit_default");
}
static int set_limit(fl_nvml_device at, unsigned mw) {
    tell("set_limit %u %u", number(at), mw);
    limit_mw = mw;
    limit_set = true;
    return answer("set_limit");
}
static int set_records(uint32_t gpu, double value) {
    tell("records %u %g", gpu, value);
    return answer("records");
}

#define SM FL_SET_SM_MHZ
#define MEM FL_SET_MEM_MHZ
#define LIMIT FL_SET_POWER_LIMIT_W
#define BACK FL_DEFAULT
#define ALL (int)(FL_BIT(SM) | FL_BIT(MEM) | FL_BIT(LIMIT))
#define HW FL_HARDWARE
#define NVML_ALL "sm_lock=-1 mem_lock=-1 power_limit_mw=211000"
static const row NVML[] = {
    {"SM, rounded", SET, SM, 1200.4, 0, 0, 0, 0, 0, 0, "lock_sm 1 1200 1200", 0},
    {"SM back", SET, SM, BACK, 0, 0, 0, 0, 0, 0, "reset_sm 1", 0},
    {"SM refused", SET, SM, 900, 0, "lock_sm=4", 0, 0, 0, FL_IO, "lock_sm 1 900 900", "GPU 7: locking the SM clock"},
    {"SM lost", SET, SM, 900, 0, "lock_sm=15", 0, 0, 0, HW, "lock_sm 1 900 900", "GPU 7: locking the SM clock"},
    {"SM, no such call", SET, SM, 900, 0, 0, 0, 0, "bare", FL_IO, "", "locking the SM clock"},
    {"SM back, lost", SET, SM, BACK, 0, "reset_sm=999", 0, 0, 0, HW, "reset_sm 1", "unlocking the SM clock"},
    {"memory", SET, MEM, 809.6, 0, 0, 0, 0, 0, 0, "lock_mem 1 810 810", 0},
    {"memory back", SET, MEM, BACK, 0, 0, 0, 0, 0, 0, "reset_mem 1", 0},
    {"memory refused", SET, MEM, 810, 0, "lock_mem=3", 0, 0, 0, FL_IO, "lock_mem 1 810 810",
     "locking the memory clock"},
    {"memory back, refused", SET, MEM, BACK, 0, "reset_mem=3", 0, 0, 0, FL_IO, "reset_mem 1", "unlocking the memory"},
    {"limit, to the mW", SET, LIMIT, 150.2504, 0, 0, 0, 0, 0, 0, "set_limit 1 150250", 0},
    {"limit, so far off", SET, LIMIT, 150, 0, 0, 2500, 0, 0, 0, "set_limit 1 150000", 0},
    {"limit, so far below", SET, LIMIT, 150, 0, 0, -2500, 0, 0, 0, "set_limit 1 150000", 0},
    {"limit, too far off", SET, LIMIT, 150, 0, 0, 2501, 0, 0, HW, "set_limit 1 150000", "as 152501 mW after 150000 mW"},
    {"limit, too far below", SET, LIMIT, 150, 0, 0, -2501, 0, 0, HW, "set_limit 1 150000", "as 147499 mW"},
    {"limit refused", SET, LIMIT, 150, 0, "set_limit=4", 0, 0, 0, FL_IO, "set_limit 1 150000",
     "setting the power limit"},
    {"limit not read back", SET, LIMIT, 150, 0, "limit=4", 0, 0, 0, HW, "set_limit 1 150000", "limit back"},
    {"limit back", SET, LIMIT, BACK, NVML_ALL, 0, 0, 0, 0, 0, "set_limit 1 211000", 0},
    {"limit back, one mW off", SET, LIMIT, BACK, NVML_ALL, 0, 1, 0, 0, HW, "set_limit 1 211000", "as 211001 mW"},
    {"limit back to 0", SET, LIMIT, BACK, "power_limit_mw=0", 0, 0, 0, 0, 0, "set_limit 1 0", 0},
    {"limit back, none recorded", SET, LIMIT, BACK, "sm_lock=-1", 0, 0, 0, 0, 0, "set_limit 1 300000", 0},
    {"limit back, no record", SET, LIMIT, BACK, 0, 0, 0, 0, 0, 0, "set_limit 1 300000", 0},
    {"limit back to the default, off", SET, LIMIT, BACK, 0, 0, 1, 0, 0, HW, "set_limit 1 300000", "as 300001 mW"},
    {"no default", SET, LIMIT, BACK, 0, "limit_default=3", 0, 0, 0, FL_IO, "", "reading the default power limit"},
    {"records, real board", SET, FL_SET_RECORDS, 1, 0, 0, 0, 0, 0, 0, "", 0},
    {"records, simulated", SET, FL_SET_RECORDS, 1, 0, 0, 0, 0, "simulated", 0, "records 7 1", 0},
    {"records refused", SET, FL_SET_RECORDS, 0, 0, "records=3", 0, 0, "simulated", FL_IO, "records 7 0",
     "activity records"},
    {"prior of all", PRIOR, ALL, 0, 0, 0, 0, 0, 0, 0, "sm_lock=-1 mem_lock=-1 power_limit_mw=250000", 0},
    {"prior of SM", PRIOR, 1 << SM, 0, 0, 0, 0, 0, 0, 0, "sm_lock=-1", 0},
    {"prior of memory", PRIOR, 1 << MEM, 0, 0, 0, 0, 0, 0, 0, "mem_lock=-1", 0},
    {"prior of the limit", PRIOR, 1 << LIMIT, 0, 0, 0, 0, 0, 0, 0, "power_limit_mw=250000", 0},
    {"prior of none", PRIOR, 0, 0, 0, "limit=4", 0, 0, 0, 0, "", 0},
    {"no prior limit", PRIOR, ALL, 0, 0, "limit=3", 0, 0, 0, FL_IO, "sm_lock=-1 mem_lock=-1",
     "reading the power limit"},
    {"restore", RESTORE, 0, 0, NVML_ALL, 0, 0, 0, 0, 0, "reset_sm 1 reset_mem 1 set_limit 1 211000", 0},
    {"restore of nothing", RESTORE, 0, 0, "other=1", 0, 0, 0, 0, 0, "", 0},
    {"restore, one mW off", RESTORE, 0, 0, "power_limit_mw=9", 0, 1, 0, 0, HW, "set_limit 1 9", "as 10 mW after 9 mW"},
    {"unsupported locks were not set", RESTORE, 0, 0, NVML_ALL, "reset_sm=3 reset_mem=13", 0, 0, 0, 0,
     "reset_sm 1 reset_mem 1 set_limit 1 211000", 0},
    {"restore goes on, the first is told", RESTORE, 0, 0, NVML_ALL, "reset_sm=4 reset_mem=15", 0, 0, 0, FL_IO,
     "reset_sm 1 reset_mem 1 set_limit 1 211000", "unlocking the SM clock"},
    {"restore, memory fails", RESTORE, 0, 0, NVML_ALL, "reset_mem=15 set_limit=4", 0, 0, 0, HW,
     "reset_sm 1 reset_mem 1 set_limit 1 211000", "unlocking the memory clock"},
};

static void test_nvml(void) {
    for (size_t i = 0; i < 2 * (sizeof NVML / sizeof *NVML); i++) {
        now = &NVML[i / 2];
        fl_nvml_gpu gpu[2] = {{.handle = NULL, .index = 3, .unit = "unit-0"},
                              {.handle = (fl_nvml_device)(uintptr_t)1, .index = 7, .unit = "unit-1"}};
        fl_nvml_host h = {.gpu = gpu, .count = 2, .set_records = with("simulated") ? set_records : NULL};
        if (!with("bare")) {
            h.nvml.lock_sm = lock_sm;
            h.nvml.lock_mem = lock_mem;
            h.nvml.reset_sm = reset_sm;
            h.nvml.reset_mem = reset_mem;
            h.nvml.limit = limit;
            h.nvml.limit_default = limit_default;
            h.nvml.set_limit = set_limit;
        }
        limit_mw = 250000;
        limit_set = false;
        fl_diag d = {0};
        play_once(&(vendor){fl_nvml_set, fl_nvml_prior, fl_nvml_restore}, &h, i % 2 ? NULL : &d);
    }
}

/* ---- ROCm SMI ---------------------------------------------------------------------------------------------------- */

static uint64_t cap_uw, low_mhz, high_mhz;
static int level_now;
static bool range_set, cap_set, level_set;

static fl_rsmi_code r_clocks(uint32_t i, int clock, fl_rsmi_clocks *c) {
    CU_ASSERT(i == 7);
    if (with("unreadable")) /* neither layout */
        return FL_RSMI_OK;
    const fl_rsmi_clocks_5 sm = {3, 1, {500400000, 1000400000, 1500400000}}, mem = {2, 0, {400000000, 700000000}};
    c->old = clock == FL_RSMI_CLOCK_SM ? sm : mem;
    return answer("read_clocks");
}
static fl_rsmi_code r_set_clocks(uint32_t i, int clock, uint64_t mask) {
    CU_ASSERT(i == 7);
    tell("clocks %d %" PRIx64, clock, mask);
    return answer(clock ? "clocks4" : "clocks0");
}
static fl_rsmi_code r_overdrive(uint32_t i, fl_rsmi_overdrive *o) {
    CU_ASSERT(i == 7);
    o->sm.low = (uint64_t)(((double)low_mhz + (range_set ? now->off : 0)) * 1e6);
    o->sm.high = (uint64_t)(((double)high_mhz + (range_set ? now->off_top : 0)) * 1e6);
    return answer("read_range");
}
static fl_rsmi_code r_set_range(uint32_t i, uint64_t low, uint64_t high, int clock) {
    CU_ASSERT(i == 7 && clock == FL_RSMI_CLOCK_SM);
    tell("range %" PRIu64 " %" PRIu64, low, high);
    low_mhz = low;
    high_mhz = high;
    range_set = true;
    return answer("range");
}
static fl_rsmi_code r_level(uint32_t i, int *level) {
    CU_ASSERT(i == 7);
    *level = level_now + (level_set && with("stubborn"));
    return answer("read_level");
}
static fl_rsmi_code r_set_level(uint32_t i, int level) {
    CU_ASSERT(i == 7);
    tell("level %d", level);
    level_now = level;
    level_set = true;
    return answer("level");
}
static fl_rsmi_code r_cap(uint32_t i, uint32_t sensor, uint64_t *uw) {
    CU_ASSERT(i == 7 && sensor == 0);
    *uw = cap_uw + (uint64_t)(cap_set ? (int64_t)now->off : 0);
    return answer("read_cap");
}
static fl_rsmi_code r_cap_default(uint32_t i, uint64_t *uw) {
    CU_ASSERT(i == 7);
    *uw = 250000000;
    return answer("cap_default");
}
static fl_rsmi_code r_set_cap(uint32_t i, uint32_t sensor, uint64_t uw) {
    CU_ASSERT(i == 7 && sensor == 0);
    tell("cap %" PRIu64, uw);
    cap_uw = uw;
    cap_set = true;
    return answer("cap");
}

#define RSMI_RANGED "perf_level=5 sm_min_mhz=600 sm_max_mhz=1450 mem_allowed=-1 power_cap_uw=211000000"
#define RSMI_SETS "perf_level=5 sm_allowed=-1 mem_allowed=-1 power_cap_uw=211000000"
static const row RSMI[] = {
    {"SM, the second rung", SET, SM, 1000.2, 0, 0, 0, 0, 0, 0, "clocks 0 2", 0},
    {"memory", SET, MEM, 700, 0, 0, 0, 0, 0, 0, "clocks 4 2", 0},
    {"SM, no such rung", SET, SM, 1234, 0, 0, 0, 0, 0, HW, "", "GPU 7: locking the SM clock: 1234 MHz is no longer"},
    {"memory, no such rung", SET, MEM, 500, 0, 0, 0, 0, 0, HW, "", "locking the memory clock: 500 MHz"},
    {"SM back", SET, SM, BACK, 0, 0, 0, 0, 0, 0, "clocks 0 7", 0},
    {"SM back, nothing else held", SET, SM, BACK, RSMI_SETS, 0, 0, 0, "held-sm", 0, "clocks 0 7 level 5", 0},
    {"SM back, memory held", SET, SM, BACK, RSMI_SETS, 0, 0, 0, "held-mem", 0, "clocks 0 7", 0},
    {"memory back, SM held", SET, MEM, BACK, RSMI_SETS, 0, 0, 0, "held-sm", 0, "clocks 4 3", 0},
    {"memory back, nothing held", SET, MEM, BACK, RSMI_SETS, 0, 0, 0, "held-mem", 0, "clocks 4 3 level 5", 0},
    {"SM locked, no level", SET, SM, 500, RSMI_SETS, 0, 0, 0, 0, 0, "clocks 0 1", 0},
    {"level refused after the clocks", SET, SM, BACK, RSMI_SETS, "level=4", 0, 0, 0, HW, "clocks 0 7 level 5",
     "setting the performance level"},
    {"level not read back", SET, SM, BACK, RSMI_SETS, "read_level=4", 0, 0, 0, HW, "clocks 0 7 level 5", "level back"},
    {"another level", SET, SM, BACK, RSMI_SETS, 0, 0, 0, "stubborn", HW, "clocks 0 7 level 5",
     "performance level reads back as 6 after 5"},
    {"clocks not listed", SET, SM, 1000, 0, "read_clocks=4", 0, 0, 0, FL_IO, "", "locking the SM clock"},
    {"clocks lost", SET, SM, BACK, 0, "read_clocks=1", 0, 0, 0, HW, "", "unlocking the SM clock"},
    {"an unknown layout", SET, SM, 1000, 0, 0, 0, 0, "unreadable", FL_IO, "", "locking the SM clock"},
    {"clocks refused", SET, SM, 1000, 0, "clocks0=4", 0, 0, 0, FL_IO, "clocks 0 2", "locking the SM clock"},
    {"ranged", SET, SM, 1200.4, 0, 0, 0, 0, "ranged", 0, "range 1200 1200", 0},
    {"ranged, back", SET, SM, BACK, RSMI_RANGED, 0, 0, 0, "ranged", 0, "range 600 1450", 0},
    {"ranged, back without record", SET, SM, BACK, 0, 0, 0, 0, "ranged", 0, "range 500 1500", 0},
    {"ranged, memory", SET, MEM, 400, 0, 0, 0, 0, "ranged", 0, "clocks 4 1", 0},
    {"one MHz off", SET, SM, 1200, 0, 0, 1, -1, "ranged", 0, "range 1200 1200", 0},
    {"lowest too far off", SET, SM, 1200, 0, 0, 2, 0, "ranged", HW, "range 1200 1200",
     "lowest SM clock reads back as 1202"},
    {"lowest too far below", SET, SM, 1200, 0, 0, -2, 0, "ranged", HW, "range 1200 1200", "back as 1198 after 1200"},
    {"highest too far off", SET, SM, 1200, 0, 0, 0, 2, "ranged", HW, "range 1200 1200",
     "highest SM clock reads back as 1202 after 1200"},
    {"range refused", SET, SM, 1200, 0, "range=4", 0, 0, "ranged", FL_IO, "range 1200 1200", "7: locking the SM clock"},
    {"range back refused", SET, SM, BACK, 0, "range=4", 0, 0, "ranged", FL_IO, "range 500 1500",
     "unlocking the SM clock"},
    {"range not read back", SET, SM, 1200, 0, "read_range=4", 0, 0, "ranged", HW, "range 1200 1200", "range back"},
    {"cap", SET, LIMIT, 150.5, 0, 0, 0, 0, 0, 0, "cap 150500000", 0},
    {"cap below one watt", SET, LIMIT, 0.5, 0, 0, 0, 0, 0, 0, "cap 500000", 0},
    {"cap in whole watts", SET, LIMIT, 150.5, 0, 0, -500000, 0, 0, 0, "cap 150500000", 0},
    {"cap, so far off", SET, LIMIT, 150.5, 0, 0, 2500000, 0, 0, 0, "cap 150500000", 0},
    {"cap, too far off", SET, LIMIT, 150.5, 0, 0, 2500001, 0, 0, HW, "cap 150500000",
     "power limit in uW reads back as 153000001"},
    {"cap, too far below", SET, LIMIT, 150.5, 0, 0, -2500001, 0, 0, HW, "cap 150500000", "after 150500000 was set"},
    {"cap refused", SET, LIMIT, 150, 0, "cap=4", 0, 0, 0, FL_IO, "cap 150000000", "setting the power limit"},
    {"cap not read back", SET, LIMIT, 150, 0, "read_cap=4", 0, 0, 0, HW, "cap 150000000", "power limit back"},
    {"cap back", SET, LIMIT, BACK, RSMI_SETS, 0, 999999, 0, 0, 0, "cap 211000000", 0},
    {"cap back, a watt off", SET, LIMIT, BACK, RSMI_SETS, 0, 1000000, 0, 0, HW, "cap 211000000", "as 212000000 after"},
    {"cap back, none recorded", SET, LIMIT, BACK, "perf_level=5", 0, 0, 0, 0, 0, "cap 250000000", 0},
    {"no default", SET, LIMIT, BACK, 0, "cap_default=2", 0, 0, 0, FL_IO, "", "reading the default power limit"},
    {"records", SET, FL_SET_RECORDS, 1, 0, 0, 0, 0, 0, 0, "", 0},
    {"prior, sets", PRIOR, ALL, 0, 0, 0, 0, 0, 0, 0, "perf_level=3 sm_allowed=-1 mem_allowed=-1 power_cap_uw=240000000",
     0},
    {"prior, range", PRIOR, ALL, 0, 0, 0, 0, 0, "ranged", 0,
     "perf_level=3 sm_min_mhz=550 sm_max_mhz=1400 mem_allowed=-1 power_cap_uw=240000000", 0},
    {"prior of SM", PRIOR, 1 << SM, 0, 0, 0, 0, 0, 0, 0, "perf_level=3 sm_allowed=-1", 0},
    {"prior of memory", PRIOR, 1 << MEM, 0, 0, "read_range=1", 0, 0, "ranged", 0, "perf_level=3 mem_allowed=-1", 0},
    {"prior of the cap", PRIOR, 1 << LIMIT, 0, 0, "read_level=1", 0, 0, 0, 0, "power_cap_uw=240000000", 0},
    {"prior of none", PRIOR, 0, 0, 0, "read_level=1 read_cap=1", 0, 0, 0, 0, "", 0},
    {"no prior level", PRIOR, ALL, 0, 0, "read_level=4", 0, 0, 0, FL_IO, "", "reading what holds its clocks"},
    {"no prior range", PRIOR, ALL, 0, 0, "read_range=1", 0, 0, "ranged", HW, "", "reading what holds its clocks"},
    {"no prior cap", PRIOR, 1 << LIMIT, 0, 0, "read_cap=4", 0, 0, 0, FL_IO, "", "reading the power limit"},
    {"restore, range", RESTORE, 0, 0, RSMI_RANGED, 0, 0, 0, "ranged", 0,
     "range 600 1450 clocks 4 3 level 5 cap 211000000", 0},
    {"restore, sets", RESTORE, 0, 0, RSMI_SETS, 0, 0, 0, 0, 0, "clocks 0 7 clocks 4 3 level 5 cap 211000000", 0},
    {"restore of half a range", RESTORE, 0, 0, "sm_min_mhz=600", 0, 0, 0, "ranged", 0, "", 0},
    {"restore of nothing", RESTORE, 0, 0, 0, 0, 0, 0, 0, 0, "", 0},
    {"restore, cap a watt off", RESTORE, 0, 0, "power_cap_uw=9000000", 0, 1000000, 0, 0, HW, "cap 9000000",
     "as 10000000 after"},
    {"restore, range fails", RESTORE, 0, 0, RSMI_RANGED, "range=4 clocks4=1", 0, 0, "ranged", FL_IO,
     "range 600 1450 clocks 4 3 level 5 cap 211000000", "the SM clock"},
    {"restore, SM set fails", RESTORE, 0, 0, RSMI_SETS, "clocks0=4 cap=1", 0, 0, 0, FL_IO,
     "clocks 0 7 clocks 4 3 level 5 cap 211000000", "unlocking the SM clock"},
    {"restore, memory fails", RESTORE, 0, 0, RSMI_SETS, "clocks4=4 level=1", 0, 0, 0, FL_IO,
     "clocks 0 7 clocks 4 3 level 5 cap 211000000", "unlocking the memory clock"},
    {"restore, level fails", RESTORE, 0, 0, RSMI_SETS, "level=1 cap=4", 0, 0, 0, HW,
     "clocks 0 7 clocks 4 3 level 5 cap 211000000", "the performance level"},
    {"restore, cap fails", RESTORE, 0, 0, RSMI_SETS, "cap=1", 0, 0, 0, HW,
     "clocks 0 7 clocks 4 3 level 5 cap 211000000", "setting the power limit"},
};

static void test_rsmi(void) {
    static int32_t ladder[] = {500, 1000, 1500};
    for (size_t i = 0; i < 2 * (sizeof RSMI / sizeof *RSMI); i++) {
        now = &RSMI[i / 2];
        fl_rsmi_gpu gpu[2] = {{.index = 3, .unit = "unit-0"}, {.index = 7, .unit = "unit-1"}};
        fl_rsmi_host h = {.gpu = gpu, .count = 2};
        h.rsmi.clocks = r_clocks;
        h.rsmi.set_clocks = r_set_clocks;
        h.rsmi.overdrive = r_overdrive;
        h.rsmi.set_range = r_set_range;
        h.rsmi.level = r_level;
        h.rsmi.set_level = r_set_level;
        h.rsmi.cap = r_cap;
        h.rsmi.cap_default = r_cap_default;
        h.rsmi.set_cap = r_set_cap;
        gpu[1].ranged = with("ranged");
        gpu[1].held[0] = with("held-sm");
        gpu[1].held[1] = with("held-mem");
        gpu[1].sm = ladder;
        gpu[1].sm_count = 3;
        cap_uw = 240000000;
        low_mhz = 550;
        high_mhz = 1400;
        level_now = 3;
        range_set = cap_set = level_set = false;
        fl_diag d = {0};
        play_once(&(vendor){fl_rsmi_set, fl_rsmi_prior, fl_rsmi_restore}, &h, i % 2 ? NULL : &d);
    }
}

/* Both clocks locked, then handed back one by one: the level of before returns with the second, in either order. */
static void test_rsmi_level_last(void) {
    for (int first = 0; first < 2; first++) {
        static const row quiet = {.name = "level last"};
        now = &quiet;
        fl_rsmi_gpu gpu[2] = {{.index = 3}, {.index = 7}};
        fl_rsmi_host h = {.gpu = gpu, .count = 2};
        h.rsmi.clocks = r_clocks;
        h.rsmi.set_clocks = r_set_clocks;
        h.rsmi.level = r_level;
        h.rsmi.set_level = r_set_level;
        fl_record r = {0};
        fill(&r, RSMI_SETS);
        *told = '\0';
        CU_ASSERT(!fl_rsmi_set(&h, AT, SM, 1000, &r, NULL) && !fl_rsmi_set(&h, AT, MEM, 400, &r, NULL));
        CU_ASSERT(!fl_rsmi_set(&h, AT, first ? MEM : SM, BACK, &r, NULL));
        CU_ASSERT(!fl_rsmi_set(&h, AT, first ? SM : MEM, BACK, &r, NULL));
        FL_CHECK(!strcmp(told, first ? "clocks 0 2 clocks 4 1 clocks 4 3 clocks 0 7 level 5"
                                     : "clocks 0 2 clocks 4 1 clocks 0 7 clocks 4 3 level 5"),
                 "told '%s'", told);
        fl_record_free(&r);
    }
}

/* ---- Level Zero -------------------------------------------------------------------------------------------------- */

enum { POWER = 9, ENTRIES = 4 };
static fl_ze_range range_now[4];
static bool touched[4];
static fl_ze_limit entries[20];
static fl_ze_sustained plain;
static bool entry_set;

static unsigned part_number(fl_ze_part p) { return (unsigned)(uintptr_t)p; }

static fl_ze_code z_range(fl_ze_part p, fl_ze_range *out) {
    const unsigned n = part_number(p);
    char key[16];
    snprintf(key, sizeof key, "read%u", n);
    *out = range_now[n];
    if (touched[n]) {
        out->min = (out->min < 0 ? 300 : out->min) + now->off; /* the factory's after -1 */
        out->max = (out->max < 0 ? 1600 : out->max) + now->off_top;
    }
    return (fl_ze_code)answer(key);
}
static fl_ze_code z_set_range(fl_ze_part p, const fl_ze_range *in) {
    const unsigned n = part_number(p);
    char key[16];
    snprintf(key, sizeof key, "range%u", n);
    tell("range%u %g %g", n, in->min, in->max);
    const fl_ze_code code = (fl_ze_code)answer(key);
    if (!code) {
        range_now[n] = *in;
        touched[n] = true;
    }
    return code;
}
static fl_ze_code z_limits(fl_ze_part p, fl_ze_sustained *out, void *burst, void *peak) {
    CU_ASSERT(part_number(p) == POWER && !burst && !peak);
    *out = plain;
    out->mw += entry_set ? (int32_t)now->off : 0;
    return (fl_ze_code)answer(entry_set ? "limits_back" : "limits");
}
static fl_ze_code z_set_limits(fl_ze_part p, const fl_ze_sustained *in, const void *burst, const void *peak) {
    CU_ASSERT(part_number(p) == POWER && !burst && !peak);
    tell("plain %d %d", in->mw, in->enabled);
    plain = *in;
    entry_set = true;
    return (fl_ze_code)answer("set_limits");
}
static fl_ze_code z_limits_ext(fl_ze_part p, uint32_t *count, fl_ze_limit *out) {
    CU_ASSERT(part_number(p) == POWER && *count == 16);
    for (uint32_t i = 0; i < *count; i++) {
        CU_ASSERT(out[i].stype == FL_ZE_S_LIMIT);
        out[i] = entries[i];
        out[i].limit += entry_set ? (int32_t)now->off : 0;
    }
    *count = with("crowded") ? 20 : ENTRIES;
    return (fl_ze_code)answer("limits_ext");
}
static fl_ze_code z_set_limits_ext(fl_ze_part p, uint32_t *count, fl_ze_limit *in) {
    CU_ASSERT(part_number(p) == POWER);
    tell("ext%u", *count);
    for (uint32_t i = 0; i < *count; i++)
        if (in[i].limit != entries[i].limit || in[i].enabled != entries[i].enabled) {
            tell("#%u %d %d", i, in[i].limit, in[i].enabled);
            entries[i] = in[i];
        }
    entry_set = true;
    return (fl_ze_code)answer("set_limits_ext");
}

#define DENIED "1879113728" /* FL_ZE_NO_PERMISSION */
#define GONE "1879048193"   /* FL_ZE_LOST */
#define UNSUPPORTED "2013265923"
#define ZE_SM "sm_min_khz:0=600000 sm_max_khz:0=1450000 sm_min_khz:1=0 sm_max_khz:1=1400500"
#define ZE_LIMIT "power_limit_mw=211000 sustained_enabled=1"
static const row ZE[] = {
    {"SM, both tiles", SET, SM, 1000, 0, 0, 0, 0, 0, 0, "range1 1000 1000 range2 1000 1000", 0},
    {"memory", SET, MEM, 1300, 0, 0, 0, 0, 0, 0, "range3 1300 1300", 0},
    {"SM back", SET, SM, BACK, ZE_SM, 0, 0, 0, 0, 0, "range1 600 1450 range2 0 1400.5", 0},
    {"SM back, no record", SET, SM, BACK, 0, 0, 0, 0, 0, 0, "range1 -1 -1 range2 -1 -1", 0},
    {"SM back, half a record", SET, SM, BACK, "sm_min_khz:1=700000", 0, 0, 0, 0, 0, "range1 -1 -1 range2 700 -1", 0},
    {"one step off", SET, SM, 1000, 0, 0, 50, -50, 0, 0, "range1 1000 1000 range2 1000 1000", 0},
    {"too far off", SET, SM, 1000, 0, 0, 50.5, 0, 0, HW, "range1 1000 1000 range2 1000 1000",
     "GPU 7: sm clock reads back as 1050.5 MHz after 1000"},
    {"the top too far off", SET, SM, 1000, 0, 0, 0, -50.5, 0, HW, "range1 1000 1000 range2 1000 1000",
     "as 949.5 MHz after 1000"},
    {"memory has steps of its own", SET, MEM, 1300, 0, 0, 100, 0, 0, 0, "range3 1300 1300", 0},
    {"memory too far off", SET, MEM, 1300, 0, 0, 100.5, 0, 0, HW, "range3 1300 1300", "mem clock reads back as 1400.5"},
    {"refused: nothing else is tried", SET, SM, 1000, 0, "range1=" DENIED, 0, 0, 0, FL_IO, "range1 1000 1000",
     "locking the sm clock"},
    {"the second refused: something has changed", SET, SM, 1000, 0, "range2=" DENIED, 0, 0, 0, HW,
     "range1 1000 1000 range2 1000 1000", "locking the sm clock"},
    {"the first lost: the second is tried", SET, SM, BACK, 0, "range1=" GONE, 0, 0, 0, HW, "range1 -1 -1 range2 -1 -1",
     "unlocking the sm clock"},
    {"both fail: the first is told", SET, SM, 1000, 0, "read1=" GONE " range2=" GONE, 0, 0, 0, HW,
     "range1 1000 1000 range2 1000 1000", "reading the sm clock's range back"},
    {"back to a top of 0 is a lock", SET, MEM, BACK, "mem_min_khz:0=0 mem_max_khz:0=0", "range3=" GONE, 0, 0, 0, HW,
     "range3 0 0", ": locking the mem clock"},
    {"no such domain", SET, MEM, 1300, 0, 0, 0, 0, "no-mem", FL_IO, "", "setting a clock"},
    {"limit among others", SET, LIMIT, 150.2504, 0, 0, 0, 0, 0, 0, "ext4 #3 150250 1", 0},
    {"limit where more exist than are returned", SET, LIMIT, 150, 0, 0, 0, 0, "crowded", 0, "ext16 #3 150000 1", 0},
    {"limit that cannot be enabled", SET, LIMIT, 150, 0, 0, 0, 0, "fixed", 0, "ext4 #3 150000 0", 0},
    {"limit, the first of them", SET, LIMIT, 150, 0, 0, 0, 0, "sole", 0, "ext4 #0 150000 1", 0},
    {"limit not read back", SET, LIMIT, 150, 0, "limits_back=" GONE, 0, 0, "old", HW, "plain 150000 1",
     "reading the power limit back"},
    {"back to a bottom of 0 is checked", SET, MEM, BACK, "mem_min_khz:0=0 mem_max_khz:0=0", 0, 100.5, 0, 0, HW,
     "range3 0 0", "mem clock reads back as 100.5 MHz after 0"},
    {"limit of an old loader", SET, LIMIT, 150, 0, 0, 0, 0, "old", 0, "plain 150000 1", 0},
    {"limit, none of them sustained", SET, LIMIT, 150, 0, 0, 0, 0, "burst", 0, "plain 150000 1", 0},
    {"limit, so far off", SET, LIMIT, 150, 0, 0, 2500, 0, 0, 0, "ext4 #3 150000 1", 0},
    {"limit of an old loader, so far off", SET, LIMIT, 150, 0, 0, -2500, 0, "old", 0, "plain 150000 1", 0},
    {"limit, too far off", SET, LIMIT, 150, 0, 0, 2501, 0, "old", HW, "plain 150000 1", "as 152501 mW after 150000 mW"},
    {"limit refused", SET, LIMIT, 150, 0, "set_limits_ext=" DENIED, 0, 0, 0, FL_IO, "ext4 #3 150000 1",
     "setting the power limit"},
    {"limits not read", SET, LIMIT, 150, 0, "limits_ext=" DENIED, 0, 0, 0, FL_IO, "", "setting the power limit"},
    {"old limit refused", SET, LIMIT, 150, 0, "set_limits=" DENIED, 0, 0, "old", FL_IO, "plain 150000 1",
     "setting the power"},
    {"no power domain", SET, LIMIT, 150, 0, 0, 0, 0, "powerless", FL_IO, "", "setting the power limit"},
    {"limit back", SET, LIMIT, BACK, ZE_LIMIT, 0, 0, 0, "old", 0, "plain 211000 1", 0},
    {"limit back, it was not enabled", SET, LIMIT, BACK, "power_limit_mw=211000 sustained_enabled=0", 0, 9000, 0, "old",
     0, "plain 211000 0", 0},
    {"limit back, one mW off", SET, LIMIT, BACK, ZE_LIMIT, 0, 1, 0, "old", HW, "plain 211000 1", "as 211001 mW"},
    {"limit back to 0", SET, LIMIT, BACK, "power_limit_mw=0 sustained_enabled=1", 0, 0, 0, "old", 0, "plain 0 1", 0},
    {"limit back to none", SET, LIMIT, BACK, "power_limit_mw=-1 sustained_enabled=1", 0, 0, 0, "old", 0,
     "plain 300000 1", 0},
    {"limit back, no record", SET, LIMIT, BACK, 0, 0, 0, 0, "old", 0, "plain 300000 1", 0},
    {"the largest limit", SET, LIMIT, BACK, "power_limit_mw=2147483647 sustained_enabled=1", 0, 0, 0, "old", 0,
     "plain 2147483647 1", 0},
    {"no limit is larger", SET, LIMIT, BACK, "power_limit_mw=2147483648 sustained_enabled=1", 0, 0, 0, "old", 0,
     "plain 300000 1", 0},
    {"the least default", SET, LIMIT, BACK, 0, 0, 0, 0, "old least-default", 0, "plain 1 1", 0},
    {"no default", SET, LIMIT, BACK, 0, 0, 0, 0, "old no-default", FL_IO, "", "reading the default power limit"},
    {"records", SET, FL_SET_RECORDS, 1, 0, 0, 0, 0, 0, 0, "", 0},
    {"prior", PRIOR, ALL, 0, 0, 0, 0, 0, 0, 0,
     "sm_min_khz:0=650250 sm_max_khz:0=1350000 sm_min_khz:1=-1 sm_max_khz:1=0 mem_min_khz:0=0 mem_max_khz:0=-1 "
     "power_limit_mw=240000 sustained_enabled=0",
     0},
    {"prior of SM", PRIOR, 1 << SM, 0, 0, 0, 0, 0, 0, 0,
     "sm_min_khz:0=650250 sm_max_khz:0=1350000 sm_min_khz:1=-1 sm_max_khz:1=0", 0},
    {"prior of memory", PRIOR, 1 << MEM, 0, 0, 0, 0, 0, 0, 0, "mem_min_khz:0=0 mem_max_khz:0=-1", 0},
    {"prior limit, old", PRIOR, 1 << LIMIT, 0, 0, 0, 0, 0, "old", 0, "power_limit_mw=230000 sustained_enabled=1", 0},
    {"prior of none", PRIOR, 0, 0, 0, "read1=" GONE, 0, 0, "powerless", 0, "", 0},
    {"no prior range", PRIOR, ALL, 0, 0, "read2=" DENIED, 0, 0, 0, FL_IO, "sm_min_khz:0=650250 sm_max_khz:0=1350000",
     "reading a clock's range"},
    {"no prior limit", PRIOR, 1 << LIMIT, 0, 0, "limits=" GONE, 0, 0, "old", HW, "", "reading the power limit"},
    {"no domain, no prior limit", PRIOR, 1 << LIMIT, 0, 0, 0, 0, 0, "powerless", FL_IO, "", "reading the power limit"},
    {"restore", RESTORE, 0, 0, ZE_SM " mem_min_khz:0=-1 mem_max_khz:0=-1 " ZE_LIMIT, 0, 0, 0, "old", 0,
     "range1 600 1450 range2 0 1400.5 range3 -1 -1 plain 211000 1", 0},
    {"restore of SM", RESTORE, 0, 0, ZE_SM, 0, 0, 0, "old", 0, "range1 600 1450 range2 0 1400.5", 0},
    {"restore of memory", RESTORE, 0, 0, "mem_min_khz:0=400000 mem_max_khz:0=1300000", 0, 0, 0, "old", 0,
     "range3 400 1300", 0},
    {"restore of the limit", RESTORE, 0, 0, ZE_LIMIT, 0, 0, 0, "old", 0, "plain 211000 1", 0},
    {"restore of no limit", RESTORE, 0, 0, "power_limit_mw=-1 sustained_enabled=1", 0, 0, 0, "old", 0, "", 0},
    {"restore, one mW off", RESTORE, 0, 0, ZE_LIMIT, 0, 1, 0, "old", HW, "plain 211000 1", "as 211001 mW"},
    {"restore goes on", RESTORE, 0, 0, ZE_SM " mem_min_khz:0=-1 mem_max_khz:0=-1 " ZE_LIMIT,
     "range1=" GONE " range3=" DENIED, 0, 0, "old", HW, "range1 600 1450 range2 0 1400.5 range3 -1 -1 plain 211000 1",
     "the sm clock"},
    {"restore, memory fails", RESTORE, 0, 0, ZE_SM " mem_min_khz:0=-1 mem_max_khz:0=-1 " ZE_LIMIT,
     "range3=" DENIED " set_limits=" GONE, 0, 0, "old", FL_IO,
     "range1 600 1450 range2 0 1400.5 range3 -1 -1 plain 211000 1", "the mem clock"},
    {"restore, the limit fails", RESTORE, 0, 0, ZE_LIMIT, "set_limits=" DENIED, 0, 0, "old", FL_IO, "plain 211000 1",
     "the power limit"},
};

static void ze_board(fl_ze_host *h, fl_ze_gpu gpu[2]) {
    gpu[0] = (fl_ze_gpu){.index = 3, .unit = "unit-0"};
    gpu[1] = (fl_ze_gpu){.index = 7, .unit = "unit-1", .sm_step = 50, .mem_step = 100};
    *h = (fl_ze_host){.gpu = gpu, .count = 2};
    h->ze.clock_range = z_range;
    h->ze.set_clock_range = z_set_range;
    h->ze.limits = z_limits;
    h->ze.set_limits = z_set_limits;
    h->ze.limits_ext = z_limits_ext;
    h->ze.set_limits_ext = with("old") ? NULL : z_set_limits_ext;
    gpu[1].sm.count = 2;
    for (uintptr_t i = 0; i < 2; i++)
        gpu[1].sm.part[i] = (fl_ze_part)(i + 1);
    gpu[1].mem.count = !with("no-mem");
    gpu[1].mem.part[0] = (fl_ze_part)(uintptr_t)3;
    gpu[1].power = with("powerless") ? NULL : (fl_ze_part)(uintptr_t)POWER;
    gpu[1].limits.standard_mw = with("no-default") ? 0 : with("least-default") ? 1 : 300000;
    range_now[1] = (fl_ze_range){650.25, 1350};
    range_now[2] = (fl_ze_range){-1, 0};
    range_now[3] = (fl_ze_range){0, -1};
    memset(touched, 0, sizeof touched);
    memset(entries, 0, sizeof entries);
    /* Those before it are of another level, of another unit, and locked; only the last is the sustained limit. */
    entries[0] = (fl_ze_limit){.level = 0, .unit = FL_ZE_UNIT_POWER, .limit = 7000, .enabled = 1};
    entries[1] = (fl_ze_limit){.level = FL_ZE_SUSTAINED, .unit = 1, .limit = 9500000, .enabled = 1};
    entries[2] = (fl_ze_limit){
        .level = FL_ZE_SUSTAINED, .unit = FL_ZE_UNIT_POWER, .limit = 6000, .limit_locked = 1, .enabled = 1};
    entries[3] = (fl_ze_limit){.level = with("burst") ? 0 : FL_ZE_SUSTAINED,
                               .unit = FL_ZE_UNIT_POWER,
                               .limit = 240000,
                               .enabled_locked = with("fixed")};
    entries[4] =
        (fl_ze_limit){.level = FL_ZE_SUSTAINED, .unit = FL_ZE_UNIT_POWER, .limit = 5000}; /* beyond the count */
    if (with("sole"))
        entries[0] = entries[3];
    plain = (fl_ze_sustained){.enabled = 1, .mw = 230000, .interval_ms = 12};
    entry_set = false;
}

static void test_ze(void) {
    for (size_t i = 0; i < 2 * (sizeof ZE / sizeof *ZE); i++) {
        now = &ZE[i / 2];
        fl_ze_gpu gpu[2];
        fl_ze_host h;
        fl_diag d = {0};
        ze_board(&h, gpu);
        play_once(&(vendor){fl_ze_set, fl_ze_prior, fl_ze_restore}, &h, i % 2 ? NULL : &d);
        CU_ASSERT(plain.interval_ms == 12); /* what is not ours stays */
    }
}

static void test_ze_limit(void) {
    static const struct {
        row how;
        double w;
    } CASES[] = {{{.name = "newest"}, 240},
                 {{.name = "old", .with = "old"}, 230},
                 {{.name = "no power", .with = "powerless"}, NAN},
                 {{.name = "not read", .with = "old", .fails = "limits=" GONE}, NAN},
                 {{.name = "refused", .fails = "limits_ext=" DENIED},
                  NAN}, /* not for want of support, so the old call is no way */
                 {{.name = "unsupported", .fails = "limits_ext=" UNSUPPORTED}, 230}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        fl_ze_gpu gpu[2];
        fl_ze_host h;
        now = &CASES[i].how;
        ze_board(&h, gpu);
        const double w = fl_ze_limit_w(&h, AT);
        FL_CHECK(w == CASES[i].w || (isnan(w) && isnan(CASES[i].w)), "%s: %g W", now->name, w);
    }
}

FL_SUITE("vendor_set", {"NVML", test_nvml}, {"ROCm SMI", test_rsmi},
         {"ROCm SMI: the level comes last", test_rsmi_level_last}, {"Level Zero", test_ze},
         {"Level Zero: the limit", test_ze_limit})
