/* SPDX-License-Identifier: Apache-2.0 */
/* The program around train.c, which is a library so that its debug information comes without that of the C library's
 * start, and with it the folders of a compiler. */
int train(int argc, char **argv);

int main(int argc, char **argv) { return train(argc, argv); }
