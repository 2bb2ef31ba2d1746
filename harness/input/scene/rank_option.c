#include "harness/input/scene/rank_option.h"

#include "sim/pipeline/straggler.h"
#include "traces/io/numbers.h"

#include <string.h>

fl_status fl_rank_value_parse(const char *what, const char *text, uint32_t *rank, double *value, fl_diag *d) {
    const char *colon = strchr(text, ':');
    char number[24];
    int64_t n = -1;
    if (!strncmp(text, "rank=", 5) && colon && (size_t)(colon - text) < sizeof number + 5) {
        memcpy(number, text + 5, (size_t)(colon - text) - 5);
        number[colon - text - 5] = 0;
        if (fl_int_parse(number, &n) == FL_NUMBER_OK && n >= 0 && n < FL_PIPELINE_RANKS_MAX &&
            fl_real_parse(colon + 1, value) == FL_NUMBER_OK && *value > 0 && *value < 1e9) {
            *rank = (uint32_t)n;
            return FL_OK;
        }
    }
    return fl_refuse(d, "%s is '%s', expected rank=R:X, such as rank=3:%s", what, text,
                     strcmp(what, "--slow") == 0 ? "1.2" : "250");
}

fl_status fl_pipeline_slow_down(fl_pipeline *p, const fl_texts *slow, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && slow && i < slow->count; i++) {
        uint32_t rank;
        double factor;
        fl_pipeline slower;
        s = fl_rank_value_parse("--slow", slow->item[i], &rank, &factor, d);
        if (!s)
            s = fl_pipeline_slowed(p, rank, factor, &slower, d);
        if (!s) {
            fl_pipeline_free(p);
            *p = slower;
        }
    }
    return s;
}
