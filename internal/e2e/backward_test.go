//go:build e2e

package e2e

import (
	"encoding/json"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// What the backward pass takes is tied to the operator whose backward runs, also where that is Python code; what a
// checkpoint computes once more in the middle of it is tied to the operators that run then.
func TestBackwardOperators(t *testing.T) {
	t.Parallel()
	for _, c := range []combination{{torch27, ""}, {torch215, ""}} {
		t.Run(c.framework, func(t *testing.T) {
			t.Parallel()
			r := program{framework: c.framework, python: c.python, args: []string{"backward.py"}}.record(t)
			var pieces [][3]any
			if err := json.Unmarshal([]byte(r.stdout), &pieces); err != nil || len(pieces) < 9 {
				t.Fatalf("%d pieces, %v: %s", len(pieces), err, r.stdout)
			}
			events, reader := readEvents(t, r.trace)
			if how := reader.Info()["adapter.torch.backward"]; how != "on" { // no function has to be called
				t.Errorf("operators are told of: %q", how)
			}
			bySize, engine := map[uint64][]*trace.Event{}, 0
			for i := range events {
				e := &events[i]
				flagged := e.Flags&trace.FlagBackward != 0
				if flagged && (e.Level != cuda.LevelFramework || e.Kind != trace.EventAlloc || e.Op == 0) {
					t.Fatalf("event %d, a %v, is flagged", e.Seq, e.Kind)
				}
				if flagged && e.PyStack == 0 {
					engine++
				}
				if e.Level == cuda.LevelFramework && e.Kind == trace.EventAlloc {
					bySize[e.Size] = append(bySize[e.Size], e)
				}
			}
			if engine == 0 {
				t.Error("nothing is flagged of what the engine's operators take")
			}
			for _, p := range pieces {
				size, op, backward := uint64(p[0].(float64)), int64(p[1].(float64)), p[2].(bool)
				found := bySize[size]
				if len(found) != 1 {
					t.Errorf("%d bytes were taken %d times", size, len(found))
					continue
				}
				if e := found[0]; op >= 0 && int64(e.Op) != op || e.Flags&trace.FlagBackward != 0 != backward {
					t.Errorf("%d bytes are of operator %d with flags %d, should be of %d, backward %v", size, e.Op,
						e.Flags, op, backward)
				}
			}
		})
	}
}
