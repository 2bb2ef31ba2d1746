#include "harness/study/compare/broken_out.h"

#include <string.h>

typedef struct tally { /* of a policy, by bit */
    const fl_row_result *first;
    size_t runs, broken[FL_PROMISES_MAX + 1], unknown[FL_PROMISES_MAX + 1];
} tally;

static tally count(const fl_comparison *c, uint32_t mean, size_t bits) {
    tally t = {0};
    for (size_t i = 0; i < c->mean_first; i++) {
        if (c->mean[i] != mean)
            continue;
        t.first = t.first ? t.first : &c->row[i];
        t.runs++;
        for (size_t bit = 0; bit < bits; bit++) {
            t.broken[bit] += c->row[i].broken >> bit & 1;
            t.unknown[bit] += c->row[i].unknown >> bit & 1;
        }
    }
    return t;
}

static void print_policy(const tally *t, const fl_comparison_options *o, FILE *out) {
    const fl_row_result *row = t->first;
    char text[FL_PROMISE_TEXT];
    size_t told = 0;
    for (size_t bit = 0; bit <= o->promises->count; bit++) {
        const struct {
            size_t runs;
            const char *word;
        } what[] = {{t->broken[bit], "breaks"}, {t->unknown[bit], "has no value for"}};
        for (size_t k = 0; k < FL_COUNT(what); k++) {
            if (!what[k].runs)
                continue;
            if (!told++)
                fprintf(out, "  %s%s%s%s", row->policy, row->variant ? " [" : "", row->variant ? row->variant : "",
                        row->variant ? "]" : "");
            fprintf(out, "%s %s %s", told > 1 ? "," : "", what[k].word,
                    fl_promises_name(o->promises, o->bound, bit, text));
            if (t->runs > 1)
                fprintf(out, " in %zu of %zu runs", what[k].runs, t->runs);
        }
    }
    if (told)
        fputc('\n', out);
}

/* A scene's rows begin with the default's; the static clock's stands right behind it. */
size_t fl_scenes_without_static(const fl_comparison *c, size_t *all, const char **first) {
    size_t none = 0;
    *all = 0;
    *first = NULL;
    for (size_t i = 0; i < c->mean_first; i++) {
        if (strcmp(c->row[i].policy, "baseline:default") != 0)
            continue;
        ++*all;
        if (i + 1 < c->mean_first && !strcmp(c->row[i + 1].policy, "baseline:static"))
            continue;
        if (!none++)
            *first = c->row[i].workload;
    }
    return none;
}

static void print_none(const fl_comparison *c, FILE *out) {
    const char *first;
    size_t scenes;
    const size_t none = fl_scenes_without_static(c, &scenes, &first);
    if (none)
        fprintf(out, "no static clock holds all bounds on %zu of %zu: %s%s\n", none, scenes, first,
                none > 1 ? " and others" : "");
}

void fl_broken_print(const fl_comparison *c, const fl_comparison_options *o, FILE *out) {
    size_t violated = 0;
    if (!o->promises || !o->promises->count)
        return;
    for (size_t i = 0; i < c->mean_first; i++)
        violated += c->row[i].violated > 0;
    fprintf(out, violated ? "\nviolated:\n" : "\nevery run holds all bounds\n");
    for (uint32_t k = 0; c->mean && k < c->count - c->mean_first; k++) {
        const tally t = count(c, k, o->promises->count + 1);
        print_policy(&t, o, out);
    }
    if (o->oracles)
        print_none(c, out);
}
