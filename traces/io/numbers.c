#include "traces/io/numbers.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

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
