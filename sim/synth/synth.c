/* Synthetic requests, kernel traces and mixes of programs. */
#include "sim/synth/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests to a server of language models ---- */

#define DAY_S 86400.0
#define LONGEST_S (26 * DAY_S)
#define TAU 6.283185307179586

const fl_synth_requests_options fl_synth_requests_standard = {.seed = 1,
                                                              .rate = 1,
                                                              .seconds = 600,
                                                              .cv = 1,
                                                              .day_s = DAY_S,
                                                              .prompt_median = 1020,
                                                              .prompt_sigma = 1,
                                                              .output_median = 129,
                                                              .output_sigma = 1,
                                                              .prompt_most = 8192,
                                                              .output_most = 2048};

/* Arrivals and each length have a stream of their own: another length changes no arrival. */
enum { ARRIVALS = 0x61, PROMPTS, OUTPUTS };

/* Gamma of mean 1 and this shape: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26
 * (2000), section 3; below shape 1 by its section 6: gamma(k + 1) U^(1/k). */
static double gamma_of_mean_1(fl_random *g, double shape) {
    const double k = shape < 1 ? shape + 1 : shape, d = k - 1 / 3.0, c = 1 / sqrt(9 * d);
    double v, x;
    do {
        x = fl_random_normal(g);
        v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    } while (v <= 0 || log(1 - fl_random_unit(g)) >= x * x / 2 + d - d * v + d * log(v));
    const double below = shape < 1 ? pow(1 - fl_random_unit(g), 1 / shape) : 1;
    return d * v * below / shape;
}

/* Time between arrivals where the rate is 1. */
static double next_gap(fl_random *g, double cv) {
    if (cv == 1)
        return -log(1 - fl_random_unit(g));
    return cv > 0 ? gamma_of_mean_1(g, 1 / (cv * cv)) : 1;
}

/* Requests expected up to t: the integral of the rate. */
static double expected(const fl_synth_requests_options *o, double t) {
    return o->rate * (t - o->daily * o->day_s / TAU * sin(TAU * t / o->day_s));
}

/* When `count` requests are expected: bisection, since the rate may touch 0. */
static double time_of(const fl_synth_requests_options *o, double count) {
    if (o->daily == 0)
        return count / o->rate;
    double low = count / o->rate - o->day_s / TAU, high = low + 2 * o->day_s / TAU;
    for (int i = 0; i < 80 && low < high; i++) {
        const double middle = low + (high - low) / 2;
        *(expected(o, middle) < count ? &low : &high) = middle;
    }
    return high > 0 ? high : 0;
}

static uint32_t length(fl_random *g, double median, double sigma, uint32_t most) {
    const double n = floor(median * exp(sigma * fl_random_normal(g)) + 0.5);
    return n >= most ? most : n >= 1 ? (uint32_t)n : 1;
}

static fl_status check(const fl_synth_requests_options *o, fl_diag *d) {
    const struct {
        const char *name;
        double value, min, max;
    } row[] = {{"rate", o->rate, 1e-6, 1e6},
               {"seconds", o->seconds, 0, LONGEST_S},
               {"most", (double)o->most, 0, FL_REQUESTS_MOST},
               {"cv", o->cv, 0, 100},
               {"daily", o->daily, 0, 1},
               {"day_s", o->day_s, 1, LONGEST_S},
               {"prompt_median", o->prompt_median, 1, FL_REQUEST_TOKENS_MOST},
               {"prompt_sigma", o->prompt_sigma, 0, 10},
               {"prompt_most", o->prompt_most, 1, FL_REQUEST_TOKENS_MOST},
               {"output_median", o->output_median, 1, FL_REQUEST_TOKENS_MOST},
               {"output_sigma", o->output_sigma, 0, 10},
               {"output_most", o->output_most, 1, FL_REQUEST_TOKENS_MOST}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!(row[i].value >= row[i].min && row[i].value <= row[i].max))
            return fl_refuse(d, "%s is %g, expected %g to %g", row[i].name, row[i].value, row[i].min, row[i].max);
    if (o->seconds == 0 && o->most == 0)
        return fl_refuse(d, "neither seconds nor most is given, expected one of them or both");
    return FL_OK;
}

static fl_status draw(const fl_synth_requests_options *o, fl_requests *r, fl_diag *d) {
    fl_random arrivals = fl_random_seed(o->seed, ARRIVALS), prompts = fl_random_seed(o->seed, PROMPTS),
              outputs = fl_random_seed(o->seed, OUTPUTS);
    double count = 0;
    int64_t before = 0;
    uint32_t longest = 0; /* of the prompts so far: no more can be shared with one of them */
    fl_status s = FL_OK;
    while (!s && (!o->most || r->count < o->most)) {
        count += next_gap(&arrivals, o->cv);
        const double t = time_of(o, count);
        if (o->seconds > 0 && t > o->seconds)
            break;
        if (!(t <= LONGEST_S))
            return fl_refuse(d, "request %zu arrives after more than 26 days, expected fewer, or a higher rate",
                             r->count + 1);
        fl_request_row q = {.t_ns = (int64_t)(t * 1e9 + 0.5)};
        q.t_ns = before = q.t_ns > before ? q.t_ns : before; /* bisection ends within rounding */
        q.prompt_tokens = length(&prompts, o->prompt_median, o->prompt_sigma, o->prompt_most);
        q.output_tokens = length(&outputs, o->output_median, o->output_sigma, o->output_most);
        const uint32_t most = q.prompt_tokens < longest ? q.prompt_tokens : longest;
        q.cached_tokens = o->shared < most ? o->shared : most;
        longest = q.prompt_tokens > longest ? q.prompt_tokens : longest;
        s = fl_requests_add(r, &q, d);
    }
    if (!s && !r->count)
        s = fl_refuse(d, "no request arrives within %g s, expected a longer time or a higher rate", o->seconds);
    return s;
}

fl_status fl_synth_requests(const fl_synth_requests_options *o, fl_requests *r, fl_diag *d) {
    *r = (fl_requests){0};
    fl_status s = check(o, d);
    if (!s)
        s = (r->names = calloc(1, sizeof *r->names)) && (r->names[0] = strdup("")) ? FL_OK : fl_no_memory(d, NULL);
    r->name_count = r->name_room = r->names && r->names[0];
    if (!s)
        s = draw(o, r, d);
    if (s)
        fl_requests_free(r);
    return s;
}

/* ---- kernel traces ---- */

const fl_synth_options fl_synth_standard = {.seed = 1,
                                            .kernels = 10000,
                                            .kinds = 32,
                                            .streams = 1,
                                            .gpus = 1,
                                            .mean_us = 200,
                                            .gap_us = 5,
                                            .memory = 0.5,
                                            .sm_demand = 1,
                                            .burst = 4};

static fl_status check_options(const fl_synth_options *o, fl_diag *d) {
    const struct {
        const char *name;
        double value, min, max;
    } range[] = {{"kernels", (double)o->kernels, 1, 2e9},
                 {"kinds", o->kinds, 1, 65535},
                 {"streams", o->streams, 1, 256},
                 {"gpus", o->gpus, 1, 1024},
                 {"mean-us", o->mean_us, 0.001, 1e9},
                 {"gap-us", o->gap_us, 0, 1e9},
                 {"memory", o->memory, 0, 1},
                 {"sm-demand", o->sm_demand, 0, 1},
                 {"burst", o->burst, 1, 1e6}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (!(range[i].value >= range[i].min && range[i].value <= range[i].max))
            return fl_refuse(d, "synth: --%s %g is out of range, expected %g to %g", range[i].name, range[i].value,
                             range[i].min, range[i].max);
    return FL_OK;
}

typedef struct fl_synth_kind {
    fl_kind_load load;
    uint32_t grid;
    double mean_ns;
    char name[32];
} fl_synth_kind;

static fl_synth_kind draw_kind(const fl_synth_options *o, uint32_t i) {
    fl_random r = fl_random_seed(o->seed, UINT64_C(1000000) + i);
    bool memory = i < (uint32_t)(o->memory * o->kinds + 0.5);
    fl_synth_kind k = {.load = {.tc = 1, .tm = 1, .tl = 0.02 * fl_random_unit(&r), .sharpness = INFINITY}};
    double lesser = 0.2 + 0.7 * fl_random_unit(&r);
    if (memory) {
        k.load.tc = lesser;
        k.load.alpha = 0.3 + 0.4 * fl_random_unit(&r);
        k.load.beta = 0.6 + 0.4 * fl_random_unit(&r);
    } else {
        k.load.tm = lesser * 0.8;
        k.load.alpha = 0.6 + 0.4 * fl_random_unit(&r);
        k.load.beta = 0.1 + 0.4 * fl_random_unit(&r);
    }
    k.load.sm_demand = o->sm_demand > 0 ? o->sm_demand : 0.2 + 0.8 * fl_random_unit(&r);
    if (o->sm_demand > 0) /* a kernel on a few SMs moves as little of the bandwidth */
        k.load.tm *= o->sm_demand;
    k.mean_ns = o->mean_us * 1e3 * exp(0.5 * fl_random_normal(&r) - 0.125);
    k.grid = 1 + (uint32_t)fl_random_below(&r, 4096);
    snprintf(k.name, sizeof k.name, "%s_%u", memory ? "mem" : "comp", i);
    return k;
}

typedef struct fl_synth_stream { /* one stream being drawn */
    fl_random r;
    uint32_t kind;
} fl_synth_stream;

static void next_kernel(const fl_synth_options *o, const fl_synth_kind *kind, fl_synth_stream *s, uint32_t *which,
                        int64_t *gap_ns, int64_t *work_ns) {
    if (fl_random_unit(&s->r) * o->burst < 1)
        s->kind = (uint32_t)fl_random_below(&s->r, o->kinds);
    *which = s->kind;
    double length = kind[s->kind].mean_ns * (0.8 + 0.4 * fl_random_unit(&s->r));
    *work_ns = length < 1 ? 1 : (int64_t)length;
    *gap_ns = (int64_t)(-o->gap_us * 1e3 * log(1 - fl_random_unit(&s->r)));
}

static fl_status draw_kinds(const fl_synth_options *o, fl_synth_kind **kind, fl_diag *d) {
    *kind = malloc(o->kinds * sizeof **kind);
    if (!*kind)
        return fl_no_memory(d, "kinds");
    for (uint32_t i = 0; i < o->kinds; i++)
        (*kind)[i] = draw_kind(o, i);
    return FL_OK;
}

static uint64_t share_of(const fl_synth_options *o, uint32_t lane) { /* kernels of stream `lane` of all */
    uint64_t lanes = (uint64_t)o->streams * o->gpus;
    return o->kernels / lanes + (lane < o->kernels % lanes);
}

static fl_status fill_kinds(const fl_synth_options *o, const fl_synth_kind *kind, double sm_mhz, double mem_mhz,
                            fl_kinds *k, fl_diag *d) {
    for (uint32_t i = 0; i < o->kinds; i++) {
        if (fl_grow(&k->kind, &k->room, k->count + 1, sizeof *k->kind))
            return fl_no_memory(d, "kinds");
        fl_kind_load *l = &k->kind[k->count++];
        *l = kind[i].load;
        l->name = strdup(kind[i].name);
        l->sm_mhz = sm_mhz;
        l->mem_mhz = mem_mhz;
        l->phase = 1;
        l->host_bound = l->host_alpha = l->host_upc = l->host_gb_s = NAN;
        if (!l->name)
            return fl_no_memory(d, "kinds");
    }
    return FL_OK;
}

static bool head(const fl_synth_options *o, fl_head *h, double sm_mhz, double mem_mhz) {
    char text[160];
    snprintf(text, sizeof text, "foldline synth, seed %llu: drawn, not measured", (unsigned long long)o->seed);
    bool ok = fl_head_set(h, "source", text);
    snprintf(text, sizeof text, "%g", sm_mhz);
    ok = ok && fl_head_set(h, "sm_mhz", text);
    snprintf(text, sizeof text, "%g", mem_mhz);
    return ok && fl_head_set(h, "mem_mhz", text);
}

fl_status fl_synth_trace(const fl_synth_options *o, double sm_mhz, double mem_mhz, fl_kernel_trace *t, fl_kinds *k,
                         fl_diag *d) {
    *t = (fl_kernel_trace){.has_launches = o->launches};
    *k = (fl_kinds){0};
    fl_synth_kind *kind = NULL;
    fl_status s = check_options(o, d);
    if (!s)
        s = draw_kinds(o, &kind, d);
    if (!s)
        s = fill_kinds(o, kind, sm_mhz, mem_mhz, k, d);
    if (!s && (!head(o, &t->head, sm_mhz, mem_mhz) || !head(o, &k->head, sm_mhz, mem_mhz)))
        s = fl_no_memory(d, "the head");
    uint32_t *id = s ? NULL : malloc(o->kinds * sizeof *id);
    for (uint32_t i = 0; id && i < o->kinds; i++)
        id[i] = fl_trace_add_kind(t, kind[i].name, (uint32_t[3]){kind[i].grid, 1, 1}, (uint32_t[3]){256, 1, 1});
    for (uint32_t lane = 0; !s && lane < o->streams * o->gpus; lane++) {
        fl_synth_stream draw = {.r = fl_random_seed(o->seed, lane)};
        draw.kind = (uint32_t)fl_random_below(&draw.r, o->kinds);
        int64_t now = 0, host = 0;
        for (uint64_t i = share_of(o, lane); !s && i > 0; i--) {
            uint32_t which;
            int64_t gap, work;
            next_kernel(o, kind, &draw, &which, &gap, &work);
            fl_trace_op op = {.launch_ns = INT64_MIN,
                              .bytes = -1,
                              .kind = id ? id[which] : UINT32_MAX,
                              .device = (int32_t)(lane / o->streams),
                              .stream = (int32_t)(lane % o->streams),
                              .host_thread = -1,
                              .type = FL_OP_KERNEL};
            if (o->launches) { /* the host runs ahead: it launches every gap, the GPU starts when it can */
                host += gap;
                op.launch_ns = host;
                op.host_thread = (int32_t)lane;
                op.start_ns = now > host ? now : host;
            } else {
                op.start_ns = now + gap;
            }
            now = op.end_ns = op.start_ns + work;
            s = op.kind == UINT32_MAX || fl_trace_add_op(t, &op) ? fl_no_memory(d, NULL) : FL_OK;
        }
    }
    free(id);
    free(kind);
    if (s) {
        fl_kernel_trace_free(t);
        fl_kinds_free(k);
    }
    return s;
}

fl_status fl_synth_workload(const fl_synth_options *o, const fl_node_spec *node, uint32_t windows, fl_workload **out,
                            fl_diag *d) {
    fl_synth_kind *kind = NULL;
    fl_workload *w = NULL;
    const fl_device *dev = &node->device[node->gpu[0]];
    fl_status s = check_options(o, d);
    if (!s)
        s = draw_kinds(o, &kind, d);
    if (!s)
        s = fl_workload_new(&w, "synth", d);
    for (uint32_t i = 0; !s && i < o->kinds; i++) {
        const fl_kind_load *l = &kind[i].load;
        fl_load load = {.tc = l->tc,
                        .tm = l->tm,
                        .tl = l->tl,
                        .sharpness = l->sharpness,
                        .alpha = l->alpha,
                        .beta = l->beta,
                        .sm_demand = l->sm_demand,
                        .ref_sm_mhz = dev->default_sm_mhz,
                        .ref_mem_mhz = dev->default_mem_mhz};
        fl_kernel_kind k = {.name = kind[i].name, .name_id = i, .grid = {kind[i].grid, 1, 1}, .block = {256, 1, 1}};
        uint32_t id;
        s = fl_workload_add_class(w, &load, &k, &id, d);
    }
    for (uint32_t lane = 0; !s && lane < o->streams * o->gpus; lane++) {
        fl_synth_stream draw = {.r = fl_random_seed(o->seed, lane)};
        draw.kind = (uint32_t)fl_random_below(&draw.r, o->kinds);
        uint32_t stream;
        s = fl_workload_add_stream(w, lane / o->streams, 0, (int32_t)(lane % o->streams), &stream, d);
        for (uint64_t i = share_of(o, lane); !s && i > 0; i--) {
            uint32_t which;
            int64_t gap, work;
            next_kernel(o, kind, &draw, &which, &gap, &work);
            s = fl_workload_add_op(w, stream, gap, work, which, d);
        }
    }
    if (!s)
        s = fl_workload_finish(w, windows, d);
    free(kind);
    if (s)
        fl_workload_free(w);
    else
        *out = w;
    return s;
}

static fl_status add_process(fl_kernel_trace *t, const char *name, int32_t process, uint64_t seed, double seconds,
                             double mean_us, fl_diag *d) {
    const uint32_t kind = fl_trace_add_kind(t, name, (uint32_t[3]){256, 1, 1}, (uint32_t[3]){256, 1, 1});
    fl_random r = fl_random_seed(seed, (uint64_t)process);
    const int64_t end = (int64_t)(seconds * 1e9);
    for (int64_t now = 0; now < end;) {
        const int64_t length = (int64_t)(mean_us * 1e3 * (0.8 + 0.4 * fl_random_unit(&r))) + 1;
        fl_trace_op op = {.start_ns = now,
                          .end_ns = now + length < end ? now + length : end,
                          .launch_ns = INT64_MIN,
                          .bytes = -1,
                          .kind = kind,
                          .process = process,
                          .host_thread = -1,
                          .type = FL_OP_KERNEL};
        if (kind == UINT32_MAX || fl_trace_add_op(t, &op))
            return fl_no_memory(d, "the mix");
        now = op.end_ns;
    }
    return FL_OK;
}

fl_status fl_synth_mix(const fl_kinds *kinds, uint64_t seed, double seconds, double mean_us, double sm_mhz,
                       double mem_mhz, fl_kernel_trace *t, fl_diag *d) {
    const fl_synth_options o = {.seed = seed};
    *t = (fl_kernel_trace){0};
    if (!(seconds > 0 && seconds <= 1e6) || !(mean_us >= 0.001 && mean_us <= 1e9) || seconds * 1e6 / mean_us > 1e8)
        return fl_refuse(d, "synth: %g s of kernels of %g us, expected 0.001 us and more, at most 1e8 of them", seconds,
                         mean_us);
    fl_status s =
        head(&o, &t->head, sm_mhz, mem_mhz) && fl_head_set(&t->head, "alone", "1") ? FL_OK : fl_no_memory(d, "the mix");
    int32_t process = 0;
    for (size_t i = 0; !s && i < kinds->count; i += fl_kinds_phases(kinds, &kinds->kind[i]))
        if (strcmp(kinds->kind[i].name, "*") != 0)
            s = add_process(t, kinds->kind[i].name, process++, seed, seconds, mean_us, d);
    if (!s && !process)
        s = fl_refuse(d, "synth: no named kind in the mix, expected one for each program");
    if (s)
        fl_kernel_trace_free(t);
    return s;
}
