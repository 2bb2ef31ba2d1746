#include "harness/emulate/session/orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* The number of children to which this signal can be sent; 0 only checks. */
static int send_to_children(int signal) {
    int pid, count = 0;
    FILE *f = fopen("/proc/thread-self/children", "re");
    while (f && fscanf(f, "%d", &pid) == 1)
        count += !kill(pid, signal);
    if (f)
        fclose(f);
    return count;
}

bool fl_orphans_adopt(void) { return !send_to_children(0) && !prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

/* The children of a process become ours only after its end, so the search repeats after each end. */
void fl_orphans_end(void) {
    while (send_to_children(SIGKILL))
        if (waitpid(-1, NULL, 0) < 0 && errno != EINTR)
            break;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}
