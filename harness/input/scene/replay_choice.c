#include "harness/input/scene/replay_choice.h"

#include "harness/base/cli/share.h"

fl_status fl_replay_choose(const fl_replay_choice *c, fl_sweep_replay *out, fl_diag *d) {
    bool percent = false;
    out->jitter = 0;
    out->iteration_ns = (int64_t)(c->iteration_s * 1e9 + 0.5);
    if (c->jitter && !(fl_share_parse(c->jitter, &out->jitter, &percent) && out->jitter >= 0 && out->jitter <= 1))
        return fl_refuse(d, "jitter '%s', expected how much an op varies as a share from 0 to 1, such as 0.05 or 5%%",
                         c->jitter);
    return FL_OK;
}

bool fl_replay_drawn(const fl_replay_choice *c) {
    fl_sweep_replay r;
    fl_diag ignored = {0}; /* told when the scenes are opened */
    return !fl_replay_choose(c, &r, &ignored) && r.jitter > 0;
}

void fl_replay_merge(fl_replay_choice *c, const fl_replay_choice *rest) {
    c->jitter = c->jitter ? c->jitter : rest->jitter;
    c->iteration_s = c->iteration_s > 0 ? c->iteration_s : rest->iteration_s;
}
