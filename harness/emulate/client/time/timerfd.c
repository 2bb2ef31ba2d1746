/* Timers behind a descriptor. An eventfd stands for it, whose count the server raises: it is read, polled, copied and
 * inherited as the real one is. All who have it find its timer by the id that the kernel gives each eventfd. */
#include "harness/emulate/client/time/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* One more than the kernel's id of it; 0 where it has none. */
static uint32_t id_of(int fd) { return fl_time_fdinfo(fd, "eventfd-id:", UINT32_MAX) + 1; }

FL_SHOWN int timerfd_create(int clock, int flags) {
    fl_ask q;
    if (!fl_time_on())
        return REAL(timerfd_create)(clock, flags);
    if (!fl_timer_clock(clock) || flags & ~(TFD_NONBLOCK | TFD_CLOEXEC))
        return fl_timer_refuse(EINVAL);
    const int fd = eventfd(0, (flags & TFD_NONBLOCK ? EFD_NONBLOCK : 0) | (flags & TFD_CLOEXEC ? EFD_CLOEXEC : 0));
    if (fd < 0)
        return -1;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_TIMER;
    q.a = FL_TIMER_DESCRIPTOR;
    q.b = (uint32_t)clock;
    q.wide = id_of(fd);
    q.spare = fd + 1;
    if (!q.wide) /* a kernel before 5.2 */
        fl_time_fail("timerfd_create");
    const uint64_t number = fl_time_number(&q);
    if (!number) {
        close(fd);
        return fl_timer_refuse(ENOMEM);
    }
    return fd;
}

static int arm(int fd, fl_timer_want *want, fl_timer_state *was) {
    const uint32_t id = id_of(fd);
    if (fcntl(fd, F_GETFD) < 0)
        return fl_timer_refuse(EBADF);
    if (!id || fl_timer_arm(FL_TIMER_DESCRIPTOR, id, NULL, was))
        return fl_timer_refuse(EINVAL);
    if (!want)
        return 0;
    want->clock = (clockid_t)was->clock;
    return fl_timer_arm(FL_TIMER_DESCRIPTOR, id, want, NULL);
}

FL_SHOWN int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(timerfd_settime)(fd, flags, value, old);
    if (!value || !fl_timer_proper(&value->it_value) || !fl_timer_proper(&value->it_interval))
        return fl_timer_refuse(EINVAL);
    fl_timer_want want = {
        .absolute = flags & TFD_TIMER_ABSTIME, .first = value->it_value, .interval = value->it_interval};
    if (arm(fd, &want, &was))
        return -1;
    if (old)
        fl_timer_tell(&was, old);
    return 0;
}

FL_SHOWN int timerfd_gettime(int fd, struct itimerspec *value) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(timerfd_gettime)(fd, value);
    if (arm(fd, NULL, &was))
        return -1;
    fl_timer_tell(&was, value);
    return 0;
}
