package hostile

import (
	"testing"
	"time"
)

// least returns the least time that a mode takes of a few runs: what else the machine does only adds to it.
func (r run) least(t *testing.T) time.Duration {
	t.Helper()
	best := limit
	for range 7 {
		began := time.Now()
		if got := r.do(t); got.exit != 0 {
			t.Fatalf("%v: exit %d\n%s", r.args, got.exit, got.stderr)
		}
		best = min(best, time.Since(began))
	}
	return best
}

// A process whose first thread left by pthread_exit lived on for half a second after its last thread, until the library
// looked who was left. It takes about as long as one that waits for that thread.
func TestEndsWithItsLastThread(t *testing.T) {
	program := endings(t)
	joined := run{program: program, args: []string{"joined"}, preload: []string{""}}.least(t)
	for _, mode := range []string{"pthread-exit", "pthread-exit-idle", "pthread-exit-alone"} {
		if left := (run{program: program, args: []string{mode}, preload: []string{""}}).least(t); left > 4*joined {
			t.Errorf("%s takes %v, and %v with a first thread that stays", mode, left, joined)
		}
	}
}
