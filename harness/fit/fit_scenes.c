#include "harness/fit/fit_scenes.h"

#include "harness/base/pool.h"
#include "harness/input/scenes_open.h"

#include <fnmatch.h>
#include <stdlib.h>

typedef struct job {
    fl_scenes scenes;
    size_t first, *taken; /* taken: the chosen scenes */
    const char *match;
    fl_fit_scene each;
    void *user;
} job;

static fl_status do_scene(void *user, size_t index, fl_diag *d) {
    job *j = user;
    return j->each(j->user, j->scenes.item[j->taken[index]], j->first + index, d);
}

static fl_status do_file(const fl_scene_options *o, unsigned threads, fl_fit_room room, job *j, fl_diag *d) {
    const fl_texts none = {0};
    size_t count = 0;
    fl_status s = fl_scenes_open(o, &none, &j->scenes, d);
    if (!s && !(j->taken = calloc(j->scenes.count + 1, sizeof *j->taken)))
        s = fl_no_memory(d, "the scenes");
    for (size_t i = 0; !s && i < j->scenes.count; i++)
        if (!j->match || fnmatch(j->match, j->scenes.item[i]->w->name, 0) == 0)
            j->taken[count++] = i;
    if (!s)
        s = room(j->user, count, d);
    if (!s)
        s = fl_pool_run(do_scene, j, count, threads, "runs", d);
    j->first += count;
    free(j->taken);
    fl_scenes_free(&j->scenes);
    return s;
}

fl_status fl_fit_scenes(const fl_scene_options *o, const char *match, const fl_texts *programs, unsigned threads,
                        fl_fit_room room, fl_fit_scene each, void *user, fl_diag *d) {
    job j = {.match = match, .each = each, .user = user};
    if (!programs->count && !o->sweep)
        return fl_refuse(d, "no programs to train on, expected programs files or --sweep");
    fl_status s = o->sweep ? do_file(o, threads, room, &j, d) : FL_OK;
    for (size_t i = 0; !s && i < programs->count; i++) {
        fl_scene_options of_file = *o;
        of_file.sweep = NULL;
        of_file.programs = programs->item[i];
        s = do_file(&of_file, threads, room, &j, d);
    }
    return s;
}
