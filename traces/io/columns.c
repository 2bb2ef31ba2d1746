/* Numbers and times as text, interning, and header rows of CSV files. */
#include "traces/io/io.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- times ---- */

fl_status fl_duration_parse(const char *text, int64_t *ns, fl_diag *d) {
    static const struct {
        const char *unit;
        double ns;
    } UNITS[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    char *end;
    const double value = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof UNITS / sizeof *UNITS; i++)
        if (!strcmp(end, UNITS[i].unit) && value > 0 && value * UNITS[i].ns >= 1 && value * UNITS[i].ns < 9e18) {
            *ns = (int64_t)(value * UNITS[i].ns);
            return FL_OK;
        }
    return fl_refuse(d, "'%.40s' is not a time, expected one such as 60s, 5m, 1h or 500ms", text);
}

/* ---- interning ---- */

uint32_t fl_hash(const void *data, size_t size) {
    const unsigned char *p = data;
    uint64_t h = 0x9e3779b97f4a7c15u ^ size;
    while (size) {
        uint64_t word = 0;
        size_t n = size < sizeof word ? size : sizeof word;
        memcpy(&word, p, n);
        h = (h ^ word) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        p += n;
        size -= n;
    }
    return (uint32_t)(h ^ (h >> 29));
}

static fl_status rehash(fl_intern *n) {
    size_t room = n->room ? n->room * 2 : 64;
    if (room > UINT32_MAX)
        return FL_NO_MEMORY;
    fl_intern_slot *slot = malloc(room * sizeof *slot);
    if (!slot)
        return FL_NO_MEMORY;
    for (size_t i = 0; i < room; i++)
        slot[i].index = UINT32_MAX;
    for (size_t i = 0; i < n->room; i++) {
        if (n->slot[i].index == UINT32_MAX)
            continue;
        size_t at = n->slot[i].hash & (room - 1);
        while (slot[at].index != UINT32_MAX)
            at = (at + 1) & (room - 1);
        slot[at] = n->slot[i];
    }
    free(n->slot);
    n->slot = slot;
    n->room = room;
    return FL_OK;
}

fl_intern_slot *fl_intern_find(fl_intern *n, uint32_t hash, fl_same_function same, const void *owner, const void *key) {
    if (n->count * 2 >= n->room && rehash(n))
        return NULL;
    size_t at = hash & (n->room - 1);
    for (; n->slot[at].index != UINT32_MAX; at = (at + 1) & (n->room - 1))
        if (n->slot[at].hash == hash && same(owner, n->slot[at].index, key))
            return &n->slot[at];
    n->slot[at].hash = hash;
    n->count++; /* an upper bound, should the caller fail to fill it */
    return &n->slot[at];
}

void fl_intern_free(fl_intern *n) {
    free(n->slot);
    memset(n, 0, sizeof *n);
}

typedef struct text_key {
    const char *text;
    size_t size;
} text_key;

static bool same_text(const void *owner, uint32_t index, const void *key) {
    const char *name = ((char *const *)owner)[index];
    const text_key *k = key;
    return strncmp(name, k->text, k->size) == 0 && name[k->size] == '\0';
}

uint32_t fl_intern_text(fl_intern *n, char ***names, size_t *count, size_t *room, const char *text, size_t size) {
    text_key key = {text, size};
    fl_intern_slot *slot = fl_intern_find(n, fl_hash(text, size), same_text, *names, &key);
    if (!slot)
        return UINT32_MAX;
    if (slot->index != UINT32_MAX)
        return slot->index;
    if (*count >= UINT32_MAX || fl_grow(names, room, *count + 1, sizeof **names))
        return UINT32_MAX;
    char *copy = strndup(text, size);
    if (!copy)
        return UINT32_MAX;
    (*names)[*count] = copy;
    slot->index = (uint32_t)(*count)++;
    return slot->index;
}

/* ---- numbers as text ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

fl_number fl_int_parse(const char *text, int64_t *value) {
    bool minus = *text == '-';
    text += minus;
    if (!is_digit(*text))
        return FL_NUMBER_SYNTAX;
    uint64_t n = 0;
    const char *first = text;
    for (; is_digit(*text) && text - first < 18; text++) /* too few to overflow */
        n = n * 10 + (uint64_t)(*text - '0');
    bool over = false;
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        over = over || n > (UINT64_MAX - digit) / 10;
        n = n * 10 + digit;
    }
    if (*text)
        return FL_NUMBER_SYNTAX;
    if (over || n > (uint64_t)INT64_MAX + minus)
        return FL_NUMBER_RANGE;
    if (minus)
        *value = n ? -(int64_t)(n - 1) - 1 : 0;
    else
        *value = (int64_t)n;
    return FL_NUMBER_OK;
}

/* strtod() of the C locale. glibc keeps one such locale and returns it without allocating. */
static double parse_slowly(const char *text) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return strtod(text, NULL);
    double value = strtod_l(text, NULL, c);
    freelocale(c);
    return value;
}

fl_number fl_real_parse(const char *text, double *value) {
    static const double POWER[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *t = text;
    bool minus = *t == '-';
    t += *t == '-' || *t == '+';
    uint64_t mantissa = 0;
    int digits = 0, exponent = 0;
    bool exact = true;
    for (int point = 0;; t++) {
        if (*t == '.' && !point) {
            point = 1;
            continue;
        }
        if (!is_digit(*t))
            break;
        digits = 1;
        if (mantissa >= UINT64_C(1) << 53)
            exact = false;
        else
            mantissa = mantissa * 10 + (uint64_t)(*t - '0');
        exponent -= point && exact;
    }
    if (!digits)
        return FL_NUMBER_SYNTAX;
    if (*t == 'e' || *t == 'E') {
        t++;
        bool negative = *t == '-';
        t += *t == '-' || *t == '+';
        if (!is_digit(*t))
            return FL_NUMBER_SYNTAX;
        int power = 0;
        for (; is_digit(*t); t++)
            power = power < 100000 ? power * 10 + (*t - '0') : power;
        exponent += negative ? -power : power;
    }
    if (*t)
        return FL_NUMBER_SYNTAX;
    /* Both factors are exact as doubles, so one operation rounds once and therefore correctly. */
    double result;
    if (exact && mantissa <= UINT64_C(1) << 53 && exponent >= -22 && exponent <= 22) {
        result = exponent < 0 ? (double)mantissa / POWER[-exponent] : (double)mantissa * POWER[exponent];
        result = minus ? -result : result;
    } else {
        result = parse_slowly(text);
    }
    if (isinf(result))
        return FL_NUMBER_RANGE;
    *value = result;
    return FL_NUMBER_OK;
}

char *fl_real_text(double value, char buf[FL_REAL_TEXT]) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = c ? uselocale(c) : (locale_t)0;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, FL_REAL_TEXT, "%.*g", digits, value);
        double back = NAN;
        if (!isfinite(value) || (fl_real_parse(buf, &back) == FL_NUMBER_OK && back == value))
            break;
    }
    if (c) {
        uselocale(before);
        freelocale(c);
    }
    return buf;
}

/* ---- numbers in fields ---- */

/* inf, as printf writes it. */
static bool is_infinite(const char *text) {
    text += *text == '-' || *text == '+';
    return !strcasecmp(text, "inf") || !strcasecmp(text, "infinity");
}

static fl_status wrong_int(const fl_csv_row *row, size_t i, const char *name, int64_t min, int64_t max, fl_diag *d) {
    char expected[80] = "a whole number";
    if (min > INT32_MIN && max < INT64_MAX)
        snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min, (long long)max);
    else if (min > INT32_MIN)
        snprintf(expected, sizeof expected, "a whole number of at least %lld", (long long)min);
    int64_t whole;
    if (row->field[i].size == 0)
        return FL_FIELD_FAIL(d, row, i, "%s is empty, expected %s", name, expected);
    FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected %s", name, row->field[i].text, expected);
    const char *text = row->field[i].text;
    return fl_int_parse(text, &whole) == FL_NUMBER_SYNTAX && !is_infinite(text) ? FL_BAD_INPUT : fl_of_values(d);
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
    double value;
    const char *text = row->field[i].text;
    if (row->field[i].size == 0)
        return FL_FIELD_FAIL(d, row, i, "%s is empty, expected %s", name, expected);
    FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected %s", name, text, expected);
    return fl_real_parse(text, &value) == FL_NUMBER_SYNTAX && !is_infinite(text) ? FL_BAD_INPUT : fl_of_values(d);
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
