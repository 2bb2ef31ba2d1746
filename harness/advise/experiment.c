#include "harness/advise/experiment.h"

#include "harness/study/compare/comparison.h"
#include "harness/study/trial/setup.h"
#include "traces/io/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The runs of one policy. */
static void sum_up(const fl_comparison *c, const char *policy, double *room, fl_advise_policy *out) {
    double half = 0, broken = 0;
    size_t n = 0;
    *out = (fl_advise_policy){.worst_slowdown_pct = -INFINITY};
    for (size_t i = 0; i < c->mean_first; i++) {
        if (strcmp(c->row[i].policy, policy) != 0)
            continue;
        room[n++] = c->row[i].energy_saving_pct;
        broken += c->row[i].violated > 0 ? 1 : 0;
        out->worst_slowdown_pct = fmax(out->worst_slowdown_pct, 100 * c->row[i].score.slowdown);
    }
    out->runs = n;
    if (!n)
        return;
    fl_mean_interval(room, n, &out->saving.value, &half);
    out->saving.low = out->saving.value - half;
    out->saving.high = out->saving.value + half;
    out->chance = broken / (double)n;
}

/* The policy as NAME:parameter=value,..., from which fl_spec_open makes the same policy, even where the experiment
 * gives it a label. */
static char *command_text(const fl_spec *s) {
    fl_text t;
    FILE *f = fl_text_open(&t);
    if (f)
        fputs(s->plugin ? s->plugin : s->policy->name, f);
    for (size_t i = 0; f && i < s->layer.count; i++)
        fprintf(f, "%c%s=%s", i ? ',' : ':', s->layer.setting[i].name,
                s->file && s->file[i] ? s->file[i] : s->layer.setting[i].text);
    return fl_text_close(&t, NULL);
}

static fl_status choose(const fl_setup *u, const fl_comparison *c, double risk, fl_advise_policy *out, fl_diag *d) {
    double *room = malloc((c->count + 1) * sizeof *room);
    const fl_spec *best = NULL;
    fl_advise_policy least = {.chance = INFINITY};
    if (!room)
        return fl_no_memory(d, "the advice");
    for (size_t i = 0; i < u->o.spec_count; i++) {
        fl_advise_policy p;
        sum_up(c, u->o.spec[i].label, room, &p);
        if (!p.runs)
            continue;
        if (p.chance < least.chance)
            least = p;
        if (p.chance <= risk && (!best || p.saving.value > out->saving.value)) {
            best = &u->o.spec[i];
            *out = p;
        }
    }
    free(room);
    if (!best)
        *out = least;
    else if (!(out->policy = command_text(best)))
        return fl_no_memory(d, "the advice");
    out->policies = u->own_specs;
    out->bound = u->o.bound;
    return FL_OK;
}

fl_status fl_advise_experiment(const char *path, const char *platform, double bound, double risk, fl_advise_policy *out,
                               fl_diag *d) {
    fl_setup u = {0};
    fl_setup_options o = FL_SETUP_UNSET;
    fl_comparison c = {0};
    *out = (fl_advise_policy){0};
    o.bound = bound;
    o.no_oracle = true;
    o.scene.platform = platform;
    fl_status s = fl_texts_add(&o.rest, path, d);
    if (!s)
        s = fl_setup_open(&u, &o, d);
    const bool open = !s;
    if (!s && fl_experiment_draws(&u.experiment))
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a distribution replay, expected an experiment with kernels");
    if (!s && isinf(u.o.bound))
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no bound on the slowdown, expected --bound");
    if (!s)
        s = fl_comparison_run(&u.o, &c, d);
    if (!s)
        s = choose(&u, &c, risk, out, d);
    fl_comparison_free(&c);
    if (open)
        fl_setup_free(&u);
    fl_setup_options_free(&o);
    return s;
}

void fl_advise_policy_free(fl_advise_policy *p) {
    free(p->policy);
    *p = (fl_advise_policy){0};
}
