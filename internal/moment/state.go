package moment

import (
	"memtrace/analyzer/report"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
)

// State is a copy of the running totals, or of what they were at a peak. Slices by device slot; nil where a figure is
// not known.
type State struct {
	Time    int64
	Events  [heap.AccountCount]uint64                 // until then
	Devices [heap.AccountCount][]uint64               // driver and framework: live bytes by device slot
	Held    [heap.AccountCount][]profile.Held         // driver and framework: live bytes by origin
	places  [heap.AccountCount]map[profile.Origin]int // in Held; nil before the first move

	ByLibrary [][]uint64          // driver bytes by device slot and library, regardless of filters
	Reported  []uint64            // the framework's reserved counter by device slot
	Requested []*report.Requested // of the framework's blocks on all devices, then by device slot
	Waiting   []uint64            // bytes of the framework's blocks that wait for other streams, by device slot
	Exact     bool                // it is before the first lost record
	Watched   any                 // data of the watcher
}

// On is the part of a moment that one device has of it.
func (m *State) On(slot int) *State {
	part := &State{Time: m.Time, Exact: m.Exact}
	only := func(bytes []uint64) []uint64 {
		list := make([]uint64, len(bytes))
		if slot < len(bytes) {
			list[slot] = bytes[slot]
		}
		return list
	}
	for a := range m.Held {
		part.Devices[a] = only(m.Devices[a])
		for i := range m.Held[a] {
			if h := &m.Held[a][i]; profile.DeviceSlot(h.Device) == slot {
				part.Held[a] = append(part.Held[a], *h)
			}
		}
	}
	part.Reported, part.Waiting = only(m.Reported), only(m.Waiting)
	part.ByLibrary = make([][]uint64, len(m.ByLibrary))
	if slot < len(m.ByLibrary) {
		part.ByLibrary[slot] = m.ByLibrary[slot]
	}
	return part
}

// Live returns the live bytes of an account on all devices.
func (m *State) Live(a heap.Account) (sum uint64) {
	for _, bytes := range m.Devices[a] {
		sum += bytes
	}
	return sum
}

// ReservedOn returns what the framework's allocator held on a device.
func (m *State) ReservedOn(slot int, h *device.Holdings) uint64 {
	if slot >= len(m.Reported) {
		return 0
	}
	return h.ReservedOf(m.Reported[slot], func(library uint32) uint64 {
		if int(library) < len(m.ByLibrary[slot]) {
			return m.ByLibrary[slot][library]
		}
		return 0
	})
}

// Move moves bytes from one origin to another; sure: they were certain at the moment.
func (m *State) Move(a heap.Account, from, to profile.Origin, moved profile.Held, sure bool) {
	place := m.placesOf(a)
	if i, held := place[from]; held {
		h := &m.Held[a][i]
		h.Bytes -= moved.Bytes
		h.Rest -= moved.Rest
		h.Unknown -= moved.Unknown
		h.Certain -= min(h.Certain, moved.Bytes)
	}
	i, known := place[to]
	if !known {
		i = len(m.Held[a])
		place[to] = i
		m.Held[a] = append(m.Held[a], profile.Held{Origin: to})
	}
	h := &m.Held[a][i]
	h.Bytes += moved.Bytes
	h.Rest += moved.Rest
	h.Unknown += moved.Unknown
	if sure {
		h.Certain += moved.Bytes
	}
	m.drop(a, from)
	m.drop(a, to)
}

// placesOf maps an origin to its index in the list of an account. Names may arrive for as many blocks as there are
// origins, so that a linear search for each would be quadratic.
func (m *State) placesOf(a heap.Account) map[profile.Origin]int {
	if m.places[a] == nil {
		m.places[a] = make(map[profile.Origin]int, len(m.Held[a]))
		for i := range m.Held[a] {
			m.places[a][m.Held[a][i].Origin] = i
		}
	}
	return m.places[a]
}

// drop removes an origin that holds nothing from the list; the last one replaces it.
func (m *State) drop(a heap.Account, o profile.Origin) {
	list, place := m.Held[a], m.places[a]
	i, known := place[o]
	if !known || list[i].Bytes != 0 {
		return
	}
	last := len(list) - 1
	list[i] = list[last]
	place[list[i].Origin] = i
	delete(place, o)
	m.Held[a] = list[:last]
}
