/* The commands of a vendor's tool that set a clock on a board and undo that. */
#pragma once

#include "harness/advise/advise.h"

typedef struct fl_advise_commands {
    char set[224], undo[224]; /* "" = no command does it */
    const char *note;         /* what a user must know about them; NULL = nothing */
} fl_advise_commands;

/* Whether the measured board certainly is of one vendor, and the other board is not. */
bool fl_advise_other_vendor(const char *measured, const char *device);

/* Whether both names certainly state a model, and not the same: "NVIDIA GeForce RTX 5090" and "A100-SXM4-80GB". */
bool fl_advise_other_model(const char *measured, const char *device);

/* gpu: its number as the vendor's tool counts; -1 = not known, so that the commands concern all. device: the board's
 * name; "" = not known, which counts as an NVIDIA board. memory: whether the memory clock is set too. NVIDIA boards can
 * lock clocks from Volta on (nvidia-smi -lgc). Before that, Tesla, Quadro and Titan boards have application clocks
 * (-ac), and GeForce boards have neither (nvidia-smi(1)). */
fl_advise_commands fl_advise_commands_of(const char *device, int64_t gpu, fl_setting_clocks at, bool memory);

/* Adds the power limit of a setting. own_w: the board's own limit, which undoing sets again; 0 or INFINITY = not known.
 */
void fl_advise_add_limit(fl_advise_commands *c, const char *device, int64_t gpu, double limit_w, double own_w);
