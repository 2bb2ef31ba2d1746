/* One policy under one host: the contract's rows by name, opening, stepping, and what becomes of each request. */
#include "sim/instance/inside.h"

#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of the contract by name ---- */

#define SIGNAL_ROW(id, name_, unit_, kind_, meaning_)                                                                  \
    {.name = #name_, .unit = unit_, .meaning = meaning_, .kind = FL_##kind_},
#define CONTROL_ROW(id, name_, unit_, meaning_) {.name = #name_, .unit = unit_, .meaning = meaning_},
#define WAKE_ROW(id, name_, meaning_) {.name = #name_, .unit = "", .meaning = meaning_},

static const fl_row_info gpu_signals[] = {FL_GPU_SIGNALS(SIGNAL_ROW)};
static const fl_row_info host_signals[] = {FL_HOST_SIGNALS(SIGNAL_ROW)};
static const fl_row_info server_signals[] = {FL_SERVER_SIGNALS(SIGNAL_ROW)};
static const fl_row_info wakes[] = {FL_WAKES(WAKE_ROW)};
static const fl_row_info gpu_controls[] = {FL_GPU_CONTROLS(CONTROL_ROW)};
static const fl_row_info host_controls[] = {FL_HOST_CONTROLS(CONTROL_ROW)};

static const struct {
    const fl_row_info *row;
    size_t count;
} tables[] = {
    [FL_ROWS_GPU_SIGNAL] = {gpu_signals, FL_GPU_SIGNAL_COUNT},
    [FL_ROWS_HOST_SIGNAL] = {host_signals, FL_HOST_SIGNAL_COUNT},
    [FL_ROWS_SERVER_SIGNAL] = {server_signals, FL_SERVER_SIGNAL_COUNT},
    [FL_ROWS_WAKE] = {wakes, FL_WAKE_COUNT},
    [FL_ROWS_GPU_CONTROL] = {gpu_controls, FL_GPU_CONTROL_COUNT},
    [FL_ROWS_HOST_CONTROL] = {host_controls, FL_HOST_CONTROL_COUNT},
};

size_t fl_rows_count(fl_row_set set) { return tables[set].count; }

const fl_row_info *fl_rows_at(fl_row_set set, size_t index) { return &tables[set].row[index]; }

int fl_rows_find(fl_row_set set, const char *name) {
    for (size_t i = 0; i < tables[set].count; i++)
        if (strcmp(tables[set].row[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- identity of the contract -------------------------------------------------------------------------------------
 */

#define STRUCT_NAME(type) #type,
static const char *const struct_names[] = {FL_ABI_STRUCTS(STRUCT_NAME)};

static const fl_abi ours = {.magic = FL_ABI_MAGIC,
                            .rows = FL_ABI_ROWS,
                            .struct_count = FL_ABI_STRUCT_COUNT,
                            .struct_size = {FL_ABI_STRUCTS(FL_ROW_ABI_SIZE)}};

static int line_length(const char *text) { return (int)strcspn(text, "\n"); }

/* The version is the first line of the rows: "abi N". */
static int version_length(const char *rows) {
    int n = line_length(rows);
    return n < 40 ? n : 40;
}

static const char *row_difference(const char *theirs, char *buf, size_t size) {
    const char *a = theirs, *b = ours.rows;
    while (*a && *b && line_length(a) == line_length(b) && strncmp(a, b, (size_t)line_length(a)) == 0) {
        a += line_length(a);
        b += line_length(b);
        a += *a == '\n';
        b += *b == '\n';
    }
    int na = line_length(a), nb = line_length(b);
    snprintf(buf, size, "built for '%.*s', this program has '%.*s'; first row that differs: '%.*s' there, '%.*s' here",
             version_length(theirs), theirs, version_length(ours.rows), ours.rows, na ? na < 120 ? na : 120 : 3,
             na ? a : "end", nb ? nb < 120 ? nb : 120 : 3, nb ? b : "end");
    return buf;
}

const char *fl_abi_difference(const fl_abi *theirs, char *buf, size_t size) {
    if (theirs->magic != FL_ABI_MAGIC) { /* then nothing behind it can be trusted */
        snprintf(buf, size, "not a policy of this program: it begins with 0x%016" PRIx64 ", expected 0x%016" PRIx64,
                 theirs->magic, FL_ABI_MAGIC);
        return buf;
    }
    if (!theirs->rows || strcmp(theirs->rows, ours.rows) != 0)
        return row_difference(theirs->rows ? theirs->rows : "", buf, size);
    if (theirs->struct_count != ours.struct_count) {
        snprintf(buf, size,
                 "built for '%.*s', this program has the same; struct count %" PRIu32 " there, %" PRIu32 " here",
                 version_length(ours.rows), ours.rows, theirs->struct_count, ours.struct_count);
        return buf;
    }
    for (uint32_t i = 0; i < ours.struct_count; i++)
        if (theirs->struct_size[i] != ours.struct_size[i]) {
            snprintf(
                buf, size,
                "built for '%.*s', this program has the same; struct %s has %" PRIu32 " bytes there, %" PRIu32 " here",
                version_length(ours.rows), ours.rows, struct_names[i], theirs->struct_size[i], ours.struct_size[i]);
            return buf;
        }
    return NULL;
}

/* ---- instance ---- */

enum { FIRST_DELAY_NS = 200000000 };

typedef struct control { /* one control of one GPU or of the host */
    bool was_set, pending;
    int64_t set_ns;  /* when it was set last */
    fl_decided held; /* the latest request that came too early */
} control;

struct fl_instance {
    const fl_policy *policy;
    const fl_facts *facts;
    const char *label, *run;
    int64_t min_set_interval_ns;
    bool unwatched;
    void *params;
    void *state;
    size_t state_size, probe_count;
    int64_t delay_ns; /* the last that was valid */
    fl_gpu_command *command;
    fl_decided (*decided)[FL_GPU_CONTROL_COUNT];
    control *gpu_control; /* gpu_count x FL_GPU_CONTROL_COUNT */
    control host_control[FL_HOST_CONTROL_COUNT];
    size_t pending;     /* controls that are */
    bool decided_any;   /* of the last step something was decided: `decision` is not clear */
    double *probe;      /* probe_count cells */
    double **probe_row; /* the first cell of each of the policy's probes */
    fl_decision decision;
    fl_instance_counts counts;
};

/* ---- what a request becomes ---------------------------------------------------------------------------------------
 */

typedef enum verdict { FAULT, AS_IT_IS, SNAPPED, CLAMPED } verdict;

static verdict snap(fl_ladder ladder, double *mhz) {
    double asked = *mhz;
    if (ladder.count) /* a ladder that is not known snaps nothing */
        *mhz = fl_ladder_nearest(ladder, asked);
    return *mhz != asked ? SNAPPED : AS_IT_IS;
}

static verdict clamp(double low, double high, double *value) { /* 0: that end is not known */
    double asked = *value;
    if (high > 0 && asked > high)
        *value = high;
    else if (asked < low)
        *value = low;
    return *value != asked ? CLAMPED : AS_IT_IS;
}

static verdict check_switch(double value) { return value == 0 || value == 1 ? AS_IT_IS : FAULT; }

static verdict to_gpu(const fl_gpu_facts *f, int id, double *value) {
    if (*value == FL_DEFAULT)
        return AS_IT_IS;
    if (id == FL_SET_RECORDS)
        return check_switch(*value);
    if (!isfinite(*value) || *value <= 0)
        return FAULT;
    switch (id) {
    case FL_SET_SM_MHZ:
        return snap(f->sm, value);
    case FL_SET_MEM_MHZ:
        return snap(f->mem, value);
    default:
        return clamp(f->power_min_w, f->power_max_w, value);
    }
}

static verdict to_host(const fl_host_facts *f, int id, double *value) {
    if (*value == FL_DEFAULT)
        return AS_IT_IS;
    if (id == FL_SET_HOST_CPU_BOOST)
        return check_switch(*value);
    if (!isfinite(*value) || *value <= 0)
        return FAULT;
    return id == FL_SET_HOST_CPU_MHZ ? snap(f->cpu, value) : clamp(f->power_min_w, f->power_max_w, value);
}

/* ---- what of it is made now ---------------------------------------------------------------------------------------
 */

/* Whether the request stands. */
static bool request(fl_instance *in, control *c, double asked, double value, verdict v) {
    if (v == FAULT) {
        in->counts.faults++;
        return false;
    }
    in->counts.snapped += v == SNAPPED;
    in->counts.clamped += v == CLAMPED;
    in->pending += !c->pending;
    c->pending = true;
    c->held = (fl_decided){.set = true, .requested = asked, .value = value};
    return true;
}

/* Makes what is pending, unless the control was set too short a time ago. */
static fl_decided make(fl_instance *in, control *c, int64_t now_ns, bool asked) {
    if (!c->pending)
        return (fl_decided){0};
    if (c->was_set && now_ns - c->set_ns < in->min_set_interval_ns) {
        in->counts.held_back += asked;
        return (fl_decided){0};
    }
    in->pending--;
    c->pending = false;
    c->was_set = true;
    c->set_ns = now_ns;
    in->counts.sets++;
    return c->held;
}

/* Without the bits that are faults: controls or events that do not exist, or that the descriptor does not name. */
static uint64_t drop_undriven(fl_instance *in, uint64_t set, uint64_t drives, int count) {
    uint64_t allowed = drives & ((UINT64_C(1) << count) - 1);
    for (uint64_t undriven = set & ~allowed; undriven; undriven &= undriven - 1)
        in->counts.faults++;
    return set & allowed;
}

static void decide_gpu(fl_instance *in, uint32_t gpu, int64_t now_ns) {
    const fl_gpu_command *command = &in->command[gpu];
    uint64_t set = drop_undriven(in, command->set, in->policy->gpu_drives, FL_GPU_CONTROL_COUNT);
    if (!set && !in->pending) {
        memset(in->decided[gpu], 0, sizeof in->decided[gpu]);
        return;
    }
    for (int id = 0; id < FL_GPU_CONTROL_COUNT; id++) {
        control *c = &in->gpu_control[(size_t)gpu * FL_GPU_CONTROL_COUNT + (size_t)id];
        bool asked = set >> id & 1;
        if (asked) {
            double value = command->value[id];
            verdict v = to_gpu(&in->facts->gpu[gpu], id, &value);
            asked = request(in, c, command->value[id], value, v);
        }
        in->decided[gpu][id] = make(in, c, now_ns, asked);
    }
}

static void decide_host(fl_instance *in, const fl_host_command *command, int64_t now_ns) {
    uint64_t set = drop_undriven(in, command->set, in->policy->host_drives, FL_HOST_CONTROL_COUNT);
    if (!set && !in->pending) {
        memset(in->decision.host, 0, sizeof in->decision.host);
        return;
    }
    for (int id = 0; id < FL_HOST_CONTROL_COUNT; id++) {
        control *c = &in->host_control[id];
        bool asked = set >> id & 1;
        if (asked) {
            double value = command->value[id];
            verdict v = to_host(&in->facts->host, id, &value);
            asked = request(in, c, command->value[id], value, v);
        }
        in->decision.host[id] = make(in, c, now_ns, asked);
    }
}

/* Whether anything is to be decided. Most steps ask for nothing, and most follow one that asked for nothing either. */
static bool asks(const fl_instance *in, const fl_command *command) {
    uint64_t any = in->pending | command->host.set | command->wake;
    for (uint32_t i = 0; i < in->facts->gpu_count; i++)
        any |= in->command[i].set;
    return any != 0;
}

static void decide(fl_instance *in, const fl_command *command, int64_t now_ns) {
    in->decided_any = asks(in, command);
    for (uint32_t i = 0; i < in->facts->gpu_count; i++)
        decide_gpu(in, i, now_ns);
    decide_host(in, &command->host, now_ns);
    in->decision.wake = drop_undriven(in, command->wake, in->policy->wakes, FL_WAKE_COUNT);
}

/* What is written before a call and its mark are in this order for a handler on the same thread. */
static void enter(const fl_instance *in, fl_call call, uint64_t step, int64_t time_ns) {
    fl_stepping *now = &fl_stepping_now;
    if (fl_stepping_watch && !now->watched) {
        now->watched = true;
        fl_stepping_watch();
    }
    now->policy = in->policy;
    now->label = in->label;
    now->run = in->run;
    now->seed = in->facts->seed;
    now->step = step;
    now->time_ns = time_ns;
    now->calls++;
    atomic_signal_fence(memory_order_seq_cst);
    now->call = call;
}

static void leave(void) {
    fl_stepping_now.call = FL_CALL_NONE;
    atomic_signal_fence(memory_order_seq_cst);
}

fl_status fl_instance_step(fl_instance *in, const fl_sample *sample, const fl_decision **decision, fl_diag *d) {
    const fl_policy *policy = in->policy;
    uint32_t gpus = in->facts->gpu_count;
    *decision = NULL;
    if (sample->gpu_count != gpus)
        return fl_refuse(d, "policy %s: a sample of %" PRIu32 " GPUs, expected %" PRIu32 " as in the facts",
                         policy->name, sample->gpu_count, gpus);
    if (sample->server_count != in->facts->server_count)
        return fl_refuse(d, "policy %s: a sample of %" PRIu32 " servers, expected %" PRIu32 " as in the facts",
                         policy->name, sample->server_count, in->facts->server_count);
    if (gpus == 1)
        in->command[0] = (fl_gpu_command){0}; /* the usual case, for which a call takes long */
    else
        memset(in->command, 0, gpus * sizeof *in->command);
    double *const probe = in->probe;
    for (size_t i = 0, count = in->unwatched ? 0 : in->probe_count; i < count; i++)
        probe[i] = NAN;
    fl_command command = {.gpu = in->command, .probe = in->probe_row, .unwatched = in->unwatched};
    enter(in, FL_CALL_STEP, sample->step, sample->time_ns);
    policy->step(in->state, in->params, in->facts, sample, &command);
    leave();
    in->counts.steps++;
    if (command.delay_ns > 0)
        in->delay_ns = command.delay_ns;
    else
        in->counts.faults++;
    in->decision.delay_ns = in->delay_ns;
    if (asks(in, &command) || in->decided_any)
        decide(in, &command, sample->time_ns);
    *decision = &in->decision;
    return FL_OK;
}

/* ---- opening, copying, closing ------------------------------------------------------------------------------------
 */

static size_t probe_cells(const fl_policy *policy, uint32_t gpus) {
    size_t cells = 0;
    for (uint32_t i = 0; i < policy->probe_count; i++)
        cells += policy->probe[i].per_gpu ? gpus : 1;
    return cells;
}

static void place_probes(fl_instance *in) {
    double *cell = in->probe;
    for (uint32_t i = 0; i < in->policy->probe_count; i++) {
        in->probe_row[i] = cell;
        cell += in->policy->probe[i].per_gpu ? in->facts->gpu_count : 1;
    }
}

/* All but the parameters. State zeroed. */
static bool allocate(fl_instance *in) {
    const fl_policy *policy = in->policy;
    const size_t gpus = in->facts->gpu_count, some = gpus ? gpus : 1, most = SIZE_MAX / 4;
    if (policy->state_size > most / 2 || policy->gpu_size > most / 2 / some)
        return false;
    in->state_size = fl_state_rounded(policy->state_size) + gpus * policy->gpu_size;
    const size_t rounded = fl_state_rounded(in->state_size + 1); /* a policy without a state has an address too */
    in->state = aligned_alloc(FL_STATE_ALIGNMENT, rounded);
    in->command = calloc(some, sizeof *in->command);
    in->decided = calloc(some, sizeof *in->decided);
    in->gpu_control = calloc(some * FL_GPU_CONTROL_COUNT, sizeof *in->gpu_control);
    in->probe = calloc(in->probe_count + 1, sizeof *in->probe);
    in->probe_row = calloc(policy->probe_count + 1U, sizeof *in->probe_row);
    if (!in->state || !in->command || !in->decided || !in->gpu_control || !in->probe || !in->probe_row)
        return false;
    memset(in->state, 0, rounded);
    for (size_t i = 0; i < in->probe_count; i++)
        in->probe[i] = NAN;
    place_probes(in);
    in->decision.gpu_count = in->facts->gpu_count;
    in->decision.gpu = (const fl_decided(*)[FL_GPU_CONTROL_COUNT])in->decided;
    in->decision.probe = in->probe;
    return true;
}

void fl_instance_close(fl_instance *in) {
    if (!in)
        return;
    if (in->params)
        fl_params_free(in->policy, in->params);
    free(in->state);
    free(in->command);
    free(in->decided);
    free(in->gpu_control);
    free(in->probe);
    free(in->probe_row);
    free(in);
}

static const char *first_server_need(uint64_t needs) {
    for (int id = 0; id < FL_SERVER_SIGNAL_COUNT; id++)
        if (needs >> id & 1)
            return fl_rows_at(FL_ROWS_SERVER_SIGNAL, (size_t)id)->name;
    return "unknown";
}

static fl_status open_checked(fl_instance *in, const fl_instance_options *o, fl_diag *d) {
    fl_status status = fl_params_resolve(&in->params, o->policy, o->layer, o->layer_count, d);
    if (!status)
        status = fl_reads_check(o->policy, d);
    if (status)
        return status;
    const uint64_t server_needs = fl_reads_of(o->policy).server_needs;
    if (server_needs && !o->facts->server_count)
        return fl_refuse(d,
                         "policy %s: it reads the signals of a server that batches requests (%s), and there is none "
                         "here",
                         o->policy->name, first_server_need(server_needs));
    if (!allocate(in))
        return fl_no_memory(d, NULL);
    enter(in, FL_CALL_INIT, 0, 0);
    const char *refusal = o->policy->init(in->state, in->params, o->facts);
    leave();
    char text[FL_REFUSAL_TEXT];
    if (refusal)
        return fl_refuse(d, "policy %s: %s", o->policy->name,
                         fl_params_refusal(o->policy, in->params, o->facts, refusal, text));
    return FL_OK;
}

fl_status fl_instance_open(fl_instance **out, const fl_instance_options *o, fl_diag *d) {
    char difference[512];
    *out = NULL;
    if (fl_abi_difference(&o->policy->abi, difference, sizeof difference))
        return fl_refuse(d, "the policy was built against another contract: %s", difference);
    if (!o->policy->name || !o->policy->init || !o->policy->step)
        return fl_refuse(d, "policy %s: no name, init or step in its descriptor",
                         o->policy->name ? o->policy->name : "without a name");
    fl_instance *in = calloc(1, sizeof *in);
    if (!in)
        return fl_no_memory(d, NULL);
    in->policy = o->policy;
    in->facts = o->facts;
    in->label = o->label;
    in->run = o->run;
    in->min_set_interval_ns = o->min_set_interval_ns;
    in->unwatched = o->unwatched;
    in->delay_ns = FIRST_DELAY_NS;
    in->probe_count = probe_cells(o->policy, o->facts->gpu_count);
    fl_status status = open_checked(in, o, d);
    if (status) {
        fl_instance_close(in);
        return status;
    }
    *out = in;
    return FL_OK;
}

fl_status fl_instance_copy(fl_instance **out, const fl_instance *in, fl_diag *d) {
    *out = NULL;
    fl_instance *copy = malloc(sizeof *copy);
    if (!copy)
        return fl_no_memory(d, NULL);
    *copy = *in;
    copy->state = NULL; /* all that the two must not share is allocated anew */
    copy->command = NULL;
    copy->decided = NULL;
    copy->gpu_control = NULL;
    copy->probe = NULL;
    copy->probe_row = NULL;
    copy->params = fl_params_copy(in->policy, in->params);
    if (!allocate(copy) || !copy->params) {
        fl_instance_close(copy);
        return fl_no_memory(d, NULL);
    }
    size_t gpus = in->facts->gpu_count;
    memcpy(copy->state, in->state, in->state_size);
    memcpy(copy->gpu_control, in->gpu_control, gpus * FL_GPU_CONTROL_COUNT * sizeof *in->gpu_control);
    memcpy(copy->probe, in->probe, in->probe_count * sizeof *in->probe);
    *out = copy;
    return FL_OK;
}

/* ---- looking at it ------------------------------------------------------------------------------------------------
 */

uint32_t fl_instance_route(const fl_instance *in, const fl_route_query *query) {
    return in->policy->route(in->state, in->params, in->facts, query);
}

const fl_policy *fl_instance_policy(const fl_instance *in) { return in->policy; }

fl_instance_counts fl_instance_counts_of(const fl_instance *in) { return in->counts; }

char *fl_instance_param_text(const fl_instance *in, uint32_t index, char *buf, size_t size) {
    return fl_params_text(in->policy, in->params, index, buf, size);
}

fl_table fl_instance_param_table(const fl_instance *in, uint32_t index) {
    return fl_params_table(in->policy, in->params, index);
}

size_t fl_instance_probe_count(const fl_instance *in) { return in->probe_count; }
