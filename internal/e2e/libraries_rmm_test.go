//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"memtrace/cuda"
	"memtrace/internal/guest"
)

// RMM's packages link the vendor's runtime statically, which does not run on the null GPU. Up to 24.12 RMM consists of
// headers: a program that includes them links to a runtime of its own choice.
var rmmPackages = []string{"librmm-cu12==24.12.0", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-crt==13.5.37"}

// buildRMM compiles the program and returns its path.
func buildRMM(t *testing.T, dir string) string {
	t.Helper()
	needs(t, nightly, "RMM")
	headers, err := rmmHeaders()
	if err != nil {
		t.Fatalf("no headers of RMM: %v", err)
	}
	include, out := filepath.Join(headers, "librmm", "include"), filepath.Join(dir, "rmm_pools")
	args := []string{"-std=c++17", "-O1", "-g", "-w", "-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE",
		"-DFMT_HEADER_ONLY", "-DSPDLOG_FMT_EXTERNAL",
		"-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP"}
	for _, folder := range []string{include, include + "/rapids/libcudacxx", include + "/rapids", headers +
		"/nvidia/cuda_runtime/include", headers + "/nvidia/cu13/include"} {
		args = append(args, "-isystem", folder)
	}
	args = append(args, "-I", filepath.Join(guest.Root(), "cshim", "include"), filepath.Join(guest.Root(), "testdata",
		"train", "rmm_pools.cpp"), "-o", out,
		"-L", filepath.Join(guest.Root(), "build", "nullcuda", "lib"), "-l:libcudart.so.12", "-ldl", "-pthread")
	if text, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, text)
	}
	return out
}

// rmmHeaders installs the packages into the cache, once.
var rmmHeaders = sync.OnceValues(func() (string, error) {
	cache, err := exec.Command("python3", "-c",
		"import sys; sys.path.insert(0, sys.argv[1]); import venv as v; print(v.cache())",
		filepath.Join(guest.Root(), "testdata", "nullcuda")).Output()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(strings.TrimSpace(string(cache)), "rmm-24.12.0")
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	cmd := exec.Command("python3",
		append([]string{"-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--disable-pip-version-check",
			"--target", dir}, rmmPackages...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600)
})

// Whatever resource a C++ program takes its memory from, the trace has what RMM's own adaptor counted below it, to the
// byte, and every block is RMM's.
func TestRMM(t *testing.T) {
	t.Parallel()
	binary := buildRMM(t, t.TempDir())
	for resource, mem := range map[string]cuda.MemoryKind{"cuda": cuda.MemoryDevice, "async": cuda.MemoryAsync,
		"managed": cuda.MemoryManaged, "pool": cuda.MemoryDevice,
		"arena": cuda.MemoryDevice, "binning": cuda.MemoryDevice} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := &result{dir: dir, trace: filepath.Join(dir, "t.bin"), log: filepath.Join(dir, "driver.log"),
				stats: filepath.Join(dir, "stats.json")}
			cmd := exec.Command(binary, resource, "3", r.stats)
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(guest.Root(), "build", "nullcuda", "lib"),
				"NULLCUDA_SHARED=none", "NULLCUDA_LOG="+r.log,
				"LD_PRELOAD="+library(), "MEMTRACE_OUTPUT="+r.trace)
			if text, err := cmd.CombinedOutput(); err != nil || len(text) != 0 {
				t.Fatalf("%v\n%s", err, text)
			}
			compareAccounts(t, r)
			counters, live := r.counters(t)["0"], map[uint64]blockOf{}
			for _, blocks := range liveAt(t, r.trace, "stats") {
				for address, b := range blocks {
					live[address] = b
				}
			}
			equal(t, "what the resource has of the device", sum(live, mem), number(t, counters, "held"))
			if used := number(t, counters, "used"); used < 3*800_000 || used > sum(live, mem) {
				t.Errorf("the program uses %d bytes", used)
			}
			if mem != cuda.MemoryManaged {
				only(t, byLibraries(t, r.trace), "RMM")
			}
			if mem != cuda.MemoryManaged {
				rmmSites(t, r.trace, resource)
			}
		})
	}
}

// rmmSites: the sites are lines of the program, not of RMM's headers, which are part of its object file; of RMM the
// report keeps what the program called.
func rmmSites(t *testing.T, trace, resource string) {
	t.Helper()
	var column string // the line that fills a column, or that makes the pool
	switch resource {
	case "cuda", "async":
		column = fmt.Sprintf("train/rmm_pools.cpp:%d work", lineOf(t, "rmm_pools.cpp", "columns.emplace_back("))
	case "pool":
		column = fmt.Sprintf("train/rmm_pools.cpp:%d above", lineOf(t, "rmm_pools.cpp", `if (name == "pool")`))
	}
	found := column == ""
	for _, g := range jsonReport(t, trace, "--by", "site").Groups {
		for _, row := range g.Rows {
			found = found || row.Key == column
			if !strings.HasPrefix(row.Key, "train/rmm_pools.cpp:") {
				t.Errorf("%d bytes at %s", row.PeakBytes, row.Key)
			}
		}
	}
	if !found {
		t.Errorf("nothing at %s", column)
	}
	if text := memtrace(t, "report", "--by", "site", "--at", "mark:stats", trace); !strings.Contains(text, "  rmm::") {
		t.Errorf("no frame of RMM in\n%s", text)
	}
}
