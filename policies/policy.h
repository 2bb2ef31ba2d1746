/* The contract between a clock policy and its host.
 *
 * One policy instance drives one node: its GPUs and its host CPU. The host owns time, I/O, clamping and memory; a
 * policy only decides. It never learns whether the host is a simulator, a recorded log or a machine.
 *
 * A policy file includes this header, libm, policies/random.h and helpers of its own, nothing else, and ends in one
 * descriptor (policies/skeleton.c is a short policy to copy):
 *
 *     FL_POLICY(mine) = {FL_POLICY_ABI, .name = "mine", ..., .init = init, .step = step};
 *
 * Rules: no I/O, no clock, no allocation, no writable globals. State is plain bytes lent by the host: zeroed before
 * init, copyable at any time between steps, so it holds no pointers. Any signal may be invalid at any step; a policy
 * survives it.
 *
 * Units: clocks in MHz, power in W, energy in J, utilisation in percent as the hardware reports it, times in int64 ns.
 */
#ifndef FL_POLICY_H
#define FL_POLICY_H

#include "policies/policy_server.h" /* what only a policy for servers needs */

#include <stddef.h>
#include <stdint.h>

/* ---- signals ------------------------------------------------------------------------------------------------------
 * X(ID, name, unit, kind, meaning). Kinds: GAUGE, the value at its last refresh; MEAN, over the sensor's own window;
 * COUNTER, accumulates and never falls (the host unwraps; after a reset it is invalid for one step). */
#define FL_GPU_SIGNALS(X)                                                                                              \
    X(POWER_W, power_w, "W", GAUGE, "board power as the sensor reports it")                                            \
    X(POWER_INSTANT_W, power_instant_w, "W", GAUGE, "board power from the instantaneous field, where there is one")    \
    X(ENERGY_J, energy_j, "J", COUNTER, "board energy counter")                                                        \
    X(ENERGY_NS, energy_ns, "ns", COUNTER, "time at which the energy counter was last updated")                        \
    X(UTIL_GPU_PCT, util_gpu_pct, "%", MEAN, "share of the window with a kernel resident")                             \
    X(UTIL_MEM_PCT, util_mem_pct, "%", MEAN, "share of the window with the memory controller active")                  \
    X(COMPUTE_NS, compute_ns, "ns", COUNTER, "time with a compute engine active")                                      \
    X(COPY_NS, copy_ns, "ns", COUNTER, "time with a copy engine active")                                               \
    X(SM_ACTIVE_PCT, sm_active_pct, "%", MEAN, "SMs with a warp resident, mean over SMs and window")                   \
    X(DRAM_ACTIVE_PCT, dram_active_pct, "%", MEAN, "cycles the DRAM interface moved data")                             \
    X(DRAM_BYTES, dram_bytes, "B", COUNTER, "bytes moved to and from device memory")                                   \
    X(ALU_BUSY_PCT, alu_busy_pct, "%", MEAN, "share of GPU time in which ALU instructions are processed")              \
    X(GPU_CLOCK_BUSY_PCT, gpu_clock_busy_pct, "%", MEAN, "share of time with at least one SIMD active")                \
    X(SM_MHZ, sm_mhz, "MHz", GAUGE, "achieved SM clock")                                                               \
    X(MEM_MHZ, mem_mhz, "MHz", GAUGE, "achieved memory clock")                                                         \
    X(TEMP_C, temp_c, "C", GAUGE, "GPU temperature")                                                                   \
    X(THROTTLE, throttle, "bits", GAUGE, "reasons that hold the clock below the lock, FL_THROTTLE_*")                  \
    X(POWER_VIOLATION_NS, power_violation_ns, "ns", COUNTER, "time held back by the power limit")                      \
    X(THERMAL_VIOLATION_NS, thermal_violation_ns, "ns", COUNTER, "time held back by the thermal limit")                \
    X(KERNELS, kernels, "", COUNTER, "kernels finished")                                                               \
    X(ITERATIONS, iterations, "", COUNTER, "iteration markers passed by the program")

#define FL_HOST_SIGNALS(X)                                                                                             \
    X(LOOP_NS, loop_ns, "ns", GAUGE, "how long the host's last loop took, readings and sets included")                 \
    X(CPU_MHZ, cpu_mhz, "MHz", GAUGE, "achieved CPU clock, mean over cores")                                           \
    X(CPU_UTIL_PCT, cpu_util_pct, "%", MEAN, "share of CPU time not idle")                                             \
    X(CPU_UOPS, cpu_uops, "", COUNTER, "micro-operations retired, all cores")                                          \
    X(CPU_CYCLES, cpu_cycles, "", COUNTER, "unhalted cycles, all cores; uops over cycles is the clock-weighted UPC")   \
    X(CPU_MEM_BYTES, cpu_mem_bytes, "B", COUNTER, "bytes moved to and from host memory")                               \
    X(CPU_ENERGY_J, cpu_energy_j, "J", COUNTER, "CPU package energy")                                                  \
    X(NODE_POWER_W, node_power_w, "W", GAUGE, "node power meter")                                                      \
    X(NODE_ENERGY_J, node_energy_j, "J", COUNTER, "node energy meter")                                                 \
    X(TARGET_W, target_w, "W", GAUGE, "power that the node's GPUs are to draw together, as a grid or a budget asks")

/* Events for which a step may come before its delay is over: X(ID, name, meaning). */
#define FL_WAKES(X) X(MARKER, marker, "a GPU passed an iteration marker")

/* ---- controls -----------------------------------------------------------------------------------------------------
 * X(ID, name, unit, meaning). FL_DEFAULT hands the control back to the driver or the operating system. */
#define FL_GPU_CONTROLS(X)                                                                                             \
    X(SM_MHZ, sm_mhz, "MHz", "lock the SM clock")                                                                      \
    X(MEM_MHZ, mem_mhz, "MHz", "lock the memory clock")                                                                \
    X(POWER_LIMIT_W, power_limit_w, "W", "board power limit")                                                          \
    X(RECORDS, records, "", "collect activity records: 1 on, 0 off (collecting costs time)")

#define FL_HOST_CONTROLS(X)                                                                                            \
    X(CPU_MHZ, cpu_mhz, "MHz", "CPU clock")                                                                            \
    X(CPU_BOOST, cpu_boost, "", "hardware boost states allowed: 1 yes, 0 no")                                          \
    X(CPU_POWER_LIMIT_W, cpu_power_limit_w, "W", "CPU package power limit")

#define FL_DEFAULT (-1.0)

enum { /* bits of the throttle signal */
       FL_THROTTLE_POWER = 1,
       FL_THROTTLE_THERMAL = 2,
       FL_THROTTLE_IDLE = 4,
       FL_THROTTLE_OTHER = 8
};

typedef enum fl_signal_kind { FL_GAUGE, FL_MEAN, FL_COUNTER } fl_signal_kind;

#define FL_ROW_GPU_SIGNAL_ID(id, ...) FL_GPU_##id,
#define FL_ROW_HOST_SIGNAL_ID(id, ...) FL_HOST_##id,
#define FL_ROW_WAKE_ID(id, ...) FL_WAKE_##id,
#define FL_ROW_GPU_CONTROL_ID(id, ...) FL_SET_##id,
#define FL_ROW_HOST_CONTROL_ID(id, ...) FL_SET_HOST_##id,
enum { FL_GPU_SIGNALS(FL_ROW_GPU_SIGNAL_ID) FL_GPU_SIGNAL_COUNT };
enum { FL_HOST_SIGNALS(FL_ROW_HOST_SIGNAL_ID) FL_HOST_SIGNAL_COUNT };
enum { FL_WAKES(FL_ROW_WAKE_ID) FL_WAKE_COUNT };
enum { FL_GPU_CONTROLS(FL_ROW_GPU_CONTROL_ID) FL_GPU_CONTROL_COUNT };
enum { FL_HOST_CONTROLS(FL_ROW_HOST_CONTROL_ID) FL_HOST_CONTROL_COUNT };

#define FL_BIT(id) (UINT64_C(1) << (id))

/* ---- what a policy reads ------------------------------------------------------------------------------------------
 * One row for each signal, in a table of the descriptor. The host measures and logs what the table names.
 *
 *     static const fl_signal_row signal_rows[] = {
 *         FL_NEEDS(GPU_POWER_W),                   without it the policy cannot decide; the host says so
 *         FL_USES(GPU_SM_MHZ),                     read where the machine has it; the policy does without
 *         FL_INSTEAD(GPU_ENERGY_J, GPU_POWER_W),   read where the machine lacks power_w, which a row needs
 *     };
 *
 * Names are GPU_, HOST_ or SERVER_ and the ID of a signal; KERNEL_RECORDS, which are then on from the start; and
 * ENGINE_STEPS, records of the steps of a server's engine. FL_USES takes no HOST_ signal and no KERNEL_RECORDS,
 * FL_NEEDS takes no ENGINE_STEPS. FL_INSTEAD is for signals of a GPU: where a needed one is missing, the host reads all
 * rows that are instead of it, if the machine has them. */
#define FL_ROW_SIGNAL_GPU(id, ...) FL_SIGNAL_GPU_##id,
#define FL_ROW_SIGNAL_HOST(id, ...) FL_SIGNAL_HOST_##id,
#define FL_ROW_SIGNAL_SERVER(id, ...) FL_SIGNAL_SERVER_##id,
enum {
    FL_GPU_SIGNALS(FL_ROW_SIGNAL_GPU) FL_HOST_SIGNALS(FL_ROW_SIGNAL_HOST) FL_SERVER_SIGNALS(FL_ROW_SIGNAL_SERVER)
        FL_SIGNAL_KERNEL_RECORDS,
    FL_SIGNAL_ENGINE_STEPS,
    FL_SIGNAL_COUNT
};
enum { FL_NEEDED, FL_USED, FL_INSTEAD_OF };

typedef struct fl_signal_row {
    uint32_t signal, how, instead_of; /* FL_SIGNAL_..., FL_NEEDED and so on; the signal that it is read instead of */
} fl_signal_row;

#define FL_NEEDS(name_) {.signal = FL_SIGNAL_##name_, .how = FL_NEEDED}
#define FL_USES(name_) {.signal = FL_SIGNAL_##name_, .how = FL_USED}
#define FL_INSTEAD(name_, of_)                                                                                         \
    {.signal = FL_SIGNAL_##name_, .how = FL_INSTEAD_OF, .instead_of = FL_SIGNAL_##of_}

/* ---- what a policy sees -------------------------------------------------------------------------------------------
 */

typedef struct fl_gpu_sample {
    uint64_t valid; /* FL_BIT(FL_GPU_...): the value is known; unknown is not zero */
    uint64_t fresh; /* the sensor refreshed since the last step; a stale counter difference is zero and means nothing */
    double value[FL_GPU_SIGNAL_COUNT];
} fl_gpu_sample;

typedef struct fl_host_sample {
    uint64_t valid;
    uint64_t fresh;
    double value[FL_HOST_SIGNAL_COUNT];
} fl_host_sample;

typedef struct fl_kernel_kind { /* interned: one entry per distinct name, grid and block */
    const char *name;
    uint32_t name_id; /* equal for equal names */
    uint32_t grid[3], block[3];
} fl_kernel_kind;

typedef struct fl_kernel_record {
    int64_t start_ns, end_ns; /* end_ns < 0: the end is missing */
    uint32_t kind;            /* index into fl_sample.kind */
    uint32_t stream;
    uint32_t gpu;
    uint32_t flags; /* 0; kept for later use */
} fl_kernel_record;

typedef struct fl_sample {
    int64_t time_ns; /* the host's time, never falls */
    uint64_t step;   /* 0 at the first step */
    uint32_t gpu_count;
    uint32_t kind_count;
    const fl_gpu_sample *gpu; /* gpu_count */
    fl_host_sample host;
    const fl_kernel_record *record; /* kernels that ended since the last step, by end; NULL while records are off */
    const fl_kernel_kind *kind;     /* kind_count; indices stay valid for the whole run */
    uint64_t record_count;
    uint64_t record_lost; /* records lost since the last step */
    uint32_t server_count;
    uint32_t woken; /* FL_BIT(FL_WAKE_...): why this step comes before its delay was over; 0: it does not */
    const fl_server_sample *server; /* server_count */
    const fl_batch_record *batch;   /* steps of engines that ended since the last step, by end; NULL where the policy
                                       does not ask for them or nobody tells */
    uint64_t batch_count;
    uint64_t batch_lost; /* lost since the last step */
} fl_sample;

/* ---- what a policy sets -------------------------------------------------------------------------------------------
 */

typedef struct fl_gpu_command {
    uint64_t set; /* FL_BIT(FL_SET_...) of the controls to set at this step; the others keep what they have */
    double value[FL_GPU_CONTROL_COUNT];
} fl_gpu_command;

typedef struct fl_host_command {
    uint64_t set;
    double value[FL_HOST_CONTROL_COUNT];
} fl_host_command;

/* The host clears it before each step. 0, NaN and infinity as a clock or limit are policy faults, as is anything but 0,
 * 1 and FL_DEFAULT for a switch (records, cpu_boost): counted, and the last setting holds. */
typedef struct fl_command {
    int64_t delay_ns;    /* until the next step, from the start of this one; must be set, > 0 */
    uint64_t wake;       /* FL_BIT(FL_WAKE_...): step earlier if one of these happens; of the descriptor's `wakes` */
    fl_gpu_command *gpu; /* gpu_count */
    fl_host_command host;
    double *const *probe; /* probe_count rows of cells: gpu_count of a per-GPU probe, else one; NaN = nothing to show */
    uint32_t unwatched;   /* 1: nobody reads the probes of this run. They are not cleared then, and a step may leave out
                             what only they need */
} fl_command;

/* ---- what a policy may know of the machine ------------------------------------------------------------------------
 */

typedef struct fl_ladder { /* ascending, no duplicates */
    const int32_t *mhz;
    uint32_t count;
} fl_ladder;

/* Board power while a kernel runs, f in GHz and m in MHz (models/laws/device.h):
 * alpha A V^2 f + beta B m/m_ref + B0 + C V + A0 V^2 f, with alpha and beta the kernel's loads. */
typedef struct fl_power_law {
    const double *volt;               /* V at each clock of the SM ladder, relative; NULL = the law is not known */
    double a_w, a0_w, b_w, b0_w, c_w; /* B0 at the default memory clock */
} fl_power_law;

typedef struct fl_gpu_facts {
    const char *name;
    fl_ladder sm, mem;
    fl_power_law law;
    int64_t power_lag_ns;                   /* from a change of power until the sensor shows it whole; 0 = not known */
    int64_t settle_ns;                      /* from a clock set until the clock is in force; 0 = not known */
    int64_t records_ns; /* by which a kernel takes longer while records are on; 0 = not known, < 0 = records are free */
    double default_sm_mhz, default_mem_mhz; /* what the driver aims at when nothing is locked */
    double power_min_w, power_max_w, power_default_w; /* range of the power limit; 0 = not known */
    double tdp_w;
    double peak_bytes_per_s; /* at the default memory clock; 0 = not known */
    uint32_t sm_count, cores_per_sm;
} fl_gpu_facts;

typedef struct fl_host_facts {
    const char *name;
    fl_ladder cpu;   /* clocks that software may set */
    fl_ladder boost; /* clocks that only the hardware enters */
    double power_min_w, power_max_w, power_default_w;
    double peak_bytes_per_s; /* memory shared with the GPU on an APU */
    uint32_t cores;
    uint32_t apu; /* 1: CPU and GPU share memory and a power budget */
} fl_host_facts;

typedef struct fl_facts {
    uint64_t seed; /* for fl_random_seed; explicit, never from the clock */
    uint32_t gpu_count;
    uint32_t server_count;
    const fl_gpu_facts *gpu; /* gpu_count */
    fl_host_facts host;
    const fl_server_facts *server; /* server_count */
    int64_t deadline_ns;           /* time by which the program is to end; 0 = not known */
    int64_t expected_ns;           /* how long it takes at the default clocks; 0 = not known */
    double bound;                  /* the slowdown that the user allows, as a share; 0 = not stated */
    uint64_t streams;              /* that use one GPU, at most; 1: no kernels overlap; 0 = not known */
} fl_facts;

/* ---- parameters ---------------------------------------------------------------------------------------------------
 * A policy declares a plain struct for its parameters and one row for each member. The host fills the struct: row
 * default, platform, experiment, --set, the later over the earlier. Text form of a list: numbers joined by '/'
 * (855/1050/1245). */
typedef enum fl_param_type {
    FL_PARAM_REAL,   /* double */
    FL_PARAM_INT,    /* int64_t */
    FL_PARAM_BOOL,   /* int64_t, 0 or 1; text 0, 1, true, false, on, off */
    FL_PARAM_CHOICE, /* int64_t, index into choices */
    FL_PARAM_LIST,   /* fl_table of one column */
    FL_PARAM_TABLE   /* fl_table: named columns, optional text key; text form is a CSV file that the host reads */
} fl_param_type;

typedef struct fl_table {
    const double *cell;     /* row_count x column_count, row by row */
    const char *const *key; /* row_count, or NULL where the table has no key */
    uint32_t row_count, column_count;
} fl_table;

typedef struct fl_param {
    const char *name, *unit;
    fl_param_type type;
    uint32_t offset;      /* of the member in the parameter struct */
    const char *standard; /* default, in text form */
    double min, max;      /* REAL, INT, and every cell of LIST; both ends allowed */
    /* CHOICE: names joined by '|'. TABLE: column names joined by '|'; "key:kernel|sm_mhz" says that the first of them
     * is the text key, so that one column of numbers remains. */
    const char *choices;
    const char *help;
} fl_param;

/* A row: FL_PARAM(struct, member, TYPE, unit, default, help). It is named as its member. TYPE says what is allowed:
 *
 *     REAL(min, max)   INT(min, max)   BOOL   CHOICE("one|another")   LIST(min, max)   TABLE("key:kernel|sm_mhz")
 *
 * The type is checked against the member's: a row of the wrong one does not compile ("_Generic selector of type
 * 'double' is not compatible", gcc says). FL_PARAM_AS is for a name that the member cannot have. */
#define FL_PARAM(struct_, member_, type_, unit_, standard_, help_)                                                     \
    FL_PARAM_AS(#member_, struct_, member_, type_, unit_, standard_, help_)
#define FL_PARAM_AS(name_, struct_, member_, type_, unit_, standard_, help_)                                           \
    {                                                                                                                  \
        .name = name_, .unit = unit_, .type = _Generic(((struct_ *)0)->member_, FL_PARAM_TYPE_##type_),                \
        .offset = offsetof(struct_, member_), .standard = standard_, FL_PARAM_RANGE_##type_, .help = help_             \
    }
#define FL_PARAM_TYPE_REAL(min_, max_) FL_PARAM_OF(double, FL_PARAM_REAL)
#define FL_PARAM_TYPE_INT(min_, max_) FL_PARAM_OF(int64_t, FL_PARAM_INT)
#define FL_PARAM_TYPE_BOOL FL_PARAM_OF(int64_t, FL_PARAM_BOOL)
#define FL_PARAM_TYPE_CHOICE(choices_) FL_PARAM_OF(int64_t, FL_PARAM_CHOICE)
#define FL_PARAM_TYPE_LIST(min_, max_) FL_PARAM_OF(fl_table, FL_PARAM_LIST)
#define FL_PARAM_TYPE_TABLE(columns_) FL_PARAM_OF(fl_table, FL_PARAM_TABLE)
#define FL_PARAM_OF(member_, type_) member_ : type_
#define FL_PARAM_RANGE_REAL(min_, max_) .min = min_, .max = max_
#define FL_PARAM_RANGE_INT(min_, max_) .min = min_, .max = max_
#define FL_PARAM_RANGE_BOOL .min = 0, .max = 1
#define FL_PARAM_RANGE_CHOICE(choices_) .choices = choices_
#define FL_PARAM_RANGE_LIST(min_, max_) .min = min_, .max = max_
#define FL_PARAM_RANGE_TABLE(columns_) .choices = columns_

/* An internal worth logging. An enum beside the rows numbers them, so that a step names a probe and counts nothing; or,
 * where one place shows them all, one table has each one's row and value:
 *
 *     #define PROBES(X) X("moves", "", "clocks set so far", g->moves) X("loss", "%", "of a window", 100 * g->loss)
 *     static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};
 *     fl_show_all(command, gpu, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
 */
#define FL_PROBE_ROW(name_, unit_, help_, value_) {name_, unit_, help_, 1},
#define FL_PROBE_NODE_ROW(name_, unit_, help_, value_) {name_, unit_, help_, 0},
#define FL_PROBE_VALUE(name_, unit_, help_, value_) value_,
typedef struct fl_probe {
    const char *name, *unit, *help;
    uint32_t per_gpu; /* 1: one value per GPU; 0: one for the node */
} fl_probe;

/* ---- the descriptor -----------------------------------------------------------------------------------------------
 */

#define FL_ABI_VERSION 4 /* to be raised where a change of meaning leaves rows and sizes as they were */
#define FL_ABI_STRUCTS(X)                                                                                              \
    X(fl_gpu_sample)                                                                                                   \
    X(fl_host_sample)                                                                                                  \
    X(fl_server_sample)                                                                                                \
    X(fl_kernel_kind)                                                                                                  \
    X(fl_kernel_record) X(fl_batch_record) X(fl_sample) X(fl_gpu_command) X(fl_host_command) X(fl_command)             \
        X(fl_ladder) X(fl_power_law) X(fl_gpu_facts) X(fl_host_facts) X(fl_server_facts) X(fl_route_view)              \
            X(fl_route_query) X(fl_facts) X(fl_table) X(fl_param) X(fl_probe) X(fl_signal_row) X(fl_policy)

/* The identity is derived from the tables: one line per row, in order, then one size per struct. A row renamed, moved
 * or added without a thought for old plug-ins changes it, and the host can print the first line that differs. */
#define FL_TEXT(x) FL_TEXT_(x)
#define FL_TEXT_(x) #x
#define FL_ROW_ABI_GPU_SIGNAL(id, name, unit, kind, meaning) "gpu signal " #name " " unit " " #kind "\n"
#define FL_ROW_ABI_HOST_SIGNAL(id, name, unit, kind, meaning) "host signal " #name " " unit " " #kind "\n"
#define FL_ROW_ABI_SERVER_SIGNAL(id, name, unit, kind, meaning) "server signal " #name " " unit " " #kind "\n"
#define FL_ROW_ABI_WAKE(id, name, meaning) "wake " #name "\n"
#define FL_ROW_ABI_GPU_CONTROL(id, name, unit, meaning) "gpu control " #name " " unit "\n"
#define FL_ROW_ABI_HOST_CONTROL(id, name, unit, meaning) "host control " #name " " unit "\n"
#define FL_ROW_ABI_STRUCT(type) "struct " #type "\n"
#define FL_ROW_ABI_SIZE(type) sizeof(type),
#define FL_ROW_ABI_ONE(type) +1
#define FL_ABI_STRUCT_COUNT (0 FL_ABI_STRUCTS(FL_ROW_ABI_ONE))
#define FL_ABI_ROWS                                                                                                    \
    "abi " FL_TEXT(FL_ABI_VERSION) "\n" FL_GPU_SIGNALS(FL_ROW_ABI_GPU_SIGNAL) FL_HOST_SIGNALS(FL_ROW_ABI_HOST_SIGNAL)  \
        FL_SERVER_SIGNALS(FL_ROW_ABI_SERVER_SIGNAL) FL_WAKES(FL_ROW_ABI_WAKE) FL_GPU_CONTROLS(FL_ROW_ABI_GPU_CONTROL)  \
            FL_HOST_CONTROLS(FL_ROW_ABI_HOST_CONTROL) FL_ABI_STRUCTS(FL_ROW_ABI_STRUCT)

#define FL_ABI_MAGIC UINT64_C(0x31594c4f50444c46) /* "FLDPOLY1" */
#define FL_ABI_STRUCTS_MAX 32

typedef struct fl_abi { /* the first member of every descriptor, for ever: never change this struct */
    uint64_t magic;
    const char *rows;
    uint32_t struct_count;
    uint32_t struct_size[FL_ABI_STRUCTS_MAX];
} fl_abi;

#define FL_POLICY_ABI                                                                                                  \
    .abi = {.magic = FL_ABI_MAGIC,                                                                                     \
            .rows = FL_ABI_ROWS,                                                                                       \
            .struct_count = FL_ABI_STRUCT_COUNT,                                                                       \
            .struct_size = {FL_ABI_STRUCTS(FL_ROW_ABI_SIZE)}}

typedef struct fl_policy {
    fl_abi abi;
    const char *name, *summary;       /* summary: one line */
    const char *source;               /* paper, algorithm, equation */
    const fl_signal_row *signal;      /* what it reads */
    uint64_t gpu_drives, host_drives; /* controls set: anything else in a command is a fault */
    uint32_t wakes;                   /* FL_BIT(FL_WAKE_...): events for which it may ask to be stepped */
    uint32_t signal_count, param_count, probe_count;
    const fl_param *param;
    const fl_probe *probe;
    size_t param_size; /* of the parameter struct */
    size_t state_size; /* sizeof of the node's state; 0: none */
    size_t gpu_size;   /* sizeof of one GPU's; fl_gpu_states (below) finds the array of them */

    /* Cross-checks parameters against the machine, once. Returns NULL, or static text saying what is wrong. To a text
     * that begins with a parameter in MHz and says that it is not on a ladder, the host adds the clock and the next
     * ones. */
    const char *(*init)(void *state, const void *params, const fl_facts *facts);
    void (*step)(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *command);
    /* Optional, where the node splits prefill and decode: the index in query->view of the server that a request goes
     * to. Another number leaves the choice to the host, which takes the first of those with the fewest waiting tokens,
     * or with the fewest running requests. NULL: the host chooses always. */
    uint32_t (*route)(const void *state, const void *params, const fl_facts *facts, const fl_route_query *query);
} fl_policy;

/* The same file is a built-in, or with -DPOLICY_PLUGIN -fPIC -shared -fvisibility=hidden a plug-in. */
#ifdef POLICY_PLUGIN
#define FL_POLICY(ident)                                                                                               \
    extern __attribute__((visibility("default"))) const fl_policy foldline_policy;                                     \
    const fl_policy foldline_policy
#else
#define FL_POLICY(ident)                                                                                               \
    extern const fl_policy fl_policy_##ident;                                                                          \
    const fl_policy fl_policy_##ident
#endif

/* Members of a descriptor that belong together, and those that it has from the usual names of its file. */
#define FL_PARAM_ROWS(rows_, params_) .param = rows_, .param_count = FL_COUNT(rows_), .param_size = sizeof(params_)
#define FL_PROBE_ROWS(rows_) .probe = rows_, .probe_count = FL_COUNT(rows_)
#define FL_SIGNAL_ROWS(rows_) .signal = rows_, .signal_count = FL_COUNT(rows_)
#define FL_POLICY_PARTS(params_)                                                                                       \
    FL_SIGNAL_ROWS(signal_rows), FL_PARAM_ROWS(param_rows, params_), FL_PROBE_ROWS(probe_rows), .init = init,          \
        .step = step

/* ---- small helpers ------------------------------------------------------------------------------------------------
 */

#define FL_COUNT(array) (sizeof(array) / sizeof *(array))

/* The host aligns a state to 16 bytes, and so the array of the GPUs' states behind the node's: no struct needs padding
 * members of its own, and none may ask for more than that alignment. */
#define FL_STATE_ALIGNMENT 16
static inline size_t fl_state_rounded(size_t size) {
    return (size + FL_STATE_ALIGNMENT - 1) / FL_STATE_ALIGNMENT * FL_STATE_ALIGNMENT;
}

/* The states of the GPUs, an array of gpu_count x gpu_size bytes. state_size: the descriptor's. */
static inline void *fl_gpu_states(void *state, size_t state_size) {
    return (char *)state + fl_state_rounded(state_size);
}

static inline int fl_gpu_known(const fl_gpu_sample *g, int id) { return (g->valid >> id & 1) != 0; }
static inline int fl_gpu_fresh(const fl_gpu_sample *g, int id) { return (g->valid & g->fresh) >> id & 1; }
static inline int fl_host_known(const fl_host_sample *h, int id) { return (h->valid >> id & 1) != 0; }

static inline void fl_set_gpu(fl_command *c, uint32_t gpu, int control, double value) {
    c->gpu[gpu].set |= FL_BIT(control);
    c->gpu[gpu].value[control] = value;
}

static inline void fl_set_host(fl_command *c, int control, double value) {
    c->host.set |= FL_BIT(control);
    c->host.value[control] = value;
}

static inline void fl_show_gpu(fl_command *c, uint32_t gpu, int probe, double value) { c->probe[probe][gpu] = value; }
static inline void fl_show_node(fl_command *c, int probe, double value) { c->probe[probe][0] = value; }
/* The `count` probes from `first` on; those of the node with gpu 0. */
static inline void fl_show_all(fl_command *c, uint32_t gpu, int first, const double *value, int count) {
    for (int k = 0; k < count && !c->unwatched; k++)
        fl_show_gpu(c, gpu, first + k, value[k]);
}

static inline double fl_ladder_min(fl_ladder l) { return l.count ? l.mhz[0] : 0; }
static inline double fl_ladder_max(fl_ladder l) { return l.count ? l.mhz[l.count - 1] : 0; }

/* Indices on a ladder count from its lowest clock. Without clocks each of these returns 0. A clock that is not a number
 * counts as beyond every clock of the ladder. */

/* Return the index of the smallest clock that is not below mhz; the top's where none is. */
static inline uint32_t fl_ladder_index_up(fl_ladder l, double mhz) {
    uint32_t i = 0;
    while (i + 1 < l.count && !(l.mhz[i] >= mhz))
        i++;
    return i;
}

/* Return the index of the largest clock that is not above mhz; the lowest's where none is. */
static inline uint32_t fl_ladder_index_down(fl_ladder l, double mhz) {
    uint32_t i = l.count ? l.count - 1 : 0;
    while (i && !(l.mhz[i] <= mhz))
        i--;
    return i;
}

/* Return the index of the nearest clock; of two as near, of the lower, as a host rounds. */
static inline uint32_t fl_ladder_index_nearest(fl_ladder l, double mhz) {
    const uint32_t i = fl_ladder_index_up(l, mhz);
    return i && mhz - l.mhz[i - 1] <= l.mhz[i] - mhz ? i - 1 : i;
}

/* Return the clock at an index; the lowest or the top clock for an index below or above the ladder. The next lower
 * clock than the one at `i` is so fl_ladder_at(l, i - 1). */
static inline double fl_ladder_at(fl_ladder l, int64_t index) {
    return !l.count ? 0 : l.mhz[index < 0 ? 0 : index < l.count ? index : l.count - 1];
}

/* The clocks at these indices. */
static inline double fl_ladder_up(fl_ladder l, double mhz) { return fl_ladder_at(l, fl_ladder_index_up(l, mhz)); }
static inline double fl_ladder_down(fl_ladder l, double mhz) { return fl_ladder_at(l, fl_ladder_index_down(l, mhz)); }
static inline double fl_ladder_nearest(fl_ladder l, double mhz) {
    return fl_ladder_at(l, fl_ladder_index_nearest(l, mhz));
}

/* The smallest clock at or above a share of the top clock. The share of a whole clock may exceed it by a rounding. */
static inline double fl_ladder_share(fl_ladder l, double share) {
    return fl_ladder_up(l, share * fl_ladder_max(l) - 1e-6);
}

/* 1 if the clock is on the ladder. */
static inline int fl_ladder_has(fl_ladder l, double mhz) { return l.count && fl_ladder_up(l, mhz) == mhz; }

/* For init: NULL, or why a policy that sets SM clocks cannot run: the host does not know a GPU's ladder. */
static inline const char *fl_need_ladders(const fl_facts *facts) {
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (!facts->gpu[i].sm.count)
            return "needs the SM ladder of every GPU";
    return NULL;
}

#endif
