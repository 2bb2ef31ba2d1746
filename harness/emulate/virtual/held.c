#include "harness/emulate/virtual/held.h"

#include <linux/seccomp.h>
#include <sys/ioctl.h>

static void end_call(fl_held_call *h, struct seccomp_notif_resp r) {
    h->here = h->blocked = h->gave_way = false;
    h->line = 0;
    r.id = h->id;
    (void)ioctl(h->listener, SECCOMP_IOCTL_NOTIF_SEND, &r); /* the kernel refuses this if the thread has been killed */
}

void fl_held_answer(fl_turn *t, int64_t value) {
    end_call(t->held, value < 0 ? (struct seccomp_notif_resp){.error = (int32_t)value}
                                : (struct seccomp_notif_resp){.val = value});
}

void fl_held_go_on(fl_turn *t) {
    end_call(t->held, (struct seccomp_notif_resp){.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

void fl_held_let(int listener, uint64_t id) {
    struct seccomp_notif_resp r = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}
