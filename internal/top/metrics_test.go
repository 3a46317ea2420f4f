package top

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"memtrace/analyzer/report"
	"memtrace/internal/metrics"
)

// series reads families back with Prometheus's parser and lists every sample as name{labels} value.
func series(t *testing.T, families []*metrics.Family) map[string]float64 {
	t.Helper()
	var text bytes.Buffer
	if err := metrics.Write(&text, families, metrics.Classic); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	read, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]float64{}
	for name, family := range read {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			list[name+"{"+strings.Join(labels, ",")+"}"] = valueOf(m)
		}
	}
	return list
}

func valueOf(m *dto.Metric) float64 {
	if m.Counter != nil {
		return m.Counter.GetValue()
	}
	return m.Gauge.GetValue()
}

// measuredSample is busySample with what metrics need beyond it.
func measuredSample() sample {
	s := busySample()
	s.Devices[0].UUID, s.Processes[0].Devices[0].UUID = "GPU-a", "GPU-a"
	p := &s.Processes[0]
	rank := 3
	p.Owners.container, p.Owners.pod = "0123456789ab", "trainer-3"
	p.Owners.Rank, p.Owners.OutOfMemory, p.Owners.LostRecords = &rank, oom{Failed: 2, Recovered: 1}, 7
	p.Owners.Trend = &report.Trend{Bytes: 5 << 20, BytesPerSecond: 1536.5}
	p.Owners.levels = map[string]report.Level{levelDriver: {AllocCount: 4, AllocBytes: 1 << 30},
		levelFramework: {AllocCount: 5, AllocBytes: 2 << 30}}
	p.Owners.parts = []devicePart{{Index: 4, UUID: "GPU-a", By: "tag", Level: levelFramework, Slack: 32 << 20,
		Rows: p.Owners.Rows,
		Levels: map[string]report.Level{levelDriver: {LiveBytes: 1 << 30, PeakBytes: 2 << 30},
			levelFramework: {LiveBytes: 960 << 20, PeakBytes: 1 << 30}},
		Categories: []report.Category{{Key: "Parameters", Bytes: 900 << 20}, {Key: "Others", Bytes: 60 << 20}}}}
	return s
}

func TestTopMetrics(t *testing.T) {
	s := measuredSample()
	got := series(t, newMetricState().families(&s))
	const own = "process_pid=41,rank=3"
	const here = own + ",device=0,hw_id=GPU-a"
	const other = "process_pid=42"
	want := map[string]float64{
		"memtrace_nvml_up{}": 1, "memtrace_processes{recorded=true}": 2, "memtrace_processes{recorded=false}": 1,
		"memtrace_processes_left_out{}": 0,
		"hw_gpu_memory_limit_bytes{hw_id=GPU-a,hw_name=Mock GPU,hw_vendor=NVIDIA,device=0}": 16 << 30,
		"hw_gpu_memory_usage_bytes{hw_id=GPU-a,hw_name=Mock GPU,hw_vendor=NVIDIA,device=0}": 5 << 30,

		"memtrace_process_info{" + own +
			",process_owner=ada,process_command=python train.py,recorded=true,framework=torch,container_id=0123456789ab,pod=trainer-3}": 1,
		"memtrace_process_info{" + other +
			",process_owner=bob,process_command=game,recorded=false}": 1,
		"memtrace_process_info{process_pid=43,process_owner=eve,process_command=serve,recorded=true}": 1,

		"memtrace_trace_readable{" + own + "}":                 1,
		"memtrace_read_timestamp_seconds{" + own + "}":         float64(s.Processes[0].Owners.ReadAt.Unix()),
		"memtrace_device_memory_bytes{" + here + "}":           1324 << 20,
		"memtrace_device_memory_bytes{" + own + ",device=1}":   0,
		"memtrace_device_memory_bytes{" + other + ",device=0}": 1 << 20,
		"memtrace_remainder_bytes{" + here + "}":               300 << 20,

		"memtrace_memory_bytes{" + here + ",level=driver}":                                              1 << 30,
		"memtrace_memory_bytes{" + here + ",level=framework}":                                           960 << 20,
		"memtrace_memory_peak_bytes{" + here + ",level=driver}":                                         2 << 30,
		"memtrace_memory_peak_bytes{" + here + ",level=framework}":                                      1 << 30,
		"memtrace_slack_bytes{" + here + "}":                                                            32 << 20,
		"memtrace_owner_memory_bytes{" + here + `,level=framework,grouping=tag,owner=model\x1b[2J}`:     640 << 20,
		"memtrace_owner_memory_bytes{" + here + ",level=framework,grouping=tag,owner=optimizer}":        320 << 20,
		"memtrace_owner_memory_bytes{" + here + ",level=driver,grouping=library,owner=libcublas.so.12}": 32 << 20,
		"memtrace_category_memory_bytes{" + here + ",level=framework,category=Parameters}":              900 << 20,
		"memtrace_category_memory_bytes{" + here + ",level=framework,category=others}":                  60 << 20,
		"memtrace_other_memory_bytes{" + own + ",kind=host}":                                            4096,
		"memtrace_allocations_total{" + own + ",level=driver}":                                          4,
		"memtrace_allocations_total{" + own + ",level=framework}":                                       5,
		"memtrace_allocated_bytes_total{" + own + ",level=driver}":                                      1 << 30,
		"memtrace_allocated_bytes_total{" + own + ",level=framework}":                                   2 << 30,
		"memtrace_out_of_memory_total{" + own + ",outcome=failed}":                                      2,
		"memtrace_out_of_memory_total{" + own + ",outcome=recovered}":                                   1,
		"memtrace_lost_records_total{" + own + "}":                                                      7,
		"memtrace_growth_bytes_per_second{" + own + "}":                                                 1536.5,
		"memtrace_growth_bytes{" + own + "}":                                                            5 << 20,
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	for name := range got {
		if _, wanted := want[name]; !wanted && !strings.HasPrefix(name, "memtrace_build_info{version=") {
			t.Errorf("beyond that there is %s %v", name, got[name])
		}
	}
}

// A program without a framework has owners at the driver's level and no allocator whose slack could be reported; each
// of its devices is named as the management library names it, or as the process does.
func TestTopMetricsOfDevices(t *testing.T) {
	s := measuredSample()
	o := s.Processes[0].Owners
	o.parts = nil
	for i, uuid := range []string{"GPU-b", "GPU-a", ""} {
		bytes := uint64(100 * (i + 1))
		o.parts = append(o.parts, devicePart{Index: int16(i) - 1, UUID: uuid, By: "site", Level: levelDriver,
			Levels: map[string]report.Level{levelDriver: {LiveBytes: bytes}},
			Rows:   []report.LedgerRow{{Owner: report.OwnerBlocks, Key: "main.c:7 main", Bytes: bytes}}})
	}
	got := series(t, newMetricState().families(&s))
	const own, owner = "{process_pid=41,rank=3,", "level=driver,grouping=site,owner=main.c:7 main}"
	for name, want := range map[string]float64{
		"memtrace_owner_memory_bytes" + own + "hw_id=GPU-b," + owner:          100,
		"memtrace_owner_memory_bytes" + own + "device=0,hw_id=GPU-a," + owner: 200,
		"memtrace_owner_memory_bytes" + own + "device=1," + owner:             300,
		"memtrace_remainder_bytes" + own + "device=0,hw_id=GPU-a}":            1324<<20 - 200,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "memtrace_slack_bytes") || strings.HasPrefix(name, "memtrace_remainder_bytes") &&
			!strings.Contains(name, "GPU-a") {
			t.Errorf("there is %s %v", name, got[name])
		}
	}
}

// Whatever runs, and whatever it calls its memory, there is a bound to the series, and sums are right.
func TestTopMetricsAreBounded(t *testing.T) {
	s := measuredSample()
	var rows []report.LedgerRow
	for i := range 5000 {
		rows = append(rows, report.LedgerRow{Owner: report.OwnerBlocks, Key: fmt.Sprintf("step %d \"\n", i),
			Bytes: uint64(i)})
	}
	s.Processes[0].Owners.parts[0].Rows = rows
	for i := range 300 {
		s.Processes = append(s.Processes, s.Processes[0], s.Processes[1])
		s.Processes[len(s.Processes)-2].PID, s.Processes[len(s.Processes)-1].PID = 1000+i, 2000+i
	}
	m := newMetricState()
	got := series(t, m.families(&s))
	owners, sum := 0, 0.0
	for name, value := range got {
		if strings.HasPrefix(name, "memtrace_owner_memory_bytes{process_pid=41,") {
			owners++
			sum += value
		}
	}
	if owners != maxMetricOwners+1 || sum != 5000*4999/2 {
		t.Errorf("%d owners hold %v bytes", owners, sum)
	}
	if left := got["memtrace_processes_left_out{}"]; left != float64(len(s.Processes)-maxMetricProcesses) {
		t.Errorf("%v of %d processes were left out", left, len(s.Processes))
	}
	if len(got) > 60*maxMetricProcesses {
		t.Errorf("%d series", len(got))
	}
	s.Processes = nil
	m.families(&s)
	if len(m.choosers) != 0 {
		t.Errorf("%d lists of processes that are gone", len(m.choosers))
	}
}

// A server reveals no secret of a command line.
func TestProgramName(t *testing.T) {
	for command, want := range map[string]string{
		"": "", "/usr/bin/python3 -u -O /home/me/train.py --token SECRET": "python3 train.py",
		"python -m torch.distributed.run --token SECRET": "python -m torch.distributed.run",
		"python3 -c SECRET": "python3 -c", "python": "python", "python -m": "python", "./serve SECRET": "serve",
		"[kworker]": "[kworker]", "?": "?",
	} {
		if got := ProgramName(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

// docs/metrics.md has a row for each metric, with its type and unit.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[metrics.Type]string{metrics.Gauge: "gauge", metrics.Counter: "counter", metrics.Info: "info"}
	suffixes := map[metrics.Type]string{metrics.Counter: "_total", metrics.Info: "_info"}
	families := newMetricSet(newMetricState(), &sample{}).families()
	for _, f := range families {
		unit := f.Unit
		if unit == "" {
			unit = "–"
		}
		if row := fmt.Sprintf("| `%s%s` | %s | %s |", f.Name, suffixes[f.Type], kinds[f.Type], unit); !strings.Contains(
			string(text), row) {
			t.Errorf("there is no row %s", row)
		}
	}
	if rows := strings.Count(string(text), "| gauge |") + strings.Count(string(text), "| counter |") +
		strings.Count(string(text), "| info |"); rows != len(families) {
		t.Errorf("%d rows for %d metrics", rows, len(families))
	}
}

// Two requests within an interval get the same answer: the devices are not queried again.
func TestPublisherInterval(t *testing.T) {
	asked := 0
	sampler := newSampler(testHost, &Options{Interval: time.Hour, Listen: "x"}, nil)
	sampler.finder.proc = t.TempDir()
	sampler.open = func() (management, error) {
		asked++
		return fakeManagement{}, nil
	}
	publisher := &publisher{sampler: sampler, metrics: newMetricState(), interval: time.Hour}
	first, _ := publisher.collect(0)
	publisher.sampler.library = nil // another sample would open it again
	if second, _ := publisher.collect(0); &first[0] != &second[0] || asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	publisher.interval = 0
	if third, _ := publisher.collect(0); &first[0] == &third[0] || asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
