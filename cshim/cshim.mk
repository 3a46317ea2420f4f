# The C half of the library as one archive: each folder below cshim/ with C in it is a room (docs/design.md), compiled file by file, with the same rules and flags for
# the library, for the tests and for sanitizers. Runs alone from the root of the repository or included by the top Makefile.
#   make -f cshim/cshim.mk CSHIM_OUT=build/x CSHIM_EXTRA="-O1 -fsanitize=thread" cshim
BUILD ?= build
GO ?= go
CSHIM_OUT ?= $(BUILD)/cshim
# Further flags, behind the others.
CSHIM_EXTRA ?=

cshim_rooms := elf base unwind spool python record attach hooks device nvtx allocator adapters process
cshim_source := $(foreach room,$(cshim_rooms),$(wildcard cshim/$(room)/*.c))
cshim_objects := $(patsubst cshim/%.c,$(CSHIM_OUT)/%.o,$(cshim_source)) $(CSHIM_OUT)/adapters/scripts.o
cshim_scripts := $(wildcard cshim/adapters/*.py cshim/adapters/*/*.py) $(addprefix python/memtrace/,_paths.py _freed.py _ways.py _referrers.py)
CSHIM_FLAGS := -std=gnu11 -O2 -g -fPIC -pthread -Wall -Wextra -Werror -fvisibility=hidden -fno-plt -ftls-model=initial-exec -ffile-prefix-map=$(CURDIR)=. -Icshim

.PHONY: cshim
cshim: $(CSHIM_OUT)/libcshim.a

# Made anew: an archive keeps members whose sources are gone.
$(CSHIM_OUT)/libcshim.a: $(cshim_objects)
	@rm -f $@
	$(AR) rcsD $@ $(cshim_objects)

# The list of objects and their flags: when either changes, what hangs on it is made again.
cshim_recipe := $(CC) $(CSHIM_FLAGS) $(CSHIM_EXTRA)
$(CSHIM_OUT)/recipe: FORCE
	@mkdir -p $(@D)
	@echo '$(cshim_recipe)' | cmp -s - $@ || echo '$(cshim_recipe)' > $@
$(CSHIM_OUT)/members: FORCE
	@mkdir -p $(@D)
	@echo '$(cshim_objects)' | cmp -s - $@ || echo '$(cshim_objects)' > $@
$(CSHIM_OUT)/libcshim.a: $(CSHIM_OUT)/members
.PHONY: FORCE

$(CSHIM_OUT)/%.o: cshim/%.c $(CSHIM_OUT)/recipe
	@mkdir -p $(@D)
	$(CC) $(CSHIM_FLAGS) $(CSHIM_EXTRA) -MMD -MP -c $< -o $@

# The scripts that run in the interpreter, as C. The generator runs here, whatever the machine that the library is for.
$(CSHIM_OUT)/adapters/scripts.c: $(cshim_scripts) tools/genadapters/main.go
	@mkdir -p $(@D)
	GOOS= GOARCH= CC= CGO_ENABLED=0 $(GO) run ./tools/genadapters -scripts cshim/adapters -out $@
$(CSHIM_OUT)/adapters/scripts.o: $(CSHIM_OUT)/adapters/scripts.c $(CSHIM_OUT)/recipe
	$(CC) $(CSHIM_FLAGS) $(CSHIM_EXTRA) -MMD -MP -c $< -o $@

-include $(cshim_objects:.o=.d)
