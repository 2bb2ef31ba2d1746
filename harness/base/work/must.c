/* Allocations that end the program where they fail. */
#include "harness/base/work/work.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* Several threads may come here at once: the first ends the program, the others wait for that. No handler of exit()
 * runs, because other threads still use what those free. */
_Noreturn void fl_memory_end(void) {
    static atomic_flag ends = ATOMIC_FLAG_INIT;
    fl_diag d = {0};
    fl_memory_lost(); /* from now on no other thread puts an output in its place */
    while (atomic_flag_test_and_set(&ends))
        pause();
    fl_no_memory(&d, NULL);
    _exit(fl_command_fail(fl_command_name, &d));
}

void fl_must_have(bool had) {
    if (!had)
        fl_memory_end();
}

void *fl_must(void *memory) {
    fl_must_have(memory);
    return memory;
}

void fl_must_grow(void *items, size_t *room, size_t need, size_t size) {
    fl_must_have(!fl_grow(items, room, need, size));
}

char *fl_must_print(const char *format, ...) {
    char *text = NULL;
    va_list list;
    va_start(list, format);
    fl_must_have(vasprintf(&text, format, list) >= 0);
    va_end(list);
    return text;
}
