/* Platforms, boards, and what nvidia-smi prints of a machine.
 *
 * A platform (models/platforms/NAME.json, or a user's own file) has every number that a simulation needs. Call
 * fl_platform_open first; its `node` is what the simulator takes, and fl_facts_make states what a policy may know of
 * it. Facts borrow from the node. A board (models/boards/NAME.json) has only published values, each with its source,
 * and no law of time and power. fl_smi_read reads the output of `nvidia-smi -q -x`.
 *
 * The readers check everything. FL_BAD_INPUT names file and key ("gpu.power.a_w: -3, expected a number >= 0"). The
 * caller frees each struct with the function of its name. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Facts: what a policy may know of a node, from its platform and from what a user states about the run. */

/* Fill the facts with ladders, limits, power law, lag of the power sensor and clock-change latency of the platform.
 * Ladders and names are borrowed from `node`. Deadline, length and bound stay unknown. Free with fl_facts_free. */
fl_status fl_facts_make(const fl_node_spec *node, uint64_t seed, fl_facts *facts, fl_diag *d);
void fl_facts_free(fl_facts *facts);

typedef struct fl_stated_facts { /* what a user states about the run; 0 = not stated */
    double bound, deadline_s, expected_s;
    int64_t streams;
} fl_stated_facts;

/* Add what a user stated to *facts. */
void fl_facts_state(const fl_stated_facts *s, fl_facts *facts);

/* clang-format off */
#define FL_STREAMS_OPTION(s)                                                                                           \
    {"streams", "N", FL_OPTION_INT, &(s).streams, 1, 1000000,                                                          \
     "tells the policy how many streams use one GPU, at most (not stated)", FL_FOR_POLICIES}
#define FL_STATED_FACTS_OPTIONS(s)                                                                                     \
    {"bound", "X", FL_OPTION_SHARE, &(s).bound, 0.001, 100,                                                            \
     "tells the policy the slowdown that is allowed, 0.10 or 10% (not stated)", FL_FOR_POLICIES},                      \
    {"deadline", "S", FL_OPTION_REAL, &(s).deadline_s, 1e-3, 1e9,                                                      \
     "tells the policy by when the program is to end (not stated)", FL_FOR_POLICIES},                                  \
    {"expected", "S", FL_OPTION_REAL, &(s).expected_s, 1e-3, 1e9,                                                      \
     "tells the policy how long the program takes at the default clocks (not stated)", FL_FOR_POLICIES},               \
    FL_STREAMS_OPTION(s)
/* clang-format on */

typedef struct fl_platform_note { /* where one value comes from, as listed by `foldline list platforms NAME` */
    char *key, *text;             /* "gpu.power.a_w", "assumed: TDP with alpha = beta = 1" */
} fl_platform_note;

typedef struct fl_platform_policy { /* defaults that this machine gives to a policy's parameters */
    char *policy;
    fl_setting *setting; /* name, text form */
    size_t count;
} fl_platform_policy;

typedef struct fl_platform {
    char *name, *title, *path;
    char *origin; /* "platform NAME", as its layer is called in diagnostics */
    fl_node_spec node;
    fl_platform_note *note;
    size_t note_count;
    fl_platform_policy *policy;
    size_t policy_count;
} fl_platform;

/* Open a bundled platform by its name, or a file by its path (contains '/' or ends in .json). gpu_count > 0 overrides
 * the number of GPUs of the file. FL_BAD_INPUT: an unknown name (the message offers the nearest), or a wrong file. */
fl_status fl_platform_open(const char *name, uint32_t gpu_count, fl_platform *p, fl_diag *d);
void fl_platform_free(fl_platform *p);

/* Return true if the notes mark the value of a key ("gpu.power.a_w") as assumed. */
bool fl_platform_assumed(const fl_platform *p, const char *key);

/* Return the platform's settings of a policy as a layer named after the platform; empty if it has none. Borrows from p.
 */
fl_layer fl_platform_layer(const fl_platform *p, const char *policy);

/* List the names of the bundled platforms, sorted. Free with fl_place_list_free (FL_PLACE_PLATFORMS says which folder).
 */
fl_status fl_platform_list(char ***names, size_t *count, fl_diag *d);

/* The boards of a machine, as `nvidia-smi -q -x` prints them. */

/* X(MEMBER, PLACES): texts of a GPU, by the place of their element below <gpu>. "|" separates the places in several
 * versions of the tool. */
#define FL_SMI_TEXTS(X)                                                                                                \
    X(name, "product_name")                                                                                            \
    X(architecture, "product_architecture")                                                                            \
    X(uuid, "uuid")                                                                                                    \
    X(serial, "serial")                                                                                                \
    X(vbios, "vbios_version")                                                                                          \
    X(bus_id, "pci/pci_bus_id")                                                                                        \
    X(device_id, "pci/pci_device_id")                                                                                  \
    X(subsystem_id, "pci/pci_sub_system_id")

/* X(MEMBER, UNIT, PLACES): numbers; NAN where the tool has none ("N/A"). */
#define FL_SMI_NUMBERS(X)                                                                                              \
    X(memory_mib, "MiB", "fb_memory_usage/total")                                                                      \
    X(limit_min_w, "W", "gpu_power_readings/min_power_limit|power_readings/min_power_limit")                           \
    X(limit_max_w, "W", "gpu_power_readings/max_power_limit|power_readings/max_power_limit")                           \
    X(limit_default_w, "W", "gpu_power_readings/default_power_limit|power_readings/default_power_limit")               \
    X(sm_max_mhz, "MHz", "max_clocks/sm_clock")                                                                        \
    X(mem_max_mhz, "MHz", "max_clocks/mem_clock")                                                                      \
    X(sm_default_mhz, "MHz", "default_applications_clocks/graphics_clock")

#define FL_SMI_TEXT_SIZE 64

typedef struct fl_smi_gpu {
#define FL_SMI_TEXT_MEMBER(member, places) char member[FL_SMI_TEXT_SIZE]; /* empty = not known */
#define FL_SMI_NUMBER_MEMBER(member, unit, places) double member;
    FL_SMI_TEXTS(FL_SMI_TEXT_MEMBER)
    FL_SMI_NUMBERS(FL_SMI_NUMBER_MEMBER)
    int32_t *sm_mhz, *mem_mhz; /* supported clocks, ascending, of the highest memory clock; count 0 = none given */
    size_t sm_count, mem_count;
} fl_smi_gpu;

typedef struct fl_smi {
    char driver[FL_SMI_TEXT_SIZE];
    fl_smi_gpu *gpu; /* count: at least one, all of one product */
    size_t count;
} fl_smi;

/* Read a file of that tool. FL_BAD_INPUT with line and column: the file is not well-formed XML, is not from
 * nvidia-smi, has no GPU, or has an invalid value. Free with fl_smi_free, also after a failure. */
fl_status fl_smi_read(const char *path, fl_smi *smi, fl_diag *d);
void fl_smi_free(fl_smi *smi);

/* Return true if the name ends in .xml. */
bool fl_is_smi(const char *path);

/* Boards: published values, each with its source, but no law of time and power (models/boards/NAME.json).
 *
 * For most boards only clocks, limits and bandwidth are published. A board file has those values and nothing else.
 * `foldline fit device --facts NAME` makes a platform of a board. It assumes the missing values from similar chips, and
 * marks them as assumed. */

/* X(KEY, UNIT, WHAT): numbers, each optional. */
#define FL_BOARD_FACTS(X)                                                                                              \
    X(sms, "", "multiprocessors (or compute units)")                                                                   \
    X(cores_per_sm, "", "cores of each multiprocessor")                                                                \
    X(sm_min_mhz, "MHz", "lowest SM clock of the ladder")                                                              \
    X(sm_max_mhz, "MHz", "highest SM clock")                                                                           \
    X(sm_step_mhz, "MHz", "step of the ladder")                                                                        \
    X(sm_idle_mhz, "MHz", "SM clock while idle")                                                                       \
    X(sm_base_mhz, "MHz", "base clock")                                                                                \
    X(sm_boost_mhz, "MHz", "boost clock")                                                                              \
    X(sm_default_mhz, "MHz", "default application clock")                                                              \
    X(mem_idle_mhz, "MHz", "memory clock while idle")                                                                  \
    X(peak_gb_s, "GB/s", "memory bandwidth")                                                                           \
    X(limit_min_w, "W", "lowest power limit")                                                                          \
    X(limit_default_w, "W", "default power limit")                                                                     \
    X(limit_max_w, "W", "highest power limit")                                                                         \
    X(idle_min_w, "W", "idle power from")                                                                              \
    X(idle_max_w, "W", "idle power up to")                                                                             \
    X(power_refresh_ms, "ms", "refresh of the power reading")                                                          \
    X(power_window_ms, "ms", "window of the power reading")                                                            \
    X(instant_window_ms, "ms", "window of the instant power reading")

#define FL_BOARD_ENUM(key, unit, what) FL_BOARD_##key,
typedef enum fl_board_fact { FL_BOARD_FACTS(FL_BOARD_ENUM) FL_BOARD_FACT_COUNT } fl_board_fact;

typedef struct fl_board_row {
    const char *key, *unit, *what;
} fl_board_row;
extern const fl_board_row fl_board_rows[FL_BOARD_FACT_COUNT];

typedef struct fl_board_note { /* the source of a key's value */
    char *key, *text;
} fl_board_note;

typedef struct fl_board {
    char *name, *path, *title;
    char gpu[64];
    double fact[FL_BOARD_FACT_COUNT]; /* NAN = unknown */
    int32_t *sm_mhz, *mem_mhz;        /* ladders, ascending; count 0 = unknown */
    uint32_t sm_count, mem_count;
    fl_board_note *note;
    size_t note_count;
} fl_board;

/* Open a bundled board by its name, or a file by its path (contains '/' or ends in .json). Every value of a file needs
 * a note. Of a path that ends in .xml, output of nvidia-smi -q -x, the first GPU becomes the board. FL_BAD_INPUT offers
 * the nearest name for an unknown one. */
fl_status fl_board_open(const char *name, fl_board *b, fl_diag *d);
void fl_board_free(fl_board *b);

/* Return true if a bundled board has this name. */
bool fl_board_exists(const char *name);
/* List the names of the bundled boards, sorted; none if the folder is missing. Free with fl_place_list_free. */
fl_status fl_board_list(char ***names, size_t *count, fl_diag *d);

/* Write into buf, in words, the ladders and limits that are unknown and cannot be assumed from similar chips. Return
 * buf, or NULL if none is missing. */
const char *fl_board_lacks(const fl_board *b, char *buf, size_t size);

#define FL_BOARD_STEP_MHZ 15 /* of NVIDIA's ladders, where no data sheet gives it: A10G, T4, RTX 3090, H100 NVL, A100  \
                              */

/* Make the ladder of SM clocks, ascending: the board's list, or steps from the lowest clock to the highest. The caller
 * frees *mhz. FL_BAD_INPUT: the board states neither. */
fl_status fl_board_ladder(const fl_board *b, int32_t **mhz, uint32_t *count, fl_diag *d);

/* Find the ladder of the GPU of that name ("NVIDIA A30") among the bundled boards and platforms. *from: "board a30";
 * the caller frees both. *count is 0 where none of them has the name. FL_NO_MEMORY. */
fl_status fl_ladder_find(const char *gpu, int32_t **mhz, uint32_t *count, char **from, fl_diag *d);

/* Return the source of a key; NULL if its value is unknown. */
const char *fl_board_source(const fl_board *b, const char *key);

/* Parts of a platform file that other readers and writers of such files use too. */

/* Names of a GPU's sensors in a platform file, in the order of fl_sensor_id. */
extern const char *const fl_platform_sensor_name[FL_SENSOR_COUNT];

/* Read the ladder `key`: a list of clocks, or an object with from, to and steps. The caller frees *mhz, also after a
 * failure. */
fl_status fl_platform_ladder(const fl_json *object, const char *key, int32_t **mhz, uint32_t *count, fl_diag *d);

#define FL_PLATFORM_MHZ_MAX 100000
#define FL_PLATFORM_WATTS_MAX 1e6

fl_status fl_platform_name(const fl_json *object, char *name, size_t size, fl_diag *d);

/* Report a formatted reason about the member `key` of the object, with file, line and column, as FL_BAD_INPUT. */
fl_status fl_platform_refuse(const fl_json *object, const char *key, fl_diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Names of the host's sensors in a platform file, in the order of fl_host_sensor_id. */
extern const char *const fl_platform_host_sensor_name[FL_HOST_SENSOR_COUNT];
