//go:build cgo && linux && (amd64 || arm64)

package nvml

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// go-nvml leaves 428 names undefined. Whatever of them is not in symbols_list.h keeps the command from starting under
// LD_BIND_NOW=1, and ends it when it is called on a driver that lacks it.
func TestNoSymbolIsLeftOpen(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	imported, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	if len(imported) == 0 {
		t.Fatal("the test imports nothing: this looks at the wrong file")
	}
	for _, symbol := range imported {
		if strings.HasPrefix(symbol.Name, "nvml") {
			t.Errorf("%s is undefined: add it to symbols_list.h", symbol.Name)
		}
	}
	exported, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, symbol := range exported {
		if strings.HasPrefix(symbol.Name, "nvml") {
			t.Errorf("%s is exported: the vendor's library would call ours instead of its own", symbol.Name)
		}
	}
}

// openVariable makes this test binary print what Open finds, in an environment that the dynamic linker reads at its
// start.
const openVariable = "MEMTRACE_TEST_NVML_OPEN"

func TestMain(m *testing.M) {
	if os.Getenv(openVariable) == "" {
		os.Exit(m.Run())
	}
	l, err := Open()
	if err != nil {
		os.Stdout.WriteString("error: " + err.Error())
		if errors.Is(err, ErrNoLibrary) {
			os.Stdout.WriteString(" [ErrNoLibrary]")
		}
		os.Exit(0)
	}
	s, err := l.Read()
	if err = errors.Join(err, l.Close()); err != nil {
		os.Stdout.WriteString("error: " + err.Error())
		os.Exit(0)
	}
	for _, d := range s.Devices {
		os.Stdout.WriteString(d.Name + " " + d.UUID + "\n")
	}
	os.Exit(0)
}

func open(t *testing.T, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), openVariable+"=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// library builds a library of NVML's name and returns the setting that puts it first in the search.
func library(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(dir, libraryName), "-x", "c", "-")
	build.Stdin = strings.NewReader(source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("a C compiler is needed: %v\n%s", err, out)
	}
	return "LD_LIBRARY_PATH=" + dir
}

// A library that is there but has none of the functions, as no driver has all: each is "not found", and nothing jumps
// to address 0.
func TestOpenWithoutFunctions(t *testing.T) {
	env := library(t, "int nothing;")
	for _, more := range []string{"LD_BIND_NOW=", "LD_BIND_NOW=1"} {
		if out := open(t, env, more); !strings.Contains(out, "error: start libnvidia-ml.so.1: ") {
			t.Errorf("%s: %s", more, out)
		}
	}
}

const smallLibrary = `
#include <string.h>
int nvmlInit(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = d; return i ? 2 : 0; }
int nvmlDeviceGetName(void *d, char *name, unsigned n) { strncpy(name, "Small", n); return 0; }
int nvmlDeviceGetUUID(void *d, char *name, unsigned n) { strncpy(name, "GPU-5", n); return 0; }
`

// A library of a few functions is used as far as it goes, with lazy and with immediate binding.
func TestOpenOldLibrary(t *testing.T) {
	env := library(t, smallLibrary)
	for _, more := range []string{"LD_BIND_NOW=", "LD_BIND_NOW=1"} {
		if out := open(t, env, more); out != "Small GPU-5\n" {
			t.Errorf("%s: %q", more, out)
		}
	}
}

// A file of that name that cannot be loaded counts as none, as does none at all.
func TestOpenWithoutLibrary(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, libraryName), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := open(t, "LD_LIBRARY_PATH="+dir); out != "error: "+ErrNoLibrary.Error()+" [ErrNoLibrary]" {
		t.Error(out)
	}
}
