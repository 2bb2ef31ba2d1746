#include "tests/adversary/adversary_case.h"

#include "policies/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is drawn. Kernels of 0.1 to 50 ms, so that a program of 20 s has 200,000 at most. */
#define TIME_MIN_US 100.0
#define TIME_MAX_US 50000.0
#define CV_MAX 1.0
#define GAP_MAX_US 20000.0
#define SECONDS_MIN 1.0
#define PART_MIN_S 0.02
#define CYCLES_MAX 64
#define COUNT_MAX 64

/* Numbers are what a file of four digits says, so that its replay is the trial itself. */
static double rounded(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", x);
    return strtod(text, NULL);
}

static double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }
static double between(fl_random *r, double low, double high) { return low + (high - low) * fl_random_unit(r); }
static double log_between(fl_random *r, double low, double high) {
    return low * exp(fl_random_unit(r) * log(high / low));
}
static bool chance(fl_random *r, double p) { return fl_random_unit(r) < p; }
static uint32_t below(fl_random *r, uint32_t n) { return (uint32_t)fl_random_below(r, n); }

/* ---- drawn ---- */

static fl_adversary_kind draw_kind(fl_random *r) {
    fl_adversary_kind k = {.tc = 1, .tm = between(r, 0, 1), .tl = chance(r, 0.5) ? 0 : between(r, 0, 0.5)};
    if (chance(r, 0.5)) { /* bound by memory instead */
        k.tc = k.tm;
        k.tm = 1;
    }
    k.alpha = rounded(between(r, 0.2, 1));
    k.beta = rounded(between(r, 0, 1));
    k.sm_demand = chance(r, 0.7) ? 1 : rounded(between(r, 0.2, 1));
    k.tc = rounded(k.tc);
    k.tm = rounded(k.tm);
    k.tl = rounded(k.tl);
    k.copy = chance(r, 0.1);
    return k;
}

static fl_adversary_row draw_row(fl_random *r, uint32_t kinds, const fl_adversary_range *range) {
    fl_adversary_row w = {.kind = below(r, kinds),
                          .count = (uint32_t)log_between(r, 1, COUNT_MAX),
                          .stream = chance(r, 0.15) ? below(r, range->streams) : 0,
                          .time_us = rounded(log_between(r, TIME_MIN_US, TIME_MAX_US))};
    if (chance(r, 0.7))
        w.time_cv = rounded(log_between(r, 0.002, CV_MAX));
    if (chance(r, 0.4))
        w.gap_us = rounded(log_between(r, 1, GAP_MAX_US));
    if (w.gap_us > 0 && chance(r, 0.5))
        w.gap_cv = rounded(between(r, 0, CV_MAX));
    return w;
}

static fl_adversary_part draw_part(fl_random *r, uint32_t kinds, const fl_adversary_range *range) {
    fl_adversary_part p = {.seconds = log_between(r, 0.1, 10), .rows = 1 + below(r, FL_ADVERSARY_ROWS)};
    p.marked = chance(r, 0.2);
    for (uint32_t i = 0; i < FL_ADVERSARY_ROWS; i++)
        p.row[i] = draw_row(r, kinds, range);
    return p;
}

double fl_adversary_seconds(const fl_adversary_case *c) {
    double sum = 0;
    for (uint32_t i = 0; i < c->parts; i++)
        sum += c->part[i].seconds;
    return sum * c->cycles;
}

/* Scales the parts so that all take `seconds`. Fewer cycles, where a part would become too short. */
static void last(fl_adversary_case *c, double seconds) {
    double sum = 0, least = INFINITY;
    for (uint32_t i = 0; i < c->parts; i++) {
        sum += c->part[i].seconds;
        least = fmin(least, c->part[i].seconds);
    }
    const double most = seconds * least / (sum * PART_MIN_S);
    if (c->cycles > most)
        c->cycles = most < 1 ? 1 : (uint32_t)most;
    for (uint32_t i = 0; i < c->parts; i++)
        c->part[i].seconds = rounded(fmax(PART_MIN_S, c->part[i].seconds * seconds / (sum * c->cycles)));
}

/* As the first row, kind and part have it. Bytes follow the share of the time in which memory works. */
static void make_alike(fl_adversary_case *c) {
    const fl_adversary_row *like = &c->part[0].row[0];
    const fl_adversary_kind *first = &c->kind[0];
    const double memory = rounded(first->tm / (fmax(first->tc, first->tm) + first->tl));
    for (uint32_t i = 0; i < FL_ADVERSARY_KINDS; i++) {
        fl_adversary_kind *k = &c->kind[i];
        k->tm = memory;
        k->tl = rounded(1 - fmax(k->tc, k->tm));
        k->copy = false;
    }
    for (uint32_t i = 0; i < FL_ADVERSARY_PARTS; i++) {
        fl_adversary_part *p = &c->part[i];
        p->marked = true;
        p->rows = c->part[0].rows;
        for (uint32_t n = 0; n < FL_ADVERSARY_ROWS; n++) {
            const uint32_t kind = p->row[n].kind, count = c->part[0].row[n].count;
            p->row[n] = *like;
            p->row[n].kind = kind;
            p->row[n].count = count;
            p->row[n].stream = 0;
        }
    }
}

static uint64_t draw_seed(fl_random *r) { return 1 + fl_random_below(r, 1000000); }

fl_adversary_case fl_adversary_draw(fl_random *r, const fl_adversary_range *range) {
    fl_adversary_case c = {.unsteady = range->unsteady,
                           .seed = draw_seed(r),
                           .kinds = 1 + below(r, FL_ADVERSARY_KINDS),
                           .parts = 1 + below(r, FL_ADVERSARY_PARTS),
                           .cycles = chance(r, 0.5) ? 1 : (uint32_t)log_between(r, 1, CYCLES_MAX)};
    for (uint32_t i = 0; i < FL_ADVERSARY_KINDS; i++)
        c.kind[i] = draw_kind(r);
    for (uint32_t i = 0; i < FL_ADVERSARY_PARTS; i++)
        c.part[i] = draw_part(r, c.kinds, range);
    if (range->alike)
        make_alike(&c);
    last(&c, log_between(r, fmin(SECONDS_MIN, range->seconds), range->seconds));
    return c;
}

/* ---- changed ---- */

/* By half or so, in either direction, within [low, high]; what is 0 may begin. */
static double moved(double x, fl_random *r, double low, double high) {
    const double from = x > 0 ? x : log_between(r, high * 1e-3, high);
    return rounded(clamp(from * exp((chance(r, 0.5) ? 0.1 : 0.7) * fl_random_normal(r)), low, high));
}

static void change_kind(fl_adversary_kind *k, fl_random *r) {
    double *const share[] = {&k->tc, &k->tm, &k->alpha, &k->beta, &k->sm_demand};
    switch (below(r, 7)) {
    case 0:
        *k = draw_kind(r);
        return;
    case 1:
        k->tl = moved(k->tl, r, 0, 0.5);
        return;
    default: {
        const uint32_t which = below(r, FL_COUNT(share));
        *share[which] = moved(*share[which], r, which < 2 ? 0.01 : 0.2, 1);
    }
    }
}

static void change_row(fl_adversary_row *w, fl_random *r, uint32_t kinds, const fl_adversary_range *range) {
    switch (below(r, 7)) {
    case 0:
        *w = draw_row(r, kinds, range);
        break;
    case 1:
        w->kind = below(r, kinds);
        break;
    case 2:
        w->count = (uint32_t)clamp(round(moved(w->count, r, 1, COUNT_MAX)), 1, COUNT_MAX);
        break;
    case 3:
        w->time_us = moved(w->time_us, r, TIME_MIN_US, TIME_MAX_US);
        break;
    case 4:
        w->time_cv = chance(r, 0.2) ? 0 : moved(w->time_cv, r, 0, CV_MAX);
        break;
    case 5:
        w->gap_us = chance(r, 0.2) ? 0 : moved(w->gap_us, r, 0, GAP_MAX_US);
        break;
    default:
        w->stream = below(r, range->streams);
    }
}

static void change_part(fl_adversary_case *c, fl_random *r, const fl_adversary_range *range) {
    fl_adversary_part *p = &c->part[below(r, c->parts)];
    switch (below(r, 5)) {
    case 0:
        p->seconds *= exp(fl_random_normal(r));
        break;
    case 1:
        p->rows = 1 + below(r, FL_ADVERSARY_ROWS);
        break;
    case 2:
        p->marked = !p->marked;
        break;
    case 3:
        *p = draw_part(r, c->kinds, range);
        break;
    default:
        c->parts = 1 + below(r, FL_ADVERSARY_PARTS);
    }
}

fl_adversary_case fl_adversary_change(const fl_adversary_case *from, fl_random *r, const fl_adversary_range *range) {
    fl_adversary_case c = *from;
    double length = fl_adversary_seconds(&c);
    for (uint32_t changes = 1 + below(r, 3); changes; changes--)
        switch (below(r, 6)) {
        case 0:
            change_kind(&c.kind[below(r, c.kinds)], r);
            break;
        case 1:
        case 2: {
            fl_adversary_part *p = &c.part[below(r, c.parts)];
            change_row(&p->row[below(r, p->rows)], r, c.kinds, range);
            break;
        }
        case 3:
            change_part(&c, r, range);
            break;
        case 4:
            if (chance(r, 0.5))
                c.cycles = 1 + below(r, CYCLES_MAX);
            else
                length *= exp(0.5 * fl_random_normal(r));
            break;
        default:
            c.seed = draw_seed(r);
        }
    if (range->alike)
        make_alike(&c);
    last(&c, clamp(length, fmin(SECONDS_MIN, range->seconds), range->seconds));
    return c;
}

/* ---- as files ---- */

static bool add_kind(const fl_adversary_kind *from, uint32_t index, fl_kinds *k) {
    char name[32];
    if (fl_grow(&k->kind, &k->room, k->count + 1, sizeof *k->kind))
        return false;
    fl_kind_load *l = &k->kind[k->count++];
    snprintf(name, sizeof name, "k%u", index);
    *l = (fl_kind_load){.name = strdup(name),
                        .tc = from->tc,
                        .tm = from->tm,
                        .tl = from->tl,
                        .sharpness = INFINITY,
                        .alpha = from->alpha,
                        .beta = from->beta,
                        .sm_demand = from->sm_demand,
                        .phase = 1,
                        .host_bound = NAN,
                        .host_alpha = NAN,
                        .host_upc = NAN,
                        .host_gb_s = NAN};
    return l->name != NULL;
}

static fl_status add_row(const fl_adversary_case *c, uint32_t part, uint32_t index, bool marker, fl_programs *p,
                         fl_diag *d) {
    const fl_adversary_row *from = &c->part[part].row[index];
    char kernel[32] = "[iteration]";
    if (!marker && c->kind[from->kind].copy)
        snprintf(kernel, sizeof kernel, "[CUDA memcpy DtoD]");
    else if (!marker)
        snprintf(kernel, sizeof kernel, "k%u", from->kind);
    fl_program_row row = {.program = fl_programs_name(p, "worst"),
                          .kernel = fl_programs_name(p, kernel),
                          .part = part + 1,
                          .count = marker ? 1 : from->count,
                          .part_s = c->part[part].seconds,
                          .time_us = marker ? 0.001 : from->time_us,
                          .stream = marker ? 0 : (int32_t)from->stream,
                          .grid_x = 256 + (c->unsteady ? 0 : part * FL_ADVERSARY_ROWS + index),
                          .block_x = 256,
                          .cycles = c->cycles};
    if (!marker) {
        row.time_cv = from->time_cv;
        row.gap_us = from->gap_us;
        row.gap_cv = from->gap_cv;
    }
    return row.program == UINT32_MAX || row.kernel == UINT32_MAX ? fl_no_memory(d, "the workload")
                                                                 : fl_programs_add(p, &row, d);
}

static bool put_clocks(fl_head *h, double sm_mhz, double mem_mhz) {
    char sm[32], mem[32];
    snprintf(sm, sizeof sm, "%g", sm_mhz);
    snprintf(mem, sizeof mem, "%g", mem_mhz);
    return fl_head_set(h, "source", "tests/adversary: drawn, not measured") && fl_head_set(h, "sm_mhz", sm) &&
           fl_head_set(h, "mem_mhz", mem);
}

fl_status fl_adversary_files(const fl_adversary_case *c, double sm_mhz, double mem_mhz, fl_programs *p, fl_kinds *k,
                             fl_diag *d) {
    *p = (fl_programs){0};
    *k = (fl_kinds){0};
    fl_status s = put_clocks(&p->head, sm_mhz, mem_mhz) && put_clocks(&k->head, sm_mhz, mem_mhz)
                      ? FL_OK
                      : fl_no_memory(d, "the workload");
    for (uint32_t i = 0; !s && i < c->kinds; i++)
        s = add_kind(&c->kind[i], i, k) ? FL_OK : fl_no_memory(d, "the workload");
    for (uint32_t i = 0; !s && i < c->parts; i++) {
        const fl_adversary_part *part = &c->part[i];
        bool first = false; /* whether anything runs on stream 0, which has the markers */
        for (uint32_t k_row = 0; k_row < part->rows; k_row++)
            first |= !part->row[k_row].stream;
        if (part->marked && first)
            s = add_row(c, i, 0, true, p, d);
        for (uint32_t n = 0; !s && n < part->rows; n++)
            s = add_row(c, i, n, false, p, d);
    }
    return s;
}
