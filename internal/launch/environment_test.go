package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestApplyReplacesAndKeeps(t *testing.T) {
	g := Settings{Library: "/opt/lib/libmemtrace.so", RunDir: "/run/x", Output: "/out/%p.bin", SpoolMax: 1 << 20,
		Force: true}
	base := []string{"HOME=/home/u", "LD_PRELOAD=/usr/lib/a.so /old/libmemtrace.so:/usr/lib/b.so",
		"MEMTRACE_OUTPUT=first", "MEMTRACE_OUTPUT=second", "MEMTRACE_LOG=debug"}
	want := []string{"HOME=/home/u", "LD_PRELOAD=/opt/lib/libmemtrace.so:/usr/lib/a.so:/usr/lib/b.so",
		"MEMTRACE_FORCE=1", "MEMTRACE_LOG=debug",
		"MEMTRACE_OUTPUT=/out/%p.bin", "MEMTRACE_RUN_DIR=/run/x", "MEMTRACE_SPOOL_MAX=1048576"}
	before := slices.Clone(base)
	got := slices.Sorted(slices.Values(g.Apply(base)))
	if !slices.Equal(got, want) {
		t.Errorf("apply gave\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(base, before) {
		t.Errorf("apply changed its argument: %q", base)
	}
}

func TestOutputPattern(t *testing.T) {
	dir := t.TempDir()
	existing := filepath.Join(dir, "old.bin")
	if err := os.WriteFile(existing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		pattern string
		force   bool
		want    string // "" where an error is expected
		problem string
	}{
		{pattern: dir, want: filepath.Join(dir, DefaultOutput)},
		{pattern: filepath.Join(dir, "new") + "/", want: filepath.Join(dir, "new", DefaultOutput)},
		{pattern: dir + "/%h.%q{RANK}.%p%%.bin", want: dir + "/%h.%q{RANK}.%p%%.bin"},
		{pattern: existing, force: true, want: existing},
		{pattern: existing, problem: "use -f"},
		{pattern: "a%", problem: "followed by"},
		{pattern: "a%x", problem: "followed by"},
		{pattern: "a%q{}", problem: "followed by"},
		{pattern: "a%q{RANK", problem: "followed by"},
	}
	for _, c := range cases {
		got, err := OutputPattern(c.pattern, c.force)
		if got != c.want || (err != nil) != (c.problem != "") || err != nil &&
			!strings.Contains(err.Error(), c.problem) {
			t.Errorf("outputPattern(%q, %v) = %q, %v; want %q, an error with %q", c.pattern, c.force, got, err,
				c.want, c.problem)
		}
	}
}

func TestOutputPatternEscapesFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "100%p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	got, err := OutputPattern("out/%p.bin", false)
	want := filepath.Join(strings.ReplaceAll(dir, "%", "%%"), "out/%p.bin")
	if err != nil || got != want {
		t.Errorf("outputPattern = %q, %v; want %q", got, err, want)
	}
}
