/* How one sets a clock on a board, and undoes it, by its vendor's tool. */
#ifndef FL_ADVISE_SET_H
#define FL_ADVISE_SET_H

#include "harness/advise/advise.h"

typedef struct fl_advise_commands {
    char set[160], undo[160]; /* "" = none does it */
    const char *note;         /* what one has to know of them; NULL = nothing */
} fl_advise_commands;

/* Whether the board that something was measured on is one vendor's for certain, and the other is not that vendor's. */
bool fl_advise_other_vendor(const char *measured, const char *device);

/* device: the board's name, "" = not known, which is taken for an NVIDIA board. memory: whether the memory clock is set
 * too. NVIDIA's boards lock clocks from Volta on (nvidia-smi -lgc); before, Tesla, Quadro and Titan boards have
 * application clocks (-ac), and GeForce boards neither (nvidia-smi(1)). */
fl_advise_commands fl_advise_commands_of(const char *device, fl_setting_clocks at, bool memory);

#endif
