#pragma once

#include <sys/types.h>

/* The process of a pidfd, 0 where that is not known. */
pid_t fl_time_pid_of(int pidfd);
