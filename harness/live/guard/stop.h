/* Ending in order: TERM, INT and HUP only raise a flag, which the loop asks for; one that we were started to ignore
 * (nohup, a background job) stays ignored, one that we were started with blocked is not blocked any more. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

void fl_stop_listen(void);
void fl_stop_forget(void); /* from here on each ends the process at once, as if we had never listened */
bool fl_stop_asked(void);
bool fl_stop_ignored(int number); /* by this process, now */
/* The last of these signals that some process sent to us alone, once; 0 = none. One from the terminal or the kernel has
 * reached every process of the job. */
int fl_stop_hand_on(void);
/* As pthread_create, but signals are for the thread that controls: its sleep must end by them. */
int fl_stop_thread(pthread_t *thread, void *(*work)(void *), void *user);
