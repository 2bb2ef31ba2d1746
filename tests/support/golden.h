/* Golden cases: a text that must come out as it is kept in tests/golden/, or is kept anew with FL_BLESS=1. */
#pragma once

#include "tests/support/suite.h"

static inline void fl_golden_check(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s", FL_ROOT, name);
    if (fl_blessing()) {
        FILE *out = fopen(path, "w");
        FL_CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0, "cannot write %s", path);
        return;
    }
    FILE *in = fopen(path, "r");
    FL_CHECK(in != NULL, "cannot open %s (FL_BLESS=1 writes it)", path);
    const size_t room = strlen(text) + 4096;
    char *kept = in ? calloc(room, 1) : NULL;
    if (kept) {
        fread(kept, 1, room - 1, in);
        size_t same = 0, line = 1;
        while (text[same] && text[same] == kept[same])
            line += text[same++] == '\n';
        FL_CHECK(strcmp(text, kept) == 0, "%s differs from line %zu on", name, line);
    }
    free(kept);
    if (in)
        fclose(in);
}
