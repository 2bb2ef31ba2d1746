/* Measured data made fit for fits: the rows of sweeps, the runs in logs, and one chip that predicts the rest.
 *
 * fl_fit_rows_sound reads sweeps, drops rows that did not run at the clock they name, and says so; fits start there.
 * fl_sweep_chip_open makes the chip of a sweep, from the platform's calibration or by a fit, and fl_sweep_chip_predict
 * gives a workload at every setting of a ladder, with the deviation of each prediction. fl_log_run_find finds the run
 * in a log. fl_chip_to_json and fl_chip_from_json keep a chip in a platform file.
 *
 * Structs own what they point to unless a member says "borrowed"; each has a _free. FL_BAD_INPUT names file, line and
 * column. Clocks have two names: the clock that a user sets, and the clock at which the GPU then runs; rows hold the
 * second. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "models/unsound/unsound.h"
#include "sim/workload/workload.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rows of one or more sweep files. Each pair of workload and kernel is an entity of its own. */

typedef struct fl_fit_entity {
    char *workload, *kernel; /* kernel may be empty */
    size_t file;             /* index of the file that it comes from */
    size_t first, count;     /* its rows */
} fl_fit_entity;

/* A row under a power limit that binds: the clock was requested, but not reached throughout. */
typedef struct fl_fit_capped {
    size_t entity;
    double sm_mhz, mem_mhz, limit_w, time_s, power_w;
} fl_fit_capped;

typedef struct fl_fit_line { /* the origin of a row */
    size_t entity;
    double sm_mhz, mem_mhz, time_s, power_w, limit_w;
    int64_t line;
} fl_fit_line;

typedef struct fl_fit_unsound { /* a row that was left out because it did not run at the clock it names */
    fl_fit_line at;
    fl_unsound_row found;
} fl_fit_unsound;

typedef struct fl_fit_rows {
    fl_chip_row *row; /* sorted by entity, memory clock, SM clock; workload = entity's index */
    size_t count, room;
    fl_fit_entity *entity; /* in the order of their first rows */
    size_t entities, entity_room;
    bool mem_known;        /* the files name memory clocks; else all rows have 1 MHz */
    size_t predicted;      /* rows left out because they state a deviation: a model predicted them */
    size_t limited;        /* rows left out because a power limit bound */
    size_t unheld;         /* rows left out because the board did not hold their power limit (fl_cap_held) */
    size_t repeated;       /* rows left out because the same setting exists under a higher limit that does not bind */
    size_t clockless;      /* rows left out because they have no SM clock */
    size_t memless;        /* rows without a memory clock where others have one: assumed to be at the highest */
    fl_fit_capped *capped; /* the rows of `limited` whose workloads have other rows too; sorted by entity */
    size_t cappeds, capped_room;
    bool latent;                      /* no row has an SM clock: all are in capped, whether or not their limit binds */
    double limit_low_w, limit_high_w; /* range of the sweep's power limits; 0 = it names none */
    fl_fit_line *line;                /* for all accepted rows, as they stood in the files */
    size_t lines, line_room;
    const char *const *file; /* the files' names, borrowed */
    fl_fit_unsound *unsound;
    size_t unsounds, unsound_room;
    fl_unsound_clock clock[FL_UNSOUND_CLOCKS]; /* wrong throughout; clear: its rows were relabelled */
    size_t clocks;
    char **left; /* what was left out of the files, as sentences */
    size_t lefts, left_room;
} fl_fit_rows;

/* Read sweeps as they are, without dropping unsound rows. only: names or patterns (*, ?) of workloads; empty = all.
 * FL_BAD_INPUT: no row is left. A sweep that has only power limits gives no rows, and sets latent. */
fl_status fl_fit_rows_read(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);
/* Read sweeps so, without rows of unknown power, for callers that need the power of each setting. */
fl_status fl_fit_rows_read_powers(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);
/* Print on standard error what was left out of the files. */
void fl_fit_rows_tell(const fl_fit_rows *r);

void fl_fit_rows_free(fl_fit_rows *r);
/* Call it after adding rows: it sorts them and finds each entity's rows. */
void fl_fit_rows_sort(fl_fit_rows *r);
/* Give the rows the chip's memory clock where only one of the two knows memory clocks: sweeps without memory clocks run
 * at the chip's own, and a chip without memory clocks accepts any. */
void fl_fit_rows_match(fl_fit_rows *r, const fl_chip *chip, bool chip_knows);
void fl_fit_rows_notes(const fl_fit_rows *r); /* prints what was left out or assumed */

/* Return the clock that a row requested. It differs from the row's own clock if the clock was relabelled. */
double fl_fit_asked_mhz(const fl_fit_rows *r, double sm_mhz);

/* Writes "BFS / kernel2", or the workload alone, into buf. Returns buf. */
char *fl_fit_entity_name(const fl_fit_entity *e, char *buf, size_t size);

/* The settings of an entity that a list names. "sm=952,1140" is at the highest memory clock; "sm=952,1140/mem=877,405"
 * at those given. "ends" is the lowest and the highest SM clock at the highest memory clock; "corners" is the same at
 * the lowest and the highest memory clock; "all" is everything. "caps=150,250" names power limits, for a sweep that has
 * no SM clocks; its ends are those of the limits. A list never names a row
 * that was not measured (time NaN). */
typedef struct fl_fit_at {
    enum { FL_FIT_LIST, FL_FIT_ENDS, FL_FIT_CORNERS, FL_FIT_ALL } kind;
    double sm[64], mem[16], cap[64];
    size_t sms, mems, caps; /* caps: "caps=150,250", of a sweep of power limits alone */
} fl_fit_at;

fl_status fl_fit_at_parse(const char *text, fl_fit_at *at, fl_diag *d);
bool fl_fit_at_has(const fl_fit_at *at, const fl_fit_rows *r, const fl_fit_entity *e, const fl_chip_row *row);

/* Predicts the workloads of a sweep at every setting of a ladder. Runs, comparisons and advice all use this one rule to
 * model a sweep by laws.
 *
 * The chip is the platform's calibration where its file has one (fit device writes it). Else there is none, and each
 * workload has two laws of its own (FL_CHIP_OWN). Each workload, and each of its kernels by itself, is then predicted
 * from its own rows. A measured setting keeps the
 * measured values, with the scatter of the fit's rows as its deviation. Rows outside the calibrated clocks are not
 * used. Settings outside them are predicted and marked, and nothing chooses them. */

typedef struct fl_sweep_chip {
    fl_chip *chip;
    bool mem_known;  /* the chip distinguishes memory clocks */
    bool calibrated; /* the chip is the platform's calibration; else each workload has laws of its own */
    fl_fit_rows rows;
} fl_sweep_chip;

/* platform: path of its file, or NULL. FL_BAD_INPUT where no chip can be made: no workload of the sweep has two
 * settings, and the platform has no calibration. */
fl_status fl_sweep_chip_open(fl_sweep_chip *c, const char *sweep, const char *platform, fl_diag *d);
/* Open a chip from rows in memory, which the function moves into *c. Diagnostics name sweep. */
fl_status fl_sweep_chip_of_rows(fl_sweep_chip *c, fl_fit_rows *rows, const char *sweep, const char *platform,
                                fl_diag *d);
/* Reads only the calibration of a platform's file, without rows; `calibrated` says whether the file has one. */
fl_status fl_sweep_chip_read(const char *platform, fl_sweep_chip *c, fl_diag *d);
/* The platform's chip by its constants. It gives memory's shares of the times, which a policy sees whether time and
 * power are measured or predicted. chip is NULL where the constants or the sweep's rows are not sufficient; the rows,
 * with those that are unsound, are there as far as they could be read. */
fl_status fl_sweep_chip_plain(fl_sweep_chip *c, const char *sweep, const fl_device *dev, fl_diag *d);
void fl_sweep_chip_free(fl_sweep_chip *c);

/* Return true if a row lies outside the clocks at which the chip was calibrated. */
bool fl_fit_is_beyond(const fl_chip *chip, const fl_chip_row *row);

/* Return the estimate for a measured setting: the means of its rows, with a deviation from the fit's own scatter.
 * Callers that decide by a fit use this for measured settings. */
fl_chip_guess fl_chip_measured(const fl_chip *chip, double time_s, double power_w, double rows);

/* Return the estimate for a measured setting without a fit: the deviation is the usual repeatability of measurements
 * (models/chip/chip.h). */
fl_chip_guess fl_chip_repeats(double time_s, double power_w);

/* One workload of a sweep at a ladder's settings: rows for fl_build_sweep, with their deviations. */
typedef struct fl_predicted {
    fl_sweep sweep;                         /* names and head are borrowed */
    fl_sweep_law law;                       /* without the shares (load), which _shares fills */
    size_t settings, beyond;                /* SM clocks of the ladder; how many lie outside the calibration */
    size_t unused;                          /* known rows outside the calibration, which were not used */
    fl_chip_basis basis;                    /* of the predictions */
    double time_noise_pct, power_noise_pct; /* of the mean at a setting, by repeated runs; 0 = none were repeated */
} fl_predicted;

/* Predict one workload at the settings of the device's ladder. name: the workload, an index into s->names.
 * FL_BAD_INPUT: the workload has no row within the calibration, its power cannot be predicted, or the device has none
 * of its memory clocks. */
fl_status fl_sweep_chip_predict(const fl_sweep_chip *c, const char *file, const fl_sweep *s, uint32_t name,
                                const fl_device *dev, fl_predicted *out, fl_diag *d);
/* Fills law->load, for a chip that fl_sweep_chip_plain made. */
fl_status fl_sweep_chip_shares(const fl_sweep_chip *c, const fl_sweep *s, uint32_t name, fl_sweep_law *law, fl_diag *d);
void fl_predicted_free(fl_predicted *p);

/* One run of a program in a log of telemetry: its time span, its clocks, its length and its power. */

typedef struct fl_log_run {
    double sm_mhz, mem_mhz; /* medians; of a clock that moves between neighbouring steps, the mean; mem_mhz NAN = not
                               known */
    double sm_low_mhz, sm_high_mhz; /* 5 % of the readings lie below, and 5 % above; both sm_mhz where it stood still */
    double mem_low_mhz, mem_high_mhz; /* the same */
    double time_s, power_w;
    bool steady;    /* the clocks did not change, or only between neighbouring steps */
    bool sm_steady; /* the same of the SM clock alone */
    bool sm_stated; /* the log has no SM clock: the caller or the file's name stated it */
    double busy;    /* mean utilisation during the run, 0..1; 0 or NAN = not known */
    double limit_w; /* the power limit; NAN = not known */
} fl_log_run;

/* Return the power limit of a run if it may have bound the run: it is below highest_w, the highest limit of the
 * program's runs, and the run's power comes near it. NAN: it did not, or is not known. */
double fl_log_limit(double limit_w, double power_w, double highest_w);

/* A note for a run whose two accounts of energy differ (traces/files/files.h): counter_w and sensor_w. */
#define FL_LOG_ACCOUNTS                                                                                                \
    "two accounts of the run's energy differ: %.5g W by the energy counter, %.5g W by the power readings; the "        \
    "counter's is taken"

/* A note for a run whose SM clock moves: sm_low_mhz, sm_high_mhz, sm_mhz. */
#define FL_LOG_WANDERS "the clock moved between %g and %g MHz: its mean, %g MHz, counts"

/* A note for a run that was found by its power: above_w. */
#define FL_LOG_BY_POWER                                                                                                \
    "the utilisation does not tell when the program ran: taken as the readings from the first to the last above %.4g " \
    "W, a quarter of the way from idle to load"

/* A note for a run that is not steady; FL_LOG_CHANGE gives its arguments. */
#define FL_LOG_CHANGED "the %s clock changed during the run, from %g to %g MHz"
#define FL_LOG_CHANGE(r)                                                                                               \
    (r)->sm_steady ? "memory" : "SM", (r)->sm_steady ? (r)->mem_low_mhz : (r)->sm_low_mhz,                             \
        (r)->sm_steady ? (r)->mem_high_mhz : (r)->sm_high_mhz

/* A note for a run within which the GPU idles for long: idle_s, idle_at_s. */
#define FL_LOG_IDLES                                                                                                   \
    "the GPU idles for %.4g s, from %.4g s after the run's begin on: counted as part of the run; of two runs, "        \
    "expected "                                                                                                        \
    "a log of each"

/* How well the log shows where the run begins and ends, and what power it drew. */
typedef struct fl_log_ends {
    bool whole; /* the GPU idles before and after it, or the log's head states its length */
    bool idle_before, idle_after;
    double above_w;           /* the power from which on the program ran, where utilisation does not tell; else NAN */
    double idle_s, idle_at_s; /* the longest stretch within the run without work, and when it begins; 0 = no long one */
    double error_s;           /* by how much time_s may be wrong, as the readings are so far apart */
    double counter_w, sensor_w; /* the mean power by the energy counter, and by the power readings; NAN = not known */
} fl_log_ends;

/* Opens a file by its format, NULL = detected. If only readings of GPUs other than how->device are there, d says of
 * which. */
fl_status fl_log_open(const char *path, const char *format, const fl_import_options *how, fl_imported *in, fl_diag *d);

/* device: the GPU, -1 = the log's only one. sm_mhz: the SM clock of a log that has none; NAN = the one in the file's
 * name. Diagnostics name path. ends may be NULL. FL_BAD_INPUT: the GPU was never busy, clock or power are not known, or
 * the log pauses within the run, so that its length is not known. */
fl_status fl_log_run_find(const char *path, const fl_telemetry *t, int64_t device, double sm_mhz, fl_log_run *out,
                          fl_log_ends *ends, fl_diag *d);

/* Read the clocks of --sm-mhz, "1410" for all logs or "1050,1410" for each, into mhz. text NULL: all are NAN. */
fl_status fl_log_clocks(const char *text, size_t logs, double *mhz, fl_diag *d);

/* Name the program of a log: by the log's head, else by the file's name without the clock of its run and without words
 * that name a setting (default, locked, MHz). folder: the last folder of the path counts too. A name that says nothing
 * else is FL_LOG_ANY_PROGRAM. The caller frees the name. NULL: memory ran out. */
#define FL_LOG_ANY_PROGRAM "program"
char *fl_log_program(const char *path, const fl_head *head, const fl_log_run *run, bool folder);

/* What the power and the utilisation of one run at one clock tell. They are one measured setting of the same fit as all
 * others (models/chip/chip.h); its time says nothing about other clocks.
 *
 * A GPU that had no work for a part of the run waits for its host there. That part of the time does not depend on the
 * GPU's clocks, and its power is what the law gives for an idle GPU. Utilisation counts the time in which any kernel
 * ran, so the true idle part is at least this long. The rest is the busy run. Its power fixes the split between the
 * power that the GPU draws anyway and the power of its work. A calibration derives from workloads with similar power
 * how the time depends on the clock; a platform's constants cannot tell that at all. */

typedef struct fl_one_probe {
    fl_log_run busy; /* the run without its idle time; its memory clock is known */
    double idle_s;
    bool tells; /* false: the power tells nothing; *busy is then the whole run, and idle_s is 0 */
} fl_one_probe;

/* The power tells nothing where the chip has no power law, where the run's clock lies outside the chip's, or where the
 * GPU was busy for less than half of the time, because the busy part's power would then be a small difference. Nor does
 * it where the busy part draws less than an idle GPU: the law then belongs to another board. */
fl_one_probe fl_one_probe_make(const fl_chip *chip, const fl_log_run *run);
/* Make the probe of a run from a platform's constants; the caller frees *chip. */
fl_status fl_one_probe_of_device(const fl_device *dev, const fl_log_run *run, fl_one_probe *p, fl_chip **chip,
                                 fl_diag *d);

/* Powers at count settings with assumed times (guess->time_s), from one measured power. Their deviations are relative
 * to the setting ref (only its clocks count), which has none: savings are relative to ref, and errors at two clocks are
 * correlated. FL_BAD_INPUT where no law fits. */
fl_status fl_one_probe_powers(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *ref, const fl_chip_row *at,
                              fl_chip_guess *guess, size_t count, fl_diag *d);
/* Adds the idle time to the predictions for the busy run. */
void fl_one_probe_add_idle(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *at, fl_chip_guess *guess,
                           size_t count);

/* A fitted chip in a platform file, under the key "calibration", beside the values that the simulator reads. */

/* Make the JSON of a chip. The caller owns the tree. NULL: memory ran out. */
cJSON *fl_chip_to_json(const fl_chip *chip, bool mem_known);
fl_status fl_chip_from_json(const fl_json *at, fl_chip *chip, bool *mem_known, fl_diag *d);

/* The clocks that a user can set, and the clocks at which the GPU then runs. A GPU that was set to 405 MHz and ran at
 * 214 has rows and settings at 214 in every fit; advice on where to measure says 405. fl_fit_asked_mhz maps back. */

/* Return the clock at which the GPU runs when a user sets this one. A set clock that ran at another clock of the rows
 * (its rows were left out) maps to that clock. */
double fl_fit_ran_mhz(const fl_fit_rows *r, double asked_mhz);
/* Return true if these rows show the wrong clock i of their list; otherwise only the device's sweeps do. */
bool fl_fit_clock_shows(const fl_fit_rows *r, size_t i);
/* Write "1530", or "405 (which runs at 214)", into buf. Return buf. */
char *fl_fit_clock_text(const fl_fit_rows *r, double sm_mhz, char *buf, size_t size);

/* Keep with the calibration which set clocks ran at another clock (405 set, 217 ran), as the device's own sweeps show.
 * Small sweeps cannot show it. _apply runs before the rows are judged: rows at such a clock get the clock that ran. */
#define FL_FIT_CLOCKS_KEY "asked_ran_mhz"
cJSON *fl_fit_clocks_to_json(const fl_fit_rows *r); /* NULL when out of memory; the caller owns it */
fl_status fl_fit_clocks_apply(const fl_json *calibration, fl_fit_rows *r, fl_diag *d);

/* Sound rows: those that ran at the clock they name. models/unsound/unsound.h makes the findings; this module applies
 * them to the rows of files and reports them. */

/* Removes the rows that did not run at their clocks. Where a clock is wrong throughout, its rows get the clock at which
 * they ran. A row that runs slower than it should, close to the only limit it was measured under, counts as held down
 * by that limit. Rows are sorted before and after. */
fl_status fl_fit_drop_unsound(fl_fit_rows *r, fl_diag *d);
/* Read files (fl_fit_rows_read) and drop their unsound rows. Every fit reads through this function, unless a
 * calibration has to correct clocks in between. */
fl_status fl_fit_rows_sound(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);

/* Write how far the rows of a workload that were left out lie off, into buf; an empty text where none was. Return buf.
 */
char *fl_fit_unsound_said(const fl_fit_rows *r, const char *workload, char *buf, size_t size);
void fl_fit_sound_notes(const fl_fit_rows *r);  /* prints the findings */
cJSON *fl_fit_sound_json(const fl_fit_rows *r); /* rows (file, line, workload, kernel, clocks, why) and clocks */

/* Checks that a sweep must pass before a fit or advice uses it. A reader accepts any number, since it must give back
 * what was written. A fit would take kilohertz for a GPU of its own, and the mean of two workloads for one. */

/* Check units over a whole file; the reader checks each row. FL_BAD_INPUT, with line and column: the highest value of a
 * file is below that of any GPU, or limits are shares. The message names the factor to the likely unit. path: the file
 * of *s, which the function reads again to find the column. */
fl_status fl_sweep_check_units(const char *path, const fl_sweep *s, fl_diag *d);

/* Check that no workload has rows of its kernels beside rows of the whole program, for callers that add up kernels:
 * such rows would count twice. FL_BAD_INPUT, with the line of the first row of a kernel. */
fl_status fl_sweep_check_kernels(const char *path, const fl_sweep *s, fl_diag *d);

/* Find two rows of the workload, at one memory clock and limit, of which the one at the lower SM clock took less than
 * FL_SWEEP_FASTER of the other's time. No clock explains that (harness/chip/log_run.c has the source). Of several pairs
 * take the one with the least share; *low NULL: there is none. */
#define FL_SWEEP_FASTER 0.8
fl_status fl_sweep_odd(const fl_sweep *s, uint32_t workload, const fl_sweep_row **low, const fl_sweep_row **high,
                       fl_diag *d);

/* Find two rows of the workload, at one memory clock and limit, of which the one at the much lower SM clock draws as
 * much and takes no longer: a clock was not in force. *low NULL: there is none. FL_SWEEP_UNMOVED says it. */
#define FL_SWEEP_UNMOVED                                                                                               \
    "%s draws %.4g W at %g MHz, and %.4g W at %g MHz, in as much time: unless it hardly uses the GPU, a clock was "    \
    "not in force, and what is computed from these rows is not to be trusted"
fl_status fl_sweep_unmoved(const fl_sweep *s, uint32_t workload, const fl_sweep_row **low, const fl_sweep_row **high,
                           fl_diag *d);

/* Check settings that occur twice. FL_BAD_INPUT, with the line of the first such row: one time is more than a tenth
 * above the other. Repeated runs scatter less, so such rows are not from one workload. */
fl_status fl_sweep_check_twice(const char *path, const fl_sweep *s, fl_diag *d);
