/* The subjects of advice: how they begin and end, and what to measure of those that ran at one clock. */
#include "harness/advise/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_advise_subject *fl_advise_add(fl_advise_subjects *s, const char *name) {
    fl_must_grow(&s->item, &s->room, s->count + 1, sizeof *s->item);
    fl_advise_subject *to = &s->item[s->count++];
    *to = (fl_advise_subject){.name = fl_must(strdup(name)), .gpu = -1};
    return to;
}

#define PROBE 0.7    /* share of the top clock: with the top, a run there tells most of the clocks in between */
#define NEAR_TOP 0.9 /* of a run above this share of the top clock */
#define LADDER 15.0  /* MHz; the step of most boards' ladders */

fl_setting_clocks fl_advise_to_measure(const fl_log_run *run, double top_mhz, const fl_device *dev) {
    double best = NAN;
    const double mem_mhz = dev ? dev->default_mem_mhz : run->mem_mhz;
    top_mhz = dev ? dev->default_sm_mhz : top_mhz;
    if (run->sm_mhz < NEAR_TOP * top_mhz)
        return (fl_setting_clocks){top_mhz, mem_mhz, 0};
    for (uint32_t i = 0; dev && i < dev->sm_count; i++)
        if (!(fabs(dev->sm_mhz[i] - PROBE * top_mhz) >= fabs(best - PROBE * top_mhz)))
            best = dev->sm_mhz[i];
    return (fl_setting_clocks){dev ? best : LADDER * round(PROBE * top_mhz / LADDER), mem_mhz, 0};
}

fl_advise_subject *fl_advise_add_unknown(fl_advise_subjects *s, const char *name, const char *why,
                                         fl_setting_clocks next) {
    fl_advise_subject *to = fl_advise_add(s, name);
    to->why = fl_must(strdup(why));
    to->next_known = true;
    to->next = next;
    return to;
}

bool fl_advise_rests(const fl_advise_subjects *s, const char *note) {
    for (size_t i = 0; i < s->rest_count; i++)
        if (!strcmp(s->rests[i], note))
            return true;
    return false;
}

void fl_advise_doubt(fl_advise_subjects *s, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = NULL;
    fl_must_have(vasprintf(&text, format, list) >= 0);
    va_end(list);
    FL_ADVISE_REST(s, "%s", text);
    free(text);
    text = s->rests[s->rest_count - 1];
    memmove(s->rests + s->doubts + 1, s->rests + s->doubts, (s->rest_count - 1 - s->doubts) * sizeof *s->rests);
    s->rests[s->doubts++] = text;
}

void fl_advise_note_platform(fl_advise_subjects *s, const fl_platform *p) {
    s->several_memories = p && p->node.device[p->node.gpu[0]].mem_count > 1;
    if (p)
        FL_ADVISE_REST(s, "platform %s: its laws of time and power as they are", p->name);
}

static void free_all(char **text, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(text[i]);
    free(text);
}

void fl_advise_drop(fl_advise_subjects *s, size_t count) {
    for (size_t i = count; i < s->count; i++) {
        fl_advise_subject *of = &s->item[i];
        free(of->name);
        free(of->why);
        free(of->lock);
        free(of->measured);
        free_all(of->file, of->files);
        free_all(of->rests, of->rest_count);
        for (size_t k = 0; k < of->cases; k++)
            fl_stated_free(&of->of[k].stated);
    }
    s->count = count;
}

void fl_advise_close(fl_advise_subjects *s) {
    fl_advise_drop(s, 0);
    free_all(s->rests, s->rest_count);
    free_all(s->aside, s->aside_count);
    free(s->item);
    free(s->device);
    *s = (fl_advise_subjects){0};
}
