package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
)

// pairDevices returns the base with the device numbers of the new run, and notes on the renumbering. Two ranks of one
// program do the same on devices of different numbers, which is not a difference. Devices are paired in order if both
// runs used the same number of them.
func pairDevices(base, changed *report.Summary) (*report.Summary, []string) {
	from, to := usedDevices(base), usedDevices(changed)
	if len(from) != len(to) || slices.Equal(from, to) {
		return base, nil
	}
	number := make(map[int16]int16)
	var notes []string
	for i := range from {
		number[from[i]] = to[i]
		if from[i] != to[i] {
			notes = append(notes, fmt.Sprintf("Device %d of the base is compared with device %d of the new run.",
				from[i], to[i]))
		}
	}
	v := *base
	v.Devices = nil
	for _, d := range base.Devices {
		if to, used := number[d.Index]; used {
			d.Index = to
			v.Devices = append(v.Devices, d)
		}
	}
	v.Groups = nil
	for _, g := range base.Groups {
		if g.By == "device" || g.By == "thread" {
			g.Rows = slices.Clone(g.Rows)
			for i := range g.Rows {
				g.Rows[i] = renumbered(g.By, g.Rows[i], number)
			}
		}
		v.Groups = append(v.Groups, g)
	}
	return &v, notes
}

// usedDevices are those with allocations, in order.
func usedDevices(s *report.Summary) (list []int16) {
	for _, d := range s.Devices {
		if d.Index >= 0 && (!d.Driver.Empty() || !d.Framework.Empty()) {
			list = append(list, d.Index)
		}
	}
	slices.Sort(list)
	return list
}

// autogradThread is the name of PyTorch's threads of backward passes, before the device's number.
const autogradThread = "pt_autograd_"

// renumbered gives the row of a device, or of a thread that is named after one, the number of another.
func renumbered(by string, row report.Row, number map[int16]int16) report.Row {
	prefix := map[string]string{"device": "", "thread": autogradThread}[by]
	rest, ok := strings.CutPrefix(row.Key, prefix)
	digits, behind, _ := strings.Cut(rest, " ")
	index, err := strconv.ParseInt(digits, 10, 16)
	to, used := number[int16(index)]
	if !ok || err != nil || !used {
		return row
	}
	row.Key = strings.TrimSuffix(prefix+strconv.Itoa(int(to))+" "+behind, " ")
	if name, found := strings.CutPrefix(row.Label, digits); found {
		row.Label = strconv.Itoa(int(to)) + name
	}
	return row
}
