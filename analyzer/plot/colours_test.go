package plot

import "testing"

// What memory is for has one colour in all pictures, and no two names of a picture share one while there are enough.
func TestColours(t *testing.T) {
	list := colours([]string{"Feature maps", "a", "Parameters", "b"})
	if list[0] != palette[3] || list[1] != palette[1] || list[2] != palette[0] || list[3] != palette[2] {
		t.Errorf("%v", list)
	}
	many := colours(make([]string, 30))
	for i := range palette {
		if many[i] != palette[i] {
			t.Errorf("colour %d: %v", i, many[i])
		}
	}
}
