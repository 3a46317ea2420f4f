package hostile

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"memtrace/internal/guest"
)

// Programs with more rights than their user: the loader ignores LD_PRELOAD, so they run as without it, nothing is
// recorded, and `memtrace run` reports why.
func TestPrivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to give a program rights")
	}
	unprivileged, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(unprivileged.Uid)
	// The library path is left out, too, and the checkout may be closed to others.
	dir := open(t)
	for name, from := range map[string]string{"libcuda.so.1": filepath.Join(nullGPU(t), "libcuda.so.1"),
		"libmemtrace.so": library(t), "memtrace": command(t)} {
		copyFile(t, from, filepath.Join(dir, name), 0o755)
	}
	program := filepath.Join(dir, "rights")
	built := guest.CompileIn(t, t.TempDir(), "rights", []string{`#include <stdio.h>
#include <sys/auxv.h>
#include "cuda.h"
int main(void) {
  uint64_t p;
  void *context;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&p, 1000)) return 1;
  printf("secure %lu\n", getauxval(AT_SECURE));
  return 0;
}
`}, "-I"+filepath.Join(guest.Root(), "testdata/guest"), filepath.Join(nullGPU(t), "libcuda.so.1"), "-Wl,-rpath,"+dir)
	as := func(words ...string) (string, string) {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "NULLCUDA_SHARED=none", "LD_LIBRARY_PATH="+dir, "MEMTRACE_LIBRARY="+
			filepath.Join(dir, "libmemtrace.so"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s%s", words, err, out.String(), errs.String())
		}
		return out.String(), errs.String()
	}
	for _, c := range []struct {
		name, secure, says string
		give               func()
	}{
		{"none", "0", "", func() {}},
		{"setuid", "1", "is setuid or setgid", func() { os.Chmod(program, 0o755|os.ModeSetuid) }},
		{"setcap", "1", "has file capabilities", func() {
			setcap, err := exec.LookPath("setcap")
			if err != nil {
				t.Skip("setcap is not installed")
			}
			if text, err := exec.Command(setcap, "cap_net_raw+ep", program).CombinedOutput(); err != nil {
				t.Skipf("setcap: %v %s", err, text)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			os.Remove(program)
			copyFile(t, built, program, 0o755)
			c.give()
			if out, _ := as(program); out != "secure "+c.secure+"\n" {
				t.Skipf("this file system does not give rights: %s", out)
			}
			out, errs := as("env", "LD_PRELOAD="+filepath.Join(dir, "libmemtrace.so"), program)
			if out != "secure "+c.secure+"\n" || errs != "" {
				t.Errorf("preloaded it says %q and %q", out, errs)
			}
			_, errs = as(filepath.Join(dir, "memtrace"), "run", "--", program)
			if !strings.Contains(errs, c.says) {
				t.Errorf("memtrace run says %q, want %q", errs, c.says)
			}
			traces, _ := filepath.Glob(filepath.Join(dir, "memtrace.*"))
			if want := map[string]int{"0": 2, "1": 0}[c.secure]; len(traces) != want {
				t.Errorf("files %v, want %d", traces, want)
			}
			for _, path := range traces {
				os.Remove(path)
			}
		})
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, mode)
	}
	if err == nil {
		err = os.Chmod(to, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
