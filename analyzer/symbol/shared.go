package symbol

import (
	"debug/dwarf"
)

// readShared takes in the file that several debug files share: names of functions and strings are looked up there.
func (d *debugInfo) readShared(im *image, careful bool) error {
	other := &debugInfo{order: d.order}
	if _, err := im.dwarfData(other, careful); err != nil {
		d.maps = append(d.maps, other.maps...)
		return err
	}
	d.maps = append(d.maps, other.maps...)
	d.alt = other.data
	var err error
	d.altSt, err = im.debugSection(d, "str", careful, carefulDebug)
	return err
}

var _ = dwarf.ClassReferenceAlt
