/* The commands that deal with a machine instead of a simulated one. */
#ifndef FL_LIVE_COMMANDS_H
#define FL_LIVE_COMMANDS_H

#include "harness/commands.h"

int fl_cmd_live(int argc, char **argv);
int fl_cmd_record(int argc, char **argv);
int fl_cmd_doctor(int argc, char **argv);
int fl_cmd_restore(int argc, char **argv);

#endif
