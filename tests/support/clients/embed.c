/* Power of a node under a power cap over time: libfoldline in another simulator.
 *
 *     cc embed.c $(pkg-config --cflags --libs foldline) -o embed && ./embed TRACE PLATFORM WATTS */
#include <foldline.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    foldline_error e;
    foldline_scene *scene;
    foldline_result r;
    char policy[64];
    if (argc != 4) {
        fprintf(stderr, "usage: %s TRACE PLATFORM WATTS\n", argv[0]);
        return 2;
    }
    const foldline_options options = {.platform = argv[2]};
    if (foldline_open(argv[1], &options, &scene, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 2;
    }
    snprintf(policy, sizeof policy, "fixed:power_limit_w=%g", atof(argv[3]));
    const foldline_run_options run = {.policy = policy, .every_s = 1};
    if (foldline_run(scene, &run, &r, &e)) {
        fprintf(stderr, "%s\n", e.text);
        foldline_close(scene);
        return 2;
    }
    printf("t_s,power_w\n");
    for (size_t i = 0; i < r.points;) { /* the GPUs of one time stand together */
        const double t = r.point[i].t_s;
        double watts = 0;
        for (; i < r.points && r.point[i].t_s == t; i++)
            watts += r.point[i].power_w;
        printf("%g,%.1f\n", t, watts);
    }
    printf("# %.1f J in %.1f s\n", r.energy_j, r.time_s);
    foldline_result_free(&r);
    foldline_close(scene);
    return 0;
}
