/* Readings of foreign telemetry: signals by name, rows of values, order in time, and what is not known. */
#include "traces/import/import.h"
#include "traces/import/inside.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GARBAGE_ROWS = 8, GARBAGE_W = 3 }; /* at most so many first rows of a device, each below so much */

void fl_readings_begin(fl_readings *r, fl_imported *out) {
    *r = (fl_readings){.out = out, .left = fl_left_begin(&r->left)};
    r->rows = (fl_telemetry_rows){.t = &out->telemetry, .left = &r->left};
}

fl_status fl_readings_signal(fl_readings *r, const char *name, size_t *column, fl_diag *d) {
    fl_telemetry *t = &r->out->telemetry;
    for (*column = 0; *column < t->signal_count; ++*column)
        if (strcmp(t->signal[*column], name) == 0)
            return FL_OK;
    if (fl_grow(&t->signal, &r->signal_room, t->signal_count + 1, sizeof *t->signal) ||
        !(t->signal[t->signal_count] = strdup(name)))
        return fl_no_memory(d, NULL);
    t->signal_count++;
    return FL_OK;
}

fl_status fl_readings_take(fl_readings *r, const fl_csv_row *row, int64_t t_ns, int32_t device, fl_diag *d) {
    for (size_t i = 0; i < r->out->telemetry.signal_count; i++)
        if (!isnan(r->rows.value[i]))
            return fl_telemetry_take(&r->rows, row, t_ns, device, d);
    return fl_left_empty(&r->left, row->file, row->line, 1, d, "no cell of the row has a value");
}

/* Masks of nvmlClocksEventReasons. The setting of application clocks, 0x2, holds nothing back. */
unsigned fl_held_by(unsigned long long reasons) {
    static const unsigned of[][2] = {{0x4 | 0x80, FL_HELD_POWER},
                                     {0x20 | 0x40, FL_HELD_HEAT},
                                     {0x1, FL_HELD_IDLE},
                                     {0x8 | 0x10 | 0x100, FL_HELD_OTHER}};
    unsigned bits = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        bits |= reasons & of[i][0] ? of[i][1] : 0;
    return bits;
}

/* ---- what is not known ---- */

static fl_status drop_unknown(fl_readings *r, fl_diag *d) {
    fl_telemetry *t = &r->out->telemetry;
    size_t width = t->signal_count, kept = 0;
    bool *known = calloc(width ? width : 1, sizeof *known);
    if (!known)
        return fl_no_memory(d, NULL);
    for (size_t n = 0; n < t->row_count; n++)
        for (size_t i = 0; i < width; i++)
            known[i] |= !isnan(t->value[n * width + i]);
    fl_status status = FL_OK;
    for (size_t i = 0; i < width; i++) {
        if (known[i]) {
            t->signal[kept++] = t->signal[i];
            continue;
        }
        if (!status)
            status = fl_import_note(r->out, d, "%s is nowhere known: left out", t->signal[i]);
        free(t->signal[i]);
    }
    for (size_t n = 0, to = 0; kept < width && n < t->row_count; n++)
        for (size_t i = 0; i < width; i++)
            if (known[i])
                t->value[to++] = t->value[n * width + i];
    t->signal_count = kept;
    free(known);
    return status;
}

/* Right after a driver wakes up, the first readings of power can be nonsense (1.2 W): below what any board draws, and
 * below a fifth of the least reading that follows. */
static size_t drop_garbage(fl_telemetry *t, size_t column, int32_t device) {
    double least = INFINITY, first[GARBAGE_ROWS];
    size_t seen = 0, rows[GARBAGE_ROWS];
    for (size_t n = 0; n < t->row_count; n++) {
        double v = t->value[n * t->signal_count + column];
        if (t->device[n] != device || isnan(v))
            continue;
        if (seen == GARBAGE_ROWS || v >= GARBAGE_W) {
            least = v < least ? v : least;
        } else if (isinf(least)) {
            first[seen] = v;
            rows[seen++] = n;
        }
    }
    double most = 0;
    for (size_t i = 0; i < seen; i++)
        most = first[i] > most ? first[i] : most;
    if (isinf(least) || most >= least / 5)
        return 0;
    for (size_t i = 0; i < seen; i++)
        t->value[rows[i] * t->signal_count + column] = NAN;
    return seen;
}

static fl_status drop_first(fl_readings *r, fl_diag *d) {
    static const char *const NAME[] = {"power_w", "power_instant_w"};
    fl_telemetry *t = &r->out->telemetry;
    size_t dropped = 0;
    for (size_t i = 0; i < t->signal_count; i++)
        for (size_t k = 0; k < 2; k++)
            for (size_t v = 0; !strcmp(t->signal[i], NAME[k]) && v + 1 < r->rows.last_room; v++)
                if (r->rows.last_ns[v + 1] != INT64_MIN)
                    dropped += drop_garbage(t, i, (int32_t)v);
    return dropped ? fl_import_note(r->out, d,
                                    "%zu first readings of power are below %d W and a fifth of any later one: taken as "
                                    "garbage, left out",
                                    dropped, GARBAGE_W)
                   : FL_OK;
}

/* ---- doubts about telemetry, of any reader ---- */

#define CLOSE_S 1.5e-6 /* no meter is read so often; readings each second have this distance where t_ns is in ms */

static void note_pauses(fl_imported *out, int32_t device, const double *time, size_t count, double *room) {
    const double usual = fl_usual_spacing(time, count, room), longest = FL_PAUSE_SPACINGS * usual;
    if (usual > 0 && usual < CLOSE_S)
        fl_import_doubt(
            out, "device %d: its readings are %.3g s apart: are the times s or ms instead of ns? Taken as they are",
            device, usual);
    size_t pauses = 0, first = 0;
    double sum = 0;
    for (size_t i = 1; longest > 0 && i < count; i++)
        if (time[i] - time[i - 1] > longest) {
            first = pauses++ ? first : i;
            sum += time[i] - time[i - 1];
        }
    if (pauses == 1)
        fl_import_doubt(
            out, "device %d: no readings for %.6g s, %.6g s after the first: no sum over time includes the pause",
            device, sum, time[first - 1] - time[0]);
    else if (pauses)
        fl_import_doubt(
            out,
            "device %d: %zu pauses without readings, %.6g s together, the first of %.6g s, %.6g s after the "
            "first reading: no sum over time includes them",
            device, pauses, sum, time[first] - time[first - 1], time[first - 1] - time[0]);
}

/* No GPU that answers draws nothing: such a reading is that of a sensor which is not ready, or of a second die. */
static void drop_zeros(fl_imported *out) {
    fl_telemetry *t = &out->telemetry;
    for (size_t c = 0; c < t->signal_count; c++) {
        size_t zeros = 0, known = 0;
        for (size_t n = 0; n < t->row_count; n++) {
            double *x = &t->value[n * t->signal_count + c];
            if (t->device[n] < 0 || isnan(*x) ||
                (strcmp(t->signal[c], "power_w") != 0 && strcmp(t->signal[c], "power_instant_w") != 0))
                continue;
            known++;
            zeros += *x <= 0;
            *x = *x > 0 ? *x : (double)NAN;
        }
        if (zeros)
            fl_import_doubt(out, "%zu of %zu readings of %s are 0 W, which no GPU draws: taken as not known", zeros,
                            known, t->signal[c]);
    }
}

/* Drop the counter of a device whose power it gives in another unit than the power readings. */
static bool other_unit(fl_imported *out, int32_t device, double counter_w, double sensor_w) {
    static const struct {
        double factor;
        const char *unit;
    } known[] = {{1e3, "mJ"}, {1e6, "uJ"}, {1e-3, "kJ"}, {1 / 3.6e3, "Wh"}, {1 / 3.6e6, "kWh"}};
    fl_telemetry *t = &out->telemetry;
    const size_t column = fl_telemetry_signal(t, device < 0 ? "node_energy_j" : "energy_j");
    size_t k = 0;
    while (k < sizeof known / sizeof *known && !(fabs(counter_w / sensor_w / known[k].factor - 1) < 0.2))
        k++;
    if (k == sizeof known / sizeof *known)
        return false;
    for (size_t n = 0; n < t->row_count; n++)
        if (t->device[n] == device)
            t->value[n * t->signal_count + column] = NAN;
    fl_import_doubt(out,
                    "device %d: the energy counter gives %.5g W, the power readings %.5g W: it seems to count %s "
                    "instead of J, and is left out",
                    device, counter_w, sensor_w, known[k].unit);
    return true;
}

/* A column of which even the highest value is below that of any GPU may be in a larger unit. */
static void note_units(fl_imported *out) {
    static const struct {
        const char *signal, *as;
        double most;
    } low[] = {{"util_gpu_pct", "a share of 1 instead of percent", 1},
               {"util_mem_pct", "a share of 1 instead of percent", 1},
               {"sm_active_pct", "a share of 1 instead of percent", 1},
               {"sm_mhz", "GHz instead of MHz", 30},
               {"mem_mhz", "GHz instead of MHz", 30},
               {"power_w", "kW instead of W", 1}};
    const fl_telemetry *t = &out->telemetry;
    for (size_t k = 0; k < sizeof low / sizeof *low; k++)
        for (size_t c = 0; c < t->signal_count; c++) {
            double highest = 0;
            bool fraction = false; /* an idle GPU may be busy for 0 or 1 % throughout */
            for (size_t n = 0; n < t->row_count && !strcmp(t->signal[c], low[k].signal); n++) {
                const double x = t->value[n * t->signal_count + c];
                highest = x > highest ? x : highest;
                fraction |= x > floor(x);
            }
            if (highest > 0 && highest <= low[k].most && fraction)
                fl_import_doubt(out, "%s is %.4g at most: is it %s? Taken as it is", low[k].signal, highest, low[k].as);
        }
}

/* A counter starts again where the driver is loaded again, or where it overflows. */
static void note_falls(fl_imported *out, int32_t device) {
    const fl_telemetry *t = &out->telemetry;
    const size_t column = fl_telemetry_signal(t, device < 0 ? "node_energy_j" : "energy_j");
    size_t falls = 0;
    double last = NAN;
    for (size_t n = 0; column != SIZE_MAX && n < t->row_count; n++) {
        const double x = t->value[n * t->signal_count + column];
        if (t->device[n] != device || isnan(x))
            continue;
        falls += x < last;
        last = x;
    }
    if (falls)
        fl_import_doubt(out,
                        "device %d: the energy counter falls %zu time%s, as after a reset: over such a fall the power "
                        "readings are taken, where there are any",
                        device, falls, falls == 1 ? "" : "s");
}

static fl_status note_accounts(fl_imported *out, int32_t device, fl_diag *d) {
    const fl_held_over whole = {INT64_MIN, INT64_MAX, true};
    double counter = NAN, sensor = NAN;
    const fl_status s = fl_telemetry_accounts(&out->telemetry, device, &whole, &counter, &sensor, d);
    if (!s && fl_accounts_differ(counter, sensor) && !other_unit(out, device, counter, sensor))
        fl_import_doubt(
            out,
            "device %d: two accounts of its energy differ: %.5g W by the energy counter, %.5g W by the power "
            "readings; the counter's is taken",
            device, counter, sensor);
    return s;
}

fl_status fl_import_telemetry(fl_imported *out, const fl_left_out *left, const char *path, fl_diag *d) {
    const fl_telemetry *t = &out->telemetry;
    double *time = malloc((t->row_count + 1) * sizeof *time), *room = malloc((t->row_count + 1) * sizeof *room);
    int32_t last = -1;
    for (size_t n = 0; n < t->row_count; n++)
        last = t->device[n] > last ? t->device[n] : last;
    bool *has = calloc((size_t)last + 2, sizeof *has);
    size_t *row = malloc((t->row_count + 1) * sizeof *row);
    fl_status s = time && room && has && row ? fl_import_left(out, left, d) : fl_no_memory(d, "the telemetry");
    for (size_t n = 0; has && n < t->row_count; n++)
        has[t->device[n] + 1] = true;
    if (!s)
        drop_zeros(out);
    for (int32_t device = -1; !s && device <= last; device++) {
        size_t count = 0;
        if (!has[device + 1])
            continue;
        for (size_t n = 0; n < t->row_count; n++)
            if (t->device[n] == device) {
                row[count] = n;
                time[count++] = (double)t->t_ns[n] * 1e-9;
            }
        if (device >= 0 && fl_telemetry_interleaves(t, row, count))
            s = fl_fail(
                d, FL_BAD_INPUT, path, 0, 0,
                "readings some ms apart go back and forth between levels, as of several GPUs in one log (device "
                "%d): expected a column that tells them apart (--query-gpu=index,...), or one GPU",
                device);
        if (s)
            break;
        note_pauses(out, device, time, count, room);
        note_falls(out, device);
        s = note_accounts(out, device, d);
    }
    if (!s)
        note_units(out);
    free(time);
    free(room);
    free(has);
    free(row);
    out->has_telemetry = !s;
    return s ? s : fl_import_said(out, d);
}

fl_status fl_readings_end(fl_readings *r, const char *path, fl_diag *d) {
    fl_telemetry *t = &r->out->telemetry;
    fl_status status = fl_telemetry_end(&r->rows, path, NULL, d);
    if (!status && t->row_count == 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no readings, expected at least one whole row after the header");
    if (!status)
        status = drop_first(r, d);
    if (!status)
        status = drop_unknown(r, d);
    if (!status && t->signal_count == 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no row holds a value of any signal, expected at least one number");
    for (size_t n = 0; !status && n < t->row_count; n++)
        if (t->t_ns[n] < 0)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a row has the time %lld ns, expected none before 0",
                           (long long)t->t_ns[n]);
    return status ? status : fl_import_telemetry(r->out, &r->left, path, d);
}

void fl_readings_free(fl_readings *r) { fl_telemetry_rows_free(&r->rows); }

/* ---- times as tools write them: dates, times of day, or numbers in s, ms, us or ns ---- */

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
