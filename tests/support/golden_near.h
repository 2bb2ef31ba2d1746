/* Golden cases of numbers whose last digits another library of mathematics moves: lines of fields, "words 3,name=1.5,
 * list=1 nan 2". A field without "=" must be as it is kept, and so must nan and inf. Any other number may be off by a
 * share of the largest number of its field, and what is below ROUNDING is nought. */
#pragma once

#include "tests/support/golden.h"

#include <math.h>

#define FL_GOLDEN_ROUNDING 1e-9

/* The next number of a field; at its end *at is on the character after it. */
static inline bool fl_golden_number(const char **at, double *value) {
    char *end;
    if (!**at || strchr(",\n", **at))
        return false;
    *value = strtod(*at, &end);
    if (end == *at)
        return false;
    *at = *end == ' ' ? end + 1 : end;
    return true;
}

static inline bool fl_golden_near_lists(const char **made, const char **kept, double share) {
    double largest = 0, is, was;
    for (const char *at = *kept; fl_golden_number(&at, &was);)
        largest = isfinite(was) ? fmax(largest, fabs(was)) : largest;
    while (fl_golden_number(made, &is)) {
        if (!fl_golden_number(kept, &was) || isnan(is) != isnan(was))
            return false;
        if (!isnan(is) && is != was && !(fabs(is - was) <= share * largest + FL_GOLDEN_ROUNDING))
            return false;
    }
    return **made == **kept;
}

/* The first field that is apart, or NULL; *line says where. */
static inline const char *fl_golden_apart(const char *made, const char *kept, double share, size_t *line) {
    const char *field = made;
    for (*line = 1; *made && *made == *kept;) {
        const char c = *made++;
        kept++;
        *line += c == '\n';
        if (c == ',' || c == '\n')
            field = made;
        if (c == '=' && !fl_golden_near_lists(&made, &kept, share))
            return field;
    }
    return *made == *kept ? NULL : field;
}

static inline void fl_golden_near(const char *name, const char *text, double share) {
    if (fl_blessing()) {
        fl_golden_check(name, text);
        return;
    }
    char path[512], kept[32768] = "";
    snprintf(path, sizeof path, "%s/tests/golden/%s", FL_ROOT, name);
    FILE *in = fopen(path, "r");
    FL_CHECK(in != NULL, "cannot open %s (FL_BLESS=1 writes it)", path);
    if (!in)
        return;
    kept[fread(kept, 1, sizeof kept - 1, in)] = 0;
    fclose(in);
    size_t line;
    const char *apart = fl_golden_apart(text, kept, share, &line);
    FL_CHECK(!apart, "%s differs from line %zu on: %.*s", name, line, (int)strcspn(apart ? apart : "", ",\n"), apart);
}
