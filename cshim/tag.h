/* A thread's tags survive what its recording state does not: the start of recording and a fork. */
#pragma once

#include "guest.h"

/* Gives ids in the present spool to the tags that the thread already holds. */
void mt_tag_rename(struct mt_thread *self);
