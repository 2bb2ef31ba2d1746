/* `foldline search --adversary`: a command of its own by its options, kept under the name of the search. */
#pragma once

#include <stdbool.h>

bool fl_search_is_adversary(int argc, char **argv);
int fl_cmd_search_adversary(int argc, char **argv);
