#ifndef MT_NVML_SYMBOLS_H
#define MT_NVML_SYMBOLS_H

/* Lets every stand-in lead to the function of that name in a library that dlopen returned; to one that reports
 * NVML_ERROR_FUNCTION_NOT_FOUND where it has none, or for NULL. */
void mt_nvml_symbols_bind(void *library);

#endif
