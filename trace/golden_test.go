package trace

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/traces")

// archive is a txtar file: a comment, then named parts.
type archive struct {
	comment string
	names   []string
	parts   map[string]string
}

func parseArchive(text string) archive {
	a := archive{parts: make(map[string]string)}
	name := ""
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSuffix(line, "\n"); strings.HasPrefix(trimmed, "-- ") &&
			strings.HasSuffix(trimmed, " --") {
			name = trimmed[3 : len(trimmed)-3]
			a.names = append(a.names, name)
			a.parts[name] = ""
		} else if name == "" {
			a.comment += line
		} else {
			a.parts[name] += line
		}
	}
	return a
}

func (a *archive) set(name, text string) {
	if _, known := a.parts[name]; !known {
		a.names = append(a.names, name)
	}
	a.parts[name] = text
}

func (a *archive) format() string {
	var b strings.Builder
	b.WriteString(a.comment)
	for _, name := range a.names {
		fmt.Fprintf(&b, "-- %s --\n%s", name, a.parts[name])
	}
	return b.String()
}

// TestGoldenTraces encodes the text of each file in testdata/traces, damages the trace as in the part "damage" ("cut N"
// bytes off the end, "flip N": the lowest bit of byte N), and compares the reader's health with the part "health", and
// its dump with the part "dump" or, without one, with the text.
func TestGoldenTraces(t *testing.T) {
	paths, err := filepath.Glob("../testdata/traces/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden traces: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			a := parseArchive(string(text))
			file := damage(t, encode(t, a.parts["trace"]), a.parts["damage"])
			_, r := readAll(t, file)
			health, dumped := healthText(r), dump(t, file)
			if *update {
				a.set("health", health)
				if _, has := a.parts["dump"]; has || dumped != a.parts["trace"] {
					a.set("dump", dumped)
				}
				if err := os.WriteFile(path, []byte(a.format()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if health != a.parts["health"] {
				t.Errorf("health is\n%swant\n%s", health, a.parts["health"])
			}
			want, has := a.parts["dump"]
			if !has {
				want = a.parts["trace"]
			}
			if dumped != want {
				t.Errorf("dump is\n%swant\n%s", dumped, want)
			}
		})
	}
}

func damage(t *testing.T, file []byte, how string) []byte {
	t.Helper()
	if how == "" {
		return file
	}
	var verb string
	var n int
	if _, err := fmt.Sscanf(how, "%s %d", &verb, &n); err != nil || n < 0 || n >= len(file) {
		t.Fatalf("damage %q: want \"cut N\" or \"flip N\" within %d bytes", how, len(file))
	}
	switch verb {
	case "cut":
		return file[:len(file)-n]
	case "flip":
		file[n] ^= 1
		return file
	}
	t.Fatalf("damage %q: unknown verb", how)
	return nil
}

// healthText leaves out byte counts, which depend on how well sections compress.
func healthText(r *Reader) string {
	h := r.Health()
	records, rings, dict := r.Lost()
	_, clean := r.End()
	truncated := "no"
	if h.Truncated {
		truncated = h.Reason
	}
	return fmt.Sprintf(
		"clean %v\ntruncated: %s\nsections %d, blocks %d, events %d, watermark %d\nlate %d, gaps %d, highest %d\nlost records %d, rings %d, dictionary entries %d\n",
		clean, truncated, h.Sections, h.Blocks, h.Events, r.Watermark(), h.LateEvents, h.Gaps, h.MaxSeq, records,
		rings, dict)
}
