package trace

import (
	"bytes"
	"strings"
	"testing"

	"memtrace/internal/section"
)

// Reports are where they were written, between the blocks of events, and a text form keeps them there.
func TestOOMReportsRoundTrip(t *testing.T) {
	const text = `trace version=1
alloc seq=1 time=1 level=driver api=cudaMalloc mem=device size=5 status=2
flush watermark=2
oomreport json="{\"n\":1}"
alloc seq=2 time=2 level=driver api=cudaMalloc mem=device size=5 status=2
flush watermark=3
oomreport json="{\"n\":2}"
end reason="exit" lost_records=0 lost_rings=0 lost_dict=0 events=2 time=3
`
	file := encode(t, text)
	if got := dump(t, file); got != text {
		t.Errorf("got\n%swant\n%s", got, text)
	}
	_, r := readAll(t, file)
	if got := strings.Join(r.OOMReports(), " "); got != `{"n":1} {"n":2}` || r.Health().SkippedSections != 0 {
		t.Errorf("reports %s, health %+v", got, r.Health())
	}
}

func TestOOMReportsAreBounded(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "\xff", strings.Repeat("x", MaxOOMBytes+1)} {
		if err := w.WriteOOM(bad); err == nil {
			t.Errorf("a report of %d bytes was written", len(bad))
		}
	}
	for range MaxOOMReports + 3 {
		if err := w.WriteOOM(strings.Repeat("report", 100)); err != nil {
			t.Fatal(err)
		}
	}
	_, r := readAll(t, file.Bytes())
	if n := len(r.OOMReports()); n != MaxOOMReports || r.Health().Truncated {
		t.Errorf("%d reports, health %+v", n, r.Health())
	}
	_, r = readAll(t, withSection(section.OOM, []byte{0xff}, 0))
	if !r.Health().Truncated || len(r.OOMReports()) != 0 {
		t.Errorf("a section that is no text: %q, health %+v", r.OOMReports(), r.Health())
	}
}
