/* What readers of other tools' text share: notes, header lines below other output, cells, progress. */
#include "traces/import/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- results and notes ---- */

fl_status fl_import_rank(fl_imported *out, int64_t rank, fl_diag *d) {
    enum { DEVICES = 1024 };
    int32_t device[DEVICES];
    const size_t count = fl_activity_devices(&out->kernels, device, DEVICES);
    for (size_t i = 0; i < count; i++) {
        char key[32], text[32];
        snprintf(key, sizeof key, FL_GPU_KEY "%d", device[i]);
        snprintf(text, sizeof text, "rank %lld", (long long)rank);
        const fl_status s = fl_foreign_head(&out->kernels.head, key, text, d);
        if (s)
            return s;
    }
    return FL_OK;
}

void fl_gives_text(unsigned gives, bool lacks, char *text, size_t room) {
    enum { CARRIES = FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_ENERGY };
    static const struct {
        unsigned of, carries;
    } group[] = {{FL_GIVES_KERNELS, CARRIES | FL_GIVES_LAUNCHES},
                 {FL_GIVES_READINGS, CARRIES | FL_GIVES_TIMES | FL_GIVES_USE},
                 {FL_GIVES_SETTINGS, CARRIES},
                 {FL_GIVES_REQUESTS, FL_GIVES_PREFIXES | FL_GIVES_LATENCIES}};
    static const char *const word[] = {"kernels", "readings", "settings", "requests", "launches",        "time stamps",
                                       "clocks",  "power",    "energy",   "use",      "shared prefixes", "latencies"};
    unsigned all = 0;
    size_t used = 0;
    for (size_t i = 0; i < sizeof group / sizeof *group; i++)
        all |= gives & group[i].of ? group[i].carries : 0;
    const unsigned said = lacks ? all & ~gives : gives;
    *text = '\0';
    for (size_t i = 0; i < sizeof word / sizeof *word && used < room; i++)
        if (said >> i & 1)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", word[i]);
}

/* "trace_rank3.json", "rank-3.csv": -1 where the file's name says no rank. */
static int64_t rank_of_name(const char *path) {
    const char *slash = strrchr(path, '/'), *at = strcasestr(slash ? slash : path, "rank");
    at = at ? at + 4 : "";
    at += strspn(at, "_-=.") ? 1 : 0;
    const size_t digits = strspn(at, "0123456789");
    return digits && digits < 8 ? strtoll(at, NULL, 10) : -1;
}

fl_status fl_reader_read(const fl_reader *reader, const char *path, const fl_import_options *o, fl_imported *out,
                         fl_diag *d) {
    static const fl_import_options all = {.device = -1};
    *out = (fl_imported){0};
    fl_status s = reader->read(path, o ? o : &all, out, d);
    const int64_t rank = s || !out->has_kernels ? -1 : rank_of_name(path);
    if (rank >= 0)
        s = fl_import_rank(out, rank, d);
    if (s)
        fl_imported_free(out);
    return s;
}

/* Returns false without memory. */
static bool add_note(fl_imported *out, const char *format, va_list arguments) {
    char *text = NULL;
    int size = vasprintf(&text, format, arguments);
    if (size < 0 || fl_grow(&out->note, &out->note_room, out->note_count + 1, sizeof *out->note)) {
        if (size >= 0)
            free(text);
        out->note_lost = true;
        return false;
    }
    /* Notes quote the file: what could disturb a terminal is replaced. */
    fl_printable(text, (size_t)size);
    out->note[out->note_count++] = text;
    return true;
}

void fl_import_say(fl_imported *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_note(out, format, arguments);
    va_end(arguments);
}

/* Moves the last note to a place before it. */
static void move_last(fl_imported *out, size_t to) {
    char *text = out->note[out->note_count - 1];
    memmove(out->note + to + 1, out->note + to, (out->note_count - 1 - to) * sizeof *out->note);
    out->note[to] = text;
}

void fl_import_doubt(fl_imported *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (add_note(out, format, arguments))
        move_last(out, out->doubt_count++);
    va_end(arguments);
}

void fl_import_lost(fl_imported *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (add_note(out, format, arguments)) {
        move_last(out, out->lost_count++);
        out->doubt_count++;
    }
    va_end(arguments);
}

fl_status fl_import_head_left(fl_head *head, const fl_imported *in, const char *name, fl_diag *d) {
    bool good = true;
    for (size_t i = 0; good && i < in->lost_count; i++) {
        const char *before = i || name ? fl_head_get(head, FL_LEFT_KEY) : NULL;
        char *text = NULL;
        good = asprintf(&text, "%s%s%s%s%s", before ? before : "", before ? "; " : "", name ? name : "",
                        name ? ": " : "", in->note[i]) >= 0;
        good = good && fl_head_set(head, FL_LEFT_KEY, text);
        free(text);
    }
    return good ? FL_OK : fl_no_memory(d, "the notes");
}

fl_status fl_import_take_notes(fl_imported *to, const fl_imported *from, const char *name, fl_diag *d) {
    for (size_t i = 0; i < from->note_count; i++)
        (i < from->lost_count    ? fl_import_lost
         : i < from->doubt_count ? fl_import_doubt
                                 : fl_import_say)(to, "%s%s%s", name ? name : "", name ? ": " : "", from->note[i]);
    return fl_import_said(to, d);
}

fl_status fl_import_left(fl_imported *out, const fl_left_out *left, fl_diag *d) {
    char text[400];
    for (int i = 0; fl_left_text(left, i, text, sizeof text); i++)
        if (*text)
            (i == FL_LEFT_DOUBT ? fl_import_doubt : fl_import_lost)(out, "%s", text);
    return fl_import_said(out, d);
}

fl_status fl_import_said(const fl_imported *out, fl_diag *d) {
    return out->note_lost ? fl_no_memory(d, "the notes") : FL_OK;
}

fl_status fl_import_note(fl_imported *out, fl_diag *d, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_note(out, format, arguments);
    va_end(arguments);
    return fl_import_said(out, d);
}

void fl_import_torn(fl_imported *out, int64_t line) {
    if (line)
        fl_import_lost(out, "line %lld, the last, is not ended and may be cut off: left out", (long long)line);
}

void fl_imported_free(fl_imported *out) {
    fl_kernel_trace_free(&out->kernels);
    fl_telemetry_free(&out->telemetry);
    fl_sweep_free(&out->sweep);
    fl_requests_free(&out->requests);
    for (size_t i = 0; i < out->note_count; i++)
        free(out->note[i]);
    free(out->note);
    memset(out, 0, sizeof *out);
}

enum { HEAD = 64 << 10 };

/* ---- header lines ---- */

bool fl_cell_is(fl_cell c, const char *text) { return strlen(text) == c.size && !memcmp(c.text, text, c.size); }

bool fl_cell_begins(fl_cell c, const char *text) {
    size_t size = strlen(text);
    return size <= c.size && !memcmp(c.text, text, size);
}

bool fl_cells_have(const fl_cells *c, const char *text) {
    for (size_t i = 0; i < c->count; i++)
        if (fl_cell_is(c->cell[i], text))
            return true;
    return false;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '"'; }

static void cut_cells(const char *line, size_t size, fl_cells *cells) {
    cells->count = 0;
    const char *end = line + size;
    for (const char *at = line; at <= end && cells->count < FL_CELLS_MAX; at++) {
        const char *stop = at;
        while (stop < end && *stop != ',' && *stop != ';' && *stop != '|' && *stop != '\t')
            stop++;
        const char *first = at, *last = stop;
        while (first < last && is_space(*first))
            first++;
        while (first < last && is_space(last[-1]))
            last--;
        cells->cell[cells->count++] = (fl_cell){first, (size_t)(last - first)};
        at = stop;
    }
}

int fl_header_find(const char *head, size_t size, fl_header_function is) {
    fl_cells cells;
    size_t at = size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;
    for (int line = 0; at < size; line++) {
        const char *newline = memchr(head + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - head) - at : size - at;
        cut_cells(head + at, length, &cells);
        if (is(&cells))
            return line;
        at += length + 1;
    }
    return -1;
}

static fl_status check_bytes(const char *path, const char *head, size_t size, fl_diag *d) {
    if (size >= 2 && !memcmp(head, "\x1f\x8b", 2))
        return fl_fail(d, FL_BAD_INPUT, path, 1, 1, "the file is compressed twice, expected once (run gunzip on it)");
    if (size >= 2 && (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2)))
        return fl_fail(d, FL_BAD_INPUT, path, 1, 1,
                       "the text is UTF-16, expected UTF-8 (PowerShell's '>' writes UTF-16: iconv -f UTF-16 -t UTF-8)");
    if (size == 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the file is empty");
    return FL_OK;
}

fl_status fl_header_seek(const char *path, fl_header_function is, const char *expected, int *lines, fl_diag *d) {
    char *head = malloc(HEAD);
    size_t size = 0;
    fl_gunzip *g = head ? fl_gunzip_open(path, d) : NULL;
    fl_status status = !head ? fl_no_memory(d, path)
                       : g   ? fl_gunzip_read(g, head, HEAD, &size, d)
                       : d   ? d->status
                             : FL_BAD_INPUT;
    fl_gunzip_close(g);
    if (!status)
        status = check_bytes(path, head, size, d);
    if (!status && (*lines = fl_header_find(head, size, is)) < 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 1, 1, "no header line, expected %s", expected);
    free(head);
    return status;
}

fl_status fl_header_commas(const fl_csv_row *header, fl_diag *d) {
    const char *text = header->field[0].text, *other = strpbrk(text, ";\t");
    if (header->count > 1 || !other)
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, header->file, header->line, header->field[0].column + (other - text),
                   "fields are separated by %s, expected commas (a spreadsheet may use the separator of its locale)",
                   *other == ';' ? "semicolons" : "tabs");
}

fl_status fl_foreign_width(const fl_csv_row *row, size_t expected, fl_diag *d) {
    if (row->count <= expected)
        return fl_columns_width(row, expected, d);
    return FL_FIELD_FAIL(d, row, expected, "row has %zu fields, expected %zu (decimal commas or thousands separators?)",
                         row->count, expected);
}

/* ---- cells ---- */

static fl_status refuse_value(const fl_csv_row *row, size_t index, const char *what, const char *text,
                              const char *expected, fl_diag *d) {
    bool digits = *text != '\0';
    for (const char *c = text; *c; c++)
        digits = digits && (isdigit((unsigned char)*c) || strchr(",.'-", *c));
    if (digits && strchr(text, ','))
        return FL_FIELD_FAIL(d, row, index,
                             "%s is '%.40s', expected %s with a decimal point and without thousands separators", what,
                             text, expected);
    return FL_FIELD_FAIL(d, row, index, "%s is '%.40s', expected %s", what, text, expected);
}

fl_status fl_foreign_real(const fl_csv_row *row, size_t index, const char *text, const char *what, double *value,
                          fl_diag *d) {
    const fl_field cell = {text, strlen(text), row->field[index].column};
    const fl_csv_row one = {row->file, row->line, &cell, 1, row->torn};
    return strchr(text, ',') ? refuse_value(row, index, what, text, "a number", d)
                             : fl_field_real(&one, 0, what, -HUGE_VAL, HUGE_VAL, value, d);
}

fl_status fl_foreign_int(const fl_csv_row *row, size_t index, const char *what, int64_t min, int64_t max,
                         int64_t *value, fl_diag *d) {
    const char *text = row->field[index].text;
    if (strchr(text, ','))
        return FL_FIELD_FAIL(d, row, index, "%s is '%.40s', expected a whole number without thousands separators", what,
                             text);
    return fl_field_int(row, index, what, min, max, value, d);
}

fl_status fl_foreign_ns(const fl_csv_row *row, size_t index, const char *what, int power, int64_t *ns, fl_diag *d) {
    const char *text = row->field[index].text, *at = text;
    int64_t value = 0;
    int places = -1; /* digits behind the point */
    bool digits = false, over = false, up = false;
    for (; isdigit((unsigned char)*at) || (*at == '.' && places < 0); at++) {
        if (*at == '.') {
            places = 0;
            continue;
        }
        digits = true;
        if (places >= power) { /* finer than a ns: the first such digit rounds */
            up = places == power ? *at >= '5' : up;
            places++;
            continue;
        }
        places += places >= 0;
        over = over || value > (INT64_MAX - 9) / 10;
        value = over ? value : value * 10 + (*at - '0');
    }
    if (!digits || *at) {
        double number; /* one below 0, or inf, cannot be; another text is no time at all */
        const fl_status wrong = fl_field_real(row, index, what, 0, HUGE_VAL, &number, d);
        const bool of_values = wrong && d && d->of_values;
        refuse_value(row, index, what, text, "a number of at least 0", d);
        return of_values ? fl_of_values(d) : FL_BAD_INPUT;
    }
    for (int k = places < 0 ? 0 : places; k < power; k++) {
        over = over || value > (INT64_MAX - 9) / 10;
        value = over ? value : value * 10;
    }
    if (over)
        return FL_FIELD_WRONG(d, row, index, "%s is '%.40s', expected a time below 292 years", what, text);
    *ns = value + up;
    return FL_OK;
}

fl_status fl_foreign_head(fl_head *head, const char *key, const char *text, fl_diag *d) {
    char clean[256];
    if (fl_head_get(head, key))
        return FL_OK;
    text += strspn(text, " \t");
    snprintf(clean, sizeof clean, "%s", text);
    size_t size = strlen(clean);
    fl_printable(clean, size);
    while (size && clean[size - 1] == ' ')
        clean[--size] = '\0';
    return fl_head_set(head, key, clean) ? FL_OK : fl_no_memory(d, NULL);
}

int64_t fl_civil_ns(int year, int month, int day, int hour, int minute, int second, int64_t ns) {
    /* Days since 1970-01-01 in the Gregorian calendar: years from March on, in eras of 400. */
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * INT64_C(1000000000) + ns;
}

/* ---- lines ---- */

fl_status fl_lines_read(const char *path, fl_row_function take, void *user, fl_diag *d) {
    const int fd = fl_gunzip_whole(path, d);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!file && fd >= 0)
        close(fd);
    if (!file)
        return fd >= 0 ? fl_no_memory(d, path) : d ? d->status : FL_IO;
    char *line = NULL;
    size_t room = 0;
    ssize_t got;
    fl_status s = FL_OK;
    for (int64_t n = 1; !s && (got = getline(&line, &room, file)) >= 0; n++) {
        size_t size = (size_t)got;
        const bool torn = size && line[size - 1] != '\n';
        while (size && strchr("\r\n", line[size - 1]))
            line[--size] = '\0';
        if (memchr(line, '\0', size))
            s = fl_fail(d, FL_BAD_INPUT, path, n, 1, "a NUL byte, expected text");
        char *text = n == 1 && size >= 3 && !memcmp(line, "\xef\xbb\xbf", 3) ? line + 3 : line;
        const fl_field field = {text, size - (size_t)(text - line), 1};
        const fl_csv_row row = {path, n, &field, 1, torn};
        if (!s && text[strspn(text, " \t")])
            s = take(user, &row, d);
    }
    if (!s && (ferror(file) || !feof(file)))
        s = errno == ENOMEM ? fl_no_memory(d, path) : fl_fail(d, FL_IO, path, 0, 0, "cannot read on");
    free(line);
    fclose(file);
    return s;
}

/* ---- progress ---- */

void fl_progress_start(fl_progress *p, const char *path, const fl_import_options *o) {
    struct stat s;
    *p = (fl_progress){.o = o, .size = stat(path, &s) == 0 ? (double)s.st_size : 0};
}

void fl_progress_row(fl_progress *p, const fl_csv_row *row) {
    const fl_field *last = &row->field[row->count - 1];
    p->done += (double)last->column + (double)last->size; /* about the length of the line */
    if (++p->rows % 65536 == 0 && p->o && p->o->progress && p->size > 0)
        p->o->progress(p->o->user, p->done < p->size ? p->done / p->size : 1);
}
