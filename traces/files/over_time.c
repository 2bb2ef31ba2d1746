/* Telemetry over time: pauses, means and sums of a signal, accounts of energy, and boards that were read in turn. */
#include "traces/files/files.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- pauses ---- */

#define WIDE 0.9

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fl_usual_spacing(const double *time, size_t count, double *room) {
    for (size_t i = 1; i < count; i++)
        room[i - 1] = time[i] - time[i - 1];
    if (count < 2)
        return 0;
    qsort(room, count - 1, sizeof *room, ascending);
    return room[(size_t)(WIDE * (double)(count - 2))];
}

/* ---- means and sums ---- */

size_t fl_telemetry_signal(const fl_telemetry *t, const char *name) {
    for (size_t i = 0; i < t->signal_count; i++)
        if (!strcmp(t->signal[i], name))
            return i;
    return SIZE_MAX;
}

fl_status fl_telemetry_longest(const fl_telemetry *t, size_t signal, int32_t device, double *longest_ns, fl_diag *d) {
    size_t count = 0;
    double *time = malloc((t->row_count + 1) * sizeof *time), *room = malloc((t->row_count + 1) * sizeof *room);
    for (size_t n = 0; time && n < t->row_count; n++)
        if (t->device[n] == device && (signal == SIZE_MAX || !isnan(t->value[n * t->signal_count + signal])))
            time[count++] = (double)t->t_ns[n];
    const double usual = time && room ? fl_usual_spacing(time, count, room) : 0;
    *longest_ns = usual > 0 ? FL_PAUSE_SPACINGS * usual : (double)INFINITY;
    const bool good = time && room;
    free(time);
    free(room);
    return good ? FL_OK : fl_no_memory(d, "the telemetry");
}

/* Adds the part within [from, to] of the stretch between two readings. */
static void add_stretch(fl_held *h, double *sum, int64_t t0, double v0, int64_t t1, double v1, const fl_held_over *o) {
    const int64_t a = t0 > o->from_ns ? t0 : o->from_ns, b = t1 < o->to_ns ? t1 : o->to_ns;
    const double time = b > a ? (double)(b - a) : 0, slope = t1 > t0 ? (v1 - v0) / (double)(t1 - t0) : 0;
    *sum += time * (v0 + (o->line ? slope * ((double)(a - t0) + time / 2) : 0));
    h->seconds += time * 1e-9;
    h->gained += v1 > v0 ? slope * time : 0;
    h->falls += v1 < v0 && time > 0;
    if (time > 0 && !o->line) { /* one from before the span holds into it */
        h->min = h->min < v0 ? h->min : v0;
        h->max = h->max > v0 ? h->max : v0;
    }
}

fl_status fl_telemetry_held(const fl_telemetry *t, const char *name, int32_t device, const fl_held_over *o,
                            fl_held *out, fl_diag *d) {
    const size_t signal = fl_telemetry_signal(t, name);
    fl_held h = {.mean = NAN, .integral = NAN, .min = NAN, .max = NAN};
    double sum = 0, plain = 0, value = NAN, longest = INFINITY;
    int64_t since = 0;
    const fl_status s = signal == SIZE_MAX ? FL_OK : fl_telemetry_longest(t, signal, device, &longest, d);
    for (size_t n = 0; !s && signal != SIZE_MAX && n < t->row_count; n++) {
        const double v = t->value[n * t->signal_count + signal];
        const int64_t now = t->t_ns[n];
        if (t->device[n] != device || isnan(v))
            continue;
        if (!isnan(value) && now > since && (double)(now - since) <= longest)
            add_stretch(&h, &sum, since, value, now, v, o);
        else if (!isnan(value) && now > since && now > o->from_ns && since < o->to_ns)
            h.pauses++;
        value = v;
        since = now;
        if (now < o->from_ns || now > o->to_ns)
            continue;
        plain += v;
        h.count++;
        h.min = h.min < v ? h.min : v;
        h.max = h.max > v ? h.max : v;
    }
    if (!isnan(value) && since < o->to_ns && h.seconds > 0 && (double)(o->to_ns - since) <= longest)
        add_stretch(&h, &sum, since, value, o->to_ns, value, o);
    if (h.seconds > 0) {
        h.mean = sum * 1e-9 / h.seconds;
        h.integral = sum * 1e-9;
    } else if (h.count) {
        h.mean = plain / (double)h.count;
    }
    *out = h;
    return s;
}

/* ---- two accounts of energy ---- */

bool fl_accounts_differ(double one, double other) {
    return one > 0 && other > 0 && fabs(one - other) > FL_ACCOUNTS_APART * fmax(one, other);
}

fl_status fl_telemetry_accounts(const fl_telemetry *t, int32_t device, const fl_held_over *o, double *counter_w,
                                double *sensor_w, fl_diag *d) {
    const char *const counter = device < 0 ? "node_energy_j" : "energy_j";
    const char *const sensor[] = {device < 0 ? "node_power_w" : "power_w", "power_instant_w"};
    fl_held energy = {0}, power = {.mean = NAN};
    fl_held_over line = *o;
    line.line = true;
    fl_status s = fl_telemetry_held(t, counter, device, &line, &energy, d);
    for (size_t i = 0; !s && isnan(power.mean) && i < 2; i++)
        s = fl_telemetry_held(t, sensor[i], device, &line, &power, d);
    *counter_w = energy.gained > 0 && !energy.falls ? energy.gained / energy.seconds : (double)NAN;
    *sensor_w = power.mean;
    return s;
}

/* ---- which boards rows come from ---- */

#define TURN_NS 50000000 /* one query reads all boards in this time; meters refresh every 20 to 100 ms */
#define BOARDS_MAX 16
#define ROUNDS_MIN 8
#define ALIKE 0.9 /* share of the rounds that have one reading of each board */
/* Spread within a round over the change from one round to the next. Independent readings of one GPU give 1 for two in a
 * round and at most 3.1 for sixteen (mean range over mean difference of normal deviates). */
#define LEVELS 4.0

/* How many readings follow each other within TURN_NS, from row i on. */
static size_t round_size(const fl_telemetry *t, const size_t *row, size_t count, size_t i) {
    size_t n = 1;
    while (i + n < count && t->t_ns[row[i + n]] - t->t_ns[row[i]] <= TURN_NS)
        n++;
    return n;
}

/* The size of most rounds; 0 where they are not alike. */
static size_t boards_of(const fl_telemetry *t, const size_t *row, size_t count) {
    size_t of_size[BOARDS_MAX + 1] = {0}, rounds = 0, most = 0;
    for (size_t i = 0, n; i < count; i += n, rounds++) {
        n = round_size(t, row, count, i);
        of_size[n <= BOARDS_MAX ? n : 0]++;
    }
    for (size_t n = 2; n <= BOARDS_MAX; n++)
        most = of_size[n] > of_size[most] || most < 2 ? n : most;
    return rounds >= ROUNDS_MIN && (double)of_size[most] >= ALIKE * (double)rounds ? most : 0;
}

/* Whether the signal has a level of its own at each place of a round of n readings. */
static bool has_levels(const fl_telemetry *t, const size_t *row, size_t count, size_t n, size_t signal) {
    const double *value = t->value + signal;
    double spread = 0, change = 0, before[BOARDS_MAX];
    bool known = false; /* the round before */
    for (size_t i = 0, size; i < count; i += size) {
        double low = INFINITY, high = -INFINITY;
        size = round_size(t, row, count, i);
        for (size_t k = 0; size == n && k < n; k++) {
            const double x = value[row[i + k] * t->signal_count];
            low = fmin(low, x);
            high = fmax(high, x);
            change += known && !isnan(x - before[k]) ? fabs(x - before[k]) / (double)n : 0;
            before[k] = isnan(x) && known ? before[k] : x;
        }
        spread += known && size == n && high >= low ? high - low : 0;
        known = size == n || known;
    }
    return spread > LEVELS * change;
}

/* Return true if the rows of one device, in order of time, come from two boards read in turn. One meter does not go
 * back and forth between two levels within milliseconds, reading after reading; two such boards do. Boards with the
 * same readings cannot be told apart, nor need they be: their mean is right for each. */
bool fl_telemetry_interleaves(const fl_telemetry *t, const size_t *row, size_t count) {
    const size_t n = boards_of(t, row, count);
    for (size_t k = 0; n && k < t->signal_count; k++)
        if (has_levels(t, row, count, n, k))
            return true;
    return false;
}
