#include "harness/emulate/driver/outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETS_MAX 1000000 /* sets stored in the audit; further ones are only counted */

void fl_emulate_result_free(fl_emulate_result *r) {
    free(r->process);
    free(r->set);
    free(r->gpu);
    *r = (fl_emulate_result){0};
}

void fl_outcome_fail(fl_outcome *o, const char *format, ...) {
    char text[512];
    va_list arguments;
    if (o->status)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    o->status = fl_error(o->d, FL_HARDWARE, "%s", text);
}

size_t fl_outcome_process(fl_outcome *o, pid_t pid) {
    fl_emulate_result *r = o->r;
    if (fl_grow(&r->process, &r->process_room, r->process_count + 1, sizeof *r->process))
        return FL_NOBODY;
    r->process[r->process_count] = (fl_emulated_process){.pid = pid};
    fl_outcome_rename(o, r->process_count);
    return r->process_count++;
}

void fl_outcome_rename(fl_outcome *o, size_t process) {
    fl_emulated_process *p = &o->r->process[process];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)p->pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(p->name, sizeof p->name, f))
        p->name[strcspn(p->name, "\n")] = 0;
    if (f)
        fclose(f);
}

const char *fl_outcome_name(const fl_outcome *o, pid_t pid) {
    for (size_t i = o->r->process_count; i-- > 0;)
        if (o->r->process[i].pid == pid)
            return o->r->process[i].name;
    return "?";
}

static void mix(fl_emulate_result *r, const void *bytes, size_t size) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < size; i++)
        r->hash = (r->hash ^ b[i]) * UINT64_C(0x100000001b3);
}

void fl_outcome_answer(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, const fl_answer *a) {
    const uint32_t key[] = {q->op, q->gpu, q->a, q->b, q->c, (uint32_t)a->result};
    mix(o->r, &now_ns, sizeof now_ns);
    mix(o->r, key, sizeof key);
    mix(o->r, a->bytes, a->size);
    o->r->calls++;
    if (process == FL_NOBODY)
        return;
    fl_emulated_process *p = &o->r->process[process];
    p->calls++;
    const bool set = q->op == FL_ASK_SET && !a->result && p->sets == o->kill.after_sets;
    if (o->kill.signal && !o->r->killed && process == o->kill.process && (set || p->calls == o->kill.after_calls)) {
        o->r->killed = true;
        o->on_kill(o->user, p->pid, o->kill.signal);
    }
}

void fl_outcome_set(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, int32_t result) {
    fl_emulate_result *r = o->r;
    fl_emulated_process *p = process == FL_NOBODY ? NULL : &r->process[process];
    if (p) {
        p->sets += !result;
        p->refused += result != 0;
    }
    if (r->set_count >= SETS_MAX || fl_grow(&r->set, &r->set_room, r->set_count + 1, sizeof *r->set))
        return;
    fl_emulated_set *s = &r->set[r->set_count++];
    *s = (fl_emulated_set){
        .at_ns = now_ns, .pid = p ? p->pid : 0, .gpu = q->gpu, .b = q->b, .c = q->c, .result = result};
    memcpy(s->call, q->call, sizeof s->call - 1);
    if (p)
        memcpy(s->process, p->name, sizeof s->process);
}
