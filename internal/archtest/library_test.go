package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/textform"
)

// TestLibraryFromOutside: another module builds against the public packages, by the replace line that docs/library.md
// shows, and reads a trace.
func TestLibraryFromOutside(t *testing.T) {
	if os.Getenv("TIER") == "core" {
		t.Skip("compiles all packages once more: make test-all")
	}
	dir, from := t.TempDir(), filepath.Join(root(t), "testdata", "library")
	for name, path := range map[string]string{"main.go": filepath.Join(from, "main.go"),
		"go.mod": filepath.Join(from, "go.mod"), "go.sum": filepath.Join(root(t), "go.sum")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte("memtrace => ../.."), []byte("memtrace => "+root(t)), 1)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "library", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(`trace version=1
thread id=1 tid=4711 name="main"
alloc seq=1 time=1 thread=1 level=driver api=cuMemAlloc_v2 mem=device addr=0x1000000 size=4096
flush watermark=2
end reason="exit" events=1 time=2
`)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "t.bin")
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(dir, "library"), path).CombinedOutput()
	if want := "blocks (untagged) 4096\n1 blocks are live at the end\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s, want %s", err, out, want)
	}
}
