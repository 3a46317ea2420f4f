package hostile

import (
	"testing"
	"time"
)

// A process whose first thread left by pthread_exit lived on for half a second after its last thread, until the library
// looked who was left. What else the machine does only adds to the time from the last thread's last line to the end, so
// once below that is enough; with the fault no run is.
func TestEndsWithItsLastThread(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"pthread-exit", "pthread-exit-idle"} {
		shortest := time.Hour
		for range 100 {
			cmd, _ := start(t, t.TempDir(), endings(t), mode)
			began := time.Now() // start has waited for its line
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if shortest = min(shortest, time.Since(began)); shortest < 300*time.Millisecond {
				break
			}
		}
		if shortest >= 300*time.Millisecond {
			t.Errorf("%s: the process ends %v after its last thread at best", mode, shortest)
		}
	}
}
