/* `foldline list platforms`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "list platforms", "[NAME | FILE.json]",
    "Lists the platforms, or says everything about one: its values, each with its source.",
    "Wherever a command takes a platform, you may give the path of a platform file of your own.\n\n"
    "The list ends with boards: their clocks, limits and bandwidth are known, but not their power model. foldline list "
    "platforms BOARD also shows what is unknown. foldline fit device --facts BOARD -o BOARD.json makes a platform "
    "from a board: it assumes what is missing from similar chips, and every result on that platform says so.\n\n"
    "--json lists the default power limit of each GPU too (power_limit_w)."};

static double ms(int64_t ns) { return (double)ns * 1e-6; }

static void print_ladder(const char *name, const int32_t *mhz, uint32_t count) {
    if (!count)
        return;
    printf("  %s: %d to %d MHz, %u clock%s:", name, mhz[0], mhz[count - 1], count, count == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++)
        if (count <= 16 || i < 6 || i + 3 >= count)
            printf(" %d", mhz[i]);
        else if (i == 6)
            printf(" ...");
    putchar('\n');
}

static void print_limits(double min_w, double max_w, double default_w) {
    if (default_w > 0)
        printf("  power limit: %g W, may be set from %g to %g W\n", default_w, min_w, max_w);
}

/* A number that says nothing where it is 0. */
static void add_or_dash(fl_grid *g, double value) {
    if (value > 0)
        fl_grid_add(g, "%g", value);
    else
        fl_grid_add(g, "-");
}

static void print_sensors(const fl_sensor_spec *sensor, const char *const *name, size_t count) {
    static const char *const head[] = {"  sensor", "refresh ms", "window ms", "lag ms",
                                       "delay ms", "quantum",    "noise",     "wraps at"};
    fl_grid g = FL_GRID_HEADED(head);
    size_t present = 0;
    for (size_t i = 0; i < count; i++) {
        if (!sensor[i].present)
            continue;
        present++;
        fl_grid_add(&g, "  %s", name[i]);
        add_or_dash(&g, ms(sensor[i].period_ns));
        add_or_dash(&g, ms(sensor[i].window_ns));
        add_or_dash(&g, ms(sensor[i].lag_ns));
        add_or_dash(&g, ms(sensor[i].delay_ns));
        add_or_dash(&g, sensor[i].quantum);
        add_or_dash(&g, sensor[i].noise);
        if (sensor[i].wrap > 0)
            fl_grid_add(&g, "%.10g", sensor[i].wrap);
        else
            fl_grid_add(&g, "-");
    }
    if (present)
        fl_grid_print(&g, 1, stdout);
    fl_grid_free(&g);
}

static void print_voltage(const fl_device *dev) {
    const uint32_t top = dev->sm_count - 1, at[] = {0, top / 4, top / 2, top / 2 + top / 4, top};
    printf("  voltage:");
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        double v = 0;
        if ((i == 0 || at[i] > at[i - 1]) && fl_curve_at(dev->voltage, dev->sm_mhz[at[i]], 0, &v) == FL_MODEL_OK)
            printf("%s %.3g at %d", i ? "," : "", v, dev->sm_mhz[at[i]]);
    }
    printf(" MHz\n");
}

static void print_device(const fl_device *dev) {
    printf("\n%s: %u SMs of %u cores, %g GB/s\n", dev->name, dev->sms, dev->cores_per_sm, dev->peak_bytes_per_s / 1e9);
    print_ladder("SM", dev->sm_mhz, dev->sm_count);
    print_ladder("memory", dev->mem_mhz, dev->mem_count);
    printf("  default %g MHz, memory %g MHz; TDP %g W\n", dev->default_sm_mhz, dev->default_mem_mhz, dev->tdp_w);
    print_limits(dev->power_min_w, dev->power_max_w, dev->power_default_w);
    printf("  power: A %g, A0 %g, B %g, B0 %g, C %g W; no context %g W; sharpness %g\n", dev->a_w, dev->a0_w, dev->b_w,
           dev->b0_w[dev->mem_count - 1], dev->c_w, dev->no_context_w, dev->sharpness);
    if (dev->bandwidth.fold_mhz > 0)
        printf("  bandwidth: fold at %g MHz, slope %g below and %g above it\n", dev->bandwidth.fold_mhz,
               dev->bandwidth.low, dev->bandwidth.high);
    if (dev->gate_ns > 0)
        printf("  an idle GPU's power is gated after %g ms: it then draws neither A0 nor C\n", ms(dev->gate_ns));
    print_voltage(dev);
    const fl_wall_spec *w = &dev->wall;
    if (w->period_ns > 0)
        printf(
            "  power limit: over it, each %g ms f becomes f (%g limit/P)^%g, P filtered over %g ms; below %g of it the "
            "clock rises so each %g ms, by %g MHz at most, and each %g ms for %g ms after a look over it\n",
            ms(w->period_ns), w->aim, w->exponent, ms(w->filter_ns), w->aim, ms(w->rise_ns), w->rise_mhz,
            ms(w->period_ns), ms(w->recover_ns));
    const fl_thermal_spec *t = &dev->thermal;
    if (t->period_ns > 0)
        printf(
            "  heat: each %g ms, %g C + %g C/W with %g s; leakage %g W/C above %g C; throttles at %g C, until %g C\n",
            ms(t->period_ns), t->ambient_c, t->c_per_w, t->tau_s, t->leak_w_per_c, t->leak_ref_c, t->limit_c,
            t->release_c);
    if (dev->v_sigma > 0 || dev->leak_sigma > 0)
        printf("  units differ: voltage by %g %%, leakage by %g %% (standard deviations)\n", dev->v_sigma * 100,
               dev->leak_sigma * 100);
    if (dev->interference > 0)
        printf("  interference of kernels that share memory: %g\n", dev->interference);
    if (dev->dram_share > 0)
        printf("  traffic reaches %g of the peak at most\n", dev->dram_share);
    printf("  setting a clock takes the caller %g ms, the clock changes %g ms later; reading takes %g ms\n",
           ms(dev->actuator.call_ns), ms(dev->actuator.settle_ns), ms(dev->actuator.read_ns));
    if (dev->actuator.limit_call_ns > 0)
        printf("  setting a power limit takes the caller %g ms, the limit is in force %g ms after the call began\n",
               ms(dev->actuator.limit_call_ns), ms(dev->actuator.limit_force_ns));
    print_sensors(dev->sensor, fl_platform_sensor_name, FL_SENSOR_COUNT);
}

static void print_states(const fl_cpu_spec *cpu) {
    static const char *const head[] = {"  CPU state", "MHz", "V rel.", "static W", "computing W", "waiting W"};
    const fl_host_load load = fl_cpu_default_load(cpu);
    fl_grid g = FL_GRID_HEADED(head);
    for (uint32_t i = 0; i < fl_cpu_state_count(cpu); i++) {
        const bool set = i < cpu->count;
        fl_cpu_state state = {0};
        fl_cpu_row row = {0};
        if (fl_cpu_state_make(cpu, i, &state) != FL_MODEL_OK || fl_cpu_row_make(cpu, &load, i, 0, &row) != FL_MODEL_OK)
            continue;
        fl_grid_add(&g, "  %s\t%d\t%.3f\t%.1f\t%.1f\t%.1f", set ? "set" : "boost", state.mhz,
                    set ? cpu->volt[i] : cpu->boost_volt[i - cpu->count], state.static_mw / 1000.0, row.mw / 1000.0,
                    state.wait_mw / 1000.0);
    }
    fl_grid_print(&g, 1, stdout);
}

static void print_cpu(const fl_cpu_spec *cpu) {
    if (!cpu->count)
        return;
    print_states(cpu); /* V against the lowest state's, W of the package and of one thread */
    printf("  default %g MHz; host time as recorded at %g MHz, %g of it bound by the clock\n", cpu->default_mhz,
           fl_cpu_ref_mhz(cpu), cpu->bound);
    printf("  a thread: %g micro-operations a cycle and %g GB/s while computing, %g while waiting, which %s\n",
           cpu->upc, cpu->bytes_per_s / 1e9, cpu->sleeps ? 0 : cpu->wait_upc, cpu->sleeps ? "sleeps" : "spins");
    printf("  setting a state takes the caller %g ms, the clock changes %g ms later\n", ms(cpu->call_ns),
           ms(cpu->settle_ns));
    if (cpu->period_ns > 0)
        printf("  boost and limit: each %g ms, power filtered over %g ms\n", ms(cpu->period_ns), ms(cpu->filter_ns));
    print_limits(cpu->power_min_w, cpu->power_max_w, cpu->power_default_w);
}

static void print_host(const fl_host_spec *h) {
    printf("\n%s: %u cores, a stream holds %u launches\n", h->name, h->cores, h->launch_queue);
    if (h->static_w > 0 || h->comm_w > 0)
        printf("  beside GPUs and CPU: %g W, %g W more while copying\n", h->static_w, h->comm_w);
    if (h->peak_bytes_per_s > 0)
        printf("  memory: %g GB/s\n", h->peak_bytes_per_s / 1e9);
    if (h->apu)
        printf("  APU: traffic reaches %g to %g of the peak, anew each %g ms\n", h->bus_min, h->bus_max,
               ms(h->bus_period_ns));
    if (h->budget_w > 0)
        printf("  CPU and GPU boost up to %g W together\n", h->budget_w);
    if (h->gpu_budget_w > 0)
        printf("  all GPUs together: %g W\n", h->gpu_budget_w);
    print_cpu(&h->cpu);
    print_sensors(h->sensor, fl_platform_host_sensor_name, FL_HOST_SENSOR_COUNT);
}

static void print_one(const fl_platform *p) {
    printf("%s: %s\n%u GPU%s\n", p->name, p->title, p->node.gpu_count, p->node.gpu_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < p->node.device_count; i++)
        print_device(&p->node.device[i]);
    print_host(&p->node.host);
    printf("\nsources:\n");
    fl_grid g = {.columns = 2};
    for (size_t i = 0; i < p->note_count; i++) {
        fl_grid_add(&g, "  %s\t%s", p->note[i].key, p->note[i].text);
    }
    fl_grid_print(&g, 2, stdout);
    if (p->policy_count)
        printf("\ndefaults for policies:\n");
    for (size_t i = 0; i < p->policy_count; i++) {
        printf("  %s:", p->policy[i].policy);
        for (size_t k = 0; k < p->policy[i].count; k++)
            printf(" %s=%s", p->policy[i].setting[k].name, p->policy[i].setting[k].text);
        putchar('\n');
    }
}

/* ---- boards ---- */

static void add_ladder(fl_grid *g, const fl_board *b, const char *key, const char *what, const int32_t *mhz,
                       uint32_t count) {
    char text[256] = "";
    for (uint32_t i = 0; i < count && strlen(text) < sizeof text - 16; i++)
        sprintf(text + strlen(text), "%s%d", i ? ", " : "", mhz[i]);
    fl_grid_add(g, "  %s\t%s MHz\t%s", what, text, fl_board_source(b, key));
}

static void print_board(const fl_board *b) {
    static const char *const head[] = {"  known", "value", "sources"};
    fl_grid g = FL_GRID_HEADED(head);
    printf("%s: %s\na board: board data only, no power law\n\n", b->name, b->title);
    if (b->sm_count)
        add_ladder(&g, b, "sm_mhz", "SM clocks", b->sm_mhz, b->sm_count);
    if (b->mem_count)
        add_ladder(&g, b, "mem_mhz", "memory clocks", b->mem_mhz, b->mem_count);
    for (size_t i = 0; i < FL_BOARD_FACT_COUNT; i++) {
        if (isnan(b->fact[i]))
            continue;
        fl_grid_add(&g, "  %s\t%g%s%s\t%s", fl_board_rows[i].what, b->fact[i], *fl_board_rows[i].unit ? " " : "",
                    fl_board_rows[i].unit, fl_board_source(b, fl_board_rows[i].key));
    }
    fl_grid_print(&g, 3, stdout);
    printf("\nunknown:\n  law of power; sharpness of kernel time; actuators%s\n",
           b->mem_count ? "" : "; memory clocks");
    for (int i = 0; i < FL_BOARD_FACT_COUNT; i++) {
        const bool listed = b->sm_count && i >= FL_BOARD_sm_min_mhz && i <= FL_BOARD_sm_step_mhz;
        if (isnan(b->fact[i]) && !listed)
            printf("  %s\n", fl_board_rows[i].what);
    }
    char text[128];
    const char *lacks = fl_board_lacks(b, text, sizeof text);
    if (lacks)
        printf("\n"
               "to simulate this board, add %s to a file of facts, and give it to foldline fit device --facts FILE\n",
               lacks);
    else
        printf("\n"
               "to simulate this board, run foldline fit device --facts %s -o %s.json, which assumes them from "
               "similar chips\n",
               b->name, b->name);
}

/* A platform or board; as JSON its file has it, and what is left out there is not made up here. */
static fl_status print_named(const char *name, bool json, fl_diag *d) {
    fl_platform p = {0};
    fl_board b = {0};
    cJSON *tree = NULL;
    const bool smi = fl_is_smi(name), board = smi || fl_board_exists(name);
    fl_status s = board ? fl_board_open(name, &b, d) : fl_platform_open(name, 0, &p, d);
    if (!s && json && smi)
        s = fl_refuse(d, "%s is not JSON, expected it without --json", name);
    if (!s && json && !(s = fl_json_read(board ? b.path : p.path, &tree, d)))
        fl_json_print(tree, stdout);
    else if (!s && board)
        print_board(&b);
    else if (!s)
        print_one(&p);
    cJSON_Delete(tree);
    fl_board_free(&b);
    fl_platform_free(&p);
    return s;
}

static void list_one(cJSON *rows, const char *name, const char *title, double gpus, double limit_w) {
    if (!rows) {
        printf("%-18s %s%s\n", name, title, gpus > 0 ? "" : " (board data only)");
        return;
    }
    cJSON *row = fl_json_add_row(rows);
    cJSON_AddStringToObject(row, "platform", name);
    cJSON_AddStringToObject(row, "title", title);
    fl_json_add_real(row, "gpus", gpus > 0 ? gpus : (double)NAN); /* a board is no node */
    fl_json_add_real(row, "power_limit_w", limit_w > 0 ? limit_w : (double)NAN);
}

static fl_status list_boards(cJSON *rows, fl_diag *d) {
    char **name = NULL;
    size_t count = 0;
    fl_status s = fl_board_list(&name, &count, d);
    for (size_t i = 0; !s && i < count; i++) {
        fl_board b = {0};
        if (!(s = fl_board_open(name[i], &b, d)))
            list_one(rows, name[i], b.title, 0, b.fact[FL_BOARD_limit_default_w]);
        fl_board_free(&b);
    }
    fl_place_list_free(name, count);
    return s;
}

static fl_status list(bool json, fl_diag *d) {
    char **name = NULL;
    size_t count = 0;
    cJSON *root = json ? cJSON_CreateObject() : NULL, *rows = json ? cJSON_AddArrayToObject(root, "rows") : NULL;
    fl_status s = fl_platform_list(&name, &count, d);
    for (size_t i = 0; !s && i < count; i++) {
        fl_platform p = {0};
        if (!(s = fl_platform_open(name[i], 0, &p, d)))
            list_one(rows, name[i], p.title, p.node.gpu_count, p.node.device[0].power_default_w);
        fl_platform_free(&p);
    }
    if (!s)
        s = list_boards(rows, d);
    if (!s && json)
        fl_json_print(root, stdout);
    else if (!s)
        fl_terminal_say(stderr,
                        "note: no power law is known of a board with board data only. A measured table of it can be "
                        "replayed, and foldline fit device --facts NAME -o FILE makes a platform");
    cJSON_Delete(root);
    fl_place_list_free(name, count);
    return s;
}

int fl_cmd_list_platforms(int argc, char **argv) {
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    bool json = false;
    const fl_option option[] = {
        FL_JSON_OPTION(&json),
    };
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = rest.count > 1 ? fl_refuse(&d, "expected one platform at most")
                  : rest.count   ? print_named(rest.item[0], json, &d)
                                 : list(json, &d);
    return fl_command_close("list platforms", s, &d, option, FL_COUNT(option), &rest);
}
