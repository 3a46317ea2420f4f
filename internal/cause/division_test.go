package cause

import (
	"fmt"
	"testing"

	"memtrace/internal/profile"
)

// TestDivisionGoesUpTheTree: where a model has many different modules, those that hold them are shown.
func TestDivisionGoesUpTheTree(t *testing.T) {
	d := dividedList{}
	var keys []string
	for _, block := range []string{"encoder", "decoder"} {
		for i := range 20 {
			keys = append(keys, fmt.Sprintf("net.%s.part%c", block, 'a'+i))
			d.list = append(d.list, profile.Held{Bytes: uint64(100 + i)})
			d.bytes += uint64(100 + i)
		}
	}
	w := d.moduleLevels(keys)
	if len(w.rows) != 2 || w.rows[0].Key != "net.decoder" || !w.rows[0].Below || w.rows[0].Bytes+
		w.rows[1].Bytes != d.bytes {
		t.Errorf("%+v", w.rows)
	}
}
