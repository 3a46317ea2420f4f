# The null CUDA driver and NVML: libraries and their tests. Runs alone from the
# root of the repository or included by the top Makefile.
BUILD ?= build
NULLCUDA_OUT ?= $(BUILD)/nullcuda/lib

nullcuda_dir := testdata/nullcuda
nullcuda_obj := $(BUILD)/nullcuda/obj
nullcuda_test := $(BUILD)/nullcuda/test
nullcuda_cflags := -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC -pthread
nullcuda_sanitize := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
nullcuda_shared_src := $(wildcard $(nullcuda_dir)/shared/*.c)
nullcuda_driver_src := $(wildcard $(nullcuda_dir)/driver/*.c) $(nullcuda_shared_src)
nullcuda_nvml_src := $(wildcard $(nullcuda_dir)/nvml/*.c) $(nullcuda_shared_src)
nullcuda_headers := $(wildcard $(nullcuda_dir)/driver/*.h $(nullcuda_dir)/driver/*.def $(nullcuda_dir)/shared/*.h \
	$(nullcuda_dir)/nvml/*.h $(nullcuda_dir)/nvml/*.def $(nullcuda_dir)/test/*.h)
nullcuda_driver_test_src := $(wildcard $(nullcuda_dir)/test/driver_*.c $(nullcuda_dir)/test/nvml_*.c)
nullcuda_driver_tests := $(notdir $(nullcuda_driver_test_src:.c=))

.PHONY: nullcuda-driver nullcuda-nvml test-nullcuda-driver
nullcuda-driver: $(NULLCUDA_OUT)/libcuda.so.1
nullcuda-nvml: $(NULLCUDA_OUT)/libnvidia-ml.so.1

nullcuda_objects = $(patsubst $(nullcuda_dir)/%.c,$(nullcuda_obj)/%.o,$(1))

$(nullcuda_obj)/%.o: $(nullcuda_dir)/%.c $(nullcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(nullcuda_cflags) -c $< -o $@

# Replaced in one step: a program may have the old one mapped.
$(NULLCUDA_OUT)/libcuda.so.1: $(call nullcuda_objects,$(nullcuda_driver_src))
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,defs -pthread $(LDFLAGS) -o $@.new $^
	mv $@.new $@
	ln -sf libcuda.so.1 $(@D)/libcuda.so

$(NULLCUDA_OUT)/libnvidia-ml.so.1: $(call nullcuda_objects,$(nullcuda_nvml_src))
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic -Wl,-z,defs -pthread $(LDFLAGS) -o $@.new $^
	mv $@.new $@

# Each test links the libraries it tests and finds them by rpath.
$(nullcuda_test)/plain/%: $(nullcuda_dir)/test/%.c $(nullcuda_headers) $(NULLCUDA_OUT)/libcuda.so.1 $(NULLCUDA_OUT)/libnvidia-ml.so.1
	@mkdir -p $(@D)
	$(CC) $(nullcuda_cflags) $< -o $@ $(abspath $(NULLCUDA_OUT))/libcuda.so.1 $(abspath $(NULLCUDA_OUT))/libnvidia-ml.so.1 \
		-Wl,-rpath,$(abspath $(NULLCUDA_OUT)) -ldl

# The same tests once more with everything under the sanitizers.
nullcuda_san_lib := $(nullcuda_test)/sanitized/lib
$(nullcuda_san_lib)/libcuda.so.1: $(nullcuda_driver_src) $(nullcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(nullcuda_cflags) $(nullcuda_sanitize) -O1 -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o $@ $(nullcuda_driver_src)
$(nullcuda_san_lib)/libnvidia-ml.so.1: $(nullcuda_nvml_src) $(nullcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(nullcuda_cflags) $(nullcuda_sanitize) -O1 -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic -o $@ $(nullcuda_nvml_src)
$(nullcuda_test)/sanitized/%: $(nullcuda_dir)/test/%.c $(nullcuda_headers) $(nullcuda_san_lib)/libcuda.so.1 $(nullcuda_san_lib)/libnvidia-ml.so.1
	@mkdir -p $(@D)
	$(CC) $(nullcuda_cflags) $(nullcuda_sanitize) $< -o $@ $(abspath $(nullcuda_san_lib))/libcuda.so.1 \
		$(abspath $(nullcuda_san_lib))/libnvidia-ml.so.1 -Wl,-rpath,$(abspath $(nullcuda_san_lib)) -ldl

test-nullcuda-driver: $(foreach s,$(if $(filter core,$(TIER)),,plain) sanitized,$(addprefix $(nullcuda_test)/$s/,$(nullcuda_driver_tests)))
	@for t in $^; do $$t || exit 1; done

# The layouts and versions against NVIDIA's headers, which are fetched into the
# shared cache for this test only.
nullcuda_cache := $(or $(MEMTRACE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memtrace)
nullcuda_headers_dir := $(nullcuda_cache)/nullcuda-headers-13.5.37
nullcuda_include := $(nullcuda_headers_dir)/nvidia/cu13/include

.PHONY: test-nullcuda-abi
test-nullcuda-abi: $(nullcuda_include)/cuda.h
	@mkdir -p $(nullcuda_test)/plain
	$(CC) $(nullcuda_cflags) -I$(nullcuda_include) $(nullcuda_dir)/test/abi_driver.c -o $(nullcuda_test)/plain/abi_driver
	@$(nullcuda_test)/plain/abi_driver
	@python3 $(nullcuda_dir)/test/abi_driver.py $(nullcuda_dir)/driver/entries.def $(nullcuda_include)/cudaTypedefs.h

# Made aside and renamed: two builds may run at once.
$(nullcuda_include)/cuda.h:
	@mkdir -p $(nullcuda_cache)
	set -e; new=$$(mktemp -d $(nullcuda_cache)/headers.XXXXXX); \
	python3 -m pip install -q --no-deps --target $$new nvidia-cuda-runtime==13.5.37; \
	mv -T $$new $(nullcuda_headers_dir) || rm -rf $$new
