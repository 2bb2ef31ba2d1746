/* ODPP's model: Fourier transforms, the small network, readings, and the period with its lines. */
#include "policies/compared/inside.h"

#include "policies/compared/compared.h"
#include "policies/policy.h"
#include "policies/random.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FL_ODPP_TRACE_MAX_S 180.0 /* from here on no trace is made longer */
#define FL_ODPP_PERIODS 3.0       /* so many periods a trace should hold */

/* ---- Fourier transforms ---- */

static uint32_t least_factor(uint32_t n) {
    for (uint32_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* Decimation in time (Cooley and Tukey 1965): n samples, every `stride`-th of x, are p interleaved traces; their
 * transforms lie one after the other in out and are put together there. p is the least factor of n, so that a prime
 * length is a plain sum. */
static void transform(fl_fft *w, const double *x, uint32_t n, uint32_t stride, fl_complex *out) {
    if (n == 1) {
        *out = (fl_complex){*x, 0};
        return;
    }
    const uint32_t p = least_factor(n), m = n / p, all = n * stride;
    for (uint32_t r = 0; r < p; r++)
        transform(w, x + (uint64_t)r * stride, m, stride * p, out + (uint64_t)r * m);
    for (uint32_t k = 0; k < m; k++) {
        for (uint32_t q = 0; q < p; q++) {
            fl_complex sum = {0, 0};
            const uint32_t turn = (k + q * m) * stride; /* below all */
            for (uint32_t r = 0, at = 0; r < p; r++, at = at + turn < all ? at + turn : at + turn - all) {
                const fl_complex a = out[r * m + k], b = w->root[at];
                sum.re += a.re * b.re - a.im * b.im;
                sum.im += a.re * b.im + a.im * b.re;
            }
            w->part[q] = sum;
        }
        for (uint32_t q = 0; q < p; q++)
            out[q * m + k] = w->part[q];
    }
}

void fl_fft_magnitude(fl_fft *work, const double *x, uint32_t n, double *magnitude) {
    for (uint32_t i = 0; i < n; i++) {
        const double angle = 6.283185307179586 * i / n; /* both by cos: a compiler joins cos and sin into a call that
                                                           not every libm has */
        work->root[i] = (fl_complex){cos(angle), cos(angle + 1.5707963267948966)};
    }
    transform(work, x, n, 1, work->out);
    for (uint32_t k = 0; k <= n / 2; k++)
        magnitude[k] = hypot(work->out[k].re, work->out[k].im);
}

/* ---- the network ---- */

enum { LAYERS = 4, WIDEST = 92 };
static const uint32_t width[LAYERS + 1] = {FL_MLP_INPUTS, FL_MLP_1, FL_MLP_2, FL_MLP_3, 1};
static const double momentum = 0.1, least_variance = 1e-5;
static const double rate = 1e-3, beta_1 = 0.9, beta_2 = 0.999, least_root = 1e-8;

typedef struct course {              /* of one sample through the network */
    double normal[FL_MLP_INPUTS];    /* inputs over mean and deviation */
    double unit[LAYERS + 1][WIDEST]; /* of each layer; 0: scaled and shifted inputs */
} course;

static uint32_t first_weight(uint32_t layer) {
    uint32_t at = 2 * FL_MLP_INPUTS;
    for (uint32_t l = 1; l < layer; l++)
        at += (width[l - 1] + 1) * width[l];
    return at;
}

void fl_mlp_draw(fl_mlp *net, fl_random *random) {
    for (uint32_t i = 0; i < FL_MLP_INPUTS; i++) {
        net->value[i] = net->value[FL_MLP_TRAINED + FL_MLP_INPUTS + i] = 1;
        net->value[FL_MLP_INPUTS + i] = net->value[FL_MLP_TRAINED + i] = 0;
    }
    for (uint32_t layer = 1; layer <= LAYERS; layer++) {
        const double bound = 1 / sqrt(width[layer - 1]);
        double *w = &net->value[first_weight(layer)];
        for (uint32_t i = 0; i < (width[layer - 1] + 1) * width[layer]; i++)
            w[i] = bound * (2 * fl_random_unit(random) - 1);
    }
}

static double forward(const fl_mlp *net, const double *x, const double *mean, const double *variance, course *c) {
    for (uint32_t i = 0; i < FL_MLP_INPUTS; i++) {
        c->normal[i] = (x[i] - mean[i]) / sqrt(variance[i] + least_variance);
        c->unit[0][i] = net->value[i] * c->normal[i] + net->value[FL_MLP_INPUTS + i];
    }
    for (uint32_t layer = 1; layer <= LAYERS; layer++) {
        const uint32_t n = width[layer - 1];
        const double *w = &net->value[first_weight(layer)], *bias = w + n * width[layer];
        for (uint32_t k = 0; k < width[layer]; k++, w += n) {
            double sum = bias[k];
            for (uint32_t i = 0; i < n; i++)
                sum += w[i] * c->unit[layer - 1][i];
            c->unit[layer][k] = layer < LAYERS && sum < 0 ? 0 : sum;
        }
    }
    return c->unit[LAYERS][0];
}

double fl_mlp_predict(const fl_mlp *net, const double *x) {
    course c;
    return forward(net, x, &net->value[FL_MLP_TRAINED], &net->value[FL_MLP_TRAINED + FL_MLP_INPUTS], &c);
}

/* Adds the gradient of one sample; slope: of the loss by the output. */
static void backward(const fl_mlp *net, const course *c, double slope, double *gradient) {
    double after[WIDEST] = {slope}, before[WIDEST];
    for (uint32_t layer = LAYERS; layer >= 1; layer--) {
        const uint32_t n = width[layer - 1], at = first_weight(layer);
        const double *w = &net->value[at];
        double *g = &gradient[at], *bias = g + n * width[layer];
        memset(before, 0, sizeof before);
        for (uint32_t k = 0; k < width[layer]; k++) {
            bias[k] += after[k];
            for (uint32_t i = 0; after[k] != 0 && i < n; i++) {
                g[k * n + i] += after[k] * c->unit[layer - 1][i];
                before[i] += after[k] * w[k * n + i];
            }
        }
        for (uint32_t i = 0; i < n; i++) /* a unit at rest passes nothing on; inputs are not rectified */
            after[i] = layer == 1 || c->unit[layer - 1][i] > 0 ? before[i] : 0;
    }
    for (uint32_t i = 0; i < FL_MLP_INPUTS; i++) {
        gradient[i] += after[i] * c->normal[i];
        gradient[FL_MLP_INPUTS + i] += after[i];
    }
}

static void adam_step(fl_mlp *net, fl_mlp_adam *a) {
    a->steps++;
    const double first = 1 - pow(beta_1, (double)a->steps), second = 1 - pow(beta_2, (double)a->steps);
    for (uint32_t i = 0; i < FL_MLP_TRAINED; i++) {
        const double g = a->gradient[i];
        a->first[i] = beta_1 * a->first[i] + (1 - beta_1) * g;
        a->second[i] = beta_2 * a->second[i] + (1 - beta_2) * g * g;
        net->value[i] -= rate * (a->first[i] / first) / (sqrt(a->second[i] / second) + least_root);
    }
}

double fl_mlp_train(fl_mlp *net, fl_mlp_adam *adam, const double *x, const double *y, uint32_t count) {
    double mean[FL_MLP_INPUTS], variance[FL_MLP_INPUTS], loss = 0;
    double *running = &net->value[FL_MLP_TRAINED];
    for (uint32_t i = 0; i < FL_MLP_INPUTS; i++) {
        mean[i] = variance[i] = 0;
        for (uint32_t n = 0; n < count; n++)
            mean[i] += x[n * FL_MLP_INPUTS + i] / count;
        for (uint32_t n = 0; n < count; n++)
            variance[i] += pow(x[n * FL_MLP_INPUTS + i] - mean[i], 2) / count;
        const double unbiased = count > 1 ? variance[i] * count / (count - 1) : 0;
        running[i] += momentum * (mean[i] - running[i]);
        running[FL_MLP_INPUTS + i] += momentum * (unbiased - running[FL_MLP_INPUTS + i]);
    }
    memset(adam->gradient, 0, sizeof adam->gradient);
    for (uint32_t n = 0; n < count; n++) {
        course c;
        const double off = forward(net, &x[n * FL_MLP_INPUTS], mean, variance, &c) - y[n];
        loss += off * off / count;
        backward(net, &c, 2 * off / count, adam->gradient);
    }
    adam_step(net, adam);
    return loss;
}

/* ---- readings ---- */

int fl_readings_known(const fl_gpu_sample *s) {
    return (s->valid & FL_READINGS_NEEDS) == FL_READINGS_NEEDS && isfinite(s->value[FL_GPU_POWER_W]) &&
           isfinite(s->value[FL_GPU_UTIL_GPU_PCT]) && isfinite(s->value[FL_GPU_UTIL_MEM_PCT]);
}

void fl_readings_add(fl_readings *r, const fl_gpu_sample *s, int64_t now_ns) {
    if (r->count == FL_FFT_MAX || !fl_readings_known(s))
        return;
    if (r->count == 0)
        r->first_ns = now_ns;
    r->last_ns = now_ns;
    r->power_w[r->count] = (float)s->value[FL_GPU_POWER_W];
    r->gpu_pct[r->count] = (float)s->value[FL_GPU_UTIL_GPU_PCT];
    r->mem_pct[r->count++] = (float)s->value[FL_GPU_UTIL_MEM_PCT];
}

/* Seconds between samples, on average; 0 for fewer than two. */
static double spacing_s(const fl_readings *r) {
    return r->count > 1 ? (double)(r->last_ns - r->first_ns) * 1e-9 / (r->count - 1) : 0;
}

double fl_readings_length_s(const fl_readings *r) { return r->count * spacing_s(r); }

fl_readings_mean fl_readings_last(const fl_readings *r, double seconds) {
    const double spacing = spacing_s(r), wanted = spacing > 0 ? rint(seconds / spacing) : 1;
    const uint32_t count = (uint32_t)fmin(r->count, fmax(1, wanted));
    fl_readings_mean m = {0, 0, 0};
    for (uint32_t i = r->count - count; i < r->count; i++) {
        m.power_w += (double)r->power_w[i] / count;
        m.gpu_pct += (double)r->gpu_pct[i] / count;
        m.mem_pct += (double)r->mem_pct[i] / count;
    }
    return m;
}

double fl_readings_limit_w(const fl_gpu_facts *f) {
    return f->power_default_w > 0 ? f->power_default_w : f->power_max_w > 0 ? f->power_max_w : f->tdp_w;
}

/* ---- periods and lines ---- */

double fl_odpp_period_s(fl_fft *work, const fl_readings *r, double limit_w) {
    double x[FL_FFT_MAX], highest = 0;
    uint32_t best = 0;
    if (r->count < 2)
        return fl_readings_length_s(r);
    for (uint32_t i = 0; i < r->count; i++)
        x[i] = ((limit_w > 0 ? 100 * r->power_w[i] / limit_w : 0) + r->gpu_pct[i] + r->mem_pct[i]) / 3;
    fl_fft_magnitude(work, x, r->count, x);
    for (uint32_t k = 1; k + 1 <= r->count / 2; k++)
        if (x[k] > x[k - 1] && x[k] > x[k + 1] && x[k] > highest) {
            highest = x[k];
            best = k;
        }
    return fl_readings_length_s(r) / (best ? best : 1);
}

double fl_odpp_missing_s(double length_s, double period_s) {
    if (length_s >= FL_ODPP_PERIODS * period_s || length_s >= FL_ODPP_TRACE_MAX_S)
        return 0;
    return fmax(0.5 * period_s, FL_ODPP_PERIODS * period_s - length_s);
}

fl_odpp_run fl_odpp_measure(const fl_readings *r, double mhz, double period_s, double idle_w) {
    const fl_readings_mean m = fl_readings_last(r, period_s);
    return (fl_odpp_run){
        .mhz = mhz, .period_s = period_s, .power_w = m.power_w - idle_w, .gpu_pct = m.gpu_pct, .mem_pct = m.mem_pct};
}

double fl_odpp_quantity(const fl_odpp_run *run, int quantity) {
    return quantity == FL_ODPP_ENERGY ? run->power_w * run->period_s : run->period_s;
}

double fl_odpp_line(const fl_odpp_run *run, uint32_t count, int quantity, double mhz) {
    uint32_t i = 0;
    while (i + 2 < count && mhz > run[i + 1].mhz)
        i++;
    const double low = fl_odpp_quantity(&run[i], quantity);
    if (count < 2 || !(run[i + 1].mhz > run[i].mhz))
        return low;
    const double high = fl_odpp_quantity(&run[i + 1], quantity);
    return low + (high - low) * (mhz - run[i].mhz) / (run[i + 1].mhz - run[i].mhz);
}

void fl_odpp_inputs(double *x, double line, double mhz, double top_mhz, const fl_odpp_run *features) {
    x[0] = line;
    x[1] = mhz / top_mhz;
    x[2] = features->power_w;
    x[3] = features->gpu_pct;
    x[4] = features->mem_pct;
}
