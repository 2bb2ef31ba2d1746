#include "traces/io/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/io/numbers.h"

/* ---- numbers in fields ---- */

static fl_status wrong_int(const fl_csv_row *row, size_t i, const char *name, int64_t min, int64_t max, fl_diag *d) {
    char expected[80] = "a whole number";
    if (min > INT32_MIN && max < INT64_MAX)
        snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min, (long long)max);
    else if (min > INT32_MIN)
        snprintf(expected, sizeof expected, "a whole number of at least %lld", (long long)min);
    if (row->field[i].size == 0)
        return FL_FIELD_FAIL(d, row, i, "%s is empty, expected %s", name, expected);
    return FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected %s", name, row->field[i].text, expected);
}

/* What most fields hold, up to 19 digits and nothing else, eight at a time: neighbours are added up in pairs, then the
 * pairs, then the fours. False for anything else. */
static bool parse_digits(const char *text, size_t size, int64_t *value) {
    uint64_t n = 0;
    if (size == 0 || size > 19)
        return false;
    for (; size >= 8; size -= 8, text += 8) {
        uint64_t w;
        memcpy(&w, text, sizeof w);
        if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ ||
            ((w & 0xf0f0f0f0f0f0f0f0u) | ((w + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4) != 0x3333333333333333u)
            return false;
        w = (w & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
        w = (w & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
        n = n * 100000000 + ((w & 0x0000ffff0000ffffu) * 42949672960001u >> 32);
    }
    for (; size; size--, text++) {
        unsigned digit = (unsigned char)*text - (unsigned)'0';
        if (digit > 9)
            return false;
        n = n * 10 + digit;
    }
    *value = (int64_t)n;
    return n <= INT64_MAX;
}

fl_status fl_field_int(const fl_csv_row *row, size_t index, const char *name, int64_t min, int64_t max, int64_t *value,
                       fl_diag *d) {
    int64_t v;
    const fl_field *f = &row->field[index];
    if ((!parse_digits(f->text, f->size, &v) && fl_int_parse(f->text, &v) != FL_NUMBER_OK) || v < min || v > max)
        return wrong_int(row, index, name, min, max, d);
    *value = v;
    return FL_OK;
}

static fl_status wrong_real(const fl_csv_row *row, size_t i, const char *name, double min, double max, fl_diag *d) {
    char expected[80] = "a number";
    if (min > -HUGE_VAL && max < HUGE_VAL)
        snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
    else if (min > -HUGE_VAL)
        snprintf(expected, sizeof expected, "a number of at least %g", min);
    if (row->field[i].size == 0)
        return FL_FIELD_FAIL(d, row, i, "%s is empty, expected %s", name, expected);
    return FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected %s", name, row->field[i].text, expected);
}

fl_status fl_field_real(const fl_csv_row *row, size_t index, const char *name, double min, double max, double *value,
                        fl_diag *d) {
    double v = NAN;
    if (fl_real_parse(row->field[index].text, &v) != FL_NUMBER_OK || !(v >= min && v <= max))
        return wrong_real(row, index, name, min, max, d);
    *value = v;
    return FL_OK;
}

fl_status fl_field_real_or_nan(const fl_csv_row *row, size_t index, const char *name, double min, double max,
                               double *value, fl_diag *d) {
    if (row->field[index].size == 0) {
        *value = NAN;
        return FL_OK;
    }
    return fl_field_real(row, index, name, min, max, value, d);
}

/* ---- header rows ---- */

static fl_status unknown_column(const fl_csv_row *header, size_t i, const char *const *known, size_t count,
                                fl_diag *d) {
    const char *text = header->field[i].text;
    const char *nearest = fl_nearest(text, known, count);
    if (nearest)
        return FL_FIELD_FAIL(d, header, i, "unknown column '%.60s', expected '%s'", text, nearest);
    char list[512];
    size_t used = 0;
    for (size_t k = 0; k < count && used < sizeof list; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", known[k]);
    return FL_FIELD_FAIL(d, header, i, "unknown column '%.60s', expected one of %s", text, list);
}

fl_status fl_columns_find(const fl_csv_row *header, const char *const *known, size_t count, size_t required,
                          size_t *where, fl_diag *d) {
    for (size_t k = 0; k < count; k++)
        where[k] = SIZE_MAX;
    for (size_t i = 0; i < header->count; i++) {
        size_t k = 0;
        while (k < count && strcmp(known[k], header->field[i].text) != 0)
            k++;
        if (k == count)
            return unknown_column(header, i, known, count, d);
        if (where[k] != SIZE_MAX)
            return FL_FIELD_FAIL(d, header, i, "column '%s' is given twice, expected once", known[k]);
        where[k] = i;
    }
    for (size_t k = 0; k < required; k++)
        if (where[k] == SIZE_MAX)
            return FL_FIELD_FAIL(d, header, header->count - 1, "column '%s' is missing", known[k]);
    return FL_OK;
}

fl_status fl_columns_width(const fl_csv_row *row, size_t expected, fl_diag *d) {
    if (row->count == expected)
        return FL_OK;
    return FL_FIELD_FAIL(d, row, row->count - 1, "%s %zu field%s, expected %zu",
                         row->torn && row->count < expected ? "the last row is cut off: it has" : "row has", row->count,
                         row->count == 1 ? "" : "s", expected);
}

fl_status fl_columns_names(const fl_csv_row *header, size_t first, size_t count, size_t skip, char ***names,
                           size_t *named, fl_diag *d) {
    *named = 0;
    *names = calloc(count ? count : 1, sizeof **names);
    if (!*names)
        return fl_no_memory(d, header->file);
    for (size_t i = 0; i < count; i++) {
        const fl_field *f = &header->field[first + i];
        if (f->size <= skip)
            return FL_FIELD_FAIL(d, header, first + i, "column name '%.60s' is not whole, expected a name", f->text);
        for (size_t k = 0; k < *named; k++)
            if (strcmp((*names)[k], f->text + skip) == 0)
                return FL_FIELD_FAIL(d, header, first + i, "column '%.60s' is given twice, expected once", f->text);
        (*names)[i] = strdup(f->text + skip);
        if (!(*names)[i])
            return fl_no_memory(d, header->file);
        ++*named;
    }
    return FL_OK;
}
