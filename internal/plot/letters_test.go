package plot

import "testing"

// A PDF showed "Linear.forwâ€¦" for "Linear.forw…".
func TestWindows1252(t *testing.T) {
	if got := windows1252("a — µs, é… 記"); got != "a \x97 \xb5s, \xe9\x85 ?" {
		t.Errorf("%q", got)
	}
}
