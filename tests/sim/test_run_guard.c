/* When a run's checks take a signal for unknown. The rule is one of safety: a sensor that has stopped must not be taken
 * for a machine at rest, and one that is only slow must not be taken for one that has stopped. A signal may go without
 * a refresh for a second, or for five times the longer of its sensor's period and delay where that is more; servers,
 * for a second or five times their own period. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

#define MS INT64_C(1000000)

/* Period and delay of a sensor, and how long a signal of it counts, in ms. */
static const struct {
    int period, delay, counts;
} sensors[] = {
    {0, 0, 1000},     {100, 0, 1000},   {0, 100, 1000},   {200, 50, 1000},  {201, 0, 1005},   {0, 201, 1005},
    {300, 100, 1500}, {100, 300, 1500}, {2000, 0, 10000}, {250, 250, 1250}, {199, 199, 1000},
};
enum { SENSORS = sizeof sensors / sizeof *sensors };

/* Each of the sensors of two boards has another rule; the second board stands at places 0 and 2 of the node. */
static fl_node_spec make(fl_device *board, uint32_t *gpu, size_t turn) {
    fl_node_spec spec = {.device = board, .device_count = 2, .gpu = gpu, .gpu_count = 3};
    for (int b = 0; b < 2; b++)
        for (int id = 0; id < FL_SENSOR_COUNT; id++) {
            const size_t k = (turn + (size_t)id + 5 * (size_t)b) % SENSORS;
            board[b].sensor[id] =
                (fl_sensor_spec){.period_ns = sensors[k].period * MS, .delay_ns = sensors[k].delay * MS};
        }
    for (int id = 0; id < FL_HOST_SENSOR_COUNT; id++) {
        const size_t k = (turn + (size_t)id + 3) % SENSORS;
        spec.host.sensor[id] = (fl_sensor_spec){.period_ns = sensors[k].period * MS, .delay_ns = sensors[k].delay * MS};
    }
    return spec;
}

static int64_t counts_of(const fl_sensor_spec *s) {
    for (size_t k = 0; k < SENSORS; k++)
        if (s->period_ns == sensors[k].period * MS && s->delay_ns == sensors[k].delay * MS)
            return sensors[k].counts * MS;
    return -1;
}

static void test_stale(void) {
    for (size_t turn = 0; turn < SENSORS; turn++) {
        fl_device board[2] = {0};
        uint32_t gpu[] = {1, 0, 1};
        const fl_node_spec spec = make(board, gpu, turn);
        for (uint32_t i = 0; i < 3; i++)
            for (int id = 0; id < FL_SENSOR_COUNT; id++)
                for (int late = 0; late < 2; late++) {
                    const int64_t counts = counts_of(&board[gpu[i]].sensor[id]);
                    fl_guard *g = NULL;
                    fl_diag d = {0};
                    CU_ASSERT_FATAL(fl_guard_open(&g, 3, &d) == FL_OK);
                    fl_run_guard(g, &spec);
                    fl_gpu_sample s = {.valid = fl_sense_signals[id], .fresh = fl_sense_signals[id]};
                    fl_guard_gpu(g, i, 7, &s);
                    s = (fl_gpu_sample){.valid = fl_sense_signals[id]};
                    fl_guard_gpu(g, i, 7 + counts + late, &s);
                    FL_CHECK(s.valid == (late ? 0 : fl_sense_signals[id]), "GPU %u, sensor %d, %g s%s: %llx", i, id,
                             1e-9 * (double)counts, late ? " and a ns" : "", (unsigned long long)s.valid);
                    fl_guard_close(g);
                }
        for (int id = 0; id < FL_HOST_SENSOR_COUNT; id++)
            for (int late = 0; late < 2; late++) {
                const int64_t counts = counts_of(&spec.host.sensor[id]);
                fl_guard *g = NULL;
                fl_diag d = {0};
                CU_ASSERT_FATAL(fl_guard_open(&g, 3, &d) == FL_OK);
                fl_run_guard(g, &spec);
                fl_host_sample s = {.valid = fl_host_sense_signals[id], .fresh = fl_host_sense_signals[id]};
                fl_guard_host(g, 0, &s);
                s = (fl_host_sample){.valid = fl_host_sense_signals[id]};
                fl_guard_host(g, counts + late, &s);
                FL_CHECK(s.valid == (late ? 0 : fl_host_sense_signals[id]), "host sensor %d, %g s%s: %llx", id,
                         1e-9 * (double)counts, late ? " and a ns" : "", (unsigned long long)s.valid);
                fl_guard_close(g);
            }
    }
}

/* A counter of a sensor that wraps goes on where it starts again; its neighbour's does not. */
static void test_wrap(void) {
    fl_device board[2] = {0};
    uint32_t gpu[] = {1, 0, 1};
    fl_node_spec spec = make(board, gpu, 0);
    board[1].sensor[FL_SENSOR_ENERGY].wrap = 100;
    spec.host.sensor[FL_HOST_SENSOR_CPU_ENERGY].wrap = 50;
    fl_guard *g = NULL;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_guard_open(&g, 3, &d) == FL_OK);
    fl_run_guard(g, &spec);
    for (uint32_t i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            const uint64_t bit = FL_BIT(FL_GPU_ENERGY_J);
            fl_gpu_sample s = {.valid = bit, .fresh = bit};
            s.value[FL_GPU_ENERGY_J] = k ? 10 : 90;
            fl_guard_gpu(g, i, k, &s);
            if (gpu[i] == 1)
                FL_CHECK(s.valid == bit && s.value[FL_GPU_ENERGY_J] == (k ? 110 : 90), "GPU %u: %g J", i,
                         s.value[FL_GPU_ENERGY_J]);
            else
                FL_CHECK(s.valid == (k ? 0 : bit), "GPU %u: its counter does not wrap", i);
        }
    for (int k = 0; k < 2; k++) {
        fl_host_sample s = {.valid = FL_BIT(FL_HOST_CPU_ENERGY_J), .fresh = FL_BIT(FL_HOST_CPU_ENERGY_J)};
        s.value[FL_HOST_CPU_ENERGY_J] = k ? 5 : 45;
        fl_guard_host(g, k, &s);
        FL_CHECK(s.valid && s.value[FL_HOST_CPU_ENERGY_J] == (k ? 55 : 45), "host: %g J",
                 s.value[FL_HOST_CPU_ENERGY_J]);
    }
    fl_guard_close(g);
}

static void test_servers(void) {
    static const struct {
        int period, counts;
    } rows[] = {{0, 1000}, {100, 1000}, {200, 1000}, {201, 1005}, {1000, 5000}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (uint32_t i = 0; i < 2; i++)
            for (int late = 0; late < 2; late++) {
                const uint64_t all = FL_BIT(FL_SERVER_SIGNAL_COUNT) - 1;
                const fl_serving_setup setup = {.signals_ns = rows[k].period * MS, .server_count = 2};
                fl_guard *g = NULL;
                fl_diag d = {0};
                CU_ASSERT_FATAL(fl_guard_open(&g, 1, &d) == FL_OK && fl_guard_servers(g, 2, &d) == FL_OK);
                fl_run_guard_servers(g, &setup);
                fl_server_sample s = {.valid = all, .fresh = all};
                fl_guard_server(g, i, 3, &s);
                s = (fl_server_sample){.valid = all};
                fl_guard_server(g, i, 3 + rows[k].counts * MS + late, &s);
                FL_CHECK(s.valid == (late ? 0 : all), "server %u, signals each %d ms: %llx", i, rows[k].period,
                         (unsigned long long)s.valid);
                fl_guard_close(g);
            }
}

FL_SUITE("run_guard", {"stale", test_stale}, {"wraps", test_wrap}, {"servers", test_servers})
