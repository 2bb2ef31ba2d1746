/* Kill patterns: many sessions of one command, each with one kill. */
#include "harness/emulate/session/session.h"

#include "harness/emulate/driver/driver.h"
#include "harness/live/guard/guard.h"
#include "traces/io/io.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int signal;
} patterns[] = {{"SIGTERM", SIGTERM}, {"SIGINT", SIGINT}, {"SIGKILL", SIGKILL}, {"crash", SIGSEGV}};
enum { PATTERNS = sizeof patterns / sizeof *patterns, MOMENTS = 4 };

void fl_kills_free(fl_kills *k) {
    for (size_t i = 0; i < k->count; i++)
        free(k->row[i].gpu);
    free(k->row);
    *k = (fl_kills){0};
}

__attribute__((format(printf, 4, 5))) static void add(char *buf, size_t size, size_t *used, const char *format, ...) {
    va_list arguments;
    if (*used >= size)
        return;
    va_start(arguments, format);
    const int n = vsnprintf(buf + *used, size - *used, format, arguments);
    va_end(arguments);
    *used += n > 0 ? (size_t)n : 0;
}

static bool is_changed(const fl_emulated_state *g) {
    return g->sm_max || g->mem_max || g->target_sm || g->limit_mw != g->default_limit_mw;
}

char *fl_kill_left(const fl_kill_row *row, char *buf, size_t size) {
    size_t used = 0;
    for (uint32_t i = 0; i < row->gpu_count; i++) {
        const fl_emulated_state *g = &row->gpu[i];
        if (!is_changed(g))
            continue;
        const size_t from = used;
        add(buf, size, &used, "%sGPU %u:", used ? "; " : "", i);
        const size_t head = used;
        if (g->sm_max)
            add(buf, size, &used, " SM clock %u..%u MHz", g->sm_min, g->sm_max);
        if (g->mem_max)
            add(buf, size, &used, "%s memory clock %u..%u MHz", used > head ? "," : "", g->mem_min, g->mem_max);
        if (g->target_sm)
            add(buf, size, &used, "%s application clocks %u MHz, memory %u MHz", used > head ? "," : "", g->target_sm,
                g->target_mem);
        if (g->limit_mw != g->default_limit_mw)
            add(buf, size, &used, "%s power limit %g W", used > head ? "," : "", g->limit_mw * 1e-3);
        if (used >= size && from) /* it does not fit, so the list ends before it */
            (void)snprintf(buf + from, size - from, "; ...");
    }
    if (!used)
        add(buf, size, &used, "nothing");
    return buf;
}

/* Makes one run and stores the final state of the boards in the row. */
static fl_status run(const fl_emulate_options *o, fl_kill_row *row, fl_emulate_result *r, fl_diag *d) {
    const fl_status s = fl_emulate(o, r, d);
    if (s)
        return s;
    if (fl_stop_asked()) /* the command got the signal too, so its result says nothing about the pattern */
        return fl_error(d, FL_IO, "stopped by a signal before the last pattern");
    row->command_status = r->command_status;
    row->reached = r->killed;
    row->gpu = r->gpu;
    row->gpu_count = r->gpu_count;
    r->gpu = NULL;
    for (uint32_t i = 0; i < row->gpu_count; i++)
        row->changed = row->changed || is_changed(&row->gpu[i]);
    return FL_OK;
}

/* The process that made the first accepted set: its index among the processes. */
static size_t find_setter(const fl_emulate_result *r) {
    for (size_t i = 0; i < r->set_count; i++)
        for (size_t k = 0; !r->set[i].result && k < r->process_count; k++)
            if (r->process[k].pid == r->set[i].pid)
                return k;
    return FL_NOBODY;
}

fl_status fl_kills_run(const fl_emulate_options *o, fl_kills *k, fl_diag *d) {
    fl_emulate_options one = *o;
    fl_emulate_result r = {0};
    *k = (fl_kills){.row = calloc(1 + PATTERNS * MOMENTS, sizeof *k->row)};
    if (!k->row)
        return fl_no_memory(d, "the patterns");
    one.kill = (fl_kill){.watched = true};
    k->row[k->count] = (fl_kill_row){.pattern = "nothing", .moment = ""};
    fl_status s = run(&one, &k->row[k->count++], &r, d);
    const size_t setter = s ? FL_NOBODY : find_setter(&r);
    const int with = k->row[0].command_status, ended = WIFSIGNALED(with) ? 128 + WTERMSIG(with) : WEXITSTATUS(with);
    if (!s && setter == FL_NOBODY && ended && !r.set_count)
        s = fl_refuse(d, "%s sets nothing and ends with status %d, expected a program that sets clocks or limits",
                      o->command[0], ended);
    else if (!s && setter == FL_NOBODY)
        s = fl_refuse(d, "%s sets nothing, expected a program that sets clocks or limits%s", o->command[0],
                      r.set_count ? ": each of its sets was refused (--privileged)" : "");
    if (!s) {
        k->sets = r.process[setter].sets;
        k->calls = r.process[setter].calls;
        memcpy(k->process, r.process[setter].name, sizeof k->process);
    }
    fl_emulate_result_free(&r);
    const struct {
        const char *moment;
        uint64_t number, of;
    } at[MOMENTS] = {{"set", 1, k->sets},
                     {"set", (k->sets + 1) / 2, k->sets},
                     {"set", k->sets, k->sets},
                     {"call", (k->calls + 1) / 2, k->calls}};
    one.mute = true;
    one.note = NULL; /* the first run printed the note */
    for (size_t p = 0; p < PATTERNS; p++)
        for (size_t m = 0; !s && m < MOMENTS; m++) {
            if (m && m < 3 && at[m].number == at[m - 1].number) /* with few sets, two moments coincide */
                continue;
            const bool call = m == 3;
            one.kill = (fl_kill){.watched = true,
                                 .signal = patterns[p].signal,
                                 .process = setter,
                                 .after_sets = call ? 0 : at[m].number,
                                 .after_calls = call ? at[m].number : 0};
            k->row[k->count] = (fl_kill_row){
                .pattern = patterns[p].name, .moment = at[m].moment, .number = at[m].number, .of = at[m].of};
            s = run(&one, &k->row[k->count++], &r, d);
            fl_emulate_result_free(&r);
        }
    return s;
}
