/* The side of SimGrid of tests/simgrid.sh, which alone compiles it: a GPU is a host with a pstate for each clock, one
 * actor runs kernel after kernel on it, a second one wakes each 10 ms, reads the energy and sets the pstate that the
 * rule draws.
 *
 *   simgrid_gpu PLATFORM.xml WORK SEED LOWEST ENERGY [--cfg=...]
 *
 * WORK: a file with one number for each kernel, its flops. LOWEST: the lowest pstate that is drawn. ENERGY: 0 leaves
 * the plug-in for energy out. It prints kernels, steps, makespan in s, energy in J, and the processor time of the
 * simulation in s, without what comes before and after it. */
#include "tests/support/simgrid_rule.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/plugins/energy.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
    sg_host_t gpu;
    double *flops;
    size_t count;
    uint64_t seed;
    uint32_t lowest;
    bool energy;
    uint64_t steps;
    double end_s, energy_j, most_j;
} world;

static void run_kernels(int argc, char *argv[]) {
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < world.count; i++)
        sg_actor_execute(world.flops[i]);
    world.end_s = simgrid_get_clock();
    world.energy_j = world.energy ? sg_host_get_consumed_energy(world.gpu) : 0;
}

static void run_policy(int argc, char *argv[]) {
    (void)argc;
    (void)argv;
    const uint32_t count = (uint32_t)sg_host_get_nb_pstates(world.gpu);
    uint32_t clock = UINT32_MAX;
    double before_j = 0;
    sg_actor_daemonize(sg_actor_self()); /* ends with the kernels */
    for (;; sg_actor_sleep_until((double)world.steps / 100)) {
        if (world.energy) {
            const double now_j = sg_host_get_consumed_energy(world.gpu);
            if (now_j - before_j > world.most_j)
                world.most_j = now_j - before_j;
            before_j = now_j;
        }
        const uint32_t next = fl_rule_clock(world.seed, world.steps++, world.lowest, count);
        if (next != clock)
            sg_host_set_pstate(world.gpu, next);
        clock = next;
    }
}

static bool read_work(const char *path) {
    FILE *f = fopen(path, "r");
    size_t room = 0;
    double flops;
    while (f && fscanf(f, "%lf", &flops) == 1) {
        if (world.count == room) {
            room = room ? 2 * room : 1024;
            double *more = realloc(world.flops, room * sizeof *more);
            if (!more)
                break;
            world.flops = more;
        }
        world.flops[world.count++] = flops;
    }
    const bool all = f && feof(f) && world.count;
    if (f)
        fclose(f);
    return all;
}

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char *argv[]) {
    const bool complete = argc >= 6;
    world.energy = complete && atoi(argv[5]);
    if (world.energy)
        sg_host_energy_plugin_init();
    simgrid_init(&argc, argv); /* takes its own options out of argv */
    if (!complete || argc != 6 || !read_work(argv[2])) {
        fprintf(stderr, "usage: simgrid_gpu PLATFORM.xml WORK SEED LOWEST ENERGY [--cfg=...]\n");
        return 2;
    }
    world.seed = strtoull(argv[3], NULL, 10);
    world.lowest = (uint32_t)strtoul(argv[4], NULL, 10);
    simgrid_load_platform(argv[1]);
    world.gpu = sg_host_by_name("gpu");
    if (!world.gpu || world.lowest >= sg_host_get_nb_pstates(world.gpu))
        return 2;
    sg_actor_create("policy", world.gpu, run_policy, 0, NULL);
    sg_actor_create("kernels", world.gpu, run_kernels, 0, NULL);
    const double start = cpu_seconds();
    simgrid_run();
    printf("%zu %llu %.9f %.6f %.6f\n", world.count, (unsigned long long)world.steps, world.end_s, world.energy_j,
           cpu_seconds() - start);
    free(world.flops);
    return 0;
}
