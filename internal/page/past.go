package page

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"memtrace/analyzer/report"
)

// past answers queries about the blocks of a history, as model.js does on the page, for traces whose blocks do not fit
// there.
type past struct {
	h       *report.History
	end     int64
	change  []int32 // by event: 1 + the block that begins, or minus that for one that ends
	summits []int   // computed on first use

	chunks      []chunk
	total       int64 // bytes that are live after the last event
	checkpoints []checkpoint
	layered     layering // of the latest request
	visited     int      // steps of all queries
}

func newPast(h *report.History, end int64) *past {
	p := &past{h: h, end: end, change: make([]int32, len(h.Times))}
	for i := range h.Blocks {
		b := &h.Blocks[i]
		p.change[b.Born] = int32(i + 1)
		if int(b.Died) < len(h.Times) {
			p.change[b.Died] = -int32(i + 1)
		}
	}
	p.sumUp()
	p.check(checkpointEvents)
	return p
}

// block returns the block that an event begins or ends, and the change in bytes.
func (p *past) block(event int) (b *report.HistoryBlock, bytes int64) {
	n := p.change[event]
	if n > 0 {
		return &p.h.Blocks[n-1], int64(p.h.Blocks[n-1].Size)
	}
	return &p.h.Blocks[-n-1], -int64(p.h.Blocks[-n-1].Size)
}

// axis is the unit of positions.
type axis bool

const (
	byTime   axis = false
	byEvents axis = true
)

// at is the last event at or before a position, -1 without one.
func (p *past) at(position float64, by axis) int {
	if by == byEvents {
		return int(max(min(math.Floor(position), float64(len(p.h.Times)-1)), -1))
	}
	return sort.Search(len(p.h.Times), func(i int) bool { return float64(p.h.Times[i]) > position }) - 1
}

// lastBefore is the last event before a position.
func (p *past) lastBefore(position float64, by axis) int {
	if by == byEvents {
		return int(max(min(math.Ceil(position), float64(len(p.h.Times))), 0)) - 1
	}
	return sort.Search(len(p.h.Times), func(i int) bool { return float64(p.h.Times[i]) >= position }) - 1
}

func (p *past) position(event int, by axis) float64 {
	if by == byEvents {
		return float64(event)
	}
	return float64(p.h.Times[event])
}

// time is that of a position.
func (p *past) time(position float64, by axis) float64 {
	if by == byTime {
		return position
	}
	return float64(p.h.Times[int(min(max(position, 0), float64(len(p.h.Times)-1)))])
}

// held is an owner's memory: its number, bytes and blocks.
type held [3]uint64

// heldAt lists the owners of the memory live after an event, of blocks that began after since.
func (p *past) heldAt(event, since int) []held {
	bytes, count := make([]uint64, len(p.h.Owners)), make([]uint64, len(p.h.Owners))
	p.eachLive(event, func(n int32) {
		if b := &p.h.Blocks[n]; int(b.Born) > since {
			bytes[b.Owner] += b.Size
			count[b.Owner]++
		}
	})
	list := []held{}
	for owner := range bytes {
		if count[owner] > 0 {
			list = append(list, held{uint64(owner), bytes[owner], count[owner]})
		}
	}
	return list
}

// lives counts blocks by their lifetime.
type lives struct {
	Below float64 `json:"below"` // nanoseconds, a power of ten
	Count uint64  `json:"count"`
	Bytes uint64  `json:"bytes"`
}

// large is a block as the table of the largest shows it.
type large struct {
	Size  uint64 `json:"size"`
	Owner uint32 `json:"owner"`
	Since int64  `json:"since"`
	Until *int64 `json:"until"` // nil: never freed
}

// largest lists the largest blocks after an event, of some owners.
func (p *past) largest(event, limit int, owners []bool) []large {
	var blocks []*report.HistoryBlock
	p.eachLive(event, func(n int32) {
		if b := &p.h.Blocks[n]; owners[b.Owner] {
			blocks = append(blocks, b)
		}
	})
	slices.SortStableFunc(blocks, func(a, b *report.HistoryBlock) int { return cmp.Compare(b.Size, a.Size) })
	list := []large{}
	for _, b := range blocks[:min(limit, len(blocks))] {
		v := large{Size: b.Size, Owner: b.Owner, Since: p.h.Times[b.Born]}
		if int(b.Died) < len(p.h.Times) {
			v.Until = &p.h.Times[b.Died]
		}
		list = append(list, v)
	}
	return list
}

// highest is the first event after which most is live, from one event to another.
func (p *past) highest(from, to int) int {
	from = max(from, 0)
	live := p.totalAt(from)
	w := walk{next: from + 1, at: from, live: live, best: live}
	p.climb(&w, min(to, len(p.change)-1))
	return w.at
}

// picture is an interval of positions in columns, each with its highest moment: see columns of model.js.
type picture struct {
	Event  []int     `json:"event"`
	Total  []uint64  `json:"total"`
	Bytes  []uint64  `json:"bytes"` // by column and layer
	Times  []float64 `json:"times"` // of the columns' left edges, and of the end
	Layers int       `json:"layers"`
}

func (p *past) columns(from, to float64, count int, by axis, layerOf []int, layers int) *picture {
	p.layer(layerOf, layers)
	v := &picture{Event: make([]int, count), Total: make([]uint64, count), Times: make([]float64, count+1)}
	width, before := (to-from)/float64(count), p.lastBefore(from, by)
	w := walk{next: before + 1, live: p.totalAt(before)}
	for c := range count {
		last := p.lastBefore(from+float64(c+1)*width, by)
		if c+1 == count {
			last = p.at(to, by)
		}
		w.best, w.at = w.live, w.next-1
		p.climb(&w, min(last, len(p.change)-1))
		v.Event[c], v.Total[c] = w.at, uint64(w.best)
	}
	v.Bytes = p.layersAt(v.Event, layerOf, layers)
	for c := range v.Times {
		v.Times[c] = p.time(from+float64(c)*width, by)
	}
	return v
}

// peaks are the events of the local maxima with a prominence of a twentieth of the highest.
func (p *past) peaks() []int {
	if p.summits != nil {
		return p.summits
	}
	var live, most int64
	for e := range p.h.Times {
		_, bytes := p.block(e)
		live += bytes
		most = max(most, live)
	}
	list, least := []int{}, float64(most)/20
	var high, low float64
	at := -1
	live = 0
	for e := range p.h.Times {
		_, bytes := p.block(e)
		live += bytes
		switch now := float64(live); {
		case at < 0:
			if low = min(low, now); now >= low+least {
				high, at = now, e
			}
		case now > high:
			high, at = now, e
		case now <= high-least:
			list, at, low = append(list, at), -1, now
		}
	}
	if at >= 0 {
		list = append(list, at)
	}
	p.summits = list
	return list
}

// summit is the next peak after an event, or before it with a negative direction; -1 without one.
func (p *past) summit(event, direction int) int {
	list := p.peaks()
	if direction < 0 {
		n, _ := slices.BinarySearch(list, event)
		if n == 0 {
			return -1
		}
		return list[n-1]
	}
	n, _ := slices.BinarySearch(list, event+1)
	if n == len(list) {
		return -1
	}
	return list[n]
}

// weights are how much blocks of each group hold over the run: bytes times nanoseconds.
func (p *past) weights(groupOf []int, groups int) []float64 {
	list := make([]float64, groups)
	for i := range p.h.Blocks {
		b := &p.h.Blocks[i]
		until := p.end
		if int(b.Died) < len(p.h.Times) {
			until = p.h.Times[b.Died]
		}
		list[groupOf[b.Owner]] += float64(b.Size) * float64(max(until-p.h.Times[b.Born], 1))
	}
	return list
}
