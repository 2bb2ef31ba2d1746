#include "harness/live/vendor/nvml/beat.h"

#include <math.h>

#define BESIDE 25  /* a step comes so small a part of the period beside the beat, at most */
#define DRIFT 2000 /* and the beat itself moves by so small a part from step to step, at most */

#define OLD 512 /* steps after which a span tells nothing any more */

/* Copies the spans that still tell something, by number, and returns how many there are. */
static uint64_t kept(const fl_beat *b, int64_t number, fl_span *span) {
    uint64_t count = 0;
    for (uint64_t k = b->count > FL_BEAT_KEPT ? b->count - FL_BEAT_KEPT : 0; k < b->count; k++)
        if (number - b->span[k % FL_BEAT_KEPT].number <= OLD || k + 2 >= b->count)
            span[count++] = b->span[k % FL_BEAT_KEPT];
    return count;
}

void fl_beat_add(fl_beat *b, int64_t number, int64_t after_ns, int64_t by_ns) {
    b->span[b->count++ % FL_BEAT_KEPT] = (fl_span){number, after_ns, by_ns};
    fl_span span[FL_BEAT_KEPT];
    kept(b, number, span);
    const int64_t steps = number - span[0].number;
    if (steps > 0) /* by the middles of the two spans */
        b->period_ns = (after_ns - span[0].after_ns + by_ns - span[0].by_ns) / (2 * steps);
}

/* How far a span's step may lie beside the beat that step `number` belongs to. */
static double beside_ns(const fl_beat *b, const fl_span *s, int64_t number) {
    const double period = (double)b->period_ns;
    return period / BESIDE + (double)(number - s->number) * period / DRIFT;
}

/* A beat that is at no later than `late` at span j and at no earlier than `early` at span i before it is at the line
 * through both at the latest, from j on; and the other way round. Of all lines the closest counts. */
bool fl_beat_when(const fl_beat *b, int64_t number, int64_t *earliest_ns, int64_t *latest_ns) {
    fl_span span[FL_BEAT_KEPT];
    const uint64_t count = kept(b, number, span);
    double early[FL_BEAT_KEPT], late[FL_BEAT_KEPT], earliest = -INFINITY, latest = INFINITY;
    if (count < 2)
        return false;
    const int64_t origin_ns = span[0].by_ns; /* differences of doubles stay exact */
    for (uint64_t k = 0; k < count; k++) {
        const double beside = beside_ns(b, &span[k], number);
        early[k] = (double)(span[k].after_ns - origin_ns) - beside;
        late[k] = (double)(span[k].by_ns - origin_ns) + beside;
    }
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < count; j++) {
            const int64_t apart = span[j].number - span[i].number;
            if (apart <= 0)
                continue;
            const double more = (double)(number - span[j].number) / (double)apart;
            earliest = fmax(earliest, early[j] + more * (early[j] - late[i]));
            latest = fmin(latest, late[j] + more * (late[j] - early[i]));
        }
    *earliest_ns = origin_ns + (int64_t)floor(earliest);
    *latest_ns = origin_ns + (int64_t)ceil(latest);
    return true;
}

int64_t fl_beat_likely(const fl_beat *b, int64_t number) {
    fl_span span[FL_BEAT_KEPT];
    double weights = 0, numbers = 0, times = 0, squares = 0, products = 0;
    int64_t earliest, latest;
    if (!fl_beat_when(b, number, &earliest, &latest))
        return 0;
    const uint64_t count = kept(b, number, span);
    const int64_t origin_ns = span[0].by_ns;
    for (uint64_t k = 0; k < count; k++) {
        const double after = (double)(span[k].after_ns - origin_ns), by = (double)(span[k].by_ns - origin_ns);
        const double width = by - after + beside_ns(b, &span[k], number), n = (double)(span[k].number - number);
        const double weight = 1 / (width * width * width * width + 1);
        weights += weight;
        numbers += weight * n;
        times += weight * (after + by) / 2;
        squares += weight * n * n;
        products += weight * n * (after + by) / 2;
    }
    const double spread = weights * squares - numbers * numbers;
    const int64_t likely = origin_ns + (int64_t)((squares * times - numbers * products) / spread); /* at n = 0 */
    return likely < earliest ? earliest : likely > latest ? latest : likely;
}
