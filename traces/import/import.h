/* Files as other tools write them, read into the plain structs of traces/io/records.h. Each format has one reader, and
 * each reader has one row in traces/open/readers.h.
 *
 * A reader fills kernels, telemetry, or both, or a sweep, or requests, whole or not at all, and notes what its format
 * cannot carry ("no clocks: kernels are taken at the platform's default"). It never guesses silently: what it had to
 * assume is a note. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"
#include "traces/serving/requests.h"

typedef struct fl_imported {
    bool has_kernels, has_telemetry, has_sweep, has_requests;
    fl_kernel_trace kernels;
    fl_sweep sweep;
    fl_requests requests;
    fl_telemetry telemetry; /* signal names are those of the contract (power_w, sm_mhz, util_gpu_pct, ...) */
    char **note;            /* note_count entries: what the format does not carry, what was left out and why */
    size_t note_count, note_room;
    bool note_lost; /* memory ran out for a note */
} fl_imported;

typedef struct fl_import_options {
    double interval_s; /* interval of rows without time stamps (dcgmi dmon -d); 0 = not given */
    int32_t device;    /* the device to read; -1 = all */
    /* Called now and then with the share of the file that was read, 0..1; may be NULL. */
    void (*progress)(void *user, double share);
    void *user;
} fl_import_options;

typedef struct fl_reader {
    const char *name; /* for --format: "nsys-csv" */
    const char *what; /* description in one line */
    /* True where the first bytes (and the name) are of this format. head: size bytes, unpacked where the file is
     * gzipped. */
    bool (*detect)(const char *path, const char *head, size_t size);
    /* Fills *out, which is zeroed; o is never NULL. Call it by fl_reader_read, which frees what a failure leaves. */
    fl_status (*read)(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d);
} fl_reader;

extern const fl_reader *const fl_readers[]; /* fl_readers_count */
extern const size_t fl_readers_count;

/* The reader of a file: by name where one is given (FL_BAD_INPUT with the nearest name for an unknown one), else the
 * first that detects the file. FL_BAD_INPUT with a list of the formats where none does. */
fl_status fl_reader_find(const char *path, const char *name, const fl_reader **reader, fl_diag *d);

/* Reads a whole file by a reader into *out, which the caller frees, or leaves *out zeroed. o NULL: every device. */
fl_status fl_reader_read(const fl_reader *reader, const char *path, const fl_import_options *o, fl_imported *out,
                         fl_diag *d);

/* For readers: adds a note. fl_import_say keeps an allocation failure in *out until fl_import_said reports it, so that
 * many notes in a row need one check. */
void fl_import_say(fl_imported *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
fl_status fl_import_said(const fl_imported *out, fl_diag *d);
/* Notes that the last line was cut off; line 0: it was not. */
void fl_import_torn(fl_imported *out, int64_t line);
fl_status fl_import_note(fl_imported *out, fl_diag *d, const char *format, ...) __attribute__((format(printf, 3, 4)));
void fl_imported_free(fl_imported *out);
