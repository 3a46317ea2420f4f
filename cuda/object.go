package cuda

import "slices"

// ObjectKind is the sort of CUDA object of a handle. Numbers are part of the trace format: append only.
type ObjectKind uint8

// The object kinds.
const (
	ObjectUnknown   ObjectKind = 0
	ObjectContext   ObjectKind = 1 // made by cuCtxCreate, or a device's primary context
	ObjectGreen     ObjectKind = 2 // green context: a part of a device, whose memory belongs to the primary context
	ObjectPool      ObjectKind = 3 // stream-ordered memory pool; handle 0 is the device's default pool
	ObjectModule    ObjectKind = 4 // code and variables in one context
	ObjectLibrary   ObjectKind = 5 // code and variables in every context
	ObjectGraph     ObjectKind = 6
	ObjectExec      ObjectKind = 7  // instantiated graph
	ObjectExternal  ObjectKind = 8  // memory of another API
	ObjectGraphPool ObjectKind = 9  // the device's memory for graph allocation nodes; its handle is 0
	ObjectOwnPool   ObjectKind = 10 // a pool of the program's own, as memtrace.h has them

	objectKindCount = 11
)

var objectKindNames = [objectKindCount]string{"unknown", "context", "green", "pool", "module", "library", "graph",
	"exec", "external", "graphpool", "ownpool"}

// String returns the kind's name as it appears in reports and in the text form of a trace.
func (k ObjectKind) String() string {
	if int(k) < len(objectKindNames) {
		return objectKindNames[k]
	}
	return "unknown"
}

// ParseObjectKind is the inverse of String; ok is false for a name that no kind has.
func ParseObjectKind(name string) (kind ObjectKind, ok bool) {
	i := slices.Index(objectKindNames[:], name)
	return ObjectKind(max(i, 0)), i >= 0
}
