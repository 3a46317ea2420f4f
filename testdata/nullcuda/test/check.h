// A test counts its checks, prints where one failed, and says the sum at the end.
#ifndef NULLCUDA_CHECK_H
#define NULLCUDA_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>

static int checks_passed, checks_failed;

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (condition) {                                                          \
			checks_passed++;                                                  \
		} else {                                                                  \
			checks_failed++;                                                  \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
		}                                                                         \
	} while (0)

// Compares numbers and shows both when they differ.
#define CHECK_EQ(actual, expected)                                                            \
	do {                                                                                  \
		long long actual_ = (long long)(actual), expected_ = (long long)(expected);   \
		if (actual_ == expected_) {                                                   \
			checks_passed++;                                                      \
		} else {                                                                      \
			checks_failed++;                                                      \
			fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, \
			        #actual, actual_, expected_);                                 \
		}                                                                             \
	} while (0)

#define CHECK_OK(call) CHECK_EQ(call, 0)

static inline int check_done(const char *name)
{
	printf("%s: %d passed, %d failed\n", name, checks_passed, checks_failed);
	return checks_failed != 0;
}

#endif
