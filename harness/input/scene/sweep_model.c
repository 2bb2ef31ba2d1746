#include "harness/input/scene/sweep_model.h"

#include "harness/chip/clocks.h"
#include "harness/chip/sweep_check.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/sweep_notes.h"
#include "traces/files/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_sweep_model_open(const char *path, const char *model, const char *platform, fl_sweep_model *m,
                              fl_diag *d) {
    fl_platform p = {0};
    *m = (fl_sweep_model){.path = path, .fitted = !strcmp(model, "fitted")};
    if (!m->fitted && strcmp(model, "table") != 0)
        return fl_refuse(d, "--model '%s': expected table or fitted", model);
    fl_status s = fl_sweep_read(path, &m->sweep, d);
    if (!s)
        s = fl_sweep_check_units(path, &m->sweep, d);
    if (!s && m->fitted)
        s = fl_sweep_check_twice(path, &m->sweep, d);
    if (!s)
        s = fl_sweep_workloads(&m->sweep, &m->names, &m->count, d);
    if (!s)
        s = fl_platform_open(platform, 0, &p, d);
    if (!s && m->fitted)
        s = fl_sweep_chip_open(&m->chip, path, p.path, d);
    if (!s)
        s = fl_sweep_chip_plain(&m->plain, path, &p.node.device[p.node.gpu[0]], d);
    fl_platform_free(&p);
    if (s)
        fl_sweep_model_free(m);
    return s;
}

void fl_sweep_model_free(fl_sweep_model *m) {
    free(m->names);
    fl_sweep_free(&m->sweep);
    fl_sweep_chip_free(&m->chip);
    fl_sweep_chip_free(&m->plain);
    *m = (fl_sweep_model){0};
}

static fl_status note_predicted(const fl_sweep_model *m, const fl_predicted *p, const fl_device *dev, char ***note,
                                size_t *notes, fl_diag *d) {
    fl_status s = FL_OK;
    char low[48], high[48];
    if (p->unused)
        s = fl_sweep_note(note, notes, d,
                          "%zu rows outside the clocks that the platform was calibrated at teach nothing", p->unused);
    if (!s && p->beyond)
        s = fl_sweep_note(
            note, notes, d,
            "%zu of %zu clocks of %s lie outside those that %s (%s to %s MHz): they are extrapolated, and "
            "no static choice takes them%s",
            p->beyond, p->settings, dev->name,
            m->chip.calibrated ? "the platform was calibrated at" : "the sweep covers",
            fl_fit_clock_text(&m->chip.rows, m->chip.chip->sm_min, low, sizeof low),
            fl_fit_clock_text(&m->chip.rows, m->chip.chip->sm_ref, high, sizeof high),
            dev->default_sm_mhz < p->law.sm_min_mhz || dev->default_sm_mhz > p->law.sm_max_mhz
                ? ". The driver's default is one of them: all savings stand on it"
                : "");
    return s;
}

fl_status fl_sweep_model_build(const fl_sweep_model *m, size_t i, const fl_node_spec *node,
                               const fl_sweep_replay *replay, fl_workload **w, fl_stated *stated, char ***note,
                               size_t *notes, fl_diag *d) {
    const uint32_t name = m->names[i];
    const fl_device *dev = &node->device[node->gpu[0]];
    fl_predicted p = {0};
    fl_status s = fl_sweep_notes(&m->sweep, name, note, notes, d);
    if (!s && m->fitted) {
        s = fl_sweep_chip_predict(&m->chip, m->path, &m->sweep, name, dev, &p, d);
        if (!s)
            s = note_predicted(m, &p, dev, note, notes, d);
    }
    if (!s && m->plain.chip)
        s = fl_sweep_chip_shares(&m->plain, &m->sweep, name, &p.law, d);
    const fl_sweep *rows = m->fitted ? &p.sweep : &m->sweep;
    if (!s)
        s = fl_build_sweep(w, m->path, rows, name, &p.law, replay, node, d);
    if (!s)
        s = fl_stated_make(rows, name, m->fitted, (*w)->sm_min_mhz, (*w)->sm_max_mhz, dev->default_mem_mhz, stated, d);
    fl_predicted_free(&p);
    return s;
}
