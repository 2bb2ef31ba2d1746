#include "harness/input/scene/programs.h"

#include "harness/base/work/pool.h"
#include "harness/input/scene/kernels.h"
#include "sim/synth/apps.h"
#include "traces/files/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BRIEF_S 1.0 /* of a program that is built only to see that it can be */

typedef struct program_jobs { /* programs are made side by side: each is a job */
    const fl_scene_options *o;
    fl_program_set *set;
    size_t *index;    /* of the program of each job */
    fl_scene **scene; /* of each job */
} program_jobs;

static fl_status make_program(void *user, size_t job, fl_diag *d) {
    const program_jobs *j = user;
    const fl_scene_options *o = j->o;
    const fl_programs *p = &j->set->p;
    const size_t i = j->index[job];
    const bool briefly = o->hold == FL_SCENES_IN_TURN && !o->arrivals && !(o->seconds > 0 && o->seconds < 10 * BRIEF_S);
    fl_scene_origin from = {.kinds = fl_program_set_kinds(j->set),
                            .set = p,
                            .index = i,
                            .seed = (uint64_t)o->seed,
                            .seconds = briefly ? BRIEF_S : o->seconds};
    fl_scene *scene = j->scene[job];
    fl_status s = FL_OK;
    if (j->set->kinds_path && !(scene->kinds = strdup(j->set->kinds_path)))
        s = fl_no_memory(d, NULL);
    if (!s)
        s = fl_scene_from_kernels(o, scene, p->names[p->programs[i]], &p->head, &from, d);
    fl_scene_origin_free(&from);
    return s;
}

/* Drawn for the platform's first GPU, from a seed and nothing else. */
static fl_status draw_applications(const fl_scene_options *o, fl_programs *p, fl_kinds *k, fl_diag *d) {
    fl_platform platform;
    fl_status s = fl_platform_open(o->platform, 0, &platform, d);
    if (s)
        return s;
    s = fl_synth_apps(&platform.node.device[0], (uint32_t)o->applications, (uint64_t)o->application_seed, p, k, d);
    fl_platform_free(&platform);
    return s;
}

static fl_status read_set(const fl_scene_options *o, fl_program_set **out, fl_diag *d) {
    fl_program_set *set = *out = calloc(1, sizeof *set);
    if (!set)
        return fl_no_memory(d, NULL);
    set->users = 1;
    set->has_kinds = o->applications > 0;
    if (set->has_kinds)
        return draw_applications(o, &set->p, &set->kinds, d);
    fl_status s = fl_programs_read(o->programs, &set->p, d);
    if (!s && (set->kinds_path = fl_scene_kinds_path(o->kinds, o->programs, &set->p.head))) {
        s = fl_kinds_read(set->kinds_path, &set->kinds, d);
        set->has_kinds = true;
    }
    return s;
}

fl_status fl_scenes_from_programs(const fl_scene_options *o, fl_scenes *all, fl_diag *d) {
    program_jobs j = {.o = o};
    size_t jobs = 0;
    char seed[24];
    const char *source = o->applications ? "drawn applications" : o->programs;
    snprintf(seed, sizeof seed, "%lld", (long long)o->application_seed);
    fl_status status = read_set(o, &j.set, d);
    const fl_programs *p = status ? NULL : &j.set->p;
    if (!status)
        status = fl_scene_check_wanted(&o->only, source, p->names, p->programs, p->program_count, d);
    if (!status) {
        j.index = calloc(p->program_count, sizeof *j.index);
        j.scene = calloc(p->program_count, sizeof *j.scene);
        status = j.index && j.scene ? FL_OK : fl_no_memory(d, NULL);
    }
    for (size_t i = 0; !status && i < p->program_count; i++)
        if (fl_scene_wanted(&o->only, p->names[p->programs[i]])) {
            j.index[jobs] = i;
            status = fl_scene_add(all, source, &j.scene[jobs++], d);
            if (!status && o->applications && !(j.scene[jobs - 1]->applications = strdup(seed)))
                status = fl_no_memory(d, NULL);
            if (!status && o->hold != FL_SCENES_AT_ONCE)
                status = fl_scene_make_again(j.scene[jobs - 1], o, j.set, i, d);
        }
    if (!status)
        status = fl_pool_run(make_program, &j, jobs, 0, "programs", d);
    free(j.index);
    free(j.scene);
    fl_program_set_leave(j.set);
    return status;
}
