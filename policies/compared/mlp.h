/* The small network of ODPP: five inputs, batch norm over them, hidden layers of 46, 92 and 92 rectified units, one
 * output; trained by Adam on the mean squared error. What ODPP's text leaves open is as PyTorch has it by default:
 * batch norm with momentum 0.1 and 1e-5 under the root, Adam with 1e-3, 0.9, 0.999 and 1e-8, first weights uniform
 * within 1 / sqrt(inputs of the layer).
 *
 * The network is plain bytes, an array of numbers: scale and shift of the batch norm; then for each layer the weights,
 * row by row with one row for each of its units, and the biases; last, running mean and variance of the inputs. */
#pragma once

#include "policies/random.h"

#include <stdint.h>

enum {
    FL_MLP_INPUTS = 5,
    FL_MLP_1 = 46,
    FL_MLP_2 = 92,
    FL_MLP_3 = 92,
    FL_MLP_TRAINED = 2 * FL_MLP_INPUTS + (FL_MLP_INPUTS + 1) * FL_MLP_1 + (FL_MLP_1 + 1) * FL_MLP_2 +
                     (FL_MLP_2 + 1) * FL_MLP_3 + FL_MLP_3 + 1, /* numbers that a gradient moves */
    FL_MLP_SIZE = FL_MLP_TRAINED + 2 * FL_MLP_INPUTS
};

typedef struct fl_mlp {
    double value[FL_MLP_SIZE];
} fl_mlp;

typedef struct fl_mlp_adam { /* zeroed: before the first step */
    double gradient[FL_MLP_TRAINED], first[FL_MLP_TRAINED], second[FL_MLP_TRAINED];
    uint64_t steps;
} fl_mlp_adam;

void fl_mlp_draw(fl_mlp *net, fl_random *random); /* first weights */

/* The output for FL_MLP_INPUTS inputs, by the running mean and variance. */
double fl_mlp_predict(const fl_mlp *net, const double *x);

/* One step of Adam on one batch: x has `count` rows of FL_MLP_INPUTS, y `count` numbers, count >= 1. The batch norm
 * uses mean and variance of the batch, and moves the running ones towards them. Returns the mean squared error before
 * it. */
double fl_mlp_train(fl_mlp *net, fl_mlp_adam *adam, const double *x, const double *y, uint32_t count);
