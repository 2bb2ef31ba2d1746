/* Times as tools write them: dates with or without a zone, times of day, or numbers in s, ms, us or ns. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static bool digits(const char **at, size_t count, int *value) {
    for (*value = 0; count; count--, ++*at) {
        if (!isdigit((unsigned char)**at))
            return false;
        *value = *value * 10 + (**at - '0');
    }
    return true;
}

static int days_in(int month, int year) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* 2023/07/14, 2023-07-14, 20230714, and what separates it from the time. */
static bool parse_date(const char **at, int date[3]) {
    if (!digits(at, 4, &date[0]))
        return false;
    const char mark = **at == '/' || **at == '-' ? *(*at)++ : '\0';
    if (!digits(at, 2, &date[1]) || (mark && *(*at)++ != mark) || !digits(at, 2, &date[2]))
        return false;
    if (date[0] < 1970 || date[0] >= 2200 || date[1] < 1 || date[1] > 12 || date[2] < 1 ||
        date[2] > days_in(date[1], date[0]) || (**at != ' ' && **at != 'T'))
        return false;
    ++*at;
    *at += strspn(*at, " ");
    return true;
}

/* "Z", "UTC", "+01:00", "-0500": the time is so much later than UTC. An empty text: no zone. */
static bool parse_zone(const char *at, int64_t *offset, bool *zoned) {
    int hour = 0, minute = 0;
    at += strspn(at, " ");
    *zoned = *at != '\0';
    *offset = 0;
    if (!*zoned || !strcmp(at, "Z") || !strcmp(at, "UTC") || !strcmp(at, "GMT"))
        return true;
    const bool west = *at == '-';
    if (*at != '+' && !west)
        return false;
    at++;
    if (!digits(&at, 2, &hour) || hour > 14)
        return false;
    at += *at == ':';
    if (*at && (!digits(&at, 2, &minute) || minute > 59))
        return false;
    *offset = (hour * HOUR + minute * 60 * SECOND) * (west ? -1 : 1);
    return !*at;
}

bool fl_time_parse(const char *text, fl_time *t) {
    int date[3] = {1970, 1, 1}, hour, minute, second;
    int64_t fraction = 0, scale = SECOND, offset;
    const char *at = text;
    *t = (fl_time){.of_day = isdigit((unsigned char)text[0]) && text[1 + !!isdigit((unsigned char)text[1])] == ':'};
    if (!t->of_day && !parse_date(&at, date))
        return false;
    if (!digits(&at, at[1] == ':' ? 1 : 2, &hour) || *at++ != ':' || !digits(&at, 2, &minute) || *at++ != ':' ||
        !digits(&at, 2, &second) || hour > 23 || minute > 59 || second > 60)
        return false;
    if ((*at == '.' || *at == ',') && !isdigit((unsigned char)at[1]))
        return false;
    if (*at == '.' || *at == ',')
        for (at++; isdigit((unsigned char)*at); at++) {
            scale /= 10;
            fraction += (*at - '0') * scale;
        }
    if (!parse_zone(at, &offset, &t->zoned))
        return false;
    t->ns = fl_civil_ns(date[0], date[1], date[2], hour, minute, second, fraction) - offset;
    return t->ns >= 0;
}

/* ---- the time column of a table ---- */

bool fl_time_join(const fl_csv_row *row, size_t time, char by, fl_joined *to) {
    fl_time t;
    if (time + 1 >= row->count || row->count > FL_JOINED_MAX)
        return false;
    snprintf(to->text, sizeof to->text, "%s%c%s", row->field[time].text, by, row->field[time + 1].text);
    if (fl_time_parse(row->field[time].text, &t) == (by != ',') || !fl_time_parse(to->text, &t))
        return false;
    for (size_t i = 0; i + 1 < row->count; i++)
        to->field[i] = row->field[i <= time ? i : i + 1];
    to->field[time].text = to->text;
    to->field[time].size = strlen(to->text);
    to->row = (fl_csv_row){row->file, row->line, to->field, row->count - 1, row->torn};
    return true;
}

void fl_stamps_begin(fl_stamps *s, int power) {
    *s = (fl_stamps){.power = power};
    for (size_t i = 0; i < sizeof s->last_ns / sizeof *s->last_ns; i++)
        s->last_ns[i] = -1;
}

/* "t_ms", "time (us)", "timestamp [s]": the unit at the end of a column's name; -1: none. */
int fl_stamps_power(const char *name, size_t size) {
    static const struct {
        const char *name;
        int power;
    } UNIT[] = {{"ns", 0},   {"nsec", 0}, {"us", 3},  {"usec", 3},    {"ms", 6},
                {"msec", 6}, {"s", 9},    {"sec", 9}, {"seconds", 9}, {"secs", 9}};
    while (size && strchr(")] ", name[size - 1]))
        size--;
    size_t from = size;
    while (from && isalpha((unsigned char)name[from - 1]))
        from--;
    for (size_t i = 0; i < sizeof UNIT / sizeof *UNIT; i++)
        if (strlen(UNIT[i].name) == size - from && !strncasecmp(name + from, UNIT[i].name, size - from))
            return UNIT[i].power;
    return -1;
}

/* The unit that puts a number between 1973 and 2200, or seconds for a smaller one. */
static int guess(double number) { return number >= 1e17 ? 0 : number >= 1e14 ? 3 : number >= 1e11 ? 6 : 9; }

static fl_status read_number(fl_stamps *s, const fl_csv_row *row, size_t i, const char *what, int64_t *ns, fl_diag *d) {
    const char *text = row->field[i].text;
    double number;
    if (fl_real_parse(text, &number) != FL_NUMBER_OK)
        return FL_FIELD_FAIL(
            d, row, i,
            "%s is '%.40s', expected a date such as 2025-03-01T10:00:00.123 or 2023/07/14 10:10:26.905, "
            "or a number",
            what, text);
    if (s->power < 0) {
        s->power = guess(number);
        s->small = number < 1e8;
        s->guessed = true;
    }
    s->numbers++;
    if (!strpbrk(text, "eE"))
        return fl_foreign_ns(row, i, what, s->power, ns, d);
    const double value = number * pow(10, s->power);
    if (!(value >= 0 && value < 9e18))
        return FL_FIELD_WRONG(d, row, i, "%s is '%.40s', expected a time of at least 0 and below 292 years", what,
                              text);
    *ns = llround(value);
    return FL_OK;
}

fl_status fl_stamp_read(fl_stamps *s, const fl_csv_row *row, size_t i, const char *what, size_t board, int64_t *ns,
                        fl_diag *d) {
    const char *text = row->field[i].text;
    fl_time t = {0};
    if (!fl_time_parse(text, &t)) {
        const fl_status status = read_number(s, row, i, what, ns, d);
        s->last_ns[board] = status ? s->last_ns[board] : *ns;
        return status;
    }
    s->local += !t.zoned && !t.of_day;
    s->of_day += t.of_day;
    *ns = t.ns + (t.zoned ? 0 : s->shift_ns);
    const int64_t last = s->last_ns[board], back = last - *ns;
    /* Local time steps back by an hour when summer time ends, and by a day at midnight where there is no date. */
    if (last >= 0 && !t.zoned && llabs((long long)(back - HOUR)) < HOUR / 6 && !t.of_day) {
        s->shift_ns += HOUR;
        *ns += HOUR;
        s->set_back++;
    } else if (last >= 0 && t.of_day && back > DAY / 2) {
        s->shift_ns += DAY;
        *ns += DAY;
    }
    s->last_ns[board] = *ns > last ? *ns : last;
    return FL_OK;
}

void fl_stamps_say(const fl_stamps *s, fl_imported *out) {
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    if (s->local)
        fl_import_say(out, "time stamps are local time without a zone: taken as UTC");
    if (s->of_day)
        fl_import_say(out, "time stamps have no date: taken from midnight on");
    if (s->set_back)
        fl_import_say(out, "the clock was set back by an hour (end of summer time?): taken on from there");
    if (s->guessed)
        fl_import_say(out, "times are numbers without a unit: taken as %s%s", unit[s->power / 3 > 3 ? 3 : s->power / 3],
                      s->small ? " from the begin" : " since 1970");
}
