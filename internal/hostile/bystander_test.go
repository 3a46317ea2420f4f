package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Programs without CUDA are most of what a preloaded library meets.
func TestBystanders(t *testing.T) {
	t.Parallel()
	source := "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n"
	for name, script := range map[string]string{
		"status":  `grep -E 'Threads|SigCgt|SigIgn|SigBlk' /proc/self/status; ls /proc/self/fd | wc -l`,
		"shell":   `for i in 1 2 3; do (exit $i); echo $?; done; trap 'echo caught' USR1; kill -USR1 $$; exit 9`,
		"gcc":     `printf '%s' "$SOURCE" > p.c && gcc -O2 -o p p.c && ./p && gcc -c missing.c`,
		"git":     `git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m --date='2020-01-01T00:00:00Z' && git status && git log --format=%s && git show nothing`,
		"python":  `python3 -c pass && python3 -c 'import os,sys; print(len(os.listdir("/proc/self/fd"))); sys.exit(5)'`,
		"threads": `python3 -c 'import threading,subprocess; [threading.Thread(target=lambda: subprocess.run(["true"])).start() for _ in range(10)]'`,
		"ls":      `ls /nothing /; echo $?`,
		"pipe":    `yes | head -1; bash -c 'yes | head -1 >/dev/null; echo ${PIPESTATUS[0]}'`,
		"killed":  `kill -9 $$`,
	} {
		t.Run(name, func(t *testing.T) {
			r := run{program: "/bin/sh", args: []string{"-c", script}, env: []string{"SOURCE=" + source}}
			got := r.both(t, "")
			filepath.Walk(got.dir, func(path string, _ os.FileInfo, _ error) error {
				if strings.Contains(path, "memtrace") {
					t.Errorf("left behind: %s", path)
				}
				return nil
			})
		})
	}
}

// Python's own fault handler keeps its text and its exit status after CUDA was used.
func TestFaultHandler(t *testing.T) {
	t.Parallel()
	script := `import ctypes, faulthandler, glob, os, sys, time
faulthandler.enable()
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
for _ in range(50):
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4321)) == 0
while "memtrace" in os.getenv("LD_PRELOAD", "") and not any(os.path.getsize(f) for f in glob.glob("memtrace.*.bin")): time.sleep(0.001)
print("before", flush=True)
ctypes.string_at(8)
`
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	got := run{program: python, args: []string{"-c", script}}.both(t, "")
	if got.exit != 128+11 || !strings.Contains(got.stderr, "Segmentation fault") {
		t.Errorf("exit %d, stderr\n%s", got.exit, got.stderr)
	}
	if r := read(t, got.traces(t)[0]); r.allocations(4321) != 50 {
		t.Errorf("%d of 50 allocations through ctypes are in the trace", r.allocations(4321))
	}
}
