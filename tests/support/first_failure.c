/* Loaded by tests/mutate.py before CUnit: a suite ends at its first failure, for one is enough to kill a mutant. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <unistd.h>

CU_BOOL CU_assertImplementation(CU_BOOL holds, unsigned int line, const char *condition, const char *file,
                                const char *function, CU_BOOL fatal) {
    (void)line, (void)condition, (void)file, (void)function, (void)fatal;
    if (!holds)
        _exit(1);
    return CU_TRUE;
}
