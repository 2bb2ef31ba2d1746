/* Platform files: models/platforms/NAME.json, or a path to one of the user's own. Everything is checked; an error names
 * file and key ("gpu.power.a_w: -3, expected a number >= 0"). */
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

/* What a policy may know of a node: what its platform says, and what a user states of the run. */

/* Ladders, limits, law of power, lag of the power sensor and time that a clock takes, as the platform has them. Borrows
 * ladders and names from `node`. Deadline, length and bound are not known. Free with fl_facts_free. */
fl_status fl_facts_make(const fl_node_spec *node, uint64_t seed, fl_facts *facts, fl_diag *d);
void fl_facts_free(fl_facts *facts);

typedef struct fl_stated_facts { /* as a user states them; 0 = not */
    double bound, deadline_s, expected_s;
    int64_t streams;
} fl_stated_facts;

/* Adds them to *facts. */
void fl_facts_state(const fl_stated_facts *s, fl_facts *facts);

/* clang-format off */
#define FL_STREAMS_OPTION(s)                                                                                           \
    {"streams", "N", FL_OPTION_INT, &(s).streams, 1, 1000000,                                                          \
     "tells the policy how many streams use one GPU, at most (not stated)"}
#define FL_STATED_FACTS_OPTIONS(s)                                                                                     \
    {"bound", "X", FL_OPTION_SHARE, &(s).bound, 0.001, 100,                                                            \
     "tells the policy the slowdown that is allowed, 0.10 or 10% (not stated)"},                                       \
    {"deadline", "S", FL_OPTION_REAL, &(s).deadline_s, 1e-3, 1e9,                                                      \
     "tells the policy by when the program is to end (not stated)"},                                                   \
    {"expected", "S", FL_OPTION_REAL, &(s).expected_s, 1e-3, 1e9,                                                      \
     "tells the policy how long the program takes at the default clocks (not stated)"},                                       \
    FL_STREAMS_OPTION(s)

typedef struct fl_platform_note { /* where one value comes from, as listed by `foldline platforms NAME` */
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

/* name: of a bundled platform (nearest offered when unknown), or a path (contains '/' or ends in .json). gpu_count > 0
 * overrides the number of GPUs of the file. */
fl_status fl_platform_open(const char *name, uint32_t gpu_count, fl_platform *p, fl_diag *d);
void fl_platform_free(fl_platform *p);

/* Whether the value of a key ("gpu.power.a_w") is marked as assumed in the notes. */
bool fl_platform_assumed(const fl_platform *p, const char *key);

/* The settings of a policy as a layer named after the platform; empty where there are none. Borrows from p. */
fl_layer fl_platform_layer(const fl_platform *p, const char *policy);

/* Names of the bundled platforms, sorted; free each and the array. The folder is $FOLDLINE_SHARE/platforms where set,
 * else the one fixed at build time. */
fl_status fl_platform_list(char ***names, size_t *count, fl_diag *d);

/* What `nvidia-smi -q -x` prints of a machine's boards. */

/* X(MEMBER, PLACES): texts of a GPU, by the place of their element below <gpu>; "|" between places of several versions
 * of the tool. */
#define FL_SMI_TEXTS(X)                                                                                                \
    X(name, "product_name")                                                                                            \
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

/* FL_BAD_INPUT with line and column where the file is not well-formed, not of that tool, without a GPU, or has a value
 * that is none. Free with fl_smi_free, also after a failure. */
fl_status fl_smi_read(const char *path, fl_smi *smi, fl_diag *d);
void fl_smi_free(fl_smi *smi);

/* Does the name end in .xml? */
bool fl_is_smi(const char *path);

/* Boards of which facts are known, each with its source, but no law of time and power: models/boards/NAME.json.
 *
 * A platform has every number that a simulation needs. Of most boards a part is known: clocks, limits, bandwidth. A
 * board holds that part and nothing else; what nobody has published stays unknown. `foldline fit device --facts NAME`
 * makes a platform of one, in which what is missing is assumed from chips alike and marked so. */

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

typedef struct fl_board_note { /* where the value of a key is from */
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

/* A bundled board by its name, the nearest offered; or a path (contains '/' or ends in .json). Every value needs a
 * note. A path that ends in .xml is what nvidia-smi -q -x printed (harness/input/platform/platform.h): its first GPU. */
fl_status fl_board_open(const char *name, fl_board *b, fl_diag *d);
void fl_board_free(fl_board *b);

/* Whether a bundled board has this name. */
bool fl_board_exists(const char *name);
/* Names of the bundled boards, sorted; none where the folder is not there. Free with fl_place_list_free. */
fl_status fl_board_list(char ***names, size_t *count, fl_diag *d);

/* What of the ladders and the limit is unknown that no chip alike can tell, in words into buf; NULL where nothing is.
 */
const char *fl_board_lacks(const fl_board *b, char *buf, size_t size);

/* The source of a key, NULL where its value is unknown. */
const char *fl_board_source(const fl_board *b, const char *key);

/* The part of a platform file that describes one kind of GPU, and what it and the host's part are read with. */

/* Names of a GPU's sensors in a platform file, in the order of fl_sensor_id. */
extern const char *const fl_platform_sensor_name[FL_SENSOR_COUNT];

/* The ladder `key`: a list of clocks, or an object with from, to and steps. *mhz is the caller's to free, even after a
 * failure. */
fl_status fl_platform_ladder(const fl_json *object, const char *key, int32_t **mhz, uint32_t *count, fl_diag *d);

/* ---- what both are read with ---- */
#define FL_PLATFORM_MHZ_MAX 100000
#define FL_PLATFORM_WATTS_MAX 1e6

fl_status fl_platform_name(const fl_json *object, char *name, size_t size, fl_diag *d);

/* The reason as fl_json_fail gives it, about the member `key` of the object. */
fl_status fl_platform_refuse(const fl_json *object, const char *key, fl_diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The part of a platform file that describes the host: its CPU, what it shares with an APU's GPU, its meters. */

/* Names of the host's sensors in a platform file, in the order of fl_host_sensor_id. */
extern const char *const fl_platform_host_sensor_name[FL_HOST_SENSOR_COUNT];
