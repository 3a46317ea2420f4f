# What makes the null GPU work for programs as they are installed: the loader's auditor, and the stand-ins for the vendor's
# other libraries. Runs alone from the root of the repository or included by the top Makefile.
BUILD ?= build
NULLCUDA_OUT ?= $(BUILD)/nullcuda/lib

redirect_dir := testdata/nullcuda/redirect
redirect_libraries := $(addprefix $(NULLCUDA_OUT)/,$(shell sed -n 's/^\(lib[^ ]*\) .*/\1/p' $(redirect_dir)/libraries.txt))

.PHONY: nullcuda-redirect
nullcuda-redirect: $(NULLCUDA_OUT)/redirect.so $(redirect_libraries)

$(NULLCUDA_OUT)/redirect.so: $(redirect_dir)/redirect.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC -shared -Wl,-z,defs $(LDFLAGS) -o $@.new $< -ldl
	mv $@.new $@

$(redirect_libraries) &: $(redirect_dir)/libraries.txt $(redirect_dir)/libraries.py testdata/nullcuda/stubs.py $(wildcard testdata/nullcuda/stubs/*)
	@mkdir -p $(NULLCUDA_OUT)
	LDFLAGS="$(LDFLAGS)" python3 $(redirect_dir)/libraries.py $(NULLCUDA_OUT) --compiler "$(CC)"
