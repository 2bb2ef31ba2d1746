/* `foldline doctor` and `foldline restore`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/input/policy/policy.h"
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---- `foldline restore` ---- */

static const fl_command_help help = {
    "restore", "", "Restores the clocks and limits after a controller that ended without restoring them.",
    "The command reads the records of prior values in $FOLDLINE_STATE or /var/lib/foldline. Without a record it does "
    "nothing, so you may run it at any time and as often as you like. It refuses a GPU that a live controller holds: "
    "stop that controller first. It uses a record only if no other user can have written it (this user owns folder and "
    "file, and neither is a link) and if foldline can have written every line. It reports any other record and "
    "restores the rest."};

static void print_json(const fl_restore_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "records", (double)r->records);
    cJSON_AddNumberToObject(root, "restored", (double)r->restored);
    cJSON_AddNumberToObject(root, "failed", (double)r->failed);
    fl_json_tell(root);
}

int fl_cmd_restore(int argc, char **argv) {
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    bool json = false;
    const fl_option option[] = {
        FL_JSON_OPTION(&json),
    };
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &rest, &status))
        return status;
    fl_diag d = {0};
    fl_restore_result r = {0};
    fl_status s = rest.count ? fl_refuse(&d, "'%s': expected no argument", rest.item[0]) : fl_restore_all(&r, &d);
    const bool told = !s || r.restored || r.failed;
    if (json && told)
        print_json(&r);
    else if (!s || r.restored || r.failed > 1)
        printf("%zu record%s, %zu restored\n", r.records, r.records == 1 ? "" : "s", r.restored);
    if (r.failed > 1 && !json)
        printf("%zu not restored; the message below explains the first, foldline doctor explains each\n", r.failed);
    return fl_command_close("restore", s, &d, option, FL_COUNT(option), &rest);
}

/* ---- `foldline doctor` ---- */

static const fl_command_help doctor_help = {
    "doctor", "[--vendor NAME] [--gpus LIST] [--policy NAME]",
    "Says what this user may read and set on each GPU, and, where something is refused, why and how to change that.",
    "Reads only. NVML cannot read a clock lock that somebody else set, ROCm SMI no set of allowed clocks: restoring "
    "after control takes them off. Intel's and AMD's GPUs: unproven on hardware."};

/* What is found goes two ways: as lines, and as a tree for --json. */
typedef struct teller {
    cJSON *at; /* of the GPU or CPU that is told about */
    bool json; /* the lines are not printed */
} teller;

static void say(const teller *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(const teller *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (!t->json)
        vprintf(format, list);
    va_end(list);
}

/* Into the list of that name, which is made where it is not there. */
static void add_text(cJSON *at, const char *list, const char *text) {
    cJSON *all = cJSON_GetObjectItemCaseSensitive(at, list);
    all = all ? all : cJSON_AddArrayToObject(at, list);
    cJSON_AddItemToArray(all, cJSON_CreateString(text));
}

static bool nvidia(const fl_gpus *g) { return !strcmp(g->back->vendor, "nvidia"); }

/* NVIDIA's driver asks for CAP_SYS_ADMIN, not for a user id; the others' libraries write files of root. */
static bool may_administrate(const fl_gpus *g) { return nvidia(g) ? fl_privilege_admin() : geteuid() == 0; }

static void tell_signals(const teller *t, const fl_gpus *g, uint32_t i, fl_diag *d) {
    fl_gpu_sample s = {0};
    fl_diag gone = {0};
    const uint64_t all = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;
    fl_status status = g->back->read(g->self, i, all, 0, &s, &gone);
    usleep(120000); /* differences of counters, and profiling values, need two readings */
    if (!status)
        status = g->back->read(g->self, i, all, 120000000, &s, &gone);
    if (status) {
        say(t, "  reads       nothing: %s\n", gone.message);
        cJSON_AddStringToObject(t->at, "error", gone.message);
        *d = gone;
        return;
    }
    say(t, "  reads      ");
    cJSON *reads = cJSON_AddObjectToObject(t->at, "reads");
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        if (fl_gpu_known(&s, id)) {
            char text[32];
            const fl_row_info *row = fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)id);
            say(t, " %s=%s%s", row->name, fl_cell_text(s.value[id], text), row->unit);
            fl_json_add_real(reads, row->name, s.value[id]);
        }
    say(t, "\n  cannot read");
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        if (!fl_gpu_known(&s, id)) {
            const char *name = fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)id)->name;
            say(t, " %s", name);
            add_text(t->at, "cannot_read", name);
        }
    say(t, " (no call, or not supported by this GPU)\n");
}

/* why: NULL where it may be set. then: what the line adds. */
static void put_control(const teller *t, const fl_row_info *row, const char *name, const char *why, const char *then) {
    cJSON *all = cJSON_GetObjectItemCaseSensitive(t->at, "controls"), *one;
    all = all ? all : cJSON_AddObjectToObject(t->at, "controls");
    one = cJSON_AddObjectToObject(all, row->name);
    cJSON_AddBoolToObject(one, "settable", !why);
    cJSON_AddItemToObject(one, "why_not", why ? cJSON_CreateString(why) : cJSON_CreateNull());
    say(t, "  %-11s %s%s%s\n", name, why ? "cannot be set: " : "may be set", why ? why : "", then);
}

static void tell_control(const teller *t, const fl_gpus *g, uint32_t i, int control, const char *name, bool may) {
    const char *hindrance = g->back->hindrance(g->self, i, control);
    const char *needs = !nvidia(g)               ? "root"
                        : fl_privilege_initial() ? "CAP_SYS_ADMIN"
                                                 : "CAP_SYS_ADMIN of the host, not of a user namespace";
    char why[256];
    snprintf(why, sizeof why, "not by this user: needs %s", needs);
    put_control(t, fl_rows_at(FL_ROWS_GPU_CONTROL, (size_t)control), name,
                hindrance ? hindrance
                : may     ? NULL
                          : why,
                hindrance ? ""
                : may     ? ", if the board supports it" /* only a set would show it */
                          : ". Administrator: run foldline live as root (see foldline.service)");
}

static void put_line(const teller *t, const char *name, const char *list, const char *text) {
    say(t, "  %-11s %s\n", name, text);
    add_text(t->at, list, text);
}

static void put_state(const teller *t, const char *text) { put_line(t, "state", "state", text); }

static void put_note(const teller *t, const char *text) { put_line(t, "note", "notes", text); }

static void tell_controls(const teller *t, const fl_gpus *g, uint32_t i, bool may) {
    fl_gpu_facts f;
    char text[256];
    if (g->back->facts(g->self, i, &f, NULL))
        return;
    tell_control(t, g, i, FL_SET_SM_MHZ, "SM clock", may);
    if (f.sm.count)
        say(t, "              %u clocks, %g to %g MHz\n", f.sm.count, fl_ladder_min(f.sm), fl_ladder_max(f.sm));
    tell_control(t, g, i, FL_SET_MEM_MHZ, "memory", may);
    tell_control(t, g, i, FL_SET_POWER_LIMIT_W, "power limit", may);
    if (f.sm.count) {
        cJSON *clocks = cJSON_AddObjectToObject(t->at, "sm_clocks");
        cJSON_AddNumberToObject(clocks, "count", f.sm.count);
        fl_json_add_real(clocks, "min_mhz", fl_ladder_min(f.sm));
        fl_json_add_real(clocks, "max_mhz", fl_ladder_max(f.sm));
    }
    const double limit_w = g->back->limit_w(g->self, i);
    if (!isnan(limit_w)) {
        cJSON *limit = cJSON_AddObjectToObject(t->at, "power_limit");
        fl_json_add_real(limit, "now_w", limit_w);
        fl_json_add_real(limit, "min_w", f.power_min_w);
        fl_json_add_real(limit, "max_w", f.power_max_w);
        fl_json_add_real(limit, "default_w", f.power_default_w);
        say(t, "              %g W now, %g to %g W, %g W by default\n", limit_w, f.power_min_w, f.power_max_w,
            f.power_default_w);
    }
    for (unsigned n = 0; g->back->note(g->self, i, n, text, sizeof text); n++)
        put_note(t, text);
}

static void tell_state(const teller *t, const char *unit) {
    fl_record r;
    bool found = false;
    fl_diag d = {0};
    char text[64];
    const pid_t holder = fl_lock_holder(fl_state_folder(), unit);
    snprintf(text, sizeof text, "controlled by process %d", (int)holder);
    if (holder)
        put_state(t, text);
    if (fl_record_read(fl_state_folder(), unit, &r, &found, &d))
        put_state(t, d.message);
    else if (found && !holder)
        put_state(t, "a controller left it without restoring: run foldline restore");
    fl_record_free(&r);
}

static void tell_cpu(const teller *t) {
    fl_cpu_host *c = NULL;
    fl_host_sample s = {0};
    fl_host_facts f;
    const uint64_t all = FL_BIT(FL_HOST_SIGNAL_COUNT) - 1;
    if (fl_cpu_host_open(&c, NULL, all, NULL))
        return;
    fl_cpu_host_facts(c, &f);
    fl_cpu_host_read(c, &s);
    usleep(20000);
    fl_cpu_host_read(c, &s);
    say(t, "CPU: %s, %u cores\n  reads      ", f.name, f.cores);
    cJSON_AddStringToObject(t->at, "name", f.name);
    cJSON_AddNumberToObject(t->at, "cores", f.cores);
    cJSON *reads = cJSON_AddObjectToObject(t->at, "reads");
    for (int id = 0; id < FL_HOST_SIGNAL_COUNT; id++)
        if (fl_host_known(&s, id)) {
            const char *name = fl_rows_at(FL_ROWS_HOST_SIGNAL, (size_t)id)->name;
            say(t, " %s", name);
            fl_json_add_real(reads, name, s.value[id]);
        }
    say(t, "\n");
    if (!fl_host_known(&s, FL_HOST_CPU_ENERGY_J))
        put_note(t, "no energy: RAPL is missing or readable by root only. Administrator: chmod a+r "
                    "/sys/class/powercap/intel-rapl:*/energy_uj");
    if (!fl_host_known(&s, FL_HOST_CPU_CYCLES))
        put_note(t, "no cycles: Administrator: sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON");
    const struct {
        int control;
        const char *name;
    } CONTROLS[] = {{FL_SET_HOST_CPU_MHZ, "clock"},
                    {FL_SET_HOST_CPU_BOOST, "boost"},
                    {FL_SET_HOST_CPU_POWER_LIMIT_W, "power limit"}};
    for (size_t i = 0; i < sizeof CONTROLS / sizeof *CONTROLS; i++) {
        fl_record r = {0};
        fl_diag d = {0};
        bool writable = !fl_cpu_host_prior(c, FL_BIT(CONTROLS[i].control), &r, &d);
        for (size_t k = 0; k < r.count; k++)
            writable = writable && !access(r.prior[k].key, W_OK);
        put_control(t, fl_rows_at(FL_ROWS_HOST_CONTROL, (size_t)CONTROLS[i].control), CONTROLS[i].name,
                    d.status   ? d.message
                    : writable ? NULL
                               : "not by this user: needs root",
                    "");
        fl_record_free(&r);
    }
    tell_state(t, "cpu");
    fl_cpu_host_close(c);
}

/* The last death of a controller that its guardian saw: nobody may have been there to read it. */
static void tell_guardian(const teller *t) {
    char line[512], last[512] = "";
    int fd;
    fl_diag d = {0};
    const char *state = fl_state_folder();
    if (fl_state_file(state, "guardian", ".log", O_RDONLY, &fd, &d) == FL_BAD_INPUT)
        say(t, "guardian: %s: %s\n", d.file, d.message);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (f && fgets(line, sizeof line, f))
        memcpy(last, line, sizeof last);
    if (*last) {
        char when[32] = "";
        char *text = last;
        const time_t at = (time_t)strtoll(last, &text, 10);
        struct tm utc;
        if (gmtime_r(&at, &utc))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &utc);
        text[strcspn(text, "\n")] = '\0';
        cJSON *last_seen = cJSON_AddObjectToObject(t->at, "guardian");
        cJSON_AddStringToObject(last_seen, "last", when);
        cJSON_AddStringToObject(last_seen, "said", text + (*text == ' '));
        say(t, "guardian: last on %s,%s (%s/guardian.log)\n", when, text, state);
    }
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
}

static void tell_server_rows(const teller *t, cJSON *policy, const char *key, const char *verb, uint64_t mask) {
    cJSON *list = cJSON_AddArrayToObject(policy, key);
    const char *comma = "";
    for (size_t i = 0; i < fl_rows_count(FL_ROWS_SERVER_SIGNAL); i++)
        if (mask >> i & 1) {
            const char *name = fl_rows_at(FL_ROWS_SERVER_SIGNAL, i)->name;
            say(t, "%s%s", *comma ? comma : verb, name);
            comma = ", ";
            cJSON_AddItemToArray(list, cJSON_CreateString(name));
        }
}

/* No server is looked for here: only `live --server URL` says which one there is. */
static void tell_server(const teller *t, cJSON *policy, const fl_policy *p) {
    const fl_reads r = fl_reads_of(p);
    say(t, "%s", r.server ? "  server      " : "");
    tell_server_rows(t, policy, "server_needs", "needs ", r.server_needs);
    tell_server_rows(t, policy, "server_uses", r.server_needs ? "; uses " : "uses, where there is one, ",
                     r.server_uses);
    say(t, "%s", r.server ? " (from the page that live --server URL reads; not looked for here)\n" : "");
}

/* What a policy would miss here. */
static fl_status tell_policy(const teller *t, const fl_policy *p, const fl_gpus *g, fl_diag *d) {
    fl_cpu_host *cpu = NULL;
    fl_reach r = {0};
    fl_status s = fl_gpus_simulated(g) ? FL_OK : fl_cpu_host_open(&cpu, NULL, fl_reads_of(p).host_needs, d);
    fl_offer offer;
    fl_offer_of(&offer, p, g->back->vendor, true);
    if (!s)
        s = fl_reach_of(&offer.here, g, cpu, offer.given, &r, d);
    fl_cpu_host_close(cpu);
    if (s)
        return s;
    char text[512];
    fl_offer_text(&offer, text, sizeof text);
    say(t, "policy %s\n  %-11s %s\n  signals     %s%s%s\n", p->name, g->back->vendor, text,
        *r.signals ? "cannot be read here: " : "all there", r.signals,
        r.blind      ? "; it has nothing to decide on"
        : *r.signals ? "; it may never decide"
                     : "");
    cJSON *policy = cJSON_AddObjectToObject(t->at, "policy");
    cJSON_AddStringToObject(policy, "name", p->name);
    cJSON_AddStringToObject(policy, "offer", text);
    cJSON_AddStringToObject(policy, "signals_missing", r.signals);
    cJSON_AddStringToObject(policy, "controls_missing", r.controls);
    cJSON_AddBoolToObject(policy, "blind", r.blind);
    tell_server(t, policy, p);
    say(t, "  controls    %s%s\n", *r.controls ? "cannot be set here: " : "all there", r.controls);
    return FL_OK;
}

static fl_status tell_gpus(const teller *all, const fl_gpus *g, const fl_policy *policy, fl_diag *d) {
    fl_status first = FL_OK;
    const bool may = may_administrate(g);
    const teller *t = all;
    cJSON *vendor = cJSON_CreateObject(), *list;
    cJSON_AddItemToArray(t->at, vendor);
    cJSON_AddStringToObject(vendor, "vendor", g->back->vendor);
    cJSON_AddStringToObject(vendor, "library", g->back->library(g->self));
    cJSON_AddStringToObject(vendor, "driver", g->back->driver(g->self));
    cJSON_AddBoolToObject(vendor, "simulated", fl_gpus_simulated(g));
    list = cJSON_AddArrayToObject(vendor, "gpus");
    say(t, "%s: library %s, driver %s%s\n", g->back->vendor, g->back->library(g->self), g->back->driver(g->self),
        fl_gpus_simulated(g) ? ", simulated by foldline" : "");
    for (uint32_t i = 0; i < g->back->count(g->self); i++) {
        fl_gpu_facts f = {.name = "GPU"};
        fl_diag gone = {0};
        g->back->facts(g->self, i, &f, NULL);
        say(t, "GPU %u: %s, %s\n", g->back->index(g->self, i), f.name, g->back->unit(g->self, i));
        const teller one = {.at = cJSON_CreateObject(), .json = t->json};
        cJSON_AddItemToArray(list, one.at);
        cJSON_AddNumberToObject(one.at, "gpu", g->back->index(g->self, i));
        cJSON_AddStringToObject(one.at, "name", f.name);
        cJSON_AddStringToObject(one.at, "unit", g->back->unit(g->self, i));
        tell_signals(&one, g, i, &gone);
        tell_controls(&one, g, i, may);
        tell_state(&one, g->back->unit(g->self, i));
        if (gone.status && !first)
            *d = gone;
        first = first ? first : gone.status;
    }
    const teller here = {.at = vendor, .json = t->json};
    return first || !policy ? first : tell_policy(&here, policy, g, d);
}

/* Each vendor that was not ruled out. One that is not here is no failure unless all are missing. */
static fl_status tell_vendors(const teller *t, const char *only, const char *list, const fl_policy *policy,
                              fl_diag *d) {
    char missing[sizeof d->message] = "";
    const bool all = !only || !strcmp(only, "auto");
    fl_status first = FL_OK;
    bool any = false;
    for (size_t i = 0; i < (all ? fl_vendor_count() : 1); i++) {
        fl_gpus g = {0};
        fl_diag why = {0}, silent;
        fl_status s = fl_vendor_open(&g, all ? fl_vendor_name(i) : only, list, &silent, &why);
        const size_t at = strlen(missing);
        if (!s) {
            any = true;
            s = silent.status == FL_BAD_INPUT ? FL_OK : tell_gpus(t, &g, policy, &why);
            if (!s && silent.status) {
                why = silent;
                s = silent.status;
            }
        } else if (s == FL_HARDWARE) {
            snprintf(missing + at, sizeof missing - at, "%s%.300s", *missing ? "; " : "", why.message);
            s = FL_OK;
        }
        if (s && !first)
            *d = why;
        first = first ? first : s;
        fl_gpus_close(&g);
    }
    if (any && *missing)
        say(t, "none of the others: %s\n", missing);
    return first || any ? first : fl_error(d, FL_HARDWARE, "%s", missing);
}

int fl_cmd_doctor(int argc, char **argv) {
    fl_texts rest = {0};
    const char *gpus = NULL, *vendor = NULL, *policy = NULL;
    fl_spec spec = {0};
    bool json = false;
    const fl_option option[] = {
        {"vendor", "auto|nvidia|intel|amd", FL_OPTION_CHOICE, &vendor, 0, 0, "the others are left out (auto: none is)",
         FL_FOR_MACHINE},
        {"gpus", "LIST", FL_OPTION_TEXT, &gpus, 0, 0, "indices or UUIDs joined by commas (all)", FL_FOR_MACHINE},
        {"policy", "SPEC", FL_OPTION_TEXT, &policy, 0, 0, "says what that policy would miss here", FL_FOR_POLICIES},
        FL_JSON_OPTION(&json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &doctor_help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    cJSON *root = cJSON_CreateObject();
    const teller vendors = {.at = cJSON_AddArrayToObject(root, "vendors"), .json = json};
    fl_status s = rest.count ? fl_refuse(&d, "'%s': expected options only", rest.item[0]) : FL_OK;
    if (!s && policy)
        s = fl_spec_open(policy, &spec, &d);
    if (!s)
        s = tell_vendors(&vendors, vendor, gpus, spec.policy, &d);
    if (s)
        status = fl_command_fail("doctor", &d);
    if (s != FL_BAD_INPUT) {
        const teller cpu = {.at = cJSON_AddObjectToObject(root, "cpu"), .json = json},
                     guardian = {.at = root, .json = json};
        tell_cpu(&cpu);
        tell_guardian(&guardian);
        if (json)
            fl_json_print(root, stdout);
    }
    cJSON_Delete(root);
    fl_spec_free(&spec);
    fl_texts_free(&rest);
    return status;
}
