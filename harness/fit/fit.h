/* The sub-commands of `foldline fit`, one file each: cmd_fit_NAME.c. */
#ifndef FL_FIT_H
#define FL_FIT_H

int fl_fit_capping(int argc, char **argv); /* after the sub-command's name; return the exit status */
int fl_fit_device(int argc, char **argv);
int fl_fit_workload_command(int argc, char **argv); /* models/fit_workload.h has fl_fit_workload */
int fl_fit_trace(int argc, char **argv);
int fl_fit_logs(int argc, char **argv);
int fl_fit_split(int argc, char **argv);
int fl_fit_sensitivity(int argc, char **argv);
int fl_fit_sweetspot(int argc, char **argv);

#endif
