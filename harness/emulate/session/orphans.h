/* Processes that a command leaves behind. After a command is killed on purpose, they must all have ended before the
 * next run. They therefore become children of this process when their parents end. */
#pragma once

#include <stdbool.h>

/* From now on orphans become children of this process. False, without any change, where this process already has
 * children: these belong to the program that it replaced by exec, and could not be told apart. */
bool fl_orphans_adopt(void);
/* Kills every child that has not ended yet, including those that arrive meanwhile, and ends the adoption. */
void fl_orphans_end(void);
