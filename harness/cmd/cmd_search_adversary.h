/* `foldline search --adversary`: a command of its own by its options, kept under the name of the search. */
#ifndef FL_CMD_SEARCH_ADVERSARY_H
#define FL_CMD_SEARCH_ADVERSARY_H

#include <stdbool.h>

bool fl_search_is_adversary(int argc, char **argv);
int fl_cmd_search_adversary(int argc, char **argv);

#endif
