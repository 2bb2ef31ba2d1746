/* Probes as a user asks for them: --at chosen:2, which looks at the calibration's half alone. */
#include "policies/random.h"

#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    int used = snprintf(command, sizeof command, "cd '%s' && ", fl_temp_folder[0] ? fl_temp_folder : fl_temp_path("."));
    vsnprintf(command + used, sizeof command - (size_t)used, format, args);
    va_end(args);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says(const char *file, const char *text) { return shell("grep -qE -e '%s' '%s'", text, file) == 0; }

#define WORKLOADS 10

/* A sweep of made-up workloads, 600 to 1500 MHz. wild: workloads whose ends are far off. */
static void write_sweep(const char *name, const bool *wild) {
    FILE *f = fopen(fl_temp_path(name), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,sm_mhz,mem_mhz,time_s,power_w\n");
    for (int k = 0; k < WORKLOADS; k++)
        for (double mhz = 600; mhz <= 1500; mhz += 100) {
            const double memory = k / (WORKLOADS - 1.0), v = 1 + fmax(0, mhz - 900) / 3000,
                         wave = 1 + 0.002 * sin(7 * k + mhz),
                         off = wild[k] && (mhz < 650 || mhz > 1450) ? 1 + 0.2 * sin(3 * k + mhz) : 1;
            const double core = (1 - memory) * 1500 / mhz;
            const double time = wave * off * (10 + k) * (pow(pow(core, 6) + pow(memory, 6), 1.0 / 6) + 0.05);
            const double power = wave / off * (60 + (40 + 5 * (k % 5)) * v * v * mhz / 1000 + 30 * memory + 10 * v);
            fprintf(f, "w%d,%g,800,%.6g,%.6g\n", k, mhz, time, power);
        }
    fclose(f);
}

/* What the first split of `fit device --cross-validate --seed 3` calibrates with: the same draw. */
static void draw_half(bool *half) {
    fl_random random = fl_random_seed(3, 0);
    size_t left = (WORKLOADS + 1) / 2;
    for (size_t i = 0; i < WORKLOADS; i++) {
        half[i] = fl_random_unit(&random) * (double)(WORKLOADS - i) < (double)left;
        left -= half[i] ? 1 : 0;
    }
}

static void chosen_of(const char *sweep, char *text, size_t size) {
    FL_CHECK(shell("'%s' fit device --cross-validate %s --at chosen:2 --splits 1 --seed 3 --json >s.json", FL_PROGRAM,
                   sweep) == 0,
             "fit device --cross-validate of %s", sweep);
    size_t used = 0;
    char *json = fl_temp_slurp(fl_temp_path("s.json"), &used);
    cJSON *root = json ? cJSON_Parse(json) : NULL;
    const cJSON *sets = cJSON_GetObjectItemCaseSensitive(root, "chosen");
    snprintf(text, size, "%s", sets && sets->child ? sets->child->string : "nothing");
    FL_CHECK(sets && cJSON_GetArraySize(sets) == 1 && fabs(sets->child->valuedouble - 1) < 0.1, "one set in one split");
    cJSON_Delete(root);
    free(json);
}

/* Whatever the other half does, the choice is the same; what the calibration's half does changes it. */
static void test_half(void) {
    bool none[WORKLOADS] = {false}, half[WORKLOADS], other[WORKLOADS];
    char clean[200], same[200], moved[200];
    draw_half(half);
    for (size_t i = 0; i < WORKLOADS; i++)
        other[i] = !half[i];
    write_sweep("clean.csv", none);
    write_sweep("other.csv", other);
    write_sweep("half.csv", half);
    chosen_of("clean.csv", clean, sizeof clean);
    chosen_of("other.csv", same, sizeof same);
    chosen_of("half.csv", moved, sizeof moved);
    FL_CHECK(!strcmp(clean, same), "%s, with the other half wild %s", clean, same);
    FL_CHECK(strcmp(clean, moved) != 0, "%s, with the calibration's half wild %s", clean, moved);
}

/* fit workload takes the settings that the device's calibration chooses, or the nearest that were measured. */
static void test_workload(void) {
    const bool none[WORKLOADS] = {false};
    write_sweep("clean.csv", none);
    FL_CHECK(shell("'%s' fit device clean.csv --only 'w[1-8]' -o dev.json >dev.out", FL_PROGRAM) == 0, "fit");
#define WORKLOAD "'%s' fit workload --device dev.json --only 'w[09]' --at chosen:2 --rows rows.csv "
    FL_CHECK(shell(WORKLOAD "clean.csv >out", FL_PROGRAM) == 0 && says("out", "fitted at chosen:2"), "chosen");
    FL_CHECK(shell("test $(cut -d, -f1,5 rows.csv | grep -c '^w[09],1') = 4") == 0, "two of each are looked at");
    /* Without one of the two, its neighbour serves. */
    FL_CHECK(shell("mhz=$(grep '^w0' rows.csv | cut -d, -f3,5 | grep ',1$' | head -n 1 | cut -d, -f1) && "
                   "grep -v \"^w0,$mhz,\" clean.csv >less.csv && echo $mhz >mhz") == 0 &&
                 shell(WORKLOAD "less.csv >out", FL_PROGRAM) == 0 &&
                 shell("near=$(grep '^w0' rows.csv | cut -d, -f3,5 | grep ',1$' | head -n 1 | cut -d, -f1) && "
                       "d=$(($(cat mhz) - near)) && test ${d#-} = 100") == 0,
             "the nearest");
}

/* clean.json, the device of clean.csv, which several cases use, and in dev.out what the fit says. */
static void fit_clean(void) {
    const bool none[WORKLOADS] = {false};
    if (access(fl_temp_path("clean.json"), R_OK) == 0)
        return;
    write_sweep("clean.csv", none);
    FL_CHECK(shell("'%s' fit device clean.csv -o clean.json >dev.out", FL_PROGRAM) == 0, "fit device");
}

/* fit device says which clocks to measure, on the terminal and in its file, where its workloads are enough. */
static void test_advice(void) {
    fit_clean();
    FL_CHECK(says("dev.out", "best clocks to measure of a new workload.*each of 10 workloads") &&
                 says("dev.out", "^[0-9]+ \\+ [0-9]+ MHz +[0-9.]+ +[0-9.]+ +[0-9.]+ +600 \\+ 1500 MHz +[0-9.]+"),
             "on the terminal");
    size_t size = 0;
    char *json = fl_temp_slurp(fl_temp_path("clean.json"), &size);
    cJSON *root = json ? cJSON_Parse(json) : NULL;
    const cJSON *list =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "calibration"), "probes");
    FL_CHECK(cJSON_GetArraySize(list) == 4, "%d sets in the file", cJSON_GetArraySize(list));
    for (int i = 0; i < cJSON_GetArraySize(list); i++) {
        const cJSON *set = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, i), "chosen"),
                    *usual = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, i), "usual"),
                    *error = cJSON_GetObjectItemCaseSensitive(set, "time_pct");
        FL_CHECK(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(set, "at")) == i + 1 && error &&
                     error->valuedouble > 0 &&
                     cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(usual, "at")) == i + 1,
                 "set %d", i);
    }
    cJSON_Delete(root);
    free(json);
    FL_CHECK(shell("'%s' fit device clean.csv --only 'w[12]' -o two.json >two.out", FL_PROGRAM) == 0 &&
                 says("two.out", "note: there is no advice on which clocks to measure of a new workload"),
             "two workloads cannot tell");
}

#define FACTS                                                                                                          \
    "{\"name\": \"A GPU\", \"sm_mhz\": {\"from\": 300, \"to\": 1500, \"steps\": [100]}, \"mem_mhz\": [800], "          \
    "\"tdp_w\": 200}"

/* An idle log at five clocks: 40 W, more where V rises. */
static void write_idle(const char *name) {
    static const double mhz[] = {300, 700, 1000, 1250, 1500}, watts[] = {40, 43, 47, 55, 66};
    FILE *f = fopen(fl_temp_path(name), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "# foldline-telemetry 1\nt_ns,device,power_w,util_gpu_pct,sm_mhz\n");
    for (int i = 0; i < 50; i++)
        fprintf(f, "%d00000000,0,%g,0,%g\n", i + 1, watts[i / 10], mhz[i / 10]);
    fclose(f);
}

/* A GPU without measurements: its device says how little is known, predicts with wide deviations, and each thing
 * that is learnt narrows them. */
static void test_facts(void) {
    const bool none[WORKLOADS] = {false};
    fl_temp_text("facts.json", FACTS);
    write_idle("idle.csv");
    write_sweep("clean.csv", none);
    FL_CHECK(shell("'%s' fit device --facts facts.json -o facts-dev.json >out", FL_PROGRAM) == 0 &&
                 says("out", "from [0-9]+ known chips, a TDP of 200 W and a ladder of 300 to 1500 MHz") &&
                 says("out", "made-up workloads"),
             "fit device --facts");
    FL_CHECK(shell("'%s' list platforms ./facts-dev.json >out", FL_PROGRAM) == 0 &&
                 says("out", "A GPU, never measured") &&
                 says("out", "gpu.power.a_w +assumed: chips alike .*two deviations from") &&
                 says("out", "SM: 300 to 1500 MHz, 13 clocks"),
             "a platform");
    FL_CHECK(shell("'%s' fit device --facts facts.json --idle idle.csv -o idle-dev.json >out", FL_PROGRAM) == 0 &&
                 says("out", "idling at 5 clocks") && says("idle-dev.json", "chips alike .*an idle log"),
             "with an idle log");
    FL_CHECK(shell("grep -E '^workload|^w3,(600|1500),' clean.csv >two.csv && "
                   "'%s' fit workload --device facts-dev.json two.csv --at all -o blind.csv >out",
                   FL_PROGRAM) == 0 &&
                 says("out", "no sweep of this device was measured") &&
                 shell("'%s' fit workload --device idle-dev.json two.csv --at all -o idle.csv >out", FL_PROGRAM) == 0,
             "fit workload");
    /* Of the eight clocks between: power deviations above 1 %, and narrower with the log. */
    FL_CHECK(shell("awk -F, '/^w3,/ && $3 > 600 && $3 < 1500 { if (FILENAME == \"blind.csv\") blind += $10; else idle "
                   "+= $10; n++ } "
                   "END { exit !(n == 16 && blind > 8 && idle < blind) }' blind.csv idle.csv") != 1,
             "the log narrows");
    FL_CHECK(shell("'%s' compare blind.csv --platform ./facts-dev.json --policy maxfreq >out", FL_PROGRAM) == 0,
             "compare takes what it predicts");
}

static void test_probes(void) {
    fit_clean();
    fl_temp_text("facts.json", FACTS);
    write_idle("idle.csv");
    FL_CHECK(shell("grep -E '^workload|^w3,(600|1000|1500),' clean.csv >run.csv") == 0, "run");
    static const struct {
        const char *arguments, *says;
    } rows[] = {
        {"1 clean.csv", "each of 10 workloads"},
        {"1 --device clean.json", "each of 10 workloads"},
        {"1 --facts facts.json", "known chips, a TDP of 200 W and a ladder of 300 to 1500 MHz$"},
        {"1 --facts facts.json --idle idle.csv", "1500 MHz, idling at 5 clocks$"},
        {"1 --facts facts.json --run run.csv", "1500 MHz, one workload at 3 settings$"},
        {"2 --device v100-300w", "^[0-9]+ \\+ [0-9]+ MHz"},
        {"1 clean.csv --json", "\"calibration\""},
        {"1 --device a100 --json", "\"chips alike\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += fl_nightly() ? 1 : 3)
        FL_CHECK(shell("'%s' fit workload --which-clocks %s >out 2>err", FL_PROGRAM, rows[i].arguments) == 0 &&
                     says("out", rows[i].says),
                 "%s", rows[i].arguments);
    /* The file says what the sweep said; one count is one line of the same. */
    FL_CHECK(shell("'%s' fit workload --which-clocks 0 clean.csv | grep MHz >a; '%s' fit workload "
                   "--which-clocks 0 --device clean.json | grep MHz >b; cmp a b",
                   FL_PROGRAM, FL_PROGRAM) == 0,
             "from the sweep and from the file");
    FL_CHECK(
        shell("'%s' fit workload --which-clocks 3 --device clean.json | grep 'MHz  ' | tr -s ' ' >b; sed -n 3p a | "
              "tr -s ' ' "
              ">c; cmp b c && test -s c",
              FL_PROGRAM) == 0,
        "--count 3 is the third line");
}

static void test_bad_facts(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"{\"sm_mhz\": [300, 1500], \"mem_mhz\": [800]}", "bad.json:1:.*tdp_w"},
        {"{\"sm_mhz\": [1500, 300], \"mem_mhz\": [800], \"tdp_w\": 200}", "bad.json:1:19: .*ascending clocks"},
        {"{\"sm_mhz\": [1500], \"mem_mhz\": [800], \"tdp_w\": 200}", "one clock, expected two or more"},
        {"{\"sm_mhz\": [300, 1500], \"mem_mhz\": [800], \"tdp_w\": -200}", "tdp_w: -200"},
        {"{\"sm_mhz\": [300, 1500], \"mem_mhz\": [800], \"tpd_w\": 200}", "tdp_w"},
        {"{\"sm_mhz\": [300, 1500], \"mem_mhz\": [800], \"default_mem_mhz\": 810, \"tdp_w\": 200}",
         "MHz is not on mem_mhz; the highest is 800"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_temp_text("bad.json", rows[i].text);
        FL_CHECK(shell("'%s' fit workload --which-clocks 0 --facts bad.json >out 2>err", FL_PROGRAM) == 2 &&
                     says("err", rows[i].says) &&
                     shell("'%s' fit device --facts bad.json -o bad-dev.json >out 2>err", FL_PROGRAM) == 2 &&
                     says("err", rows[i].says) && shell("test ! -e bad-dev.json") == 0,
                 "%s", rows[i].text);
    }
    static const struct {
        const char *arguments, *says;
    } calls[] = {
        {"workload --which-clocks 0", "expected --device with"},
        {"workload --which-clocks 0 --device v100-300w --facts facts.json", "one of these alone"},
        {"workload --which-clocks 0 v100-300w a100", "v100-300w: cannot open"},
        {"workload --which-clocks 0 --device v100-3000w", "did you mean"},
        {"workload --which-clocks 0 clean.csv --idle idle.csv", "for a GPU without measurements"},
        {"workload --which-clocks 0 --facts facts.json --run clean.csv", "10 workloads, expected the run of one"},
        {"workload --which-clocks 0 --facts facts.json --run fast.csv", "a run at 1600 MHz"},
        {"workload --facts facts.json --which-clocks 5", "4"},
        {"workload --which-clocks 0 --facts facts.json --idle facts.json", "facts.json"},
        {"workload --which-clocks 0 two.csv", "1 workloads at 2 settings are too few"},
        {"device --facts facts.json clean.csv -o x.json", "a sweep and facts"},
        {"device clean.csv --run clean.csv -o x.json", "--run belongs to --facts"},
        {"device --facts facts.json --only w1 -o x.json", "--only chooses among the workloads of sweeps"},
        {"device --facts facts.json", "expected -o"},
        {"device clean.csv -o x.json --splits 2", "--splits has no effect without --cross-validate"},
        {"device clean.csv -o x.json --cross-validate", "-o has no effect with --cross-validate"},
        {"workload --device v100-300w clean.csv --facts facts.json", "has no effect without --which-clocks"},
        {"workload --which-clocks 1 clean.csv --at ends", "--at has no effect with --which-clocks"},
    };
    const bool none[WORKLOADS] = {false};
    write_sweep("clean.csv", none);
    fl_temp_text("facts.json", FACTS);
    write_idle("idle.csv");
    fl_temp_text("fast.csv", "workload,sm_mhz,mem_mhz,time_s,power_w\nw,1600,800,1,100\n");
    FL_CHECK(shell("grep -E '^workload|^w3,(600|1500),' clean.csv >two.csv") == 0, "two");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        FL_CHECK(shell("'%s' fit %s >out 2>err", FL_PROGRAM, calls[i].arguments) == 2 && says("err", calls[i].says),
                 "%s", calls[i].arguments);
}

static void test_refusals(void) {
    const bool none[WORKLOADS] = {false};
    static const struct {
        const char *at, *says;
    } rows[] = {
        {"chosen:5", "chosen:1 to chosen:4"}, {"chosen:0", "chosen:1 to chosen:4"},
        {"chosen:", "chosen:1 to chosen:4"},  {"chosen:2x", "chosen:1 to chosen:4"},
        {"chosen", "chosen:1 to chosen:4"},
    };
    write_sweep("clean.csv", none);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(shell("'%s' fit device --cross-validate clean.csv --at %s >out 2>err", FL_PROGRAM, rows[i].at) == 2 &&
                     says("err", rows[i].says),
                 "%s", rows[i].at);
    FL_CHECK(shell("grep -E '^(workload|w[01],)' clean.csv >two.csv && '%s' fit device --cross-validate "
                   "two.csv --at chosen:2 >out "
                   "2>err",
                   FL_PROGRAM) == 2 &&
                 says("err", "calibrated with 1 workloads .* expected 3 workloads"),
             "too few workloads");
    FL_CHECK(shell("'%s' fit workload --device generic clean.csv --at chosen:2 >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "calibrated with 0 workloads"),
             "a platform without calibration");
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_probes", {"half", test_half}, {"workload", test_workload}, {"advice", test_advice}, {"facts", test_facts},
         {"probes", test_probes}, {"bad facts", test_bad_facts}, {"refusals", test_refusals},
         {"clean up", test_clean_up})
