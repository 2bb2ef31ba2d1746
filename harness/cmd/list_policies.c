/* `foldline list policies`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/input/policy/policy.h"
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static const fl_command_help help = {
    "list policies", "[NAME | FILE.so] [--json | --table | --vendors]",
    "Lists the policies, or says everything about one: source, parameters, signals, probes.", NULL};

static const char *const types[] = {"real", "int", "bool", "choice", "list", "table"};

static void print_signals(const char *title, fl_row_set set, uint64_t mask) {
    if (!mask)
        return;
    printf("%s:", title);
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1)
            printf(" %s", fl_rows_at(set, i)->name);
    putchar('\n');
}

static void print_one(const fl_policy *p) {
    const fl_reads reads = fl_reads_of(p);
    printf("%s: %s\nsource: %s\n", p->name, p->summary, p->source);
    print_signals("reads (GPU)", FL_ROWS_GPU_SIGNAL, reads.gpu_needs);
    print_signals("reads (host)", FL_ROWS_HOST_SIGNAL, reads.host_needs);
    print_signals("uses (GPU), where there is any", FL_ROWS_GPU_SIGNAL, reads.gpu_uses);
    print_signals("reads (server)", FL_ROWS_SERVER_SIGNAL, reads.server_needs);
    print_signals("uses (server), where there is any", FL_ROWS_SERVER_SIGNAL, reads.server_uses);
    if (reads.steps)
        printf("uses, where there are any: records of the steps of a server's engine\n");
    print_signals("may be woken by", FL_ROWS_WAKE, p->wakes);
    print_signals("instead, where a board lacks some of them", FL_ROWS_GPU_SIGNAL, reads.gpu_instead);
    print_signals("sets (GPU)", FL_ROWS_GPU_CONTROL, p->gpu_drives);
    print_signals("sets (host)", FL_ROWS_HOST_CONTROL, p->host_drives);
    for (size_t i = 0; i < fl_vendor_count(); i++) {
        char text[512];
        fl_offer o;
        fl_offer_of(&o, p, fl_vendor_name(i), true);
        fl_offer_text(&o, text, sizeof text);
        printf("live on %s: %s\n", fl_vendor_name(i), text);
    }
    if (p->param_count) {
        fl_grid g = {.columns = 5};
        printf("\nparameters:\n");
        for (uint32_t i = 0; i < p->param_count; i++) {
            const fl_param *r = &p->param[i];
            fl_grid_add(&g, "  %s\t%s\t%s%s%s", r->name, types[r->type], *r->standard ? r->standard : "-",
                        *r->unit ? " " : "", r->unit);
            if (r->type == FL_PARAM_CHOICE || r->type == FL_PARAM_TABLE)
                fl_grid_add(&g, "%s", r->choices ? r->choices : "");
            else if (r->type == FL_PARAM_BOOL)
                fl_grid_add(&g, "0..1");
            else
                fl_grid_add(&g, "%g..%g", r->min, r->max);
            fl_grid_add(&g, "%s", r->help);
        }
        fl_grid_print(&g, 5, stdout);
    }
    if (p->probe_count) {
        fl_grid g = {.columns = 3};
        printf("\nprobes:\n");
        for (uint32_t i = 0; i < p->probe_count; i++) {
            fl_grid_add(&g, "  %s\t%s\t%s", p->probe[i].name, p->probe[i].unit, p->probe[i].help);
        }
        fl_grid_print(&g, 3, stdout);
    }
}

static size_t print_names(fl_row_set set, uint64_t mask, size_t before) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1)
            printf("%s%s", before++ ? ", " : "", fl_rows_at(set, i)->name);
    return before;
}

static void print_table(void) {
    printf("| policy | what it does | source | needs | drives |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < fl_policies_count; i++) {
        const fl_policy *p = fl_policies[i];
        const fl_reads reads = fl_reads_of(p);
        printf("| `%s` | %s | %s | ", p->name, p->summary, p->source);
        size_t n = print_names(FL_ROWS_GPU_SIGNAL, reads.gpu_needs, 0);
        n = print_names(FL_ROWS_HOST_SIGNAL, reads.host_needs, n);
        n = print_names(FL_ROWS_SERVER_SIGNAL, reads.server_needs, n);
        if (reads.records)
            printf("%sactivity records", n++ ? ", " : "");
        const bool server = reads.server_uses || reads.steps;
        printf("%s%s", n ? "" : "-", reads.gpu_uses || server ? "; where there is any: " : "");
        n = print_names(FL_ROWS_GPU_SIGNAL, reads.gpu_uses, 0);
        if (server)
            printf("%ssignals of a server", n ? ", " : "");
        printf(" | ");
        n = print_names(FL_ROWS_GPU_CONTROL, p->gpu_drives, 0);
        printf("%s |\n", print_names(FL_ROWS_HOST_CONTROL, p->host_drives, n) ? "" : "-");
    }
}

/* What the library of each vendor gives it. */
static void print_vendors(void) {
    printf("| policy |");
    for (size_t i = 0; i < fl_vendor_count(); i++)
        printf(" live on %s |", fl_vendor_name(i));
    printf("\n|---|");
    for (size_t i = 0; i < fl_vendor_count(); i++)
        printf("---|");
    putchar('\n');
    for (size_t k = 0; k < fl_policies_count; k++) {
        printf("| `%s` |", fl_policies[k]->name);
        for (size_t i = 0; i < fl_vendor_count(); i++) {
            char text[512];
            fl_offer o;
            fl_offer_of(&o, fl_policies[k], fl_vendor_name(i), true);
            fl_offer_text(&o, text, sizeof text);
            printf(" %s |", text);
        }
        putchar('\n');
    }
}

static void put_rows(cJSON *into, const char *key, fl_row_set set, uint64_t mask) {
    cJSON *list = cJSON_AddArrayToObject(into, key);
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1)
            cJSON_AddItemToArray(list, cJSON_CreateString(fl_rows_at(set, i)->name));
}

static void put_signals(cJSON *o, const fl_policy *p) {
    const fl_reads reads = fl_reads_of(p);
    cJSON *needs = cJSON_AddObjectToObject(o, "needs"), *uses = cJSON_AddObjectToObject(o, "uses"),
          *sets = cJSON_AddObjectToObject(o, "sets");
    put_rows(needs, "gpu", FL_ROWS_GPU_SIGNAL, reads.gpu_needs);
    put_rows(needs, "host", FL_ROWS_HOST_SIGNAL, reads.host_needs);
    put_rows(needs, "server", FL_ROWS_SERVER_SIGNAL, reads.server_needs);
    cJSON_AddBoolToObject(needs, "kernel_records", reads.records);
    put_rows(uses, "gpu", FL_ROWS_GPU_SIGNAL, reads.gpu_uses);
    put_rows(uses, "server", FL_ROWS_SERVER_SIGNAL, reads.server_uses);
    cJSON_AddBoolToObject(uses, "engine_steps", reads.steps);
    put_rows(o, "instead", FL_ROWS_GPU_SIGNAL, reads.gpu_instead);
    put_rows(o, "woken_by", FL_ROWS_WAKE, p->wakes);
    put_rows(sets, "gpu", FL_ROWS_GPU_CONTROL, p->gpu_drives);
    put_rows(sets, "host", FL_ROWS_HOST_CONTROL, p->host_drives);
}

static cJSON *json_one(const fl_policy *p) {
    cJSON *o = cJSON_CreateObject(), *params = NULL;
    cJSON_AddStringToObject(o, "name", p->name);
    cJSON_AddStringToObject(o, "summary", p->summary);
    cJSON_AddStringToObject(o, "source", p->source);
    put_signals(o, p);
    params = cJSON_AddArrayToObject(o, "parameters");
    for (uint32_t i = 0; i < p->param_count; i++) {
        const fl_param *r = &p->param[i];
        cJSON *q = fl_json_add_row(params);
        cJSON_AddStringToObject(q, "name", r->name);
        cJSON_AddStringToObject(q, "type", types[r->type]);
        cJSON_AddStringToObject(q, "unit", r->unit);
        cJSON_AddStringToObject(q, "default", r->standard);
        fl_json_add_real(q, "min", r->min);
        fl_json_add_real(q, "max", r->max);
        cJSON_AddStringToObject(q, "help", r->help);
    }
    return o;
}

int fl_cmd_list_policies(int argc, char **argv) {
    fl_texts rest = {0};
    bool json = false, table = false, vendors = false;
    const fl_option option[] = {FL_JSON_OPTION(&json),
                                {"table", NULL, FL_OPTION_FLAG, &table, 0, 0,
                                 "all of them as a Markdown table: what each needs and drives", FL_FOR_OUTPUT},
                                {"vendors", NULL, FL_OPTION_FLAG, &vendors, 0, 0,
                                 "all of them as a Markdown table: what a live host on each vendor's GPUs gives them"}};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = rest.count > 1 ? fl_refuse(&d, "expected one policy at most") : FL_OK;
    const fl_policy *one = NULL;
    if (!s && rest.count)
        s = fl_policy_open(rest.item[0], &one, &d);
    if (s) {
        status = fl_command_fail("list policies", &d);
    } else if (json) {
        cJSON *all = one ? json_one(one) : cJSON_CreateArray();
        for (size_t i = 0; !one && i < fl_policies_count; i++)
            cJSON_AddItemToArray(all, json_one(fl_policies[i]));
        fl_json_tell(all);
    } else if (one) {
        print_one(one);
    } else if (table) {
        print_table();
    } else if (vendors) {
        print_vendors();
    } else {
        for (size_t i = 0; i < fl_policies_count; i++)
            printf("%-14s %s\n", fl_policies[i]->name, fl_policies[i]->summary);
    }
    fl_texts_free(&rest);
    return status;
}
