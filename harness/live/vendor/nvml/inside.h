/* Shared by the parts of the NVML back end. host.c opens it and joins them: nvml.c queries the clocks,
 * read.c reads, read.c sets and restores, nvml.c answers doctor. */
#pragma once

#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An extra symbol of the simulated NVML library: the switch of the collector in its simulated programs; on hardware the
 * programs carry the collector themselves. It delivers no signal: the host reads all signals by NVML's calls. A real
 * library has no such symbol. Returns FL_NVML_OK or a code of NVML. */

/* "foldlineSetRecords": activity records of a GPU, on or off. */
typedef int fl_extension_set_records(uint32_t gpu, double value);

/* The vendor's management library, opened at run time, with own declarations of the calls that Foldline makes and
 * without an SDK.
 *
 * Names of symbols, codes, layouts and units are those of the public interface (NVML 11.3 to 13.3). Of a call that
 * exists in several versions the newest is used; an optional call that is absent is NULL. Clocks are in MHz, power in
 * mW, energy in mJ. Every call returns an fl_nvml_code. */

typedef struct fl_nvml_device_ *fl_nvml_device; /* the library's handle of a GPU */
typedef struct fl_nvml_sample_ *fl_nvml_sample; /* its buffer of profiling counters */

enum { /* results of calls */
       FL_NVML_OK = 0,
       FL_NVML_UNINITIALIZED = 1,
       FL_NVML_INVALID_ARGUMENT = 2,
       FL_NVML_NOT_SUPPORTED = 3,
       FL_NVML_NO_PERMISSION = 4,
       FL_NVML_INSUFFICIENT_SIZE = 7,
       FL_NVML_DRIVER_NOT_LOADED = 9,
       FL_NVML_FUNCTION_NOT_FOUND = 13,
       FL_NVML_GPU_IS_LOST = 15,
       FL_NVML_RESET_REQUIRED = 16,
       FL_NVML_MISMATCH = 18,
       FL_NVML_UNKNOWN = 999
};
enum { FL_NVML_CLOCK_SM = 1, FL_NVML_CLOCK_MEM = 2 };

typedef struct fl_nvml_utilisation {
    unsigned gpu, memory; /* percent */
} fl_nvml_utilisation;

typedef struct fl_nvml_temperature {
    unsigned version; /* FL_NVML_TEMPERATURE_VERSION */
    unsigned sensor;
    int celsius;
} fl_nvml_temperature;

typedef struct fl_nvml_violation {
    unsigned long long reference_us, violation_ns;
} fl_nvml_violation;

typedef union fl_nvml_value {
    double real;
    unsigned u;
    unsigned long ul;
    unsigned long long ull;
    long long ll;
} fl_nvml_value;

typedef struct fl_nvml_field {
    unsigned id, scope;
    long long time_us, latency_us;
    unsigned type;
    int code;
    fl_nvml_value value;
} fl_nvml_field;

typedef struct fl_nvml_metric {
    unsigned id;
    int code;
    double value;
    const char *text[3];
} fl_nvml_metric;

enum { FL_NVML_METRICS_MAX = 333 }; /* 98, 210 or 333 by the header's age: a library may write that many */

typedef struct fl_nvml_metrics { /* the caller requests metric[0..count) */
    unsigned version, count;
    fl_nvml_sample first, second;
    fl_nvml_metric metric[FL_NVML_METRICS_MAX];
} fl_nvml_metrics;

typedef struct fl_nvml_support {
    unsigned version, supported;
} fl_nvml_support;

_Static_assert(sizeof(fl_nvml_field) == 40 && sizeof(fl_nvml_metric) == 40 && sizeof(fl_nvml_violation) == 16 &&
                   sizeof(fl_nvml_temperature) == 12,
               "layouts are those of the interface");

/* X(member, required, parameters, newest symbol, older symbol or NULL) */
#define FL_NVML_CALLS(X)                                                                                               \
    X(init, 1, (void), "nvmlInit_v2", "nvmlInit")                                                                      \
    X(shutdown, 1, (void), "nvmlShutdown", NULL)                                                                       \
    X(count, 1, (unsigned *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                                           \
    X(by_index, 1, (unsigned, fl_nvml_device *), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")        \
    X(uuid, 1, (fl_nvml_device, char *, unsigned), "nvmlDeviceGetUUID", NULL)                                          \
    X(name, 0, (fl_nvml_device, char *, unsigned), "nvmlDeviceGetName", NULL)                                          \
    X(driver, 0, (char *, unsigned), "nvmlSystemGetDriverVersion", NULL)                                               \
    X(utilisation, 0, (fl_nvml_device, fl_nvml_utilisation *), "nvmlDeviceGetUtilizationRates", NULL)                  \
    X(clock, 0, (fl_nvml_device, int, unsigned *), "nvmlDeviceGetClockInfo", NULL)                                     \
    X(max_clock, 0, (fl_nvml_device, int, unsigned *), "nvmlDeviceGetMaxClockInfo", NULL)                              \
    X(power, 0, (fl_nvml_device, unsigned *), "nvmlDeviceGetPowerUsage", NULL)                                         \
    X(energy, 0, (fl_nvml_device, unsigned long long *), "nvmlDeviceGetTotalEnergyConsumption", NULL)                  \
    X(temperature_v, 0, (fl_nvml_device, fl_nvml_temperature *), "nvmlDeviceGetTemperatureV", NULL)                    \
    X(temperature, 0, (fl_nvml_device, int, unsigned *), "nvmlDeviceGetTemperature", NULL)                             \
    X(reasons, 0, (fl_nvml_device, unsigned long long *), "nvmlDeviceGetCurrentClocksEventReasons",                    \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                                                     \
    X(violation, 0, (fl_nvml_device, int, fl_nvml_violation *), "nvmlDeviceGetViolationStatus", NULL)                  \
    X(fields, 0, (fl_nvml_device, int, fl_nvml_field *), "nvmlDeviceGetFieldValues", NULL)                             \
    X(mem_clocks, 0, (fl_nvml_device, unsigned *, unsigned *), "nvmlDeviceGetSupportedMemoryClocks", NULL)             \
    X(sm_clocks, 0, (fl_nvml_device, unsigned, unsigned *, unsigned *), "nvmlDeviceGetSupportedGraphicsClocks", NULL)  \
    X(lock_sm, 0, (fl_nvml_device, unsigned, unsigned), "nvmlDeviceSetGpuLockedClocks", NULL)                          \
    X(reset_sm, 0, (fl_nvml_device), "nvmlDeviceResetGpuLockedClocks", NULL)                                           \
    X(lock_mem, 0, (fl_nvml_device, unsigned, unsigned), "nvmlDeviceSetMemoryLockedClocks", NULL)                      \
    X(reset_mem, 0, (fl_nvml_device), "nvmlDeviceResetMemoryLockedClocks", NULL)                                       \
    X(limit, 0, (fl_nvml_device, unsigned *), "nvmlDeviceGetPowerManagementLimit", NULL)                               \
    X(limit_range, 0, (fl_nvml_device, unsigned *, unsigned *), "nvmlDeviceGetPowerManagementLimitConstraints", NULL)  \
    X(limit_default, 0, (fl_nvml_device, unsigned *), "nvmlDeviceGetPowerManagementDefaultLimit", NULL)                \
    X(set_limit, 0, (fl_nvml_device, unsigned), "nvmlDeviceSetPowerManagementLimit", NULL)                             \
    X(persistence, 0, (fl_nvml_device, int *), "nvmlDeviceGetPersistenceMode", NULL)                                   \
    X(virtualization, 0, (fl_nvml_device, int *), "nvmlDeviceGetVirtualizationMode", NULL)                             \
    X(mig, 0, (fl_nvml_device, unsigned *, unsigned *), "nvmlDeviceGetMigMode", NULL)                                  \
    X(gpm_support, 0, (fl_nvml_device, fl_nvml_support *), "nvmlGpmQueryDeviceSupport", NULL)                          \
    X(gpm_alloc, 0, (fl_nvml_sample *), "nvmlGpmSampleAlloc", NULL)                                                    \
    X(gpm_free, 0, (fl_nvml_sample), "nvmlGpmSampleFree", NULL)                                                        \
    X(gpm_get, 0, (fl_nvml_device, fl_nvml_sample), "nvmlGpmSampleGet", NULL)                                          \
    X(gpm_metrics, 0, (fl_nvml_metrics *), "nvmlGpmMetricsGet", NULL)

#define FL_ROW_NVML_MEMBER(member, must, parameters, newest, older) int(*member) parameters;
typedef struct fl_nvml {
    void *library;
    char path[256];           /* the name under which it was requested */
    const char *(*text)(int); /* nvmlErrorString; may be NULL */
    FL_NVML_CALLS(FL_ROW_NVML_MEMBER)
} fl_nvml;

/* Opens $FOLDLINE_NVML where set, else libnvidia-ml.so.1, and initialises it. FL_HARDWARE, with one line that names
 * what is missing: the library, a call, or the driver. Accepts a zeroed struct; leaves it zeroed on failure. */
fl_status fl_nvml_open(fl_nvml *n, fl_diag *d);
void fl_nvml_close(fl_nvml *n);

/* The meaning of a code, in the library's words where it has some. */
const char *fl_nvml_reason(const fl_nvml *n, int code);

/* The GPU or its driver is gone: no later call will succeed. */
int fl_nvml_gone(int code);

/* When does a counter step next, that steps evenly but shows it only to those who read it? Each step is known to lie
 * between two readings, the last that showed the old value and the first that showed the new one. Steps are numbered;
 * an even beat that goes through all of these spans bounds the time of each later step. The more steps lie between the
 * first span and the last, the closer the period is known; the phase is known as closely as the readings allow.
 *
 * A step may come a twenty-fifth of the period beside the beat: on an H200 most come 98 to 102 ms apart
 * (tests/hardware). The older a span is, the less it tells, and after 512 steps nothing, so that a
 * beat that drifts is followed. */

enum { FL_BEAT_KEPT = 64 };

typedef struct fl_span { /* one step came after after_ns and by by_ns */
    int64_t number, after_ns, by_ns;
} fl_span;

typedef struct fl_beat {        /* plain zero: nothing known; no pointers, owned by whoever declares it */
    fl_span span[FL_BEAT_KEPT]; /* the last ones, in rotation */
    uint64_t count;             /* of all spans so far */
    int64_t period_ns;          /* about; 0 before the second span */
} fl_beat;

/* When is a slow counter worth reading? On an H200 the energy counter steps each 100 ms, and reading it takes 2 to 6 ms
 * of processor time (tests/hardware): a policy that reads each 2 ms took 44 % of a core, one that reads each 20 ms a
 * quarter. So its beat is learned (inside.h) from readings that follow each other within less than half a step, and the
 * counter is then read only when its next step can have come.
 *
 * needed: no step is left out, and none is shown later than if the counter were read each time.
 *
 * spare: whoever reads can do without, so in the long run readings take at most 1.5 % of the time. Whole steps are left
 * out; where a step has surely come and the next one surely not, one reading tells its value, and the beat tells its
 * time. From time to time one step is watched from before it can come until it is seen: where it has already come, or
 * stays away, the beat is learned again. Learning lasts 2 s at most, and begins again after two minutes at the
 * earliest, or after four times as long each time that no beat was found. Of a counter without a beat a step is watched
 * as often as the budget allows: only a step that was seen to come has a time.
 * Whatever is known of it, it is read after 6 s at the latest, so that a counter that stands still is found.
 *
 * A counter that is quick to read, and a needed one without a beat, is read each time. */

typedef struct fl_pace { /* plain zero: nothing known, needed; no pointers. Times are those of the readings */
    bool spare;          /* set by the owner, before the first reading: whoever reads can do without */
    double value;        /* what it shows */
    int64_t moved_ns;    /* when it came to show that, never falling: by the beat, else the reading that showed it */
    bool timed;          /* moved_ns is known: else several readings or steps were left out before that one */

    /* ---- inside ---- */
    double read;                         /* what its last reading showed */
    int64_t read_ns, asked_ns, apart_ns; /* the last reading; the last time anybody asked; and how long since before */
    int64_t cost_ns;                     /* the quickest reading so far */
    int64_t paid_ns;                     /* spare: the budget allows no reading before */
    int64_t began_ns, again_ns;          /* when learning last began, and how long after that it may begin again */
    int64_t usual_ns;                    /* the period of the beat before; 0: there was none */
    fl_beat beat;
    int64_t number, step_ns; /* of the last step that is known to have come, and its likely time */
    int64_t watched;         /* the last step that was seen to come */
    int64_t next_ns;         /* it is not read before: the next step cannot have come */
    uint32_t unseen;         /* steps since one was seen to be still away shortly before it came */
    uint32_t free;           /* readings left that the budget does not count */
    uint32_t starved;        /* spare: times that somebody asked when the step could not be told from the next one;
                                needed: moves in a row of unknown time */
    uint32_t left;           /* without a beat: readings left to see a step come; 0 = none is watched */
    bool known, locked, watching, lost; /* lost: which step it shows is not known until the next one is seen */
} fl_pace;

/* Whether a reading at t_ns can be left out: value and moved_ns stand as they are. */
bool fl_pace_rests(fl_pace *p, int64_t t_ns);
/* What a reading at t_ns showed, and how long it took; each after an fl_pace_rests at the same t_ns that was false. */
void fl_pace_read(fl_pace *p, int64_t t_ns, double value, int64_t cost_ns);

enum { FL_NVML_GPM_KEPT = 3 };

typedef struct fl_nvml_gpu {
    fl_nvml_device handle;
    unsigned index;
    char unit[FL_UNIT_MAX], name[96];
    int32_t *sm, *mem; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    fl_seen last[FL_GPU_SIGNAL_COUNT];
    fl_pace energy;
    fl_nvml_sample gpm[FL_NVML_GPM_KEPT]; /* the last ones, in rotation */
    int64_t gpm_ns[FL_NVML_GPM_KEPT];
    uint64_t gpm_taken;
    bool gpm_known, gpm_off;
} fl_nvml_gpu;

typedef struct fl_nvml_host {
    fl_nvml nvml;
    char driver[80];
    fl_nvml_gpu *gpu;
    uint32_t count;
    uint64_t spared;                       /* signals that whoever reads can do without */
    fl_extension_set_records *set_records; /* of a simulated session; else NULL */
} fl_nvml_host;

/* FL_NVML_FUNCTION_NOT_FOUND where the library has no such call. */
#define FL_NVML_CALL(h, member, ...) ((h)->nvml.member ? (h)->nvml.member(__VA_ARGS__) : FL_NVML_FUNCTION_NOT_FOUND)

/* FL_IO where the driver refused and nothing changed (no permission, not supported), else FL_HARDWARE. */
fl_status fl_nvml_failed(fl_nvml_host *h, const fl_nvml_gpu *g, const char *what, int code, fl_diag *d);

/* The clocks that a GPU lists, as ladders (nvml.c). FL_NO_MEMORY, else FL_OK, even where it lists none. */
fl_status fl_nvml_ladders(fl_nvml_host *h, fl_nvml_gpu *g, fl_diag *d);

/* As in fl_backend. */
fl_status fl_nvml_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d);
fl_status fl_nvml_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d);
fl_status fl_nvml_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d);
fl_status fl_nvml_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d);
const char *fl_nvml_hindrance(void *self, uint32_t i, int control);
double fl_nvml_limit_w(void *self, uint32_t i);
bool fl_nvml_note(void *self, uint32_t i, unsigned index, char *text, size_t size);
