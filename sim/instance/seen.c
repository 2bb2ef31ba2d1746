#include "sim/instance/seen.h"

bool fl_seen_put(fl_seen *last, fl_gpu_sample *sample, int id, double value, int64_t t_ns, int64_t refresh_ns) {
    bool fresh = !last->known || last->value != value;
    if (!fresh && refresh_ns != FL_SEEN_MOVES)
        fresh = t_ns - last->fresh_ns >= refresh_ns;
    if (fresh)
        *last = (fl_seen){.value = value, .fresh_ns = t_ns, .known = true};
    sample->value[id] = value;
    sample->valid |= FL_BIT(id);
    sample->fresh |= fresh ? FL_BIT(id) : 0;
    return fresh;
}
