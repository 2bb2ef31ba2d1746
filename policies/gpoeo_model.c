#include "policies/gpoeo_model.h"

static int has(const char *text, const char *part) {
    for (; *text; text++) {
        uint32_t i = 0;
        while (part[i] && (text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 'a' - 'A' : text[i]) == part[i])
            i++;
        if (!part[i])
            return 1;
    }
    return 0;
}

fl_gpoeo_pipe fl_gpoeo_pipe_of(const char *name) {
    static const char *const fp64[] = {"dgemm", "double", "fp64", "f64"}, *const tensor[] = {"gemm", "conv",
                                                                                             "attention", "mma"};
    for (uint32_t i = 0; i < FL_COUNT(fp64); i++)
        if (has(name, fp64[i]))
            return FL_GPOEO_FP64_PIPE;
    for (uint32_t i = 0; i < FL_COUNT(tensor); i++)
        if (has(name, tensor[i]))
            return FL_GPOEO_TENSOR_PIPE;
    return FL_GPOEO_OTHER_PIPE;
}
