/* Chips of which each was fitted without a part of the workloads. Their errors on that part show how well a chip
 * predicts a workload that it has never seen. Residuals, or a prior without one workload, look better than the truth,
 * since the numbers that all workloads share were fitted to that workload too. */
#include "models/chip/parts.h"

#include <stdlib.h>
#include <string.h>

/* Neighbours are often one benchmark at several sizes, so a fold leaves them out together. The first of each such block
 * is tested. */
static size_t block(size_t spans) { return (spans - 1) / FL_CHIP_TESTED + 1; }

fl_model_status fl_chip_folds_make(size_t spans, fl_chip_folds *f) {
    *f = (fl_chip_folds){.spans = spans};
    if (spans < FL_CHIP_FOLDS)
        return FL_MODEL_OK;
    f->chip[0] = malloc((size_t)2 * FL_CHIP_FOLDS * sizeof *f->chip[0]);
    f->chip[1] = f->chip[0] ? f->chip[0] + FL_CHIP_FOLDS : NULL;
    return f->chip[0] ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
}

void fl_chip_folds_free(fl_chip_folds *f) {
    free(f->chip[0]);
    *f = (fl_chip_folds){0};
}

fl_model_status fl_chip_folds_fit(const fl_chip_row *row, const fl_chip_span *span, fl_chip_law law, fl_chip_folds *f) {
    const size_t rows = span[f->spans - 1].first + span[f->spans - 1].count;
    fl_chip_row *in = malloc(rows * sizeof *in);
    fl_chip_span *of = malloc(f->spans * sizeof *of);
    fl_model_status s = in && of ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t fold = 0; s == FL_MODEL_OK && !f->fitted[law] && fold < FL_CHIP_FOLDS; fold++) {
        size_t n = 0, kept = 0;
        for (size_t k = 0; k < f->spans; k++)
            if (fl_chip_fold_of(f, k) != fold) {
                memcpy(in + kept, row + span[k].first, span[k].count * sizeof *in);
                of[n++] = (fl_chip_span){kept, span[k].count};
                kept += span[k].count;
            }
        s = fl_chip_fit_laws(in, of, n, law, &f->chip[law][fold]);
    }
    f->fitted[law] = s == FL_MODEL_OK;
    free(in);
    free(of);
    return s;
}

size_t fl_chip_fold_of(const fl_chip_folds *f, size_t k) { return k / block(f->spans) % FL_CHIP_FOLDS; }

int fl_chip_fold_tests(const fl_chip_folds *f, size_t k) { return k % block(f->spans) == 0; }
