package cause

import (
	"cmp"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
)

// Family is modules with equal parameters whose names differ in a number at the end, such as versions of one adapter,
// that came one after another while the program ran. Others like them, of other names, are few.
type Family struct {
	Name       string // before the number
	Numbers    []uint64
	Each       uint64   // bytes of one
	Others     []string // names of the others like them, before their numbers
	OthersMost uint64   // how many of one of them there are at most
}

const (
	leastFamily = 4
	// familyTimes is how many times as many as of any other one there are.
	familyTimes = 3
	leastOthers = 2
	// familyPasses is how many iterations ended between the first and the last one.
	familyPasses = 3
)

// numbered is a part of a parameter's name that ends in a number.
var numbered = regexp.MustCompile(`^(.*[A-Za-z].*?)([0-9]{1,9})$`)

// member is the parameters with one such part in their names.
type member struct {
	name   string
	number uint64
	shape  uint64 // of the rest of their names and their sizes
	bytes  uint64
	from   int64 // when the first of them came
}

// kin are members of one name and shape.
type kin struct {
	name  string
	shape uint64
}

// FamilyOf finds the family with most memory; nil if there is none, or not all parameters that had a name are there at
// the peak, as in a cache that drops some.
func FamilyOf(s *report.Summary) *Family {
	t := s.Training
	if t == nil || !allHeld(t) {
		return nil
	}
	families := make(map[kin][]member)
	for _, m := range membersOf(t.Parameters) {
		key := kin{m.name, m.shape}
		families[key] = append(families[key], m)
	}
	var best *Family
	keys := slices.SortedFunc(maps.Keys(families), func(a, b kin) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.shape, b.shape))
	})
	for _, key := range keys {
		list := families[key]
		f := &Family{Name: key.name, Each: list[0].bytes}
		for _, other := range keys {
			if other.shape == key.shape && other.name != key.name {
				f.Others = append(f.Others, other.name)
				f.OthersMost = max(f.OthersMost, uint64(len(families[other])))
			}
		}
		if len(list) < leastFamily || len(f.Others) < leastOthers || uint64(len(list)) < familyTimes*f.OthersMost ||
			!cameOneByOne(t, list) {
			continue
		}
		for _, m := range list {
			f.Numbers = append(f.Numbers, m.number)
		}
		slices.Sort(f.Numbers)
		if best == nil || f.Bytes() > best.Bytes() {
			best = f
		}
	}
	return best
}

// Bytes is what all of the family hold.
func (f *Family) Bytes() uint64 { return uint64(len(f.Numbers)) * f.Each }

// allHeld reports whether the peak has about as much of parameters as have names.
func allHeld(t *report.Training) bool {
	category := slices.Index(t.Categories, "Parameters")
	if category < 0 || t.Highest < 0 {
		return false
	}
	named := uint64(0)
	for i := range t.Parameters {
		if p := &t.Parameters[i]; isParameter(p) {
			named += p.Bytes
		}
	}
	return t.Iterations[t.Highest].Peak.Held[category] >= named
}

func isParameter(p *report.Parameter) bool {
	return p.Category == "parameter" || p.Category == "buffer"
}

func membersOf(parameters []report.Parameter) map[string]member {
	members := make(map[string]member)
	for i := range parameters {
		p := &parameters[i]
		parts := strings.Split(p.Name, ".")
		if !isParameter(p) || p.Bytes == 0 || len(parts) > maxDepth {
			continue
		}
		for k, part := range parts {
			found := numbered.FindStringSubmatch(part)
			if found == nil {
				continue
			}
			m, known := members[part]
			if !known {
				m.name, m.from = found[1], p.FromNS
				m.number, _ = strconv.ParseUint(found[2], 10, 64) // at most nine digits
			}
			h := fnv.New64a()
			h.Write([]byte(strings.Join(parts[:k], ".") + " " + strings.Join(parts[k+1:], ".") + " "))
			h.Write(strconv.AppendUint(nil, p.Bytes, 10))
			m.shape += h.Sum64() // the same whatever the order
			m.bytes += p.Bytes
			m.from = min(m.from, p.FromNS)
			members[part] = m
		}
	}
	return members
}

// cameOneByOne reports whether a family's members came while iterations ended, unlike the parts of a model.
func cameOneByOne(t *report.Training, list []member) bool {
	if t.IterationsBy == report.IterationsByNothing {
		return false
	}
	times := make([]int64, len(list))
	for i, m := range list {
		times[i] = m.from
	}
	slices.Sort(times)
	passes := 0
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended && it.EndNS > times[0] && it.EndNS <= times[len(times)-1] {
			passes++
		}
	}
	return passes >= familyPasses && len(slices.Compact(times)) >= leastFamily
}
