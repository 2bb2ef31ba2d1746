/* System calls that a program makes by itself, past the C library. */
#ifndef FL_TIME_RAW_H
#define FL_TIME_RAW_H

/* Is told of one that asks for time, or for what would: the system call, in words. It returns where the call may be
 * made. */
typedef void fl_raw_refuse(const char *call);

/* From here on this thread's are seen. */
void fl_raw_catch(fl_raw_refuse *refuse);

/* Calls by which streams of the C library read and write are handed over, from here on (time_stdio.c). Their result,
 * below 0 the error. */
void fl_stdio_catch(void);
long fl_stdio_caught(long number, const long a[3]);

#endif
