/* GEOPM controller traces: fields cut by '|', a preamble of '#' lines, frequencies in Hz, energies cumulative in J,
 * hashes in hex, nan where not sampled. Signals asked for in addition are named SIGNAL-domain-index. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 1024, DEVICES_MAX = 256 };

typedef enum aggregate { SUM, MEAN } aggregate; /* of several columns that make up one signal of one device */

static const struct {
    const char *name, *signal;
    double factor;
    aggregate how;
    bool gpu;
} SIGNAL[] = {
    {"CPU_ENERGY", "cpu_energy_j", 1, SUM, false},
    {"ENERGY_PACKAGE", "cpu_energy_j", 1, SUM, false},
    {"FREQUENCY", "cpu_mhz", 1e-6, MEAN, false},
    {"CPU_FREQUENCY_STATUS", "cpu_mhz", 1e-6, MEAN, false},
    {"CPU_CYCLES_THREAD", "cpu_cycles", 1, SUM, false},
    {"CYCLES_THREAD", "cpu_cycles", 1, SUM, false},
    {"BOARD_POWER", "node_power_w", 1, SUM, false},
    {"BOARD_ENERGY", "node_energy_j", 1, SUM, false},
    {"GPU_POWER", "power_w", 1, SUM, true},
    {"GPU_ENERGY", "energy_j", 1, SUM, true},
    {"GPU_CORE_FREQUENCY_STATUS", "sm_mhz", 1e-6, MEAN, true},
    {"GPU_UNCORE_FREQUENCY_STATUS", "mem_mhz", 1e-6, MEAN, true},
    {"GPU_UTILIZATION", "util_gpu_pct", 100, MEAN, true},
    {"GPU_CORE_ACTIVITY", "sm_active_pct", 100, MEAN, true},
    {"GPU_UNCORE_ACTIVITY", "dram_active_pct", 100, MEAN, true},
    {"GPU_TEMPERATURE", "temp_c", 1, MEAN, true},
    {"DCGM::SM_ACTIVE", "sm_active_pct", 100, MEAN, true},
    {"DCGM::DRAM_ACTIVE", "dram_active_pct", 100, MEAN, true},
};
enum { SIGNALS = sizeof SIGNAL / sizeof *SIGNAL };

enum {
    WHOLE,
    BOARD,
    GPU,
    PACKAGE,
    CHIP,
    OTHER
}; /* what a column is of, the wider first; OTHER + n: any further domain */
static const char *const DOMAIN[] = {"", "board", "gpu", "package", "gpu_chip"};
enum { DOMAINS = sizeof DOMAIN / sizeof *DOMAIN, FURTHER_MAX = 16 };

typedef struct column {
    int signal; /* index into SIGNAL; -1: not carried */
    int domain;
    int32_t device;
    size_t at;  /* of the telemetry's signals */
    bool again; /* another column tells the same */
} column;

typedef struct loader {
    fl_readings r;
    fl_progress progress;
    column column[COLUMNS_MAX];
    size_t width, summed;
    const char *further[FURTHER_MAX]; /* domains beyond those of DOMAIN, of the header's row */
    size_t further_size[FURTHER_MAX], furthers;
    bool used[DEVICES_MAX + 1]; /* device i - 1 has columns */
    int32_t only;
    int64_t torn;
} loader;

static bool is_header(const fl_cells *line) {
    return line->count > 1 && fl_cell_is(line->cell[0], "TIME") && line->cell[0].text[4] == '|';
}

static bool detect(const char *path, const char *head, size_t size) {
    static const char FIRST[] = "# geopm_version";
    (void)path;
    return (size >= sizeof FIRST - 1 && !memcmp(head, FIRST, sizeof FIRST - 1)) ||
           fl_header_find(head, size, is_header) >= 0;
}

/* Any domain has its number, so that no two of them are added up. */
static int domain_of(loader *l, const char *name, size_t size) {
    for (int k = 0; k < DOMAINS; k++)
        if (strlen(DOMAIN[k]) == size && !strncmp(DOMAIN[k], name, size))
            return k;
    size_t k = 0;
    while (k < l->furthers && (l->further_size[k] != size || strncmp(l->further[k], name, size) != 0))
        k++;
    if (k == l->furthers && k < FURTHER_MAX) {
        l->further[k] = name;
        l->further_size[k] = size;
        l->furthers++;
    }
    return OTHER + (int)k;
}

/* "GPU_POWER-gpu-1": the signal, the domain, and the GPU or -1; false where the text is no signal that is carried. */
static bool parse_name(loader *l, const char *text, column *c) {
    static const char *const raw[] = {"NVML::", "LEVELZERO::"}; /* a signal by its source has the alias' units */
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++)
        text += strncmp(text, raw[i], strlen(raw[i])) ? 0 : strlen(raw[i]);
    const size_t size = strcspn(text, "-@");
    for (int s = 0; s < SIGNALS; s++) {
        if (strlen(SIGNAL[s].name) != size || strncmp(text, SIGNAL[s].name, size) != 0)
            continue;
        const char *domain = text[size] ? text + size + 1 : text + size, *number = domain + strcspn(domain, "-");
        *c = (column){.signal = s, .domain = domain_of(l, domain, (size_t)(number - domain)), .device = -1};
        number += *number == '-' ? 1 : 0;
        if (!SIGNAL[s].gpu || (c->domain != GPU && c->domain != CHIP))
            return true;
        const size_t digits = strspn(number, "0123456789");
        c->device = digits && digits < 4 && !number[digits] ? (int32_t)strtol(number, NULL, 10) : DEVICES_MAX;
        return c->device < DEVICES_MAX;
    }
    return false;
}

/* Of several columns of one signal only those of one name and domain make it up, the widest domain's: a board's energy
 * is that of its packages, and CPU_ENERGY is ENERGY_PACKAGE by its new name. */
static void choose(loader *l) {
    for (size_t i = 1; i < l->width; i++) {
        column *c = &l->column[i];
        for (size_t k = 1; k < l->width && c->signal >= 0 && !c->again; k++) {
            const column *o = &l->column[k];
            if (o->signal < 0 || strcmp(SIGNAL[o->signal].signal, SIGNAL[c->signal].signal) != 0)
                continue;
            c->again = o->domain < c->domain || (o->domain == c->domain && o->signal < c->signal);
        }
    }
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    char left_out[512] = "", again[512] = "";
    bool indexed = false, chip = false;
    fl_status status = FL_OK;
    if (row->count > COLUMNS_MAX)
        return FL_FIELD_FAIL(d, row, COLUMNS_MAX, "the header has %zu columns, expected at most %d", row->count,
                             COLUMNS_MAX);
    l->width = row->count;
    for (size_t i = 0; i < row->count; i++) {
        column *c = &l->column[i];
        if (parse_name(l, row->field[i].text, c))
            indexed |= SIGNAL[c->signal].gpu && c->device >= 0;
        else
            c->signal = -1;
    }
    for (size_t i = 1; i < row->count; i++) /* of all GPUs together, where each is there too */
        if (l->column[i].signal >= 0 && SIGNAL[l->column[i].signal].gpu && l->column[i].device < 0 && indexed)
            l->column[i].signal = -1;
    choose(l);
    for (size_t i = 1; i < row->count && !status; i++) {
        column *c = &l->column[i];
        bool gpu = c->signal >= 0 && SIGNAL[c->signal].gpu;
        if (c->signal < 0 || c->again) {
            char *list = c->again ? again : left_out;
            const size_t length = strlen(list);
            snprintf(list + length, sizeof left_out - length, "%s%s", length ? ", " : "", row->field[i].text);
            c->signal = -1;
            continue;
        }
        chip |= c->domain == CHIP;
        l->summed += gpu && c->device < 0;
        c->device = gpu && c->device < 0 ? 0 : c->device;
        if (l->only >= 0 && gpu && c->device != l->only) {
            c->signal = -1;
            continue;
        }
        l->used[c->device + 1] = true;
        status = fl_readings_signal(&l->r, SIGNAL[c->signal].signal, &c->at, d);
    }
    l->furthers = 0; /* they point into the row */
    if (!status && left_out[0])
        status = fl_import_note(l->r.out, d, "left out, as telemetry has no place for them: %s", left_out);
    if (!status && again[0])
        status = fl_import_note(l->r.out, d, "left out, as other columns tell the same: %s", again);
    if (!status && chip)
        status = fl_import_note(l->r.out, d, "readings of chips are taken for those of GPUs of the same numbers");
    if (!status && !l->r.out->telemetry.signal_count)
        status = FL_FIELD_FAIL(d, row, 0,
                               "no column that telemetry has a place for, expected such as GPU_POWER or CPU_ENERGY");
    return status;
}

static fl_status read_device(loader *l, const fl_csv_row *row, int64_t ns, int32_t device, fl_diag *d) {
    double *value = fl_telemetry_row(&l->r.rows);
    size_t n[SIGNALS] = {0};
    fl_status status = value ? FL_OK : fl_no_memory(d, row->file);
    for (size_t i = 1; i < l->width && !status; i++) {
        const column *c = &l->column[i];
        double v = 0;
        if (c->signal < 0 || c->device != device || fl_no_value(row->field[i].text))
            continue;
        status = fl_foreign_real(row, i, row->field[i].text, SIGNAL[c->signal].name, &v, d);
        double before = n[c->at] ? value[c->at] : 0;
        v *= SIGNAL[c->signal].factor;
        n[c->at]++;
        value[c->at] = SIGNAL[c->signal].how == SUM ? before + v : before + (v - before) / (double)n[c->at];
        if (!status)
            status = fl_signal_check(row, i, SIGNAL[c->signal].name, fl_signal_range_of(SIGNAL[c->signal].signal),
                                     value[c->at], d);
    }
    return status ? status : fl_readings_take(&l->r, row, ns, device, d);
}

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    int64_t ns = 0;
    fl_status status = fl_columns_width(row, l->width, d);
    if (!status && fl_no_value(row->field[0].text))
        return fl_left_empty(&l->r.left, row->file, row->line, 1, d, "TIME is '%.40s'", row->field[0].text);
    if (!status)
        status = fl_foreign_ns(row, 0, "TIME", 9, &ns, d);
    for (int32_t device = -1; device < DEVICES_MAX && !status; device++)
        if (l->used[device + 1])
            status = read_device(l, row, ns, device, d);
    return status;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_progress_row(&l->progress, row);
    if (!l->width)
        return read_header(l, row, d);
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    if (row->field[0].text[0] == '#' || !strcmp(row->field[0].text, "TIME"))
        return FL_OK; /* preamble and header once more */
    return fl_left_row(&l->r.left, read_row(l, row, &l->r.left.own), d);
}

static fl_status add_notes(const loader *l, fl_diag *d) {
    fl_imported *out = l->r.out;
    if (l->summed)
        fl_import_say(out, "GPU readings are of all GPUs together: taken as those of device 0");
    fl_import_torn(out, l->torn);
    fl_import_say(out, "times are seconds since the controller started");
    if (!l->used[1])
        fl_import_say(out, "no readings of GPUs: of the host only");
    fl_import_say(out, "no kernels: readings only");
    return fl_import_said(out, d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_csv_options options = {.delimiter = '|', .trim = true};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    fl_readings_begin(&l->r, out);
    l->only = o->device;
    fl_progress_start(&l->progress, path, o);
    fl_status status = fl_header_seek(path, is_header, "'TIME|...' below the '#' lines", &options.head_lines, d);
    if (!status)
        status = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!status)
        status = fl_readings_end(&l->r, path, d);
    if (!status)
        status = add_notes(l, d);
    fl_readings_free(&l->r);
    free(l);
    return status;
}

const fl_reader fl_reader_geopm = {
    "geopm",
    "GEOPM controller trace",
    "GEOPM 1 to 3",
    FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_USE | FL_GIVES_ENERGY,
    detect,
    read};
