/* Servers of a language model and what is asked of them, read from their files: what a workload that serves borrows, so
 * that it lives as long as the scene. */
#pragma once

#include "harness/input/scene/serving_choice.h"
#include "traces/serving/serving.h"

typedef struct fl_serving_scene {
    char *path;        /* of the serving file */
    fl_serving stated; /* what it says */
    fl_step_law law;   /* made of it, for the servers, which are alike */
    fl_requests requests;
    uint32_t *gpu; /* of all servers, one server after the other */
    fl_serving_server *server;
    fl_server_facts *facts; /* for policies: setup.server_count */
    fl_serving_setup setup; /* points into this struct, which is not to be moved */
} fl_serving_scene;

/* *out is to be freed with fl_serving_scene_free, also where it fails. After fl_serving_choice_check. FL_BAD_INPUT with
 * file and line of what is wrong. */
fl_status fl_serving_scene_open(const fl_serving_choice *c, fl_serving_scene **out, fl_diag *d);
void fl_serving_scene_free(fl_serving_scene *s); /* takes NULL */

/* GPUs of all servers together. */
uint32_t fl_serving_scene_gpus(const fl_serving_scene *s);

/* What every result says of the law: at which clocks it was measured, or that it was not, of which GPU, from what, and
 * how wrong it is; into buf. Returns buf. */
char *fl_serving_scene_clocks(const fl_serving_scene *s, char *buf, size_t size);
