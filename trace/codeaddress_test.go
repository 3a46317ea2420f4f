package trace

import (
	"slices"
	"testing"
)

func TestCodeAddresses(t *testing.T) {
	var tables Tables
	if got := tables.CodeAddresses(); len(got) != 0 {
		t.Errorf("an empty dictionary has code addresses %#x", got)
	}
	tables.AddStack(Stack{ID: 2, Frames: []uint64{0x30, 0x10}})
	tables.AddStack(Stack{ID: 1, Frames: []uint64{0x20, 0x10}})
	tables.AddStack(Stack{ID: 1, Frames: []uint64{0x40}}) // the first definition stays
	if got := tables.CodeAddresses(); !slices.Equal(got, []uint64{0x10, 0x20, 0x30}) {
		t.Errorf("code addresses %#x", got)
	}
}
