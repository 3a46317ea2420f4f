package moment

import (
	"strings"
	"testing"
)

// TestCheckWindow: a window ends after it begins. Of steps in the wrong order, the trace was said to have none of that
// number.
func TestCheckWindow(t *testing.T) {
	for window, says := range map[string]string{"step:3 step:4": "", "iteration:3 step:3": "", "1s 1s": "",
		"mark:a mark:a":           "",
		"step:3 step:3":           "--to step:3 does not come after --from step:3",
		"step:7 step:3":           "--to step:3 does not come after --from step:7",
		"iteration:2 iteration:2": "--to iteration:2 does not come after --from iteration:2",
		"2s 1s":                   "--from 2s comes after --to 1s", "peak step:1": "no window begins there",
		"step:1 peak": "no window ends there"} {
		var ends [2]At
		for i, text := range strings.Fields(window) {
			var err error
			if ends[i], err = Parse(text); err != nil {
				t.Fatal(err)
			}
		}
		err := CheckWindow(ends[0], ends[1])
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", window, err, says)
		}
	}
}
