/* Nothing gets out: in a user and mount namespace of its own the command, and all it starts, finds the places of a real
 * driver covered, its libraries and its device nodes. So a child without the session's environment (env -i), a setuid
 * or a static program reaches none either. */
#ifndef FL_EMULATE_CONFINE_H
#define FL_EMULATE_CONFINE_H

#include "traces/diag.h"

typedef enum fl_confine { FL_CONFINE_TRY, FL_CONFINE_NEED, FL_CONFINE_OFF } fl_confine;

typedef struct fl_covers { /* what of a real driver lies on this machine, and what is put over it */
    char **path;
    size_t count, room;
    char file[96], folder[96]; /* a socket, which nobody can open, and an empty folder: both the session's */
} fl_covers;

/* Finds what is to be covered, and makes the covers in the session's folder. spare: the folder of the simulated
 * library, which stays. Free with fl_covers_close, also after a failure. */
fl_status fl_covers_open(fl_covers *c, const char *session, const char *spare, fl_diag *d);
void fl_covers_close(fl_covers *c);

/* In a process of one thread that is about to become the command: from here on it and its children have namespaces of
 * their own, with all of that covered. False where the system refuses: why says what; the process is then of no use. */
bool fl_confine_enter(const fl_covers *c, char *why, size_t size);
/* The same in a child that ends at once: whether it works here. */
bool fl_confine_try(const fl_covers *c, char *why, size_t size);

#endif
