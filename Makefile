# memtrace: `make demo` shows the tool at work, `make test` runs the tests; `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := all

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
CACHE := $(or $(MEMTRACE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memtrace)
STRIP ?= -s -w
# Further flags of Go's linker. A wheel has -buildid=: Go's own build id depends on the folder of the sources.
GO_LINK ?=
PYTHON ?= python3
GO ?= go
# go-nvml wraps the functions that NVML deprecates, too, and the compiler would name each of them.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations
# Tools and tests are built in one way, so that what they share is compiled once; with PGO=off so is the command.
export GOFLAGS += -trimpath -buildvcs=false -tags=netgo,osusergo
# What tells the compiler which functions read traces: scripts/pgo.sh.
PGO ?= $(CURDIR)/cmd/memtrace/reports.pgo
include cshim/cshim.mk

comma := ,
VERSION_FLAG := -X memtrace/internal/version.String=$(VERSION)
# What the Go runtime's C parts call of the C library when they give up and for memory, and what stands for it: cshim/process/goend.c, cshim/process/gomemory.c.
WRAP := $(addprefix -Wl$(comma)--wrap=,abort fprintf vfprintf fputc fwrite mmap munmap malloc free pthread_attr_init pthread_getattr_np)
# The linker script keeps the Go runtime asleep, the version script exports the hooks and nothing else. The linker runs in a folder of its own, so both have whole paths;
# a wheel's compiler has another word for the root (scripts/zig/zig-cc). The C half comes as one archive, which is taken whole: nothing in Go refers to it.
ROOT ?= $(CURDIR)
LIB_LINK := -linkmode=external -extldflags '-Wl,-T,$(ROOT)/interpose/lazy.ld -Wl,--version-script,$(ROOT)/cshim/exports.map -Wl,-z,now -Wl,--build-id=sha1 $(WRAP) \
	-Wl,--whole-archive $(ROOT)/$(CSHIM_OUT)/libcshim.a -Wl,--no-whole-archive -ldl -lpthread'
GO_SOURCES := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './build/*') $(wildcard cuda/nvml/*.c cuda/nvml/*.h internal/rules/rulefile/presets/*.toml internal/page/*.html internal/page/*.css internal/page/script/*.js) go.mod go.sum

.PHONY: all help dev dev-c lib cli nullcuda demo demo-guest stage pgo wheel packages test-wheel test test-all nightly test-go test-c test-aarch64 test-python e2e lint fuzz bench guard install uninstall clean generate check-generate check tools

##@ Everyday

all: lib cli ## build build/libmemtrace.so and build/memtrace

help: ## list the targets
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: all nullcuda ## after a change of Go code: build, vet, and the uncached tests of all packages but internal/e2e, hostile and browser; one to three minutes on 2 cores
	$(GO) vet -cgocall=false ./analyzer/... ./cmd/... ./interpose ./trace/...
	$(GO) test -skip 'CostGrows|OverflowHasBounds' $$($(GO) list ./... | grep -vE '/internal/(e2e|hostile|browser)$$')

dev-c: lib nullcuda ## after a change of C code: the C tests, the hooks, hostile programs, instructions of the hook path; some six minutes on 2 cores
	scripts/test-c.sh
	$(GO) test ./internal/hooklist ./internal/hostile
	$(MAKE) guard

##@ Build

lib: $(BUILD)/libmemtrace.so ## the library to preload
cli: $(BUILD)/memtrace ## the command

# The collector that is new in Go 1.26 writes to address 0 where it gets no memory (newSpanSPMC in runtime/mgcmark_greenteagc.go); the other one says so and ends, after which
# the recording goes on.
$(BUILD)/libmemtrace.so: $(CSHIM_OUT)/libcshim.a cshim/exports.map interpose/lazy.ld $(GO_SOURCES)
	@mkdir -p $(BUILD) && rm -f $@.new
	CGO_ENABLED=1 GOEXPERIMENT=nogreenteagc $(GO) build -buildmode=c-shared -ldflags "$(STRIP) $(GO_LINK) $(VERSION_FLAG) $(LIB_LINK)" -o $@.new ./interpose
	GOARCH= CC= $(GO) run ./tools/patchruntime $@.new
	@mv $@.new $@ && rm -f $(BUILD)/libmemtrace.so.h

$(BUILD)/memtrace: $(GO_SOURCES) $(filter-out off,$(PGO)) $(BUILD)/pgo-$(notdir $(PGO))
	CGO_ENABLED=1 $(GO) build '-pgo=$(PGO)' -ldflags "-s -w $(GO_LINK) $(VERSION_FLAG)" -o $@ ./cmd/memtrace

# One file says how the command was built last.
$(BUILD)/pgo-$(notdir $(PGO)):
	@mkdir -p $(BUILD) && rm -f $(BUILD)/pgo-* && touch $@

include testdata/nullcuda/driver.mk
include testdata/nullcuda/cudart.mk
include testdata/nullcuda/redirect.mk
##@ Package

# The debug information names the program's lines; where it was compiled is nobody's business.
demo_programs := train libtrain.so train.c train.py
demo_cflags := -std=gnu11 -O1 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC -fno-omit-frame-pointer -ffile-prefix-map=$(CURDIR)=. -Icshim/include
demo-guest: $(addprefix $(BUILD)/demo/,$(demo_programs)) ## the programs that `memtrace demo` records
$(BUILD)/demo/%: demo/%
	@mkdir -p $(@D)
	@cp $< $@
$(BUILD)/demo/libtrain.so: demo/train.c cshim/include/memtrace.h $(NULLCUDA_OUT)/$(cudart_node_12)
	@mkdir -p $(@D)
	$(CC) $(demo_cflags) -c $< -o $(BUILD)/demo/train.o
	$(CC) -shared -Wl,-soname,libtrain.so $(BUILD)/demo/train.o -o $@ -L$(NULLCUDA_OUT) -l:$(cudart_node_12) -Wl,-rpath,'$$ORIGIN/../nullgpu'
	@rm $(BUILD)/demo/train.o
$(BUILD)/demo/train: demo/main.c $(BUILD)/demo/libtrain.so
	$(CC) -O1 $< -o $@ -L$(BUILD)/demo -l:libtrain.so -rdynamic -Wl,-S -Wl,-rpath,'$$ORIGIN' -Wl,-rpath-link,$(NULLCUDA_OUT)

# What `memtrace` needs at run time, as its files lie in a wheel: the command and what it looks for beside itself.
STAGE ?= $(BUILD)/stage
stage_nullgpu := $(addprefix $(NULLCUDA_OUT)/,libcuda.so.1 libnvidia-ml.so.1 redirect.so $(foreach m,$(cudart_majors),$(cudart_node_$(m)))) $(redirect_libraries)
stage: all demo-guest $(stage_nullgpu) ## the files of a wheel beside the Python package, in STAGE
	rm -rf $(STAGE)
	install -D -t $(STAGE) -m 755 $(BUILD)/memtrace $(BUILD)/libmemtrace.so
	install -D -t $(STAGE)/nullgpu -m 755 $(stage_nullgpu)
	install -D -t $(STAGE)/demo -m 755 $(addprefix $(BUILD)/demo/,$(filter-out %.c %.py,$(demo_programs)))
	install -D -t $(STAGE)/demo -m 644 $(addprefix $(BUILD)/demo/,$(filter %.c %.py,$(demo_programs)))
	install -D -t $(STAGE)/include -m 644 cshim/include/memtrace.h

pgo: lib ## the profile by which the compiler lays out the command, from a run of PyTorch; for after large changes of the replay
	scripts/pgo.sh

wheel: ## wheels for x86-64 and aarch64, any glibc from 2.17 on, any Python, in dist/
	scripts/wheel.sh

packages: wheel ## .deb and .rpm of the wheels' files, in dist/
	scripts/packages.sh

test-wheel: wheel packages ## what a wheel must be: its platform, the same bytes twice, its bill of materials, and at work in fresh environments
	scripts/test-wheel.sh

##@ Test

nullcuda: nullcuda-driver nullcuda-nvml nullcuda-runtime nullcuda-redirect ## the CUDA without a GPU that the tests run on

demo: all ## train a small model under the library, on a GPU if there is one, and print the report
	scripts/demo.sh

test: ## everything that runs with one PyTorch: Go, C, Python, the core of the end-to-end tests; minutes
	scripts/test.sh core

test-all: ## adds two more versions of PyTorch, MXNet, a browser, wheels, 64-bit Arm, the documents' examples
	scripts/test.sh all

nightly: ## adds other frameworks and interpreters, and the long forms; for hours
	scripts/test.sh nightly

test-go: all nullcuda ## Go tests that need no framework
	scripts/test.sh core go race hostile

test-c: ## C tests of the library and of the null GPU, plain and with sanitizers
	scripts/test-c.sh

test-aarch64: ## a cross-built library for aarch64 records a C program under qemu-user
	GOARCH=arm64 CC=aarch64-linux-gnu-gcc $(MAKE) BUILD=build/aarch64 build/aarch64/libmemtrace.so
	$(MAKE) CC=aarch64-linux-gnu-gcc NULLCUDA_OUT=build/aarch64/lib nullcuda_obj=build/aarch64/obj nullcuda-driver nullcuda-nvml
	$(GO) test -count=1 -tags aarch64,netgo,osusergo -run Aarch64 ./internal/hostile

test-python: ## tests of the Python package
	scripts/test-python.sh

e2e: ## end-to-end tests of `make test-all`: real PyTorch and MXNet on the null GPU
	scripts/test.sh all e2e

lint: ## gofmt, vet, staticcheck, C and shell style
	scripts/lint.sh

fuzz: ## every fuzz target for FUZZTIME (60s)
	scripts/fuzz.sh $(or $(FUZZTIME),60s)

bench: all nullcuda ## overhead and speed, as ratios against a plain run
	scripts/bench.sh

guard: all nullcuda ## instructions of the hook path under callgrind, against what was accepted last
	scripts/callgrind-guard.sh

generate: ## rebuild generated files
	$(GO) generate ./...

check-generate: ## fail if a generated file is stale
	scripts/check-generate.sh

check: lint check-generate test-all ## what CI runs

##@ Install

install: all ## install under PREFIX (/usr/local): library, command, header, Python module, man pages, completions
	install -D -m 755 $(BUILD)/libmemtrace.so $(DESTDIR)$(PREFIX)/lib/libmemtrace.so
	install -D -m 755 $(BUILD)/memtrace $(DESTDIR)$(PREFIX)/bin/memtrace
	install -D -m 644 cshim/include/memtrace.h $(DESTDIR)$(PREFIX)/include/memtrace.h
	install -d $(DESTDIR)$(PREFIX)/share/memtrace/python/memtrace
	install -m 644 python/memtrace/*.py python/memtrace/py.typed $(DESTDIR)$(PREFIX)/share/memtrace/python/memtrace
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(BUILD)/memtrace man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(BUILD)/memtrace completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/memtrace
	$(BUILD)/memtrace completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_memtrace
	$(BUILD)/memtrace completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/memtrace.fish

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/lib/libmemtrace.so $(DESTDIR)$(PREFIX)/bin/memtrace $(DESTDIR)$(PREFIX)/include/memtrace.h
	rm -rf $(DESTDIR)$(PREFIX)/share/memtrace $(DESTDIR)$(PREFIX)/share/man/man1/memtrace*.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/memtrace $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_memtrace $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/memtrace.fish

clean: ## remove what was built (not the caches outside the tree)
	rm -rf $(BUILD)
