#include "harness/report/data/sensitivity.h"

#include "traces/io/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_line(const void *a, const void *b) {
    const fl_study_point *p = a, *q = b;
    return p->line != q->line ? (p->line > q->line) - (p->line < q->line) : (p->x > q->x) - (p->x < q->x);
}

/* The label's other settings, as text. Returns false if the named one is missing or not a number. */
static bool split(const char *label, const char *name, double *x, char *rest, size_t size) {
    char key[64], value[64];
    bool found = false;
    size_t used = 0;
    rest[0] = 0;
    for (size_t i = 0; fl_label_setting(label, i, key, value); i++) {
        if (!strcmp(key, name))
            found = fl_real_parse(value, x) == FL_NUMBER_OK;
        else if (used < size)
            used += (size_t)snprintf(rest + used, size - used, "%s%s=%s", used ? ", " : "", key, value);
    }
    return found;
}

static fl_status collect(const fl_summary *s, fl_study *t, fl_diag *d) {
    fl_status st = FL_OK;
    t->point = calloc(s->count + 1, sizeof *t->point);
    if (!t->point)
        return fl_no_memory(d, "the report");
    for (size_t i = 0; !st && i < s->count; i++) {
        char family[128], rest[512];
        double x;
        const char *label = fl_summary_name(s, i);
        if (isnan(s->item[i].merit.mean) || strcmp(fl_label_family(label, family), t->family) != 0 ||
            !split(label, t->name, &x, rest, sizeof rest))
            continue;
        st = fl_names_index(&t->rest, rest, &t->point[t->count].line, d);
        t->point[t->count].x = x;
        t->point[t->count++].item = i;
    }
    qsort(t->point, t->count, sizeof *t->point, by_line);
    return st;
}

static bool worth_it(const fl_study *t) { /* some line has two different values */
    for (size_t i = 1; i < t->count; i++)
        if (t->point[i].line == t->point[i - 1].line && t->point[i].x != t->point[i - 1].x)
            return true;
    return false;
}

void fl_studies(const fl_summary *s, void (*each)(void *user, const fl_study *t), void *user) {
    fl_names done = {0};
    for (size_t i = 0; i < s->count; i++) {
        char family[128], name[64], value[64], key[256];
        const char *label = fl_summary_name(s, i);
        fl_label_family(label, family);
        for (size_t k = 0; fl_label_setting(label, k, name, value); k++) {
            const size_t before = done.count;
            size_t index;
            snprintf(key, sizeof key, "%s:%s", family, name);
            if (fl_names_index(&done, key, &index, NULL) || done.count == before)
                continue;
            fl_study t = {.family = family};
            snprintf(t.name, sizeof t.name, "%s", name);
            if (!collect(s, &t, NULL) && worth_it(&t))
                each(user, &t);
            fl_names_free(&t.rest);
            free(t.point);
        }
    }
    fl_names_free(&done);
}
