/* Processes that a command leaves behind. Of a command that is killed on purpose they must have ended before the next
 * run, so they become children of this process when their parents go. */
#ifndef FL_EMULATE_ORPHANS_H
#define FL_EMULATE_ORPHANS_H

#include <stdbool.h>

/* From here on orphans come to this process. False, and nothing is changed, where it has children already: they are
 * somebody else's, left by the program that this one took the place of, and could not be told apart. */
bool fl_orphans_adopt(void);
/* Kills whoever has not ended by now, with what comes to us while it does, and ends the adoption. */
void fl_orphans_end(void);

#endif
