package export

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/trace"
)

// accountLimit bounds the uncompressed size of an account. The recorder keeps none of more than 1 MiB compressed.
const accountLimit = 64 << 20

// OwnAccounts reads the frameworks' own accounts of their memory from the facts of a run: one account for each device.
// JAX's is a profile for pprof.
func OwnAccounts(info trace.Info) ([]report.OwnAccount, error) {
	packed := info["account.jax"]
	if packed == "" {
		return nil, nil
	}
	p, err := readProfile([]byte(packed))
	if err != nil {
		return nil, fmt.Errorf("read JAX's memory profile: %w", err)
	}
	count, space := valueOf(p, "allocations"), valueOf(p, "space")
	if count < 0 || space < 0 {
		return nil, fmt.Errorf("read JAX's memory profile: it has no allocations or no space")
	}
	place, devices := callstack.Places(info), make(map[string]*ownDevice)
	for _, s := range p.Sample {
		// Executables are not device memory that a buffer could use.
		if label(s, "kind") != "buffer" || s.Value[space] <= 0 || s.Value[count] < 0 {
			continue
		}
		name := label(s, "device")
		if devices[name] == nil {
			devices[name] = &ownDevice{sites: make(map[string]*report.OwnSite)}
		}
		devices[name].add(siteOf(s.Location, place), uint64(s.Value[space]), uint64(s.Value[count]))
	}
	var list []report.OwnAccount
	for name, d := range devices {
		list = append(list, d.account("jax", name))
	}
	slices.SortFunc(list, func(a, b report.OwnAccount) int { return cmp.Compare(a.Device, b.Device) })
	return list, nil
}

func readProfile(packed []byte) (*profile.Profile, error) {
	unpacker, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(unpacker, accountLimit+1))
	if err != nil {
		return nil, err
	}
	if len(data) > accountLimit {
		return nil, fmt.Errorf("it unpacks to more than %d bytes", accountLimit)
	}
	p, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, err
	}
	return p, p.CheckValid()
}

// valueOf is the index of a value in samples, -1 if there is none of that name.
func valueOf(p *profile.Profile, name string) int {
	return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == name })
}

func label(s *profile.Sample, key string) string {
	if values := s.Label[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// siteOf is the innermost line that belongs to no installed package; without one the innermost function. JAX's stacks
// begin with the innermost frame, as all do.
func siteOf(stack []*profile.Location, place func(file string) string) string {
	first := ""
	for _, location := range stack {
		for _, line := range location.Line {
			if line.Function == nil {
				continue
			}
			name, file := line.Function.Name, line.Function.Filename
			if first == "" {
				first = name
			}
			if file != "" && !strings.Contains(file, "-packages/") && !strings.HasPrefix(file, "<") {
				return fmt.Sprintf("%s:%d %s", place(file), line.Line, name)
			}
		}
	}
	return cmp.Or(first, "(unknown)")
}

type ownDevice struct{ sites map[string]*report.OwnSite }

func (d *ownDevice) add(site string, bytes, count uint64) {
	s := d.sites[site]
	if s == nil {
		s = &report.OwnSite{Site: site}
		d.sites[site] = s
	}
	s.Bytes += bytes
	s.Count += count
}

func (d *ownDevice) account(framework, device string) report.OwnAccount {
	a := report.OwnAccount{Framework: framework, Device: device}
	for _, s := range d.sites {
		a.Bytes += s.Bytes
		a.Count += s.Count
		a.Sites = append(a.Sites, *s)
	}
	slices.SortFunc(a.Sites, func(a, b report.OwnSite) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site, b.Site))
	})
	return a
}
