package symbol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A line that allocates is for the kernel behind it, another one for the kernel before it; none is for a kernel of
// another function.
func TestKernels(t *testing.T) {
	const text = `# Topologically Sorted Source Nodes: [h], Original ATen: [aten.tanh]
def call(args):
    x, = args
    buf0 = empty_strided_cuda((4, ), (1, ), torch.float32)
    buf1 = empty_strided_cuda((8, ), (1, ), torch.float32)
    # Topologically Sorted Source Nodes: [h, g], Original ATen: [aten.sin, aten.mul]
    kernel_0.run(x, buf0, buf1)
    # Source Nodes: [y], Original ATen: [aten.convolution]
    buf2 = extern_kernels.convolution(buf0, buf1)
    buf3 = empty_strided_cuda((8, ), (1, ), torch.float32)
    # Source Nodes: [], Original ATen: [aten.a, prims.b, aten.c, aten.d, aten.e]
    kernel_1.run(buf3)
    return (buf3, )
def other():
    buf4 = empty_strided_cuda((8, ), (1, ), torch.float32)
`
	folder := t.TempDir()
	path := filepath.Join(folder, "q2", "c"+strings.Repeat("ab7", 17)+".py")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Resolver{}
	for line, want := range []string{"", "", "", "", "sin, mul", "sin, mul", "sin, mul", "sin, mul", "convolution",
		"convolution", "a, prims.b, c, d, ...", "a, prims.b, c, d, ...", "a, prims.b, c, d, ...",
		"a, prims.b, c, d, ...", "", "", "", ""} {
		if got := r.compiled(path, line); got != want {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
	const line = 7
	for name, r := range map[string]*Resolver{"no files": {options: Options{NoFiles: true}}, "inside of the program": {
		options: Options{careful: true}}} {
		if got := r.compiled(path, line); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, other := range []string{filepath.Join(folder, "q2", "call.py"), filepath.Join(folder, "gone", path)} {
		if got := r.compiled(other, line); got != "" {
			t.Errorf("%s: %q", other, got)
		}
	}
}
