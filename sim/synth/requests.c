#include "sim/synth/requests.h"

#include "policies/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
