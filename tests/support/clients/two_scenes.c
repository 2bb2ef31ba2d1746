/* Two threads, each with a scene of its own, and then both over one scene: the results are those of one thread. */
#include <foldline.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct task {
    char file[4096];
    const char *platform, *policy;
    const foldline_scene *scene; /* NULL: opens its own */
    double energy_j;
} task;

static void *work(void *arg) {
    task *t = arg;
    const foldline_options options = {.platform = t->platform};
    const foldline_run_options how = {.policy = t->policy, .every_s = 0.01};
    foldline_scene *own = NULL;
    foldline_result r;
    foldline_error e;
    if ((!t->scene && foldline_open(t->file, &options, &own, &e)) ||
        foldline_run(t->scene ? t->scene : own, &how, &r, &e)) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    t->energy_j = r.energy_j;
    foldline_result_free(&r);
    foldline_close(own);
    return NULL;
}

static void both(task *t) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, work, &t[i]))
            exit(1);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv) {
    task t[2] = {{.platform = "generic", .policy = "assure"}, {.platform = "v100-300w", .policy = "utilizscale"}};
    foldline_scene *scene;
    foldline_error e;
    double alone[2];
    if (argc != 2)
        return 2;
    for (int i = 0; i < 2; i++) {
        snprintf(t[i].file, sizeof t[i].file, "%s/%s", argv[1], i ? "launches.csv" : "mix8.csv");
        work(&t[i]);
        alone[i] = t[i].energy_j;
    }
    both(t);
    if (t[0].energy_j != alone[0] || t[1].energy_j != alone[1])
        return 1;
    const foldline_options options = {.platform = "v100-300w"};
    if (foldline_open(t[1].file, &options, &scene, &e))
        return 1;
    t[0].scene = t[1].scene = scene;
    t[0].policy = t[1].policy;
    both(t);
    if (t[0].energy_j != alone[1] || t[1].energy_j != alone[1])
        return 1;
    foldline_close(scene);
    puts("the same");
    return 0;
}
