/* What the live side reads, a reader at a time (FL_FUZZ_NAME), against bytes that nobody meant, for libFuzzer. What
 * others may have written runs in a program that may be root: nothing of it may crash, hang or lead anywhere else. */
#include "harness/emulate/session/inside.h"
#include "harness/live/collector/ring.h"
#include "harness/live/guard/guard.h"
#include "harness/live/server/inside.h"
#include "harness/live/server/server.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/fuzz/fuzz_folder.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- records and locks ---- */

static bool boot_id(char text[64]) {
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool ok = f && fgets(text, 64, f);
    if (f)
        fclose(f);
    return ok;
}

/* The boot is put right in its line, as no fuzzer finds it. */
static bool write_record(const char *name, const uint8_t *data, size_t size) {
    static char boot[64];
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    const uint8_t *end = line ? memchr(line + 1, '\n', size - (size_t)(line + 1 - data)) : NULL;
    if (!end || size % 4 == 0 || memcmp(line + 1, "boot ", end - line > 5 ? 5 : 0) != 0 || (!boot[0] && !boot_id(boot)))
        return fuzz_write(name, data, size);
    FILE *f = fopen(name, "wb");
    if (!f)
        return false;
    fwrite(data, 1, (size_t)(line + 1 - data), f);
    fprintf(f, "boot %s", boot);
    fwrite(end + 1, 1, size - (size_t)(end + 1 - data), f);
    return !fclose(f);
}

static void record(const uint8_t *data, size_t size) {
    static const char *const UNIT[] = {"cpu", "gpu-0000", "ze-gpu-0", "rsmi-0"};
    for (size_t i = 0; i < sizeof UNIT / sizeof *UNIT; i++) {
        fl_diag d = {0};
        fl_record r, again;
        bool found = false;
        char name[64];
        snprintf(name, sizeof name, "%s.record", UNIT[i]);
        if (!write_record(name, data, size))
            return;
        const fl_status s = fl_record_read(fuzz_folder, UNIT[i], &r, &found, &d);
        if (s && (s != FL_BAD_INPUT || !d.message[0]))
            fuzz_broken("bad bytes are bad input, nothing else", d.message);
        if (found && (fl_record_write(fuzz_folder, &r, &d) || fl_record_read(fuzz_folder, UNIT[i], &again, &found, &d)))
            fuzz_broken("what was read cannot be written and read again", d.message);
        if (found && again.count != r.count)
            fuzz_broken("comes back changed", "");
        if (found)
            fl_record_free(&again);
        fl_record_free(&r);
        unlink(name);
    }
}

static void lock(const uint8_t *data, size_t size) {
    if (!fuzz_write("gpu-0000.lock", data, size) || !fuzz_write("gpu-0000.held", data, size))
        return;
    const pid_t holder = fl_lock_holder(fuzz_folder, "gpu-0000");
    if (holder < 0)
        fuzz_broken("a process of no number", "");
}

/* ---- rings ---- */

static void ring(const uint8_t *data, size_t size) {
    static fl_ring_record into[512];
    static fl_ring good;
    static uint8_t *bytes;
    enum {
        CAPACITY = 64,
        NAMES = 4096,
        ALL = FL_RING_HEAD + CAPACITY * (int)(sizeof(fl_ring_record) + sizeof(fl_ring_slot)) + NAMES
    };
    fl_ring r;
    int error = 0;
    if (!bytes) { /* one that the writer made, for its magic */
        if (fl_ring_create(&good, fuzz_folder, CAPACITY, NAMES) || !(bytes = calloc(1, ALL)))
            exit(1);
        memcpy(bytes, good.head, ALL < good.size ? ALL : good.size);
    }
    uint8_t *copy = calloc(1, ALL);
    if (!copy)
        return;
    memcpy(copy, data, size < ALL ? size : ALL);
    fl_ring_head *head = (fl_ring_head *)(void *)copy;
    const fl_ring_head *made = (const fl_ring_head *)(const void *)bytes;
    if (size % 8) { /* magic and sizes put right in seven of eight */
        head->magic = made->magic;
        head->capacity = CAPACITY;
        head->names_size = NAMES;
    }
    const int folder = open(fuzz_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fuzz_write("1-1.ring", copy, size % 16 == 1 && size < ALL ? size : ALL) &&
        !fl_ring_open_at(&r, folder, "1-1.ring", &error)) {
        size_t taken = 0;
        uint64_t bad = 0, sum = 0;
        char name[FL_RING_NAME_MAX];
        uint8_t uuid[FL_RING_UUID];
        for (int turn = 0; turn < 4 && fl_ring_take(&r, into, 512, &taken, &bad); turn++)
            for (size_t i = 0; i < taken; i++) {
                fl_ring_copy_name(&r, into[i].name, name);
                sum += strlen(name) + fl_ring_device_of(&r, into[i].gpu, uuid);
            }
        fl_ring_mark mark;
        bool more = true;
        for (int turn = 0; turn < CAPACITY && more && fl_ring_take_mark(&r, size % 2, &mark, &more, &bad); turn++)
            sum += more ? strlen(mark.name) : 0;
        fl_ring_copy_name(&r, head->names_used - 1, name);
        fl_ring_held(&r);
        __asm__ volatile("" : : "r"(sum));
        fl_ring_close(&r);
    }
    close(folder);
    free(copy);
}

/* ---- the CPU's tree ---- */

static void cpu(const uint8_t *data, size_t size) {
    static const char *const FILE_OF[] = {"sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies",
                                          "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
                                          "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
                                          "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq",
                                          "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_min_freq",
                                          "sys/devices/system/cpu/cpufreq/policy0/related_cpus",
                                          "sys/devices/system/cpu/cpufreq/boost",
                                          "sys/class/powercap/intel-rapl:0/name",
                                          "sys/class/powercap/intel-rapl:0/energy_uj",
                                          "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
                                          "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw",
                                          "proc/stat",
                                          "proc/cpuinfo"};
    for (size_t i = 0; i < sizeof FILE_OF / sizeof *FILE_OF; i++) {
        const uint8_t *part;
        size_t part_size;
        char path[128];
        snprintf(path, sizeof path, "%s", FILE_OF[i]);
        for (char *at = path; (at = strchr(at, '/')); *at++ = '/') {
            *at = '\0';
            mkdir(path, 0700);
        }
        if (!fuzz_part(&data, &size, &part, &part_size))
            unlink(path);
        else if (!fuzz_write(path, part, part_size))
            return;
    }
    fl_diag d = {0};
    fl_cpu_host *c = NULL;
    fl_host_facts facts;
    fl_host_sample sample;
    fl_record r = {0};
    if (fl_cpu_host_open(&c, fuzz_folder, ~UINT64_C(0), &d))
        return;
    fl_cpu_host_facts(c, &facts);
    fl_cpu_host_read(c, &sample);
    fl_cpu_host_read(c, &sample);
    fl_cpu_host_prior(c, ~UINT64_C(0), &r, &d);
    fl_record_free(&r);
    fl_cpu_host_close(c);
}

/* ---- programs ---- */

static void elf(const uint8_t *data, size_t size) {
    if (fuzz_write("in", data, size))
        fl_command_unfit("in");
}

/* ---- an engine's pages ---- */

/* Two answers after each other: whatever stands in them, a signal is unknown or a number that can be. */
static void metrics(const uint8_t *data, size_t size) {
    static fl_server_view view;
    fl_server_sample shown;
    fl_metrics m;
    fl_page_url url;
    view = (fl_server_view){.ttft_target_ns = 200000000, .tbt_target_ns = 20000000};
    char start[64] = "http://";
    memcpy(start + 7, data, size < 56 ? size : 56);
    fl_page_url_parse(start, &url, NULL);
    for (int64_t turn = 0; turn < 3; turn++) {
        const uint8_t *part;
        size_t part_size;
        if (!fuzz_part(&data, &size, &part, &part_size))
            break;
        const char *from = (const char *)part, *why = "";
        char *copy = malloc(part_size + 1); /* of the very size, so that a byte too far shows */
        if (!copy)
            return;
        memcpy(copy, part, part_size);
        if (fl_page_answer_read(copy, part_size, turn & 1, &from, &part_size, &why) != FL_PAGE_WHOLE)
            from = copy;
        fl_metrics_read(from, part_size, &m);
        fl_server_view_take(&view, &m, turn * 1000000000);
        fl_server_view_show(&view, UINT64_MAX, turn * 1000000000, &shown);
        for (int id = 0; id < FL_SERVER_SIGNAL_COUNT; id++)
            if (shown.valid >> id & 1 && !(shown.value[id] >= 0))
                fuzz_broken("a signal that is known and no number", "");
        free(copy);
    }
}

static const struct {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
} targets[] = {{"record", record}, {"lock", lock}, {"ring", ring}, {"cpu", cpu}, {"elf", elf}, {"metrics", metrics}};

static void (*target)(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, FL_FUZZ_NAME))
            target = targets[i].run;
    if (!target)
        fuzz_broken("no such target", FL_FUZZ_NAME);
    fuzz_enter();
    setenv("FOLDLINE_RUN", fuzz_folder, 1);
    setenv("FOLDLINE_STATE", fuzz_folder, 1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    target(data, size);
    return 0;
}
