/* The command that emulates a GPU for another program. */
#ifndef FL_CMD_EMULATE_H
#define FL_CMD_EMULATE_H

int fl_cmd_emulate(int argc, char **argv);

#endif
