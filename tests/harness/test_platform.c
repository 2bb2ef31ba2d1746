#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <dirent.h>
#include <math.h>

/* A small sound platform; the cases below break one line of it each. */
static const char sound[] =
    "{\n"
    "\"foldline_platform\": 1,\n"
    "\"title\": \"A small GPU\",\n"
    "\"count\": 2,\n"
    "\"gpu\": {\n"
    "\"name\": \"Small\",\n"
    "\"sm_mhz\": {\"from\": 100, \"to\": 130, \"steps\": [7, 8]},\n"
    "\"mem_mhz\": [500, 1000],\n"
    "\"default_sm_mhz\": 130,\n"
    "\"default_mem_mhz\": 1000,\n"
    "\"sms\": 4,\n"
    "\"cores_per_sm\": 32,\n"
    "\"peak_gb_s\": 10.5,\n"
    "\"tdp_w\": 50,\n"
    "\"power\": {\n"
    "\"a_w\": 10,\n"
    "\"a0_w\": 1,\n"
    "\"b_w\": 5,\n"
    "\"b0_w\": [1, 2],\n"
    "\"c_w\": 3,\n"
    "\"no_context_w\": 4, \"gate_after_ms\": 0.5,\n"
    "\"voltage\": [[100, 1], [130, 1.25]]\n"
    "},\n"
    "\"sharpness\": 9,\n"
    "\"limits\": {\"min_w\": 20, \"max_w\": 60, \"default_w\": 50},\n"
    "\"sensors\": {\n"
    "\"power\": {\"refresh_ms\": 20, \"window_ms\": 10, \"quantum\": 0.001, \"delay_ms\": 0.5},\n"
    "\"utilisation\": {\"refresh_ms\": 167, \"window_ms\": 167, \"mem_noise_pct\": 2},\n"
    "\"energy\": {\"refresh_ms\": 100, \"wrap\": 5000},\n"
    "\"temperature\": {\"refresh_ms\": 100, \"quantum\": 1},\n"
    "\"clock\": {\"refresh_ms\": 0}\n"
    "},\n"
    "\"wall\": {\"period_ms\": 10, \"filter_ms\": 12, \"exponent\": 0.4, \"aim\": 0.98,\n"
    "  \"rise_ms\": 160, \"rise_mhz\": 135, \"recover_ms\": 250},\n"
    "\"thermal\": {\"period_ms\": 100, \"ambient_c\": 30, \"c_per_w\": 0.5, \"tau_s\": 60, \"leak_w_per_c\": 0.1,"
    " \"leak_ref_c\": 40, \"limit_c\": 90, \"release_c\": 85},\n"
    "\"interference\": 0.25,\n"
    "\"variation\": {\"voltage_sigma\": 0.01, \"leakage_sigma\": 0.1},\n"
    "\"actuator\": {\"call_ms\": 4.5, \"settle_ms\": 20, \"read_ms\": 1.5}\n"
    "},\n"
    "\"host\": {\"name\": \"host\", \"cores\": 8, \"launch_queue\": 100,"
    " \"cpu\": {\"states\": [[1000, 0.8], [2000, 1]], \"boost\": [[2500, 1.2]], \"default_mhz\": 2000, \"static_w\": 5,"
    " \"core_w\": 4, \"bound\": 0.5, \"alpha\": 1, \"wait_alpha\": 0.5, \"upc\": 1, \"wait_upc\": 0.25,"
    " \"ref_mhz\": 1500, \"gb_s\": 1.5, \"wait\": \"sleep\", \"call_ms\": 0.5, \"settle_ms\": 0.25,"
    " \"period_ms\": 2, \"filter_ms\": 8, \"limits\": {\"min_w\": 15, \"max_w\": 65, \"default_w\": 55}},"
    " \"sensors\": {\"cpu\": {\"refresh_ms\": 10}, \"cpu_energy\": {\"refresh_ms\": 1, \"wrap\": 9.5},"
    " \"node_power\": {\"refresh_ms\": 15, \"delay_ms\": 2000}, \"node_energy\": {\"refresh_ms\": 30}},"
    " \"comm_w\": 6, \"gpu_budget_w\": 90, \"peak_gb_s\": 20, \"static_w\": 70},\n"
    "\"policies\": {\"assure\": {\"probe_mhz\": [100, 107.5, 130], \"lowest_mhz\": 100,"
    " \"theta\": 0.1, \"fast\": true, \"mode\": \"plain\"}},\n"
    "\"notes\": {\"count\": \"two\", \"gpu\": \"assumed: small\", \"gpu.power.a_w\": \"a meter\","
    " \"host\": \"assumed\", \"policies\": \"assumed\"}\n"
    "}\n";

/* The sound text with the first `from` replaced; the caller frees it. */
static char *with(const char *from, const char *to) {
    const char *at = strstr(sound, from);
    char *text = malloc(sizeof sound + strlen(to));
    if (!at || !text) {
        printf("\n    \"%s\" does not occur", from);
        exit(1);
    }
    sprintf(text, "%.*s%s%s", (int)(at - sound), sound, to, at + strlen(from));
    return text;
}

static fl_status open_text(const char *text, fl_platform *p, fl_diag *d) {
    return fl_platform_open(fl_temp_text("small.json", text), 0, p, d);
}

static bool equal(double a, double b) { return fabs(a - b) < 1e-12 * fmax(1, fabs(b)); }

static void test_sound(void) {
    fl_platform p;
    fl_diag d = {0};
    fl_status s = open_text(sound, &p, &d);
    FL_CHECK(s == FL_OK, "%s", d.message);
    if (s != FL_OK)
        return;
    const fl_device *dev = &p.node.device[0];
    FL_CHECK(strcmp(p.name, "small") == 0 && strcmp(p.title, "A small GPU") == 0, "%s, %s", p.name, p.title);
    FL_CHECK(p.node.gpu_count == 2 && p.node.device_count == 1 && p.node.gpu[1] == 0, "%u GPUs", p.node.gpu_count);
    static const int32_t ladder[] = {100, 107, 115, 122, 130};
    FL_CHECK(dev->sm_count == 5 && memcmp(dev->sm_mhz, ladder, sizeof ladder) == 0, "%u SM clocks", dev->sm_count);
    FL_CHECK(dev->mem_count == 2 && dev->mem_mhz[1] == 1000 && equal(dev->b0_w[1], 2), "memory clocks");
    FL_CHECK(equal(dev->a_w, 10) && equal(dev->a0_w, 1) && equal(dev->b_w, 5) && equal(dev->c_w, 3) &&
                 equal(dev->no_context_w, 4) && dev->gate_ns == 500000 && equal(dev->sharpness, 9) &&
                 equal(dev->tdp_w, 50),
             "power constants");
    FL_CHECK(equal(dev->power_min_w, 20) && equal(dev->power_max_w, 60) && equal(dev->power_default_w, 50), "limits");
    FL_CHECK(equal(dev->peak_bytes_per_s, 10.5e9) && dev->sms == 4 && dev->cores_per_sm == 32, "size");
    const fl_sensor_spec *power = &dev->sensor[FL_SENSOR_POWER];
    FL_CHECK(power->present && power->period_ns == 20000000 && power->window_ns == 10000000 &&
                 power->delay_ns == 500000 && power->lag_ns == 0 && equal(power->quantum, 0.001),
             "power sensor");
    FL_CHECK(dev->sensor[FL_SENSOR_CLOCK].present && !dev->sensor[FL_SENSOR_PROFILE].present,
             "which sensors there are");
    FL_CHECK(equal(dev->util_mem_noise_pct, 2), "noise %g", dev->util_mem_noise_pct);
    FL_CHECK(dev->actuator.call_ns == 4500000 && dev->actuator.settle_ns == 20000000 &&
                 dev->actuator.read_ns == 1500000,
             "actuator");
    double v = 0;
    FL_CHECK(fl_curve_at(dev->voltage, 115, 0, &v) == FL_MODEL_OK && equal(v, 1.125), "voltage %g", v);
    const fl_host_spec *h = &p.node.host;
    FL_CHECK(h->cores == 8 && h->launch_queue == 100 && h->cpu.count == 2 && h->cpu.boost_mhz[0] == 2500 &&
                 equal(h->cpu.boost_volt[0], 1.5) && !h->apu && equal(h->static_w, 70) &&
                 equal(h->cpu.default_mhz, 2000) && equal(h->peak_bytes_per_s, 20e9),
             "host");
    FL_CHECK(p.note_count == 5 && strcmp(p.note[2].key, "gpu.power.a_w") == 0 && strcmp(p.note[2].text, "a meter") == 0,
             "notes");

    const fl_layer l = fl_platform_layer(&p, "assure"), none = fl_platform_layer(&p, "depo");
    static const char *const want[][2] = {
        {"probe_mhz", "100/107.5/130"}, {"lowest_mhz", "100"}, {"theta", "0.1"}, {"fast", "1"}, {"mode", "plain"}};
    FL_CHECK(l.count == 5 && strcmp(l.origin, "platform small") == 0, "%zu settings of %s", l.count, l.origin);
    for (size_t i = 0; i < l.count; i++)
        FL_CHECK(strcmp(l.setting[i].name, want[i][0]) == 0 && strcmp(l.setting[i].text, want[i][1]) == 0, "%s = %s",
                 l.setting[i].name, l.setting[i].text);
    FL_CHECK(none.count == 0 && strcmp(none.origin, "platform small") == 0, "no settings");

    fl_facts facts;
    FL_CHECK(fl_facts_make(&p.node, 7, &facts, &d) == FL_OK, "facts");
    FL_CHECK(facts.seed == 7 && facts.gpu_count == 2 && facts.gpu[1].sm.mhz == dev->sm_mhz &&
                 facts.gpu[1].sm.count == 5 && facts.gpu[0].mem.count == 2 && facts.gpu[0].sm_count == 4 &&
                 facts.gpu[0].cores_per_sm == 32 && strcmp(facts.gpu[0].name, "Small") == 0,
             "GPU facts");
    FL_CHECK(equal(facts.gpu[0].power_max_w, 60) && equal(facts.gpu[0].power_min_w, 20) &&
                 equal(facts.gpu[0].power_default_w, 50) && equal(facts.gpu[0].tdp_w, 50) &&
                 equal(facts.gpu[0].default_sm_mhz, 130) && equal(facts.gpu[0].default_mem_mhz, 1000) &&
                 equal(facts.gpu[0].peak_bytes_per_s, 10.5e9),
             "GPU limits");
    FL_CHECK(facts.host.cores == 8 && facts.host.apu == 0 && facts.host.cpu.count == 2 && facts.host.boost.count == 1 &&
                 equal(facts.host.power_min_w, 15) && equal(facts.host.power_max_w, 65) &&
                 equal(facts.host.power_default_w, 55) && equal(facts.host.peak_bytes_per_s, 20e9),
             "host facts");
    fl_facts_free(&facts);
    FL_CHECK(!facts.gpu, "freed");
    fl_platform_free(&p);
    fl_platform_free(&p); /* a second time is harmless */
}

/* Every value of the parts that describe wall, heat, units, CPU and meters arrives where it belongs, in its unit. */
static void test_values(void) {
    fl_platform p;
    fl_diag d = {0};
    FL_CHECK(open_text(sound, &p, &d) == FL_OK, "%s", d.message);
    if (!p.node.device)
        return;
    const fl_device *dev = &p.node.device[0];
    const fl_host_spec *h = &p.node.host;
    const fl_cpu_spec *c = &h->cpu;
    const struct {
        const char *name;
        double have, want;
    } rows[] = {
        {"wall period", (double)dev->wall.period_ns, 10e6},
        {"wall filter", (double)dev->wall.filter_ns, 12e6},
        {"wall exponent", dev->wall.exponent, 0.4},
        {"wall aim", dev->wall.aim, 0.98},
        {"wall rise", (double)dev->wall.rise_ns, 160e6},
        {"wall rise, MHz", dev->wall.rise_mhz, 135},
        {"wall recovery", (double)dev->wall.recover_ns, 250e6},
        {"wall ideal", dev->wall.ideal, 0},
        {"heat period", (double)dev->thermal.period_ns, 100e6},
        {"ambient", dev->thermal.ambient_c, 30},
        {"C/W", dev->thermal.c_per_w, 0.5},
        {"tau", dev->thermal.tau_s, 60},
        {"leakage", dev->thermal.leak_w_per_c, 0.1},
        {"leakage above", dev->thermal.leak_ref_c, 40},
        {"heat limit", dev->thermal.limit_c, 90},
        {"heat release", dev->thermal.release_c, 85},
        {"interference", dev->interference, 0.25},
        {"dram share", dev->dram_share, 0},
        {"voltage sigma", dev->v_sigma, 0.01},
        {"leakage sigma", dev->leak_sigma, 0.1},
        {"excess", dev->v_excess, 0},
        {"energy wrap", dev->sensor[FL_SENSOR_ENERGY].wrap, 5000},
        {"temperature step", dev->sensor[FL_SENSOR_TEMPERATURE].quantum, 1},
        {"temperature refresh", (double)dev->sensor[FL_SENSOR_TEMPERATURE].period_ns, 100e6},
        {"states", c->count, 2},
        {"lowest V", c->volt[0], 1},
        {"highest V", c->volt[1], 1.25},
        {"boost states", c->boost_count, 1},
        {"boost V", c->boost_volt[0], 1.5},
        {"default", c->default_mhz, 2000},
        {"reference", c->ref_mhz, 1500},
        {"CPU static", c->static_w, 5},
        {"core", c->core_w, 4},
        {"bound", c->bound, 0.5},
        {"alpha", c->alpha, 1},
        {"waiting alpha", c->wait_alpha, 0.5},
        {"upc", c->upc, 1},
        {"waiting upc", c->wait_upc, 0.25},
        {"traffic", c->bytes_per_s, 1.5e9},
        {"sleeps", c->sleeps, 1},
        {"CPU call", (double)c->call_ns, 0.5e6},
        {"CPU settle", (double)c->settle_ns, 0.25e6},
        {"CPU period", (double)c->period_ns, 2e6},
        {"CPU filter", (double)c->filter_ns, 8e6},
        {"CPU least", c->power_min_w, 15},
        {"CPU most", c->power_max_w, 65},
        {"CPU limit", c->power_default_w, 55},
        {"copy power", h->comm_w, 6},
        {"GPU budget", h->gpu_budget_w, 90},
        {"APU budget", h->budget_w, 0},
        {"CPU refresh", (double)h->sensor[FL_HOST_SENSOR_CPU].period_ns, 10e6},
        {"CPU energy wrap", h->sensor[FL_HOST_SENSOR_CPU_ENERGY].wrap, 9.5},
        {"meter delay", (double)h->sensor[FL_HOST_SENSOR_NODE_POWER].delay_ns, 2e9},
        {"node energy refresh", (double)h->sensor[FL_HOST_SENSOR_NODE_ENERGY].period_ns, 30e6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(equal(rows[i].have, rows[i].want), "%s: %.17g, expected %g", rows[i].name, rows[i].have, rows[i].want);
    fl_platform_free(&p);
}

/* One GPU beside a CPU on one die: the bus goes to both, and a second GPU is refused however it is asked for. */
static void test_apu(void) {
    char *one = with("\"count\": 2,\n", "\"count\": 1,\n"), text[8192];
    const char *at = strstr(one, "\"cores\": 8");
    snprintf(text, sizeof text,
             "%.*s\"apu\": true, \"budget_w\": 60, \"bus\": {\"min\": 0.5, \"max\": 0.75, \"period_ms\": 5}, %s",
             (int)(at - one), one, at);
    free(one);
    fl_platform p;
    fl_facts facts;
    fl_diag d = {0};
    FL_CHECK(open_text(text, &p, &d) == FL_OK, "%s", d.message);
    if (!p.node.device)
        return;
    const fl_host_spec *h = &p.node.host;
    FL_CHECK(h->apu && equal(h->budget_w, 60) && equal(h->bus_min, 0.5) && equal(h->bus_max, 0.75) &&
                 h->bus_period_ns == 5000000 && equal(p.node.device[0].dram_share, 0.75),
             "shared bus");
    FL_CHECK(fl_facts_make(&p.node, 1, &facts, &d) == FL_OK && facts.host.apu == 1, "facts of an APU");
    fl_facts_free(&facts);
    fl_platform_free(&p);
    FL_CHECK(fl_platform_open(fl_temp_text("small.json", text), 2, &p, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "host: an APU of 2 GPUs"),
             "%s", d.message);
}

static void test_bad(void) {
    static const struct {
        const char *from, *to, *message; /* a part of the diagnostic */
    } rows[] = {
        {"\"foldline_platform\": 1", "\"foldline_platform\": 2", "foldline_platform: 2, expected a number in 1..1"},
        {"\"foldline_platform\": 1,", "", "foldline_platform: missing"},
        {"\"title\": \"A small GPU\"", "\"title\": \"\"", "title: empty"},
        {"\"title\"", "\"titel\"", "titel: unknown key, expected \"title\"?"},
        {"\"a_w\": 10", "\"a_w\": -3", "gpu.power.a_w: -3, expected a number in 0..1000000"},
        {"\"a_w\": 10", "\"a_w\": \"10\"", "gpu.power.a_w: a text, expected a number"},
        {"\"a_w\": 10", "\"a_w\": 1e999", "gpu.power.a_w: inf"},
        {"\"a_w\": 10", "\"aw\": 10", "gpu.power.aw: unknown key, expected \"a_w\"?"},
        {"\"a_w\": 10,", "", "gpu.power.a_w: missing"},
        {"\"a_w\": 10,", "\"a_w\": 10, \"a_w\": 11,", "gpu.power.a_w: given twice"},
        {"\"power\": {\n", "\"power\": 7, \"x\": {\n", "gpu.x: unknown key"},
        {"\"b0_w\": [1, 2]", "\"b0_w\": [1]", "gpu.power.b0_w: 1 values, expected one for each of 2"},
        {"\"b0_w\": [1, 2]", "\"b0_w\": [1, null]", "gpu.power.b0_w[1]: null, expected a number"},
        {"[100, 1], [130, 1.25]", "[101, 1], [130, 1.25]", "gpu.power.voltage: covers 101..130"},
        {"[100, 1], [130, 1.25]", "[100, 1], [129, 1.25]", "gpu.power.voltage: covers 100..129"},
        {"[100, 1], [130, 1.25]", "[100, 1], [130, 0.9]", "gpu.power.voltage[1]: voltage 0.9 after 1"},
        {"[100, 1], [130, 1.25]", "[100, 1], [100, 1.25]", "gpu.power.voltage[1]: clock 100 after 100"},
        {"[100, 1], [130, 1.25]", "[100, 1], [130]", "gpu.power.voltage[1]: expected a pair"},
        {"[100, 1], [130, 1.25]", "[100, 0], [130, 1]", "gpu.power.voltage[0][1]: 0, expected a number"},
        {"[[100, 1], [130, 1.25]]", "[]", "gpu.power.voltage: 0 pairs"},
        {"\"to\": 130", "\"to\": 131", "gpu.sm_mhz: the steps pass 130 and 137, expected them to meet 131"},
        {"\"steps\": [7, 8]", "\"steps\": [0]", "gpu.sm_mhz.steps[0]: 0, expected"},
        {"\"steps\": [7, 8]", "\"steps\": [30, 0]", "gpu.sm_mhz.steps[1]: 0, expected"},
        {"\"steps\": [7, 8]", "\"steps\": []", "gpu.sm_mhz.steps: empty"},
        {"\"mem_mhz\": [500, 1000]", "\"mem_mhz\": [1000, 500]", "gpu.mem_mhz[1]: 500 after 1000"},
        {"\"mem_mhz\": [500, 1000]", "\"mem_mhz\": []", "gpu.mem_mhz: expected a list of clocks"},
        {"\"mem_mhz\": [500, 1000]", "\"mem_mhz\": [500.5]", "gpu.mem_mhz[0]: 500.5, expected a whole number"},
        {"\"default_sm_mhz\": 130", "\"default_sm_mhz\": 131",
         "gpu.default_sm_mhz: 131 MHz is not on the ladder; the highest is 130"},
        {"\"default_mem_mhz\": 1000", "\"default_mem_mhz\": 750", "gpu.default_mem_mhz: 750 MHz is not on the ladder"},
        {"\"sms\": 4", "\"sms\": 0", "gpu.sms: 0, expected a number in 1.."},
        {"\"sharpness\": 9", "\"sharpness\": 0.5", "gpu.sharpness: 0.5, expected a finite number >= 1"},
        {"\"sharpness\": 9", "\"sharpness\": \"sharp\"", "gpu.sharpness: expected a number >= 1, or \"max\""},
        {"\"sharpness\": 9", "\"sharpness\": 9, \"bandwidth\": {\"fold_mhz\": 120, \"low\": 0.1, \"high\": 0.2}",
         "gpu.bandwidth: expected low >= high >= 0, and bandwidth above 0 at 100 MHz"},
        {"\"sharpness\": 9", "\"sharpness\": 9, \"bandwidth\": {\"fold_mhz\": 120, \"low\": 7, \"high\": 0}",
         "gpu.bandwidth: expected low >= high >= 0, and bandwidth above 0 at 100 MHz"},
        {"\"sharpness\": 9", "\"sharpness\": 9, \"bandwidth\": {\"fold_mhz\": 120, \"low\": 1}",
         "gpu.bandwidth.high: missing"},
        {"\"default_w\": 50", "\"default_w\": 61", "gpu.limits.default_w: 61, expected a number in 20..60"},
        {"\"max_w\": 60", "\"max_w\": 19", "gpu.limits.max_w: 19, expected"},
        {"\"clock\": {\"refresh_ms\": 0}", "\"clock\": {}", "gpu.sensors.clock.refresh_ms: missing"},
        {"\"clock\": {\"refresh_ms\": 0}", "\"clock\": {\"refresh_ms\": 0, \"window_ms\": 5}",
         "gpu.sensors.clock: a window or lag without a refresh"},
        {"\"clock\": {\"refresh_ms\": 0}", "\"clock\": {\"refresh_ms\": 0, \"mem_noise_pct\": 5}",
         "gpu.sensors.clock.mem_noise_pct: unknown key"},
        {"\"clock\": {\"refresh_ms\": 0}", "\"clok\": {\"refresh_ms\": 0}",
         "gpu.sensors.clok: unknown key, expected \"clock\"?"},
        {"\"call_ms\": 4.5", "\"call_ms\": -4.5", "gpu.actuator.call_ms: -4.5"},
        {"\"count\": 2", "\"count\": 0", "count: 0, expected a number in 1..1024"},
        {"\"cores\": 8", "\"cores\": 8.5", "host.cores: 8.5, expected a whole number"},
        {"\"default_mhz\": 2000", "\"default_mhz\": 2500", "host.cpu.default_mhz: 2500"},
        {"\"aim\": 0.98", "\"aim\": 1.5", "gpu.wall.aim: 1.5"},
        {"\"exponent\": 0.4", "\"down\": 0.4", "gpu.wall.down: unknown key"},
        {"\"release_c\": 85", "\"release_c\": 95", "gpu.thermal.release_c: 95, expected less than limit_c 90"},
        {"\"tau_s\": 60", "\"tau_s\": 0", "gpu.thermal.tau_s: 0"},
        {"\"interference\": 0.25", "\"interference\": -1", "gpu.interference: -1"},
        {"\"voltage_sigma\": 0.01", "\"voltage_sigma\": 0.5", "gpu.variation.voltage_sigma: 0.5"},
        {"[2000, 1]]", "[900, 1]]", "host.cpu.states[1]: clock 900 after 1000"},
        {"[2000, 1]]", "[2000, 0.7]]", "host.cpu.states[1]: voltage 0.7 after 0.8"},
        {"[[2500, 1.2]]", "[[1500, 1.2]]", "host.cpu.boost[0]: clock 1500 after 2000"},
        {"\"bound\": 0.5", "\"bound\": 1.5", "host.cpu.bound: 1.5"},
        {"\"cores\": 8", "\"cores\": 8, \"bus\": {\"min\": 0.5, \"max\": 0.8, \"period_ms\": 5}",
         "host.bus: a bus that CPU and GPU share"},
        {"\"cores\": 8", "\"cores\": 8, \"apu\": true", "host: an APU without a bus"},
        {"\"cores\": 8", "\"cores\": 8, \"apu\": true, \"bus\": {\"min\": 0.5, \"max\": 0.4, \"period_ms\": 5}",
         "host.bus.max: 0.4"},
        {"\"cores\": 8", "\"cores\": 8, \"apu\": true, \"bus\": {\"min\": 0.5, \"max\": 0.8, \"period_ms\": 5}",
         "host: an APU of 2 GPUs"},
        {"\"cpu\": {\"refresh_ms\"", "\"node\": {\"refresh_ms\"", "host.sensors.node: unknown key"},
        {"\"wait\": \"sleep\"", "\"wait\": \"doze\"", "host.cpu.wait: 'doze', expected spin or sleep"},
        {"\"wait\": \"sleep\"", "\"wait\": 1", "host.cpu.wait: a number, expected a text"},
        {"\"period_ms\": 2, ", "", "host.cpu.limits: limits without a controller, expected period_ms > 0"},
        {"\"default_w\": 55", "\"default_w\": 66", "host.cpu.limits.default_w: 66, expected a number in 15..65"},
        {"\"default_w\": 55", "\"defualt_w\": 55", "host.cpu.limits.defualt_w: unknown key, expected \"default_w\"?"},
        {"\"cores\": 8", "\"cores\": 8, \"apu\": 1", "host.apu: a number, expected true or false"},
        {"\"cores\": 8", "\"cores\": 8, \"apu\": true, \"bus\": {\"min\": 0, \"max\": 0.4, \"period_ms\": 5}",
         "host.bus.min: 0, expected"},
        {"\"cores\": 8", "\"cores\": 8, \"apu\": true, \"bus\": {\"min\": 0.5, \"max\": 1.1, \"period_ms\": 5}",
         "host.bus.max: 1.1, expected"},
        {"\"cores\": 8", "\"cores\": 8, \"apu\": true, \"bus\": {\"min\": 0.5, \"max\": 0.8}",
         "host.bus.period_ms: missing"},
        {"\"cores\": 8", "\"cores\": 8, \"budget_w\": 60", "host.budget_w: a budget that CPU and GPU share"},
        {"\"cores\": 8", "\"cores\": 8, \"cpu_mhz\": [1000]", "host.cpu_mhz: unknown key"},
        {"\"cores\": 8", "\"cores\": 8, \"boost_mhz\": [1000]", "host.boost_mhz: unknown key"},
        {"\"cores\": 8", "\"cores\": 8, \"default_cpu_mhz\": 1000", "host.default_cpu_mhz: unknown key"},
        {"[[1000, 0.8], [2000, 1]]", "[]", "host.cpu.states: 0 states, expected 1..64"},
        {"[[1000, 0.8], [2000, 1]]", "[1000, 2000]", "host.cpu.states[0]: expected a pair"},
        {"[1000, 0.8]", "[1000.5, 0.8]", "host.cpu.states[0]: clock 1000.5, expected whole MHz"},
        {"[1000, 0.8]", "[1000, 0]", "host.cpu.states[0][1]: 0, expected"},
        {"\"ref_mhz\": 1500", "\"ref_mhz\": 0", "host.cpu.ref_mhz: 0, expected"},
        {"\"core_w\": 4", "\"core_w\": -4", "host.cpu.core_w: -4, expected"},
        {"\"gb_s\": 1.5", "\"gb_s\": -1", "host.cpu.gb_s: -1, expected"},
        {"\"gb_s\": 1.5", "\"gbs\": 1.5", "host.cpu.gbs: unknown key, expected \"gb_s\"?"},
        {"\"comm_w\": 6", "\"comm_w\": -6", "host.comm_w: -6, expected"},
        {"\"gpu_budget_w\": 90", "\"gpu_budget_w\": \"90\"", "host.gpu_budget_w: a text, expected a number"},
        {"\"wrap\": 5000", "\"wrap\": -1", "gpu.sensors.energy.wrap: -1, expected"},
        {"\"delay_ms\": 0.5}", "\"delay_ms\": 0.5, \"wrap\": 9}", "gpu.sensors.power.wrap: unknown key"},
        {"\"delay_ms\": 2000", "\"wrap\": 2000", "host.sensors.node_power.wrap: unknown key"},
        {"\"exponent\": 0.4", "\"exponent\": 0", "gpu.wall.exponent: 0, expected"},
        {"\"rise_mhz\": 135, ", "", "gpu.wall.rise_mhz: missing"},
        {"\"limits\": {\"min_w\": 20, \"max_w\": 60, \"default_w\": 50},\n", "", "gpu.wall: a wall without limits"},
        {"\"leak_ref_c\": 40", "\"leak_ref_c\": 20", "gpu.thermal.leak_ref_c: 20, expected at least ambient_c 30"},
        {"\"limit_c\": 90", "\"limit_c\": 30", "gpu.thermal.limit_c: 30, expected more than ambient_c 30"},
        {"\"leakage_sigma\": 0.1", "\"leak_sigma\": 0.1", "gpu.variation.leak_sigma: unknown key"},
        {"\"thermal\": {", "\"thermal\": 5, \"x\": {", "gpu.x: unknown key"},
        {"\"theta\": 0.1", "\"theta\": null", "policies.assure.theta: null, expected"},
        {"\"theta\": 0.1", "\"theta\": [\"x\"]", "policies.assure.theta[0]: a text, expected a number"},
        {"\"gpu\": \"assumed: small\", ", "", "gpu.sm_mhz.from: no source, expected a line in notes"},
        {"\"gpu\": \"assumed: small\", ", "\"gpu.p\": \"x\", ", "notes.gpu.p: names no value of this file"},
        {", \"policies\": \"assumed\"}", "}", "policies.assure.probe_mhz[0]: no source"},
        {"\"count\": \"two\", ", "", "count: no source"},
        {"\"count\": \"two\"", "\"count\": 2", "notes.count: a number, expected a text"},
        {"\"gpu\": {\n", "\"gpus\": [], \"gpu\": {\n", "gpus beside gpu or count"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = with(rows[i].from, rows[i].to);
        fl_platform p;
        fl_diag d = {0};
        const fl_status s = open_text(text, &p, &d);
        FL_CHECK(s == FL_BAD_INPUT && d.status == s, "row %zu (%s): status %d", i, rows[i].to, s);
        FL_CHECK(strstr(d.message, rows[i].message) != NULL, "row %zu: \"%s\", expected \"%s\"", i, d.message,
                 rows[i].message);
        FL_CHECK(strstr(d.file, "small.json") != NULL, "row %zu: file \"%s\"", i, d.file);
        FL_CHECK(d.line > 0 && d.column > 0, "row %zu: no place: %s", i, d.message);
        FL_CHECK(!p.name && !p.node.device && !p.note, "row %zu: half loaded", i);
        free(text);
    }
}

/* The place of a refused value is that of its key, or of its entry in a list; of a missing one that of its object. */
static void test_places(void) {
    static const struct {
        const char *from, *to, *mark; /* the place is where the mark begins */
    } rows[] = {
        {"\"a_w\": 10", "\"a_w\": -3", "\"a_w\": -3"},
        {"\"a_w\": 10,", "", "\"power\": {\n"},
        {"[100, 1], [130, 1.25]", "[100, 1], [130, 0.9]", "[130, 0.9]"},
        {"\"steps\": [7, 8]", "\"steps\": [7, 0]", "0]},\n\"mem_mhz\""},
        {"\"exponent\": 0.4", "\"fall\": 0.4", "\"fall\""},
        {"\"release_c\": 85", "\"release_c\": 95", "\"release_c\""},
        {"\"wait\": \"sleep\"", "\"wait\": \"doze\"", "\"wait\": "},
        {"\"title\": \"A small GPU\"", "\"title\": \"A \\\"small\\\" {GPU\", \"x\": 1", "\"x\""},
        {"\"a_w\": 10,", "\"a_w\": 10, \"a_w\" : 11,", "\"a_w\" : 11"},
        {"\"gpu.power.a_w\": \"a meter\"", "\"gpu.power.aw\": \"a meter\"", "\"gpu.power.aw\""},
        {"\"host\": {\"name\"", "\"hots\": {\"name\"", "\"hots\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = with(rows[i].from, rows[i].to);
        const char *mark = strstr(text, rows[i].mark);
        int64_t line = 1, column = 1;
        for (const char *c = text; mark && c < mark; c++) {
            column = *c == '\n' ? 1 : column + 1;
            line += *c == '\n';
        }
        fl_platform p;
        fl_diag d = {0};
        FL_CHECK(mark && open_text(text, &p, &d) == FL_BAD_INPUT, "row %zu loads", i);
        FL_CHECK(d.line == line && d.column == column, "row %zu: %lld:%lld, expected %lld:%lld (%s)", i,
                 (long long)d.line, (long long)d.column, (long long)line, (long long)column, d.message);
        free(text);
    }
}

/* What is not JSON at all, with the place of the error. */
static void test_syntax(void) {
    static const struct {
        const char *text;
        size_t size;
        int64_t line, column;
    } rows[] = {
        {"{\n  \"a\": 1,\n  \"b\" 2\n}", 0, 3, 7},
        {"{\"a\": 1", 0, 1, 8},
        {"", 0, 1, 1},
        {"{} {}", 0, 1, 4},
        {"{\"a\"\0: 1}", 9, 1, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = fl_temp_write("bad.json", rows[i].text, rows[i].size ? rows[i].size : strlen(rows[i].text));
        cJSON *tree = NULL;
        fl_diag d = {0};
        FL_CHECK(fl_json_read(path, &tree, &d) == FL_BAD_INPUT && !tree, "row %zu", i);
        FL_CHECK(d.line == rows[i].line && d.column == rows[i].column, "row %zu: %lld:%lld %s", i, (long long)d.line,
                 (long long)d.column, d.message);
    }
    cJSON *tree = NULL;
    fl_diag d = {0};
    FL_CHECK(fl_json_read(fl_temp_text("list.json", "[1]"), &tree, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "expected an object"),
             "%s", d.message);
    FL_CHECK(fl_json_read("/nonexistent/x.json", &tree, &d) == FL_BAD_INPUT && strstr(d.message, "cannot open"), "%s",
             d.message);
    FL_CHECK(fl_json_read("/", &tree, &d) == FL_BAD_INPUT, "a folder: %s", d.message);
}

/* No prefix of a sound file may crash or load. */
static void test_torn(void) {
    for (size_t n = 0; n + 2 < strlen(sound); n++) {
        fl_platform p;
        fl_diag d = {0};
        char *text = strndup(sound, n);
        FL_CHECK(open_text(text, &p, &d) == FL_BAD_INPUT, "%zu bytes load", n);
        free(text);
    }
}

static void test_variants(void) {
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"\"sharpness\": 9", "\"sharpness\": \"max\""},
        {"\"sharpness\": 9", "\"sharpness\": 9, \"bandwidth\": {\"fold_mhz\": 120, \"low\": 1, \"high\": 0.25}"},
        {"\"b0_w\": [1, 2]", "\"b0_w\": 2"},
        {"\"wait\": \"sleep\"", "\"wait\": \"spin\""},
        {"\"interference\": 0.25,\n", ""},
        {"\"sm_mhz\": {\"from\": 100, \"to\": 130, \"steps\": [7, 8]}", "\"sm_mhz\": [100, 130]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = with(rows[i].from, rows[i].to);
        fl_platform p;
        fl_diag d = {0};
        FL_CHECK(open_text(text, &p, &d) == FL_OK, "row %zu: %s", i, d.message);
        if (i == 0 && p.node.device)
            FL_CHECK(isinf(p.node.device[0].sharpness), "max is %g", p.node.device[0].sharpness);
        const fl_fold_line *b = p.node.device ? &p.node.device[0].bandwidth : NULL;
        FL_CHECK(!b || equal(b->fold_mhz, i == 1 ? 120 : 0), "row %zu: fold at %g MHz", i, b->fold_mhz);
        if (i == 1 && b)
            FL_CHECK(equal(b->low, 1) && equal(b->high, 0.25), "slopes %g, %g", b->low, b->high);
        if (i == 2 && p.node.device)
            FL_CHECK(equal(p.node.device[0].b0_w[0], 2) && equal(p.node.device[0].b0_w[1], 2), "one B0 for all");
        fl_platform_free(&p);
        free(text);
    }
}

/* Two kinds in one node: in the file's order, over and over where more are asked for. */
static void test_kinds(void) {
    const char *gpu = strstr(sound, "\"gpu\": {") + 7, *end = strstr(sound, ",\n\"host\"");
    char text[8192];
    const int n = (int)(end - gpu);
    sprintf(text,
            "{\"foldline_platform\": 1, \"title\": \"Two kinds\", \"gpus\": [%.*s, %.*s],\n"
            "\"host\": {\"name\": \"h\", \"cores\": 1, \"launch_queue\": 1},\n"
            "\"notes\": {\"gpus\": \"assumed\", \"host\": \"assumed\"}}",
            n, gpu, n, gpu);
    const char *path = fl_temp_text("kinds.json", text);
    static const uint32_t counts[] = {0, 1, 5};
    for (size_t i = 0; i < 3; i++) {
        fl_platform p;
        fl_diag d = {0};
        FL_CHECK(fl_platform_open(path, counts[i], &p, &d) == FL_OK, "%s", d.message);
        FL_CHECK(p.node.device_count == 2 && p.node.gpu_count == (counts[i] ? counts[i] : 2), "%u GPUs",
                 p.node.gpu_count);
        for (uint32_t g = 0; g < p.node.gpu_count; g++)
            FL_CHECK(p.node.gpu[g] == g % 2, "GPU %u is of kind %u", g, p.node.gpu[g]);
        fl_platform_free(&p);
    }
    fl_platform p;
    fl_diag d = {0};
    FL_CHECK(fl_platform_open(path, 1025, &p, &d) == FL_BAD_INPUT && strstr(d.message, "1025 GPUs"), "%s", d.message);
}

/* A thread that computes at the highest state, and the package. */
static int32_t cpu_mw(const fl_cpu_spec *cpu) {
    const fl_host_load load = fl_cpu_default_load(cpu);
    fl_cpu_state state = {0};
    fl_cpu_row row = {0};
    const uint32_t top = fl_cpu_state_count(cpu) - 1;
    FL_CHECK(fl_cpu_state_make(cpu, top, &state) == FL_MODEL_OK &&
                 fl_cpu_row_make(cpu, &load, top, 0, &row) == FL_MODEL_OK,
             "CPU rows");
    return state.static_mw + row.mw;
}

/* What every machine has: a CPU with meters, heat that its limit allows at the board's power, spread between units; an
 * NVIDIA board has a controller of its power limit, the same numbers on each since they come from one board. */
static void describes_node(const fl_platform *p) {
    static fl_wall_spec fitted;
    const fl_device *dev = &p->node.device[0];
    const fl_host_spec *h = &p->node.host;
    FL_CHECK(h->cpu.count > 0 && cpu_mw(&h->cpu) > 1000 * h->cpu.static_w, "%s: no CPU", p->name);
    FL_CHECK(h->sensor[FL_HOST_SENSOR_CPU].present && h->sensor[FL_HOST_SENSOR_CPU_ENERGY].present &&
                 h->sensor[FL_HOST_SENSOR_NODE_POWER].present,
             "%s: no host sensors", p->name);
    if (strcmp(p->name, "generic") == 0) {
        FL_CHECK(dev->wall.period_ns > 0, "no wall");
        return;
    }
    const fl_thermal_spec *t = &dev->thermal;
    const double at_full = t->ambient_c + t->c_per_w * dev->tdp_w; /* of an APU: the package's, which is one die */
    FL_CHECK(t->period_ns > 0 && at_full > 70 && at_full < t->limit_c, "%s: %g C at full power", p->name, at_full);
    FL_CHECK(t->c_per_w * t->leak_w_per_c < 0.5, "%s: leakage runs away", p->name);
    FL_CHECK(dev->v_sigma > 0 && dev->leak_sigma > 0, "%s: all units alike", p->name);
    FL_CHECK(dev->sensor[FL_SENSOR_TEMPERATURE].present, "%s: no temperature", p->name);
    if (h->apu || strncmp(p->name, "pvc", 3) == 0)
        return;
    if (!fitted.period_ns)
        fitted = dev->wall;
    FL_CHECK(dev->wall.period_ns == fitted.period_ns && dev->wall.filter_ns == fitted.filter_ns &&
                 equal(dev->wall.exponent, fitted.exponent) && equal(dev->wall.aim, fitted.aim) &&
                 dev->wall.rise_ns == fitted.rise_ns && equal(dev->wall.rise_mhz, fitted.rise_mhz) &&
                 dev->wall.recover_ns == fitted.recover_ns && fitted.period_ns > 0,
             "%s: another control law of the power limit", p->name);
}

/* Each bundled platform opens, idles and loads within its limits, and its policies' clocks are on its ladder. */
static void test_bundled(void) {
    char **names = NULL;
    size_t count = 0;
    fl_diag d = {0};
    FL_CHECK(fl_platform_list(&names, &count, &d) == FL_OK, "%s", d.message);
    size_t files = 0;
    DIR *folder = opendir(FL_ROOT "/models/platforms");
    for (const struct dirent *e; folder && (e = readdir(folder));)
        files += strstr(e->d_name, ".json") != NULL;
    if (folder)
        closedir(folder);
    FL_CHECK(count == files && count > 0, "%zu platforms, %zu files", count, files);
    for (size_t i = 0; i < count; i++) {
        fl_platform p;
        FL_CHECK(i == 0 || strcmp(names[i - 1], names[i]) < 0, "%s: not sorted", names[i]);
        const uint32_t gpus = strncmp(names[i], "apu-", 4) == 0 ? 1 : 8;
        const fl_status s = fl_platform_open(names[i], gpus, &p, &d);
        FL_CHECK(s == FL_OK, "%s: %s", names[i], d.message);
        if (s != FL_OK)
            continue;
        const fl_device *dev = &p.node.device[0];
        const fl_load full = {.tc = 1,
                              .tm = 1,
                              .alpha = 1,
                              .beta = 1,
                              .sm_demand = 1,
                              .ref_sm_mhz = dev->default_sm_mhz,
                              .ref_mem_mhz = dev->default_mem_mhz};
        FL_CHECK(p.node.gpu_count == gpus, "%s: %u GPUs", p.name, p.node.gpu_count);
        describes_node(&p);
        int32_t before = 0;
        for (uint32_t k = 0; k < dev->sm_count; k++) {
            fl_base base = {0};
            fl_row row = {0};
            FL_CHECK(fl_base_make(dev, dev->sm_mhz[k], dev->default_mem_mhz, &base) == FL_MODEL_OK &&
                         fl_row_make(dev, &full, dev->sm_mhz[k], dev->default_mem_mhz, &row, NULL) == FL_MODEL_OK,
                     "%s: %d MHz", p.name, dev->sm_mhz[k]);
            FL_CHECK(base.total_mw + row.dyn_mw > before, "%s: power falls at %d MHz", p.name, dev->sm_mhz[k]);
            before = base.total_mw + row.dyn_mw;
        }
        if (p.node.host.apu) /* the package's TDP: CPU and GPU at their highest clocks come near it */
            before += cpu_mw(&p.node.host.cpu) + (int32_t)(1000 * p.node.host.static_w);
        const double least = strcmp(p.name, "k20xm-e5-2660") == 0 ? 700 : 900;
        FL_CHECK(before > least * dev->tdp_w && before < 2200 * dev->tdp_w, "%s: %d mW at full load", p.name, before);
        const fl_layer l = fl_platform_layer(&p, "assure");
        FL_CHECK(l.count >= 3 && strcmp(l.setting[0].name, "probe_mhz") == 0, "%s: no probe clocks", p.name);
        for (const char *t = l.count ? l.setting[0].text : NULL; t; t = strchr(t, '/') ? strchr(t, '/') + 1 : NULL)
            FL_CHECK(fl_ladder_index(dev->sm_mhz, dev->sm_count, strtod(t, NULL)) >= 0, "%s: probe clock %s", p.name,
                     t);
        fl_platform_free(&p);
    }
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* dynaco, Table 1. */
static void test_a10(void) {
    static const struct {
        double mhz, volt;
    } set[] = {{1400, 0.925}, {1900, 0.963}, {2400, 1.075}, {2900, 1.2}, {3400, 1.288}, {3800, 1.363}},
      boost[] = {{4000, 1.45}, {4200, 1.475}};
    fl_platform p;
    fl_diag d = {0};
    FL_CHECK(fl_platform_open("apu-a10-5800k", 0, &p, &d) == FL_OK, "%s", d.message);
    if (!p.node.device)
        return;
    const fl_cpu_spec *c = &p.node.host.cpu;
    FL_CHECK(c->count == 6 && c->boost_count == 2, "%u states, %u boost states", c->count, c->boost_count);
    for (uint32_t i = 0; i < c->count && i < 6; i++)
        FL_CHECK(equal(c->mhz[i], set[i].mhz) && equal(c->volt[i], set[i].volt / 0.925), "state %u: %d MHz, %g", i,
                 c->mhz[i], c->volt[i]);
    for (uint32_t i = 0; i < c->boost_count && i < 2; i++)
        FL_CHECK(equal(c->boost_mhz[i], boost[i].mhz) && equal(c->boost_volt[i], boost[i].volt / 0.925),
                 "boost %u: %d MHz, %g", i, c->boost_mhz[i], c->boost_volt[i]);
    fl_cpu_state waits[2] = {0};
    FL_CHECK(fl_cpu_state_make(c, 7, &waits[0]) == FL_MODEL_OK && fl_cpu_state_make(c, 3, &waits[1]) == FL_MODEL_OK,
             "waiting");
    const int32_t high = waits[0].static_mw + waits[0].wait_mw, p2 = waits[1].static_mw + waits[1].wait_mw;
    FL_CHECK(high > 35000 && high < 40000 && p2 < high / 2, "waiting: %d mW at Pb0, %d mW at P2", high, p2);
    FL_CHECK(equal(p.node.device[0].peak_bytes_per_s, 25.6e9) && p.node.device[0].sm_count == 3 &&
                 equal(p.node.device[0].dram_share, p.node.host.bus_max) && equal(p.node.host.budget_w, 100),
             "one bus, one budget");
    fl_platform_free(&p);
}

/* The readings of an idle V100 with an open context, and without one, in the GEEPAFS recording. */
static void test_idle_v100(void) {
    static const struct { double mhz, watts; } rows[] = {{135, 43}, {855, 48}, {1050, 51}, {1245, 59}, {1440, 65}};
    fl_platform p;
    fl_diag d = {0};
    FL_CHECK(fl_platform_open("v100-163w", 0, &p, &d) == FL_OK, "%s", d.message);
    if (!p.node.device)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_base b = {0};
        FL_CHECK(fl_base_make(&p.node.device[0], rows[i].mhz, 810, &b) == FL_MODEL_OK, "%g", rows[i].mhz);
        FL_CHECK(fabs(b.total_mw / 1000.0 - rows[i].watts) < 1.5, "%g MHz: %d mW", rows[i].mhz, b.total_mw);
    }
    FL_CHECK(p.node.device[0].sm_count == 175 && p.node.device[0].sm_mhz[1] == 142, "ladder");
    fl_platform_free(&p);
}

static void test_names(void) {
    fl_platform p;
    fl_diag d = {0};
    FL_CHECK(fl_platform_open("v100-300", 0, &p, &d) == FL_BAD_INPUT && strstr(d.message, "did you mean 'v100-300w'?"),
             "%s", d.message);
    FL_CHECK(fl_platform_open("quantum", 0, &p, &d) == FL_BAD_INPUT && strstr(d.message, "rtx4070-laptop"), "%s",
             d.message);
    FL_CHECK(fl_platform_open("none.json", 0, &p, &d) == FL_BAD_INPUT && strstr(d.file, "none.json"), "%s", d.message);
    char share[512];
    snprintf(share, sizeof share, "%s", fl_temp_path("missing"));
    setenv("FOLDLINE_SHARE", share, 1);
    FL_CHECK(fl_platform_open("generic", 0, &p, &d) == FL_IO && strstr(d.file, "missing/platforms"), "%s: %s", d.file,
             d.message);
    setenv("FOLDLINE_SHARE", FL_ROOT "/models", 1);
    FL_CHECK(fl_platform_open("generic", 0, &p, &d) == FL_OK, "%s", d.message);
    fl_platform_free(&p);
}

/* What a run chooses of an APU's bus. */
static void test_bus_spread(void) {
    const fl_node_choice wider = {.bus_spread = 0.02}, chosen = {.bus_share = 0.8, .bus_spread = 0.02},
                         powered = {.no_gating = true}, none = {0};
    fl_platform p;
    fl_diag d = {0};
    FL_CHECK(fl_platform_open("apu-a10-5800k", 0, &p, &d) == FL_OK && fl_node_choose(&p.node, &none, &d) == FL_OK, "%s",
             d.message);
    FL_CHECK(p.node.host.bus_min == 0.75 && p.node.host.bus_max == 0.75, "%g to %g", p.node.host.bus_min,
             p.node.host.bus_max);
    FL_CHECK(fl_node_choose(&p.node, &wider, &d) == FL_OK && fabs(p.node.host.bus_min - 0.73) < 1e-12 &&
                 fabs(p.node.host.bus_max - 0.77) < 1e-12 && p.node.device[0].dram_share == p.node.host.bus_max,
             "%g to %g, share %g", p.node.host.bus_min, p.node.host.bus_max, p.node.device[0].dram_share);
    FL_CHECK(fl_node_choose(&p.node, &chosen, &d) == FL_OK && fabs(p.node.host.bus_min - 0.78) < 1e-12 &&
                 fabs(p.node.host.bus_max - 0.82) < 1e-12 && p.node.device[0].dram_share == p.node.host.bus_max,
             "chosen: %g to %g, share %g", p.node.host.bus_min, p.node.host.bus_max, p.node.device[0].dram_share);
    FL_CHECK(p.node.device[0].gate_ns == 1000000 && fl_node_choose(&p.node, &powered, &d) == FL_OK &&
                 !p.node.device[0].gate_ns,
             "gated after %lld ns", (long long)p.node.device[0].gate_ns);
    fl_platform_free(&p);
    FL_CHECK(fl_platform_open("generic", 0, &p, &d) == FL_OK && fl_node_choose(&p.node, &wider, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "only on an APU"),
             "%s", d.message);
    fl_platform_free(&p);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("platform", {"sound", test_sound}, {"values", test_values}, {"APU", test_apu}, {"bad", test_bad},
         {"places", test_places}, {"syntax", test_syntax}, {"torn", test_torn}, {"variants", test_variants},
         {"kinds", test_kinds}, {"bundled", test_bundled}, {"A10", test_a10}, {"idle V100", test_idle_v100},
         {"names", test_names}, {"a bus that varies", test_bus_spread}, {"clean up", test_clean_up})
