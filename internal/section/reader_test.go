package section

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// readDamaged reads sections up to the damage that there must be.
func readDamaged(t *testing.T, sections *Reader) {
	t.Helper()
	for {
		_, _, err := sections.Next()
		var damage *Damage
		if errors.As(err, &damage) {
			return
		}
		if err != nil {
			t.Fatalf("reading ends with %v", err)
		}
	}
}

// A file full of headers with large lengths costs no more than a bound, however long it is.
func TestHeadersEverywhere(t *testing.T) {
	var file []byte
	for range 1 << 16 {
		file = binary.LittleEndian.AppendUint32(file, 3) // as kind, length, checksum and raw length
	}
	sections := NewReader(bytes.NewReader(file), HeadSize+int64(len(file)), HeadSize)
	readDamaged(t, &sections)
	if sections.checked > resyncChecked+MaxBytes {
		t.Errorf("%d bytes were checked", sections.checked)
	}
}

func TestAbsurdLengthAllocatesNothing(t *testing.T) {
	file := make([]byte, HeaderSize)
	binary.LittleEndian.PutUint32(file, uint32(Events))
	binary.LittleEndian.PutUint32(file[4:], MaxBytes)
	for _, size := range []int64{-1, HeadSize + int64(len(file))} {
		sections := NewReader(bytes.NewReader(file), size, HeadSize)
		readDamaged(t, &sections)
		if got := cap(sections.payload); got > readStep {
			t.Errorf("size %d: %d bytes were allocated for a section of which none is there", size, got)
		}
	}
}
