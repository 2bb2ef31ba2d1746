/* A linear predictor proposes candidate sets; the chip's own predictor judges the best of them. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX (FL_PROBES_KNOWN + 1)
#define PLACES (FL_CHIP_SETTINGS + MEMBERS_MAX) /* the chip's settings, then the known settings beyond them */
#define SHORTLIST 4                             /* sets that the chip's predictor judges */
#define TESTED_MAX 12                           /* workloads that it judges by */
#define SAME 1e-6                               /* MHz, as fl_chip_setting_of */
#define LEVEL2 100.0 /* prior variance of ln time: the length of a workload is unknown beforehand */

typedef struct member_set {
    uint32_t at[MEMBERS_MAX]; /* places, in the order in which they were chosen */
    size_t count;
    double score;
} member_set;

/* What the chip's workloads do, as the calibration stores it: ln time (less its mean) and ln power at each place. */
typedef struct table {
    const fl_chip *chip;
    fl_chip_row place[PLACES];
    size_t places, workloads, width; /* width: quantities per workload: times, then powers where there are any */
    double *ln;                      /* workloads x width */
    double *sum, *product;           /* over the workloads: width; width x width */
    double *error;                   /* covariance of the errors about the law: width x width */
    double *weight;                  /* room: width x (2 MEMBERS_MAX + 1) */
    member_set list[SHORTLIST];      /* the best so far, best first */
    size_t listed;
} table;

/* Time and power of workload k at a place, as the calibration stores them: the law, corrected by the residual there. */
static void recall(const table *t, size_t k, size_t place, double *time_s, double *power_w) {
    const fl_chip *chip = t->chip;
    const fl_chip_row *at = &t->place[place];
    const double off = place < chip->settings ? chip->time_off[k][place] : (double)NAN;
    const double power_off = place < chip->settings ? chip->power_off[k][place] : (double)NAN;
    const fl_chip_load load = fl_chip_load_of(&chip->share[k]);
    *time_s = fl_chip_time(chip, &load, at->sm_mhz, at->mem_mhz) * exp(isnan(off) ? 0 : off);
    *power_w = (double)NAN;
    if (chip->has_power)
        *power_w = fl_chip_power(chip, &load, at->sm_mhz, at->mem_mhz, *time_s) /
                   (1 - (isnan(power_off) ? 0 : fmin(0.5, power_off)));
}

static void add_place(table *t, const fl_chip_row *row) {
    t->place[t->places++] =
        (fl_chip_row){.sm_mhz = row->sm_mhz, .mem_mhz = row->mem_mhz, .time_s = NAN, .power_w = NAN};
}

static void close_table(table *t) {
    free(t->ln);
    free(t->sum);
    *t = (table){0};
}

/* known: settings besides the chip's; may be NULL. */
static fl_model_status open_table(const fl_chip *chip, const fl_chip_row *known, size_t known_count, table *t) {
    *t = (table){.chip = chip, .workloads = chip->shares};
    if (chip->shares < FL_PROBES_WORKLOADS || chip->settings < 2 || known_count > MEMBERS_MAX)
        return FL_MODEL_NO_FIT;
    for (uint32_t i = 0; i < chip->settings; i++)
        add_place(t, &(fl_chip_row){.sm_mhz = chip->setting_sm[i], .mem_mhz = chip->setting_mem[i]});
    for (size_t i = 0; i < known_count; i++)
        if (fl_chip_setting_of(chip, &known[i]) == UINT32_MAX)
            add_place(t, &known[i]);
    const size_t m = t->places, w = t->width = chip->has_power ? 2 * m : m, n = t->workloads;
    t->ln = calloc(n * w, sizeof *t->ln);
    t->sum = calloc(w + 2 * w * w + w * (2 * MEMBERS_MAX + 1), sizeof *t->sum);
    if (!t->ln || !t->sum) {
        close_table(t);
        return FL_MODEL_NO_MEMORY;
    }
    t->product = t->sum + w;
    t->error = t->product + w * w;
    t->weight = t->error + w * w;
    for (size_t k = 0; k < n; k++) {
        double *ln = t->ln + k * w, mean = 0;
        for (size_t i = 0; i < m; i++) {
            double time = 0, power = 0;
            recall(t, k, i, &time, &power);
            ln[i] = log(time);
            mean += ln[i] / (double)m;
            if (chip->has_power)
                ln[m + i] = log(power);
        }
        for (size_t i = 0; i < m; i++)
            ln[i] -= mean;
        for (size_t i = 0; i < w; i++)
            t->sum[i] += ln[i];
        for (size_t i = 0; i < w; i++)
            for (size_t j = 0; j < w; j++)
                t->product[i * w + j] += ln[i] * ln[j];
    }
    for (size_t i = 0; i < w; i++)
        for (size_t j = 0; j < w; j++) {
            const fl_chip_error *e = i < m ? &chip->time_error : &chip->power_error;
            if ((i < m) != (j < m))
                continue;
            t->error[i * w + j] = fl_chip_covariance(e, &t->place[i % m], &t->place[j % m]) +
                                  (i == j ? e->scatter * e->scatter + 1e-10 : 0) + (i < m ? LEVEL2 : 0);
        }
    return FL_MODEL_OK;
}

/* ---- the fast predictor: what the other workloads have in common, linearly ---- */

/* Covariance of two quantities over the workloads other than k, plus that of the errors. */
static double covariance(const table *t, const double *ln, size_t i, size_t j) {
    const size_t w = t->width;
    const double n = (double)t->workloads - 1;
    const double mean_i = (t->sum[i] - ln[i]) / n, mean_j = (t->sum[j] - ln[j]) / n;
    return (t->product[i * w + j] - ln[i] * ln[j]) / n - mean_i * mean_j + t->error[i * w + j];
}

static int is_member(const member_set *s, uint32_t place) {
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i] == place)
            return 1;
    return 0;
}

/* The errors of every quantity of workload k where only the members are known. Returns 0 where that is impossible. */
static int errors_of(const table *t, const member_set *s, size_t k, double *error) {
    const size_t w = t->width, m = t->places, known = s->count * (w / m);
    const double *ln = t->ln + k * w, n = (double)t->workloads - 1;
    double lower[4 * MEMBERS_MAX * MEMBERS_MAX], left[2 * MEMBERS_MAX];
    size_t index[2 * MEMBERS_MAX];
    for (size_t i = 0; i < known; i++) {
        index[i] = s->at[i % s->count] + (i < s->count ? 0 : m);
        left[i] = ln[index[i]] - (t->sum[index[i]] - ln[index[i]]) / n;
        for (size_t j = 0; j <= i; j++)
            lower[i * known + j] = covariance(t, ln, index[i], index[j]);
    }
    if (!fl_chip_cholesky(lower, known))
        return 0;
    fl_chip_lower_solve(lower, known, left);
    for (size_t q = 0; q < w; q++) {
        double gain[2 * MEMBERS_MAX];
        for (size_t i = 0; i < known; i++)
            gain[i] = covariance(t, ln, q, index[i]);
        fl_chip_lower_solve(lower, known, gain);
        error[q] = ln[q] - (t->sum[q] - ln[q]) / n;
        for (size_t i = 0; i < known; i++)
            error[q] -= gain[i] * left[i];
    }
    return 1;
}

/* Inserts the set into the list of the best sets, each only once. */
static void enlist(table *t, const member_set *s) {
    size_t at = t->listed;
    for (size_t i = 0; i < t->listed; i++) {
        size_t same = 0;
        for (size_t j = 0; j < s->count; j++)
            same += is_member(&t->list[i], s->at[j]) ? 1 : 0;
        if (same == s->count)
            return;
    }
    while (at > 0 && s->score < t->list[at - 1].score)
        at--;
    if (at == SHORTLIST)
        return;
    t->listed += t->listed < SHORTLIST;
    memmove(&t->list[at + 1], &t->list[at], (t->listed - 1 - at) * sizeof *s);
    t->list[at] = *s;
}

/* Mean of the errors in time, power and energy at the chip's other settings. */
static void judge_fast(table *t, member_set *s) {
    const size_t m = t->places, settings = t->chip->settings;
    double sum = 0, count = 0, *error = t->weight;
    for (size_t k = 0; k < t->workloads; k++) {
        if (!errors_of(t, s, k, error))
            continue;
        for (size_t i = 0; i < settings; i++)
            if (!is_member(s, (uint32_t)i)) {
                sum += t->width > m ? (fabs(error[i]) + fabs(error[m + i]) + fabs(error[i] + error[m + i])) / 3
                                    : fabs(error[i]);
                count++;
            }
    }
    s->score = count > 0 ? sum / count : (double)INFINITY;
    enlist(t, s);
}

/* Finds the best place for the last member. Returns whether the set improved. */
static int improve_last(table *t, member_set *s) {
    const uint32_t before = s->at[s->count - 1];
    member_set best = *s;
    for (uint32_t i = 0; i < t->chip->settings; i++) {
        member_set other = *s;
        other.count--;
        if (i == before || is_member(&other, i))
            continue;
        other.at[other.count++] = i;
        judge_fast(t, &other);
        if (other.score < best.score)
            best = other;
    }
    const int better = best.score < s->score;
    *s = best;
    return better;
}

/* Adds one member after another, each where it helps most. Then moves one member at a time as long as that helps. The
 * first `fixed` members stay. */
static void search(table *t, size_t fixed, size_t count) {
    member_set s = t->list[0];
    t->listed = 0;
    s.count = fixed;
    while (s.count < count) {
        for (uint32_t i = 0;; i++)
            if (!is_member(&s, i)) {
                s.at[s.count++] = i;
                break;
            }
        judge_fast(t, &s);
        improve_last(t, &s);
        if (s.count < count)
            t->listed = 0; /* drops sets with fewer members */
    }
    for (int moved = 1; moved;) {
        moved = 0;
        for (size_t i = fixed; i < count; i++) {
            const uint32_t turn = s.at[fixed];
            memmove(&s.at[fixed], &s.at[fixed + 1], (count - fixed - 1) * sizeof *s.at);
            s.at[count - 1] = turn;
            moved |= improve_last(t, &s);
        }
    }
}

/* ---- the chip's own predictor ---- */

typedef struct judge {
    fl_chip *rest; /* the chip without one workload */
    fl_chip_row known[MEMBERS_MAX], asked[PLACES];
    fl_chip_guess guess[PLACES];
} judge;

typedef struct totals {
    double time, power, energy, count, workloads;
} totals;

static fl_model_status judge_workload(const table *t, const member_set *s, uint32_t k, judge *j, totals *to) {
    size_t a = 0, b = 0;
    for (size_t i = 0; i < t->places; i++) {
        fl_chip_row row = t->place[i];
        recall(t, k, i, &row.time_s, &row.power_w);
        if (is_member(s, (uint32_t)i))
            j->known[a++] = row;
        else if (i < t->chip->settings)
            j->asked[b++] = row;
    }
    fl_chip_leave_out(t->chip, k, j->rest);
    const fl_model_status status = fl_chip_predict(j->rest, j->known, a, j->asked, b, j->guess, NULL);
    if (status != FL_MODEL_OK)
        return status == FL_MODEL_NO_MEMORY ? status : FL_MODEL_OK;
    for (size_t i = 0; i < b; i++) {
        const double time = j->guess[i].time_s / j->asked[i].time_s;
        const double power = j->guess[i].power_w / j->asked[i].power_w;
        to->time += fabs(time - 1);
        to->power += fabs(power - 1);
        to->energy += fabs(time * power - 1);
        to->count++;
    }
    to->workloads++;
    return FL_MODEL_OK;
}

static double score_of(const fl_probes *p) {
    return isnan(p->power_pct) ? p->time_pct : (p->time_pct + p->power_pct + p->energy_pct) / 3;
}

static int by_clocks(const void *a, const void *b) {
    const fl_chip_row *x = a, *y = b;
    if (fabs(x->mem_mhz - y->mem_mhz) > SAME)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return fabs(x->sm_mhz - y->sm_mhz) > SAME ? (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz) : 0;
}

static fl_model_status judge_set(const table *t, const member_set *s, fl_probes *out) {
    judge *j = calloc(1, sizeof *j);
    fl_chip *rest = malloc(sizeof *rest);
    totals sum = {0};
    const uint32_t stride = (uint32_t)((t->workloads - 1) / TESTED_MAX + 1);
    fl_model_status status = j && rest ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (status == FL_MODEL_OK)
        j->rest = rest;
    for (uint32_t k = 0; status == FL_MODEL_OK && k < t->workloads; k += stride)
        status = judge_workload(t, s, k, j, &sum);
    free(j);
    free(rest);
    if (status == FL_MODEL_OK && !(sum.count > 0))
        status = FL_MODEL_NO_FIT;
    if (status != FL_MODEL_OK)
        return status;
    *out = (fl_probes){.count = s->count,
                       .time_pct = 100 * sum.time / sum.count,
                       .power_pct = 100 * sum.power / sum.count,
                       .energy_pct = 100 * sum.energy / sum.count,
                       .tested = (size_t)sum.workloads};
    for (size_t i = 0; i < s->count; i++)
        out->at[i] = t->place[s->at[i]];
    qsort(out->at, out->count, sizeof *out->at, by_clocks);
    return FL_MODEL_OK;
}

/* The set whose members are these rows. */
static void find_members(const table *t, const fl_chip_row *row, size_t count, member_set *s) {
    *s = (member_set){.score = INFINITY};
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < t->places; k++)
            if (by_clocks(&t->place[k], &row[i]) == 0 && !is_member(s, k))
                s->at[s->count++] = k;
}

/* The best set of the shortlist. which: its members in the order of their choice; may be NULL. */
static fl_model_status judge_list(const table *t, fl_probes *out, member_set *which) {
    fl_model_status status = t->listed ? FL_MODEL_OK : FL_MODEL_NO_FIT;
    for (size_t i = 0; status == FL_MODEL_OK && i < t->listed; i++) {
        fl_probes p;
        status = judge_set(t, &t->list[i], &p);
        if (status == FL_MODEL_OK && (i == 0 || score_of(&p) < score_of(out))) {
            *out = p;
            if (which)
                *which = t->list[i];
        }
    }
    return status;
}

fl_model_status fl_probes_choose(const fl_chip *chip, size_t count, fl_probes *out) {
    table t;
    if (count < 1 || count > FL_PROBES_MAX)
        return FL_MODEL_INVALID;
    if (chip->settings <= count)
        return FL_MODEL_NO_FIT;
    fl_model_status s = open_table(chip, NULL, 0, &t);
    if (s != FL_MODEL_OK)
        return s;
    search(&t, 0, count);
    s = judge_list(&t, out, NULL);
    fl_probes usual;
    if (s == FL_MODEL_OK && fl_probes_usual(chip, count, &usual) == FL_MODEL_OK) { /* never worse than the usual set */
        member_set members;
        find_members(&t, usual.at, usual.count, &members);
        s = judge_set(&t, &members, &usual);
        if (s == FL_MODEL_OK && score_of(&usual) < score_of(out))
            *out = usual;
    }
    close_table(&t);
    return s;
}

fl_model_status fl_probes_expect(const fl_chip *chip, fl_probes *set) {
    table t;
    member_set members;
    if (set->count < 1 || set->count > MEMBERS_MAX)
        return FL_MODEL_INVALID;
    fl_model_status s = open_table(chip, set->at, set->count, &t);
    if (s != FL_MODEL_OK)
        return s;
    find_members(&t, set->at, set->count, &members);
    s = judge_set(&t, &members, set);
    close_table(&t);
    return s;
}

/* Evenly spaced settings at one memory clock, including both ends; only the top if one is wanted. */
static int take_even(const fl_chip *chip, double mem_mhz, size_t count, fl_probes *out) {
    uint32_t first = chip->settings, n = 0;
    for (uint32_t i = chip->settings; i-- > 0;)
        if (fabs(chip->setting_mem[i] - mem_mhz) < 0.5) {
            first = i;
            n++;
        }
    if (n < count) /* settings are sorted by memory clock, then SM clock */
        return 0;
    for (size_t i = 0; i < count; i++) {
        const size_t at = first + (count > 1 ? (i * (n - 1) + (count - 1) / 2) / (count - 1) : n - 1);
        out->at[out->count++] = (fl_chip_row){
            .sm_mhz = chip->setting_sm[at], .mem_mhz = chip->setting_mem[at], .time_s = NAN, .power_w = NAN};
    }
    return 1;
}

fl_model_status fl_probes_usual(const fl_chip *chip, size_t count, fl_probes *out) {
    const int corners = count == 4 && chip->mem_min < chip->mem_ref - 0.5;
    if (count < 1 || count > FL_PROBES_MAX)
        return FL_MODEL_INVALID;
    *out = (fl_probes){.time_pct = NAN, .power_pct = NAN, .energy_pct = NAN};
    if (chip->settings <= count || (corners && !take_even(chip, chip->mem_min, 2, out)) ||
        !take_even(chip, chip->mem_ref, corners ? 2 : count, out))
        return FL_MODEL_NO_FIT;
    return FL_MODEL_OK;
}

fl_model_status fl_probes_next(const fl_chip *chip, const fl_chip_row *known, size_t known_count, fl_probes *now,
                               fl_probes *next, size_t *added) {
    table t;
    if (known_count < 1 || known_count > FL_PROBES_KNOWN)
        return FL_MODEL_INVALID;
    fl_model_status s = open_table(chip, known, known_count, &t);
    if (s != FL_MODEL_OK)
        return s;
    member_set members, best = {0};
    find_members(&t, known, known_count, &members);
    s = judge_set(&t, &members, now);
    if (s == FL_MODEL_OK && chip->settings <= members.count)
        s = FL_MODEL_NO_FIT;
    if (s == FL_MODEL_OK) {
        t.list[0] = members;
        search(&t, members.count, members.count + 1);
        s = judge_list(&t, next, &best);
    }
    for (size_t i = 0; s == FL_MODEL_OK && i < next->count; i++)
        if (by_clocks(&next->at[i], &t.place[best.at[best.count - 1]]) == 0)
            *added = i;
    close_table(&t);
    return s;
}
