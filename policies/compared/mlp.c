#include "policies/compared/mlp.h"

#include <math.h>
#include <string.h>

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
