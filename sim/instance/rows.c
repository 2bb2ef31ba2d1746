#include "sim/instance/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SIGNAL_ROW(id, name_, unit_, kind_, meaning_)                                                                  \
    {.name = #name_, .unit = unit_, .meaning = meaning_, .kind = FL_##kind_},
#define CONTROL_ROW(id, name_, unit_, meaning_) {.name = #name_, .unit = unit_, .meaning = meaning_},
#define WAKE_ROW(id, name_, meaning_) {.name = #name_, .unit = "", .meaning = meaning_},

static const fl_row_info gpu_signals[] = {FL_GPU_SIGNALS(SIGNAL_ROW)};
static const fl_row_info host_signals[] = {FL_HOST_SIGNALS(SIGNAL_ROW)};
static const fl_row_info server_signals[] = {FL_SERVER_SIGNALS(SIGNAL_ROW)};
static const fl_row_info wakes[] = {FL_WAKES(WAKE_ROW)};
static const fl_row_info gpu_controls[] = {FL_GPU_CONTROLS(CONTROL_ROW)};
static const fl_row_info host_controls[] = {FL_HOST_CONTROLS(CONTROL_ROW)};

static const struct {
    const fl_row_info *row;
    size_t count;
} tables[] = {
    [FL_ROWS_GPU_SIGNAL] = {gpu_signals, FL_GPU_SIGNAL_COUNT},
    [FL_ROWS_HOST_SIGNAL] = {host_signals, FL_HOST_SIGNAL_COUNT},
    [FL_ROWS_SERVER_SIGNAL] = {server_signals, FL_SERVER_SIGNAL_COUNT},
    [FL_ROWS_WAKE] = {wakes, FL_WAKE_COUNT},
    [FL_ROWS_GPU_CONTROL] = {gpu_controls, FL_GPU_CONTROL_COUNT},
    [FL_ROWS_HOST_CONTROL] = {host_controls, FL_HOST_CONTROL_COUNT},
};

size_t fl_rows_count(fl_row_set set) { return tables[set].count; }

const fl_row_info *fl_rows_at(fl_row_set set, size_t index) { return &tables[set].row[index]; }

int fl_rows_find(fl_row_set set, const char *name) {
    for (size_t i = 0; i < tables[set].count; i++)
        if (strcmp(tables[set].row[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- identity of the contract -------------------------------------------------------------------------------------
 */

#define STRUCT_NAME(type) #type,
static const char *const struct_names[] = {FL_ABI_STRUCTS(STRUCT_NAME)};

static const fl_abi ours = {.magic = FL_ABI_MAGIC,
                            .rows = FL_ABI_ROWS,
                            .struct_count = FL_ABI_STRUCT_COUNT,
                            .struct_size = {FL_ABI_STRUCTS(FL_ROW_ABI_SIZE)}};

static int line_length(const char *text) { return (int)strcspn(text, "\n"); }

/* The version is the first line of the rows: "abi N". */
static int version_length(const char *rows) {
    int n = line_length(rows);
    return n < 40 ? n : 40;
}

static const char *row_difference(const char *theirs, char *buf, size_t size) {
    const char *a = theirs, *b = ours.rows;
    while (*a && *b && line_length(a) == line_length(b) && strncmp(a, b, (size_t)line_length(a)) == 0) {
        a += line_length(a);
        b += line_length(b);
        a += *a == '\n';
        b += *b == '\n';
    }
    int na = line_length(a), nb = line_length(b);
    snprintf(buf, size, "built for '%.*s', this program has '%.*s'; first row that differs: '%.*s' there, '%.*s' here",
             version_length(theirs), theirs, version_length(ours.rows), ours.rows, na ? na < 120 ? na : 120 : 3,
             na ? a : "end", nb ? nb < 120 ? nb : 120 : 3, nb ? b : "end");
    return buf;
}

const char *fl_abi_difference(const fl_abi *theirs, char *buf, size_t size) {
    if (theirs->magic != FL_ABI_MAGIC) { /* then nothing behind it can be trusted */
        snprintf(buf, size, "not a policy of this program: it begins with 0x%016" PRIx64 ", expected 0x%016" PRIx64,
                 theirs->magic, FL_ABI_MAGIC);
        return buf;
    }
    if (!theirs->rows || strcmp(theirs->rows, ours.rows) != 0)
        return row_difference(theirs->rows ? theirs->rows : "", buf, size);
    if (theirs->struct_count != ours.struct_count) {
        snprintf(buf, size,
                 "built for '%.*s', this program has the same; struct count %" PRIu32 " there, %" PRIu32 " here",
                 version_length(ours.rows), ours.rows, theirs->struct_count, ours.struct_count);
        return buf;
    }
    for (uint32_t i = 0; i < ours.struct_count; i++)
        if (theirs->struct_size[i] != ours.struct_size[i]) {
            snprintf(
                buf, size,
                "built for '%.*s', this program has the same; struct %s has %" PRIu32 " bytes there, %" PRIu32 " here",
                version_length(ours.rows), ours.rows, struct_names[i], theirs->struct_size[i], ours.struct_size[i]);
            return buf;
        }
    return NULL;
}
