/* The network of ODPP: its gradient against differences, batch norm and Adam against numbers worked out by hand, and
 * that it learns. */
#include "policies/compared/compared.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

enum { ROWS = 8 };

static fl_mlp net, moved;
static fl_mlp_adam adam;

static void draw_batch(double *x, double *y) {
    fl_random r = fl_random_seed(11, 0);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < FL_MLP_INPUTS; k++)
            x[i * FL_MLP_INPUTS + k] = 10 * k + (k + 1) * fl_random_normal(&r);
        y[i] = x[i * FL_MLP_INPUTS] + 0.5 * x[i * FL_MLP_INPUTS + 2];
    }
}

/* The loss of a batch as training sees it, without moving anything: a copy takes the step. */
static double loss_of(const fl_mlp *of, const double *x, const double *y, uint32_t count) {
    static fl_mlp copy;
    static fl_mlp_adam fresh;
    copy = *of;
    memset(&fresh, 0, sizeof fresh);
    return fl_mlp_train(&copy, &fresh, x, y, count);
}

static void test_gradient(void) {
    double x[ROWS * FL_MLP_INPUTS], y[ROWS];
    fl_random r = fl_random_seed(3, 1);
    draw_batch(x, y);
    fl_mlp_draw(&net, &r);
    moved = net;
    memset(&adam, 0, sizeof adam);
    fl_mlp_train(&moved, &adam, x, y, ROWS);
    for (uint32_t i = 0; i < FL_MLP_TRAINED; i++) { /* Adam's first step is the rate long, whatever the gradient */
        const double moves = net.value[i] - moved.value[i], g = adam.gradient[i];
        FL_CHECK(fabs(g) < 1e-4 || fabs(moves - (g > 0 ? 1e-3 : -1e-3)) < 1e-6, "number %u: a step of %g", i, moves);
    }
    for (uint32_t i = 0; i < FL_MLP_TRAINED; i += i < 40 ? 1 : 211) {
        static fl_mlp near;
        const double step = 1e-6;
        near = net;
        near.value[i] += step;
        const double up = loss_of(&near, x, y, ROWS);
        near.value[i] -= 2 * step;
        const double slope = (up - loss_of(&near, x, y, ROWS)) / (2 * step);
        /* a loss of order 1e3 in doubles: the difference is good to about 1e-6 */
        FL_CHECK(fabs(adam.gradient[i] - slope) < 1e-4 * (1 + fabs(slope)), "number %u: gradient %g, difference %g", i,
                 adam.gradient[i], slope);
    }
}

/* First weights and biases lie within 1 / sqrt(inputs of their layer), and reach far towards it. */
static void test_draw(void) {
    static const uint32_t inputs[] = {FL_MLP_INPUTS, FL_MLP_1, FL_MLP_2, FL_MLP_3}, units[] = {46, 92, 92, 1};
    fl_random r = fl_random_seed(5, 1);
    memset(&net, 0, sizeof net);
    fl_mlp_draw(&net, &r);
    uint32_t at = 2 * FL_MLP_INPUTS;
    for (int layer = 0; layer < 4; layer++) {
        const double bound = 1 / sqrt(inputs[layer]);
        double low = INFINITY, high = -INFINITY;
        for (uint32_t end = at + (inputs[layer] + 1) * units[layer]; at < end; at++) {
            FL_CHECK(net.value[at] != 0, "number %u is not drawn", at);
            low = fmin(low, net.value[at]);
            high = fmax(high, net.value[at]);
        }
        FL_CHECK(low >= -bound && low < -0.9 * bound && high <= bound && high > 0.9 * bound,
                 "layer %d: from %g to %g, expected within %g", layer, low, high, bound);
    }
}

/* All weights zero: the output is the last bias, whatever comes in. */
static void test_adam(void) {
    double x[ROWS * FL_MLP_INPUTS], y[ROWS];
    draw_batch(x, y);
    memset(&net, 0, sizeof net);
    memset(&adam, 0, sizeof adam);
    for (int i = 0; i < ROWS; i++)
        y[i] = 10;
    double *bias = &net.value[FL_MLP_TRAINED - 1];
    FL_CHECK(fl_mlp_train(&net, &adam, x, y, ROWS) == 100, "mean squared error");
    FL_CHECK(fabs(*bias - 1e-3) < 1e-10, "first step: %.12g, expected the rate", *bias);
    fl_mlp_train(&net, &adam, x, y, ROWS);
    /* gradients -20 and -19.998: m = 0.9 * 2 + 1.9998, v = 0.999 * 0.4 + 0.39992, over 0.19 and 0.001999 */
    const double m = (0.9 * 2 + 0.1 * 19.998) / 0.19, v = (0.999 * 0.4 + 0.001 * 19.998 * 19.998) / 0.001999;
    FL_CHECK(fabs(*bias - 1e-3 - 1e-3 * m / (sqrt(v) + 1e-8)) < 1e-12, "second step: %.12g", *bias);
}

static void test_batch_norm(void) {
    static const double x[3 * FL_MLP_INPUTS] = {1, 0, 0, 0, 7, 2, 0, 0, 0, 7, 6, 0, 0, 0, 7}, y[3] = {0};
    fl_random r = fl_random_seed(4, 0);
    fl_mlp_draw(&net, &r);
    memset(&adam, 0, sizeof adam);
    const double *mean = &net.value[FL_MLP_TRAINED], *variance = mean + FL_MLP_INPUTS;
    FL_CHECK(mean[0] == 0 && variance[0] == 1 && net.value[0] == 1 && net.value[FL_MLP_INPUTS] == 0, "at first");
    fl_mlp_train(&net, &adam, x, y, 3);
    /* mean 3, unbiased variance (4 + 1 + 9) / 2 = 7; a tenth of the way */
    FL_CHECK(fabs(mean[0] - 0.3) < 1e-12 && fabs(variance[0] - 1.6) < 1e-12, "mean %g, variance %g", mean[0],
             variance[0]);
    FL_CHECK(fabs(mean[4] - 0.7) < 1e-12 && fabs(variance[4] - 0.9) < 1e-12, "of a constant: %g, %g", mean[4],
             variance[4]);
}

/* Prediction uses the running numbers: the same row alone or in any company. */
static void test_predict(void) {
    double x[FL_MLP_INPUTS] = {1, 2, 3, 4, 5}, shifted[FL_MLP_INPUTS];
    fl_random r = fl_random_seed(6, 0);
    fl_mlp_draw(&net, &r);
    const double before = fl_mlp_predict(&net, x);
    for (int i = 0; i < FL_MLP_INPUTS; i++) {
        net.value[FL_MLP_TRAINED + i] = 10;
        net.value[FL_MLP_TRAINED + FL_MLP_INPUTS + i] = 4 * (1 + 1e-5) - 1e-5;
        shifted[i] = 10 + 2 * x[i];
    }
    FL_CHECK(fabs(fl_mlp_predict(&net, shifted) - before) < 1e-9, "%g, expected %g", fl_mlp_predict(&net, shifted),
             before);
}

/* In training the batch's own mean and deviation count: another unit of the inputs changes nothing. */
static void test_units(void) {
    double x[ROWS * FL_MLP_INPUTS], y[ROWS];
    fl_random r = fl_random_seed(9, 0);
    draw_batch(x, y);
    fl_mlp_draw(&net, &r);
    for (int i = 0; i < ROWS * FL_MLP_INPUTS; i++)
        x[i] *= 1e4; /* so that 1e-5 under the root is nothing */
    const double before = loss_of(&net, x, y, ROWS);
    for (int i = 0; i < ROWS * FL_MLP_INPUTS; i++)
        x[i] = 700 + 3 * x[i];
    FL_CHECK(fabs(loss_of(&net, x, y, ROWS) - before) < 1e-9 * before, "%.12g, expected %.12g",
             loss_of(&net, x, y, ROWS), before);
}

/* One unit of each layer passes the first input on; below zero it rests. The output does not. */
static void test_rectified(void) {
    const double up[FL_MLP_INPUTS] = {2}, down[FL_MLP_INPUTS] = {-2};
    memset(&net, 0, sizeof net);
    net.value[0] = 1;
    net.value[FL_MLP_TRAINED + FL_MLP_INPUTS] = 1 - 1e-5;
    uint32_t at = 2 * FL_MLP_INPUTS;
    static const uint32_t inputs[] = {FL_MLP_INPUTS, FL_MLP_1, FL_MLP_2, FL_MLP_3}, units[] = {46, 92, 92, 1};
    for (int layer = 0; layer < 4; layer++) {
        net.value[at] = layer == 3 ? -1 : 1;
        at += (inputs[layer] + 1) * units[layer];
    }
    FL_CHECK(at == FL_MLP_TRAINED, "%u numbers of %d", at, FL_MLP_TRAINED);
    FL_CHECK(fabs(fl_mlp_predict(&net, up) + 2) < 1e-12 && fl_mlp_predict(&net, down) == 0, "%g and %g",
             fl_mlp_predict(&net, up), fl_mlp_predict(&net, down));
}

static void test_learns(void) {
    double x[ROWS * FL_MLP_INPUTS], y[ROWS];
    fl_random r = fl_random_seed(7, 0);
    draw_batch(x, y);
    fl_mlp_draw(&net, &r);
    memset(&adam, 0, sizeof adam);
    const double before = fl_mlp_train(&net, &adam, x, y, ROWS);
    for (int i = 0; i < 400; i++)
        fl_mlp_train(&net, &adam, x, y, ROWS);
    const double after = fl_mlp_train(&net, &adam, x, y, ROWS);
    FL_CHECK(after < before / 100, "from %g to %g in 400 steps", before, after);
}

FL_SUITE("mlp", {"first weights", test_draw}, {"gradient", test_gradient}, {"Adam", test_adam},
         {"batch norm", test_batch_norm}, {"prediction", test_predict}, {"units of the inputs", test_units},
         {"rectified", test_rectified}, {"it learns", test_learns})
