#include "sim/gpu/cpu.h"

#include <math.h>
#include <stdlib.h>

static fl_status make_rows(fl_cpu *c, const fl_host_load *loads, fl_diag *d) {
    const double bus = c->host->apu ? c->host->peak_bytes_per_s * c->host->bus_max : 0;
    const fl_host_load standard = fl_cpu_default_load(c->spec);
    for (uint32_t s = 0; s < c->state_count; s++) {
        fl_model_status m = fl_cpu_state_make(c->spec, s, &c->state[s]);
        for (uint32_t k = 0; m == FL_MODEL_OK && k < c->load_count; k++)
            m = fl_cpu_row_make(c->spec, k ? &loads[k - 1] : &standard, s, bus, &c->row[s * c->load_count + k]);
        if (m != FL_MODEL_OK)
            return fl_error(d, FL_MODEL_FAULT, "%s: CPU state %u: %s", c->host->name, s, fl_model_text(m));
    }
    return FL_OK;
}

/* The state that request, permission and limits leave. Boost is entered from the highest software state only. */
static uint32_t target(const fl_cpu *c) {
    uint32_t s = c->asked;
    if (c->boost && s + 1 == c->soft_count)
        s = c->state_count - 1;
    return s < c->ceiling ? s : c->ceiling;
}

static uint32_t default_state(const fl_cpu *c) {
    const int at = fl_ladder_index(c->spec->mhz, c->spec->count, c->spec->default_mhz);
    return at < 0 ? c->soft_count - 1 : (uint32_t)at;
}

static bool watches(const fl_cpu *c) {
    return c->spec->period_ns > 0 && (c->limit_mw > 0 || (c->host->apu && c->host->budget_w > 0));
}

fl_status fl_cpu_open(fl_cpu *c, const fl_host_spec *host, double ref_mhz, const fl_host_load *loads,
                      uint32_t load_count, fl_diag *d) {
    *c = (fl_cpu){.own = host->cpu, .host = host, .load_count = load_count, .boost = true};
    const fl_cpu_spec *spec = c->spec = &c->own;
    if (ref_mhz > 0)
        c->own.ref_mhz = ref_mhz;
    c->soft_count = spec->count;
    c->state_count = fl_cpu_state_count(spec);
    c->ceiling = c->state_count - 1;
    c->state = calloc(c->state_count, sizeof *c->state);
    c->row = calloc((size_t)c->state_count * load_count, sizeof *c->row);
    c->slot = calloc(c->state_count, sizeof *c->slot);
    bool ok = c->state && c->row && c->slot;
    for (uint32_t s = 0; ok && s < c->state_count; s++) {
        c->slot[s].time_ps = calloc(load_count, sizeof(int64_t));
        c->slot[s].work_ps = calloc(load_count, sizeof(int64_t));
        ok = c->slot[s].time_ps && c->slot[s].work_ps;
    }
    const fl_status status = ok ? make_rows(c, loads, d) : fl_no_memory(d, "the CPU");
    if (status) {
        fl_cpu_close(c);
        return status;
    }
    c->limit_mw = llround(spec->power_default_w * 1000);
    c->asked = default_state(c);
    c->now = target(c);
    c->look_ps = watches(c) ? spec->period_ns * FL_PS_PER_NS : FL_TIME_NEVER;
    c->mean_fj = (double)c->state[c->now].static_mw;
    c->mean_ps = 1;
    return FL_OK;
}

void fl_cpu_close(fl_cpu *c) {
    for (uint32_t s = 0; c->slot && s < c->state_count; s++) {
        free(c->slot[s].time_ps);
        free(c->slot[s].work_ps);
    }
    free(c->state);
    free(c->row);
    free(c->slot);
    *c = (fl_cpu){0};
}

const fl_cpu_row *fl_cpu_rows(const fl_cpu *c) { return c->row + (size_t)c->now * c->load_count; }

bool fl_cpu_set(fl_cpu *c, int64_t called_ps, double mhz, double boost, double limit_w) {
    fl_cpu_pending p = {.at_ps = called_ps + c->spec->settle_ns * FL_PS_PER_NS,
                        .state = -1,
                        .boost = -1,
                        .limit = !isnan(limit_w),
                        .limit_w = limit_w};
    if (c->pending == FL_CPU_PENDING_MAX)
        return false;
    if (mhz < 0)
        p.state = (int32_t)default_state(c);
    else if (!isnan(mhz))
        p.state = fl_ladder_index(c->spec->mhz, c->spec->count, mhz);
    if (!isnan(boost))
        p.boost = boost != 0; /* the default allows it */
    c->queue[c->pending++] = p;
    return true;
}

int64_t fl_cpu_next(const fl_cpu *c) {
    const int64_t settles = c->pending ? c->queue[0].at_ps : FL_TIME_NEVER;
    return settles < c->look_ps ? settles : c->look_ps;
}

void fl_cpu_collect(fl_cpu *c, fl_host_sums *sums) {
    fl_cpu_slot *slot = &c->slot[c->now];
    const fl_cpu_state *state = &c->state[c->now];
    const fl_cpu_row *row = fl_cpu_rows(c);
    int64_t computing = 0;
    for (uint32_t k = 0; k < c->load_count; k++) {
        const int64_t time = sums->time_ps[k], work = sums->work_ps[k];
        if (!(time | work))
            continue; /* nearly all loads at nearly all instants */
        slot->time_ps[k] += time;
        slot->work_ps[k] += work;
        computing += time;
        c->sums.cpu_fj += (fl_wide)time * row[k].mw;
        c->sums.uops += (fl_wide)work * row[k].uops;
        c->sums.bytes += (fl_wide)work * row[k].bytes;
        sums->time_ps[k] = sums->work_ps[k] = 0;
    }
    const int64_t wait = sums->active_ps - computing;
    sums->active_ps = 0;
    slot->wait_ps += wait;
    c->sums.cpu_fj += (fl_wide)wait * state->wait_mw;
    c->sums.uops += (fl_wide)wait * state->wait_uops;
    const int64_t busy = c->spec->sleeps ? computing : computing + wait;
    c->sums.busy_ps += busy;
    c->sums.cycles += (fl_wide)busy * state->cycles;
}

int64_t fl_cpu_mw(const fl_cpu *c) { return (int64_t)(c->mean_fj / (double)c->mean_ps + 0.5); }

void fl_cpu_charge_to(fl_cpu *c, int64_t t) {
    const int64_t dt = t - c->now_ps;
    c->slot[c->now].open_ps += dt;
    c->sums.cpu_fj += (fl_wide)dt * c->state[c->now].static_mw;
    c->sums.mhz_ps += (fl_wide)dt * c->state[c->now].mhz;
    if (dt > 0) {
        c->mean_fj = fl_real(c->sums.cpu_fj - c->charged_fj);
        c->mean_ps = dt;
        if (c->mean_fj > (double)c->peak_mw * (double)dt) /* else no division is needed: it cannot round above */
            c->peak_mw = fl_cpu_mw(c) > c->peak_mw ? fl_cpu_mw(c) : c->peak_mw;
    }
    c->charged_fj = c->sums.cpu_fj;
    c->now_ps = t;
}

static void take_settled(fl_cpu *c, int64_t t) {
    while (c->pending && c->queue[0].at_ps <= t) {
        const fl_cpu_pending p = c->queue[0];
        c->pending--;
        for (uint32_t i = 0; i < c->pending; i++)
            c->queue[i] = c->queue[i + 1];
        if (p.state >= 0)
            c->asked = (uint32_t)p.state;
        if (p.boost >= 0)
            c->boost = p.boost > 0;
        if (p.limit)
            c->limit_mw = llround((p.limit_w < 0 ? c->spec->power_default_w : p.limit_w) * 1000);
    }
}

/* One state down while a filtered power exceeds what it may be, one up while both are below. The budget of an APU takes
 * only boost states away; the package limit takes any (power-capping by RAPL). */
static void look(fl_cpu *c, int64_t t, fl_wide gpu_fj) {
    const double period = (double)(t - c->seen_ps), filter = (double)(c->spec->filter_ns * FL_PS_PER_NS);
    const double keep = filter > 0 ? exp(-period / filter) : 0;
    const fl_wide all_fj = c->sums.cpu_fj + gpu_fj;
    c->filtered_cpu_mw = keep * c->filtered_cpu_mw + (1 - keep) * fl_real(c->sums.cpu_fj - c->seen_cpu_fj) / period;
    c->filtered_all_mw = keep * c->filtered_all_mw + (1 - keep) * fl_real(all_fj - c->seen_all_fj) / period;
    c->seen_cpu_fj = c->sums.cpu_fj;
    c->seen_all_fj = all_fj;
    c->seen_ps = t;
    const double budget_mw = c->host->apu ? c->host->budget_w * 1000 : 0, limit_mw = (double)c->limit_mw;
    if (limit_mw > 0 && c->filtered_cpu_mw > limit_mw)
        c->ceiling -= c->ceiling > 0;
    else if (budget_mw > 0 && c->filtered_all_mw > budget_mw)
        c->ceiling -= c->ceiling >= c->soft_count;
    else if (c->ceiling + 1 < c->state_count)
        c->ceiling++;
    c->look_ps = t + c->spec->period_ns * FL_PS_PER_NS;
}

bool fl_cpu_at(fl_cpu *c, int64_t t, fl_wide gpu_fj) {
    const uint32_t before = c->now;
    take_settled(c, t);
    if (c->look_ps == FL_TIME_NEVER && watches(c)) {
        const int64_t period = c->spec->period_ns * FL_PS_PER_NS;
        c->look_ps = (t / period + 1) * period;
        c->seen_cpu_fj = c->sums.cpu_fj;
        c->seen_all_fj = c->sums.cpu_fj + gpu_fj;
        c->seen_ps = t; /* the first look after a limit is set sees less than a period */
    }
    if (c->look_ps <= t)
        look(c, t, gpu_fj);
    c->now = target(c);
    c->switches += c->now != before;
    return c->now != before;
}

fl_wide fl_cpu_residence_fj(const fl_cpu *c) {
    fl_wide fj = 0;
    for (uint32_t s = 0; s < c->state_count; s++) {
        const fl_cpu_slot *slot = &c->slot[s];
        fj += (fl_wide)slot->open_ps * c->state[s].static_mw + (fl_wide)slot->wait_ps * c->state[s].wait_mw;
        for (uint32_t k = 0; k < c->load_count; k++)
            fj += (fl_wide)slot->time_ps[k] * c->row[s * c->load_count + k].mw;
    }
    return fj;
}
