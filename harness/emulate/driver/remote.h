/* Another process of the session, seen from outside: its memory, its descriptors, its state. The kernel allows it as it
 * would allow a debugger. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* False where that memory is not there, or not allowed. */
bool fl_remote_read(pid_t pid, uint64_t at, void *to, size_t n);
bool fl_remote_write(pid_t pid, uint64_t at, const void *from, size_t n);
/* Writes to memory that the process itself may only read. */
bool fl_remote_patch(pid_t pid, uint64_t at, const void *from, size_t n);

/* A descriptor of the same open file, to be closed; -1 with errno. */
int fl_remote_fd(int pidfd, int fd);

/* The process of a thread; 0 where it has ended. */
pid_t fl_remote_process(pid_t thread);
pid_t fl_remote_parent(pid_t pid);
/* Its threads and its children, up to `most`: how many, -1 where that cannot be seen. */
int fl_remote_threads(pid_t pid, pid_t *all, int most);
int fl_remote_children(pid_t pid, pid_t *all, int most);
/* Whether the thread still runs code. */
bool fl_remote_lives(pid_t pid, pid_t thread);
/* Whether a signal waits for the thread that would interrupt a call. mask: instead of its own, where `masked`. */
bool fl_remote_signalled(pid_t pid, pid_t thread, bool masked, uint64_t mask);
/* Whether one of this set is pending. */
bool fl_remote_pending(pid_t pid, pid_t thread, uint64_t set);
/* Whether a child has ended (which: its pid, or -1 for any), or there is none to wait for. */
bool fl_remote_child_ended(pid_t pid, pid_t which);

/* In the process, the vDSO's clocks become system calls. False where it cannot be done. */
bool fl_remote_clocks(pid_t pid);
