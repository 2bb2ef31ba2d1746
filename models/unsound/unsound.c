#include "models/unsound/unsound.h"

#include <stdlib.h>

void fl_unsound_free(fl_unsound *found) {
    free(found->row);
    *found = (fl_unsound){0};
}

const char *fl_unsound_text(fl_unsound_kind kind) {
    static const char *const text[] = {"sound",
                                       "time and power are those of a lower clock: throttled, or not reached",
                                       "time and power are those of a higher clock: mislabelled",
                                       "no faster and no hotter than at the next lower clock: not reached",
                                       "out of line, and no clock explains it",
                                       "its clock is wrong in the whole sweep"};
    return text[kind];
}
