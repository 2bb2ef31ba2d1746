/* Files of other tools, read into the plain structs of traces/io/records.h: telemetry, sweeps, logs, public tables.
 * Also what all readers of foreign files share.
 *
 * A reader is one file that ends in a fl_reader, with one row in traces/open/open.h. Open a file of unknown format by
 * fl_trace_open (traces/open); sweeps by fl_sweep_read. A reader fills kernels, telemetry, or both, or a sweep, or
 * requests, whole or not at all; the caller frees them with fl_imported_free. It never guesses silently: what its
 * format cannot carry, and what it had to assume, is a note ("no clocks: kernels are taken at the platform's default").
 * dcgmi.c reads `dcgmi dmon`, nvidia_smi.c `nvidia-smi --query-gpu`, geopm.c GEOPM, geepafs.c GEEPAFS, public.c
 * published tables. */
#pragma once

#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct fl_imported {
    bool has_kernels, has_telemetry, has_sweep, has_requests;
    fl_kernel_trace kernels;
    fl_sweep sweep;
    fl_requests requests;
    fl_telemetry telemetry; /* signal names are those of the contract (power_w, sm_mhz, util_gpu_pct, ...) */
    char **note;            /* note_count entries: what the format does not carry, what was left out and why */
    size_t note_count, note_room;
    size_t doubt_count; /* the first of the notes: numbers rest on data that were left out or contradict */
    size_t lost_count;  /* the first of those: what was left out, which no reader of a file made from this can see */
    bool note_lost;     /* memory ran out for a note */
} fl_imported;

typedef struct fl_import_options {
    double interval_s; /* interval of rows without time stamps (dcgmi dmon -d); 0 = not given */
    int32_t device;    /* the device to read; -1 = all */
    /* Called now and then with the share of the file that was read, 0..1; may be NULL. */
    void (*progress)(void *user, double share);
    void *user;
} fl_import_options;

/* What a format carries. Of those after the first of a group (kernels, readings, settings, requests), what a format
 * does not give it lacks. */
typedef enum fl_gives {
    FL_GIVES_KERNELS = 1,
    FL_GIVES_READINGS = 2,
    FL_GIVES_SETTINGS = 4,
    FL_GIVES_REQUESTS = 8,
    FL_GIVES_LAUNCHES = 16,
    FL_GIVES_TIMES = 32, /* of readings: time stamps */
    FL_GIVES_CLOCKS = 64,
    FL_GIVES_POWER = 128,
    FL_GIVES_ENERGY = 256, /* a counter, or measured energy */
    FL_GIVES_USE = 512,    /* utilisation */
    FL_GIVES_PREFIXES = 1024,
    FL_GIVES_LATENCIES = 2048
} fl_gives;

typedef struct fl_reader {
    const char *name; /* for --format: "nsys-csv" */
    const char *what; /* description in one line */
    const char *tool; /* the tools and versions that write it */
    unsigned gives;   /* fl_gives, at best: a file may lack more */
    /* True where the first bytes (and the name) are of this format. head: size bytes, unpacked where the file is
     * gzipped. */
    bool (*detect)(const char *path, const char *head, size_t size);
    /* Fills *out, which is zeroed; o is never NULL. Call it by fl_reader_read, which frees what a failure leaves. */
    fl_status (*read)(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d);
} fl_reader;

/* Write what a format gives, or what of its group it lacks, as words with commas between. */
void fl_gives_text(unsigned gives, bool lacks, char *text, size_t room);

/* Keys of a kernel trace's head that say which GPU a device is: FL_GPU_KEY and its number. The value is "rank N" of a
 * process that sees one GPU of its own, or the board's UUID. */
#define FL_GPU_KEY "gpu."

/* Notes in the head of *out that all its devices are those of a rank, unless the head says which GPUs they are. */
fl_status fl_import_rank(fl_imported *out, int64_t rank, fl_diag *d);

/* Reads a whole file by a reader into *out, which the caller frees, or leaves *out zeroed. o NULL: every device. */
fl_status fl_reader_read(const fl_reader *reader, const char *path, const fl_import_options *o, fl_imported *out,
                         fl_diag *d);

/* Add a note to a reader's result. fl_import_say keeps an allocation failure in *out until fl_import_said reports it,
 * so that many notes in a row need one check. */
void fl_import_say(fl_imported *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
fl_status fl_import_said(const fl_imported *out, fl_diag *d);
/* Put a note before the others, behind those of its kind: numbers rest on data that were left out, doubtful or
 * contradictory. Commands print such notes first. */
void fl_import_doubt(fl_imported *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Put a doubt before those that are not about rows left out. */
void fl_import_lost(fl_imported *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Add what was left out to the head of a file to be written (FL_LEFT_KEY). name: as in fl_import_take_notes. */
fl_status fl_import_head_left(fl_head *head, const fl_imported *in, const char *name, fl_diag *d);
/* Add the notes of another result, doubts as doubts. name: stands before each; NULL: none. */
fl_status fl_import_take_notes(fl_imported *to, const fl_imported *from, const char *name, fl_diag *d);
/* Note what a reader left out (traces/io/io.h). */
fl_status fl_import_left(fl_imported *out, const fl_left_out *left, fl_diag *d);
/* Notes that the last line was cut off; line 0: it was not. */
void fl_import_torn(fl_imported *out, int64_t line);
fl_status fl_import_note(fl_imported *out, fl_diag *d, const char *format, ...) __attribute__((format(printf, 3, 4)));
void fl_imported_free(fl_imported *out);

/* ---- a table of any origin: a map from its columns to those of a sweep, or to signals of telemetry ----
 *
 * As text: "sm_mhz=coreF,time_s=time/1000,workload=app+input". The left side is a column of a sweep
 * (traces/files/files.h) or a signal. The right side is its source: the name of a column in the table's header, with or
 * without its unit; that name divided or multiplied by a number; a number alone, or a text in single quotes, for a
 * value that is the same in every row; or, for workload and kernel, several names joined by '+', whose texts are joined
 * by '.'. A name that contains a comma stands in single quotes. 1/NAME is for speeds, where a time is wanted. A unit in
 * brackets in a column's name, or behind a cell's number, counts where the map does not scale.
 *
 * A wide table has a column per clock: `header` is the number that heads such a column, and `cells` are the values
 * below it ("workload=name,sm_mhz=header,power_w=cells", "time_s=1/cells"). Each row gives one setting per such column;
 * columns that no number heads are ignored. */

enum { FL_MAP_TERMS = 32, FL_MAP_PARTS = 8 };

typedef struct fl_map_term {
    char *target, *source;
} fl_map_term;

typedef struct fl_sweep_map { /* zeroed: an empty map */
    fl_map_term term[FL_MAP_TERMS];
    size_t count;
} fl_sweep_map;

/* Adds a term and copies both texts. Refuses an empty text and a target that the map already has. Only the reading of a
 * table checks whether target is a column of a sweep and source a column of the table. */
fl_status fl_sweep_map_add(fl_sweep_map *m, const char *target, const char *source, fl_diag *d);
/* Parses the terms of a text. m is empty after a failure. */
fl_status fl_sweep_map_parse(const char *text, fl_sweep_map *m, fl_diag *d);
void fl_sweep_map_free(fl_sweep_map *m);

/* Reads the table as fl_sweep_read() reads a sweep, with the same checks, which name the table's own lines and columns.
 * Columns that no term names are ignored. The header is the first line that has the columns, perhaps behind '#'. Fields
 * are separated by commas, blanks, or semicolons or tabs, where a comma between digits is a decimal point. _times:
 * power may be unknown, as with fl_sweep_read_times. */
fl_status fl_sweep_read_mapped(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_left_out *left, fl_diag *d);

/* Return whether a map makes telemetry: it names t or gpu, or no column of a sweep. */
bool fl_map_is_telemetry(const fl_sweep_map *map);
/* Read a table as telemetry. Targets: t (a date with or without a zone, or a number whose unit its size or its column's
 * name tells; t_s, t_ms, t_us, t_ns state it; divided or multiplied by a number it is in s), gpu (an index, or names),
 * workload (a text for the head), and signals (power_w, ...). Without t the rows are o->interval_s apart. */
fl_status fl_telemetry_read_mapped(const char *path, const fl_sweep_map *map, const fl_import_options *o,
                                   fl_imported *out, fl_diag *d);

/* ---- sweeps and logs ---- */

/* Read a sweep. Columns: workload, sm_mhz or power_cap_w or both, time_s, and power_w or energy_j or both. Optional:
 * kernel,mem_mhz,power_cap_w,energy_cv,ratio,ratio_cv; for predicted rows the standard deviations time_sd_pct and
 * power_sd_pct (empty or 0: measured); activities in percent, 0 to 100, named as in DCGM (traces/io/records.h,
 * fl_counter): dram_active_pct,sm_active_pct,sm_occupancy_pct,fp32_pct,fp64_pct,fp16_pct,tensor_pct; and the mean and
 * standard deviation of the utilisation readings, in points: util_gpu_pct,util_gpu_sd,util_mem_pct,util_mem_sd. The
 * head is optional, because plain files exist. Empty, nan and N/A mean not known. One of power_w and energy_j may be
 * unknown; it then follows from the other and time_s. A row has no value where its time, or power and energy, are 0 or
 * not known, as for a run that failed, or a clock that is a word (auto). left: counts the rows that were left
 * out; NULL: refuse at the first (traces/io/io.h). */
fl_status fl_sweep_read(const char *path, fl_sweep *s, fl_left_out *left, fl_diag *d);
/* Read a sweep without need of power: power and energy may be unknown (NAN), and their columns may be absent. */
fl_status fl_sweep_read_times(const char *path, fl_sweep *s, fl_left_out *left, fl_diag *d);
fl_status fl_sweep_write(const char *path, const fl_sweep *s, fl_diag *d);

/* Read the GEEPAFS daemon's log: five head lines, then rows of a time of day, five numbers per GPU (GPU %, memory %,
 * mW, SM MHz, set MHz or -1), and the loop's own duration in us. It becomes decisions with the signals util_gpu_pct,
 * util_mem_pct, power_w, sm_mhz (GPU) and loop_ns (host: the duration of the PREVIOUS row, unknown in the first), and
 * the control sm_mhz. Times follow from the durations: row k+1 comes max(200 ms, duration of row k) after row k. The
 * reader skips a torn last row and reports its line. A daemon that Ctrl-C ended says so after the last row, in one or
 * two lines of text; the reader skips them, and nothing may follow. */
fl_status fl_geepafs_read(const char *path, fl_decisions *r, fl_diag *d);

/* Read the trajectory of an executed controller of one GPU: columns t_s, demand_w, power_w and set_w (the limit that
 * was set at this row; empty: none), and optionally sm_mhz, command_w and cap_w. It becomes decisions with the signals
 * target_w (host), power_w and sm_mhz, and the control power_limit_w. Power counts as fresh where it changed. A head
 * may begin with "# foldline-trajectory 1" and name policy and platform. */
fl_status fl_trajectory_read(const char *path, fl_decisions *r, fl_diag *d);

/* ---- for readers of other tools' text ----
 *
 * These functions find the header line below the lines that a shell or tool wrote above it, recognise cells that mean
 * "not known", and name common mistakes in numbers (decimal commas, thousands separators). */

typedef struct fl_cell { /* not NUL-terminated */
    const char *text;
    size_t size;
} fl_cell;

enum { FL_CELLS_MAX = 128 };

typedef struct fl_cells { /* the cells of one line, cut at , ; | and tab, without quotes and surrounding blanks */
    fl_cell cell[FL_CELLS_MAX];
    size_t count;
} fl_cells;

typedef bool (*fl_header_function)(const fl_cells *line);

/* Number of lines above the first header, among the first bytes of a file (a byte-order mark is skipped); -1 = no
 * header. */
int fl_header_find(const char *head, size_t size, fl_header_function is);

/* Find the header of a file. FL_BAD_INPUT: the first 64 KiB contain no such line ("no header line, expected ..."), or
 * the file is gzipped or UTF-16. */
fl_status fl_header_seek(const char *path, fl_header_function is, const char *expected, int *lines, fl_diag *d);

/* Refuses a header whose fields are separated by something other than the comma. */
fl_status fl_header_commas(const fl_csv_row *header, fl_diag *d);

/* Refuses a row with another number of fields. Where it has more, the message mentions decimal commas. */
fl_status fl_foreign_width(const fl_csv_row *row, size_t expected, fl_diag *d);

/* Parses text as a number. The diagnostic contains `what`, and the comma where there is one. */
fl_status fl_foreign_real(const fl_csv_row *row, size_t index, const char *text, const char *what, double *value,
                          fl_diag *d);
fl_status fl_foreign_int(const fl_csv_row *row, size_t index, const char *what, int64_t min, int64_t max,
                         int64_t *value, fl_diag *d);

/* Converts a decimal number of units of 10^power ns (seconds: 9) to whole ns, exactly, with the last digit rounded. */
fl_status fl_foreign_ns(const fl_csv_row *row, size_t index, const char *what, int power, int64_t *ns, fl_diag *d);

/* Adds key: value to a head, unless it has the key. The value is text from a file; bytes that are not printable become
 * '?'. */
fl_status fl_foreign_head(fl_head *head, const char *key, const char *text, fl_diag *d);

/* Reports through the options, now and then, how much of the file a reader has read. */
typedef struct fl_progress {
    const fl_import_options *o;
    double size, done;
    size_t rows;
} fl_progress;

void fl_progress_start(fl_progress *p, const char *path, const fl_import_options *o);
void fl_progress_row(fl_progress *p, const fl_csv_row *row);
