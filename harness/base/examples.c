#include "harness/base/examples.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *command, *example[FL_EXAMPLES_EACH];
} table[] = {
    {"", {"foldline help compare", "foldline policies"}},
};

const char *const *fl_examples_of(const char *command) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].command, command))
            return table[i].example;
    return NULL;
}
