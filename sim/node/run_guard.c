#include "sim/node/run_guard.h"

#include "sim/gpu/host_sense.h"
#include "sim/gpu/sense.h"

/* A signal that stopped refreshing is unknown: after a second, or five periods of a slower sensor. */
static int64_t stale_ns(const fl_sensor_spec *s) {
    const int64_t wait = 5 * (s->period_ns > s->delay_ns ? s->period_ns : s->delay_ns);
    return wait > INT64_C(1000000000) ? wait : INT64_C(1000000000);
}

void fl_run_guard(fl_guard *guard, const fl_node_spec *spec) {
    for (uint32_t i = 0; i < spec->gpu_count; i++) {
        const fl_device *dev = &spec->device[spec->gpu[i]];
        for (int id = 0; id < FL_SENSOR_COUNT; id++)
            for (int signal = 0; signal < FL_GPU_SIGNAL_COUNT; signal++)
                if (fl_sense_signals[id] & FL_BIT(signal)) {
                    fl_guard_gpu_stale(guard, i, signal, stale_ns(&dev->sensor[id]));
                    fl_guard_gpu_wrap(guard, i, signal, dev->sensor[id].wrap);
                }
    }
    for (int id = 0; id < FL_HOST_SENSOR_COUNT; id++)
        for (int signal = 0; signal < FL_HOST_SIGNAL_COUNT; signal++)
            if (fl_host_sense_signals[id] & FL_BIT(signal)) {
                fl_guard_host_stale(guard, signal, stale_ns(&spec->host.sensor[id]));
                fl_guard_host_wrap(guard, signal, spec->host.sensor[id].wrap);
            }
}

void fl_run_guard_servers(fl_guard *guard, const fl_serving_setup *u) {
    const int64_t limit_ns = 5 * u->signals_ns > INT64_C(1000000000) ? 5 * u->signals_ns : INT64_C(1000000000);
    for (uint32_t i = 0; i < u->server_count; i++)
        for (int signal = 0; signal < FL_SERVER_SIGNAL_COUNT; signal++)
            fl_guard_server_stale(guard, i, signal, limit_ns);
}
