/* `foldline fit policy odpp` as a user has it: the same weights from the same programs, whatever the number of threads;
 * the policy takes them; what is missing is said. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <stdarg.h>
#include <sys/wait.h>

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

static bool says(const char *file, const char *text) { return shell("grep -qF -e \"%s\" '%s'", text, file) == 0; }

/* Programs of few kernels: the others of a draw take long to lay out. */
#define FIVE "--workload gnn_01 --workload gnn_02 --workload gnn_03 --workload gnn_04 --workload gnn_05"

/* Runs the policy odpp with the weights of a file. */
static int run_with(const char *weights) {
    return shell("'%s' run --platform rtx3080ti p.programs.csv --workload gnn_01 --seconds 30 --policy odpp "
                 "--set weights='%s' >run.out 2>&1",
                 FL_PROGRAM, weights);
}

static void test_fits(void) {
    CU_ASSERT_FATAL(shell("'%s' synth --apps 5 --seed 1009 -o p.programs.csv >made", FL_PROGRAM) == 0);
    for (int threads = 1; threads <= 2; threads++)
        FL_CHECK(shell("'%s' fit policy odpp p.programs.csv --platform rtx3080ti " FIVE
                       " --match 'gnn_*' --step 735 --epochs 2 --seconds 45 --threads %d -o odpp.%d.csv >odpp.out 2>&1",
                       FL_PROGRAM, threads, threads) == 0,
                 "%d threads", threads);
    FL_CHECK(shell("cmp odpp.1.csv odpp.2.csv") == 0, "the weights depend on the threads");
    FL_CHECK(shell("test $(tail -n +2 odpp.1.csv | wc -l) = 13269") == 0, "rows");
    FL_CHECK(says("odpp.out", "held out"), "it does not test");
    FL_CHECK(run_with("odpp.1.csv") == 0, "the policy does not take its weights");
    FL_CHECK(shell("head -20 odpp.1.csv >cut.csv") == 0 && run_with("cut.csv") == 2 && says("run.out", "makes them"),
             "a table cut short");
}

/* The weights in harness/experiments are of a size that the policy takes. */
static void test_shipped(void) { CU_ASSERT(run_with(FL_ROOT "/harness/experiments/odpp.weights.csv") == 0); }

static void test_refusals(void) {
    FL_CHECK(shell("'%s' fit policy odpp --platform rtx3080ti 2>err", FL_PROGRAM) == 2 &&
                 says("err", "expected files of programs, or sweeps"),
             "nothing to learn from");
    FL_CHECK(shell("'%s' fit policy odpp p.programs.csv --platform rtx3080ti " FIVE
                   " --seconds 5 --match 'none_*' 2>err",
                   FL_PROGRAM) == 2 &&
                 says("err", "0 programs, expected at least 5"),
             "too few");
    FL_CHECK(shell("'%s' fit policy odpp p.programs.csv --platform rtx3080ti " FIVE " --seconds 10 2>err",
                   FL_PROGRAM) == 2 &&
                 says("err", "ends before the measurement does"),
             "too short to be measured");
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_policies", {"fits", test_fits}, {"weights that are shipped", test_shipped}, {"refusals", test_refusals},
         {"clean up", test_clean_up})
