//go:build e2e

package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestCompiled: what a compiled model allocates is told by the operators of the kernel that it is for, and generated
// code is not the program's own, wherever the compiler's cache lies. All of it was one line, of the model's forward
// function.
func TestCompiled(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"compiled.py"}}
	p.env = []string{"PYTHONPATH=" + p.packageFolder(t, "triton.txt"), "TRITON_LIBCUDA_PATH=" +
		filepath.Join(venv(t, p.framework, p.python), "nullcuda"), "TRITON_CACHE_DIR=DIR/triton",
		"TORCHINDUCTOR_CACHE_DIR=DIR/kernels"}
	r := p.record(t)
	want, err := strconv.ParseUint(strings.TrimSpace(r.stdout), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	d := value(jsonReport(t, r.trace).Division)
	held := map[string]uint64{}
	for _, row := range d.Rows {
		held[row.Key] = row.Bytes
	}
	equal(t, "sin of gelu", held["compiled: gelu, sin"], want)
	if addmm := held["compiled: addmm"]; addmm < want {
		t.Errorf("addmm holds %d: %v", addmm, held)
	}
	for _, says := range []string{"Kernels of " + d.Site, "compiled: gelu, sin "} {
		if text := memtrace(t, "report", r.trace); !strings.Contains(text, says) {
			t.Errorf("not said: %s\n%s", says, text)
		}
	}
	if !strings.HasSuffix(d.Site, " Net.forward") || !d.User {
		t.Errorf("it is divided by %s", d.Site)
	}
}
