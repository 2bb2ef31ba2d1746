#include "harness/emulate/emulate_orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* How many children there are that can be sent this signal; 0 asks alone. */
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

/* The children of one that ends come to us only then: it is looked for them after each end. */
void fl_orphans_end(void) {
    while (send_to_children(SIGKILL))
        if (waitpid(-1, NULL, 0) < 0 && errno != EINTR)
            break;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}
