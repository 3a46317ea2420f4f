package plot

import (
	"testing"

	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
)

// What memory is for has one colour in all pictures, and no two names of a picture share one while there are enough.
func TestColours(t *testing.T) {
	list := layout.Colors([]string{"Feature maps", "a", "Parameters", "b", layout.CategoryWord(rules.Others)})
	if list[0] != 3 || list[1] != 1 || list[2] != 0 || list[3] != 2 || list[4] != 7 {
		t.Errorf("%v", list)
	}
	many := layout.Colors(make([]string, 30))
	for i := range layout.LayerShades {
		if many[i] != i {
			t.Errorf("colour %d: %v", i, many[i])
		}
	}
}
