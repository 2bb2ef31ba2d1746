/* The choice of one clock under every assumption, the choice of one policy of an experiment, and the vendor's commands
 * that set a clock. */
#include "harness/advise/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "models/chip/chip.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- one clock under every assumption ---- */

#define TIE 1e-9 /* of ln energy; energies that differ by less are one */
#define SDS 2    /* deviations of the intervals, as everywhere where the program states deviations */

/* The setting in every case; false where one case does not know it. */
static bool find_all(const fl_advise_case *c, size_t cases, fl_setting_clocks at, fl_chip_guess *g) {
    for (size_t k = 0; k < cases; k++)
        if (!fl_stated_at(&c[k].stated, at, &g[k]))
            return false;
    return true;
}

static bool states(const fl_stated *s) {
    bool any = s->fitted;
    for (size_t i = 0; i < s->count; i++)
        any |= s->guess[i].time_sd_pct > 0 || s->guess[i].power_sd_pct > 0;
    return any;
}

static double ln_energy(const fl_chip_guess *g) { return log(g->time_s * g->power_w); }

/* Whether the setting may be chosen: in all cases, or (any) in one. */
static bool allowed(const fl_chip_guess *g, const fl_chip_guess *top, size_t cases, double bound, double risk,
                    bool any) {
    size_t n = 0;
    for (size_t k = 0; k < cases; k++)
        n += fl_decide_allows(&g[k], &top[k], bound, risk) != 0;
    return any ? n > 0 : n == cases;
}

/* The uncertainty of a setting's energy: the stated deviations, and the distance between the cases. */
static double doubt(const fl_chip_guess *g, const fl_chip_guess *top, size_t cases) {
    double mean = 0, square = 0, stated = 0;
    for (size_t k = 0; k < cases; k++) {
        const double x = ln_energy(&g[k]) - ln_energy(&top[k]);
        mean += x / (double)cases;
        square += x * x / (double)cases;
        stated += fl_decide_cost_sd(&g[k], 1) / (double)cases;
    }
    return sqrt(fmax(0, square - mean * mean) + stated * stated);
}

static void widen(fl_advice_interval *to, double value, double low, double high, size_t k, size_t cases) {
    to->value = (k ? to->value : 0) + value / (double)cases;
    to->low = k ? fmin(to->low, low) : low;
    to->high = k ? fmax(to->high, high) : high;
}

static void describe(const fl_chip_guess *g, const fl_chip_guess *top, size_t cases, double bound, bool is_top,
                     fl_advice *out) {
    for (size_t k = 0; k < cases; k++) {
        const fl_chip_guess *t = is_top ? &g[k] : &top[k];
        const double energy = ln_energy(&g[k]) - ln_energy(t), time = log(g[k].time_s / t->time_s);
        const double energy_sd = is_top ? 0 : hypot(fl_decide_cost_sd(&g[k], 1), fl_decide_cost_sd(t, 1));
        /* the deviation of time alone, without that of power */
        const fl_chip_guess a = {1, 1, g[k].time_sd_pct, 0}, b = {1, 1, t->time_sd_pct, 0};
        const double time_sd = is_top ? 0 : hypot(fl_decide_cost_sd(&a, 1), fl_decide_cost_sd(&b, 1));
        widen(&out->saving, 100 * (1 - exp(energy)), 100 * (1 - exp(energy + SDS * energy_sd)),
              100 * (1 - exp(energy - SDS * energy_sd)), k, cases);
        widen(&out->slowdown, 100 * (exp(time) - 1), 100 * (exp(time - SDS * time_sd) - 1),
              100 * (exp(time + SDS * time_sd) - 1), k, cases);
        out->chance = fmax(k ? out->chance : 0, is_top ? 0 : fl_decide_chance(&g[k], t, bound));
    }
}

fl_status fl_advise(const fl_advise_case *c, size_t cases, fl_setting_clocks ref, double bound, double risk,
                    fl_advice *out, fl_diag *d) {
    fl_chip_guess top[FL_ADVISE_CASES], g[FL_ADVISE_CASES], best[FL_ADVISE_CASES];
    fl_advice a = {.at = ref, .measure = {NAN, NAN, 0}};
    double least = 0, most = 0; /* the reference stays where no other setting needs less */
    if (!find_all(c, cases, ref, top))
        return fl_refuse(d, "no data for the reference clock, %g MHz (memory %g MHz)", ref.sm_mhz, ref.mem_mhz);
    for (size_t k = 0; k < cases; k++)
        best[k] = top[k];
    bool assumed = false; /* the times of a case are not predictions, so no chance follows */
    for (size_t k = 0; k < cases; k++) {
        a.stated |= states(&c[k].stated);
        assumed |= c[k].assume != NULL;
    }
    for (size_t i = 0; i < c[0].stated.count; i++) {
        const fl_setting_clocks at = c[0].stated.at[i];
        if (!find_all(c, cases, at, g))
            continue;
        const bool is_ref = fl_stated_same(at, ref);
        double mean = 0;
        for (size_t k = 0; k < cases; k++)
            mean += (ln_energy(&g[k]) - ln_energy(&top[k])) / (double)cases;
        if (mean < least - TIE && allowed(g, top, cases, bound, risk, false)) {
            least = mean;
            a.at = at;
            for (size_t k = 0; k < cases; k++)
                best[k] = g[k];
        }
        const double here = doubt(g, top, cases);
        if (!(at.limit_w > 0) && (is_ref || allowed(g, top, cases, bound, 1, true)) && here > most) {
            most = here;
            a.measure = at;
        }
    }
    describe(best, top, cases, bound, fl_stated_same(a.at, ref), &a);
    if (!a.stated || assumed)
        a.chance = NAN;
    *out = a;
    return FL_OK;
}

fl_status fl_advise_at(const fl_advise_case *c, size_t cases, fl_setting_clocks ref, fl_setting_clocks at, double bound,
                       fl_advice *out, fl_diag *d) {
    fl_chip_guess top[FL_ADVISE_CASES], g[FL_ADVISE_CASES];
    fl_advice a = {.at = at, .measure = {NAN, NAN, 0}};
    bool assumed = false;
    if (!find_all(c, cases, ref, top) || !find_all(c, cases, at, g))
        return fl_refuse(d, "no data for %g MHz, or for the reference clock, %g MHz", at.sm_mhz, ref.sm_mhz);
    for (size_t k = 0; k < cases; k++) {
        a.stated |= states(&c[k].stated);
        assumed |= c[k].assume != NULL;
    }
    describe(g, top, cases, bound, fl_stated_same(at, ref), &a);
    if (!a.stated || assumed)
        a.chance = NAN;
    *out = a;
    return FL_OK;
}

/* The energy of all at one setting, as a share of that at their references; false where one does not know or allow it.
 */
static bool cost_of_all(const fl_advise_subjects *s, fl_setting_clocks at, double bound, double risk, double *cost) {
    double sum = 0, of = 0;
    for (size_t i = 0; i < s->count; i++) {
        const fl_advise_subject *x = &s->item[i];
        fl_chip_guess g[FL_ADVISE_CASES], top[FL_ADVISE_CASES];
        if (!x->cases)
            continue;
        if (!find_all(x->of, x->cases, at, g) || !find_all(x->of, x->cases, x->ref, top) ||
            (!fl_stated_same(at, x->ref) && !allowed(g, top, x->cases, bound, risk, false)))
            return false;
        for (size_t k = 0; k < x->cases; k++) {
            sum += g[k].time_s * g[k].power_w / (double)x->cases;
            of += top[k].time_s * top[k].power_w / (double)x->cases;
        }
    }
    *cost = of > 0 ? sum / of : (double)NAN;
    return of > 0;
}

fl_status fl_advise_common(const fl_advise_subjects *s, double bound, double risk, fl_setting_clocks *at,
                           double *saving, fl_diag *d) {
    const fl_stated *first = NULL;
    double least = INFINITY, cost;
    for (size_t i = 0; i < s->count && !first; i++)
        first = s->item[i].cases ? &s->item[i].of[0].stated : NULL;
    for (size_t i = 0; first && i < first->count; i++)
        if (cost_of_all(s, first->at[i], bound, risk, &cost) && cost < least) {
            least = cost;
            *at = first->at[i];
        }
    *saving = 100 * (1 - least);
    return isfinite(least)
               ? FL_OK
               : fl_refuse(
                     d,
                     "--common: no clock is known of all programs and holds the bound of %g %% for each, expected "
                     "logs of all programs at the same clocks, or a higher --bound",
                     100 * bound);
}

/* ---- one policy of an experiment ---- */

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
    FILE *f = fl_must(fl_text_open(&t));
    fputs(s->plugin ? s->plugin : s->policy->name, f);
    for (size_t i = 0; i < s->layer.count; i++)
        fprintf(f, "%c%s=%s", i ? ',' : ':', s->layer.setting[i].name,
                s->file && s->file[i] ? s->file[i] : s->layer.setting[i].text);
    return fl_must(fl_text_close(&t, NULL));
}

static void choose(const fl_setup *u, const fl_comparison *c, double risk, fl_advise_policy *out) {
    double *room = fl_must(malloc((c->count + 1) * sizeof *room));
    const fl_spec *best = NULL;
    fl_advise_policy least = {.chance = INFINITY};
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
    if (best)
        out->policy = command_text(best);
    else
        *out = least;
    out->policies = u->own_specs;
    out->bound = u->o.bound;
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
        choose(&u, &c, risk, out);
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

/* ---- the vendor's commands ---- */

typedef enum board { LOCKS, APPLICATION, NEITHER, NOT_KNOWN, AMD, INTEL } board;

/* No GeForce is a Volta: GTX 16xx and later are Turing, lower numbers are Pascal and older. */
#define GEFORCE_VOLTA 1600

/* A chip's letter and its number: K20Xm, M60, P100, GP100, P6000. */
static bool is_old_chip(const char *word) {
    word += toupper((unsigned char)word[0]) == 'G' && toupper((unsigned char)word[1]) == 'P';
    const char letter = (char)toupper((unsigned char)word[0]);
    return (letter == 'K' || letter == 'M' || letter == 'P') && isdigit((unsigned char)word[1]);
}

/* "GTX 1080 Ti", "GTX1080", "GeForce 940M": the number after the words. */
static bool is_old_geforce(const char *word, const char *before) {
    static const char *const series[] = {"GTX", "GTS", "GT", "GeForce"};
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
        const size_t n = strlen(series[i]);
        const char *number = !strcasecmp(before, series[i]) ? word : !strncasecmp(word, series[i], n) ? word + n : "";
        if (isdigit((unsigned char)*number))
            return strtol(number, NULL, 10) < GEFORCE_VOLTA;
    }
    return false;
}

static board nvidia(const char *device) {
    char name[128], before[128] = "";
    const bool titan = strcasestr(device, "titan") != NULL;
    (void)snprintf(name, sizeof name, "%s", device);
    if (titan)
        return strcasestr(device, "titan v") || strcasestr(device, "titan rtx") ? LOCKS : APPLICATION;
    char *rest = NULL;
    for (char *word = strtok_r(name, " -_()", &rest); word; word = strtok_r(NULL, " -_()", &rest)) {
        if (is_old_geforce(word, before))
            return NEITHER;
        if (is_old_chip(word))
            return APPLICATION;
        (void)snprintf(before, sizeof before, "%s", word);
    }
    return LOCKS;
}

static board board_of(const char *device) {
    if (!*device)
        return NOT_KNOWN;
    if (strcasestr(device, "amd") || strcasestr(device, "radeon") || strcasestr(device, "instinct"))
        return AMD;
    if (strcasestr(device, "intel") || strcasestr(device, "data center gpu max"))
        return INTEL;
    return nvidia(device);
}

bool fl_advise_other_vendor(const char *measured, const char *device) {
    const board of = board_of(measured), other = board_of(device);
    const bool nvidias = strcasestr(measured, "nvidia") || strcasestr(measured, "geforce");
    if (other == NOT_KNOWN || (of != AMD && of != INTEL && !nvidias))
        return false;
    return nvidias ? other == AMD || other == INTEL : other != of;
}

/* The word that states a board's model, without the name of a series before its number: "A100", "5090", "MI250X". Sizes
 * of memory, sockets and watts state none. */
static bool model_of(const char *device, char model[32]) {
    static const char *const no_model[] = {"SXM", "HBM", "GDDR", "PCI", "Gen"};
    static const char *const series[] = {"GTX", "RTX", "GTS", "GT"};
    char name[128], *rest = NULL;
    (void)snprintf(name, sizeof name, "%s", device);
    for (char *word = strtok_r(name, " -_()", &rest); word; word = strtok_r(NULL, " -_()", &rest)) {
        const char *digit = strpbrk(word, "0123456789"), last = word[strlen(word) - 1];
        bool is = digit && isdigit((unsigned char)digit[1]) && !(digit == word && (last == 'B' || last == 'W'));
        for (size_t i = 0; i < sizeof no_model / sizeof *no_model; i++)
            is = is && strncasecmp(word, no_model[i], strlen(no_model[i])) != 0;
        if (!is)
            continue;
        for (size_t i = 0; i < sizeof series / sizeof *series; i++)
            if ((size_t)(digit - word) == strlen(series[i]) && !strncasecmp(word, series[i], strlen(series[i])))
                word += strlen(series[i]);
        (void)snprintf(model, 32, "%s", word);
        return true;
    }
    return false;
}

/* "1080" begins "1080Ti", but "A10" is not "A100". */
static bool begins(const char *model, const char *with) {
    return !strncasecmp(model, with, strlen(with)) && !isdigit((unsigned char)model[strlen(with)]);
}

bool fl_advise_other_model(const char *measured, const char *device) {
    char a[32], b[32];
    return model_of(measured, a) && model_of(device, b) && !begins(a, b) && !begins(b, a);
}

static void lock(fl_advise_commands *c, const char *tool, fl_setting_clocks at, bool memory) {
    const int n = snprintf(c->set, sizeof c->set, "%s -lgc %.0f,%.0f", tool, at.sm_mhz, at.sm_mhz);
    if (memory)
        (void)snprintf(c->set + n, sizeof c->set - (size_t)n, " && %s -lmc %.0f,%.0f", tool, at.mem_mhz, at.mem_mhz);
    const int m = snprintf(c->undo, sizeof c->undo, "%s -rgc", tool);
    if (memory)
        (void)snprintf(c->undo + m, sizeof c->undo - (size_t)m, " && %s -rmc", tool);
}

/* " 0 1 2": the numbers below n, or the one that the user named. */
static void list_devices(char *text, size_t size, long n, int64_t only) {
    int used = only >= 0 ? snprintf(text, size, " %lld", (long long)only) : 0;
    for (long i = 0; only < 0 && i < n && used < (int)size - 8; i++)
        used += snprintf(text + used, size - (size_t)used, " %ld", i);
}

/* xpu-smi sets one tile of one device at a time. A platform may take several devices as one board ("6 x Intel Max
 * 1550"); a Max 1550 has two tiles. */
static void intel(fl_advise_commands *c, const char *device, int64_t gpu, double sm_mhz) {
    enum { DEVICES_MAX = 16 };
    char *after = NULL, list[64], tile[] = "xpu-smi config -d $d -t $t --frequencyrange", *to[] = {c->set, c->undo};
    const long named = strtol(device, &after, 10);
    const bool several = named > 1 && named <= DEVICES_MAX && !strncmp(after, " x ", 3);
    const bool two_tiles = strstr(device, "1550") != NULL;
    list_devices(list, sizeof list, several ? named : 1, gpu);
    for (size_t i = 0; i < 2; i++) {
        char range[32] = "MIN,MAX";
        if (i == 0)
            (void)snprintf(range, sizeof range, "%.0f,%.0f", sm_mhz, sm_mhz);
        const int n = snprintf(to[i], sizeof c->set, "for d in%s; do for t in 0%s; do %s %s; done; done", list,
                               two_tiles ? " 1" : "", tile, range);
        if (i && n > 0 && (size_t)n < sizeof c->set)
            (void)snprintf(to[i] + n, sizeof c->set - (size_t)n, " # as it was: xpu-smi config -d %lld",
                           (long long)(gpu < 0 ? 0 : gpu));
    }
    if (!two_tiles || (!several && gpu < 0))
        c->note = "for the devices d and tiles t named; xpu-smi discovery lists those of the machine";
}

/* The tool of the board's vendor, for the GPU that the user named. */
static void tool_of(board is, int64_t gpu, char *tool, size_t size) {
    const char *name = is == AMD ? "rocm-smi" : is == INTEL ? "xpu-smi config" : "nvidia-smi";
    if (gpu >= 0)
        (void)snprintf(tool, size, "%s %s %lld", name, is == AMD || is == INTEL ? "-d" : "-i", (long long)gpu);
    else
        (void)snprintf(tool, size, "%s%s", name, is == INTEL ? " -d 0" : "");
}

static void add_command(char *to, size_t size, const char *tool, const char *option, const char *value) {
    const size_t used = strlen(to);
    (void)snprintf(to + used, size - used, "%s%s %s%s", used ? " && " : "", tool, option, value);
}

void fl_advise_add_limit(fl_advise_commands *c, const char *device, int64_t gpu, double limit_w, double own_w) {
    char tool[64], value[32] = "DEFAULT";
    const board is = board_of(device);
    if (is == NEITHER)
        return; /* the limit goes with a clock that no command sets */
    tool_of(is, gpu, tool, sizeof tool);
    const char *option = is == AMD ? "--setpoweroverdrive " : is == INTEL ? "--powerlimit " : "-pl ";
    if (own_w > 0 && isfinite(own_w))
        (void)snprintf(value, sizeof value, "%.0f", own_w);
    else if (!c->note && is != AMD)
        c->note = "DEFAULT is the board's default power limit, which nvidia-smi -q -d POWER or xpu-smi config tells";
    if (is == AMD)
        add_command(c->undo, sizeof c->undo, tool, "--resetpoweroverdrive", "");
    else
        add_command(c->undo, sizeof c->undo, tool, option, value);
    (void)snprintf(value, sizeof value, "%.0f", limit_w);
    add_command(c->set, sizeof c->set, tool, option, value);
}

fl_advise_commands fl_advise_commands_of(const char *device, int64_t gpu, fl_setting_clocks at, bool memory) {
    fl_advise_commands c = {.set = ""};
    char tool[64];
    const board is = board_of(device);
    tool_of(is, gpu, tool, sizeof tool);
    switch (is) {
    case AMD:
        (void)snprintf(c.set, sizeof c.set, "%s --setperfdeterminism %.0f", tool, at.sm_mhz);
        (void)snprintf(c.undo, sizeof c.undo, "%s --resetperfdeterminism", tool);
        break;
    case INTEL:
        intel(&c, device, gpu, at.sm_mhz);
        break;
    case APPLICATION:
        (void)snprintf(c.set, sizeof c.set, "%s -ac %.0f,%.0f", tool, at.mem_mhz, at.sm_mhz);
        (void)snprintf(c.undo, sizeof c.undo, "%s -rac", tool);
        break;
    case NEITHER:
        c.note = "no command sets it: GeForce boards before Volta have neither clock locks nor application clocks";
        break;
    case NOT_KNOWN:
        c.note =
            "for NVIDIA boards from Volta on; before, nvidia-smi -ac MEM,SM, undone by nvidia-smi -rac, but GeForce "
            "boards of that time have neither";
        lock(&c, tool, at, memory);
        break;
    case LOCKS:
        lock(&c, tool, at, memory);
        break;
    }
    return c;
}
