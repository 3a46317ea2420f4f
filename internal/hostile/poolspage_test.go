package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// runtimeHeader declares what the page's programs use of CUDA's.
const runtimeHeader = `#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
int cudaMalloc(void **out, size_t size);
int cudaFree(void *address);
#ifdef __cplusplus
}
#endif
`

var pageProgram = regexp.MustCompile("(?s)```(c|cpp|go|rust)\n(.*?)```")

// TestPoolsPage: the programs of docs/pools.md compile, run with and without the library, and each is reported as a
// pool that allocated twelve blocks of 1 MiB of 16 MiB that it took.
func TestPoolsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(guest.Root(), "docs", "pools.md"))
	if err != nil {
		t.Fatal(err)
	}
	programs := pageProgram.FindAllStringSubmatch(string(page), -1)
	if len(programs) != 4 {
		t.Fatalf("%d programs on the page", len(programs))
	}
	for _, found := range programs {
		language, text := found[1], found[2]
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			r := run{program: compilePage(t, language, text), preload: []string{""}}
			if plain := r.plainly(t); plain.exit != 0 {
				t.Fatalf("without the library: exit %d\n%s", plain.exit, plain.stderr)
			}
			got := r.do(t)
			if got.exit != 0 {
				t.Fatalf("exit %d\n%s", got.exit, got.stderr)
			}
			var s report.Summary
			runJSON(t, &s, "report", "--json", got.traces(t)[0])
			if f := s.Framework; f.PeakBytes != 12<<20 || f.AllocCount != 12 || s.Driver.PeakBytes != 16<<20 ||
				s.Devices[0].ReservedBytesPeak != 16<<20 || s.Versions["pool"] != "arena" {
				t.Errorf("%+v of %+v, %v", f, s.Driver, s.Versions)
			}
		})
	}
}

// compilePage compiles a program of the page and returns its path.
func compilePage(t *testing.T, language, text string) string {
	t.Helper()
	tool := map[string]string{"c": "gcc", "cpp": "g++", "go": "go", "rust": "rustc"}[language]
	if language != "go" { // which runs this test
		guest.Tool(t, tool, "--version")
	}
	dir := open(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cuda_runtime_api.h", runtimeHeader)
	if err := os.Symlink(filepath.Join(nullGPU(t), "libcudart.so.13"), filepath.Join(dir, "libcudart.so")); err != nil {
		t.Fatal(err)
	}
	source, out := "main."+map[string]string{"c": "c", "cpp": "cc", "go": "go", "rust": "rs"}[language], "program"
	write(source, text)
	header := "-I" + filepath.Join(guest.Root(), "cshim/include")
	args := map[string][]string{
		"c": {"-std=c99", "-g", "-Wall", "-Wextra", "-Werror", "-I.", header, source, "-o", out, "-L.", "-lcudart"},
		"cpp": {"-std=c++17", "-g", "-Wall", "-Wextra", "-Werror", "-I.", header, source, "-o", out, "-L.",
			"-lcudart"},
		"go":   {"build", "-o", out, source},
		"rust": {"--edition=2021", "-g", "-L.", "-lcudart", source, "-o", out},
	}[language]
	build := exec.Command(tool, args...)
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-g -I"+dir+" "+header, "CGO_LDFLAGS=-L"+dir)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", tool, args, err, said)
	}
	return filepath.Join(dir, out)
}
