package trace

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// chain is a checksum over the checksums of sections in the order in which they stand. Each section's own tells whether
// its bytes are right; this tells whether all are there, once, and in their places. The end section holds that of the
// sections before it.
type chain struct {
	sections uint64
	sum      uint32
}

// AlteredKey is the fact, in a copy of a trace whose sections were not as they were written, or in a trace with which a
// damaged spool was merged, of what was wrong there.
const AlteredKey = "trace.altered"

// add goes on by the section with the given checksum.
func (c *chain) add(crc uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], crc)
	c.sum = crc32.Update(c.sum, castagnoli, b[:])
	c.sections++
}

// differs says what is wrong with sections that should be want, "" if nothing is.
func (c *chain) differs(want chain) string {
	switch {
	case want.sections == 0 || *c == want: // the end of a file that was continued, or of an older recorder, says nothing
		return ""
	case c.sections != want.sections:
		return fmt.Sprintf("%d sections stand before the end, %d were written", c.sections, want.sections)
	}
	return "the sections before the end are not those that were written, or not in their order"
}
