#include "tests/reference/draw.h"

#include "policies/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KINDS_MAX 40
#define LOOP_MAX 32
#define PARTS_MAX 4
#define STREAMS_MAX 3
#define NAMES 6

typedef struct kind {
    uint32_t class_id;
    double mean_ns, cv;
    double rare; /* chance of a kernel that is a thousand times as long */
} kind;

typedef struct part { /* a phase of the application: its loop on each stream, and its gaps */
    uint32_t loop[STREAMS_MAX][LOOP_MAX], length;
    double gap_ns[LOOP_MAX], gap_cv; /* mean gap before each kernel of the loop; 0: back to back */
} part;

typedef struct application {
    fl_random random;
    kind kind[KINDS_MAX];
    part part[PARTS_MAX];
    uint32_t kinds, parts, streams;
    double seconds;
    double turn_s;                /* parts take turns of this length; 0: one part at a time, for minutes */
    double change_s[PARTS_MAX];   /* without turns: when each part begins */
    double idle_each_s, idle_s;   /* stretches without a kernel; 0: none */
    double idler[STREAMS_MAX];    /* gaps of a stream by this factor */
    double begins_s[STREAMS_MAX]; /* when a stream runs its first kernel */
    double drift;                 /* lengths grow by this share over the whole run */
} application;

static double between(fl_random *r, double low, double high) { return low + (high - low) * fl_random_unit(r); }
static double log_between(fl_random *r, double low, double high) { return low * pow(high / low, fl_random_unit(r)); }
static bool chance(fl_random *r, double share) { return fl_random_unit(r) < share; }

typedef enum character { COMPUTE, MEMORY, LITTLE_MEMORY, LATENCY, HOT, MIXED, CHARACTERS } character;

/* Bound by compute, by memory or by neither; some hardly touch memory, so that its clock may fall, and some draw more
 * than the board's limit. */
static fl_load draw_load(fl_random *r, const fl_device *device, character c, uint32_t streams) {
    fl_load l = {.ref_sm_mhz = device->default_sm_mhz, .ref_mem_mhz = device->default_mem_mhz};
    l.tc = c == MEMORY ? between(r, 0.1, 0.7) : between(r, 0.3, 1);
    l.tm = c == MEMORY || c == HOT ? between(r, 0.5, 1) : c == COMPUTE ? between(r, 0.02, 0.5) : between(r, 0, 0.04);
    l.tl = c == LATENCY ? between(r, 3, 20) : chance(r, 0.5) ? between(r, 0, 0.3) : between(r, 0.3, 3);
    l.alpha = c == HOT ? between(r, 1, 1.6) : between(r, 0.2, 1);
    l.beta = l.tm * between(r, 0.3, 1);
    l.sm_demand = between(r, 0.1, 1) / streams;
    if (c == MEMORY && l.tm > 0.75) /* bandwidth with a fold, for half of these */
        l.bandwidth = (fl_fold_line){0.7 * device->default_sm_mhz, 0.9, 0.15};
    return l;
}

static fl_status draw_kinds(application *a, fl_workload *w, const fl_device *device, character c, double mean_ns,
                            double cv, fl_diag *d) {
    static const char *const names[NAMES] = {"gemm", "conv", "norm", "copy", "reduce", "relu"};
    fl_random *r = &a->random;
    a->kinds = 2 + (uint32_t)log_between(r, 1, KINDS_MAX - 2);
    for (uint32_t i = 0; i < a->kinds; i++) {
        const fl_load load = draw_load(r, device, c == MIXED ? (character)fl_random_below(r, MIXED) : c, a->streams);
        fl_kernel_kind k = {.name = names[fl_random_below(r, NAMES)]};
        k.grid[0] = (uint32_t)log_between(r, 1, 4096);
        k.grid[1] = chance(r, 0.3) ? 1 + (uint32_t)fl_random_below(r, 8) : 1;
        k.grid[2] = 1;
        k.block[0] = 32u << fl_random_below(r, 5);
        k.block[1] = chance(r, 0.3) ? 1 + (uint32_t)fl_random_below(r, 3) : 1;
        k.block[2] = 1;
        a->kind[i] = (kind){.mean_ns = mean_ns * log_between(r, 0.2, 5), .cv = cv * between(r, 0, 2)};
        if (chance(r, 0.03)) {
            a->kind[i].rare = 0.001;
            a->kind[i].mean_ns = fmin(a->kind[i].mean_ns, 2e4);
        }
        const fl_status s = fl_workload_add_class(w, &load, &k, &a->kind[i].class_id, d);
        if (s)
            return s;
    }
    return FL_OK;
}

/* The gaps of a part make its kernels busy for about the given share of the time of a stream. */
static void draw_part(application *a, uint32_t number, double busy, double gap_cv) {
    fl_random *r = &a->random;
    part *p = &a->part[number];
    const bool own = a->kinds >= 2 * a->parts && chance(r, 0.5); /* kinds that no other part has, or any */
    const uint32_t kinds = own ? a->kinds / a->parts : a->kinds, first = own ? number * kinds : 0;
    p->length = 2 + (uint32_t)fl_random_below(r, LOOP_MAX - 1);
    p->gap_cv = gap_cv;
    double work = 0, weight = 0;
    for (uint32_t i = 0; i < p->length; i++) {
        for (uint32_t s = 0; s < a->streams; s++)
            p->loop[s][i] = first + (uint32_t)fl_random_below(r, kinds);
        work += a->kind[p->loop[0][i]].mean_ns;
        p->gap_ns[i] = chance(r, 0.3) ? 0 : log_between(r, 0.1, 10);
        weight += p->gap_ns[i];
    }
    for (uint32_t i = 0; i < p->length; i++)
        p->gap_ns[i] *= weight > 0 ? work * (1 / busy - 1) / weight : 0;
}

static double draw_busy(fl_random *r) {
    const double u = fl_random_unit(r);
    return u < 0.2 ? 1 : u < 0.65 ? between(r, 0.6, 0.99) : u < 0.9 ? between(r, 0.2, 0.6) : between(r, 0.03, 0.2);
}

/* Parts that take turns of seconds; or parts that follow one another, so that monitoring sees a change. */
static void draw_course(application *a) {
    fl_random *r = &a->random;
    a->seconds = between(r, 250, 700);
    const double u = fl_random_unit(r);
    a->parts = u < 0.85 ? 2 + (uint32_t)fl_random_below(r, PARTS_MAX - 1) : 1;
    if (u < 0.35)
        a->turn_s = log_between(r, 0.05, 25);
    else
        for (uint32_t i = 1; i < a->parts; i++)
            a->change_s[i] = a->change_s[i - 1] + between(r, 15, i == 1 ? 250 : 200);
    if (chance(r, 0.25)) {
        a->idle_each_s = log_between(r, 3, 60);
        a->idle_s = log_between(r, 0.5, 6);
    }
    a->drift = chance(r, 0.25) ? between(r, -0.7, 1) : 0;
    for (uint32_t i = 1; i < a->streams; i++)
        a->begins_s[i] = chance(r, 0.6) ? between(r, 20, 200) : 0;
    for (uint32_t i = 0; i < a->streams; i++)
        a->idler[i] = i ? log_between(r, 1, 20) : 1;
}

static uint32_t part_at(const application *a, double t_s) {
    if (a->turn_s > 0)
        return (uint32_t)(t_s / a->turn_s) % a->parts;
    uint32_t i = 0;
    while (i + 1 < a->parts && t_s >= a->change_s[i + 1])
        i++;
    return i;
}

static double varied(fl_random *r, double mean, double cv) {
    return cv > 0 ? fmax(0, mean * (1 + cv * fl_random_normal(r))) : mean;
}

static fl_status add_stream(application *a, fl_workload *w, uint32_t number, fl_diag *d) {
    fl_random *r = &a->random;
    uint32_t stream;
    fl_status s = fl_workload_add_stream(w, 0, 1, (int32_t)number + 7, &stream, d);
    double t_ns = 0, idle_at = a->idle_each_s;
    for (uint32_t i = 0; !s && t_ns < a->seconds * 1e9; i++) {
        const part *p = &a->part[part_at(a, t_ns / 1e9)];
        const uint32_t at = i % p->length;
        const kind *k = &a->kind[p->loop[number][at]];
        double gap = i ? varied(r, p->gap_ns[at] * a->idler[number], p->gap_cv) : a->begins_s[number] * 1e9;
        if (a->idle_s > 0 && t_ns / 1e9 > idle_at) {
            gap += a->idle_s * 1e9;
            idle_at += a->idle_s + a->idle_each_s;
        }
        double work = varied(r, k->mean_ns, k->cv) * (1 + a->drift * t_ns / (a->seconds * 1e9));
        if (k->rare > 0 && chance(r, k->rare))
            work *= 1000;
        work = fmax(work, 500);
        s = fl_workload_add_op(w, stream, (int64_t)gap, (int64_t)work, k->class_id, d);
        t_ns += gap + work;
    }
    return s;
}

fl_status ref_draw(uint64_t seed, const fl_device *device, fl_workload **out, char *text, size_t size, fl_diag *d) {
    static const char *const characters[] = {"compute", "memory", "little memory", "latency", "hot", "mixed"};
    application a = {.random = fl_random_seed(seed, 16)};
    fl_random *r = &a.random;
    *out = NULL;
    char name[32];
    snprintf(name, sizeof name, "drawn %d", (int)seed);
    fl_status s = fl_workload_new(out, name, d);
    a.streams = chance(r, 0.65) ? 1 : 2 + (uint32_t)fl_random_below(r, STREAMS_MAX - 1);
    const character c = (character)fl_random_below(r, CHARACTERS);
    const double mean_ns = chance(r, 0.06) ? log_between(r, 2e8, 3e9) : log_between(r, 6e4, 5e6),
                 cv = chance(r, 0.3) ? 0 : log_between(r, 0.01, 1);
    if (!s)
        s = draw_kinds(&a, *out, device, c, mean_ns, cv, d);
    if (s)
        return s;
    draw_course(&a);
    const double busy = draw_busy(r);
    a.seconds = fmin(a.seconds, 3e6 * mean_ns * 1e-9 / (busy * a.streams)); /* three million kernels or so */
    for (uint32_t i = 0; i < a.parts; i++)
        draw_part(&a, i, chance(r, 0.5) ? busy : draw_busy(r), chance(r, 0.4) ? 0 : log_between(r, 0.02, 2));
    for (uint32_t i = 0; !s && i < a.streams; i++)
        s = add_stream(&a, *out, i, d);
    snprintf(text, size, "%s, %u kinds of %.0f us, cv %.2f, %u streams, busy %.2f, %u parts%s, %.0f s, idle %.1f s",
             characters[c], a.kinds, mean_ns / 1e3, cv, a.streams, busy, a.parts, a.turn_s > 0 ? " in turns" : "",
             a.seconds, a.idle_s);
    return s ? s : fl_workload_finish(*out, 0, d);
}
