/* A CUnit suite for one module: FL_SUITE("diag", {"nearest", test_nearest}, ...) at the end of test_diag.c. All suites
 * of a folder are linked into one program, tests/support/suite.c has its main: "test_traces diag" runs this suite
 * alone. With FL_CASE=3 in the environment, only the suite's fourth case runs; a suite with fewer cases ends with
 * FL_NO_CASE. With FL_NIGHTLY=1, sweeps that take long run in full. With FL_BLESS=1, golden checks rewrite their
 * expectation instead of comparing.
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

typedef struct fl_suite {
    const char *file; /* .../test_NAME.c: NAME runs the suite */
    const char *title;
    const fl_case *cases;
    size_t count;
    int (*program)(
        int argc,
        char **argv);    /* runs the program that the suite starts this one anew as; -1: not with these arguments */
    void (*open)(void);  /* before the first case */
    void (*close)(void); /* after the last */
    struct fl_suite *next;
} fl_suite;

#define FL_NO_CASE 77

/* Adds a suite to those of the program. Called before main. */
void fl_suite_add(fl_suite *suite);

#define FL_SUITE(name, ...)                                                                                            \
    static const fl_case fl_cases_[] = {__VA_ARGS__};                                                                  \
    FL_SUITE_OF(name, fl_cases_, .next = NULL)

/* The same, of an array of cases, with further members of fl_suite. */
#define FL_SUITE_OF(name, array, ...)                                                                                  \
    __attribute__((constructor)) static void fl_suite_here_(void) {                                                    \
        static fl_suite suite = {                                                                                      \
            .file = __FILE__, .title = name, .cases = array, .count = sizeof array / sizeof *array, __VA_ARGS__};      \
        fl_suite_add(&suite);                                                                                          \
    }

static inline bool fl_blessing(void) {
    const char *b = getenv("FL_BLESS");
    return b && *b == '1';
}

/* Return true in the nightly run, where a sweep may take long. */
static inline bool fl_nightly(void) { return getenv("FL_NIGHTLY") != NULL; }

/* At the beginning of a case: it runs in the nightly run only. */
#define FL_NIGHTLY_ONLY()                                                                                              \
    do {                                                                                                               \
        if (!fl_nightly()) {                                                                                           \
            printf("nightly only, ");                                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

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
