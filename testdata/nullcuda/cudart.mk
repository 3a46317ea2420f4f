# The null CUDA runtime: libcudart for CUDA 11, 12 and 13 from one source, shared
# and static. Runs alone from the root of the repository or beside driver.mk.
#   nullcuda-runtime        the libraries, in $(NULLCUDA_OUT)
#   test-nullcuda-runtime   behaviour, ABI layouts and exports
#   test-nullcuda-frameworks  PyTorch, MXNet and CuPy on it (3 GB of downloads, once)
BUILD ?= build
NULLCUDA_OUT ?= $(BUILD)/nullcuda/lib

cudart_dir := testdata/nullcuda/runtime
cudart_obj := $(BUILD)/nullcuda/obj/runtime
cudart_test := $(BUILD)/nullcuda/test/runtime
cudart_majors := 11 12 13
cudart_node_11 := libcudart.so.11.0
cudart_node_12 := libcudart.so.12
cudart_node_13 := libcudart.so.13
cudart_cflags := -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC -pthread -I$(cudart_dir)
cudart_names := $(basename $(notdir $(wildcard $(cudart_dir)/*.c)))
# Compiled once more for the per-thread default stream (`_ptsz`, `_ptds`).
cudart_twins := forward entry_point memory_async copy copy_array fill launch
cudart_headers := $(wildcard $(cudart_dir)/*.h $(cudart_dir)/*.def) testdata/nullcuda/driver/abi.h
cudart_lists := $(addprefix $(cudart_dir)/,exports.py exports.txt placeholders.txt)

.PHONY: nullcuda-runtime test-nullcuda-runtime test-nullcuda-frameworks
nullcuda-runtime: $(foreach m,$(cudart_majors),$(NULLCUDA_OUT)/$(cudart_node_$(m)) $(NULLCUDA_OUT)/static$(m)/libcudart_static.a)

# $(1) major, $(2) shared or static, $(3) flags
define cudart_objects
$(cudart_obj)/$(1)/$(2)/%.o: $(cudart_dir)/%.c $(cudart_headers)
	@mkdir -p $$(@D)
	$$(CC) $(cudart_cflags) -DRT_MAJOR=$(1) $(3) -c $$< -o $$@.$$$$$$$$ && mv $$@.$$$$$$$$ $$@
$(cudart_obj)/$(1)/$(2)/%_thread.o: $(cudart_dir)/%.c $(cudart_headers)
	@mkdir -p $$(@D)
	$$(CC) $(cudart_cflags) -DRT_MAJOR=$(1) -DRT_THREAD_STREAM $(3) -c $$< -o $$@.$$$$$$$$ && mv $$@.$$$$$$$$ $$@
$(cudart_obj)/$(1)/$(2)/placeholders.o: $(cudart_obj)/$(1)/placeholders.c $(cudart_headers)
	@mkdir -p $$(@D)
	$$(CC) $(cudart_cflags) -DRT_MAJOR=$(1) $(3) -c $$< -o $$@.$$$$$$$$ && mv $$@.$$$$$$$$ $$@
cudart_objects_$(1)_$(2) := $(cudart_names:%=$(cudart_obj)/$(1)/$(2)/%.o) $(cudart_twins:%=$(cudart_obj)/$(1)/$(2)/%_thread.o)
endef

define cudart_library
$(call cudart_objects,$(1),shared,)
$(call cudart_objects,$(1),static,-DRT_STATIC)
$(cudart_obj)/$(1)/placeholders.c $(cudart_obj)/$(1)/exports.map &: $$(cudart_objects_$(1)_shared) $(cudart_lists)
	@python3 $(cudart_dir)/exports.py $(1) $(cudart_node_$(1)) $(cudart_obj)/$(1)/exports.map $(cudart_obj)/$(1)/placeholders.c \
		$$(cudart_objects_$(1)_shared)

# Everything appears in one step: a program may have the old library mapped, and
# another make may run beside this one.
$(NULLCUDA_OUT)/$(cudart_node_$(1)): $$(cudart_objects_$(1)_shared) $(cudart_obj)/$(1)/shared/placeholders.o $(cudart_obj)/$(1)/exports.map
	@mkdir -p $$(@D)
	$$(CC) -shared -Wl,-soname,$(cudart_node_$(1)) -Wl,-Bsymbolic -Wl,-z,defs -Wl,--version-script=$(cudart_obj)/$(1)/exports.map \
		-pthread $(LDFLAGS) -o $$@.$$$$$$$$ $$(filter %.o,$$^) -ldl && mv $$@.$$$$$$$$ $$@
$(NULLCUDA_OUT)/static$(1)/libcudart_static.a: $$(cudart_objects_$(1)_static) $(cudart_obj)/$(1)/static/placeholders.o
	@mkdir -p $$(@D)
	@$$(AR) rc $$@.$$$$$$$$ $$^ && mv $$@.$$$$$$$$ $$@
endef
$(foreach m,$(cudart_majors),$(eval $(call cudart_library,$(m))))

# Every behaviour test is built five times: against each shared library, as a
# shared object that holds the static one and is loaded by a plain program, and
# under the sanitizers. With TIER=core, against one shared library and under the
# sanitizers.
cudart_test_src := $(wildcard testdata/nullcuda/test/runtime_*.c)
cudart_tests := $(basename $(notdir $(cudart_test_src)))
cudart_core := $(filter core,$(TIER))
cudart_tested := $(if $(cudart_core),12,$(cudart_majors))
cudart_test_cflags := $(cudart_cflags) -Itestdata/nullcuda/test

define cudart_test_major
$(cudart_test)/$(1)/%: testdata/nullcuda/test/%.c $(wildcard testdata/nullcuda/test/*.h) $(cudart_headers) $(NULLCUDA_OUT)/$(cudart_node_$(1))
	@mkdir -p $$(@D)
	$$(CC) $(cudart_test_cflags) -DRT_MAJOR=$(1) $$< -o $$@ $$(abspath $(NULLCUDA_OUT))/$(cudart_node_$(1)) -Wl,-rpath,$$(abspath $(NULLCUDA_OUT)) -ldl
endef
$(foreach m,$(cudart_majors),$(eval $(call cudart_test_major,$(m))))

$(cudart_test)/static/%.so: testdata/nullcuda/test/%.c $(wildcard testdata/nullcuda/test/*.h) $(cudart_headers) $(NULLCUDA_OUT)/static12/libcudart_static.a
	@mkdir -p $(@D)
	$(CC) $(cudart_test_cflags) -DRT_MAJOR=12 -DTEST_IN_LIBRARY -shared $< -o $@ $(NULLCUDA_OUT)/static12/libcudart_static.a -Wl,-z,defs -pthread -ldl
$(cudart_test)/static/host: testdata/nullcuda/test/load_host.c
	@mkdir -p $(@D)
	$(CC) $(cudart_test_cflags) $< -o $@ -ldl

# Once more with the runtime compiled into the test, all under the sanitizers.
cudart_sanitize := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
$(eval $(call cudart_objects,12,sanitized,-DRT_STATIC -O1 $(cudart_sanitize)))
$(cudart_test)/sanitized/%: testdata/nullcuda/test/%.c $(wildcard testdata/nullcuda/test/*.h) $(cudart_objects_12_sanitized) $(cudart_obj)/12/sanitized/placeholders.o
	@mkdir -p $(@D)
	$(CC) $(cudart_test_cflags) $(cudart_sanitize) -DRT_MAJOR=12 $< -o $@ $(cudart_objects_12_sanitized) $(cudart_obj)/12/sanitized/placeholders.o -pthread -ldl

# The driver that the tests run on; driver.mk's own rule when both are included.
ifeq ($(nullcuda_driver_src),)
.PHONY: cudart-driver
cudart-driver:
	@$(MAKE) --no-print-directory -f testdata/nullcuda/driver.mk nullcuda-driver NULLCUDA_OUT=$(NULLCUDA_OUT)
else
.PHONY: cudart-driver
cudart-driver: nullcuda-driver
endif

test-nullcuda-runtime: nullcuda-runtime cudart-driver \
		$(foreach m,$(cudart_tested),$(addprefix $(cudart_test)/$(m)/,$(cudart_tests))) \
		$(if $(cudart_core),,$(cudart_tests:%=$(cudart_test)/static/%.so) $(cudart_test)/static/host) $(cudart_tests:%=$(cudart_test)/sanitized/%)
	@set -e; export LD_LIBRARY_PATH=$(abspath $(NULLCUDA_OUT)) NULLCUDA_SHARED=none NULLCUDA_DEVICES=2; \
	for t in $(cudart_tests); do \
		for m in $(cudart_tested); do $(cudart_test)/$$m/$$t; done; \
		$(if $(cudart_core),,$(cudart_test)/static/host $(abspath $(cudart_test))/static/$$t.so;) \
		$(cudart_test)/sanitized/$$t; \
	done
	python3 testdata/nullcuda/test/abi_runtime.py $(NULLCUDA_OUT)

test-nullcuda-frameworks:
	python3 testdata/nullcuda/test/frameworks.py
