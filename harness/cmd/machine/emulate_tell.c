#include "harness/cmd/machine/emulate_tell.h"

#include "harness/base/cli/grid.h"
#include "harness/base/json/json_out.h"

#include <stdio.h>
#include <sys/wait.h>

static cJSON *state_json(const fl_emulated_state *g) {
    cJSON *at = cJSON_CreateObject();
    cJSON_AddNumberToObject(at, "sm_min_mhz", g->sm_min);
    cJSON_AddNumberToObject(at, "sm_max_mhz", g->sm_max);
    cJSON_AddNumberToObject(at, "mem_min_mhz", g->mem_min);
    cJSON_AddNumberToObject(at, "mem_max_mhz", g->mem_max);
    cJSON_AddNumberToObject(at, "limit_mw", g->limit_mw);
    cJSON_AddNumberToObject(at, "application_sm_mhz", g->target_sm);
    cJSON_AddNumberToObject(at, "application_mem_mhz", g->target_mem);
    return at;
}

cJSON *fl_emulate_json(const fl_emulate_result *r) {
    cJSON *root = cJSON_CreateObject(), *list;
    char hash[32];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
    cJSON_AddStringToObject(root, "session_hash", hash);
    fl_json_add_real(root, "time_s", (double)r->time_ns * 1e-9);
    cJSON_AddBoolToObject(root, "done", r->done);
    fl_json_add_real(root, "energy_j", r->energy_j);
    fl_json_add_real(root, "node_energy_j", r->node_energy_j);
    fl_json_add_real(root, "makespan_s", r->makespan_s);
    fl_json_add_real(root, "after_j", r->after_j);
    cJSON_AddNumberToObject(root, "kernels", (double)r->kernels);
    cJSON_AddNumberToObject(root, "switches", (double)r->switches);
    cJSON_AddNumberToObject(root, "calls", (double)r->calls);
    list = cJSON_AddArrayToObject(root, "processes");
    for (size_t i = 0; i < r->process_count; i++) {
        cJSON *at = fl_json_add_row(list);
        cJSON_AddNumberToObject(at, "pid", r->process[i].pid);
        cJSON_AddStringToObject(at, "name", r->process[i].name);
        cJSON_AddNumberToObject(at, "calls", (double)r->process[i].calls);
        cJSON_AddNumberToObject(at, "sets", (double)r->process[i].sets);
        cJSON_AddNumberToObject(at, "refused", (double)r->process[i].refused);
    }
    list = cJSON_AddArrayToObject(root, "sets");
    for (size_t i = 0; i < r->set_count; i++) {
        const fl_emulated_set *s = &r->set[i];
        cJSON *at = fl_json_add_row(list);
        fl_json_add_real(at, "s", (double)s->at_ns * 1e-9);
        cJSON_AddNumberToObject(at, "pid", s->pid);
        cJSON_AddStringToObject(at, "process", s->process);
        cJSON_AddStringToObject(at, "call", s->call);
        cJSON_AddNumberToObject(at, "gpu", s->gpu);
        cJSON_AddNumberToObject(at, "b", s->b);
        cJSON_AddNumberToObject(at, "c", s->c);
        cJSON_AddNumberToObject(at, "result", s->result);
    }
    list = cJSON_AddArrayToObject(root, "gpus");
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        const fl_emulated_state *g = &r->gpu[i];
        cJSON *at = state_json(g);
        fl_json_add_real(at, "energy_j", g->energy_j);
        cJSON_AddItemToArray(list, at);
    }
    return root;
}

void fl_emulate_print(const fl_emulate_result *r, const fl_scene *scene) {
    fprintf(stderr, "\n%s on %s, emulated: %.6g s, work %s\n", scene->w->name, scene->platform.name,
            (double)r->time_ns * 1e-9, r->done ? "done" : "not done");
    fprintf(stderr, "energy %.6g J on the GPUs in %.6g s of work; %llu calls, %llu changes of a clock, hash %016llx\n",
            r->energy_j, r->makespan_s, (unsigned long long)r->calls, (unsigned long long)r->switches,
            (unsigned long long)r->hash);
    for (size_t i = 0; i < r->process_count; i++)
        if (r->process[i].calls)
            fprintf(stderr, "  %-7d %-15s %8llu calls %6llu sets %6llu refused\n", (int)r->process[i].pid,
                    r->process[i].name, (unsigned long long)r->process[i].calls, (unsigned long long)r->process[i].sets,
                    (unsigned long long)r->process[i].refused);
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        const fl_emulated_state *g = &r->gpu[i];
        if (g->sm_max)
            fprintf(stderr, "  GPU %u is left with its SM clock locked to %u..%u MHz\n", i, g->sm_min, g->sm_max);
        if (g->mem_max)
            fprintf(stderr, "  GPU %u is left with its memory clock locked to %u..%u MHz\n", i, g->mem_min, g->mem_max);
        if (g->target_sm)
            fprintf(stderr, "  GPU %u is left with application clocks of %u MHz, memory %u MHz\n", i, g->target_sm,
                    g->target_mem);
        if (g->limit_mw != g->default_limit_mw)
            fprintf(stderr, "  GPU %u is left with a power limit of %g W\n", i, g->limit_mw * 1e-3);
    }
}

static int exit_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

void fl_kills_print(const fl_kills *k) {
    static const char *const head[] = {"killed by", "after", "command's status", "left changed"};
    fl_grid g = FL_GRID_HEADED(head);
    char left[512];
    size_t changed = 0;
    printf("%s: %llu sets in %llu calls\n\n", k->process, (unsigned long long)k->sets, (unsigned long long)k->calls);
    for (size_t i = 0; i < k->count; i++) {
        const fl_kill_row *row = &k->row[i];
        fl_grid_add(&g, "%s", row->pattern);
        if (row->number)
            fl_grid_add(&g, "%s %llu of %llu%s", row->moment, (unsigned long long)row->number,
                        (unsigned long long)row->of, row->reached ? "" : " (not reached)");
        else
            fl_grid_add(&g, "its end");
        fl_grid_add(&g, "%d\t%s", exit_status(row->command_status), fl_kill_left(row, left, sizeof left));
        changed += row->changed;
    }
    fl_grid_print(&g, 4, stdout);
    printf("\n%zu of %zu runs leave something changed\n", changed, k->count);
}

cJSON *fl_kills_json(const fl_kills *k) {
    cJSON *root = cJSON_CreateObject(), *runs;
    char left[512];
    cJSON_AddStringToObject(root, "process", k->process);
    cJSON_AddNumberToObject(root, "sets", (double)k->sets);
    cJSON_AddNumberToObject(root, "calls", (double)k->calls);
    runs = cJSON_AddArrayToObject(root, "runs");
    for (size_t i = 0; i < k->count; i++) {
        const fl_kill_row *row = &k->row[i];
        cJSON *at = fl_json_add_row(runs), *gpus;
        cJSON_AddStringToObject(at, "killed_by", row->pattern);
        cJSON_AddStringToObject(at, "after", row->moment);
        cJSON_AddNumberToObject(at, "number", (double)row->number);
        cJSON_AddBoolToObject(at, "reached", row->reached);
        cJSON_AddNumberToObject(at, "status", exit_status(row->command_status));
        cJSON_AddStringToObject(at, "left", fl_kill_left(row, left, sizeof left));
        gpus = cJSON_AddArrayToObject(at, "gpus");
        for (uint32_t g = 0; g < row->gpu_count; g++)
            cJSON_AddItemToArray(gpus, state_json(&row->gpu[g]));
    }
    return root;
}
