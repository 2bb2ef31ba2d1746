/* What the files of traces/import share: cells and dates, readings of telemetry, rows of sweeps. */
#pragma once

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool fl_cell_is(fl_cell c, const char *text);
bool fl_cell_begins(fl_cell c, const char *text);
bool fl_cells_have(const fl_cells *c, const char *text);

/* ns since 1970 of a civil date and time, read as UTC. */
int64_t fl_civil_ns(int year, int month, int day, int hour, int minute, int second, int64_t ns);

/* Read a text line by line, each as a row of one field; empty lines are skipped. */
fl_status fl_lines_read(const char *path, fl_row_function take, void *user, fl_diag *d);

/* ---- times ---- */

enum { FL_BOARDS_MAX = 1024 };

typedef struct fl_time {
    int64_t ns;  /* since 1970 in UTC, or since midnight */
    bool zoned;  /* the text names its zone */
    bool of_day; /* a time of day without a date */
} fl_time;

/* Parse a date and time ("2023/07/14 10:10:26.905", "2025-03-01T10:00:00,123+01:00", "20260816 09:22:34") or a time of
 * day. False for any other text. */
bool fl_time_parse(const char *text, fl_time *t);

enum { FL_JOINED_MAX = 256 };

typedef struct fl_joined { /* a row whose time was cut in two */
    fl_field field[FL_JOINED_MAX];
    char text[96];
    fl_csv_row row;
} fl_joined;

/* Join the cells of a time that a separator cuts: the comma of `date --iso-8601=ns`, or the blank between date and
 * time. False where they are no such time. */
bool fl_time_join(const fl_csv_row *row, size_t time, char by, fl_joined *to);

/* The time column of a table: dates, or numbers whose unit the first one tells. */
typedef struct fl_stamps {
    int64_t last_ns[FL_BOARDS_MAX + 1], shift_ns; /* of a board; of a clock that was set back */
    int power;                                    /* a number counts 10^power ns; -1: not known yet */
    bool guessed, small;                          /* by the size of the first number; small: not since 1970 */
    size_t local, of_day, numbers, set_back;
} fl_stamps;

void fl_stamps_begin(fl_stamps *s, int power);
/* Return the power of ten of the unit at the end of a column's name, such as "t_ms"; -1: it has none. */
int fl_stamps_power(const char *name, size_t size);
/* Read a cell of the time column. what: the column's name. */
fl_status fl_stamp_read(fl_stamps *s, const fl_csv_row *row, size_t i, const char *what, size_t board, int64_t *ns,
                        fl_diag *d);
void fl_stamps_say(const fl_stamps *s, fl_imported *out);

/* ---- tables through a map ---- */

typedef struct fl_map_place {         /* where one column of the sweep comes from */
    size_t part[FL_MAP_PARTS], parts; /* columns of the table; none: a constant */
    double number;                    /* that they are multiplied or divided by, or the constant */
    double unit;                      /* what the unit in the column's name is in that of the target */
    const char *text;                 /* a constant text, text_size long, in the map; NULL: none */
    size_t text_size;
    bool scaled, divided, inverted;                        /* inverted: one over it */
    enum { FL_MAP_NAMED, FL_MAP_HEADER, FL_MAP_CELLS } of; /* HEADER, CELLS: of each column that a number heads */
} fl_map_place;

/* Find where a term's value comes from in a table with this header. */
fl_status fl_map_find(const fl_csv_row *header, const fl_map_term *t, fl_map_place *p, fl_diag *d);
/* Whether a target is taken as it stands: a name, a board or a time. Such columns may be joined by '+'. */
bool fl_map_is_text(const char *target);

typedef struct fl_map_seen { /* what a table had besides its rows */
    size_t headers, comments;
    bool drop_torn; /* set it: a last line without its end is left out, as of a logger that was killed */
    int64_t torn;
} fl_map_seen;

/* Read a table through a map: take gets the header and then each row, whose columns are the map's targets. A target
 * "t" is named t_ns, t_us, t_ms or t_s there if its unit is known. */
fl_status fl_map_read(const char *path, const fl_sweep_map *map, fl_row_function take, void *user, fl_map_seen *seen,
                      fl_diag *d);

fl_status fl_sweep_read_mapped_times(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_left_out *left,
                                     fl_diag *d);

/* ---- readings of foreign telemetry: signals by name, rows of values, and what of them is not known ---- */

typedef struct fl_readings { /* made by fl_readings_begin; stays at its address until fl_readings_free */
    fl_imported *out;
    fl_left_out left;
    fl_telemetry_rows rows;
    size_t signal_room;
} fl_readings;

void fl_readings_begin(fl_readings *r, fl_imported *out);

/* Returns the column of a signal and adds it if it is new: add all signals before the first row. */
fl_status fl_readings_signal(fl_readings *r, const char *name, size_t *column, fl_diag *d);

/* Adds the row that fl_telemetry_row gave; leaves it out where no cell has a value. */
fl_status fl_readings_take(fl_readings *r, const fl_csv_row *row, int64_t t_ns, int32_t device, fl_diag *d);

/* Ends the rows (fl_telemetry_end). Notes what was left out. Removes signals that were never known (noted), and the
 * power of the first rows where it is not yet a reading. FL_BAD_INPUT (file path) where nothing remains. */
fl_status fl_readings_end(fl_readings *r, const char *path, fl_diag *d);
void fl_readings_free(fl_readings *r);

/* ---- readings by the names that a tool has for them ---- */

typedef struct fl_gauge {
    const char *name;   /* as the tool has it, without a unit in brackets */
    const char *signal; /* what it becomes */
    const char *unit;   /* where neither column nor cell names one; NULL: the signal's own */
    unsigned bits;      /* not 0: a value above 0, or "Active", sets these bits of the signal */
} fl_gauge;

#define FL_GAUGE_MASK 0x80000000u /* bits: the cell is NVML's mask of reasons */

/* Return true for a number by which DCGM says that a field has no value. */
bool fl_dcgm_blank(double x);

typedef struct fl_gauge_column {
    const fl_gauge *of; /* NULL: not carried */
    size_t signal;
    double factor;
    fl_signal_range range;
} fl_gauge_column;

typedef struct fl_gauges { /* set table and rows; begin r by fl_readings_begin */
    fl_readings r;
    const fl_gauge *table;
    size_t rows;
    fl_gauge_column *column;
    size_t count, room;
    char left_out[256];
} fl_gauges;

/* Add a column by its name; field i of the row is its place in diagnostics. unit: what a row of units says, or NULL.
 * used: the reader takes it itself, so it is not noted as left out. */
fl_status fl_gauges_add(fl_gauges *g, const fl_csv_row *row, size_t i, const char *name, size_t size, const char *unit,
                        bool used, fl_diag *d);
/* End the columns: decide between those of one signal, and add the signals. */
fl_status fl_gauges_begin(fl_gauges *g, const fl_csv_row *row, fl_diag *d);
/* Read a cell into value, the row that fl_telemetry_row gave. A cell may name its unit. */
fl_status fl_gauges_cell(fl_gauges *g, const fl_csv_row *row, size_t i, size_t column, const char *cell, double *value,
                         fl_diag *d);
void fl_gauges_free(fl_gauges *g);

enum { FL_CELL_ROOM = 64 };
/* Read "251 W" or "251" in the signal's unit; factor: of the unit where the cell names none. *value stays where the
 * cell says that there is no value. */
fl_status fl_cell_read(const fl_csv_row *row, size_t i, const char *cell, const char *what, const char *signal,
                       double factor, double *value, fl_diag *d);
/* Find a unit by what the signal's name ends in (_w, _mhz, _j, _pct, _c, _ns, _s). */
bool fl_unit_find(const char *signal, const char *text, size_t size, double *factor);
/* Return the length of a column's name without the unit in brackets at its end, and that unit (NULL: none). */
size_t fl_unit_split(const char *name, size_t size, const char **unit, size_t *unit_size);

typedef struct fl_boards { /* by number: the index, else the order in which they come */
    char *name[FL_BOARDS_MAX];
    size_t moved; /* boards whose index another board has */
} fl_boards;

/* Find the number of a board: its index, unless another board has that index, as on another node; index -1: that of its
 * name, in order of appearance. name: tells boards of one index apart; NULL: nothing does. */
fl_status fl_board_of(fl_boards *b, const fl_csv_row *row, size_t i, int64_t index, const char *name, size_t *board,
                      fl_diag *d);
void fl_boards_say(const fl_boards *b, fl_imported *out);
void fl_boards_free(fl_boards *b);

/* ---- readings that come one by one, as series or as members of JSON objects ---- */

typedef struct fl_point {
    int64_t t_ns, line;
    size_t order;
    double value;
    uint32_t column; /* of fl_gauges */
    int32_t device;
} fl_point;

typedef struct fl_points { /* made zeroed; set g and file */
    fl_gauges *g;
    const char *file;
    fl_point *point;
    size_t count, room;
} fl_points;

/* Add a reading by its name in the tool: a text, perhaps with its unit. unit: NULL, or what stands beside it. used: the
 * reader takes it itself. */
fl_status fl_points_add(fl_points *p, int64_t line, int64_t t_ns, size_t device, const char *name, const char *text,
                        const char *unit, fl_diag *d);
/* Make rows of the points of one time and device. */
fl_status fl_points_end(fl_points *p, fl_diag *d);
void fl_points_free(fl_points *p);

/* ---- JSON: values one after the other, each as a tree ---- */

struct cJSON;
typedef fl_status (*fl_json_function)(void *user, const struct cJSON *value, int64_t line, fl_diag *d);

/* Read the values of a file: one, one a line, or several behind each other. text: what closes a file that its writer
 * did not end ("}}"); NULL: none. A last value that is cut off is a torn line (*torn) where others came before it;
 * torn NULL: it is refused. */
fl_status fl_json_each(const char *path, const char *closing, fl_json_function take, void *user, int64_t *torn,
                       fl_diag *d);
/* The member of an object, a number or a text; NULL and NAN where there is none. */
const char *fl_json_member_text(const struct cJSON *object, const char *key);
double fl_json_member_real(const struct cJSON *object, const char *key);

typedef struct fl_rounds { /* of rows without times */
    bool seen[FL_BOARDS_MAX], begun;
    int64_t round;
} fl_rounds;

/* Return the number of the round of a row: a GPU that comes again begins the next. */
int64_t fl_round_of(fl_rounds *r, size_t gpu);

/* Ends the telemetry of any reader, whose rows are in out: notes what was left out, pauses, and accounts of energy that
 * differ; sets has_telemetry. FL_BAD_INPUT (file path): the readings of one device are of several boards. */
fl_status fl_import_telemetry(fl_imported *out, const fl_left_out *left, const char *path, fl_diag *d);

/* Bits of the signal throttle: FL_THROTTLE_* of policies/policy.h. */
enum { FL_HELD_POWER = 1, FL_HELD_HEAT = 2, FL_HELD_IDLE = 4, FL_HELD_OTHER = 8 };

/* Return these bits for a mask of NVML's clock event reasons. */
unsigned fl_held_by(unsigned long long reasons);

/* The rows of a sweep, added one by one with all checks, from any source: a sweep's own file, or a table of any origin
 * (import.h). */

typedef struct fl_sweep_rows fl_sweep_rows;

/* times: power and energy may be unknown. left: as for fl_sweep_read; it stays where it is until _close. NULL when out
 * of memory. */
fl_sweep_rows *fl_sweep_rows_open(bool times, fl_left_out *left, fl_diag *d);
/* Takes the header first, then each row. */
fl_status fl_sweep_rows_take(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d);
/* Frees l. Where status is FL_OK and there was a row, *s becomes the sweep (its head stays unchanged). Otherwise *s is
 * zeroed, and the function returns status, or the error that there was no row. */
fl_status fl_sweep_rows_close(fl_sweep_rows *l, const char *path, fl_status status, fl_sweep *s, fl_diag *d);

/* ---- rows of requests, added one by one ---- */

typedef struct fl_request_rows {
    fl_imported *out;
    const char *path;
    fl_left_out left;
    fl_intern names;
    bool measured; /* some row has times */
} fl_request_rows;

fl_status fl_request_rows_begin(fl_request_rows *r, const char *path, fl_imported *out, fl_diag *d);
/* Return the index of a model's or class's name. */
fl_status fl_request_rows_name(fl_request_rows *r, const char *text, uint32_t *name, fl_diag *d);
/* Add a request; times NULL: not measured. Leave out one without tokens. */
fl_status fl_request_rows_add(fl_request_rows *r, const fl_request_row *row, const fl_request_times *times, fl_diag *d);
/* Put the first request at 0, and leave out what comes more than 26 days later; unless traces of the format may be so
 * long, as contradictions. sorted: rows should be in order of time; else they are sorted. Sets has_requests. */
fl_status fl_request_rows_end(fl_request_rows *r, bool sorted, bool may_be_long, fl_diag *d);
void fl_request_rows_free(fl_request_rows *r);
