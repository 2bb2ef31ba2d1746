#include "harness/fit/policy/scenes.h"

#include "harness/base/work/pool.h"
#include "harness/input/scene/scenes_open.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    fl_scenes scenes;
    size_t first, *taken; /* taken: the chosen scenes */
    void *items;          /* the address of an array of *count items of `size` bytes, with space for `room` */
    size_t size, *count, room;
    const char *match;
    fl_fit_scene each;
    void *user;
} job;

static fl_status do_scene(void *user, size_t index, fl_diag *d) {
    job *j = user;
    return j->each(j->user, j->scenes.item[j->taken[index]], j->first + index, d);
}

static fl_status make_room(job *j, size_t count, fl_diag *d) {
    char *item;
    if (count && fl_grow(j->items, &j->room, j->first + count, j->size))
        return fl_no_memory(d, "the programs");
    memcpy(&item, j->items, sizeof item);
    if (count)
        memset(item + j->first * j->size, 0, count * j->size);
    *j->count += count;
    return FL_OK;
}

static fl_status do_file(const fl_scene_options *o, unsigned threads, job *j, fl_diag *d) {
    const fl_texts none = {0};
    size_t count = 0;
    fl_status s = fl_scenes_open(o, &none, &j->scenes, d);
    if (!s && !(j->taken = calloc(j->scenes.count + 1, sizeof *j->taken)))
        s = fl_no_memory(d, "the scenes");
    for (size_t i = 0; !s && i < j->scenes.count; i++)
        if (!j->match || fnmatch(j->match, j->scenes.item[i]->w->name, 0) == 0)
            j->taken[count++] = i;
    if (!s)
        s = make_room(j, count, d);
    if (!s)
        s = fl_pool_run(do_scene, j, count, threads, "runs", d);
    j->first += count;
    free(j->taken);
    fl_scenes_free(&j->scenes);
    return s;
}

fl_status fl_fit_scenes(const fl_scene_options *o, const char *match, const fl_texts *programs, unsigned threads,
                        void *items, size_t size, size_t *count, fl_fit_scene each, void *user, fl_diag *d) {
    job j = {.match = match, .items = items, .size = size, .count = count, .each = each, .user = user};
    if (!programs->count && !o->sweep)
        return fl_refuse(d, "no programs to train on, expected programs files or --sweep");
    fl_status s = o->sweep ? do_file(o, threads, &j, d) : FL_OK;
    for (size_t i = 0; !s && i < programs->count; i++) {
        fl_scene_options of_file = *o;
        of_file.sweep = NULL;
        of_file.programs = programs->item[i];
        s = do_file(&of_file, threads, &j, d);
    }
    if (!s && *count < FL_FIT_HELD_OUT)
        s = fl_refuse(d, "%zu programs, expected at least %d: every fifth serves only as a test", *count,
                      FL_FIT_HELD_OUT);
    return s;
}
