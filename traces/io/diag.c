/* Errors as values, and the note that memory has run out. */
#include "traces/io/io.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static atomic_bool failed;

void fl_memory_lost(void) { failed = true; }

bool fl_memory_failed(void) { return failed; }

/* ---- errors ---- */

size_t fl_utf8(const char *text, size_t size) {
    const unsigned char *t = (const unsigned char *)text;
    if (size == 0 || t[0] < 0x20 || t[0] == 0x7f)
        return 0;
    if (t[0] < 0x80)
        return 1;
    size_t n = t[0] >= 0xf0 ? 4 : t[0] >= 0xe0 ? 3 : 2;
    if (t[0] < 0xc2 || t[0] > 0xf4 || n > size)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((t[i] & 0xc0) != 0x80)
            return 0;
    /* Too long a form, a surrogate, beyond U+10FFFF, or a control character of the second set (U+0080 to U+009F). */
    if ((t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xed && t[1] > 0x9f) || (t[0] == 0xf0 && t[1] < 0x90) ||
        (t[0] == 0xf4 && t[1] > 0x8f) || (t[0] == 0xc2 && t[1] < 0xa0))
        return 0;
    return n;
}

void fl_printable(char *text, size_t size) {
    for (size_t at = 0, n; at < size; at += n)
        if ((n = fl_utf8(text + at, size - at)) == 0) {
            text[at] = '?';
            n = 1;
        }
}

bool fl_is_standard(const char *path) { return path && path[0] == '-' && !path[1]; }

const char *fl_input_name(const char *path) { return fl_is_standard(path) ? "<stdin>" : path; }

static fl_status fill(fl_diag *d, fl_status status, const char *file, int64_t line, int64_t column, const char *format,
                      va_list arguments) {
    if (!d)
        return status;
    d->status = status;
    d->line = line;
    d->column = column;
    d->of_values = false;
    snprintf(d->file, sizeof d->file, "%s", file ? fl_input_name(file) : "");
    if (vsnprintf(d->message, sizeof d->message, format, arguments) < 0)
        snprintf(d->message, sizeof d->message, "error without a text");
    fl_printable(d->file, strlen(d->file));
    fl_printable(d->message, strlen(d->message));
    return status;
}

fl_status fl_fail(fl_diag *d, fl_status status, const char *file, int64_t line, int64_t column, const char *format,
                  ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(d, status, file, line, column, format, arguments);
    va_end(arguments);
    return status;
}

fl_status fl_refuse(fl_diag *d, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(d, FL_BAD_INPUT, NULL, 0, 0, format, arguments);
    va_end(arguments);
    return FL_BAD_INPUT;
}

fl_status fl_error(fl_diag *d, fl_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(d, status, NULL, 0, 0, format, arguments);
    va_end(arguments);
    return status;
}

fl_status fl_no_library(fl_diag *d, const char *path, const char *what, const char *library) {
    return fl_fail(d, FL_IO, path, 0, 0, "%s, and this build is without %s (see FL_WITH_... of CMake)", what, library);
}

fl_status fl_no_memory(fl_diag *d, const char *what) {
    return fl_error(d, FL_NO_MEMORY, what ? "out of memory for %s" : "out of memory%s", what ? what : "");
}

fl_status fl_of_values(fl_diag *d) {
    if (d)
        d->of_values = true;
    return FL_BAD_INPUT;
}

char *fl_diag_text(const fl_diag *d, char *buf, size_t size) {
    char place[64] = "";
    if (d->line > 0 && d->column > 0)
        snprintf(place, sizeof place, "%lld:%lld: ", (long long)d->line, (long long)d->column);
    else if (d->line > 0)
        snprintf(place, sizeof place, "%lld: ", (long long)d->line);
    if (d->file[0] == '\0')
        snprintf(buf, size, "%s%s%s", place[0] ? "line " : "", place, d->message);
    else
        snprintf(buf, size, "%s:%s%s%s", d->file, place[0] ? "" : " ", place, d->message);
    return buf;
}

const char *fl_reason(int error) {
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown system error";
}

enum { NEAR_MAX = 64 }; /* longer names are not compared: nobody mistypes them */

static int lower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c; }

static size_t min2(size_t a, size_t b) { return a < b ? a : b; }

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost one each. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb) {
    size_t rows[3][NEAR_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t differs = lower(a[i - 1]) != lower(b[j - 1]);
            now[j] = min2(min2(last[j] + 1, now[j - 1] + 1), last[j - 1] + differs);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = min2(now[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[nb];
}

const char *fl_nearest(const char *name, const char *const *candidates, size_t count) {
    const char *best = NULL;
    size_t best_distance = NEAR_MAX + 1, length = strlen(name);
    if (length > NEAR_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > NEAR_MAX)
            continue;
        size_t longer = length > other ? length : other;
        size_t allowed = longer / 3 > 1 ? longer / 3 : 1;
        size_t found = distance(name, length, candidates[i], other);
        /* Names without a letter in common are never near, however short. */
        if (found <= allowed && found < longer && found < best_distance) {
            best = candidates[i];
            best_distance = found;
        }
    }
    return best;
}

char *fl_off_ladder(double mhz, const char *of, const int32_t *ladder, size_t count, char buf[FL_OFF_LADDER_TEXT]) {
    size_t above = 0;
    while (above < count && ladder[above] < mhz)
        above++;
    const int used = snprintf(buf, FL_OFF_LADDER_TEXT, "%g MHz is not on %.96s", mhz, of);
    char *at = buf + used;
    const size_t room = FL_OFF_LADDER_TEXT - (size_t)used;
    if (count && above && above < count)
        snprintf(at, room, "; the next ones are %d and %d", ladder[above - 1], ladder[above]);
    else if (count)
        snprintf(at, room, above ? "; the highest is %d" : "; the lowest is %d", ladder[above ? count - 1 : 0]);
    return buf;
}

fl_status fl_fail_unknown(fl_diag *d, const char *file, const char *what, const char *name, const char *const *known,
                          size_t count) {
    const char *near = fl_nearest(name, known, count);
    char list[200] = "";
    size_t used = 0, told = 0;
    if (near)
        return fl_fail(d, FL_BAD_INPUT, file, 0, 0, "no %s '%.80s', did you mean '%.80s'?", what, name, near);
    for (; told < count && used + strlen(known[told]) + 3 < sizeof list; told++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", told ? ", " : "", known[told]);
    if (told < count)
        return fl_fail(d, FL_BAD_INPUT, file, 0, 0, "no %s '%.80s', expected one of %s and %zu more", what, name, list,
                       count - told);
    return fl_fail(d, FL_BAD_INPUT, file, 0, 0, "no %s '%.80s', expected %s%s", what, name, count > 1 ? "one of " : "",
                   list);
}

fl_status fl_grow(void *items, size_t *room, size_t need, size_t size) {
    if (need <= *room)
        return FL_OK;
    size_t wanted = *room < 16 ? 16 : *room;
    while (wanted < need) {
        if (wanted > SIZE_MAX / 2)
            return FL_NO_MEMORY;
        wanted *= 2;
    }
    if (size && wanted > SIZE_MAX / size)
        return FL_NO_MEMORY;
    void *old;
    memcpy(&old, items, sizeof old); /* `items` points to a pointer of some other type */
    void *grown = realloc(old, wanted * size);
    if (!grown)
        return FL_NO_MEMORY;
    memcpy(items, &grown, sizeof grown);
    *room = wanted;
    return FL_OK;
}
