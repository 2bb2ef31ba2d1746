/* A CUnit suite named after its module: FL_SUITE("diag", {"nearest", test_nearest}, ...) at the end of
 * tests/test_diag.c. With FL_BLESS=1 in the environment, golden checks rewrite their expectation instead of comparing.
 * With FL_CASE=3, the fourth case runs alone; where there are fewer, the suite ends with FL_NO_CASE.
 */
#pragma once

#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fl_case {
    const char *name;
    void (*run)(void);
} fl_case;

#define FL_NO_CASE 77

static inline int fl_suite_run(const char *suite, const fl_case *cases, size_t count) {
    const char *only = getenv("FL_CASE");
    if (only) {
        size_t at = strtoul(only, NULL, 10);
        if (at >= count)
            return FL_NO_CASE;
        cases += at;
        count = 1;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite s = CU_add_suite(suite, NULL, NULL);
    for (size_t i = 0; s && i < count; i++)
        if (!CU_add_test(s, cases[i].name, cases[i].run))
            s = NULL;
    if (!s)
        return 1;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}

#define FL_SUITE(name, ...)                                                                                            \
    int main(void) {                                                                                                   \
        static const fl_case cases[] = {__VA_ARGS__};                                                                  \
        return fl_suite_run(name, cases, sizeof cases / sizeof *cases);                                                \
    }

static inline bool fl_blessing(void) {
    const char *b = getenv("FL_BLESS");
    return b && *b == '1';
}

/* Assert with a printed reason: FL_CHECK(x == 3, "x is %d for row %zu", x, i). Goes on after a failure. */
#define FL_CHECK(condition, ...)                                                                                       \
    do {                                                                                                               \
        bool fl_holds_ = (condition);                                                                                  \
        if (!fl_holds_) {                                                                                              \
            printf("\n    %s:%d: ", __FILE__, __LINE__);                                                               \
            printf(__VA_ARGS__);                                                                                       \
        }                                                                                                              \
        CU_ASSERT(fl_holds_);                                                                                          \
    } while (0)
