package hostile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/spool"
	"memtrace/trace"
)

// A child whose driver calls succeed has a whole trace of its own, from its first allocation on and with the stack of
// that; one whose calls are refused, as CUDA refuses them in every child of a process that uses it, has none. Each of
// two hundred children made two files and a spool of megabytes, which took fourteen times as long as the forks
// themselves.
func TestForkedChildren(t *testing.T) {
	t.Parallel()
	const children, each = 20, 10
	for _, c := range []struct {
		name    string
		refused bool
	}{{"granted", false}, {"refused", true}} {
		t.Run(c.name, func(t *testing.T) {
			cmd, path := stormGuest(t, "forkstorm", nil, strconv.Itoa(children), strconv.Itoa(each))
			dir := filepath.Dir(path)
			cmd.Env = append(cmd.Env, "MEMTRACE_OUTPUT="+filepath.Join(dir, "%p.bin"))
			want := children * each
			if c.refused {
				cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+nullGPU(t))
				want = 0
			}
			out, err := cmd.Output()
			if granted, _ := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || granted != want {
				t.Fatalf("%q: %v", out, err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, entry := range entries {
				name := filepath.Join(dir, entry.Name())
				if strings.HasSuffix(name, ".spool") {
					continue
				}
				r := read(t, name)
				if r.allocations(1000) != each {
					if r.lost != 0 || r.ended != spool.EndedClean || r.allocations(1000) < 100 {
						t.Errorf("the parent's trace ended %s, %d lost, %d allocations", r.ended, r.lost,
							r.allocations(1000))
					}
					continue
				}
				found++
				frees := r.count(func(e trace.Event) bool { return e.Kind == trace.EventFree })
				bare := r.count(func(e trace.Event) bool { return e.Kind == trace.EventAlloc && e.Stack == 0 })
				if frees != each || bare != 0 || r.lost != 0 || r.ended != spool.EndedClean {
					t.Errorf("a child's trace has %d frees of %d, %d allocations without a stack, %d lost, ended %s",
						frees, each, bare, r.lost, r.ended)
				}
			}
			if found != want/each {
				t.Errorf("%d traces of children, want %d", found, want/each)
			}
		})
	}
}
