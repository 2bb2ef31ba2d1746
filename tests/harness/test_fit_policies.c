/* `foldline fit odpp` and `fit gpoeo` as a user has them: the same tables from the same programs, whatever the number
 * of threads; the policies take them; what is missing is said. */
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

static const struct {
    const char *fit, *options, *param, *rows;
} kinds[] = {{"odpp", "--step 735 --epochs 2 --seconds 45", "weights", "13269"},
             {"gpoeo", "--step 450 --trees 3 --seconds 5", "trees", "270"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Programs of few kernels: the others of a draw take long to lay out. */
#define FIVE "--workload gnn_01 --workload gnn_02 --workload gnn_03 --workload gnn_04 --workload gnn_05"

static void test_fits(void) {
    CU_ASSERT_FATAL(shell("'%s' synth --apps 5 --seed 1009 -o p.programs.csv >made", FL_PROGRAM) == 0);
    for (int k = 0; k < KINDS; k++) {
        const char *fit = kinds[k].fit;
        for (int threads = 1; threads <= 2; threads++)
            FL_CHECK(shell("'%s' fit %s p.programs.csv --platform rtx3080ti " FIVE
                           " --match 'gnn_*' %s --threads %d -o %s.%d.csv "
                           ">%s.out 2>&1",
                           FL_PROGRAM, fit, kinds[k].options, threads, fit, threads, fit) == 0,
                     "fit %s", fit);
        FL_CHECK(shell("cmp %s.1.csv %s.2.csv", fit, fit) == 0, "%s hangs on the threads", fit);
        FL_CHECK(shell("test $(tail -n +2 %s.1.csv | wc -l) = %s", fit, kinds[k].rows) == 0, "%s: rows", fit);
        FL_CHECK(says(fit[0] == 'o' ? "odpp.out" : "gpoeo.out", "held out"), "%s does not test", fit);
        FL_CHECK(
            shell("'%s' run --platform rtx3080ti --programs p.programs.csv --workload gnn_01 --seconds 30 --policy %s "
                  "--set %s=%s.1.csv >run.out 2>&1",
                  FL_PROGRAM, fit, kinds[k].param, fit) == 0,
            "the policy %s does not take its table", fit);
        FL_CHECK(shell("head -20 %s.1.csv >cut.csv; '%s' run --platform rtx3080ti --programs p.programs.csv --workload "
                       "gnn_01 --seconds 30 --policy %s --set %s=cut.csv >run.out 2>&1",
                       fit, FL_PROGRAM, fit, kinds[k].param) == 2 &&
                     says("run.out", "makes them"),
                 "%s: a table cut short", fit);
    }
}

/* The tables in harness/experiments are of a size that the policies take. */
static void test_shipped(void) {
    static const char *const name[] = {"odpp.weights.csv", "gpoeo.trees.csv"};
    for (int k = 0; k < KINDS; k++)
        FL_CHECK(
            shell("'%s' run --platform rtx3080ti --programs p.programs.csv --workload gnn_01 --seconds 30 --policy %s "
                  "--set %s='%s/harness/experiments/%s' >run.out 2>&1",
                  FL_PROGRAM, kinds[k].fit, kinds[k].param, FL_ROOT, name[k]) == 0,
            "%s", name[k]);
}

static void test_refusals(void) {
    for (int k = 0; k < KINDS; k++) {
        const char *fit = kinds[k].fit;
        FL_CHECK(shell("'%s' fit %s --platform rtx3080ti 2>err", FL_PROGRAM, fit) == 2 &&
                     says("err", "expected programs files or --sweep"),
                 "%s: nothing to learn from", fit);
        FL_CHECK(shell("'%s' fit %s p.programs.csv --platform rtx3080ti " FIVE " --seconds 5 --match 'none_*' 2>err",
                       FL_PROGRAM, fit) == 2 &&
                     says("err", "0 programs, expected at least 5"),
                 "%s: too few", fit);
    }
    FL_CHECK(shell("'%s' fit odpp p.programs.csv --platform rtx3080ti " FIVE " --seconds 10 2>err", FL_PROGRAM) == 2 &&
                 says("err", "ends before the measurement does"),
             "too short to be measured");
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_policies", {"fits", test_fits}, {"tables that are shipped", test_shipped}, {"refusals", test_refusals},
         {"clean up", test_clean_up})
