package cuda

import "slices"

// API identifies the hooked call that an event comes from. The list is generated from cshim/hooks.def, the only hook
// list; numbers are part of the trace format and only ever appended. APINone means that no such call was seen.
type API uint16

// APINone is the zero API.
const APINone API = 0

// Level is the layer of the memory hierarchy an event belongs to. Levels are joined by address, never summed. Numbers
// are part of the trace format.
type Level uint8

// The levels, from the device upwards.
const (
	LevelNone      Level = 0
	LevelDriver    Level = 1 // what the device gives
	LevelRuntime   Level = 2 // the CUDA runtime call around a driver event; a label, not an account of its own
	LevelFramework Level = 3 // blocks that a framework's allocator cuts from driver memory
)

var levelNames = [...]string{"none", "driver", "runtime", "framework"}

// String returns the level's name as it appears in reports and in the text form of a trace.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "none"
}

// ParseLevel is the inverse of String; ok is false for a name that no level has.
func ParseLevel(name string) (level Level, ok bool) {
	i := slices.Index(levelNames[:], name)
	return Level(max(i, 0)), i >= 0
}

// apiInfo is one generated row.
type apiInfo struct {
	name  string // C symbol without mangling, e.g. cudaMalloc
	level Level
}

// String returns the call's symbol name, or "unknown" for a number that this version does not list.
func (a API) String() string {
	if int(a) < len(apiTable) && apiTable[a].name != "" {
		return apiTable[a].name
	}
	if a == APINone {
		return "none"
	}
	return "unknown"
}

// Level returns the layer that the call belongs to.
func (a API) Level() Level {
	if int(a) < len(apiTable) {
		return apiTable[a].level
	}
	return LevelNone
}

// ParseAPI is the inverse of String; ok is false for a name that no hooked call has.
func ParseAPI(name string) (api API, ok bool) {
	api, ok = apiByName[name]
	return api, ok
}

var apiByName = func() map[string]API {
	m := make(map[string]API, len(apiTable))
	for i, row := range apiTable {
		if row.name != "" {
			m[row.name] = API(i)
		}
	}
	return m
}()
