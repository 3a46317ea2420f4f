package profile

import (
	"reflect"
	"testing"
	"unsafe"
)

// Two origins are the same where each field is: none is forgotten when one is added.
func TestOriginIs(t *testing.T) {
	var o Origin
	if !o.is(&Origin{}) {
		t.Error("nothing differs")
	}
	for i := range reflect.TypeOf(o).NumField() {
		field := reflect.TypeOf(o).Field(i)
		p := o
		*(*byte)(unsafe.Add(unsafe.Pointer(&p), field.Offset+field.Type.Size()-1)) = 1
		if o.is(&p) {
			t.Errorf("another %s is not seen", field.Name)
		}
	}
}
