/* Boards of which facts are known, each with its source, but no law of time and power: models/boards/NAME.json.
 *
 * A platform has every number that a simulation needs. Of most boards a part is known: clocks, limits, bandwidth. A
 * board holds that part and nothing else; what nobody has published stays unknown. `foldline fit device --facts NAME`
 * makes a platform of one, in which what is missing is assumed from chips alike and marked so. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>

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
 * note. A path that ends in .xml is what nvidia-smi -q -x printed (harness/input/platform/smi_xml.h): its first GPU. */
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
