/* A program that cuts the file of its ring short would end the host by SIGBUS at its next look. What reads a ring runs
 * in here. Not for two threads at a time. */
#pragma once

#include <stdbool.h>

/* Runs work(user); false where it met memory whose file is gone and was left there: it must hold nothing while it reads
 * a ring that it would have to give back. */
bool fl_ring_guard(void (*work)(void *user), void *user);
