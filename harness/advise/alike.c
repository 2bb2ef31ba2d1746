/* Which logs of a program show whole runs of equal work: what contradicts that is set aside, with the reason. */
#include "harness/advise/inside.h"

#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One program at two SM clocks and one memory clock: a lower clock is not faster, and not slower by more than the ratio
 * of the clocks. Repeated runs differ by less than NOISE in time. In 38,374 pairs of rows of public sweeps of a V100,
 * an A100, a GTX 1080 Ti and a Titan X, most of them single kernels, the lower clock took at least 0.91 of the time,
 * and at most 1.14 times what the ratio says. tests/program/advise_logs.sh counts these pairs anew where it has the
 * sweeps. */
#define NOISE 0.03
#define AGAIN 1.1        /* runs at one clock differ by less in time (harness/chip/sweep_check.c) ... */
#define AGAIN_POWER 1.25 /* ... and in power, which differs between boards of one model */

static void set_aside(fl_advise_ran *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_aside(fl_advise_ran *r, const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (!r->aside)
        fl_must_have(vasprintf(&r->aside, format, list) >= 0);
    va_end(list);
}

static bool same_memory(const fl_log_run *a, const fl_log_run *b) {
    return isnan(a->mem_mhz) ? isnan(b->mem_mhz) : fabs(a->mem_mhz - b->mem_mhz) < 1.5;
}

typedef enum conflict { NONE, AGAIN_DIFFERS, FASTER, SLOWER } conflict;

/* The conflict of two runs; low and high tell the lower clock. */
static conflict conflict_of(const fl_advise_ran *low, const fl_advise_ran *high) {
    const fl_log_run *l = &low->run, *h = &high->run;
    if (!same_memory(l, h))
        return NONE;
    const double error_s = low->ends.error_s + high->ends.error_s;
    if (fabs(l->sm_mhz - h->sm_mhz) <= 0.5) {
        const bool limits = fabs(l->limit_w - h->limit_w) >= 0.5; /* false where one is not known */
        const bool same = fabs(l->time_s - h->time_s) - error_s <= (AGAIN - 1) * fmin(l->time_s, h->time_s) &&
                          fmax(l->power_w, h->power_w) <= AGAIN_POWER * fmin(l->power_w, h->power_w);
        return limits || same ? NONE : AGAIN_DIFFERS;
    }
    const double share = h->sm_mhz / l->sm_mhz;
    if (l->time_s + error_s < (1 - NOISE) * h->time_s)
        return FASTER;
    return l->time_s - error_s * share > (1 + NOISE) * share * h->time_s ? SLOWER : NONE;
}

static conflict between(const fl_advise_ran *a, const fl_advise_ran *b) {
    return a->run.sm_mhz < b->run.sm_mhz ? conflict_of(a, b) : conflict_of(b, a);
}

static void tell(fl_advise_ran *r, const fl_advise_ran *other) {
    const fl_log_run *x = &r->run, *y = &other->run;
    static const char *const what[] = {
        [AGAIN_DIFFERS] = "runs at one clock do not differ so much",
        [FASTER] = "a lower clock is not faster",
        [SLOWER] = "a lower clock does not slow a program down by more than the ratio of the clocks",
    };
    const conflict c = between(r, other);
    char power[2][32] = {"", ""};
    for (size_t i = 0; c == AGAIN_DIFFERS && i < 2; i++)
        (void)snprintf(power[i], sizeof power[i], " and %.4g W", i ? y->power_w : x->power_w);
    set_aside(r,
              "%.4g s%s at %g MHz, but %.4g s%s at %g MHz in %s: %s, expected whole runs of one program with one input",
              x->time_s, power[0], x->sm_mhz, y->time_s, power[1], y->sm_mhz, basename(other->path), what[c]);
}

/* Sets aside the run with most conflicts, until there is none. Of two that contradict each other only, it is the one at
 * the lower clock; of two at one clock, both. */
static void judge_conflicts(fl_advise_ran **r, size_t count) {
    for (;;) {
        size_t worst = 0, most = 0, of = 0;
        for (size_t i = 0; i < count; i++) {
            size_t n = 0, with = 0;
            for (size_t k = 0; k < count && !r[i]->aside; k++)
                if (k != i && !r[k]->aside && between(r[i], r[k])) {
                    with = k;
                    n++;
                }
            if (n > most || (n && n == most && r[i]->run.sm_mhz < r[worst]->run.sm_mhz)) {
                worst = i;
                most = n;
                of = with;
            }
        }
        if (!most)
            return;
        const bool both = most == 1 && between(r[worst], r[of]) == AGAIN_DIFFERS;
        tell(r[worst], r[of]);
        if (both)
            tell(r[of], r[worst]);
    }
}

/* A log that ends (or begins) under load is cut where another log of the program is idle there, or most others are. */
static void judge_ends(fl_advise_ran **r, size_t count, const fl_advise_idle *all) {
    for (int after = 0; after < 2; after++) {
        const fl_advise_ran *sibling = NULL;
        const size_t idle = after ? all->after : all->before;
        for (size_t i = 0; i < count; i++)
            if (after ? r[i]->ends.idle_after : r[i]->ends.idle_before)
                sibling = r[i];
        for (size_t i = 0; i < count; i++) {
            if (after ? r[i]->ends.idle_after : r[i]->ends.idle_before)
                continue;
            if (sibling)
                set_aside(r[i], "the log %s under load, while %s %s idle: it does not have the whole run",
                          after ? "ends" : "begins", basename(sibling->path), after ? "ends" : "begins");
            else if (2 * idle > all->count)
                set_aside(r[i],
                          "the log %s under load, while %zu of the %zu logs %s idle: it does not have the whole run",
                          after ? "ends" : "begins", idle, all->count, after ? "end" : "begin");
        }
    }
}

/* Runs of a clock that wanders have slightly different means. Those whose spans meet ran at one setting. */
static void join_wandering(fl_advise_ran **r, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            fl_log_run *a = &r[k]->run, *b = &r[i]->run;
            const bool wander = a->sm_low_mhz < a->sm_high_mhz && b->sm_low_mhz < b->sm_high_mhz;
            if (wander && a->sm_low_mhz <= b->sm_mhz && b->sm_mhz <= a->sm_high_mhz && b->sm_low_mhz <= a->sm_mhz &&
                a->sm_mhz <= b->sm_high_mhz)
                b->sm_mhz = a->sm_mhz;
        }
}

void fl_advise_judge(fl_advise_ran **r, size_t count, const fl_advise_idle *all) {
    for (size_t i = 0; i < count; i++)
        if (!r[i]->run.steady)
            set_aside(r[i], FL_LOG_CHANGED ", expected a run at one clock", FL_LOG_CHANGE(&r[i]->run));
    judge_ends(r, count, all);
    join_wandering(r, count);
    judge_conflicts(r, count);
}
