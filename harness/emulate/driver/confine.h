/* Confinement: in a user and mount namespace of its own, the command and everything it starts find the places of a real
 * driver covered, its libraries and its device nodes. Therefore a child without the session's environment (env -i), a
 * setuid program or a static program cannot reach a real driver either. */
#pragma once

#include "traces/io/diag.h"

typedef enum fl_confine { FL_CONFINE_TRY, FL_CONFINE_NEED, FL_CONFINE_OFF } fl_confine;

typedef struct fl_covers { /* the parts of a real driver on this machine, and what covers them */
    char **path;
    size_t count, room;
    char file[96],
        folder[96]; /* the covers, both in the session's folder: a socket, which no one can open, and an empty folder */
} fl_covers;

/* Finds everything to cover, and makes the covers in the session's folder. spare: the folder of the simulated library,
 * which stays visible. Free with fl_covers_close, also after a failure. */
fl_status fl_covers_open(fl_covers *c, const char *session, const char *spare, fl_diag *d);
void fl_covers_close(fl_covers *c);

/* Call it in a process of one thread that is about to become the command. From then on the process and its children
 * have namespaces of their own, with all of that covered. False where the system refuses: why gives the reason, and the
 * process must not continue. */
bool fl_confine_enter(const fl_covers *c, char *why, size_t size);
/* Tries the same in a child that ends at once: whether it works here. */
bool fl_confine_try(const fl_covers *c, char *why, size_t size);
