/* The main of every test program: runs the suites that are linked into it.
 *   test_sim             all of them, each in a process of its own
 *   test_sim engine spin these
 *   test_sim --list      their names
 */
#include "tests/support/suite.h"

#include <sys/wait.h>
#include <unistd.h>

static fl_suite *suites; /* by name */

/* "engine" of .../test_engine.c, and its length. */
static const char *name_of(const fl_suite *s, size_t *length) {
    const char *name = strrchr(s->file, '/');
    name = (name ? name + 1 : s->file) + strlen("test_");
    *length = strlen(name) - strlen(".c");
    return name;
}

void fl_suite_add(fl_suite *suite) {
    fl_suite **at = &suites;
    while (*at && strcmp((*at)->file, suite->file) < 0)
        at = &(*at)->next;
    suite->next = *at;
    *at = suite;
}

static fl_suite *find(const char *wanted) {
    for (fl_suite *s = suites; s; s = s->next) {
        size_t length;
        const char *name = name_of(s, &length);
        if (strlen(wanted) == length && !memcmp(wanted, name, length))
            return s;
    }
    return NULL;
}

static int run_cases(const fl_suite *suite) {
    const char *only = getenv("FL_CASE");
    const size_t first = only ? strtoul(only, NULL, 10) : 0;
    if (only && first >= suite->count)
        return FL_NO_CASE;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite s = CU_add_suite(suite->title, NULL, NULL);
    for (size_t i = first; s && i < (only ? first + 1 : suite->count); i++)
        if (!CU_add_test(s, suite->cases[i].name, suite->cases[i].run))
            s = NULL;
    if (!s)
        return 1;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}

static int run(const fl_suite *suite) {
    if (suite->open)
        suite->open();
    const int status = run_cases(suite);
    if (suite->close)
        suite->close();
    return status;
}

/* Runs a suite in a process of its own, so that it neither changes nor ends what comes after it. */
static bool run_apart(const fl_suite *suite) {
    size_t length;
    const char *name = name_of(suite, &length);
    int status = 1;
    fflush(NULL);
    const pid_t pid = fork();
    if (!pid)
        exit(run(suite));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
        printf("suite %.*s FAILED, %s %d\n", (int)length, name, WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    for (const fl_suite *s = suites; s; s = s->next) {
        const int status = s->program ? s->program(argc, argv) : -1;
        if (status >= 0)
            return status;
    }
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (const fl_suite *s = suites; s; s = s->next) {
            size_t length;
            const char *name = name_of(s, &length);
            printf("%.*s\n", (int)length, name);
        }
        return 0;
    }
    for (int i = 1; i < argc; i++)
        if (!find(argv[i])) {
            fprintf(stderr, "%s: no suite %s; --list prints their names\n", argv[0], argv[i]);
            return 2;
        }
    if (argc == 2)
        return run(find(argv[1]));
    if (argc == 1 && suites && !suites->next)
        return run(suites);
    int failed = 0;
    for (const fl_suite *s = argc > 1 ? NULL : suites; s; s = s->next)
        failed += !run_apart(s);
    for (int i = 1; i < argc; i++)
        failed += !run_apart(find(argv[i]));
    return failed > 0;
}
