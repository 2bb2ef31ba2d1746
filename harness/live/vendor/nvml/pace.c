/* When a slow counter of NVML is worth reading. */
#include "harness/live/vendor/nvml/inside.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define FL_PACE_SLOW_NS INT64_C(500000) /* a reading that takes less is not worth leaving out */

/* ---- counters that step evenly ---- */

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

/* Step `number` came after after_ns and by by_ns. Numbers rise from call to call, and times do. */
static void fl_beat_add(fl_beat *b, int64_t number, int64_t after_ns, int64_t by_ns) {
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

/* The earliest and the latest time of a step, no earlier one than the last that was added. False before the second
 * span; earliest > latest where no even beat goes through all spans. */
/* A beat that is at no later than `late` at span j and at no earlier than `early` at span i before it is at the line
 * through both at the latest, from j on; and the other way round. Of all lines the closest counts. */
static bool fl_beat_when(const fl_beat *b, int64_t number, int64_t *earliest_ns, int64_t *latest_ns) {
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

/* The likely time of a step, within those bounds: on the line closest to the middles of all spans, of which narrow ones
 * count more. Only where fl_beat_when is true for that step. */
static int64_t fl_beat_likely(const fl_beat *b, int64_t number) {
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

/* ---- when to read a counter ---- */

#define SHARE 70                       /* a reading pays for so many times its own length: 1.43 % of the time */
#define SHARE_LEARNING 95              /* without a beat: 1.05 %, which leaves the rest to learning */
#define COSTLY 4                       /* a reading that takes so many times as long as the quickest was interrupted */
#define APART 4                        /* readings to learn from need not be closer: so many times their length */
#define DEBT_NS INT64_C(4000000000)    /* no reading is put off for longer: a counter that stands still must be found */
#define STANDS_NS INT64_C(6000000000)  /* nor is it left alone for longer where a step cannot be told */
#define LEARN_NS INT64_C(2000000000)   /* learning takes no longer */
#define FREE_NS INT64_C(20000000000)   /* in that time after its begin, some more readings cost nothing */
#define AGAIN_NS INT64_C(120000000000) /* and it begins no earlier after it began before, at first */
#define RARELY_NS (64 * AGAIN_NS)      /* nor later, where no beat was found so far */
enum {
    ENOUGH = 10, /* steps that make a beat */
    SOME = 4,    /* steps that make one roughly */
    UNSEEN = 2,  /* steps after which one must be seen to be still away */
    FREE = 128,  /* more readings soon after it that make the period known closely enough to leave out steps */
    WATCH = 8,   /* readings that see a step come where there is no beat */
    AGAIN = 32,  /* steps after which one is watched again */
    SELDOM = 8,  /* moves in a row of which nobody knows when they came */
    STARVED = 64 /* times that somebody asked when a step could not be told from the next one */
};

static bool when(const fl_pace *p, int64_t number, int64_t *earliest, int64_t *latest) {
    return fl_beat_when(&p->beat, number, earliest, latest) && *earliest <= *latest;
}

/* A step is told from the next one where its time is known to less than half a step. */
static bool told(const fl_pace *p, int64_t number) {
    int64_t earliest, latest;
    return when(p, number, &earliest, &latest) && latest - earliest < p->beat.period_ns / 2;
}

/* The step that has surely come at t_ns while the next one surely has not by by_ns. */
static bool sure(const fl_pace *p, int64_t t_ns, int64_t by_ns, int64_t *number) {
    int64_t earliest, latest, next_earliest, next_latest;
    const int64_t about = p->number + (t_ns - p->step_ns) / p->beat.period_ns;
    for (int64_t n = about + 1; n >= about - 1 && n > p->number; n--)
        if (when(p, n, &earliest, &latest) && when(p, n + 1, &next_earliest, &next_latest) && latest <= t_ns &&
            by_ns < next_earliest) {
            *number = n;
            return true;
        }
    return false;
}

static void show(fl_pace *p, double value, int64_t t_ns, bool timed) {
    p->value = value;
    p->moved_ns = t_ns > p->moved_ns ? t_ns : p->moved_ns + 1;
    p->timed = timed;
}

static void show_step(fl_pace *p, double value, int64_t number, int64_t by_ns) {
    p->number = number;
    p->step_ns = told(p, number) ? fl_beat_likely(&p->beat, number) : by_ns;
    show(p, value, p->step_ns < by_ns ? p->step_ns : by_ns, true);
}

/* ---- learning ---- */

/* Did a step that a reading shows come since the host last asked, and is its time known well enough for who reads? A
 * needed time is known as well as ever while not even one whole step can have been missed. */
static bool seen(const fl_pace *p, int64_t t_ns) {
    const int64_t since_ns = t_ns - p->read_ns, learning_ns = p->spare && !p->locked ? APART * p->cost_ns : 0;
    return since_ns <= p->apart_ns + learning_ns &&
           (!p->usual_ns || since_ns <= (p->spare ? p->usual_ns / 2 : p->usual_ns));
}

static void learn(fl_pace *p, int64_t t_ns) {
    p->usual_ns = p->beat.count >= SOME ? p->beat.period_ns : p->usual_ns;
    p->again_ns = p->locked || !p->again_ns ? AGAIN_NS : p->again_ns;
    p->beat = (fl_beat){0};
    p->locked = p->watching = p->lost = false;
    p->number = 0;
    p->left = 0;
    if (!p->began_ns || t_ns - p->began_ns >= p->again_ns) {
        p->again_ns = p->began_ns && p->again_ns < RARELY_NS ? 4 * p->again_ns : p->again_ns;
        p->began_ns = t_ns ? t_ns : 1;
        p->free = FREE;
        p->paid_ns = t_ns; /* what learning costs is not put on the bill */
    }
}

static bool learns(const fl_pace *p, int64_t t_ns) { return !p->spare || t_ns - p->began_ns < LEARN_NS; }

/* Are there readings left that the budget does not count? */
static bool spends(const fl_pace *p, int64_t t_ns) { return p->free && t_ns - p->began_ns < FREE_NS; }

/* The next reading comes when step number + 1 can have come, and where that was not seen lately, shortly before. */
static void await_next(fl_pace *p) {
    int64_t earliest, latest;
    const int64_t before = p->apart_ns < p->beat.period_ns / 4 ? p->apart_ns : p->beat.period_ns / 4;
    p->next_ns = !p->lost && when(p, p->number + 1, &earliest, &latest)
                     ? earliest - (p->spare || p->unseen >= UNSEEN ? before : 0)
                     : INT64_MIN;
}

/* Spare: the next step is watched too where the beat is not known closely enough for the steps that the budget leaves
 * out, and a few more in which one is watched then. */
static void leave_out(fl_pace *p, int64_t t_ns) {
    const int64_t wait = p->paid_ns > t_ns ? p->paid_ns - t_ns : 0;
    const bool close = told(p, p->number + wait / p->beat.period_ns + 4);
    p->watching = p->watched == p->number ? !close && spends(p, t_ns) : !close || p->number - p->watched >= AGAIN;
    p->starved = 0;
}

/* Is this span too wide to tell a step of such a length from the next one? */
static bool wide(int64_t span_ns, int64_t step_ns) { return span_ns > step_ns / 20 * 9; }

/* Does step `number`, which was seen by then, not go with those before? */
static bool strays(const fl_pace *p, int64_t number, int64_t by_ns) {
    const fl_beat *b = &p->beat;
    int64_t earliest, latest;
    if (!b->count)
        return false;
    const uint64_t last = (b->count - 1) % FL_BEAT_KEPT;
    const int64_t step_ns = by_ns - b->span[last].by_ns;
    return wide(by_ns - p->read_ns, step_ns) || wide(b->span[last].by_ns - b->span[last].after_ns, step_ns) ||
           (when(p, number, &earliest, &latest) && (by_ns < earliest || p->read_ns > latest));
}

/* The number of a step that came between the last reading and this one. */
static int64_t number_of(const fl_pace *p, int64_t t_ns) {
    const int64_t period = p->beat.period_ns, since = p->read_ns + (t_ns - p->read_ns) / 2 - p->step_ns;
    return p->number + (p->lost ? (since + period / 2) / period : 1);
}

/* A reading showed a step. Where nobody asked for a while before, it may have been several. */
static void add_step(fl_pace *p, int64_t t_ns, double value, int64_t by_ns) {
    const int64_t since_ns = t_ns - p->read_ns, period_ns = p->beat.period_ns;
    if (p->beat.count >= SOME && (since_ns > period_ns || (p->spare && wide(since_ns, period_ns)))) {
        p->lost = true;
        show(p, value, t_ns, false);
        return;
    }
    int64_t number = number_of(p, t_ns);
    if (number <= p->number || strays(p, number, by_ns))
        learn(p, t_ns);
    if (!seen(p, t_ns)) {
        show(p, value, t_ns, !p->spare && !p->usual_ns);
        return;
    }
    number = p->beat.count ? number : 0;
    p->lost = false;
    fl_beat_add(&p->beat, number, p->read_ns, by_ns);
    show_step(p, value, number, by_ns);
    if (p->beat.count < ENOUGH || !told(p, p->number + 1))
        return;
    p->locked = p->watching = true;
    p->unseen = 0;
    p->watched = p->number;
    p->again_ns = AGAIN_NS;
    if (p->spare)
        leave_out(p, t_ns);
}

/* ---- with a beat ---- */

/* Nobody asked for so long that it may have stepped several times. */
static void find_again(fl_pace *p, int64_t t_ns, double value, int64_t by_ns) {
    int64_t number;
    p->lost = !sure(p, t_ns, by_ns, &number);
    if (!told(p, p->number + (t_ns - p->step_ns) / p->beat.period_ns))
        learn(p, t_ns);
    if (!p->locked || p->lost)
        show(p, value, t_ns, false);
    else
        show_step(p, value, number, t_ns);
    if (p->locked && p->spare) {
        p->lost = false; /* the next single reading will know */
        leave_out(p, t_ns);
        p->watching = false;
    }
}

/* The step after the one that is shown was waited for, and has come or not. */
static void watched(fl_pace *p, int64_t t_ns, double value, int64_t by_ns) {
    const int64_t number = number_of(p, t_ns), quarter_ns = p->beat.period_ns / 4;
    int64_t earliest = 0, latest = 0, next_earliest = 0, next_latest = 0;
    const bool moved = value != p->read, known = number > p->number && when(p, number, &earliest, &latest) &&
                                                 when(p, number + 1, &next_earliest, &next_latest);
    if (known && moved && by_ns >= next_earliest && t_ns - p->read_ns > 2 * quarter_ns) {
        find_again(p, t_ns, value, by_ns);
        return;
    }
    const bool early = moved && by_ns < earliest, late = moved ? p->read_ns > latest : t_ns > latest + 2 * quarter_ns;
    if (!known || early || late) {
        learn(p, t_ns);
        if (moved)
            show(p, value, t_ns, seen(p, t_ns));
    } else if (!moved) {
        p->unseen = t_ns > earliest - quarter_ns ? 0 : p->unseen;
    } else {
        p->unseen = p->read_ns > earliest - quarter_ns ? 0 : p->unseen + 1;
        p->lost = false;
        p->watched = number;
        fl_beat_add(&p->beat, number, p->read_ns, by_ns);
        show_step(p, value, number, by_ns);
        if (!told(p, number + (p->spare && !spends(p, t_ns) ? 4 : 1)))
            learn(p, t_ns);
        else if (p->spare)
            leave_out(p, t_ns);
    }
}

/* Spare: a step has surely come, and the next one surely not, unless the reading took too long to tell. */
static void plain(fl_pace *p, int64_t t_ns, double value, int64_t by_ns) {
    int64_t number;
    if (value == p->read) { /* it stands still, or its beat is another one */
        learn(p, t_ns);
    } else if (sure(p, t_ns, by_ns, &number)) {
        show_step(p, value, number, t_ns);
        leave_out(p, t_ns);
    } else {
        show(p, value, t_ns, false);
    }
}

static bool plain_rests(fl_pace *p, int64_t t_ns) {
    if (t_ns - p->read_ns >= STANDS_NS) /* a counter that stands still must be found */
        return false;
    if (t_ns < p->paid_ns)
        return true;
    if (!told(p, p->number + (t_ns - p->step_ns) / p->beat.period_ns) || p->starved++ >= STARVED) {
        learn(p, t_ns);
        return !learns(p, t_ns);
    }
    int64_t number;
    return !sure(p, t_ns, t_ns + 2 * p->cost_ns, &number);
}

/* ---- without a beat ---- */

/* Spare: the first reading tells that it has moved, nobody knows when. The next ones wait for a step. */
static void watch_any(fl_pace *p, int64_t t_ns, double value) {
    const bool first = !p->left, moved = value != p->read;
    p->left = first ? WATCH : moved ? 0 : p->left - 1;
    if (moved)
        show(p, value, t_ns, seen(p, t_ns));
}

/* ---- both ---- */

bool fl_pace_rests(fl_pace *p, int64_t t_ns) {
    p->apart_ns = t_ns - p->asked_ns;
    p->asked_ns = t_ns;
    if (!p->known || p->cost_ns < FL_PACE_SLOW_NS || p->apart_ns < 0)
        return false;
    if (!p->locked && p->spare && t_ns - p->began_ns >= p->again_ns)
        learn(p, t_ns);
    if (!p->locked && p->spare && (p->left || learns(p, t_ns)))
        return t_ns - p->read_ns < APART * p->cost_ns;
    if (!p->locked)
        return p->spare && t_ns < p->paid_ns;
    return p->spare && !p->watching ? plain_rests(p, t_ns) : t_ns < p->next_ns;
}

static void pay(fl_pace *p, int64_t t_ns, int64_t cost_ns) {
    if (!p->locked && learns(p, t_ns))
        return;
    if (p->locked && p->watching && spends(p, t_ns)) {
        p->free--;
        return;
    }
    const int64_t most = p->cost_ns * COSTLY, share = p->locked ? SHARE : SHARE_LEARNING,
                  from = p->paid_ns > t_ns ? p->paid_ns : t_ns;
    p->paid_ns = from + (cost_ns < most ? cost_ns : most) * share;
    p->paid_ns = p->paid_ns < t_ns + DEBT_NS ? p->paid_ns : t_ns + DEBT_NS;
}

/* Whoever needs the value asks too seldom for a beat by now: each value has the time of its reading again. */
static void forget_seldom(fl_pace *p, int64_t t_ns) {
    p->starved = p->timed ? 0 : p->starved + 1;
    if (p->starved < SELDOM)
        return;
    learn(p, t_ns);
    p->usual_ns = 0;
    p->starved = 0;
    p->timed = true;
}

static void begin(fl_pace *p, int64_t t_ns, double value, int64_t cost_ns) {
    *p = (fl_pace){.spare = p->spare, .value = value, .moved_ns = t_ns, .cost_ns = cost_ns, .known = true};
    p->timed = !p->spare;
    p->asked_ns = t_ns;
    learn(p, t_ns);
}

void fl_pace_read(fl_pace *p, int64_t t_ns, double value, int64_t cost_ns) {
    const bool first = !p->known || t_ns < p->read_ns, moved = value != p->read;
    if (first) {
        begin(p, t_ns, value, cost_ns);
    } else {
        p->cost_ns = cost_ns < p->cost_ns ? cost_ns : p->cost_ns;
        pay(p, t_ns, cost_ns);
    }
    if (!first && p->cost_ns < FL_PACE_SLOW_NS) {
        if (moved)
            show(p, value, t_ns, true);
    } else if (!first && p->locked) {
        if (p->spare && !p->watching)
            plain(p, t_ns, value, t_ns + cost_ns);
        else
            watched(p, t_ns, value, t_ns + cost_ns);
        await_next(p);
    } else if (!first && !learns(p, t_ns)) {
        watch_any(p, t_ns, value);
    } else if (!first && moved) {
        add_step(p, t_ns, value, t_ns + cost_ns);
        await_next(p);
    }
    if (!p->spare && moved)
        forget_seldom(p, t_ns);
    p->read = value;
    p->read_ns = t_ns;
}
