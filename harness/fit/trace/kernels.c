/* Kernel classes from recordings of a program at several clocks. */
#include "harness/fit/trace/inside.h"

#include "harness/base/work/work.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- power of kernels from telemetry ---- */

typedef struct power_row { /* one recording: mean power = base + alpha x core + beta x memory */
    double base_w, core_w, memory_w, seen_w;
} power_row;

typedef struct scales {
    double alpha, beta;
} scales;

double fl_fit_trace_memory(double c, double l, double sharpness) {
    const double rest = 1 - l, x = isinf(sharpness) ? 0 : pow(rest, sharpness) - pow(c, sharpness);
    return isinf(sharpness) ? rest : x > 0 ? pow(x, 1 / sharpness) : 0;
}

static double mean_power(const fl_telemetry *t, int32_t device, int64_t from_ns, int64_t to_ns) {
    double sum = 0;
    size_t n = 0, at = 0;
    while (at < t->signal_count && strcmp(t->signal[at], "power_w") != 0)
        at++;
    for (size_t i = 0; at < t->signal_count && i < t->row_count; i++) {
        const double v = t->value[i * t->signal_count + at];
        if (t->device[i] == device && t->t_ns[i] >= from_ns && t->t_ns[i] <= to_ns && !isnan(v)) {
            sum += v;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

static void shares_of(const fl_fit_seen *s, const char *text, double p, double *c, double *m, double *l) {
    const fl_seen_name *name = NULL;
    for (size_t i = 0; !name && i < s->name_count; i++)
        if (!strcmp(s->name[i].text, text))
            name = &s->name[i];
    const bool own = name && name->own_ns > 0;
    *c = own ? name->c : s->any_c;
    *l = own ? name->l : s->any_l;
    *m = fl_fit_trace_memory(*c, *l, p);
}

/* The power of one recording by the platform's law for alpha = beta = 1, and by its telemetry. A kernel's activity is
 * its activity at the reference clock, as the kinds file will state it: the simulator's alpha and beta do not change
 * with the clock (models/laws/laws.h). */
static bool power_of(const fl_device *dev, const fl_fit_seen *seen, double p, const fl_imported *f, double sm_mhz,
                     power_row *row) {
    const fl_kernel_trace *t = &f->kernels;
    const char *head = fl_head_get(&t->head, "sm_mhz");
    const double of_head = head ? strtod(head, NULL) : 0, given = sm_mhz > 0 ? sm_mhz : of_head;
    int64_t first = INT64_MAX, last = INT64_MIN;
    double core = 0, memory = 0, clock = 0, busy = 0, sm_w = 0, memory_w = 0;
    int32_t device = -1;
    fl_base base;
    for (size_t i = 0; i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        if (op->type != FL_OP_KERNEL || (device >= 0 && op->device != device))
            continue;
        double c, m, l;
        const double ns = (double)(op->end_ns - op->start_ns);
        device = op->device;
        first = op->start_ns < first ? op->start_ns : first;
        last = op->end_ns > last ? op->end_ns : last;
        shares_of(seen, t->names[t->kinds[op->kind].name], p, &c, &m, &l);
        core += ns * fl_core_active(c, m, l, p, 1, 1);
        memory += ns * fl_memory_active(c, m, l, p, 1, 1);
        clock += ns * (op->sm_mhz ? op->sm_mhz : given);
        busy += ns;
    }
    if (device < 0 || last <= first || !(busy > 0))
        return false;
    const double mhz = clock / busy, wall = (double)(last - first);
    *row = (power_row){.seen_w = mean_power(&f->telemetry, device, first, last)};
    if (isnan(row->seen_w) || fl_base_make(dev, mhz, dev->default_mem_mhz, &base) != FL_MODEL_OK ||
        fl_power_dynamic(dev, 1, 1, mhz, dev->default_mem_mhz, &sm_w, &memory_w) != FL_MODEL_OK)
        return false;
    row->base_w = base.total_mw * 1e-3;
    row->core_w = sm_w * core / wall;
    row->memory_w = memory_w * memory / wall;
    return true;
}

/* Two unknowns >= 0 by least squares. Where the recordings cannot separate them, both get the same value. */
static scales solve(const power_row *row, size_t count, size_t without) {
    double cc = 0, cm = 0, mm = 0, cy = 0, my = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const double y = row[i].seen_w - row[i].base_w;
        if (i == without)
            continue;
        used++;
        cc += row[i].core_w * row[i].core_w;
        cm += row[i].core_w * row[i].memory_w;
        mm += row[i].memory_w * row[i].memory_w;
        cy += row[i].core_w * y;
        my += row[i].memory_w * y;
    }
    const double determinant = cc * mm - cm * cm, both = cc + 2 * cm + mm;
    scales s = {1, 1};
    if (used > 1 && determinant > 1e-6 * cc * mm)
        s = (scales){(cy * mm - my * cm) / determinant, (my * cc - cy * cm) / determinant};
    else if (both > 0)
        s.alpha = s.beta = (cy + my) / both;
    if (s.alpha < 0 && mm > 0)
        s = (scales){0, my / mm};
    else if (s.beta < 0 && cc > 0)
        s = (scales){cy / cc, 0};
    return (scales){fmax(0, s.alpha), fmax(0, s.beta)};
}

static double off_pct(const power_row *r, scales s) {
    return 100 * fabs((r->base_w + s.alpha * r->core_w + s.beta * r->memory_w) / r->seen_w - 1);
}

fl_trace_power fl_fit_trace_power(const fl_device *dev, const fl_fit_seen *seen, double sharpness,
                                  const fl_imported *file, const double *sm_mhz, size_t count) {
    power_row *row = fl_must(calloc(count + 1, sizeof *row));
    size_t n = 0;
    fl_trace_power out = {.alpha = 1, .beta = 1, .mape_pct = NAN, .unseen_pct = NAN};
    for (size_t i = 0; i < count; i++)
        if (file[i].has_kernels && file[i].has_telemetry)
            n += power_of(dev, seen, sharpness, &file[i], sm_mhz[i], &row[n]) ? 1 : 0;
    if (n > 0) {
        const scales s = solve(row, n, n);
        double error = 0, unseen = 0;
        for (size_t i = 0; i < n; i++) {
            error += off_pct(&row[i], s);
            unseen += n > 1 ? off_pct(&row[i], solve(row, n, i)) : 0;
        }
        out = (fl_trace_power){.alpha = s.alpha,
                               .beta = s.beta,
                               .recordings = n,
                               .mape_pct = error / (double)n,
                               .unseen_pct = n > 1 ? unseen / (double)n : (double)NAN};
    }
    free(row);
    return out;
}

/* ---- kernels at several clocks ---- */

typedef struct key {
    uint32_t name, grid[3], block[3];
} key;

static bool same(const void *owner, uint32_t index, const void *wanted) {
    const fl_fit_seen *s = owner;
    (void)index;
    return !memcmp((const key *)(const void *)(s->kernel + s->kernel_room) + index, wanted, sizeof(key));
}

/* The keys follow the kinds in one allocation, so that both grow together. */
static void grow(fl_fit_seen *s) {
    if (s->kernel_count < s->kernel_room)
        return;
    const size_t room = s->kernel_room ? 2 * s->kernel_room : 256;
    char *more = fl_must(malloc(room * (sizeof *s->kernel + sizeof(key))));
    if (s->kernel_count) {
        memcpy(more, s->kernel, s->kernel_count * sizeof *s->kernel);
        memcpy(more + room * sizeof *s->kernel, s->kernel + s->kernel_room, s->kernel_count * sizeof(key));
    }
    free(s->kernel);
    s->kernel = (fl_seen_kernel *)(void *)more;
    s->kernel_room = room;
}

static fl_seen_kernel *find_or_add(fl_fit_seen *s, const key *k) {
    grow(s);
    fl_intern_slot *slot = fl_must(fl_intern_find(&s->kernels, fl_hash(k, sizeof *k), same, s, k));
    if (slot->index == UINT32_MAX) {
        slot->index = (uint32_t)s->kernel_count;
        ((key *)(void *)(s->kernel + s->kernel_room))[s->kernel_count] = *k;
        s->kernel[s->kernel_count++] = (fl_seen_kernel){.name = k->name};
    }
    return &s->kernel[slot->index];
}

static fl_status count(fl_seen_kernel *k, double mhz, double ns, const char *path, fl_diag *d) {
    size_t i = 0;
    while (i < k->clocks && k->at[i].sm_mhz < mhz)
        i++;
    if (i == k->clocks || k->at[i].sm_mhz > mhz) {
        if (k->clocks == FL_TRACE_CLOCKS)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "one kernel at more than %d clocks", FL_TRACE_CLOCKS);
        memmove(&k->at[i + 1], &k->at[i], (k->clocks++ - i) * sizeof *k->at);
        k->at[i] = (fl_kernel_point){.sm_mhz = mhz};
    }
    k->at[i].time += ns;
    k->at[i].weight++;
    k->total_ns += ns;
    return FL_OK;
}

fl_status fl_seen_add(fl_fit_seen *s, const char *path, const fl_kernel_trace *t, double sm_mhz, fl_diag *d) {
    const char *head = fl_head_get(&t->head, "sm_mhz");
    const double of_head = head ? strtod(head, NULL) : 0;
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        const double ns = (double)(op->end_ns - op->start_ns), mhz = op->sm_mhz   ? op->sm_mhz
                                                                     : sm_mhz > 0 ? sm_mhz
                                                                                  : of_head;
        if (op->type != FL_OP_KERNEL || !(ns > 0))
            continue;
        if (!(mhz > 0))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "the recording does not state the clock of its kernels, expected --sm-mhz, or telemetry "
                           "joined to it");
        const fl_trace_kind *kind = &t->kinds[op->kind];
        const char *name = t->names[kind->name];
        key k = {.name = fl_intern_text(&s->texts, &s->names, &s->name_count, &s->name_room, name, strlen(name))};
        memcpy(k.grid, kind->grid, sizeof k.grid);
        memcpy(k.block, kind->block, sizeof k.block);
        fl_must_have(k.name != UINT32_MAX);
        status = count(find_or_add(s, &k), mhz, ns, path, d);
        s->ref_mhz = fmax(s->ref_mhz, mhz);
        s->total_ns += ns;
    }
    return status;
}

/* Shares at the highest clock of the kind, converted to the common reference. */
static void at_reference(fl_kernel_fit *k, double from_mhz, double ref_mhz, double p) {
    const double whole = fl_kernel_time(k, p, from_mhz / ref_mhz);
    k->c *= from_mhz / ref_mhz / whole;
    k->m /= whole;
    k->l /= whole;
}

static void add_to_name(fl_fit_seen *s, const fl_seen_kernel *k) {
    fl_seen_name *n = &s->name[k->name];
    n->total_ns += k->total_ns;
    if (!k->fitted)
        return;
    n->own_ns += k->total_ns;
    n->c += k->fit.c * k->total_ns;
    n->l += k->fit.l * k->total_ns;
    n->mape += k->fit.mape_pct * k->total_ns;
    if (!isnan(k->fit.unseen_pct)) {
        n->unseen += k->fit.unseen_pct * k->total_ns;
        n->unseen_ns += k->total_ns;
    }
}

fl_status fl_seen_fit(fl_fit_seen *s, double sharpness, fl_diag *d) {
    double unseen = 0, unseen_ns = 0;
    s->name = fl_must(calloc(s->name_count + 1, sizeof *s->name));
    for (size_t i = 0; i < s->kernel_count; i++) {
        fl_seen_kernel *k = &s->kernel[i];
        for (size_t j = 0; j < k->clocks; j++)
            k->at[j].time /= k->at[j].weight;
        k->fitted = k->clocks > 1 && fl_fit_kernel(k->at, k->clocks, sharpness, &k->fit) == FL_MODEL_OK;
        if (k->fitted)
            at_reference(&k->fit, k->at[k->clocks - 1].sm_mhz, s->ref_mhz, sharpness);
        add_to_name(s, k);
    }
    for (size_t i = 0; i < s->name_count; i++) {
        fl_seen_name *n = &s->name[i];
        n->text = s->names[i];
        s->own_ns += n->own_ns;
        s->named_ns += n->own_ns > 0 ? n->total_ns - n->own_ns : 0;
        s->any_c += n->c;
        s->any_l += n->l;
        s->mape_pct += n->mape;
        unseen += n->unseen;
        unseen_ns += n->unseen_ns;
        if (n->own_ns > 0) {
            n->c /= n->own_ns;
            n->l /= n->own_ns;
        }
    }
    if (!(s->own_ns > 0))
        return fl_refuse(d,
                         "no kernel was recorded at two clocks, expected recordings of one program at several clocks");
    s->any_c /= s->own_ns;
    s->any_l /= s->own_ns;
    s->mape_pct /= s->own_ns;
    s->unseen_pct = unseen_ns > 0 ? unseen / unseen_ns : (double)NAN;
    return FL_OK;
}

void fl_seen_free(fl_fit_seen *s) {
    free(s->kernel);
    free(s->name);
    for (size_t i = 0; i < s->name_count; i++)
        free(s->names[i]);
    free(s->names);
    fl_intern_free(&s->kernels);
    fl_intern_free(&s->texts);
    *s = (fl_fit_seen){0};
}
