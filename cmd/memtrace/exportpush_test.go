package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"memtrace/internal/exportcmd"
)

const pushedTrace = `trace version=1
info key="process.argv" value="/usr/bin/python3\x00/home/ada/train.py\x00--token\x00SECRET"
info key="process.pid" value="4711"
info key="process.host" value="node7"
info key="process.start_unix_ns" value="1700000000000000000"
info key="env.RANK" value="3"
info key="framework.torch" value="2.7.1"
thread id=1 tid=7 name="python3"
alloc seq=1 time=1000 thread=1 level=driver api=cuMemAlloc_v2 mem=device device=0 addr=0x7f0000000000 size=67108864
alloc seq=2 time=2000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=0x7f0000000000 size=19922944
alloc seq=3 time=3000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=0x7f0001300000 size=11534336
free seq=4 time=4000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=0x7f0001300000 size=11534336
end reason="exit" time=60000000000
`

// A server gets the profile that export writes, dated by the run's end, under labels that identify runs and hold no
// secret.
func TestExportPush(t *testing.T) {
	var labels map[string]string
	var sent []byte
	var authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Series []struct {
				Labels  []struct{ Name, Value string }
				Samples []struct{ RawProfile []byte }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/push.v1.PusherService/Push" {
			t.Errorf("%s: %v", r.URL, err)
			return
		}
		labels, sent, authorization = map[string]string{}, body.Series[0].Samples[0].RawProfile,
			r.Header.Get("Authorization")
		for _, l := range body.Series[0].Labels {
			labels[l.Name] = l.Value
		}
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "t.bin")
	if err := os.WriteFile(path, encoded(t, pushedTrace), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(exportcmd.PushTokenEnv, "abc")
	_, said := execute(t, []string{"export", "--push", server.URL, "--push-label", "team=vision", path})
	if !strings.Contains(said, "memtrace: sent ") ||
		!strings.Contains(said, " as python3 train.py, 30.0 MiB at the peak") {
		t.Error(said)
	}
	want := map[string]string{"__name__": "memory", "service_name": "python3 train.py", "host": "node7", "rank": "3",
		"level": "framework", "process_pid": "4711", "team": "vision"}
	for name, value := range want {
		if labels[name] != value {
			t.Errorf("label %s is %q, want %q", name, labels[name], value)
		}
	}
	if len(labels) != len(want) || authorization != "Bearer abc" {
		t.Errorf("labels %v, authorization %q", labels, authorization)
	}
	p, err := profile.Parse(bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	if end := time.Unix(1700000060, 0); p.TimeNanos != end.UnixNano() || p.DurationNanos != int64(time.Minute) {
		t.Errorf("dated %d, %d long", p.TimeNanos, p.DurationNanos)
	}
	sums := map[string]int64{}
	for i, kind := range p.SampleType {
		for _, s := range p.Sample {
			sums[kind.Type] += s.Value[i]
		}
		if kind.Type != exportcmd.PushTypes[i].Name || kind.Unit != exportcmd.PushTypes[i].Unit {
			t.Errorf("samples have %s, in %s", kind.Type, kind.Unit)
		}
	}
	if sums["peak_space"] != 30<<20 || sums["inuse_space"] != 19922944 || sums["alloc_space"] != 30<<20 ||
		len(p.SampleType) != len(exportcmd.PushTypes) {
		t.Errorf("%v", sums)
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(files) != 1 {
		t.Errorf("files %v", files)
	}
	if _, said := execute(t, []string{"export", "pprof", "--push", server.URL, "--push-label", "service_name=other",
		path}); !strings.Contains(said, " as other, ") || labels["service_name"] != "other" {
		t.Errorf("%s %v", said, labels)
	}
}
