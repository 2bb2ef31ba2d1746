#include "harness/live/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fl_gpus_close(fl_gpus *g) {
    if (g->self)
        g->back->close(g->self);
    *g = (fl_gpus){0};
}

bool fl_gpus_simulated(const fl_gpus *g) { return g->back->simulated && g->back->simulated(g->self); }

int fl_gpus_find(const fl_gpus *g, const char *unit) {
    for (uint32_t i = 0; i < g->back->count(g->self); i++)
        if (!strcmp(g->back->unit(g->self, i), unit))
            return (int)i;
    return -1;
}

bool fl_gpus_listed(const char *list, uint32_t index, const char *unit) {
    char number[16];
    snprintf(number, sizeof number, "%u", index);
    if (!list || !*list || !strcmp(list, "all"))
        return true;
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, ",");
        if ((strlen(number) == size && !strncmp(at, number, size)) ||
            (strlen(unit) == size && !strncmp(at, unit, size)))
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

static int rising(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x > y ? 1 : x < y ? -1 : 0;
}

uint32_t fl_gpus_ladder(int32_t *mhz, uint32_t count) {
    uint32_t kept = 0;
    if (count)
        qsort(mhz, count, sizeof *mhz, rising);
    for (uint32_t i = 0; i < count; i++)
        if (mhz[i] > 0 && (!kept || mhz[kept - 1] != mhz[i]))
            mhz[kept++] = mhz[i];
    return kept;
}
