/* CSV files row by row, over libcsv: fields with their places, the commented head, limits. */
#include "traces/io/inside.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <csv.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The file is read into a window that always holds the current record from its first byte, so that the place of each
 * field can be found in the bytes themselves; libcsv only says where fields end. One record at a time is given to
 * libcsv. Texts of plain fields are left in the window (their delimiter, already consumed, becomes the NUL), quoted
 * ones are unquoted into a buffer beside it. */
enum { CHUNK = 64 << 10 };

typedef struct reader {
    const fl_csv_options *options;
    fl_head *head;
    fl_row_function row;
    void *user;
    fl_diag *d;
    fl_status status;
    const char *path;
    fl_gunzip *file;
    char *window;
    size_t window_room, begin, end;
    bool at_end;    /* of the file */
    bool in_head;   /* no row yet */
    fl_intern keys; /* of the head */
    bool has_version;
    int64_t line; /* of the record at begin */
    int64_t rows;
    struct csv_parser csv;
    /* the record that libcsv works on */
    char *record;
    size_t record_size, cursor;
    bool record_torn;
    fl_field *field;
    size_t field_count, field_room;
    char *unquoted;
    size_t unquoted_used, unquoted_room;
    char delimiter;
} reader;

static fl_status refuse_at(reader *r, int64_t line, int64_t column, const char *message) {
    return r->status = fl_fail(r->d, FL_BAD_INPUT, r->path, line, column, "%s", message);
}

static fl_status no_memory(reader *r) { return r->status = fl_no_memory(r->d, r->path); }

/* Complains about byte `at` of the record, which may lie on a later line than the record's first. */
static fl_status bad_at(reader *r, size_t at, const char *message) {
    int64_t line = r->line;
    size_t start = 0;
    for (size_t i = 0; i < at && i < r->record_size; i++)
        if (r->record[i] == '\n') {
            line++;
            start = i + 1;
        }
    return refuse_at(r, line, (int64_t)(at - start) + 1, message);
}

#define STRAY_RETURN "carriage return within the line, expected lines ended by LF or CR LF"

/* ---- fields and rows, called by libcsv ---- */

static bool is_blank(const reader *r, char c) { return (c == ' ' || c == '\t') && c != r->delimiter; }
static bool is_end(const reader *r, char c) { return c == r->delimiter || c == '\n' || c == '\r'; }

/* Adds a field that begins at `first` in the record; its text may lie elsewhere. */
static void add_field(reader *r, const char *text, size_t size, const char *first) {
    if (r->field_count == r->field_room && fl_grow(&r->field, &r->field_room, r->field_count + 1, sizeof *r->field))
        no_memory(r);
    else
        r->field[r->field_count++] = (fl_field){text, size, (int64_t)(first - r->record) + 1};
}

static void give_row(reader *r) {
    fl_csv_row row = {
        .file = r->path, .line = r->line, .field = r->field, .count = r->field_count, .torn = r->record_torn};
    r->in_head = false;
    r->rows++;
    r->status = r->row(r->user, &row, r->d);
}

static void on_field(void *text, size_t size, void *user) {
    reader *r = user;
    if (r->status)
        return;
    char *at = r->record + r->cursor;
    if (*at != '"' && !is_blank(r, *at) && is_end(r, at[size])) { /* the usual case: as it stands */
        at[size] = '\0';
        add_field(r, at, size, at);
        r->cursor += size + 1;
        return;
    }
    char *first = at;
    while (is_blank(r, *first))
        first++;
    char *last = first;
    if (*first == '"') {
        for (last = first + 1; *last != '"' || last[1] == '"'; last++)
            last += *last == '"';
        memcpy(r->unquoted + r->unquoted_used, text, size);
        r->unquoted[r->unquoted_used + size] = '\0';
        add_field(r, r->unquoted + r->unquoted_used, size, first);
        r->unquoted_used += size + 1;
    }
    while (!is_end(r, *last))
        last++;
    if (*first != '"') {
        first = r->options->trim ? first : at;
        size_t kept = r->options->trim ? size : (size_t)(last - at);
        first[kept] = '\0';
        add_field(r, first, kept, first);
    }
    r->cursor = (size_t)(last - r->record) + 1;
}

static void on_row(int terminator, void *user) {
    reader *r = user;
    if (r->status)
        return;
    if (terminator == '\r' && r->cursor + 1 < r->record_size) {
        bad_at(r, r->cursor - 1, STRAY_RETURN);
        return;
    }
    give_row(r);
}

/* Cuts a line that has no quote. False where libcsv must look at it, because of a carriage return within. */
static bool cut_plain(reader *r) {
    char *at = r->record, *end = at + r->record_size - 1; /* at the newline */
    end -= end > at && end[-1] == '\r';
    if (memchr(at, '\r', (size_t)(end - at)))
        return false;
    const char *first = at;
    while (first < end && is_blank(r, *first))
        first++;
    if (first == end)
        return true; /* a blank line is no row */
    const char delimiter = r->delimiter;
    const bool trim = r->options->trim;
    fl_field *field = r->field;
    size_t count = 0;
    for (bool last = false; !last; count++) {
        char *stop = at, *near = end - at < 8 ? end : at + 8;
        while (stop < near && *stop != delimiter) /* most fields are shorter than a call is long */
            stop++;
        if (stop == near)
            stop = memchr(near, delimiter, (size_t)(end - near));
        last = !stop;
        stop = last ? end : stop;
        char *next = stop + 1;
        while (trim && at < stop && is_blank(r, *at))
            at++;
        while (trim && at < stop && is_blank(r, stop[-1]))
            stop--;
        *stop = '\0';
        if (count == r->field_room) {
            if (fl_grow(&r->field, &r->field_room, count + 1, sizeof *field)) {
                no_memory(r);
                return true;
            }
            field = r->field;
        }
        field[count] = (fl_field){at, (size_t)(stop - at), (int64_t)(at - r->record) + 1};
        at = next;
    }
    r->field_count = count;
    if (!r->status)
        give_row(r);
    return true;
}

/* A line with quotes as writers leave them: around whole fields, inner ones doubled, no line break within. The end of
 * the field that begins at `at` (its delimiter, or `end`); NULL where libcsv must look at it. *open, *close: the
 * quotes, or NULL. */
static char *quoted_end(const reader *r, char *at, char *end, char **open, char **close, bool *doubled) {
    *open = *close = NULL;
    *doubled = false;
    char *first = at;
    while (first < end && is_blank(r, *first))
        first++;
    if (first == end || *first != '"') {
        while (at < end && *at != r->delimiter && *at != '"')
            at++;
        return at < end && *at == '"' ? NULL : at;
    }
    char *last = first + 1;
    for (; (last = memchr(last, '"', (size_t)(end - last))) && last + 1 < end && last[1] == '"'; last += 2)
        *doubled = true;
    if (!last)
        return NULL;
    *open = first;
    *close = last++;
    while (last < end && is_blank(r, *last))
        last++;
    return last == end || *last == r->delimiter ? last : NULL;
}

/* Cuts such a line; false, with nothing changed, where some field is not as expected. Ends are marked once all are
 * known. */
static bool cut_quoted(reader *r) {
    char *end = r->record + r->record_size - 1, *open, *close;
    bool doubled;
    end -= end > r->record && end[-1] == '\r';
    if (memchr(r->record, '\r', (size_t)(end - r->record)) || memchr(r->record, '\n', (size_t)(end - r->record)))
        return false;
    for (char *at = r->record, *stop = NULL; !r->status && stop != end; at = stop + 1) {
        if (!(stop = quoted_end(r, at, end, &open, &close, &doubled))) {
            r->field_count = r->unquoted_used = 0;
            return false;
        }
        char *first = open ? open + 1 : at, *last = close ? close : stop;
        while (!open && r->options->trim && first < last && is_blank(r, *first))
            first++;
        while (!open && r->options->trim && first < last && is_blank(r, last[-1]))
            last--;
        const char *begins = open ? open : first;
        if (doubled) {
            char *to = r->unquoted + r->unquoted_used, *text = to;
            for (const char *from = first; from < last; from += 1 + (*from == '"'))
                *to++ = *from;
            first = text;
            last = to;
            r->unquoted_used += (size_t)(to - text) + 1;
        }
        add_field(r, first, (size_t)(last - first), begins);
    }
    for (size_t i = 0; i < r->field_count; i++) {
        char *text;
        memcpy(&text, &r->field[i].text, sizeof text); /* it is the reader's own */
        text[r->field[i].size] = '\0';
    }
    if (!r->status)
        give_row(r);
    return true;
}

/* ---- the head ---- */

static fl_status read_version(reader *r, const char *text) {
    const char *format = r->options->format;
    size_t size = strlen(format);
    if (strncmp(text, format, size) == 0 && text[size] == ' ') {
        r->has_version = true;
        if (strcmp(text + size + 1, "1") == 0)
            return FL_OK;
        return r->status = fl_fail(r->d, FL_BAD_INPUT, r->path, r->line, 1,
                                   "version '%.20s' of %s is not known, expected version 1", text + size + 1, format);
    }
    if (strncmp(text, "foldline-", 9) == 0)
        return r->status = fl_fail(r->d, FL_BAD_INPUT, r->path, r->line, 1,
                                   "the file says that it is '%.60s', expected '%s 1'", text, format);
    return FL_OK;
}

/* Return true if the comment `t` reads as "foldline-NAME NUMBER", in upper or lower case. Taken for a comment, such a
 * line would let a file of a later version pass. */
static bool names_version(const char *t) {
    t += strspn(t, "# \t");
    if (strncasecmp(t, "foldline-", 9) != 0)
        return false;
    t += strcspn(t, " \t");
    t += strspn(t, " \t");
    return *t && t[strspn(t, "0123456789")] == '\0';
}

/* A '#' line: its text is changed in place. */
static fl_status read_comment(reader *r, char *text, size_t size) {
    while (size &&
           (text[size - 1] == '\n' || text[size - 1] == '\r' || text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    if (!r->in_head || size == 0)
        return FL_OK;
    text[size] = '\0';
    char *t = text + 1;
    t += strspn(t, " \t");
    if (r->line == 1 && (read_version(r, t) || r->has_version))
        return r->status;
    if (names_version(t))
        return r->status = fl_fail(r->d, FL_BAD_INPUT, r->path, r->line, 1,
                                   "'%.60s' is no format line here, expected '# %s 1' as line 1 and no other", t,
                                   r->options->format);
    char *colon = strchr(t, ':');
    if (!r->has_version || !r->head || !colon || colon == t)
        return FL_OK;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    while (colon > t && (colon[-1] == ' ' || colon[-1] == '\t'))
        colon--;
    *colon = '\0';
    for (const char *c = t; c < text + size; c++)
        if ((unsigned char)*c < 0x20 && *c != '\t' && c != colon)
            return refuse_at(r, r->line, c - text + 1, "control character in the head, expected text");
    bool twice = false;
    if (fl_head_add(r->head, &r->keys, t, value, &twice))
        return no_memory(r);
    if (twice)
        return r->status = fl_fail(r->d, FL_BAD_INPUT, r->path, r->line, t - text + 1,
                                   "'%.60s' is given twice in the head, expected once", t);
    r->head->entry[r->head->count - 1].line = r->line;
    return FL_OK;
}

static fl_status demand_version(reader *r) {
    if (!r->options->format || r->options->head_optional || r->has_version)
        return FL_OK;
    return r->status = fl_fail(r->d, FL_BAD_INPUT, r->path, r->line, 1, "no format line, expected '# %s 1' first",
                               r->options->format);
}

/* ---- records ---- */

/* libcsv over the record. It takes blanks before a carriage return for a line of their own and calls nothing, which
 * would put the fields out of step. */
static fl_status parse(reader *r, size_t size) {
    size_t blank = 0;
    while (blank < size && is_blank(r, r->record[blank]))
        blank++;
    if (blank + 2 < size && r->record[blank] == '\r')
        return bad_at(r, blank, STRAY_RETURN);
    const size_t taken = csv_parse(&r->csv, r->record, size, on_field, on_row, r);
    if (r->status || taken == size)
        return r->status;
    return csv_error(&r->csv) == CSV_EPARSE
               ? bad_at(r, taken, "stray quote, expected quotes around a whole field and inner ones doubled")
               : no_memory(r);
}

/* The record [begin, begin + size) of the window, its newline included, was found; lines it spans. */
static fl_status do_record(reader *r, size_t size, int64_t lines, bool quotes) {
    r->record = r->window + r->begin;
    r->record_size = size;
    r->cursor = r->field_count = r->unquoted_used = 0;
    char *nul = memchr(r->record, '\0', size);
    if (nul)
        return bad_at(r, (size_t)(nul - r->record), "NUL byte, expected text");
    if (r->line <= r->options->head_lines)
        goto done;
    if (r->options->format && r->record[0] == '#') {
        if (read_comment(r, r->record, size))
            return r->status;
        goto done;
    }
    if (r->in_head && r->record[strspn(r->record, " \t\r")] != '\n' && demand_version(r))
        return r->status;
    if (quotes && fl_grow(&r->unquoted, &r->unquoted_room, size + 1, 1))
        return no_memory(r);
    if (!(quotes ? cut_quoted(r) : cut_plain(r)))
        parse(r, size);
    if (r->status)
        return r->status;
done:
    r->begin += size;
    r->line += lines;
    return FL_OK;
}

/* Reads on into the window, which grows to hold a whole record; r->begin becomes 0. One byte stays free, for a newline
 * after a torn last record. */
static fl_status read_more(reader *r) {
    if (r->begin > 0)
        memmove(r->window, r->window + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    size_t got = 0;
    if (fl_grow(&r->window, &r->window_room, r->end + CHUNK + 1, 1))
        return no_memory(r);
    r->status = fl_gunzip_read(r->file, r->window + r->end, CHUNK, &got, r->d);
    r->at_end = got < CHUNK;
    r->end += got;
    return r->status;
}

/* Ends a record that has no end in the window: torn by the end of the file, too long, or in an unclosed quote. */
static fl_status do_rest(reader *r, int64_t lines, bool open_quote) {
    size_t size = r->end - r->begin;
    r->record = r->window + r->begin;
    r->record_size = size;
    if (!open_quote && size > FL_CSV_LINE_MAX)
        return refuse_at(r, r->line, 1, "line is longer than 1048576 bytes");
    r->record_torn = true;
    if (!open_quote) {
        r->window[r->end++] = '\n';
        return do_record(r, size + 1, lines + 1, true);
    }
    /* A quote that is stray rather than open shows when libcsv sees it. */
    r->cursor = r->field_count = r->unquoted_used = 0;
    if (memchr(r->record, '\0', size))
        return bad_at(r, (size_t)((char *)memchr(r->record, '\0', size) - r->record), "NUL byte, expected text");
    if (r->in_head && demand_version(r))
        return r->status;
    if (fl_grow(&r->unquoted, &r->unquoted_room, size + 1, 1))
        return no_memory(r);
    if (parse(r, size))
        return r->status;
    return bad_at(r, r->cursor,
                  r->at_end ? "quote is not closed before the file ends" : "quote is not closed within 1048576 bytes");
}

static size_t count_quotes(const char *text, size_t size) {
    size_t n = 0;
    const char *end = text + size;
    while ((text = memchr(text, '"', (size_t)(end - text)))) {
        n++;
        text++;
    }
    return n;
}

static fl_status read_all(reader *r) {
    size_t searched = 0; /* bytes of the record already looked at */
    size_t quotes = 0;
    int64_t lines = 0;
    if (!read_more(r) && r->end >= 3 && memcmp(r->window, "\xef\xbb\xbf", 3) == 0)
        r->begin = 3;
    while (!r->status) {
        char *from = r->window + r->begin + searched;
        char *newline = memchr(from, '\n', r->end - r->begin - searched);
        if (newline) {
            /* A line break within quotes is part of a field. Comments and lines to skip have no fields. */
            bool plain = r->line <= r->options->head_lines || (r->options->format && r->window[r->begin] == '#');
            quotes += plain ? 0 : count_quotes(from, (size_t)(newline - from));
            searched += (size_t)(newline - from) + 1;
            lines++;
            if (searched > FL_CSV_LINE_MAX + 1)
                return quotes % 2 ? do_rest(r, lines, true)
                                  : refuse_at(r, r->line, 1, "line is longer than 1048576 bytes");
            if (quotes % 2)
                continue;
            do_record(r, searched, lines, quotes > 0);
            searched = quotes = 0;
            lines = 0;
        } else if (r->at_end || r->end - r->begin > FL_CSV_LINE_MAX) {
            if (r->begin == r->end)
                break;
            bool plain = r->line <= r->options->head_lines || (r->options->format && r->window[r->begin] == '#');
            quotes += plain ? 0 : count_quotes(from, r->end - r->begin - searched);
            return do_rest(r, lines, quotes % 2);
        } else {
            read_more(r);
        }
    }
    return r->status;
}

/* ---- opening and closing ---- */

static int only_tab(unsigned char c) { return c == CSV_TAB; }
static int only_space(unsigned char c) { return c == CSV_SPACE; }

fl_status fl_csv_read(const char *path, const fl_csv_options *options, fl_head *head, fl_row_function row, void *user,
                      fl_diag *d) {
    reader r = {.options = options,
                .head = head,
                .row = row,
                .user = user,
                .d = d,
                .path = path,
                .in_head = true,
                .line = 1,
                .delimiter = options->delimiter ? options->delimiter : ','};
    if (csv_init(&r.csv, CSV_STRICT) != 0)
        return fl_no_memory(d, path);
    csv_set_delim(&r.csv, (unsigned char)r.delimiter);
    if (r.delimiter == ' ' || r.delimiter == '\t') /* a delimiter is no blank to skip */
        csv_set_space_func(&r.csv, r.delimiter == ' ' ? only_tab : only_space);
    fl_diag none = {0}; /* for whoever wants none: its status tells */
    r.d = d = d ? d : &none;
    r.file = fl_gunzip_open(path, d);
    fl_status status = r.file ? FL_OK : d->status;
    if (!status)
        status = read_all(&r);
    if (!status && r.rows == 0)
        status = r.line == 1 && r.begin == r.end && r.end <= 3
                     ? fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the file is empty")
                     : fl_fail(d, FL_BAD_INPUT, path, r.line, 0, "the file ends before the first row");
    fl_gunzip_close(r.file);
    csv_free(&r.csv);
    fl_intern_free(&r.keys);
    free(r.window);
    free(r.field);
    free(r.unquoted);
    return status;
}
