#include "harness/chip/log_boards.h"

#include <math.h>

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

bool fl_log_interleaves(const fl_telemetry *t, const size_t *row, size_t count) {
    const size_t n = boards_of(t, row, count);
    for (size_t k = 0; n && k < t->signal_count; k++)
        if (has_levels(t, row, count, n, k))
            return true;
    return false;
}
